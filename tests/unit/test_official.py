"""Where the tests against clusters run, and the versions that they report."""

import re
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.local import official


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a user's plugins, which is empty; no cluster is named."""
    folder = tmp_path / "plugins"
    folder.mkdir()
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path))
    monkeypatch.delenv(official.CLUSTER, raising=False)
    return folder


def install(plugins: Path, name: str) -> Path:
    folder = plugins / f"resource-{name}-v{version(f'pulumi-{name}')}"
    folder.mkdir()
    (folder / f"pulumi-resource-{name}").write_bytes(b"\x7fELF")
    return folder


def test_without_a_named_cluster_plugins_are_built_or_emulated_whatever_is_installed(plugins: Path) -> None:
    for name in ("kubernetes", "random"):
        install(plugins, name)
    assert official.named_cluster() is None
    azure, kubernetes, openstack, random = official.providers()
    assert azure == f"azure-native: emulated, as of v{version('pulumi-azure-native')}"
    assert re.fullmatch(r"kubernetes: built from v4\.\S+ of \S+/pulumi-kubernetes/provider/v4", kubernetes)
    assert re.fullmatch(r"openstack: built from v3\.\S+ of \S+/terraform-provider-openstack/v3", openstack)
    assert random == f"random: emulated, as of v{version('pulumi-random')}"


def test_a_named_cluster_has_official_plugins_alone(plugins: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(official.CLUSTER, str(plugins / "kind.kubeconfig"))
    both = install(plugins, "kubernetes"), install(plugins, "random")
    assert official.named_cluster() == plugins / "kind.kubeconfig"
    assert official.plugins() == both
    assert official.providers() == [
        f"kubernetes: official plugin v{version('pulumi-kubernetes')}, {both[0]}",
        f"random: official plugin v{version('pulumi-random')}, {both[1]}",
    ]


def test_a_missing_plugin_is_named_with_the_command_that_brings_it(
    plugins: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(official.CLUSTER, "kind.kubeconfig")
    install(plugins, "kubernetes")
    with pytest.raises(LookupError, match=f"run pulumi plugin install resource random v{version('pulumi-random')}$"):
        official.plugins()
    assert official.providers()[1] == f"random: official plugin v{version('pulumi-random')}, which is not installed"
