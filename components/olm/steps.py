"""The steps of an installation that somebody would take by hand, as Jobs in the cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

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
_RBAC: Final = "rbac.authorization.k8s.io"
_READ: Final = ("get", "list")


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step of an installation, under the name that its program knows."""

    name: str
    program: Program


@dataclass(frozen=True, kw_only=True)
class Installer:
    """What takes the steps, by the program components/olm/installer.py.

    namespace: the operator's own. image: a Python 3.11 or later. nodes: it runs on. pod_security: what judges its pods.
    """

    namespace: str
    image: str
    nodes: NodeGroup = ANYWHERE
    pod_security: PodSecurity = PodSecurity.STANDARDS

    def approval(
        self, csv: str, *, approve: bool, environment: Sequence[str] = (), unwanted: str | None = None
    ) -> Step:
        """Return the step that sees one version installed, and approves its plan if it is to.

        environment: variables by which the Subscription's settings are known in the operator's Deployments, which are
        waited for. unwanted: the path of what an operator makes that runs without them; it is deleted.
        """
        found: dict[str, Any] = {"namespace": self.namespace, "csv": csv, "approve": approve}
        if environment:
            found["environment"] = list(environment)
        if unwanted is not None:
            found["unwanted"] = unwanted
        return self._step("approve", found)

    def start(self, namespace: str, selector: str, definitions: Sequence[str]) -> Step:
        """Return the step that has pods of a namespace start anew where they are older than definitions."""
        found = {"namespace": namespace, "definitions": list(definitions), "selector": selector}
        return self._step("start-kueue", found)

    def _step(self, name: str, settings: Mapping[str, Any]) -> Step:
        text = json.dumps({"step": name, **settings, "seconds": _TRY_SECONDS}, indent=2)
        files = {_SETTINGS: text}
        return Step(name=name, program=Program(module="components.olm.installer", shared=[API_CLIENT], files=files))

    def job(self, step: Step, version: str) -> tuple[Document, Document]:
        """Return the ConfigMap and the Job of a step towards a version.

        The Job tries for as long as somebody waits for it, and is done once: one that had failed would have to be
        removed by hand before the next update.
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
        """Yield the account of the steps, and what approvals take: it looks at OLM's objects and approves plans."""
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
        """Yield what it takes to delete one object of the cluster that the operator made without its settings."""
        rule = {"apiGroups": [group], "resources": [resource], "resourceNames": [unwanted], "verbs": ["get", "delete"]}
        yield from self.granted("ClusterRole", name, [rule])

    def start_rights(self, name: str, namespace: str, definitions: Sequence[str]) -> Iterator[Document]:
        """Yield what the start of pods takes: to look at definitions, and to delete the pods of one namespace."""
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
        """Yield a role of a namespace, or of the cluster, and its binding to the account."""
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        yield {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata, "rules": list(rules)}
        yield {
            "apiVersion": f"{_RBAC}/v1",
            "kind": f"{kind}Binding",
            "metadata": dict(metadata),
            "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": self.namespace}],
        }
