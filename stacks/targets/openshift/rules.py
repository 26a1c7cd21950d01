"""Rules of target `openshift`."""

from collections.abc import Iterator, Mapping
from typing import Final

from components import catalogue
from components.compatibility import goes_with
from components.kubernetes.security import PINNED_MEMORY
from stacks.config.cluster_facts import ClusterFacts
from stacks.config.errors import ConfigError, Path, key, listed
from stacks.derived.partial import PartialSettings
from stacks.settings.gpu import GpuSettings, ScratchSettings
from stacks.settings.health import NcclGateSettings
from stacks.settings.volcano import VolcanoSettings
from stacks.settings.workloads import JobSettings, NodeWorkloadSettings, WorkloadsSettings
from stacks.targets.existing import rules as existing
from stacks.targets.openshift import operators, workbench
from stacks.targets.openshift.settings import NfsSettings, OpenShiftGpuSettings
from stacks.validation.walk import apply, sections

OLDEST: Final = (4, 16)
"""The oldest OpenShift with the Kubernetes that Kueue needs, 1.29 (components/compatibility.py)."""


def check(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield errors of settings that the cluster does not support."""
    nfs = partial.section(NfsSettings)
    yield from existing.check(partial, [nfs.storage_class] if nfs is not None and nfs.enabled else [])
    yield from apply(partial, operators.check, workbench.check, _brought, _certified, _there_already, _confined)
    yield from apply(partial, _lab, _pinning, _version)


def warnings(partial: PartialSettings) -> Iterator[str]:
    """Yield what OpenShift AI's operators do less well, too."""
    yield from existing.warnings(partial)
    yield from operators.warnings(partial)


def _version(partial: PartialSettings, facts: ClusterFacts) -> Iterator[ConfigError]:
    """Yield the error of a cluster that is not OpenShift, or too old."""
    oldest = ".".join(map(str, OLDEST))
    if facts.openshift is None:
        yield ConfigError(
            ("target",),
            "the kubeconfig's cluster is not OpenShift: it has no ClusterVersion",
            "set the right context in mlbatch:kubernetes, or set mlbatch:target to existing",
        )
    elif tuple(int(part) for part in facts.openshift.split(".")[:2]) < OLDEST:
        yield ConfigError(
            ("target",),
            f"this cluster has OpenShift {facts.openshift}, whose Kubernetes is too old for Kueue",
            "update the cluster",
            expected=f"OpenShift {oldest} or later",
        )


def _certified(partial: PartialSettings, gpu: OpenShiftGpuSettings, facts: ClusterFacts) -> Iterator[ConfigError]:
    """Yield a GPU operator that was not certified for the cluster's OpenShift."""
    if not gpu.operator or facts.openshift is None:
        return
    first, last = gpu.release.openshift
    if goes_with((first, last), facts.openshift):
        return
    known = catalogue.CERTIFIED_GPU_OPERATORS
    fitting = [each.version for each in known if goes_with(each.openshift, facts.openshift)]
    yield ConfigError(
        ("gpu", "operatorVersion"),
        f"this cluster has OpenShift {facts.openshift}, and GPU operator {gpu.operator_version} is certified "
        f"for {first} to {last}",
        "choose one of these" if fitting else "set mlbatch:gpu.operator to false, and install one yourself",
        expected=listed(fitting) if fitting else f"an OpenShift from {first} to {last}",
    )


def _there_already(partial: PartialSettings, facts: ClusterFacts) -> Iterator[ConfigError]:
    """Yield errors of operators that the cluster already has: each can exist only once.

    Source: NVIDIA/gpu-operator, controllers/clusterpolicy_controller.go, which passes over a second ClusterPolicy.
    """
    gpu = partial.section(OpenShiftGpuSettings)
    policies = [policy.name for policy in facts.gpu_policies if policy.is_others]
    if gpu is not None and gpu.operator and policies:
        yield ConfigError(
            ("gpu", "operator"),
            f"this cluster already has NVIDIA's GPU operator, with the ClusterPolicy {policies[0]}",
            "remove the key to use the existing operator, or uninstall that first",
        )


def _brought(partial: PartialSettings, gpu: GpuSettings) -> Iterator[ConfigError]:
    """Yield errors of operators that OpenShift gets from OperatorHub, with the SCCs that their pods need."""
    switches: Mapping[Path, bool] = {
        ("gpu", "featureDiscovery"): gpu.feature_discovery,
        ("gpu", "fabric", "enabled"): gpu.fabric.enabled,
    }
    for path, is_on in switches.items():
        if is_on:
            yield ConfigError(
                path,
                "on OpenShift, this operator comes from OperatorHub, which gives its pods their rights",
                "install it from OperatorHub, and remove the key",
            )


def _confined(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield errors of workloads with their own user or rights on the node: `restricted-v2` rejects their pods.

    They would be rejected one by one while the update waits for them.
    """
    for path, section in sections(partial):
        if isinstance(section, VolcanoSettings | JobSettings | NcclGateSettings | ScratchSettings) and section.enabled:
            yield ConfigError(
                (*path, "enabled"),
                "its pods set their user, but OpenShift runs pods as a user of their namespace's range",
                "remove the key; docs/openshift.md lists the supported workloads",
            )


def _lab(partial: PartialSettings, workloads: WorkloadsSettings) -> Iterator[ConfigError]:
    """Yield a user that JupyterLab's pod is to have, by its number."""
    lab = workloads.jupyterlab
    if lab.enabled and "user" in lab.model_fields_set:
        yield ConfigError(
            ("workloads", "jupyterlab", "user"),
            "OpenShift runs pods as a user of their namespace's range, and rejects any other",
            "remove the key",
        )


def _pinning(partial: PartialSettings, workloads: WorkloadsSettings) -> Iterator[ConfigError]:
    """Yield what would pin memory for the nodes' network devices, as no pod of `restricted-v2` may.

    All that takes whole nodes asks for these devices; the batch jobs among it are refused for their user already.
    """
    if partial.fabric is None or partial.fabric.resource is None:
        return
    for name, workload in workloads.of(NodeWorkloadSettings).items():
        if workload.enabled and workload.part is None and not isinstance(workload, JobSettings):
            rdma = key(("cluster", "pool", "rdma"))
            yield ConfigError(
                ("workloads", name, "enabled"),
                f"its pod would request {PINNED_MEMORY} to use {partial.fabric.resource}, which OpenShift refuses",
                f"remove the key, or {rdma}: pods then use the cluster's own network; "
                "docs/openshift.md lists the supported workloads",
            )
