"""Generate docs/settings.md and settings.schema.json from the settings models (`make settings`)."""
