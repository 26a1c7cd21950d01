"""Target `openshift`: what everything else asks of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from stacks.cluster_facts import ClusterFacts
from stacks.errors import ConfigError, Path
from stacks.existing.target import ClusterTarget
from stacks.openshift.settings import NfsSettings, OpenShiftSettings
from stacks.partial import PartialSettings
from stacks.settings.gpu import GpuSettings
from stacks.settings.health import HealthSettings
from stacks.settings.workloads import WorkloadsSettings

if TYPE_CHECKING:
    from stacks.inputs import StackInputs
    from stacks.layers.releases import Releases

OLDEST: Final = (4, 14)
"""The oldest OpenShift that MLBatch was tried on (project-codeflare/mlbatch, `SETUP.md`)."""


class OpenShift(ClusterTarget[OpenShiftSettings]):
    """OpenShift 4, whose SecurityContextConstraints decide what pods may do."""

    name = "openshift"
    summary = "an OpenShift 4 cluster with GPU nodes that a kubeconfig names"
    settings = OpenShiftSettings
    sections = ("kubernetes", "cluster", "nfs", *ClusterTarget.sections[2:])
    namespaces = ("openshift-", "redhat-")

    def classes_made(self, partial: PartialSettings) -> Iterable[str]:
        """Return the class on the NFS server."""
        nfs = partial.section(NfsSettings)
        return [nfs.storage_class] if nfs is not None and nfs.enabled else []

    def check(self, partial: PartialSettings) -> Iterator[ConfigError]:
        """Yield what does not go with the cluster."""
        yield from super().check(partial)
        yield from _brought(partial)
        yield from _confined(partial)
        if partial.facts is not None:
            yield from _version(partial.facts)

    def deploy(self, inputs: StackInputs[OpenShiftSettings], releases: Releases) -> Mapping[str, Any]:
        """Register the platform on the cluster."""
        from stacks.openshift.deploy import deploy

        return deploy(inputs, releases)


def _version(facts: ClusterFacts) -> Iterator[ConfigError]:
    """Yield a cluster that is no OpenShift, or too old a one."""
    oldest = ".".join(map(str, OLDEST))
    if facts.openshift is None:
        yield ConfigError(
            path=("target",),
            value="openshift",
            message="the cluster that the kubeconfig names is no OpenShift: it has no ClusterVersion",
            expected="a kubeconfig of an OpenShift cluster, or target existing, for any other",
            hint="name the right context in mlbatch:kubernetes, or set mlbatch:target to existing",
        )
    elif tuple(int(part) for part in facts.openshift.split(".")[:2]) < OLDEST:
        yield ConfigError(
            path=("target",),
            value="openshift",
            message=f"this cluster has OpenShift {facts.openshift}, and MLBatch was never tried on one before {oldest}",
            expected=f"OpenShift {oldest} or later",
            hint="update the cluster",
        )


def _brought(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield operators that OpenShift has from OperatorHub, with the constraints that their pods need there."""
    gpu = partial.section(GpuSettings)
    if gpu is None:
        return
    switches: Mapping[Path, bool] = {
        ("gpu", "featureDiscovery"): gpu.feature_discovery,
        ("gpu", "operator"): gpu.operator,
        ("gpu", "fabric", "enabled"): gpu.fabric.enabled,
    }
    for path, is_on in switches.items():
        if is_on:
            yield ConfigError(
                path=path,
                value=True,
                message="OpenShift gets this operator from OperatorHub, which grants its pods what they need of a node",
                expected="false",
                hint="install it from OperatorHub, and remove the key",
            )


def _confined(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield what runs as root, or as a user that its image names: `restricted-v2` refuses its pods.

    They would be refused one by one while the update waits for them.
    """
    workloads, gpu = partial.section(WorkloadsSettings), partial.section(GpuSettings)
    health = partial.section(HealthSettings)
    wanted: list[Path] = []
    if workloads is not None:
        wanted += [("workloads", name, "enabled") for name, job in workloads.node_workloads().items() if job.enabled]
        wanted += [("workloads", name, "enabled") for name, item in workloads.viewers().items() if item.enabled]
    if health is not None and health.nccl_gate.enabled:
        wanted.append(("health", "ncclGate", "enabled"))
    if gpu is not None and gpu.nvme_scratch.enabled:
        wanted.append(("gpu", "nvmeScratch", "enabled"))
    for path in wanted:
        yield ConfigError(
            path=path,
            value=True,
            message="its pods run as root, or as a user of their own, and OpenShift runs pods as a user of their "
            "namespace's range",
            expected="false",
            hint="remove the key; docs/openshift.md says what runs there",
        )


TARGET: Final = OpenShift()
