"""Controllers of the platform: one replica leads, and their pods have a higher priority than jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from components import names
from components.kubernetes.manifests import Document
from components.kubernetes.objects import disruption_budget
from components.kubernetes.placement import ANYWHERE, RESCHEDULED, NodeGroup
from components.kubernetes.programs import Program
from components.kubernetes.rbac import Account
from components.kubernetes.resources import Resources
from components.kubernetes.security import PodSecurity, nobody
from components.kubernetes.volumes import volumes
from components.kubernetes.workloads import deployment


@dataclass(frozen=True, kw_only=True)
class ControllerPods:
    """How a controller's pods run.

    replicas: one of them leads.
    pod_security: mechanism that checks them.
    """

    replicas: int = 1
    nodes: NodeGroup = ANYWHERE
    pod_security: PodSecurity = PodSecurity.STANDARDS


ONE_REPLICA: Final = ControllerPods()


@dataclass(frozen=True, kw_only=True)
class Controller:
    """The Deployment of a controller.

    name: of all its objects, including the service account.
    labels: selector of its pods.
    """

    name: str
    namespace: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str] = field(default_factory=dict)
    pods: ControllerPods = ONE_REPLICA

    @property
    def account(self) -> Account:
        """Its service account."""
        return Account(name=self.name, namespace=self.namespace)

    def deployment(
        self, containers: Sequence[Document], mounted: Sequence[Document] = (), *, grace_seconds: int | None = None
    ) -> Document:
        """Return the Deployment.

        mounted: volumes of its pods. grace_seconds: until its pods are killed. None for Kubernetes' default.
        """
        pod = {
            "serviceAccountName": self.name,
            "priorityClassName": names.SYSTEM_PRIORITY,
            **self.pods.nodes.body(RESCHEDULED),
            **({"topologySpreadConstraints": spread(self.labels)} if self.pods.replicas > 1 else {}),
            "securityContext": nobody(self.pods.pod_security),
            **({"terminationGracePeriodSeconds": grace_seconds} if grace_seconds is not None else {}),
            "containers": list(containers),
            **({"volumes": list(mounted)} if mounted else {}),
        }
        return deployment(
            self.name, self.namespace, self.labels, pod, replicas=self.pods.replicas, pod_annotations=self.annotations
        )

    def of_program(
        self, code: Program, image: str, arguments: Sequence[str], resources: Resources, **container: Any
    ) -> Document:
        """Return the Deployment of a program, whose ConfigMap has the controller's name.

        container: more fields of its container.
        """
        files = [code.volume(self.name)]
        main = {**code.container("controller", image, arguments, resources, files), **container}
        return self.deployment([main], volumes(files), grace_seconds=5)

    def budget(self) -> list[Document]:
        """Return a PodDisruptionBudget that keeps one replica while nodes are drained.

        The list is empty for a single replica, which must be able to move.
        """
        return [disruption_budget(self.name, self.namespace, self.labels)] if self.pods.replicas > 1 else []


def spread(labels: Mapping[str, str]) -> list[Document]:
    """Return the constraints that place pods with these labels on different nodes, if possible."""
    apart = {"maxSkew": 1, "topologyKey": names.HOST, "whenUnsatisfiable": "ScheduleAnyway"}
    return [{**apart, "labelSelector": {"matchLabels": dict(labels)}}]
