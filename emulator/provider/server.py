"""The provider package kubernetes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from emulator.plugin.diffing import Difference
from emulator.plugin.errors import ProviderError
from emulator.plugin.operation import Operation
from emulator.plugin.provider import Failure, Plugin, Resources
from emulator.provider import VERSION, config
from emulator.provider.cluster import Cluster
from emulator.provider.config import Reachable, Settings
from emulator.provider.lifecycle import Objects
from emulator.provider.objects import RELEASE, not_supported
from emulator.provider.release import Releases


class Kubernetes(Plugin):
    """The emulated Kubernetes provider.

    reachable: the one API server that provider resources may reach; None for any.
    """

    name = "kubernetes"
    version = VERSION
    keeps_secrets = True

    def __init__(self, reachable: Reachable | None = None) -> None:
        self._reachable = reachable

    def check_config(self, inputs: dict[str, Any]) -> Sequence[Failure]:
        """Return what is wrong with the inputs of a provider resource."""
        return config.problems(inputs, self._reachable)

    def diff_config(self, before: dict[str, Any], after: dict[str, Any]) -> Difference:
        """Tell whether a provider resource means another cluster than before."""
        return config.compare(before, after)

    def configure(self, inputs: dict[str, Any], operation: Operation) -> KubernetesProvider:
        """Connect to the cluster of a provider resource."""
        cluster = Cluster(Settings.of(inputs, self._reachable), operation)
        return KubernetesProvider(cluster)

    def refusal(self, what: str) -> ProviderError:
        """Return the error for what only the official plugin can do."""
        return ProviderError(not_supported(what))


class KubernetesProvider:
    """A configured provider resource."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._objects = Objects(cluster)
        self._releases: Releases | None = None

    def resources(self, token: str) -> Resources:
        """Return the operations on releases, or on the objects of any other kind."""
        if token != RELEASE:
            return self._objects
        if self._releases is None:
            self._releases = Releases(self._cluster)
        return self._releases

    def invoke(self, token: str, arguments: dict[str, Any]) -> NoReturn:
        """Refuse: the functions of this package render charts and manifests, which the engine's side does."""
        raise ProviderError(not_supported(f"the function {token}"))
