"""The clusters that a stack's objects are in, by the stack's state."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any, Final

from runner.engine import Engine
from runner.environment import inherited

PROVIDER: Final = "pulumi:providers:kubernetes"
_SECONDS: Final = 60


def is_replaced(deployment: Mapping[str, Any]) -> bool:
    """Whether an update has ended between the end of a cluster and the beginning of the one in its place.

    The engine looks at no object then, for nobody is there to say what has become of it; it goes on without looking. A
    resource that was deleted, and whose replacement is to come, has `pendingReplacement` (Pulumi SDK,
    go/common/apitype/core.go, ResourceV3).
    """
    resources = deployment.get("resources") or ()
    gone = {state["urn"] for state in resources if state.get("pendingReplacement")}
    return any(gone & set(state.get("dependencies") or ()) for state in resources if state["type"] == PROVIDER)


def answer(engine: Engine) -> bool:
    """Whether each cluster answers within a minute, by the kubeconfig with which the stack's state looks at it."""
    variables = {**inherited(), **engine.variables()}
    for kubeconfig in _kubeconfigs(engine.read_state(secrets=True)):
        with tempfile.NamedTemporaryFile("w", prefix="kubeconfig-") as file:
            file.write(kubeconfig)
            file.flush()
            command = ["kubectl", f"--kubeconfig={file.name}", "get", "--raw=/version"]
            try:
                done = subprocess.run(command, env=variables, capture_output=True, timeout=_SECONDS)
            except subprocess.TimeoutExpired:
                return False
            if done.returncode != 0:
                return False
    return True


def _kubeconfigs(deployment: Mapping[str, Any]) -> Iterator[str]:
    """Yield the kubeconfigs of the providers, as texts: the provider takes them as a secret of the state."""
    for state in deployment.get("resources") or ():
        given = (state.get("inputs") or {}).get("kubeconfig")
        if state["type"] == PROVIDER and isinstance(given, Mapping):
            yield json.loads(given["plaintext"])
