"""What all emulated provider plugins share: property values and paths on the wire, running calls, errors."""
