"""Checks that the OSS MLOps platform is compatible with the rest of the cluster."""

from collections.abc import Iterator
from typing import Final

from components.mlops.menu import Deployment
from stacks.config.errors import ConfigError, Path, listed
from stacks.derived.partial import PartialSettings
from stacks.settings.mlops import MlopsSettings
from stacks.settings.monitoring import MonitoringSettings
from stacks.settings.tenancy import QueueingSettings
from stacks.settings.workloads import WorkloadsSettings

NAMESPACES: Final = frozenset(
    {
        "auth",
        "cert-manager",
        "forwarder",
        "istio-system",
        "knative-eventing",
        "knative-serving",
        "kserve-inference",
        "kubeflow",
        "kubeflow-user-example-com",
        "mlflow",
        "monitoring",
    }
)
"""Those of all deployments (deployment/, at the pinned commit)."""
_NEWEST: Final = (1, 26)
_TRAINS: Final = frozenset({"kubeflow", "kubeflow-monitoring", "integration-kubeflow-monitoring"})
"""Deployments that include a training operator."""


def check(partial: PartialSettings, settings: MlopsSettings) -> Iterator[ConfigError]:
    """Yield errors of namespaces with two owners, and of a second operator for the same jobs."""
    queueing = partial.section(QueueingSettings)
    if not settings.enabled:
        return
    yield from _namespaces(partial)
    deployment = chosen(settings)
    trains = deployment is not None and deployment.overlay in _TRAINS
    if trains and deployment is not None and queueing is not None and queueing.training_operator.enabled:
        yield ConfigError(
            ("queueing", "trainingOperator", "enabled"),
            f"the deployment {deployment.overlay} includes a training operator: two would act on each job",
            "remove the key",
        )


def warnings(partial: PartialSettings, settings: MlopsSettings) -> Iterator[str]:
    """Yield warnings: teams must trust the platform, and the cluster is newer than upstream's tests.

    Source: the roles knative-serving-core and cert-manager-controller-certificates in the repository's
    deployment/kubeflow/manifests/common, at the pinned commit.
    """
    version = partial.kubernetes_version
    if not settings.enabled:
        return
    if partial.known_teams:
        yield (
            "mlbatch:mlops.enabled is true on a cluster with teams: its controllers, such as those of "
            "cert-manager and Knative, can read and write the Secrets of all namespaces. An attacker who controls one "
            "of them gets the teams' Secrets. Use a separate cluster to protect them"
        )
    if version is not None and tuple(int(part) for part in version.split(".")[:2]) > _NEWEST:
        newest = ".".join(str(part) for part in _NEWEST)
        yield (
            f"the OSS MLOps platform was made for Kubeflow 1.8 and Kubernetes {newest}, and this cluster has "
            f"{version}: the API server accepts its objects, but upstream has not tested it there"
        )


def chosen(settings: MlopsSettings) -> Deployment | None:
    """Return the deployment, or None if its number is invalid, which another error reports."""
    try:
        return settings.deployment
    except KeyError:
        return None


def _namespaces(partial: PartialSettings) -> Iterator[ConfigError]:
    monitoring, workloads = partial.section(MonitoringSettings), partial.section(WorkloadsSettings)
    given: dict[Path, object] = {("teams", index, "name"): name for index, name in enumerate(partial.team_names)}
    if monitoring is not None and monitoring.enabled:
        given["monitoring", "namespace"] = monitoring.namespace
    if workloads is not None:
        given["workloads", "namespace"] = workloads.namespace
    for path, name in given.items():
        if name in NAMESPACES:
            yield ConfigError(
                path,
                "this namespace belongs to the OSS MLOps platform",
                "name another one, or set mlbatch:mlops.enabled to false",
                expected=f"any but {listed(sorted(NAMESPACES))}",
            )
