"""Sample jobs of the platform."""
