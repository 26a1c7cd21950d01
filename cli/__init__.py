"""The command `mlbatch`: one module for each subcommand, and `app.py` with their options (docs/commands.md).

The other folders do the work. A module here reads arguments, calls them, prints, and returns the exit code.
"""
