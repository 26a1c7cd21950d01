"""Target `openshift`: what everything else asks of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from stacks.cluster_facts import ClusterFacts
from stacks.errors import ConfigError
from stacks.existing.target import ClusterTarget
from stacks.openshift.settings import NfsSettings, OpenShiftSettings
from stacks.partial import PartialSettings

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


TARGET: Final = OpenShift()
