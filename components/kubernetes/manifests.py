"""Kubernetes objects as plain resources, one by one or from a manifest file.

Each document of a file becomes a resource of its own: visible in a preview, compared with the cluster by a refresh, and
put back when it drifts. Previewing needs no rendering tool and no network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

import pulumi
import yaml

from components import names
from components.images import unpinned_privileged
from components.layer import Layer

Document: TypeAlias = dict[str, Any]
"""A Kubernetes object as its manifest has it."""

Edit: TypeAlias = Callable[[Document], Document | None]
"""A pure function from a document to the document to install, or to None for one to leave out."""

SKIP_AWAIT = {"pulumi.com/skipAwait": "true"}
"""Annotation that keeps the provider from waiting. A Service is otherwise waited for until a pod answers for it, while
the Deployment whose pod that is waits for the Service."""

_VERSIONS = {names.KUEUE_GROUP: ("v1beta1", "v1beta2")}
"""API groups whose objects stay the same ones, whichever of these versions the program declares them in."""

_FIRST = frozenset({"Namespace", "CustomResourceDefinition"})
_WORKLOADS = frozenset({"Deployment", "StatefulSet", "DaemonSet"})
_LAST = frozenset({"APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"})


class Manifest(pulumi.CustomResource):
    """One Kubernetes object, declared as the plain body that the API server is to hold.

    Works for every kind, custom or built in, and passes keys on untouched. The provider has to be given, by the parent
    component or in the options; `metadata.name` has to be set. Warns of containers with rights on their node whose
    image is not known by a digest.

    An object of a group in which the program has moved, or is to move, to another version was the same in the others.
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
                f"{body['kind']} {body['metadata']['name']} has rights on its nodes and runs {image}, which nothing "
                "holds to the bytes that were looked at: give its entry in the catalogue a digest with `make lock`",
                self,
            )

    @property
    def object_name(self) -> pulumi.Output[str]:
        """The object's name, known once the object exists: what refers to it through this depends on it."""
        return self.metadata.apply(lambda metadata: str(metadata["name"]))


@dataclass(frozen=True, kw_only=True)
class ManifestsArgs:
    """What to install from a manifest file.

    text: the file's YAML documents. Plain, not an output: it decides which resources exist.
    edit: what becomes of each document; the default installs them as they are.
    """

    text: str
    edit: Edit = lambda document: document


class Manifests(Layer):
    """The objects of a manifest file, in an order in which they can work and be taken down.

    Definitions and namespaces stand first; configuration, accounts, permissions and services follow; then the
    workloads; and last what makes the API server call them (webhooks, aggregated APIs), so that taking down starts by
    ending those calls.
    """

    definitions: Sequence[pulumi.Resource]
    """The namespaces and custom resource definitions."""

    ready: Sequence[pulumi.Resource]
    """What must exist before somebody creates an object of the kinds this file defines: its workloads, available, and
    the webhooks that call them."""

    def __init__(self, name: str, args: ManifestsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:kubernetes:Manifests", name, None, opts)
        ranks: tuple[list[pulumi.Resource], ...] = ([], [], [], [])
        for document in ordered(edited(args.text, args.edit)):
            rank = _rank(document)
            needs = list(chain.from_iterable(ranks[:rank])) if rank == 2 else ranks[2] if rank == 3 else []
            options = pulumi.ResourceOptions(parent=self, depends_on=needs)
            ranks[rank].append(Manifest(f"{name}/{identity(document)}", document, options))
        self.definitions = ranks[0]
        self.ready = [*ranks[2], *ranks[3]] or [*ranks[0], *ranks[1]]
        self.register_outputs({})


def edited(text: str, edit: Edit) -> Iterator[Document]:
    """Yield the documents of a manifest file after an edit, without those that it leaves out."""
    for document in yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        if document and (result := edit(document)) is not None:
            yield result


def ordered(documents: Iterator[Document]) -> list[Document]:
    """Return documents in the order of installation; within a rank they keep the file's order."""
    return sorted(documents, key=_rank)


def identity(document: Document) -> str:
    """Return `Kind/namespace/name`, or `Kind/name` for what has no namespace."""
    metadata = document["metadata"]
    parts = (document["kind"], metadata.get("namespace"), metadata["name"])
    return "/".join(part for part in parts if part)


def _token(group: str, version: str, body: Mapping[str, Any]) -> str:
    return f"kubernetes:{group or 'core'}/{version}:{body['kind']}"


def _rank(document: Document) -> int:
    kind = document["kind"]
    return 0 if kind in _FIRST else 2 if kind in _WORKLOADS else 3 if kind in _LAST else 1
