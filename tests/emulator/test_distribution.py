"""A stack's own file tells which distribution its local cluster is."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.distribution import is_openshift
from emulator.paths import Paths
from emulator.toolchain import OPENSHIFT, Toolchain
from runner.engine import EngineError

RULES = "- {setting: 'mlbatch:target', value: openshift, distribution: openshift}\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "local").mkdir()
    (tmp_path / "local" / "distributions.yaml").write_text(RULES)
    return tmp_path


def test_a_stack_is_what_its_target_says(root: Path) -> None:
    (root / "Pulumi.site.yaml").write_text("config: {'mlbatch:target': openshift}\n")
    (root / "Pulumi.dev.yaml").write_text("config: {'mlbatch:target': simulated}\n")
    (root / "Pulumi.empty.yaml").write_text("")
    assert is_openshift(root, "site")
    assert not is_openshift(root, "dev")
    assert not is_openshift(root, "empty")
    assert not is_openshift(root, "none-of-ours")


def test_without_rules_every_cluster_is_a_plain_one(root: Path) -> None:
    (root / "Pulumi.site.yaml").write_text("config: {'mlbatch:target': openshift}\n")
    (root / "local" / "distributions.yaml").unlink()
    assert not is_openshift(root, "site")


def test_a_file_that_is_no_yaml_is_named(root: Path) -> None:
    (root / "Pulumi.site.yaml").write_text("config: {\n")
    with pytest.raises(EngineError, match=r"Pulumi\.site\.yaml: line \d+ is no YAML"):
        is_openshift(root, "site")


def test_what_an_openshift_alone_needs_is_built_for_it_alone(tmp_path: Path) -> None:
    tools = Toolchain(Paths.of(root=tmp_path, state=tmp_path / "state", cache=tmp_path / "cache"))
    plain = {need.tool.name for need in tools.missing(cluster=True)}
    more = {need.tool.name for need in tools.missing(cluster=True, openshift=True)}
    assert more - plain == {tool.name for tool in OPENSHIFT.tools}
    assert plain.isdisjoint(tool.name for tool in OPENSHIFT.tools)
