"""What a killed engine was creating in a cluster, and which of that exists.

The engine records a creation as pending before it asks a provider. `pulumi refresh` takes over one that exists when
`--import-pending-creates` gives its URN and ID, and forgets the others with `--clear-pending-creates`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

from kubernetes.dynamic.exceptions import NotFoundError, ResourceNotFoundError

from runner.report import Client

RELEASE: Final = "kubernetes:helm.sh/v3:Release"

Resource = Mapping[str, Any]
"""A resource as the engine records it."""


def creations(deployment: Mapping[str, Any]) -> list[Resource]:
    """Return what the engine was creating. deployment: the stack's, as `pulumi stack export` prints it."""
    return [each["resource"] for each in deployment.get("pending_operations") or () if each["type"] == "creating"]


def existing(client: Client, pending: Iterable[Resource]) -> Iterator[tuple[str, str]]:
    """Yield URN and ID of the pending objects that exist. Raises the Kubernetes client's exceptions."""
    for resource in pending:
        kind = resource["type"]
        # A Patch can be created again, and a release is no object.
        if kind.startswith("kubernetes:") and kind != RELEASE and not kind.endswith("Patch"):
            name, namespace = (resource["inputs"]["metadata"].get(key) for key in ("name", "namespace"))
            try:
                found = client.resources.get(
                    api_version=resource["inputs"]["apiVersion"], kind=resource["inputs"]["kind"]
                )
                client.get(found, name=name, namespace=namespace)
            except (NotFoundError, ResourceNotFoundError):
                continue
            yield resource["urn"], f"{namespace}/{name}" if namespace else str(name)


def options(found: Mapping[str, str]) -> list[str]:
    """Return the options by which `pulumi refresh` takes over these, an ID by URN, and forgets all others."""
    pairs = [f"--import-pending-creates={each}" for each in chain.from_iterable(found.items())]
    return ["--clear-pending-creates", *pairs]
