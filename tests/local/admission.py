"""Disables admission policies for a while."""

import contextlib
from collections.abc import Iterator
from typing import Any, Final

from tests.local.environment import Cluster

ADMISSION: Final = "admissionregistration.k8s.io/v1"
BINDING: Final = "ValidatingAdmissionPolicyBinding"


@contextlib.contextmanager
def unbound(cluster: Cluster, policy: str) -> Iterator[None]:
    """Remove the binding of a policy for the length of the context. The API server notices a moment later."""
    binding = cluster.existing(ADMISSION, BINDING, policy)
    cluster.delete(ADMISSION, BINDING, policy)
    try:
        yield
    finally:
        cluster.create(anew({**binding, "apiVersion": ADMISSION, "kind": BINDING}))


def anew(item: dict[str, Any]) -> dict[str, Any]:
    """Return an object's document for its recreation."""
    kept = {key: item["metadata"][key] for key in ("name", "labels", "annotations") if key in item["metadata"]}
    return {**item, "metadata": kept}
