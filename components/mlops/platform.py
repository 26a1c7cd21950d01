"""The objects of the OSS MLOps platform, in an order in which they can work and be taken down."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pulumi

from components import catalogue
from components.kubernetes.manifests import SKIP_AWAIT, Document, Manifest, edited, identity
from components.layer import Layer
from components.mlops import boundary, passwords

LABEL: Final = "mlbatch/part-of"
PART: Final = "mlops"
"""Label of every object, by which the report finds them."""
FORWARDER: Final = "forwarder"
REGISTRY: Final = "127.0.0.1:5001"
"""Where a kind cluster's nodes pull from the registry beside it (kind.sigs.k8s.io, user/local-registry)."""

_DEFINITION: Final = "CustomResourceDefinition"
_FIRST: Final = frozenset({"Namespace", _DEFINITION})
_WORKLOADS: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet", "Job"})
_LAST: Final = frozenset({"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "APIService"})
_ROLES: Final = frozenset({"ClusterRole", "Role"})
_ON_NODES: Final = frozenset({"LoadBalancer", "NodePort"})
"""Types of services that have a port on each node."""
_OF_THESE: Final = ("externalTrafficPolicy", "healthCheckNodePort", "loadBalancerIP", "loadBalancerSourceRanges")
"""Fields that the API server takes of them alone."""
_UNAWAITED: Final = _WORKLOADS | {"Service", "PersistentVolumeClaim"}
_PLACEHOLDER: Final = "Cg=="
"""A line feed, which upstream has in place of the authority that cert-manager writes there later."""
_FORWARDERS: Final = frozenset({FORWARDER, "celery-role", "celery-binding"})


@dataclass(frozen=True, kw_only=True)
class MlopsArgs:
    """What to install.

    manifests: rendered of the deployment that was chosen. Plain: they decide which objects there are.
    forwarder: with integration, what hands jobs on to HPC systems. Its account may do everything on the cluster, and
        its images are one person's.
    registry: tell tools that nodes pull from a registry at REGISTRY, which somebody else runs.
    password: what the passwords of its parts follow from, and may not change while there is data of theirs. None for
        those of the repository, the ways in that ask for none, and parts that the whole cluster may connect to.
    """

    manifests: str
    password: pulumi.Output[str] | None = None
    forwarder: bool = False
    registry: bool = False


class MlopsPlatform(Layer):
    """Install every object of the manifests as a resource of its own: compared by a refresh, put back when it drifts.

    Namespaces and definitions stand first, then what is of them, then what runs, and last what the API server calls.
    No workload is waited for: some start only once webhooks are there that come after them. Whether all of them are
    available is in the report (`mlbatch status`). What an update has left undone, the next one goes on with.
    """

    ready: Sequence[pulumi.Resource]
    """All of its objects are there; its pods may still be starting, for 10 to 15 minutes the first time."""
    logins: pulumi.Output[Mapping[str, Any]]
    """User and password of each user interface that has them made for it; a secret."""

    def __init__(self, name: str, args: MlopsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:mlops:MlopsPlatform", name, None, opts)
        made, found = _Made(name, self), documents(args)
        for group in _ranked(found):
            made.register(group)
        known = passwords.logins(found, args.password) if args.password is not None else {}
        self.logins = pulumi.Output.secret(known)
        self.ready = made.everything
        self.register_outputs({})


class _Made:
    """Registers objects, each after its namespace, its kind's definition, and all of the ranks that it waits for."""

    def __init__(self, name: str, parent: pulumi.Resource) -> None:
        self._name, self._parent = name, parent
        self._namespaces: dict[str, pulumi.Resource] = {}
        self._definitions: dict[tuple[str, str], pulumi.Resource] = {}
        self._before: list[pulumi.Resource] = []
        self.everything: list[pulumi.Resource] = []

    def register(self, group: Sequence[Document]) -> None:
        """Register the objects of one rank."""
        made: list[pulumi.Resource] = []
        for document in group:
            options = pulumi.ResourceOptions(parent=self._parent, depends_on=self._needs(document))
            resource = Manifest(f"{self._name}/{identity(document)}", _secret(document), options)
            made.append(resource)
            self._remember(document, resource)
        self._before = [each for each in made if each not in self._firsts()]
        self.everything += made

    def _firsts(self) -> list[pulumi.Resource]:
        """Return namespaces and definitions, of which each object waits for its own alone."""
        return [*self._namespaces.values(), *self._definitions.values()]

    def _needs(self, document: Document) -> list[pulumi.Resource]:
        namespace = self._namespaces.get(document["metadata"].get("namespace", ""))
        group = document["apiVersion"].rpartition("/")[0]
        definition = self._definitions.get((group, document["kind"]))
        return [*self._before, *(each for each in (namespace, definition) if each is not None)]

    def _remember(self, document: Document, resource: pulumi.Resource) -> None:
        if document["kind"] == "Namespace":
            self._namespaces[document["metadata"]["name"]] = resource
        if document["kind"] == _DEFINITION:
            spec = document["spec"]
            self._definitions[spec["group"], spec["names"]["kind"]] = resource


def documents(args: MlopsArgs) -> list[Document]:
    """Return the objects that are installed."""
    found = list(edited(args.manifests, lambda document: _edit(document, args)))
    found += [_labelled(home) for home in _homes(found)]
    if args.password is not None:
        own = [*passwords.added(found, args.password), *boundary.policies(found)]
        found += map(_labelled, own)
    return [*found, _registry()] if args.registry else found


def _homes(found: Sequence[Document]) -> Iterator[Document]:
    """Yield the namespaces of profiles, in which other objects are before the controller runs that would make them.

    It takes over one whose annotation names its profile's owner, and otherwise refuses it (kubeflow/kubeflow,
    components/profile-controller/controllers/profile_controller.go, Reconcile).
    """
    for profile in found:
        if profile["kind"] == "Profile":
            metadata = {"name": profile["metadata"]["name"], "labels": {"istio-injection": "enabled"}}
            owner = {"owner": ((profile.get("spec") or {}).get("owner") or {}).get("name", "")}
            yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {**metadata, "annotations": owner}}


def _edit(document: Document, args: MlopsArgs) -> Document | None:
    metadata: dict[str, Any] = document["metadata"]
    if not args.forwarder and _FORWARDERS.intersection((metadata["name"], metadata.get("namespace", ""))):
        return None
    _labelled(document)
    if document["kind"] in _UNAWAITED:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **SKIP_AWAIT}
    if document["kind"] in _ROLES and ("aggregationRule" in document or not document.get("rules")):
        # Kubernetes fills it from other roles, or has null for it; each update would put an empty list back.
        document.pop("rules", None)
    for container in _containers(document):
        container["image"] = catalogue.MOVED_IMAGES.get(container["image"], container["image"])
    _keep_inside(document)
    for called in _called(document):
        if called.get("caBundle") == _PLACEHOLDER:
            del called["caBundle"]
    return passwords.with_own(document, args.password) if args.password is not None else document


def _labelled(document: Document) -> Document:
    metadata = document["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), LABEL: PART}
    return document


def _keep_inside(document: Document) -> None:
    """Take off what has nodes listen: whoever wants to get to a service forwards its port."""
    for container in _containers(document):
        for port in container.get("ports") or ():
            port.pop("hostPort", None)
    if document["kind"] == "Service" and document["spec"].get("type") in _ON_NODES:
        document["spec"]["type"] = "ClusterIP"
        for field in _OF_THESE:
            document["spec"].pop(field, None)
        for port in document["spec"].get("ports") or ():
            port.pop("nodePort", None)


def _containers(document: Document) -> Iterator[dict[str, Any]]:
    if document["kind"] in _WORKLOADS:
        pod = document["spec"]["template"]["spec"]
        yield from (*pod["containers"], *(pod.get("initContainers") or ()))


def _called(document: Document) -> Iterator[dict[str, Any]]:
    """Yield how the API server calls what an object names, where a placeholder for an authority must not stand.

    Kubernetes from 1.31 on neither serves a kind with such a one nor takes it in place of a real one
    (kubernetes/kubernetes, pull request 124061), and each update would put it back in webhooks.
    """
    if document["kind"] == _DEFINITION:
        yield ((document["spec"].get("conversion") or {}).get("webhook") or {}).get("clientConfig") or {}
    if document["kind"] in _LAST:
        yield from (webhook["clientConfig"] for webhook in document.get("webhooks") or ())


def _registry() -> Document:
    """Return the note about the registry (kubernetes/enhancements, keps/sig-cluster-lifecycle/generic/1755)."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "local-registry-hosting", "namespace": "kube-public", "labels": {LABEL: PART}},
        "data": {
            "localRegistryHosting.v1": f'host: "{REGISTRY}"\nhelp: "https://kind.sigs.k8s.io/docs/user/local-registry/"\n'
        },
    }


def _secret(document: Document) -> Mapping[str, Any]:
    """Return a document with what is in a Secret encrypted in the stack's state."""
    if document["kind"] != "Secret":
        return document
    return {
        key: pulumi.Output.secret(value) if key in ("data", "stringData") else value for key, value in document.items()
    }


def _ranked(found: Iterable[Document]) -> list[list[Document]]:
    ranks: list[list[Document]] = [[], [], [], []]
    for document in found:
        kind = document["kind"]
        ranks[0 if kind in _FIRST else 2 if kind in _WORKLOADS else 3 if kind in _LAST else 1].append(document)
    return ranks
