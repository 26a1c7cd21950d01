"""Where local environments keep things: a state folder for each stack, one cache of built tools for all checkouts."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

STATE_VARIABLE = "MLBATCH_STATE"
CACHE_VARIABLE = "MLBATCH_CACHE"
DEFAULT_STACK = "dev"


@dataclass(frozen=True)
class Paths:
    """The folders of one local environment.

    root:  the checkout (holds Pulumi.yaml).
    state: everything that the environment writes; removing it resets the environment.
    cache: built tools, keyed by the content of their module files, shared by all checkouts of a user.
    """

    root: Path
    state: Path
    cache: Path

    @classmethod
    def of(cls, root: Path | None = None, state: Path | None = None, cache: Path | None = None) -> Paths:
        """Return the folders for a checkout.

        Defaults: the checkout that holds this file; `$MLBATCH_STATE` or `<root>/.local`; `$MLBATCH_CACHE` or
        `$XDG_CACHE_HOME/mlbatch` or `~/.cache/mlbatch`.
        """
        root = (root or Path(__file__).resolve().parent.parent).resolve()
        state = state or Path(os.environ.get(STATE_VARIABLE) or root / ".local")
        user_cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        cache = cache or Path(os.environ.get(CACHE_VARIABLE) or user_cache / "mlbatch")
        return cls(root=root, state=state.resolve(), cache=cache.resolve())

    def of_stack(self, stack: str) -> Paths:
        """Return the folders of a stack's own environment, beneath this state folder."""
        return replace(self, state=self.state / stack)

    def environments(self) -> list[Paths]:
        """Return the folders of each stack that has an environment beneath this state folder."""
        return [replace(self, state=run.parent) for run in sorted(self.state.glob("*/run"))]

    @property
    def bin(self) -> Path:
        """The folder with every binary of the environment (links into the cache)."""
        return self.state / "bin"

    @property
    def kubeconfig(self) -> Path:
        """Administrator kubeconfig of the local cluster; mode 0600."""
        return self.state / "kubeconfig"

    @property
    def logs(self) -> Path:
        """One log file for each supervised process and for each container of the local kubelet."""
        return self.state / "logs"

    @property
    def run(self) -> Path:
        """Process ids, sockets, ports and readiness of the running environment."""
        return self.state / "run"

    @property
    def mirror(self) -> Path:
        """Upstream manifests rendered from the modules whose controllers are built."""
        return self.state / "mirror"

    @property
    def pulumi_state(self) -> Path:
        """Folder of the engine's file backend."""
        return self.state / "pulumi-state"

    @property
    def pulumi_home(self) -> Path:
        """PULUMI_HOME of the environment: workspaces and plugins stay out of the user's home folder."""
        return self.state / "pulumi-home"
