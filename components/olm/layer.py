"""Common parts of installations by OLM: objects that depend on each other, and steps between them."""

from collections.abc import Sequence

import pulumi

from components.kubernetes.manifests import Document, Manifest
from components.layer import Layer


class OlmLayer(Layer):
    """A layer whose children have names made of its name, their kind and their own name."""

    def __init__(self, token: str, name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(token, name, None, opts)
        self._name = name

    def _made(
        self,
        document: Document,
        needs: Sequence[pulumi.Resource],
        minutes: int | None = None,
        *,
        namespace: str | None = None,
    ) -> pulumi.Resource:
        """Register an object. minutes: longest wait for it. None for the engine's default.

        namespace: part of the resource's name, for objects that have the same name in several namespaces.
        """
        timeouts = pulumi.CustomTimeouts(create=f"{minutes}m", update=f"{minutes}m") if minutes else None
        kind, own = document["kind"], document["metadata"]["name"]
        parts, former = [self._name, kind, own], list[pulumi.Alias]()
        if namespace is not None:
            former.append(pulumi.Alias(name="/".join(parts)))
            parts.insert(2, namespace)
        options = pulumi.ResourceOptions(
            parent=self, depends_on=list(needs), custom_timeouts=timeouts, aliases=former or None
        )
        return Manifest("/".join(parts), document, options)

    def _taken(
        self, step: tuple[Document, Document], needs: Sequence[pulumi.Resource], minutes: int
    ) -> pulumi.Resource:
        """Register a step's files and Job, and return the Job."""
        files, job = step
        return self._made(job, [*needs, self._made(files, needs)], minutes)
