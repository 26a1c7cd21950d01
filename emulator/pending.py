"""Cleans up the pending operations of a killed engine in a local stack, before the next update.

The local Kubernetes provider takes over existing objects (docs/local.md), so the next update finds them. Helm does not
install over a release, so a pending release is uninstalled.
"""

import subprocess
from collections.abc import Mapping
from typing import Any, Final

from emulator.paths import Paths
from runner.engine import Engine, EngineError
from runner.environment import inherited

RELEASE: Final = "kubernetes:helm.sh/v3:Release"

Resource = Mapping[str, Any]
"""A resource in the engine's state."""


def creations(engine: Engine) -> list[Resource]:
    """Return the resources that the engine was creating when it was killed, empty if it was not killed."""
    pending = engine.read_state().get("pending_operations") or ()
    return [each["resource"] for each in pending if each["type"] == "creating"]


def finish(engine: Engine, paths: Paths) -> None:
    """Remove the pending creations of the stack, if any. Raises EngineError if `pulumi refresh` fails."""
    begun = creations(engine)
    if not begun:
        return
    print(f"the last update was killed with {len(begun)} creations pending: removing them from the state", flush=True)
    for each in begun:
        if each["type"] == RELEASE:
            _uninstall(each["inputs"], paths)
    options = ["--yes", "--skip-preview", "--suppress-outputs", "--suppress-progress", "--clear-pending-creates"]
    code = engine.run("refresh", options)
    if code != 0:
        raise EngineError(
            f"`pulumi refresh` ended with exit code {code}: the killed update is not finished. Recreate this local "
            f"environment: make clean, then make up STACK={engine.stack}"
        )


def _uninstall(inputs: Mapping[str, Any], paths: Paths) -> None:
    namespace, name = inputs["namespace"], inputs["name"]
    options = [f"--namespace={namespace}", f"--kubeconfig={paths.kubeconfig}", "--ignore-not-found"]
    command = [paths.bin / "helm", "uninstall", name, *options, "--wait", "--timeout=1m"]
    done = subprocess.run(command, env=inherited(), stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise EngineError(
            f"the release {namespace}/{name} of a killed update cannot be uninstalled: {done.stderr.strip()}"
        )
