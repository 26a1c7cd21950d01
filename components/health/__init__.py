"""Whether GPU nodes do what they should, and how the rest of the platform learns of it."""
