"""Layers know no cloud: neither in their words, nor on a cluster of nobody's."""

from __future__ import annotations

import re
from pathlib import Path

COMPONENTS = Path(__file__).resolve().parents[2] / "components"


def neutral() -> list[Path]:
    """Return the modules of components/ that are not Azure's own."""
    azure = COMPONENTS / "azure"
    return [file for file in COMPONENTS.rglob("*.py") if not file.is_relative_to(azure)]


def test_no_layer_names_a_cloud() -> None:
    files = neutral()
    assert len(files) > 50
    words = re.compile(r"azure|\bAKS\b|\bNDv\d|Standard_N|hyper-?v|aznhc", re.IGNORECASE)
    assert words.search("the nodes of an AKS cluster")
    found = [
        f"{file.relative_to(COMPONENTS)}:{number}: {line.strip()}"
        for file in files
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if words.search(re.sub(r"edwardsp/ai-on-aks", "", line))
    ]
    assert found == []
