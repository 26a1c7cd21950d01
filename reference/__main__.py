"""Writes docs/settings.md and settings.schema.json."""

from __future__ import annotations

from pathlib import Path

from reference.files import files

if __name__ == "__main__":
    for name, text in files().items():
        (Path(__file__).parents[1] / name).write_text(text)
