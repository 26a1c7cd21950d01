"""The operators that admit jobs: Kueue and AppWrapper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from components import names
from components.kubernetes.cluster import Cluster
from components.kubernetes.namespace import Namespace, NamespaceArgs
from components.layer import Layer
from components.observability.prometheus import KueueMonitor, Monitoring
from components.queueing.appwrapper import AppWrappers, AppWrappersArgs
from components.queueing.kueue import Kueue, KueueArgs
from stacks.inputs import StackInputs
from stacks.layers.releases import Releases


@dataclass(frozen=True, kw_only=True)
class Queueing:
    """The operators. namespace: theirs. kueue: before somebody makes queues; ready: before one submits a job."""

    namespace: Namespace
    kueue: Kueue
    ready: Sequence[Layer]


def install(
    inputs: StackInputs[Any], releases: Releases, cluster: Cluster, metrics: Monitoring | None
) -> Queueing | None:
    """Register the operators; return them where they are wanted."""
    if releases.kueue is None or releases.appwrapper is None:
        return None
    system = Namespace("system", NamespaceArgs(name=names.SYSTEM_NAMESPACE), cluster.options())
    nodes = cluster.placement.system
    wrapper_args = AppWrappersArgs(release=releases.appwrapper, nodes=nodes)
    wrappers = AppWrappers("appwrapper", wrapper_args, cluster.options(system))
    options = cluster.options(system, *wrappers.definitions)  # so that Kueue finds the kind when it starts
    kueue = Kueue("kueue", KueueArgs(release=releases.kueue, nodes=nodes), options)
    if metrics is not None:
        KueueMonitor("kueue-monitor", cluster.options(metrics, kueue))
    return Queueing(namespace=system, kueue=kueue, ready=[kueue, wrappers])
