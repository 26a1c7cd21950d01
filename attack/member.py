"""A namespace like a team's, a member of it, and the API server's answers to that member."""

import contextlib
import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import ConflictError, ResourceNotFoundError

from attack.attacks import Attack, Document, pod
from runner.report import connect, message
from runner.waiting import awaited

NAMESPACE: Final = "mlbatch-attack"
MEMBER: Final = "mlbatch-attack-member"
_OTHER: Final = "default"
_TEAM: Final = "mlbatch-team-namespace=true"
_SECONDS: Final = 60
_OWN_LABEL: Final = "kubernetes.io/metadata.name"
_EDIT: Final = "edit"
"""The built-in role of Kubernetes for users of a namespace."""
_COPIED: Final = (
    ("v1", "LimitRange"),
    ("v1", "ResourceQuota"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("kueue.x-k8s.io/v1beta2", "LocalQueue"),
    ("kueue.x-k8s.io/v1beta1", "LocalQueue"),
)
_RBAC: Final = "rbac.authorization.k8s.io"
_BY: Final = (
    (re.compile(r"ValidatingAdmissionPolicy '([^']+)'"), "policy {}"),
    (re.compile(r"violates PodSecurity \"(\w+)"), "Pod Security {}"),
    (re.compile(r"exceeded quota: ([\w-]+)"), "ResourceQuota {}"),
    (re.compile(r"admission webhook \"([^\"]+)\""), "webhook {}"),
    (re.compile(r"cannot (?:create|patch) resource"), "rights"),
)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of an attack.

    through: how the member succeeds, None if every way is rejected. made: the object that would exist then.
    by: what rejects it. said: the API server's message. known: whether the cluster serves the kind.
    """

    through: str | None = None
    made: Document = field(default_factory=dict)
    by: str = ""
    said: str = ""
    known: bool = True


class UselessError(Exception):
    """The attacks would have no meaning. The message says why."""


class Ground:
    """The namespace where a member attacks. like: the namespace that it copies, None for a plain one."""

    def __init__(self, kubeconfig: Path | None, context: str | None) -> None:
        self._admin = connect(kubeconfig, context)
        self._member = connect(kubeconfig, context)
        self._member.client.set_default_header("Impersonate-User", MEMBER)
        self.like: str | None = None

    @contextlib.contextmanager
    def made(self, like: str | None) -> Iterator[None]:
        """Create it for the length of the context. like: a namespace, None for the first team's, if there is one."""
        teams = [item["metadata"]["name"] for item in self._listed("v1", "Namespace", label_selector=_TEAM)]
        self.like = like or next(iter(teams), None)
        model = self._get("v1", "Namespace", self.like)["metadata"] if self.like is not None else {}
        labels = {key: value for key, value in (model.get("labels") or {}).items() if key != _OWN_LABEL}
        metadata = {"name": NAMESPACE, "labels": labels, "annotations": model.get("annotations") or {}}
        self._await_gone()
        self._create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        try:
            for document in (*self._copies(), self._binding()):
                # OpenShift AI 3 creates a LocalQueue in the namespace itself.
                with contextlib.suppress(ConflictError):
                    self._create(document)
            self._await_harmless()
            yield
        finally:
            self._admin.delete(self._kind("v1", "Namespace"), name=NAMESPACE)

    def try_out(self, attack: Attack) -> Outcome:
        """Return the API server's decision on an attack. Dry runs do not leave objects."""
        if attack.pod is None:
            document = json.loads(json.dumps(attack.object).replace("{other}", _OTHER))
            return self._judged(self._member, document, f"creates a {document['kind']}")
        found: list[Outcome] = []
        for way, document, is_made_later in _ways(attack.pod):
            outcome = self._judged(self._member, document, f"creates a {way}")
            if outcome.through and is_made_later:
                # A controller creates the pod. Pod policies treat an administrator's pod in the same way.
                outcome = self._judged(self._admin, attack.pod, f"creates a {way}")
            if outcome.through and attack.counted and _is_counted(outcome.made):
                outcome = Outcome(by="LimitRange")
            if outcome.through:
                return outcome
            found.append(outcome)
        return min(found, key=lambda each: (not each.known, each.by == "rights"))

    def _await_gone(self) -> None:
        """Wait until the namespace of an earlier run is deleted."""

        def is_gone() -> bool:
            found = [item["metadata"] for item in self._listed("v1", "Namespace")]
            return not any(each["name"] == NAMESPACE and each.get("deletionTimestamp") for each in found)

        awaited(is_gone, _SECONDS, 1)

    def _await_harmless(self) -> None:
        """Wait until a harmless pod is accepted: quotas count and the namespace has its service account.

        Raises UselessError if it is never accepted. Then every attack fails, independent of the rules.
        """
        deadline = time.monotonic() + _SECONDS
        harmless = Attack(name="harmless", gains="", refusal="", pod=pod({}))
        while (outcome := self.try_out(harmless)).through is None:
            if time.monotonic() > deadline:
                raise UselessError(f"a harmless pod is refused too, so the attacks have no meaning: {outcome.said}")
            time.sleep(1)

    def _judged(self, client: DynamicClient, document: Mapping[str, Any], way: str) -> Outcome:
        """Return whether the API server accepts an object, and otherwise the reason."""
        version, kind = document["apiVersion"], document["kind"]
        try:
            resource = self._kind(version, kind)
        except ResourceNotFoundError:
            return Outcome(by="no such kind", said=f"{version} {kind}", known=False)
        namespace = document["metadata"].get("namespace", NAMESPACE)
        try:
            made = client.create(resource, body=dict(document), namespace=namespace, dry_run="All")
        except ApiException as error:
            if error.status not in (400, 403, 422):
                raise
            said = message(error)
            return Outcome(by=_by(said), said=said)
        return Outcome(through=way, made=made.to_dict())

    def _copies(self) -> Iterator[Document]:
        """Yield copies of the objects that limit the model namespace."""
        for version, kind in _COPIED if self.like is not None else ():
            with contextlib.suppress(ResourceNotFoundError):
                for item in self._listed(version, kind, namespace=self.like):
                    metadata = {"name": item["metadata"]["name"], "namespace": NAMESPACE}
                    yield {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": item["spec"]}
                if kind == "LocalQueue":
                    return

    def _binding(self) -> Document:
        """Return the binding that gives the member the rights of the model's members."""
        bindings = self._listed(f"{_RBAC}/v1", "RoleBinding", namespace=self.like) if self.like is not None else []
        roles = [
            item["roleRef"]
            for item in bindings
            if item["roleRef"]["kind"] == "ClusterRole"
            and any(subject["kind"] in ("User", "Group") for subject in item.get("subjects") or ())
        ]
        plain = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": _EDIT}
        return {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": MEMBER, "namespace": NAMESPACE},
            "roleRef": roles[0] if roles else plain,
            "subjects": [{"apiGroup": _RBAC, "kind": "User", "name": MEMBER}],
        }

    def _kind(self, version: str, kind: str) -> Any:
        return self._admin.resources.get(api_version=version, kind=kind)

    def _get(self, version: str, kind: str, name: str) -> Document:
        return dict(self._admin.get(self._kind(version, kind), name=name).to_dict())

    def _listed(self, version: str, kind: str, **options: Any) -> list[Document]:
        return list(self._admin.get(self._kind(version, kind), **options).to_dict()["items"])

    def _create(self, document: Mapping[str, Any]) -> None:
        resource = self._kind(document["apiVersion"], document["kind"])
        self._admin.create(resource, body=dict(document), namespace=document["metadata"].get("namespace"))


def _ways(wanted: Document) -> Iterator[tuple[str, Document, bool]]:
    """Yield the ways to create a pod: the way, the object to create, and whether a controller then creates the pod."""
    template = {"metadata": {key: value for key, value in wanted["metadata"].items() if key != "name"}}
    template |= {"spec": wanted["spec"]}
    metadata = {"name": "attack"}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}
    wrapper = {
        "apiVersion": "workload.codeflare.dev/v1beta2",
        "kind": "AppWrapper",
        "metadata": {**metadata, "labels": {"kueue.x-k8s.io/queue-name": "default-queue"}},
        "spec": {"components": [{"template": job}]},
    }
    yield "Pod", wanted, False
    yield "Job", job, True
    yield "AppWrapper", wrapper, True


def _is_counted(made: Document) -> bool:
    """Return whether every container of a pod requests CPU and memory, as a LimitRange sets them."""
    containers = [*made["spec"]["containers"], *(made["spec"].get("initContainers") or ())]
    requests = [(each.get("resources") or {}).get("requests") or {} for each in containers]
    return all({"cpu", "memory"} <= each.keys() for each in requests)


def _by(said: str) -> str:
    return next((text.format(*match.groups()) for each, text in _BY if (match := each.search(said))), "validation")
