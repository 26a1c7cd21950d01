"""A cluster as a picture: one HTML file that answers first questions. It needs no network and runs no script."""

from __future__ import annotations

from pathlib import Path

from runner.picture.page import page
from runner.picture.state import read
from runner.report import Client


def picture(client: Client, name: str) -> str:
    """Return a cluster's picture as HTML. Raises the Kubernetes client's exceptions."""
    return page(read(client, name))


def draw(client: Client, file: Path, name: str) -> str:
    """Write a cluster's picture into a file. Return a message about it.

    Raises OSError if the file cannot be written, and the Kubernetes client's exceptions.
    """
    file.write_text(picture(client, name), encoding="utf-8")
    return f"Picture\n  {file}"
