"""What Helm says is brought down to the error."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.charts.helm import Helm, HelmError, said


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("coalesce.go:298: warning: a table\nError: INSTALLATION FAILED: no\n", "INSTALLATION FAILED: no"),
        (
            "Error: 1 error occurred:\n\t* a: b\n\nUse --debug flag to render out invalid YAML\n",
            "1 error occurred:\n\t* a: b",
        ),
        ("exec format error\n", "exec format error"),
        ("", ""),
    ],
)
def test_warnings_and_hints_are_left_out(printed: str, expected: str) -> None:
    assert said(printed) == expected


def test_a_helm_that_is_not_built_is_named(tmp_path: Path) -> None:
    with pytest.raises(HelmError, match="helm is missing: build the tools"):
        Helm(tmp_path / "helm", {}).run(["template", "r", "c.tgz"])
