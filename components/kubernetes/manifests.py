"""Kubernetes objects as plain resources, one by one or from a manifest file.

Each document of a file becomes a resource. A preview shows it, a refresh compares it with the cluster, and an update
repairs drift. A preview needs no rendering tool and no network.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

import pulumi
import yaml

from components import names
from components.images import unpinned_privileged
from components.layer import Layer

Document: TypeAlias = dict[str, Any]
"""A Kubernetes object in the form of its manifest."""

Edit: TypeAlias = Callable[[Document], Document | None]
"""A pure function that returns the document to install, or None to omit it."""

SKIP_AWAIT = {"pulumi.com/skipAwait": "true"}
"""Annotation that stops the provider from waiting. It would wait until a Service has a ready pod, while the Deployment
of this pod waits for the Service."""

_VERSIONS = {names.KUEUE_GROUP: ("v1beta1", "v1beta2")}
"""API groups whose objects keep their identity when the program declares them in another of these versions."""

_FIRST = frozenset({"Namespace", "CustomResourceDefinition"})
WORKLOADS = frozenset({"Deployment", "StatefulSet", "DaemonSet", "Job"})
LAST = frozenset({"APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"})


class Manifest(pulumi.CustomResource):
    """One Kubernetes object, declared as the plain body for the API server.

    Works for every kind, custom or built in, and keeps all keys. The provider must come from the parent component or
    the options, and `metadata.name` must be set. Warns about containers with rights on their node whose image has no
    digest.

    Objects of the groups in `_VERSIONS` have aliases for the group's other versions.
    """

    metadata: pulumi.Output[Mapping[str, Any]]

    def __init__(self, name: str, body: Mapping[str, Any], opts: pulumi.ResourceOptions | None = None) -> None:
        group, _, version = body["apiVersion"].rpartition("/")
        others = [each for each in _VERSIONS.get(group, ()) if each != version]
        same = pulumi.ResourceOptions(aliases=[pulumi.Alias(type_=_token(group, each, body)) for each in others])
        options = pulumi.ResourceOptions.merge(opts, same) if others else opts
        super().__init__(_token(group, version, body), name, dict(body), options)
        for image in unpinned_privileged(body):
            pulumi.log.warn(
                f"{body['kind']} {body['metadata']['name']} has rights on its nodes, and no digest pins its image "
                f"{image}. Add the digest to the catalogue with `make lock`",
                self,
            )

    @property
    def object_name(self) -> pulumi.Output[str]:
        """The object's name, known when the object exists. Resources that use this output depend on the object."""
        return self.metadata.apply(lambda metadata: str(metadata["name"]))


def register_all(
    prefix: str, documents: Iterable[Document], options: pulumi.ResourceOptions, *, named: bool = False
) -> list[Manifest]:
    """Register objects as `<prefix>/<kind>`, or as `<prefix>/<kind>/<name>` if they are named, and return them."""
    return [
        Manifest("/".join([prefix, each["kind"], *([each["metadata"]["name"]] if named else [])]), each, options)
        for each in documents
    ]


@dataclass(frozen=True, kw_only=True)
class ManifestsArgs:
    """What to install from a manifest file.

    text: the file's YAML documents. It is plain, because it determines which resources exist.
    edit: returns the document to install for each document. The default returns it unchanged.
    """

    text: str
    edit: Edit = lambda document: document


class Manifests(Layer):
    """The objects of a manifest file, in an order that works for installation and deletion.

    First namespaces and CRDs, then configuration, service accounts, permissions and services, then workloads. Last come
    webhooks and aggregated APIs, which make the API server call the workloads. Deletion therefore starts by ending
    these calls.
    """

    definitions: Sequence[pulumi.Resource]
    """The namespaces and CRDs."""

    ready: Sequence[pulumi.Resource]
    """Depend on these to create objects of this file's CRDs: the available workloads and the webhooks that call them.
    """

    def __init__(self, name: str, args: ManifestsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:kubernetes:Manifests", name, None, opts)
        ranks: tuple[list[pulumi.Resource], ...] = ([], [], [], [])
        for document in ordered(edited(args.text, args.edit)):
            at = rank(document)
            needs = list(chain.from_iterable(ranks[:at])) if at == 2 else ranks[2] if at == 3 else []
            options = pulumi.ResourceOptions(parent=self, depends_on=needs)
            ranks[at].append(Manifest(f"{name}/{identity(document)}", document, options))
        self.definitions = ranks[0]
        self.ready = [*ranks[2], *ranks[3]] or [*ranks[0], *ranks[1]]
        self.register_outputs({})


def edited(text: str, edit: Edit) -> Iterator[Document]:
    """Yield the documents of a manifest file after an edit, without the omitted ones."""
    for document in yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        if document and (result := edit(document)) is not None:
            yield result


def ordered(documents: Iterator[Document]) -> list[Document]:
    """Return documents in the order of installation. Documents of the same rank keep the file's order."""
    return sorted(documents, key=rank)


def identity(document: Document) -> str:
    """Return `Kind/namespace/name`, or `Kind/name` for a cluster-scoped object."""
    metadata = document["metadata"]
    parts = (document["kind"], metadata.get("namespace"), metadata["name"])
    return "/".join(part for part in parts if part)


def _token(group: str, version: str, body: Mapping[str, Any]) -> str:
    return f"kubernetes:{group or 'core'}/{version}:{body['kind']}"


def rank(document: Document) -> int:
    """Return the place of a document in the order of installation, from 0 to 3."""
    kind = document["kind"]
    return 0 if kind in _FIRST else 2 if kind in WORKLOADS else 3 if kind in LAST else 1
