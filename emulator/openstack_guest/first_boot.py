"""The simulated first boot of a guest: the content of its files at each time."""

import json
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import yaml

from emulator.openstack_guest.user_data import UserData

MARKER = "/var/lib/mlbatch/first-boot.json"
KUBECONFIG = "/var/lib/mlbatch/kubeconfig"
NOT_RUN = "not run: this VM has no guest system"
_GPU_CHECKS = ("gpus-in-cluster", "nbody", "nvcc", "nvidia-smi")


@dataclass
class FirstBoot:
    """A first boot that takes `seconds`, divided evenly among its steps. It fails in the step `fails`, if given.

    kubeconfig: of the cluster that replaces the VM's own; None without a cluster.
    """

    user_data: UserData
    kubeconfig: str | None
    seconds: float = 0.0
    fails: str | None = None
    begun: float = field(default_factory=time.monotonic)

    def read(self, path: str) -> str | None:
        """Return the current content of a file of the VM, None if it does not exist."""
        marker = self._marker()
        if path == MARKER:
            return json.dumps(marker)
        if path == KUBECONFIG and marker["state"] == "ready" and self.api_port is not None:
            return self._as_kind_writes_it()
        return None

    @property
    def api_port(self) -> int | None:
        """The API server's port on the VM's loopback, None without a cluster."""
        return self.user_data.api_port if self.kubeconfig is not None else None

    @property
    def api_server(self) -> tuple[str, int]:
        """The real address of the API server."""
        server = urlsplit(yaml.safe_load(self.kubeconfig or "")["clusters"][0]["cluster"]["server"])
        return server.hostname or "127.0.0.1", server.port or 443

    def _marker(self) -> dict[str, object]:
        steps = self.user_data.steps
        passed = time.monotonic() - self.begun
        at = len(steps) if passed >= self.seconds else int(passed / self.seconds * len(steps))
        if self.fails in steps[: at + 1]:
            message = f"step '{self.fails}' ended with 1"
            return self._state(
                "failed", str(self.fails), message, (f"{self.fails}: attempt 3 of 3", "simulated failure")
            )
        if at < len(steps):
            return self._state("running", steps[at])
        return self._state("ready", steps[-1])

    def _state(self, state: str, step: str, message: str = "", log: tuple[str, ...] = ()) -> dict[str, object]:
        told = self.user_data.told
        names = {"docker": "DOCKER_VERSION", "cuda": "CUDA_VERSION", "nvidia-driver": "DRIVER_VERSION"}
        names["nvidia-container-toolkit"] = "TOOLKIT_VERSION"
        ready = state == "ready"
        versions = {name: told[variable] for name, variable in names.items() if variable in told} if ready else {}
        if "docker" in versions:
            # Docker reports its version without the package's build.
            versions["docker"] = versions["docker"].partition("-")[0]
        checks = ["hello-world", *(_GPU_CHECKS if "CUDA_VERSION" in told else ())] if ready else []
        return {
            "state": state,
            "step": step,
            "message": message,
            "log": log,
            "versions": versions,
            "checks": dict.fromkeys(checks, NOT_RUN),
        }

    def _as_kind_writes_it(self) -> str:
        kubeconfig = yaml.safe_load(self.kubeconfig or "")
        kubeconfig["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{self.api_port}"
        return yaml.safe_dump(kubeconfig, sort_keys=False)
