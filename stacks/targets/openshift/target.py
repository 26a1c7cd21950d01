"""Target `openshift`: what everything else asks of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from components import catalogue, names
from components.compatibility import goes_with, numbers
from components.kubernetes.security import PINNED_MEMORY, PodSecurity
from components.nodes import certified_gpu_operator
from components.openshift_ai import installation
from components.storage import nfs
from components.tenancy.callers import Gatekeepers
from components.tenancy.quota import Quota
from stacks.config.cluster_facts import ClusterFacts
from stacks.config.errors import ConfigError, Path, key, listed
from stacks.config.secrets import OBJECT_STORE_SECRET_KEY
from stacks.derived.partial import PartialSettings
from stacks.settings.gpu import GpuSettings
from stacks.settings.health import HealthSettings
from stacks.settings.volcano import VolcanoSettings
from stacks.settings.workloads import JupyterLabSettings, WorkloadsSettings
from stacks.targets.existing.target import ClusterTarget
from stacks.targets.openshift import operators, workbench
from stacks.targets.openshift.settings import NfsSettings, OpenShiftGpuSettings, OpenShiftSettings, Operators
from stacks.targets.spec import Planned

if TYPE_CHECKING:
    from stacks.config.inputs import StackInputs
    from stacks.layers.releases import Releases

OLDEST: Final = (4, 16)
"""The oldest OpenShift with the Kubernetes that Kueue needs, 1.29 (components/compatibility.py)."""

_COUNTS_RAY: Final = (0, 10)
"""The Kueue from which on all pods of Ray's kinds are counted (red-hat-data-services/kueue, rhoai-2.16 to 2.21)."""


class OpenShift(ClusterTarget[OpenShiftSettings]):
    """OpenShift 4, whose SecurityContextConstraints decide what pods may do."""

    name = "openshift"
    summary = "an OpenShift 4 cluster with GPU nodes that a kubeconfig names"
    settings = OpenShiftSettings
    sections = ("kubernetes", "cluster", operators.SECTION, "nfs", *ClusterTarget.sections[2:], workbench.SECTION)
    secrets = (OBJECT_STORE_SECRET_KEY,)
    namespaces = ("openshift", "redhat-")
    pod_security = PodSecurity.SCC
    certifies_operators = True
    has_projects = True

    def classes_made(self, partial: PartialSettings) -> Iterable[str]:
        """Return the class on the NFS server."""
        settings = partial.section(NfsSettings)
        return [settings.storage_class] if settings is not None and settings.enabled else []

    def shared_files(self, settings: OpenShiftSettings) -> str | None:
        """Return the class that the settings name for it, else that on the NFS server."""
        return super().shared_files(settings) or (settings.nfs.storage_class if settings.nfs.enabled else None)

    def namespaces_made(self, partial: PartialSettings) -> Iterable[str]:
        """Return those of the NFS provisioner, of the GPU operator and of the workbench's object store."""
        return [nfs.NAMESPACE, certified_gpu_operator.NAMESPACE, *workbench.namespaces(partial)]

    def projects(self, settings: OpenShiftSettings) -> Iterable[str]:
        """Return the workbench's."""
        return [settings.workbench.namespace] if settings.workbench.enabled else []

    def queues(self, partial: PartialSettings) -> Mapping[str, Quota]:
        """Return the workbench's."""
        return workbench.quotas(partial)

    def planned(self, partial: PartialSettings) -> Iterator[Planned]:
        """Yield the claims that are there, and what is named after the workbench."""
        yield from super().planned(partial)
        yield from workbench.planned(partial)

    def installs_operators(self, partial: PartialSettings) -> bool:
        """Return whether OpenShift AI does not bring them."""
        return operators.chosen(partial) is None

    def kueue_version(self, partial: PartialSettings) -> str | None:
        """Return that of OpenShift AI where it brings the operators."""
        release = operators.chosen(partial)
        return release.kueue if release is not None else super().kueue_version(partial)

    def gatekeepers(self, settings: OpenShiftSettings) -> Gatekeepers:
        """Return the accounts of OpenShift AI where it brings the operators."""
        if settings.openshift.operators is Operators.PLAIN:
            return super().gatekeepers(settings)
        return Gatekeepers(
            kueue=installation.KUEUE,
            appwrapper=installation.APPWRAPPER,
            trainer=None,
            counts_ray=numbers(settings.openshift.release.kueue) >= _COUNTS_RAY,
        )

    def kueue_api(self, settings: OpenShiftSettings) -> str:
        """Return the only version that OpenShift AI's Kueue serves, where it brings the operators."""
        if settings.openshift.operators is Operators.PLAIN:
            return super().kueue_api(settings)
        return names.KUEUE_API_BEFORE

    def warnings(self, partial: PartialSettings) -> Iterator[str]:
        """Yield what OpenShift AI's operators do less well, too."""
        yield from super().warnings(partial)
        yield from operators.warnings(partial)

    def check(self, partial: PartialSettings) -> Iterator[ConfigError]:
        """Yield what does not go with the cluster."""
        yield from super().check(partial)
        yield from operators.check(partial)
        yield from workbench.check(partial)
        yield from _brought(partial)
        yield from _certified(partial)
        yield from _there_already(partial)
        yield from _confined(partial)
        if partial.facts is not None:
            yield from _version(partial.facts)

    def deploy(self, inputs: StackInputs[OpenShiftSettings], releases: Releases) -> Mapping[str, Any]:
        """Register the platform on the cluster."""
        from stacks.targets.openshift.deploy import deploy

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
    """Yield what the stack is to install and somebody else has: of each there can be one on a cluster.

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
            message=f"this cluster has NVIDIA's GPU operator already, with the ClusterPolicy {policies[0]}",
            expected="false, or a cluster without it",
            hint="remove the key, and the stack uses the operator that is there; or take that off the cluster before",
        )
    if operators.chosen(partial) is not None and facts.data_science:
        yield ConfigError(
            path=(operators.SECTION, "operators"),
            value=Operators.OPENSHIFT_AI.value,
            message=f"this cluster has OpenShift AI already, with the DataScienceCluster {facts.data_science[0]}",
            expected=f"{Operators.PLAIN}, or a cluster without it",
            hint=f"take OpenShift AI off the cluster before: it brings definitions that {Operators.PLAIN} has, too",
        )


def _brought(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield operators that OpenShift has from OperatorHub, with the constraints that their pods need there."""
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
                message="OpenShift gets this operator from OperatorHub, which grants its pods what they need of a node",
                expected="false",
                hint="install it from OperatorHub, and remove the key",
            )


def _confined(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield what runs as root or another user of its own, or has a right on its node: `restricted-v2` refuses its pods.

    They would be refused one by one while the update waits for them.
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
            message="its pods name their user, and OpenShift runs pods as a user of their namespace's range",
            expected="false",
            hint="remove the key; docs/openshift.md says what runs there",
        )


def _lab(lab: JupyterLabSettings) -> Iterator[ConfigError]:
    """Yield a user that JupyterLab's pod is to have, by its number."""
    if lab.enabled and "user" in lab.model_fields_set:
        yield ConfigError(
            path=("workloads", "jupyterlab", "user"),
            value=lab.user,
            message="OpenShift runs pods as a user of their namespace's range, and refuses every other",
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
                message=f"its pod would ask for {PINNED_MEMORY} to use {partial.fabric.resource}, which OpenShift "
                "refuses",
                expected=f"false, or no {rdma}",
                hint=f"remove the key, or {rdma}: pods then reach each other by the cluster's own network; "
                "docs/openshift.md says what runs there",
            )


TARGET: Final = OpenShift()
