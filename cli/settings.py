"""`mlbatch settings`: print, check or write the documentation of the settings."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cli.ending import FINE, FOUND
from reference.files import files

ROOT: Final = Path(__file__).resolve().parents[1]
_FORMATS: Final[Mapping[str, str]] = {"text": "docs/settings.md", "json": "settings.schema.json"}


def run(output: str, action: str | None, root: Path = ROOT) -> int:
    """Print the documentation, or check or write its files. Return the exit code, 1 if a file is not current."""
    made = files()
    if action is None:
        print(made[_FORMATS[output]], end="")
        return FINE
    if action == "write":
        for name, text in made.items():
            (root / name).write_text(text)
        return FINE
    old = [name for name, text in made.items() if (root / name).read_text() != text]
    for name in old:
        print(f"{name} is not current. Run `make settings`.")
    return FOUND if old else FINE
