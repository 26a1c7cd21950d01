"""The status of a local cluster, for `make status`."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ProcessStatus:
    """One supervised process.

    state: waiting (for other processes), starting, running (and ready), restarting, or failed (ended several times
        before it was ready; it is still restarted).
    """

    name: str
    pid: int | None
    state: str
    restarts: int
    log: Path


@dataclass(frozen=True)
class ClusterStatus:
    """The current state of a cluster, from its running processes.

    supervisor_pid: None if no supervisor responds.
    server:         URL of the API server, while a supervisor runs.
    azure_port:     port of the emulated Azure, which serves azure-native and random, while the supervisor runs it.
    openstack:      whether an OpenStack runs with the cluster.
    leftovers:      processes of the cluster that run without a supervisor, process id -> command line.
    """

    supervisor_pid: int | None
    processes: tuple[ProcessStatus, ...]
    node_ready: bool
    server: str | None
    leftovers: dict[int, str]
    azure_port: int | None = None
    openstack: bool = False

    @property
    def providers(self) -> dict[str, int]:
        """Ports of the running emulated providers, by plugin."""
        return {} if self.azure_port is None else {"azure-native": self.azure_port, "random": self.azure_port}

    @property
    def ready(self) -> bool:
        """Whether all processes run and the local node is Ready."""
        running = bool(self.processes) and all(process.state == "running" for process in self.processes)
        return running and self.node_ready
