"""After a kill, pending releases are uninstalled, and pending creations are removed from the state."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from emulator import pending
from emulator.paths import Paths
from runner.engine import Engine, EngineError

STACK = "urn:pulumi:dev::mlbatch"


def in_cluster(kind: str, name: str, namespace: str | None = None) -> dict[str, Any]:
    """Return an object of the core API, as the engine records it before it calls the provider."""
    metadata = {"name": name} if namespace is None else {"name": name, "namespace": namespace}
    return {
        "urn": f"{STACK}::kubernetes:core/v1:{kind}::{name}",
        "type": f"kubernetes:core/v1:{kind}",
        "inputs": {"apiVersion": "v1", "kind": kind.removesuffix("Patch"), "metadata": metadata},
    }


NAMESPACE = in_cluster("Namespace", "blue")
RELEASE = {
    "urn": f"{STACK}::kubernetes:helm.sh/v3:Release::volcano",
    "type": "kubernetes:helm.sh/v3:Release",
    "inputs": {"name": "volcano", "namespace": "volcano-system", "chart": "volcano"},
}


class KilledEngine:
    """An engine that was killed while it created resources."""

    stack = "dev"

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


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """Return the folders of an environment whose Helm records its calls."""
    found = Paths.of(root=tmp_path, state=tmp_path / "state", cache=tmp_path / "cache")
    found.bin.mkdir(parents=True)
    found.kubeconfig.write_text("clusters: []\n")
    helm_that(found, "exit 0")
    return found


def helm_that(paths: Paths, ends: str) -> None:
    """Make Helm write its arguments to a file and then run a shell command."""
    (paths.bin / "helm").write_text(f'#!/bin/sh\necho "$@" >> {paths.state}/helm-calls\n{ends}\n')
    (paths.bin / "helm").chmod(0o755)


def helm_calls(paths: Paths) -> list[str]:
    file = paths.state / "helm-calls"
    return file.read_text().splitlines() if file.exists() else []


def finish(engine: KilledEngine, paths: Paths) -> None:
    pending.finish(cast(Engine, engine), paths)


def test_pending_objects_are_forgotten_in_one_refresh(paths: Paths) -> None:
    engine = KilledEngine(NAMESPACE, in_cluster("ConfigMap", "settings", "blue"))
    finish(engine, paths)
    assert [arguments[-1] for arguments in engine.refreshes] == ["--clear-pending-creates"]
    assert helm_calls(paths) == []


def test_a_pending_release_is_uninstalled_and_cleared(paths: Paths) -> None:
    engine = KilledEngine(RELEASE)
    finish(engine, paths)
    options = f"--namespace=volcano-system --kubeconfig={paths.kubeconfig} --ignore-not-found --wait --timeout=1m"
    assert helm_calls(paths) == [f"uninstall volcano {options}"]
    assert len(engine.refreshes) == 1


def test_a_release_that_cannot_be_uninstalled_is_named_and_stays_pending(paths: Paths) -> None:
    helm_that(paths, "echo 'Error: timed out' >&2; exit 1")
    engine = KilledEngine(RELEASE)
    with pytest.raises(EngineError, match="volcano of a killed update cannot be uninstalled: Error: timed out"):
        finish(engine, paths)
    assert engine.refreshes == []


@pytest.mark.parametrize("operation", [None, "updating", "deleting"])
def test_without_a_pending_creation_the_state_is_not_changed(paths: Paths, operation: str | None) -> None:
    engine = KilledEngine() if operation is None else KilledEngine(NAMESPACE, RELEASE, operation=operation)
    finish(engine, paths)
    assert (engine.refreshes, helm_calls(paths)) == ([], [])


def test_a_refresh_that_fails_is_an_error_that_names_make_clean(paths: Paths) -> None:
    with pytest.raises(EngineError, match=r"`pulumi refresh` ended with exit code 255: .* make clean, then make up"):
        finish(KilledEngine(NAMESPACE, code=255), paths)
