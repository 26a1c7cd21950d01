"""Jobs that show the platform at work."""
