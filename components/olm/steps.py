"""Manual steps of an installation, as Jobs in the cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from components import names
from components.kubernetes.manifests import Document
from components.kubernetes.placement import ANYWHERE, RESCHEDULED, NodeGroup
from components.kubernetes.programs import API_CLIENT, ENVIRONMENT, FILES_FOLDER, Program
from components.kubernetes.resources import Resources
from components.kubernetes.security import READ_ONLY, PodSecurity, nobody
from components.kubernetes.volumes import volumes
from components.olm.subscription import GROUP

ACCOUNT: Final = "mlbatch-installer"
_SETTINGS: Final = "settings.json"
_TRY_SECONDS: Final = 300
_RESOURCES: Final = Resources(cpu_request="50m", memory_request="64Mi", cpu_limit="500m", memory_limit="128Mi")
_READ: Final = ("get", "list")


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step of an installation, with its name in the program."""

    name: str
    program: Program


@dataclass(frozen=True, kw_only=True)
class Installer:
    """Runs the steps with the program components/olm/installer.py.

    namespace: the operator's.
    image: an image with Python 3.11 or later.
    nodes: where it runs.
    pod_security: mechanism that checks its pods.
    """

    namespace: str
    image: str
    nodes: NodeGroup = ANYWHERE
    pod_security: PodSecurity = PodSecurity.STANDARDS

    def approval(
        self, csv: str, *, approve: bool, environment: Sequence[str] = (), unwanted: str | None = None
    ) -> Step:
        """Return the step that waits for one version to be installed. It approves the install plan if `approve` is set.

        environment: variables of the Subscription's configuration. The step waits until the operator's Deployments have
        them.
        unwanted: path of an object that the operator creates without these variables. The step deletes it.
        """
        found: dict[str, Any] = {"namespace": self.namespace, "csv": csv, "approve": approve}
        if environment:
            found["environment"] = list(environment)
        if unwanted is not None:
            found["unwanted"] = unwanted
        return self._step("approve", found)

    def start(self, namespace: str, selector: str, definitions: Sequence[str]) -> Step:
        """Return the step that restarts pods of a namespace that are older than these CRDs."""
        found = {"namespace": namespace, "definitions": list(definitions), "selector": selector}
        return self._step("start-kueue", found)

    def _step(self, name: str, settings: Mapping[str, Any]) -> Step:
        text = json.dumps({"step": name, **settings, "seconds": _TRY_SECONDS}, indent=2)
        files = {_SETTINGS: text}
        return Step(name=name, program=Program(module="components.olm.installer", shared=[API_CLIENT], files=files))

    def job(self, step: Step, version: str) -> tuple[Document, Document]:
        """Return the ConfigMap and the Job of a step for a version.

        The Job retries as long as the update waits for it, and runs once. A failed Job would have to be deleted by hand
        before the next update.
        """
        program = step.program
        (digest,) = program.checksum().values()
        name = f"mlbatch-{step.name}-{version.replace('.', '-')}-{digest[:8]}"
        labels = {"app.kubernetes.io/name": ACCOUNT}
        files = program.volume(name)
        container = {
            "name": "installer",
            "image": self.image,
            "imagePullPolicy": "IfNotPresent",
            "command": program.command(f"{FILES_FOLDER}/{_SETTINGS}"),
            "env": list(ENVIRONMENT),
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "resources": _RESOURCES.body(),
            "securityContext": dict(READ_ONLY),
            "volumeMounts": [files.mount()],
        }
        pod = {
            "serviceAccountName": ACCOUNT,
            "restartPolicy": "OnFailure",
            **self.nodes.body(RESCHEDULED),
            "securityContext": nobody(self.pod_security),
            "containers": [container],
            "volumes": volumes([files]),
        }
        job = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "namespace": self.namespace, "labels": labels},
            "spec": {"backoffLimit": 1000, "template": {"metadata": {"labels": labels}, "spec": pod}},
        }
        return program.config_map(name, self.namespace, labels), job

    def account(self) -> Iterator[Document]:
        """Yield the steps' service account and its rights for approvals: read OLM's objects and approve plans."""
        plans = {"apiGroups": [GROUP], "resources": ["installplans"], "verbs": [*_READ, "patch"]}
        versions = {
            "apiGroups": [GROUP],
            "resources": ["clusterserviceversions", "subscriptions"],
            "verbs": list(_READ),
        }
        yield {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": ACCOUNT, "namespace": self.namespace},
        }
        deployments = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]}
        yield from self.granted("Role", ACCOUNT, [plans, versions, deployments], self.namespace)

    def undoing_rights(self, name: str, group: str, resource: str, unwanted: str) -> Iterator[Document]:
        """Yield the rights to delete one cluster-scoped object that the operator created without its configuration."""
        rule = {"apiGroups": [group], "resources": [resource], "resourceNames": [unwanted], "verbs": ["get", "delete"]}
        yield from self.granted("ClusterRole", name, [rule])

    def start_rights(self, name: str, namespace: str, definitions: Sequence[str]) -> Iterator[Document]:
        """Yield the rights to restart pods: read CRDs and delete the pods of one namespace."""
        pods = {"apiGroups": [""], "resources": ["pods"], "verbs": [*_READ, "delete"]}
        looks = {
            "apiGroups": ["apiextensions.k8s.io"],
            "resources": ["customresourcedefinitions"],
            "resourceNames": list(definitions),
            "verbs": ["get"],
        }
        yield from self.granted("Role", name, [pods], namespace)
        yield from self.granted("ClusterRole", ACCOUNT, [looks])

    def granted(
        self, kind: str, name: str, rules: Sequence[Document], namespace: str | None = None
    ) -> Iterator[Document]:
        """Yield a Role, or a ClusterRole, and its binding to the service account."""
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        yield {"apiVersion": f"{names.RBAC}/v1", "kind": kind, "metadata": metadata, "rules": list(rules)}
        yield {
            "apiVersion": f"{names.RBAC}/v1",
            "kind": f"{kind}Binding",
            "metadata": dict(metadata),
            "roleRef": {"apiGroup": names.RBAC, "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": self.namespace}],
        }
