"""Rewrite Kueue's objects in the version that its CRDs store, after an update from a Kueue with another version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pulumi

from components import names
from components.kubernetes.manifests import Document, Manifest
from components.kubernetes.placement import ANYWHERE, RESCHEDULED, NodeGroup
from components.kubernetes.programs import API_CLIENT, ENVIRONMENT, Program
from components.kubernetes.resources import Resources
from components.kubernetes.security import READ_ONLY, PodSecurity, nobody
from components.kubernetes.volumes import volumes

NAME: Final = "kueue-stored-versions"
KINDS: Final = (
    "admissionchecks",
    "clusterqueues",
    "cohorts",
    "localqueues",
    "multikueueclusters",
    "multikueueconfigs",
    "provisioningrequestconfigs",
    "resourceflavors",
    "topologies",
    "workloadpriorityclasses",
    "workloads",
)
"""Plural names of Kueue's kinds."""
RESOURCES: Final = Resources(cpu_request="50m", memory_request="64Mi", cpu_limit="500m", memory_limit="128Mi")
_TIMEOUT: Final = "30m"
"""How long an update waits for the Job, which writes about 100 objects a second."""
_DEFINITIONS: Final = "customresourcedefinitions"
_PROGRAM: Final = Program(module="components.queueing.stored_versions", shared=[API_CLIENT])


@dataclass(frozen=True, kw_only=True)
class StoredVersionsArgs:
    """The arguments of the Job.

    image: an image with Python 3.11 or later.
    pod_security: mechanism that checks its pod.
    release: Kueue's version. The Job runs again for another version or another program.
    """

    release: str
    image: str
    nodes: NodeGroup = ANYWHERE
    pod_security: PodSecurity = PodSecurity.STANDARDS
    resources: Resources = RESOURCES


class StoredVersions(pulumi.ComponentResource):
    """Rewrite Kueue's objects once for each version of Kueue, with a Job in mlbatch-system, which must exist.

    Depends on Kueue, which converts objects of older stored versions. Without such objects, the Job ends at once. The
    Job has no deadline, because a failed Job would also stop each later update.
    """

    def __init__(self, name: str, args: StoredVersionsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:queueing:StoredVersions", name, None, opts)
        foundation = [
            Manifest(f"{name}/{document['kind']}", document, pulumi.ResourceOptions(parent=self))
            for document in _foundation()
        ]
        once = pulumi.ResourceOptions(
            parent=self,
            depends_on=foundation,
            replace_on_changes=["metadata", "spec"],
            delete_before_replace=True,
            custom_timeouts=pulumi.CustomTimeouts(create=_TIMEOUT),
        )
        Manifest(f"{name}/Job", _job(args), once)
        self.register_outputs({})


def job_name(release: str) -> str:
    """Return the name of the Job for a version of Kueue and this version of the program."""
    (digest,) = _PROGRAM.checksum().values()
    return f"{NAME}-{release.replace('.', '-')}-{digest[:8]}"


def _foundation() -> Sequence[Document]:
    cluster = {"name": NAME, "labels": _labels()}
    metadata = {**cluster, "namespace": names.SYSTEM_NAMESPACE}
    named = [f"{kind}.{names.KUEUE_GROUP}" for kind in KINDS]
    definitions = {"apiGroups": ["apiextensions.k8s.io"], "resourceNames": named}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {
            "apiVersion": f"{names.RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": cluster,
            "rules": [
                {**definitions, "resources": [_DEFINITIONS], "verbs": ["get"]},
                {**definitions, "resources": [f"{_DEFINITIONS}/status"], "verbs": ["patch"]},
                {"apiGroups": [names.KUEUE_GROUP], "resources": list(KINDS), "verbs": ["list", "patch"]},
            ],
        },
        {
            "apiVersion": f"{names.RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": cluster,
            "roleRef": {"apiGroup": names.RBAC, "kind": "ClusterRole", "name": NAME},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": names.SYSTEM_NAMESPACE}],
        },
        _PROGRAM.config_map(NAME, names.SYSTEM_NAMESPACE, _labels()),
    ]


def _job(args: StoredVersionsArgs) -> Document:
    files = _PROGRAM.volume(NAME)
    container = {
        "name": "migration",
        "image": args.image,
        "imagePullPolicy": "IfNotPresent",
        "command": _PROGRAM.command(names.KUEUE_GROUP, *KINDS),
        "env": list(ENVIRONMENT),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": args.resources.body(),
        "securityContext": dict(READ_ONLY),
        "volumeMounts": [files.mount()],
    }
    pod = {
        "serviceAccountName": NAME,
        "restartPolicy": "OnFailure",
        **args.nodes.body(RESCHEDULED),
        "securityContext": nobody(args.pod_security),
        "containers": [container],
        "volumes": volumes([files]),
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": job_name(args.release), "namespace": names.SYSTEM_NAMESPACE, "labels": _labels()},
        "spec": {
            "backoffLimit": 1000,
            "template": {"metadata": {"labels": _labels()}, "spec": pod},
        },
    }


def _labels() -> dict[str, str]:
    return {"app.kubernetes.io/name": NAME}
