"""How a local cluster is, as `make status` tells it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ProcessStatus:
    """One supervised process.

    state: waiting (for what it needs), starting, running (and ready), restarting, or failed (ended again and again
    before it was ready; it is still retried).
    """

    name: str
    pid: int | None
    state: str
    restarts: int
    log: Path


@dataclass(frozen=True)
class ClusterStatus:
    """The cluster as it is now, asked of the living processes.

    supervisor_pid: None when no supervisor answers.
    server:         URL of the API server while a supervisor runs.
    azure_port:     port of the emulated Azure, which serves azure-native and random, while the supervisor runs it.
    openstack:      whether an OpenStack runs beside the cluster.
    leftovers:      processes of the cluster that live without a supervisor, process id -> command line.
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
        """Ports of the emulated providers that run, by the plugin that each serves for."""
        return {} if self.azure_port is None else {"azure-native": self.azure_port, "random": self.azure_port}

    @property
    def lives(self) -> dict[str, int | None]:
        """Process ids by name, None of what does not run: one that differs from an earlier one has ended meanwhile."""
        return {process.name: process.pid for process in self.processes}

    @property
    def ready(self) -> bool:
        """Whether every process runs, and the API server has the local node Ready."""
        running = bool(self.processes) and all(process.state == "running" for process in self.processes)
        return running and self.node_ready
