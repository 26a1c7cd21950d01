"""A member of a team, as the API server sees them: by impersonation, with the member's own rights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import DynamicApiError

from emulator.paths import Paths
from runner.report import message
from tests.local.environment import Cluster

_REFUSED = (400, 403, 422)
"""How the API server answers what admission, permissions or validation do not let through."""


def as_member(paths: Paths, user: str, groups: Sequence[str] = (), uid: str | None = None) -> Cluster:
    """Return the cluster as this user sees it, who is in at most one group beside that of everybody who signed in.

    uid: what the cluster's identity provider calls the user by, if anything.

    A request names each group in a header of its own, and the client sends a header once.
    """
    assert len(groups) <= 1, f"the client sends one Impersonate-Group header: {groups}"
    member = Cluster(paths.kubeconfig)
    member.client.client.set_default_header("Impersonate-User", user)
    if uid is not None:
        member.client.client.set_default_header("Impersonate-Uid", uid)
    for group in groups:
        member.client.client.set_default_header("Impersonate-Group", group)
    return member


def refused(attempt: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    """Return the API server's reason against a request, which it has to refuse."""
    with pytest.raises((ApiException, DynamicApiError)) as caught:
        attempt(*arguments, **options)
    reason = message(caught.value)
    assert caught.value.status in _REFUSED, f"no refusal but HTTP {caught.value.status}: {reason}"
    return reason


def dry_run(cluster: Cluster, document: Mapping[str, Any]) -> None:
    """Have the API server judge an object's creation, with all admission, and keep nothing of it."""
    resource = cluster.kind(document["apiVersion"], document["kind"])
    namespace = document["metadata"].get("namespace")
    cluster.client.create(resource, body=dict(document), namespace=namespace, dry_run="All")
