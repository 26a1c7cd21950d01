"""The guide of OpenShift has a replacement for each command of the seeds, and the versions of the catalogue.

Seeds 000 (MLBatch's tutorial), 002 (MLBatch's guide for a cluster) and 003 (distributed workloads on OpenShift AI).
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from components import catalogue
from components.artifacts import Mirror
from components.compatibility import goes_with
from components.tenancy.promises import Promise
from stacks.targets.openshift.settings import OpenShiftSettings
from tests.unit.conftest import ROOT
from tests.unit.tables import table
from tests.unit.test_aks_guide import model_of
from tests.unit.test_openshift import loaded, shipped

TEXT = (ROOT / "docs" / "openshift.md").read_text()
TABLE = TEXT.partition("## Settings for the guides' commands")[2].partition("\n## ")[0]
COMMANDS = table("openshift_guide", "commands")
"""How the table begins to say what somebody types, or clicks, by seed; commands that only look are left out."""


def rows() -> Iterator[tuple[str, str]]:
    """Yield the rows of the table, as the command and what replaces it."""
    for line in TABLE.splitlines():
        if line.startswith("| ") and not line.startswith(("| Command", "| ---")):
            command, replaced = line.strip("| ").rsplit(" | ", 1)
            yield command, replaced


@pytest.mark.parametrize(("seed", "command"), [(seed, each) for seed, of in COMMANDS.items() for each in of])
def test_each_command_has_a_row(seed: str, command: str) -> None:
    assert [row for row, _ in rows() if command in row], f"seed {seed}"


def named() -> set[str]:
    """Return the settings that replace something; one that begins with a dot is of the section before it."""
    found = set()
    for _, replaced in rows():
        section = ""
        for name in re.findall(r"`(\.?[a-z]\w*(?:\[\])?(?:\.\w+)*)[:`]", replaced):
            full = f"{section}{name}" if name.startswith(".") else name
            if "." in full:
                found.add(full)
                section = full.rpartition(".")[0]
    return found


def test_settings_are_found() -> None:
    assert {"nfs.hostmountAnyuid", "teams[].users", "workbench.size", "openshift.channel"} <= named()


@pytest.mark.parametrize("key", sorted(named()))
def test_settings_that_replace_a_command_exist(key: str) -> None:
    model: type[BaseModel] | None = OpenShiftSettings
    for name in key.replace("[]", "").split("."):
        assert model is not None, key
        fields = {field.alias or python: field for python, field in model.model_fields.items()}
        assert name in fields, f"{key}: {', '.join(fields)}"
        model = model_of(fields[name].annotation)


def cells(first: str) -> list[str]:
    """Return the cells of the row that begins with this one."""
    (line,) = (line for line in TEXT.splitlines() if re.match(rf"\| {re.escape(first)}(,| \|)", line))
    return [cell.strip() for cell in line.strip("| ").split(" | ")]


@pytest.mark.parametrize("release", catalogue.OPENSHIFT_AI, ids=lambda release: release.version)
def test_releases_of_openshift_ai_are_the_catalogues(release: catalogue.OpenShiftAi) -> None:
    version, channels, openshift, kueue, _ = cells(release.version)
    assert (version == f"{release.version}, the default") is (release is catalogue.OPENSHIFT_AI[0])
    assert channels == ", ".join(f"`{channel}`" for channel in release.channels)
    assert openshift == " to ".join(release.openshift)
    assert kueue == release.kueue


def supported() -> Iterator[tuple[str, list[str]]]:
    """Yield each OpenShift of the table of supported versions, with its row."""
    table = TEXT.partition("## Supported versions")[2].partition("\n## ")[0]
    for line in table.splitlines():
        if re.match(r"\| 4\.\d", line):
            row = [cell.strip() for cell in line.strip("| ").split(" | ")]
            yield row[0], row[1:]


@pytest.mark.parametrize(("version", "row"), list(supported()))
def test_the_example_works_on_each_supported_openshift(
    version: str, row: list[str], mirror: Mirror, kubeconfig: Path
) -> None:
    kubernetes, _, scheduler, plain, *with_ai = row
    raw = shipped()
    if plain != "yes":
        raw["tenancy"] = {"acceptUnenforced": [str(promise) for promise in Promise]}
    stack = loaded(raw, mirror, kubeconfig, openshift=f"{version}.1", version=kubernetes)
    assert stack.resolved.scheduler_version == scheduler
    for name, works in zip(("2.25", "3.4"), with_ai, strict=True):
        release = catalogue.entry(catalogue.OPENSHIFT_AI, version=name)
        assert works == (plain if goes_with(release.openshift, version) else "no"), name


@pytest.mark.parametrize("release", catalogue.CERTIFIED_GPU_OPERATORS, ids=lambda release: release.version)
def test_certified_gpu_operators_are_the_catalogues(release: catalogue.CertifiedGpuOperator) -> None:
    version, channel, openshift = cells(release.version)
    assert (version == f"{release.version}, the default") is (release is catalogue.CERTIFIED_GPU_OPERATORS[0])
    assert (channel, openshift) == (f"`{release.channel}`", " to ".join(release.openshift))
