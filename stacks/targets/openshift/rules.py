"""Rules of target `openshift`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from components import catalogue
from components.compatibility import goes_with
from components.kubernetes.security import PINNED_MEMORY
from stacks.config.cluster_facts import ClusterFacts
from stacks.config.errors import ConfigError, Path, key, listed
from stacks.derived.partial import PartialSettings
from stacks.settings.gpu import GpuSettings
from stacks.settings.health import HealthSettings
from stacks.settings.volcano import VolcanoSettings
from stacks.settings.workloads import JupyterLabSettings, WorkloadsSettings
from stacks.targets.existing import rules as existing
from stacks.targets.openshift import operators, workbench
from stacks.targets.openshift.settings import NfsSettings, OpenShiftGpuSettings, Operators

OLDEST: Final = (4, 16)
"""The oldest OpenShift with the Kubernetes that Kueue needs, 1.29 (components/compatibility.py)."""


def check(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield errors of settings that the cluster does not support."""
    nfs = partial.section(NfsSettings)
    yield from existing.check(partial, [nfs.storage_class] if nfs is not None and nfs.enabled else [])
    yield from operators.check(partial)
    yield from workbench.check(partial)
    yield from _brought(partial)
    yield from _certified(partial)
    yield from _there_already(partial)
    yield from _confined(partial)
    if partial.facts is not None:
        yield from _version(partial.facts)


def warnings(partial: PartialSettings) -> Iterator[str]:
    """Yield what OpenShift AI's operators do less well, too."""
    yield from existing.warnings(partial)
    yield from operators.warnings(partial)


def _version(facts: ClusterFacts) -> Iterator[ConfigError]:
    """Yield the error of a cluster that is not OpenShift, or too old."""
    oldest = ".".join(map(str, OLDEST))
    if facts.openshift is None:
        yield ConfigError(
            path=("target",),
            value="openshift",
            message="the kubeconfig's cluster is not OpenShift: it has no ClusterVersion",
            expected="a kubeconfig of an OpenShift cluster, or target existing for another cluster",
            hint="set the right context in mlbatch:kubernetes, or set mlbatch:target to existing",
        )
    elif tuple(int(part) for part in facts.openshift.split(".")[:2]) < OLDEST:
        yield ConfigError(
            path=("target",),
            value="openshift",
            message=f"this cluster has OpenShift {facts.openshift}, whose Kubernetes is too old for Kueue",
            expected=f"OpenShift {oldest} or later",
            hint="update the cluster",
        )


def _certified(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield a GPU operator that was not certified for the cluster's OpenShift."""
    gpu, facts = partial.section(OpenShiftGpuSettings), partial.facts
    if gpu is None or not gpu.operator or facts is None or facts.openshift is None:
        return
    first, last = gpu.release.openshift
    if goes_with((first, last), facts.openshift):
        return
    known = catalogue.CERTIFIED_GPU_OPERATORS
    fitting = [each.version for each in known if goes_with(each.openshift, facts.openshift)]
    yield ConfigError(
        path=("gpu", "operatorVersion"),
        value=gpu.operator_version,
        message=f"this cluster has OpenShift {facts.openshift}, and GPU operator {gpu.operator_version} is certified "
        f"for {first} to {last}",
        expected=listed(fitting) if fitting else f"an OpenShift from {first} to {last}",
        hint="choose one of these" if fitting else f"set {key(('gpu', 'operator'))} to false, and install one yourself",
    )


def _there_already(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield errors of operators that the cluster already has: each can exist only once.

    Sources: NVIDIA/gpu-operator, controllers/clusterpolicy_controller.go, which passes over a second ClusterPolicy;
    opendatahub-io/opendatahub-operator, whose webhook refuses a second DataScienceCluster.
    """
    gpu, facts = partial.section(OpenShiftGpuSettings), partial.facts
    if facts is None:
        return
    policies = [policy.name for policy in facts.gpu_policies if policy.is_others]
    if gpu is not None and gpu.operator and policies:
        yield ConfigError(
            path=("gpu", "operator"),
            value=True,
            message=f"this cluster already has NVIDIA's GPU operator, with the ClusterPolicy {policies[0]}",
            expected="false, or a cluster without it",
            hint="remove the key to use the existing operator, or uninstall that first",
        )
    if operators.chosen(partial) is not None and facts.data_science:
        yield ConfigError(
            path=(operators.SECTION, "operators"),
            value=Operators.OPENSHIFT_AI.value,
            message=f"this cluster already has OpenShift AI, with the DataScienceCluster {facts.data_science[0]}",
            expected=f"{Operators.PLAIN}, or a cluster without it",
            hint=f"uninstall OpenShift AI first: {Operators.PLAIN} has the same custom resource definitions",
        )


def _brought(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield errors of operators that OpenShift gets from OperatorHub, with the SCCs that their pods need."""
    gpu = partial.section(GpuSettings)
    if gpu is None:
        return
    switches: Mapping[Path, bool] = {
        ("gpu", "featureDiscovery"): gpu.feature_discovery,
        ("gpu", "fabric", "enabled"): gpu.fabric.enabled,
    }
    for path, is_on in switches.items():
        if is_on:
            yield ConfigError(
                path=path,
                value=True,
                message="on OpenShift, this operator comes from OperatorHub, which gives its pods their rights",
                expected="false",
                hint="install it from OperatorHub, and remove the key",
            )


def _confined(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield errors of workloads with their own user or rights on the node: `restricted-v2` rejects their pods.

    They would be rejected one by one while the update waits for them.
    """
    workloads, gpu = partial.section(WorkloadsSettings), partial.section(GpuSettings)
    health = partial.section(HealthSettings)
    wanted: list[Path] = []
    if (volcano := partial.section(VolcanoSettings)) is not None and volcano.enabled:
        wanted.append(("volcano", "enabled"))
    if workloads is not None:
        wanted += [("workloads", name, "enabled") for name, job in workloads.jobs().items() if job.enabled]
        yield from _lab(workloads.jupyterlab)
        yield from _pinning(partial, workloads)
    if health is not None and health.nccl_gate.enabled:
        wanted.append(("health", "ncclGate", "enabled"))
    if gpu is not None and gpu.nvme_scratch.enabled:
        wanted.append(("gpu", "nvmeScratch", "enabled"))
    for path in wanted:
        yield ConfigError(
            path=path,
            value=True,
            message="its pods set their user, but OpenShift runs pods as a user of their namespace's range",
            expected="false",
            hint="remove the key; docs/openshift.md lists the supported workloads",
        )


def _lab(lab: JupyterLabSettings) -> Iterator[ConfigError]:
    """Yield a user that JupyterLab's pod is to have, by its number."""
    if lab.enabled and "user" in lab.model_fields_set:
        yield ConfigError(
            path=("workloads", "jupyterlab", "user"),
            value=lab.user,
            message="OpenShift runs pods as a user of their namespace's range, and rejects any other",
            expected="nothing",
            hint="remove the key",
        )


def _pinning(partial: PartialSettings, workloads: WorkloadsSettings) -> Iterator[ConfigError]:
    """Yield what would pin memory for the nodes' network devices, as no pod of `restricted-v2` may.

    All that takes whole nodes asks for these devices; the batch jobs among it are refused for their user already.
    """
    if partial.fabric is None or partial.fabric.resource is None:
        return
    for name, workload in workloads.node_workloads().items():
        if workload.enabled and name not in workloads.jobs():
            rdma = key(("cluster", "pool", "rdma"))
            yield ConfigError(
                path=("workloads", name, "enabled"),
                value=True,
                message=f"its pod would request {PINNED_MEMORY} to use {partial.fabric.resource}, which OpenShift "
                "refuses",
                expected=f"false, or no {rdma}",
                hint=f"remove the key, or {rdma}: pods then use the cluster's own network; "
                "docs/openshift.md lists the supported workloads",
            )
