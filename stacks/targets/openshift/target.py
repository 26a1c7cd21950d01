"""Target `openshift`: an existing OpenShift cluster, with its own operators."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any, Final

from components.kubernetes.security import PodSecurity
from components.nodes import certified_gpu_operator
from components.openshift_ai import installation, version_3
from components.queueing.running_kueue import RunningKueue
from components.storage import nfs
from components.tenancy.callers import Gatekeepers
from stacks.config.secrets import OBJECT_STORE_SECRET_KEY
from stacks.config.sections import Sections
from stacks.targets import spec
from stacks.targets.existing.target import EXISTING
from stacks.targets.openshift import operators, workbench
from stacks.targets.openshift.settings import OpenShiftSettings, Operators
from stacks.targets.spec import Planned, TargetSpec, shared_sections


def _shared_files(settings: OpenShiftSettings) -> str | None:
    """Return the class that the settings name for it, else that on the NFS server."""
    return settings.cluster.storage_classes.files or (settings.nfs.storage_class if settings.nfs.enabled else None)


def _planned(sections: Sections) -> Iterator[Planned]:
    """Yield the claims that are there, and what is named after the workbench."""
    yield from EXISTING.planned(sections)
    yield from workbench.planned(sections)


def _running_kueue(sections: Sections) -> RunningKueue | None:
    """Return that of OpenShift AI where it brings the operators."""
    release = operators.chosen(sections)
    if release is None:
        return spec.adopted(sections)
    return installation.running_kueue(release) if release.brings_kueue else version_3.running_kueue(release)


def _installs_operators(sections: Sections) -> bool:
    """Return whether the stack installs AppWrapper itself, as OpenShift AI does before 3.0."""
    release = operators.chosen(sections)
    return release is None or not release.brings_kueue


def _ray_operators(settings: OpenShiftSettings) -> Collection[str]:
    """Return the namespace of OpenShift AI's operators of jobs."""
    return [installation.NAMESPACE] if settings.openshift.operators is Operators.OPENSHIFT_AI else ()


def _gatekeepers(settings: OpenShiftSettings) -> Gatekeepers:
    """Return the accounts of OpenShift AI where it brings AppWrapper. Its Kueue then does not queue TrainJobs."""
    if settings.openshift.operators is Operators.PLAIN or not settings.openshift.release.brings_kueue:
        return Gatekeepers()
    return Gatekeepers(appwrapper=installation.APPWRAPPER, trainer=None)


_EXISTING: Final[TargetSpec[Any]] = EXISTING  # its functions then take the settings of OpenShift

OPENSHIFT: Final[TargetSpec[OpenShiftSettings]] = replace(
    _EXISTING,
    name="openshift",
    summary="an OpenShift 4 cluster with GPU nodes that a kubeconfig names",
    settings=OpenShiftSettings,
    sections=(
        "kubernetes",
        "cluster",
        operators.SECTION,
        "nfs",
        *shared_sections("nvshare", "mlops"),
        workbench.SECTION,
    ),
    secrets=(OBJECT_STORE_SECRET_KEY,),
    namespaces=("openshift", "redhat-"),
    pod_security=PodSecurity.SCC,
    certifies_operators=True,
    has_projects=True,
    shared_files=_shared_files,
    planned=_planned,
    namespaces_made=lambda sections: [
        nfs.NAMESPACE,
        certified_gpu_operator.NAMESPACE,
        *workbench.namespaces(sections),
    ],
    projects=lambda settings: [settings.workbench.namespace] if settings.workbench.enabled else [],
    queues=workbench.quotas,
    installs_operators=_installs_operators,
    brings=lambda sections: operators.BROUGHT if operators.is_version_3(sections) else (),
    ray_operators=_ray_operators,
    gatekeepers=_gatekeepers,
    running_kueue=_running_kueue,
)
