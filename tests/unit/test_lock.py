"""`make lock` writes each entry's digest beside its address, once."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from components import catalogue, lock
from components.artifacts import Mirror
from tests.unit.test_artifacts import ENTRY

SOURCE = """ARTIFACTS = (
    Artifact(
        name="tool",
        url="https://example.org/tool/install.yaml",
        images={},
    ),
    Artifact(
        name="other",
        url="https://example.org/other/install.yaml",
        sha256="00",
    ),
)
"""


def test_a_digest_is_added_beside_its_address_only() -> None:
    changed = lock.locked(SOURCE, ENTRY.url, "ab12")
    assert '        url="https://example.org/tool/install.yaml",\n        sha256="ab12",\n        images={},' in changed
    assert changed.count("sha256") == 2


def test_a_recorded_digest_is_replaced() -> None:
    changed = lock.locked(SOURCE, "https://example.org/other/install.yaml", "ff")
    assert '        sha256="ff",\n' in changed
    assert changed.count("sha256") == 1


def test_an_address_without_an_entry_is_an_error() -> None:
    with pytest.raises(ValueError, match="0 entries of the catalogue have the address"):
        lock.locked(SOURCE, "https://example.org/absent.yaml", "ff")


def test_every_entry_of_the_catalogue_can_be_locked() -> None:
    source = Path(catalogue.__file__).read_text()
    for artifact in catalogue.ARTIFACTS:
        assert 'sha256="ab"' in lock.locked(source, artifact.url, "ab")


def test_a_mirror_of_rendered_files_need_not_have_the_published_digests(tmp_path: Path) -> None:
    (tmp_path / ENTRY.file).write_text("kind: Tool\n")
    other = replace(ENTRY, sha256=hashlib.sha256(b"kind: Other\n").hexdigest())
    assert Mirror(artifacts=str(tmp_path), verify=False).read(other) == "kind: Tool\n"
