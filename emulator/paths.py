"""Folders of local environments: a state folder for each stack, and one cache of built tools for all checkouts."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

CACHE_VARIABLE = "MLBATCH_CACHE"
DEFAULT_STACK = "dev"
_LENT = "lent"


@dataclass(frozen=True)
class Paths:
    """The folders of one local environment.

    root:  the checkout (contains Pulumi.yaml).
    state: all files that the environment writes. Deleting it resets the environment.
    cache: built tools, keyed by the content of their module files, shared by all checkouts of a user.
    """

    root: Path
    state: Path
    cache: Path

    @classmethod
    def of(cls, root: Path | None = None, state: Path | None = None, cache: Path | None = None) -> Paths:
        """Return the folders for a checkout.

        Defaults: the checkout with this file; `<root>/.local`; `$MLBATCH_CACHE` or `$XDG_CACHE_HOME/mlbatch` or
        `~/.cache/mlbatch`.
        """
        root = (root or Path(__file__).resolve().parent.parent).resolve()
        state = state or root / ".local"
        user_cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        cache = cache or Path(os.environ.get(CACHE_VARIABLE) or user_cache / "mlbatch")
        return cls(root=root, state=state.resolve(), cache=cache.resolve())

    def of_stack(self, stack: str) -> Paths:
        """Return the folders of a stack's environment, below this state folder."""
        return replace(self, state=self.state / stack)

    def environments(self) -> list[Paths]:
        """Return the folders of each environment below this state folder, without links to other places."""
        base = self.state.resolve()
        found = sorted(run.parent for pattern in ("*/run", f"*/{_LENT}/*/run") for run in base.glob(pattern))
        return [replace(self, state=each) for each in found if each.resolve() == each]

    @property
    def lent(self) -> Path:
        """The folder of lent clusters (`python -m emulator lend`)."""
        return self.state / _LENT

    @property
    def is_lent(self) -> bool:
        """Whether this is the environment of a lent cluster."""
        return self.state.parent.name == _LENT

    @property
    def bin(self) -> Path:
        """The folder with all binaries of the environment (links into the cache)."""
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
        """Sockets, locks and ports of the running environment."""
        return self.state / "run"

    @property
    def openstack(self) -> Path:
        """Databases, configuration and keys of the local OpenStack, if the stack has one."""
        return self.state / "openstack"

    @property
    def mirror(self) -> Path:
        """Upstream manifests, rendered from the modules whose controllers are built."""
        return self.state / "mirror"
