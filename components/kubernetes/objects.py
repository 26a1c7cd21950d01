"""Kubernetes objects that several layers declare in the same form."""

from __future__ import annotations

import base64
from collections.abc import Mapping

import pulumi

from components.kubernetes.manifests import Document

_MODES = ("enforce", "audit", "warn")


def namespace(name: str, *, privileged: bool = False, labels: Mapping[str, str] | None = None) -> Document:
    """Return a namespace.

    privileged: no Pod Security Standard restrains its pods. Where Pod Security Admission is enforced, pods that mount
    the node's folders or change the node are refused otherwise. Gives nobody a right to create pods there.
    """
    own = {f"pod-security.kubernetes.io/{mode}": "privileged" for mode in _MODES} if privileged else {}
    both = {**(labels or {}), **own}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **({"labels": both} if both else {})}}


def secret(
    name: str,
    namespace: pulumi.Input[str],
    values: Mapping[str, pulumi.Input[str]],
    *,
    labels: Mapping[str, str] | None = None,
) -> Document:
    """Return a Secret of texts by key, which stay secret in the state and in every preview."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace, **({"labels": dict(labels)} if labels else {})},
        "type": "Opaque",
        "data": {key: pulumi.Output.secret(value).apply(_encoded) for key, value in values.items()},
    }


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
