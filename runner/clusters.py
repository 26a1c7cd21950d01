"""Find the clusters of a stack's objects in the stack's state."""

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
    """Return whether an update ended after it deleted a cluster and before it created the replacement.

    The engine then reads no object, because no cluster answers, and continues without a refresh. A deleted resource
    that is to be replaced has `pendingReplacement` (Pulumi SDK, go/common/apitype/core.go, ResourceV3).
    """
    resources = deployment.get("resources") or ()
    gone = {state["urn"] for state in resources if state.get("pendingReplacement")}
    return any(gone & set(state.get("dependencies") or ()) for state in resources if state["type"] == PROVIDER)


def answer(engine: Engine) -> bool:
    """Return whether each cluster answers within a minute, with the kubeconfig in the stack's state."""
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
    """Yield the providers' kubeconfigs as texts. The state keeps them as secrets."""
    for state in deployment.get("resources") or ():
        given = (state.get("inputs") or {}).get("kubeconfig")
        if state["type"] == PROVIDER and isinstance(given, Mapping):
            yield json.loads(given["plaintext"])
