"""Rules for the settings: of single sections, between sections, and against the cluster."""
