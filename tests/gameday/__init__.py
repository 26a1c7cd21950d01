"""A day of a busy cluster in minutes, with all that goes wrong on one, and a report of it."""
