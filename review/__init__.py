"""What a change does to each stack, for the person who reviews it: `python -m review --base main` prints Markdown."""
