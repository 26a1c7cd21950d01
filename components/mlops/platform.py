"""The objects of the OSS MLOps platform, in an order that works for installation and deletion."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pulumi

from components import catalogue
from components.kubernetes.manifests import LAST, SKIP_AWAIT, WORKLOADS, Document, Manifest, edited, identity, rank
from components.kubernetes.objects import config_map
from components.layer import Layer
from components.mlops import boundary, passwords

LABEL: Final = "mlbatch/part-of"
PART: Final = "mlops"
"""Label of every object. The report finds them by it."""
FORWARDER: Final = "forwarder"
REGISTRY: Final = "127.0.0.1:5001"
"""Address of the registry that a kind cluster's nodes pull from (kind.sigs.k8s.io, user/local-registry)."""

_DEFINITION: Final = "CustomResourceDefinition"
_ROLES: Final = frozenset({"ClusterRole", "Role"})
_ON_NODES: Final = frozenset({"LoadBalancer", "NodePort"})
"""Types of Services with a port on each node."""
_OF_THESE: Final = ("externalTrafficPolicy", "healthCheckNodePort", "loadBalancerIP", "loadBalancerSourceRanges")
"""Fields that the API server accepts only for these types."""
_UNAWAITED: Final = WORKLOADS | {"Service", "PersistentVolumeClaim"}
_PLACEHOLDER: Final = "Cg=="
"""A line feed, upstream's placeholder for the certificate authority that cert-manager writes later."""
_FORWARDERS: Final = frozenset({FORWARDER, "celery-role", "celery-binding"})


@dataclass(frozen=True, kw_only=True)
class MlopsArgs:
    """The arguments of the platform.

    manifests: the rendered deployment. Plain, because they determine which resources exist.
    forwarder: with integration, install the component that forwards jobs to HPC systems. Its service account has all
    rights on the cluster, and its images belong to an individual.
    registry: publish that nodes pull from a registry at REGISTRY. The registry is installed elsewhere.
    password: the passwords of the parts are derived from it. It must not change while their data exists. None keeps the
    repository's passwords, the access without passwords, and parts that the whole cluster can connect to.
    """

    manifests: str
    password: pulumi.Output[str] | None = None
    forwarder: bool = False
    registry: bool = False


class MlopsPlatform(Layer):
    """Install every object of the manifests as a resource, so that a refresh finds drift and an update repairs it.

    Namespaces and definitions stand first, then what is of them, then what runs, and last what the API server calls.
    No workload is waited for: some start only once webhooks are there that come after them. Whether all of them are
    available is in the report (`mlbatch status`). What an update has left undone, the next one goes on with.
    """

    ready: Sequence[pulumi.Resource]
    """All its objects exist. The first time, its pods may need another 10 to 15 minutes to start."""
    logins: pulumi.Output[Mapping[str, Any]]
    """User and password of each user interface with a generated password. A secret."""

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
    """Registers each object after its namespace, its CRD and all earlier ranks that it waits for."""

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
        """Return namespaces and CRDs. Each object waits only for its own."""
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
    """Return the objects to install."""
    found = list(edited(args.manifests, lambda document: _edit(document, args)))
    found += [_labelled(home) for home in _homes(found)]
    if args.password is not None:
        own = [*passwords.added(found, args.password), *boundary.policies(found)]
        found += map(_labelled, own)
    return [*found, _registry()] if args.registry else found


def _homes(found: Sequence[Document]) -> Iterator[Document]:
    """Yield the namespaces of profiles. They contain other objects before the controller that would create them runs.

    The controller adopts a namespace whose annotation names its profile's owner, and rejects others (kubeflow/kubeflow,
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
        # Kubernetes fills it from other roles, or sets null. Each update would restore an empty list.
        document.pop("rules", None)
    for container in containers(document):
        _move(container)
    _keep_inside(document)
    for called in _called(document):
        if called.get("caBundle") == _PLACEHOLDER:
            del called["caBundle"]
    return passwords.with_own(document, args.password) if args.password is not None else document


def _move(container: dict[str, Any]) -> None:
    """Set the present location of a container's image, and how its server starts there."""
    container["image"] = catalogue.MOVED_IMAGES.get(container["image"], container["image"])
    if container["image"] == catalogue.MINIO.reference and "args" in container:
        start = f"exec {catalogue.MINIO_ENTRYPOINT} server"
        container["command"] = ["/bin/sh"]
        container["args"] = [each.replace("minio server", start) for each in container["args"]]


def _labelled(document: Document) -> Document:
    metadata = document["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), LABEL: PART}
    return document


def _keep_inside(document: Document) -> None:
    """Remove ports on nodes. Users reach Services by port-forward."""
    for container in containers(document):
        for port in container.get("ports") or ():
            port.pop("hostPort", None)
    if document["kind"] == "Service" and document["spec"].get("type") in _ON_NODES:
        document["spec"]["type"] = "ClusterIP"
        for field in _OF_THESE:
            document["spec"].pop(field, None)
        for port in document["spec"].get("ports") or ():
            port.pop("nodePort", None)


def containers(document: Document) -> Iterator[dict[str, Any]]:
    """Yield the containers of a workload, also those that initialize it. Other objects have none."""
    if document["kind"] in WORKLOADS:
        pod = document["spec"]["template"]["spec"]
        yield from (*pod["containers"], *(pod.get("initContainers") or ()))


def _called(document: Document) -> Iterator[dict[str, Any]]:
    """Yield the client configurations of an object, where a placeholder for a certificate authority must not be.

    From 1.31 on, Kubernetes does not serve a kind with a placeholder, and does not accept it instead of a real
    authority (kubernetes/kubernetes, pull request 124061). Each update would restore it in webhooks.
    """
    if document["kind"] == _DEFINITION:
        yield ((document["spec"].get("conversion") or {}).get("webhook") or {}).get("clientConfig") or {}
    if document["kind"] in LAST:
        yield from (webhook["clientConfig"] for webhook in document.get("webhooks") or ())


def _registry() -> Document:
    """Return the registry's ConfigMap (kubernetes/enhancements, keps/sig-cluster-lifecycle/generic/1755)."""
    text = f'host: "{REGISTRY}"\nhelp: "https://kind.sigs.k8s.io/docs/user/local-registry/"\n'
    return config_map("local-registry-hosting", "kube-public", {"localRegistryHosting.v1": text}, {LABEL: PART})


def _secret(document: Document) -> Mapping[str, Any]:
    """Return a document whose Secret data is encrypted in the stack's state."""
    if document["kind"] != "Secret":
        return document
    return {
        key: pulumi.Output.secret(value) if key in ("data", "stringData") else value for key, value in document.items()
    }


def _ranked(found: Iterable[Document]) -> list[list[Document]]:
    ranks: list[list[Document]] = [[], [], [], []]
    for document in found:
        ranks[rank(document)].append(document)
    return ranks
