"""The Kubernetes versions of managed clusters and their pools."""

from typing import Any

from emulator.azure.errors import ArmError, refused
from emulator.azure.facts import AzureFacts
from emulator.azure.services.base import Request
from emulator.azure.store import Properties

LONG_TERM = "AKSLongTermSupport"
_OLDEST_SKEW = 3
"""Minor versions that a pool may be older (https://learn.microsoft.com/azure/aks/supported-kubernetes-versions)."""


def cluster_version(request: Request) -> str:
    """Return the control plane's full version. Raises ArmError for one that is not offered or too far ahead."""
    before = request.before.properties if request.before else {}
    wanted = request.body.get("kubernetesVersion") or before.get("kubernetesVersion")
    wanted = str(wanted or request.facts.default_version)
    if before and wanted in (before["kubernetesVersion"], before["currentKubernetesVersion"]):
        return str(before["currentKubernetesVersion"])
    full = request.facts.patch(wanted, long_term=request.body.get("supportPlan") == LONG_TERM)
    if full is None:
        what = f"Managed cluster {request.names['resourceName']} is on version {wanted}, which"
        raise _not_offered("K8sVersionNotSupported", what, request.facts)
    if before:
        _check_upgrade(before["currentKubernetesVersion"], full)
    return full


def pool_version(request: Request, cluster: Properties) -> str:
    """Return the full version of a pool's nodes. Raises ArmError if it is incompatible with the control plane."""
    before = request.before.properties if request.before else {}
    control_plane = str(cluster["currentKubernetesVersion"])
    wanted: Any = request.body.get("orchestratorVersion") or before.get("orchestratorVersion")
    if wanted in (None, before.get("currentOrchestratorVersion")):
        return str(wanted or control_plane)
    full = request.facts.patch(str(wanted), long_term=cluster.get("supportPlan") == LONG_TERM)
    if full is None:
        raise _not_offered("AgentPoolK8sVersionNotSupported", f"Version {wanted}", request.facts)
    if _numbers(full) > _numbers(control_plane) or _minor(full) < _minor(control_plane) - _OLDEST_SKEW:
        raise refused(
            "NodePoolMcVersionIncompatible",
            version=full,
            control_plane=control_plane,
            pool=request.names["agentPoolName"],
            skew=_OLDEST_SKEW,
        )
    return full


def _check_upgrade(before: str, wanted: str) -> None:
    if _numbers(wanted) < _numbers(before) or _minor(wanted) > _minor(before) + 1:
        raise refused("UpgradeNotAllowed", before=before, wanted=wanted)


def _not_offered(code: str, what: str, facts: AzureFacts) -> ArmError:
    return refused(code, what=what, versions=", ".join(facts.versions))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _minor(version: str) -> int:
    return _numbers(version)[1]
