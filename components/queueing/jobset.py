"""JobSet: creates the Jobs and Services of a JobSet, a group of Jobs that start, fail and end together.

Members submit JobSets inside AppWrappers, which count their pods (components/job_kinds.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import pulumi
import yaml

from components.artifacts import Release
from components.job_kinds import JOB_SET
from components.kubernetes.controller import ONE_REPLICA, ControllerPods
from components.kubernetes.manifests import Document
from components.kubernetes.resources import Resources
from components.queueing.operators import Operator, OperatorLayer, install

NAME: Final = "jobset-controller-manager"
"""Name of its Deployment and its service account."""
CERTIFICATE: Final = "jobset-webhook-server-cert"
"""The Secret that it writes."""
RESOURCES: Final = Resources(cpu_request="500m", memory_request="128Mi", cpu_limit="2", memory_limit="4Gi")
"""Upstream's values, with an added CPU limit (kubernetes-sigs/jobset, `config/components/manager/manager.yaml`)."""
_CONFIGURATION: Final = {
    "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
    "kind": "Configuration",
    "leaderElection": {"leaderElect": True},
    "internalCertManagement": {"enable": True},
}
"""Upstream's configuration (`config/components/manager/controller_manager_config.yaml`)."""


@dataclass(frozen=True, kw_only=True)
class JobSetsArgs:
    """release: upstream's manifest file and images."""

    release: Release
    pods: ControllerPods = ONE_REPLICA


class JobSets(OperatorLayer):
    """Install the JobSet controller into mlbatch-system, which must exist."""

    kinds: ClassVar[Sequence[str]] = (JOB_SET.kind,)
    """Kinds of jobs that it runs."""

    def __init__(self, name: str, args: JobSetsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:queueing:JobSets", name, None, opts)
        operator = _operator(args)
        self._install(name, args.release.manifest, operator, lambda document: edit(document, operator))


def edit(document: Document, operator: Operator) -> Document | None:
    """Return a document of upstream's manifest as it is installed, or None if it is omitted.

    Upstream installs it into a separate namespace, where its service account writes all ConfigMaps and Secrets.
    """
    result = install(document, operator)
    if result is not None and result["kind"] == "Role":
        result["rules"] = [part for rule in result["rules"] for part in _own(rule)]
    return result


def _own(rule: Document) -> list[Document]:
    """Return a rule without the rights to ConfigMaps and Secrets of other operators."""
    resources, update = rule["resources"], "update"
    if "configmaps" in resources:
        return []
    if "secrets" not in resources:
        return [rule]
    read = {**rule, "verbs": [verb for verb in rule["verbs"] if verb != update]}
    return [read, {**rule, "resourceNames": [CERTIFICATE], "verbs": [update]}]


def _operator(args: JobSetsArgs) -> Operator:
    return Operator(
        name="jobset",
        upstream_namespace="jobset-system",
        images=args.release.images,
        resources=RESOURCES,
        pods=args.pods,
        config_map="jobset-manager-config",
        config_key="controller_manager_config.yaml",
        config=yaml.safe_dump(_CONFIGURATION, sort_keys=False),
    )
