"""What a change does to each stack, for the person who reviews it: `mlbatch review --base main` prints Markdown."""
