"""A day of a busy, failing cluster in minutes, and a report of it."""
