"""After a kill, what exists of the pending creations is imported, the rest is cleared, and pending releases go."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import NotFoundError, ResourceNotFoundError

from emulator import azure, pending
from emulator.paths import Paths
from runner.engine import Engine, EngineError

STACK = "urn:pulumi:dev::mlbatch"


def in_cluster(kind: str, name: str, namespace: str | None = None) -> dict[str, Any]:
    """Return an object of the core API, as the engine records it before it asks the provider."""
    metadata = {"name": name} if namespace is None else {"name": name, "namespace": namespace}
    return {
        "urn": f"{STACK}::kubernetes:core/v1:{kind}::{name}",
        "type": f"kubernetes:core/v1:{kind}",
        "inputs": {"apiVersion": "v1", "kind": kind.removesuffix("Patch"), "metadata": metadata},
    }


NAMESPACE = in_cluster("Namespace", "blue")
SETTINGS = in_cluster("ConfigMap", "settings", "blue")
VNET = {"urn": f"{STACK}::azure-native:network:VirtualNetwork::vnet", "type": "azure-native:network:VirtualNetwork"}
RELEASE = {
    "urn": f"{STACK}::kubernetes:helm.sh/v3:Release::volcano",
    "type": "kubernetes:helm.sh/v3:Release",
    "inputs": {"name": "volcano", "namespace": "volcano-system", "chart": "volcano"},
}


class Cluster:
    """A cluster that knows some kinds and holds the objects NAMESPACE and SETTINGS."""

    kinds = ("Namespace", "ConfigMap")
    objects = (("Namespace", "blue", None), ("ConfigMap", "settings", "blue"))

    @property
    def resources(self) -> SimpleNamespace:
        return SimpleNamespace(get=self._kind)

    def get(self, kind: str, *, name: str, namespace: str | None) -> None:
        if (kind, name, namespace) not in self.objects:
            raise NotFoundError(ApiException(status=404))

    def _kind(self, *, api_version: str, kind: str) -> str:
        if (api_version, kind) not in [("v1", each) for each in self.kinds]:
            raise ResourceNotFoundError
        return kind


class KilledEngine:
    """An engine that was killed as it created some resources."""

    def __init__(self, *resources: Mapping[str, Any], operation: str = "creating", code: int = 0) -> None:
        self.refreshes: list[list[str]] = []
        self._operations = [{"type": operation, "resource": each} for each in resources]
        self._code = code

    def read_state(self) -> dict[str, Any]:
        return {"resources": [], "pending_operations": self._operations} if self._operations else {"resources": []}

    def run(self, command: str, arguments: list[str]) -> int:
        assert command == "refresh"
        self.refreshes.append(arguments)
        return self._code

    @property
    def imported(self) -> list[str]:
        """What the one refresh takes over, in pairs of URN and ID. It has to clear the rest."""
        (arguments,) = self.refreshes
        assert "--clear-pending-creates" in arguments
        option = "--import-pending-creates="
        return [each.removeprefix(option) for each in arguments if each.startswith(option)]


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    """The folders of an environment whose Azure must not be asked, and whose Helm writes down how it was called."""
    found = Paths.of(root=tmp_path, state=tmp_path / "state", cache=tmp_path / "cache")
    found.bin.mkdir(parents=True)
    found.kubeconfig.write_text("clusters: []\n")
    helm_that(found, "exit 0")
    monkeypatch.setattr(pending, "connect", lambda kubeconfig: Cluster())
    monkeypatch.setattr(azure, "orphans", lambda paths: pytest.fail("Azure was asked"))
    return found


def helm_that(paths: Paths, ends: str) -> None:
    """Let Helm write its arguments to a file and end with a shell command."""
    (paths.bin / "helm").write_text(f'#!/bin/sh\necho "$@" >> {paths.state}/helm-calls\n{ends}\n')
    (paths.bin / "helm").chmod(0o755)


def helm_calls(paths: Paths) -> list[str]:
    file = paths.state / "helm-calls"
    return file.read_text().splitlines() if file.exists() else []


def finish(engine: KilledEngine, paths: Paths) -> None:
    pending.finish(cast(Engine, engine), paths)


def test_pending_objects_that_exist_are_imported_by_urn_and_id(paths: Paths) -> None:
    engine = KilledEngine(NAMESPACE, SETTINGS)
    finish(engine, paths)
    assert engine.imported == [NAMESPACE["urn"], "blue", SETTINGS["urn"], "blue/settings"]


@pytest.mark.parametrize(
    "absent",
    [in_cluster("ConfigMap", "other", "blue"), in_cluster("ConfigMap", "settings", "red"), in_cluster("Job", "blue")],
    ids=["no such name", "another namespace", "no such kind"],
)
def test_a_pending_object_that_does_not_exist_is_cleared(paths: Paths, absent: dict[str, Any]) -> None:
    engine = KilledEngine(absent)
    finish(engine, paths)
    assert engine.imported == []


def test_a_pending_patch_is_cleared_although_its_object_exists(paths: Paths) -> None:
    engine = KilledEngine(in_cluster("NamespacePatch", "blue"))
    finish(engine, paths)
    assert engine.imported == []


def test_a_pending_resource_that_azure_has_is_imported(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = {f"{STACK}::azure-native:network:Subnet::of-another-update": SimpleNamespace(id="/subnets/other")}
    monkeypatch.setattr(azure, "orphans", lambda _: {VNET["urn"]: SimpleNamespace(id="/vnets/mlbatch"), **elsewhere})
    engine = KilledEngine(VNET)
    finish(engine, paths)
    assert engine.imported == [VNET["urn"], "/vnets/mlbatch"]


def test_a_pending_release_is_uninstalled_and_cleared(paths: Paths) -> None:
    engine = KilledEngine(RELEASE)
    finish(engine, paths)
    assert helm_calls(paths) == ["uninstall volcano --namespace=volcano-system --wait --ignore-not-found"]
    assert engine.imported == []


def test_a_release_that_cannot_be_uninstalled_is_named_and_stays_pending(paths: Paths) -> None:
    helm_that(paths, "echo 'Error: timed out' >&2; exit 1")
    engine = KilledEngine(RELEASE)
    with pytest.raises(EngineError, match="release volcano-system/volcano of a killed update stays: timed out"):
        finish(engine, paths)
    assert engine.refreshes == []


@pytest.mark.parametrize("operation", [None, "updating", "deleting"])
def test_without_a_pending_creation_nothing_is_done(paths: Paths, operation: str | None) -> None:
    engine = KilledEngine() if operation is None else KilledEngine(NAMESPACE, RELEASE, operation=operation)
    finish(engine, paths)
    assert (engine.refreshes, helm_calls(paths)) == ([], [])


def test_the_user_is_told_how_many_creations_are_pending_and_exist(
    paths: Paths, capsys: pytest.CaptureFixture[str]
) -> None:
    finish(KilledEngine(NAMESPACE, in_cluster("ConfigMap", "other", "blue"), RELEASE), paths)
    assert "the last update was killed with 3 creations pending, 1 of which exist" in capsys.readouterr().out


def test_a_refresh_that_fails_is_an_error_that_names_make_clean(paths: Paths) -> None:
    with pytest.raises(EngineError, match=r"`pulumi refresh` ended with exit code 255: .* make clean, then make up"):
        finish(KilledEngine(NAMESPACE, code=255), paths)
