"""Manual steps of an installation, as Jobs in the cluster."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from components.kubernetes.manifests import Document
from components.kubernetes.placement import ANYWHERE, NodeGroup
from components.kubernetes.program_job import job_name, program_job
from components.kubernetes.programs import API_CLIENT, FILES_FOLDER, Program
from components.kubernetes.rbac import Account, rule
from components.kubernetes.security import PodSecurity
from components.olm.subscription import GROUP

ACCOUNT: Final = "mlbatch-installer"
_SETTINGS: Final = "settings.json"
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
        text = json.dumps({"step": name, **settings, "seconds": 300}, indent=2)
        files = {_SETTINGS: text}
        return Step(name=name, program=Program(module="components.olm.installer", shared=[API_CLIENT], files=files))

    def job(self, step: Step, version: str) -> tuple[Document, Document]:
        """Return the ConfigMap and the Job of a step for a version."""
        name = job_name(f"mlbatch-{step.name}", version, step.program)
        files = step.program.config_map(name, self.namespace, {"app.kubernetes.io/name": ACCOUNT})
        return files, program_job(
            name,
            step.program,
            self._account,
            container="installer",
            image=self.image,
            arguments=[f"{FILES_FOLDER}/{_SETTINGS}"],
            config_map=name,
            nodes=self.nodes,
            pod_security=self.pod_security,
        )

    @property
    def _account(self) -> Account:
        return Account(name=ACCOUNT, namespace=self.namespace)

    def account(self) -> Iterator[Document]:
        """Yield the steps' service account and its rights for approvals: read OLM's objects and approve plans."""
        yield self._account.document()
        rules = [
            rule(GROUP, ["installplans"], [*_READ, "patch"]),
            rule(GROUP, ["clusterserviceversions", "subscriptions"], _READ),
            rule("apps", ["deployments"], ["get"]),
        ]
        yield from self._account.granted(rules, self.namespace)

    def undoing_rights(self, name: str, group: str, resource: str, unwanted: str) -> Iterator[Document]:
        """Yield the rights to delete one cluster-scoped object that the operator created without its configuration."""
        yield from self._account.granted([rule(group, [resource], ["get", "delete"], [unwanted])], name=name)

    def start_rights(self, name: str, namespace: str, definitions: Sequence[str]) -> Iterator[Document]:
        """Yield the rights to restart pods: read CRDs and delete the pods of one namespace."""
        looks = rule("apiextensions.k8s.io", ["customresourcedefinitions"], ["get"], definitions)
        yield from self._account.granted([rule("", ["pods"], [*_READ, "delete"])], namespace, name=name)
        yield from self._account.granted([looks])
