"""Parsing and rendering of property paths in the engine's notation."""

from __future__ import annotations

import pytest

from emulator.plugin import paths
from emulator.plugin.errors import ProviderError


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a.b", ("a", "b")),
        ("a[0].b", ("a", 0, "b")),
        ('metadata.annotations["x.y/z"]', ("metadata", "annotations", "x.y/z")),
        ('a["quo\\"te"]', ("a", 'quo"te')),
        ("a[*].b", ("a", "*", "b")),
    ],
)
def test_paths(text: str, path: paths.Path) -> None:
    assert paths.parse(text) == path
    if "*" not in path:
        assert paths.render(path) == text


@pytest.mark.parametrize("text", ["a..b", "a[", "a[x]", 'a["b'])
def test_malformed_paths(text: str) -> None:
    with pytest.raises(ProviderError, match="property path"):
        paths.parse(text)
