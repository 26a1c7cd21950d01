"""Creates the objects of every OpenShift: definitions, SecurityContextConstraints, roles, its version."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from emulator.cluster.api import Api, Object, path_of

VERSION: Final = "4.21.0"
"""The OpenShift version with the local cluster's Kubernetes version, 1.34."""

DOMAIN: Final = "apps.local.invalid"
"""The domain of Routes without a host."""

_HERE: Final = Path(__file__).resolve().parent
_MANAGER: Final = "cluster-version-operator"
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_ESTABLISHED_SECONDS: Final = 30.0
_AUTOUPDATE: Final = {"rbac.authorization.kubernetes.io/autoupdate": "true"}


def install(api: Api, definitions: Sequence[Object]) -> None:
    """Apply all objects. A second call reverts changes, like the cluster version operator.

    Raises ApiError if the API server rejects an object, TimeoutError if a definition is not served in time.
    """
    define(api, definitions)
    apply(api, (*constraints(), *roles(), *_objects()))


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
    """Yield a ClusterRole to use each constraint, and the binding of all users to restricted-v2."""
    for constraint in constraints():
        name = constraint["metadata"]["name"]
        rule = {
            "apiGroups": ["security.openshift.io"],
            "resources": ["securitycontextconstraints"],
            "resourceNames": [name],
            "verbs": ["use"],
        }
        yield {**_rbac("ClusterRole", name), "rules": [rule]}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": _role("restricted-v2")}
    everybody = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"}
    yield {**_rbac("ClusterRoleBinding", "restricted-v2"), "roleRef": role, "subjects": [everybody]}


def _rbac(kind: str, constraint: str) -> dict[str, Any]:
    metadata = {"name": _role(constraint), "annotations": _AUTOUPDATE}
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata}


def _role(constraint: str) -> str:
    return f"system:openshift:scc:{constraint}"


def _objects() -> Iterator[Object]:
    text = (_HERE / "cluster.yaml").read_text().replace("<version>", VERSION).replace("<domain>", DOMAIN)
    yield from yaml.safe_load_all(text)


def _await_established(api: Api, name: str) -> None:
    deadline = time.monotonic() + _ESTABLISHED_SECONDS
    while True:
        conditions = (api.get(f"{_DEFINITIONS}/{name}").get("status") or {}).get("conditions") or ()
        if any((item["type"], item["status"]) == ("Established", "True") for item in conditions):
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"the API server does not serve {name} after {_ESTABLISHED_SECONDS:.0f} s")
        time.sleep(0.1)
