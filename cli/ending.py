"""How every subcommand ends: its exit code, and one line on standard error if it could not be done."""

import sys
from pathlib import Path
from typing import Final

FINE: Final = 0
FOUND: Final = 1
"""The command did its work and found something: drift, an attack that goes through, a job that would not run."""
FAILED: Final = 2
"""The command was used wrongly, or could not be done."""
INTERRUPTED: Final = 130


def failed(problem: object) -> int:
    """Print why the command could not be done; return its exit code."""
    print(f"error: {problem}", file=sys.stderr)
    return FAILED


def interrupted(left: str = "") -> int:
    """Print that the user stopped the command, and what it left behind; return the exit code."""
    print(f"interrupted{left and '; '}{left}", file=sys.stderr)
    return INTERRUPTED


def written(what: str, text: str, file: Path | None) -> int:
    """Print a text that ends with a newline, or write it into a file; return the exit code."""
    try:
        if file is None:
            print(text, end="")
        else:
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        return failed(f"the {what} cannot be written: {error}")
    return FINE
