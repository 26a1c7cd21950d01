"""Tools that are installed are used when they are recent; what is built is never mistaken for installed."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from emulator import toolchain
from emulator.paths import Paths
from emulator.toolchain import Toolchain, ToolchainError, installed_kubectl, installed_pulumi


def script(folder: Path, name: str, prints: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\necho '{prints}'\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH."""
    monkeypatch.setenv("PATH", str(tmp_path / "installed"))
    return tmp_path / "installed"


@pytest.mark.parametrize(("version", "used"), [("v3.230.0", True), ("v3.272.0", True), ("v3.229.9", False)])
def test_a_recent_pulumi_with_its_language_host_is_used_as_it_is(
    path: Path, tmp_path: Path, version: str, used: bool
) -> None:
    script(path, "pulumi", version)
    script(path, "pulumi-language-python", "")
    assert installed_pulumi(tmp_path / "cache") == (path / "pulumi" if used else None)


def test_a_pulumi_without_its_language_host_is_not_used(path: Path, tmp_path: Path) -> None:
    script(path, "pulumi", "v3.272.0")
    assert installed_pulumi(tmp_path / "cache") is None


def test_a_tool_that_was_built_is_not_an_installed_one(path: Path, tmp_path: Path) -> None:
    script(tmp_path / "cache", "kubectl", "Client Version: v1.34.2")
    path.mkdir()
    (path / "kubectl").symlink_to(tmp_path / "cache" / "kubectl")
    assert installed_kubectl(tmp_path / "cache") is None


def test_an_old_kubectl_is_not_used(path: Path, tmp_path: Path) -> None:
    script(path, "kubectl", "Client Version: v1.26.0")
    assert installed_kubectl(tmp_path / "cache") is None
    script(path, "kubectl", "Client Version: v1.27.1")
    assert installed_kubectl(tmp_path / "cache") == path / "kubectl"


def test_an_installed_kubectl_is_asked_for_its_version_without_a_cluster(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Google's dispatcher would ask the user's cluster."""
    monkeypatch.setenv("KUBECONFIG", "/home/me/prod")
    script(path, "kubectl", "Client Version: v1.34.2")
    with (path / "kubectl").open("a") as file:
        file.write(f'echo "$KUBECONFIG" > {tmp_path}/asked\n')
    assert installed_kubectl(tmp_path / "cache") == path / "kubectl"
    asked = Path((tmp_path / "asked").read_text().strip())
    assert yaml.safe_load(asked.read_text())["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:1"


def test_without_go_the_message_names_the_version_to_install(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = Toolchain(Paths.of(root=tmp_path, state=tmp_path / "state", cache=tmp_path / "cache"))
    with pytest.raises(ToolchainError, match=r"install Go 1\.25\.8 or later"):
        tools._check_go([toolchain.PULUMI])
    script(path, "go", "go version go1.24.1 linux/amd64")
    with pytest.raises(ToolchainError, match=r"Go 1\.25\.8 or later is needed .* found: go version go1\.24\.1"):
        tools._check_go([toolchain.PULUMI])


def test_a_changed_pin_builds_into_another_folder(tmp_path: Path) -> None:
    tools = Toolchain(Paths.of(root=tmp_path, state=tmp_path / "state", cache=tmp_path / "cache"))
    folders = {tools.folder(m) for m in (toolchain.PULUMI, toolchain.LANGUAGE_HOST, toolchain.CLUSTER, toolchain.KWOK)}
    assert len(folders) == 4
    changed = toolchain.Module("kwok", (toolchain.Tool("kwok", "sigs.k8s.io/kwok/cmd/kwok", ("a=b",)),))
    assert tools.folder(changed) not in folders


def test_the_engine_that_is_built_runs_providers_of_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripts that a release has beside the command: the language host's, and that of dynamic providers."""
    source = tmp_path / "sdk"
    script(source / "python" / "cmd", "pulumi-language-python-exec", "host")
    script(source / "python" / "dist", "pulumi-resource-pulumi-python", "provider")
    script(tmp_path / "built", "pulumi-language-python", "")
    monkeypatch.setattr(Toolchain, "module_folder", lambda *_: source)
    script(tmp_path / "beside", "pulumi", "")
    bundled = Toolchain(Paths.of())._bundled(tmp_path / "beside", tmp_path / "built" / "pulumi-language-python")
    assert "provider" in bundled["pulumi-resource-pulumi-python"].read_text()
    assert bundled["pulumi-resource-pulumi-python"].stat().st_mode & 0o777 == 0o755


def test_operators_of_jobs_are_had_without_an_openshift(path: Path, tmp_path: Path) -> None:
    tools = Toolchain(Paths.of(state=tmp_path, cache=tmp_path / "cache"))
    plain, more = (
        {need.tool.name for need in tools.missing(cluster=True, job_operators=wanted)} for wanted in (False, True)
    )
    assert more - plain == {"kuberay-operator", "training-operator"}
