"""The pages' commands can be copied: they parse, use no variable that is not set, and name settings that exist."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel

from components import catalogue
from stacks.targets.aks.settings import AksSettings
from stacks.targets.existing.settings import ExistingSettings
from stacks.targets.registry import SECRET_KEYS
from tests.local.killed import documented_commands
from tests.unit.test_aks_guide import model_of

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / "docs" / name for name in ("eks.md", "gke.md", "operations.md", "members.md", "my-job-does-not-start.md")),
    *sorted((ROOT / "docs" / "workloads").glob("*.md")),
]
GIVEN = {"URN", "ID", "TYPE", "NAME", "PARENT", "PROVIDER", "RANDOM", "HOME"}
"""Placeholders that the reader or the shell replaces."""


def text_of(page: Path) -> str:
    return page.read_text()


def blocks(page: Path) -> list[str]:
    return re.findall(r"```sh\n(.*?)```", text_of(page), re.DOTALL)


def exists(path: str) -> bool:
    """Whether a key of the settings exists on AKS or an existing cluster, such as queueing.kueueVersion."""
    return any(exists_in(settings, path) for settings in (AksSettings, ExistingSettings))


def exists_in(model: type[BaseModel] | None, path: str) -> bool:
    for name in path.split("."):
        if model is None:
            return False
        fields = {field.alias or python: field for python, field in model.model_fields.items()}
        if name not in fields:
            return False
        model = model_of(fields[name].annotation)
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_parse(page: Path) -> None:
    for block in blocks(page):
        done = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True)
        assert done.returncode == 0, (block, done.stderr)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_variable_is_set_before_it_is_used(page: Path) -> None:
    known = set(GIVEN)
    for block in blocks(page):
        for line in block.splitlines():
            used = set(re.findall(r"\$\{?([A-Za-z_]+)", line))
            known |= set(re.findall(r"(?:^|export |for |read -r | )([A-Za-z_]+)(?:=| in |; do)", line))
            assert used <= known, (used - known, line)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_settings_that_are_named_exist(page: Path) -> None:
    known = set(SECRET_KEYS)
    keys = set(re.findall(r"mlbatch:(\w+(?:\.\w+)*)", text_of(page)))
    assert [key for key in sorted(keys) if key not in known and not exists(key)] == []


def test_a_key_that_does_not_exist_is_found() -> None:
    assert exists("queueing.kueueVersion")
    assert not exists("queueing.kueue")
    assert not exists("queueing.kueueVersion.more")


def test_the_versions_of_the_examples_can_be_installed() -> None:
    text = text_of(ROOT / "docs" / "upgrade.md")
    assert set(re.findall(r"kueueVersion' (v[\d.]+)", text)) <= set(catalogue.versions(catalogue.KUEUE))
    chart = re.search(r"helm show crds (\S+) --repo (\S+) --version (\S+)", text)
    assert chart
    assert catalogue.find_chart(chart[1], chart[3]).repository == chart[2]


def test_a_lost_clusters_pipeline_asks_before_it_makes_it_anew() -> None:
    """Every update refreshes first, so that missing resources are planned again."""
    assert yaml.safe_load((ROOT / "Pulumi.yaml").read_text())["options"]["refresh"] == "always"
    text = text_of(ROOT / "docs" / "operations.md")
    (block,) = (each for each in blocks(ROOT / "docs" / "operations.md") if "up --yes" in each)
    assert re.search(r"refresh --preview-only --expect-no-changes .*&& pulumi up --yes", block)
    assert "[without asking](#updates-recreate-what-was-deleted)" in text


def test_the_steps_after_a_killed_update_take_objects_over_once() -> None:
    commands = [line.removesuffix(" --stack mysite") for line in documented_commands().splitlines()]
    assert commands == [
        "pulumi cancel",
        "PULUMI_K8S_UPSERT_EXISTING_OBJECTS=true pulumi up",
        "pulumi refresh --clear-pending-creates",
        "pulumi up",
    ]
