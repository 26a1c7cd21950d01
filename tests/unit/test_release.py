"""The version is the same everywhere, and a release fits its tag and the changelog."""

import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from cli.app import app

ROOT = Path(__file__).parents[2]
RELEASE: dict[str, Any] = runpy.run_path(str(ROOT / "package" / "release.py"))
VERSION = RELEASE["version"]()
CHANGELOG = """# Changelog

## [Unreleased]
{}
## [{}] - {}

The first release.

### Added

- all

## [0.0.1] - 2026-01-01

- less
"""


def test_the_version_is_the_same_everywhere() -> None:
    locked = {each["name"]: each.get("version") for each in tomllib.loads((ROOT / "uv.lock").read_text())["package"]}
    assert locked["mlbatch"] == VERSION
    assert CliRunner().invoke(app, ["--version"]).output == f"mlbatch {VERSION}\n"


def test_the_changelog_has_the_version_or_changes_after_it() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    assert f"\n## [{VERSION}] - " in text
    assert text.index("\n## [Unreleased]\n") < text.index(f"\n## [{VERSION}] - ")


def test_the_notes_are_the_section_of_the_version() -> None:
    text = CHANGELOG.format("", "0.1.0", "2026-11-28")
    assert RELEASE["notes"](text, "0.1.0") == "The first release.\n\n### Added\n\n- all"


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        (CHANGELOG.format("", "0.1.0", "soon"), "write `## [0.1.0] - <date>` below"),
        (CHANGELOG.format("", "0.0.9", "2026-11-28"), "write `## [0.1.0] - <date>` below"),
        (CHANGELOG.format("\n- more\n", "0.1.0", "2026-11-28"), "move the changes of `Unreleased`"),
        (
            "## [Unreleased]\n\n## [0.1.0] - 2026-11-28\n\n## [0.0.1] - 2026-01-01\n\n- less\n",
            "write the changes of 0.1.0",
        ),
    ],
)
def test_a_changelog_without_the_version_ends_a_release(text: str, fix: str) -> None:
    with pytest.raises(ValueError, match="CHANGELOG") as error:
        RELEASE["notes"](text, "0.1.0")
    assert fix in str(error.value)


def test_links_of_the_notes_lead_to_the_files_of_the_tag() -> None:
    links = RELEASE["linked"]("[a](docs/a.md#b), [b](#c), [d](https://d)", f"{RELEASE['home']()}/blob/v1")
    base = "https://github.com/example/pulumi-mlbatch/blob/v1"
    assert links == f"[a]({base}/docs/a.md#b), [b]({base}/CHANGELOG.md#c), [d](https://d)"


def test_another_tag_ends_a_release() -> None:
    with pytest.raises(ValueError, match=r"the tag is v9\.9\.9, and pyproject\.toml has the version"):
        RELEASE["check"]("v9.9.9")


def test_the_examples_name_the_tag() -> None:
    program = yaml.safe_load((ROOT / "examples" / "yaml" / "Pulumi.yaml").read_text())
    assert program["packages"]["mlbatch"].endswith(f"/package@v{VERSION}")
    assert f"mlbatch@v{VERSION}#subdirectory=package" in (ROOT / "docs" / "package.md").read_text()


def test_the_guide_lists_every_file_of_a_release() -> None:
    section = (ROOT / "docs" / "upgrade.md").read_text().split("## What a release contains")[1]
    listed = {line.split("`")[1] for line in section.splitlines() if line.startswith("| `")}
    source = (ROOT / "package" / "release.py").read_text()
    assert len(listed) == 6
    assert all(name.split("VERSION")[-1] in source for name in listed - {"pulumi_mlbatch-VERSION-py3-none-any.whl"})
