"""Rewrite Kueue's objects in the version that its CRDs store, after an update from a Kueue with another version."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pulumi

from components import names
from components.kubernetes import program_job
from components.kubernetes.manifests import Document, Manifest, register_all
from components.kubernetes.placement import ANYWHERE, NodeGroup
from components.kubernetes.programs import API_CLIENT, Program
from components.kubernetes.rbac import Account, rule
from components.kubernetes.security import PodSecurity

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
_TIMEOUT: Final = "30m"
"""How long an update waits for the Job, which writes about 100 objects a second."""
_ACCOUNT: Final = Account(name=NAME, namespace=names.SYSTEM_NAMESPACE, labels={"app.kubernetes.io/name": NAME})
_PROGRAM: Final = Program(module="components.queueing.stored_versions", shared=[API_CLIENT])


@dataclass(frozen=True, kw_only=True)
class StoredVersionsArgs:
    """The arguments of the Job.

    release: Kueue's version. The Job runs again for another version or another program.
    """

    release: str
    image: str
    nodes: NodeGroup = ANYWHERE
    pod_security: PodSecurity = PodSecurity.STANDARDS


class StoredVersions(pulumi.ComponentResource):
    """Rewrite Kueue's objects once for each version of Kueue, with a Job in mlbatch-system, which must exist.

    Depends on Kueue, which converts objects of older stored versions. Without such objects, the Job ends at once. The
    Job has no deadline, because a failed Job would also stop each later update.
    """

    def __init__(self, name: str, args: StoredVersionsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:queueing:StoredVersions", name, None, opts)
        foundation = register_all(name, _foundation(), pulumi.ResourceOptions(parent=self))
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
    return program_job.job_name(NAME, release, _PROGRAM)


def _foundation() -> Sequence[Document]:
    group, definitions = "apiextensions.k8s.io", "customresourcedefinitions"
    named = [f"{kind}.{names.KUEUE_GROUP}" for kind in KINDS]
    rules = [
        rule(group, [definitions], ["get"], named),
        rule(group, [f"{definitions}/status"], ["patch"], named),
        rule(names.KUEUE_GROUP, KINDS, ["list", "patch"]),
    ]
    files = _PROGRAM.config_map(NAME, names.SYSTEM_NAMESPACE, _ACCOUNT.labels)
    return [_ACCOUNT.document(), *_ACCOUNT.granted(rules), files]


def _job(args: StoredVersionsArgs) -> Document:
    return program_job.program_job(
        job_name(args.release),
        _PROGRAM,
        _ACCOUNT,
        container="migration",
        image=args.image,
        arguments=[names.KUEUE_GROUP, *KINDS],
        config_map=NAME,
        nodes=args.nodes,
        pod_security=args.pod_security,
    )
