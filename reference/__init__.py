"""What users read about settings, made from the models: docs/settings.md and settings.schema.json (`make settings`)."""
