"""A member of a team for the API server, by impersonation, with the member's own rights."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import DynamicApiError

from emulator.paths import Paths
from runner.report import message
from tests.local.environment import Cluster

_REFUSED = (400, 403, 422)
"""The API server's status for requests that admission, permissions or validation reject."""


def as_member(paths: Paths, user: str, groups: Sequence[str] = (), uid: str | None = None) -> Cluster:
    """Return the cluster with this user's rights, in at most one group in addition to that of all authenticated users.

    uid: the identity provider's id of the user, if any.

    A request names each group in a separate header, and the client sends a header only once.
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
    """Return the API server's reason for rejecting a request; fail if it accepts the request."""
    with pytest.raises((ApiException, DynamicApiError)) as caught:
        attempt(*arguments, **options)
    reason = message(caught.value)
    assert caught.value.status in _REFUSED, f"no refusal but HTTP {caught.value.status}: {reason}"
    return reason


def dry_run(cluster: Cluster, document: Mapping[str, Any]) -> None:
    """Send an object's creation through all admission without storing it."""
    resource = cluster.kind(document["apiVersion"], document["kind"])
    namespace = document["metadata"].get("namespace")
    cluster.client.create(resource, body=dict(document), namespace=namespace, dry_run="All")
