"""Creates the objects of every OpenShift: definitions, SecurityContextConstraints, roles, its version."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import yaml

from emulator.cluster.api import Api, Object, path_of
from runner.waiting import awaited

VERSION: Final = "4.21.0"
"""The OpenShift version with the local cluster's Kubernetes version, 1.34."""

DOMAIN: Final = "apps.local.invalid"
"""The domain of Routes without a host."""

_HERE: Final = Path(__file__).resolve().parent
_MANAGER: Final = "cluster-version-operator"
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_ESTABLISHED_SECONDS: Final = 30.0


def install(api: Api, definitions: Sequence[Object]) -> None:
    """Apply all objects. A second call reverts changes, like the cluster version operator.

    Raises ApiError if the API server rejects an object, TimeoutError if a definition is not served in time.
    """
    define(api, definitions)
    apply(api, (*constraints(), *roles(), *objects()))


def define(api: Api, definitions: Sequence[Object]) -> None:
    """Apply definitions, and wait until they are served."""
    for document in definitions:
        api.apply(f"{_DEFINITIONS}/{document['metadata']['name']}", document, _MANAGER)
    for document in definitions:
        _await_established(api, document["metadata"]["name"])


def apply(api: Api, documents: Iterable[Object]) -> None:
    """Apply objects, and their status if they have one."""
    for document in documents:
        status = document.pop("status", None)
        path = path_of(api, document)
        api.apply(path, document, _MANAGER)
        if status is not None:
            identity = {key: document[key] for key in ("apiVersion", "kind", "metadata")}
            api.apply(f"{path}/status", {**identity, "status": status}, _MANAGER)


def constraints() -> Iterator[Object]:
    """Yield the default SecurityContextConstraints."""
    for entry in yaml.safe_load((_HERE / "constraints.yaml").read_text()):
        name = entry.pop("name")
        kind = {"apiVersion": "security.openshift.io/v1", "kind": "SecurityContextConstraints"}
        yield {**kind, "metadata": {"name": name}, **entry}


def roles() -> Iterator[Object]:
    """Yield a ClusterRole to use each constraint."""
    text = (_HERE / "role.yaml").read_text()
    for constraint in constraints():
        yield yaml.safe_load(text.replace("<constraint>", constraint["metadata"]["name"]))


def objects() -> Iterator[Object]:
    """Yield the other objects."""
    text = (_HERE / "cluster.yaml").read_text().replace("<version>", VERSION).replace("<domain>", DOMAIN)
    yield from yaml.safe_load_all(text)


def _await_established(api: Api, name: str) -> None:
    def established() -> bool:
        conditions = (api.get(f"{_DEFINITIONS}/{name}").get("status") or {}).get("conditions") or ()
        return any((item["type"], item["status"]) == ("Established", "True") for item in conditions)

    if not awaited(established, _ESTABLISHED_SECONDS, 0.1):
        raise TimeoutError(f"the API server does not serve {name} after {_ESTABLISHED_SECONDS:.0f} s")
