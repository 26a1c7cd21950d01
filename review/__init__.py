"""Show what a change does to each stack, for its reviewer: `mlbatch review --base main` prints Markdown."""
