"""Where the tests against clusters run, and what they say they ran with."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from tests.local import official

KUBERNETES, RANDOM = (f"{name} v{version(f'pulumi-{name}')}" for name in ("kubernetes", "random"))


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


def test_without_variables_and_plugins_kubernetes_is_built_and_the_rest_is_emulated(plugins: Path) -> None:
    assert official.named_cluster() is None
    assert official.providers() == [
        f"azure-native v{version('pulumi-azure-native')}: emulated by this checkout",
        f"{KUBERNETES}: built by this checkout",
        f"{RANDOM}: emulated by this checkout",
    ]


def test_an_official_kubernetes_plugin_is_named_with_its_place(plugins: Path) -> None:
    folder = install(plugins, "kubernetes")
    install(plugins, "random")
    assert official.providers()[1:] == [
        f"{KUBERNETES}: official plugin in {folder}",
        f"{RANDOM}: emulated by this checkout",
    ]


def test_a_named_cluster_has_official_plugins_alone(plugins: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(official.CLUSTER, str(plugins / "kind.kubeconfig"))
    both = install(plugins, "kubernetes"), install(plugins, "random")
    assert official.named_cluster() == plugins / "kind.kubeconfig"
    assert official.plugins() == both
    assert official.providers() == [
        f"{KUBERNETES}: official plugin in {both[0]}",
        f"{RANDOM}: official plugin in {both[1]}",
    ]


def test_a_missing_plugin_is_named_with_the_command_that_brings_it(
    plugins: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(official.CLUSTER, "kind.kubeconfig")
    install(plugins, "kubernetes")
    with pytest.raises(LookupError, match=f"run pulumi plugin install resource random v{version('pulumi-random')}$"):
        official.plugins()
    assert official.providers()[1] == f"{RANDOM}: official plugin, which is not installed"
