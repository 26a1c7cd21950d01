"""What the stubs have in common.

A stub is not more permissive than its operator: it waits for the same operators, and reports the same conditions. It
installs again only what was deleted together with its Deployment, while the operator reverts every change.
"""

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Final

import yaml

from emulator.cluster.api import MERGE_PATCH, Api, ApiError, Object, path_of
from emulator.cluster.credentials import Account
from emulator.cluster.pod_status import timestamp
from emulator.openshift.red_hat.bundles import OPERATORS

KUEUE: Final = "/apis/kueue.openshift.io/v1/kueues/cluster"
JOB_SET: Final = "/apis/operator.openshift.io/v1/jobsetoperators/cluster"
MANAGED: Final = "kueue.openshift.io/managed"
"""Label of namespaces whose jobs Kueue manages."""

log: Final = logging.getLogger("stubs")

Edit = Callable[[Object], object]


class Stub(ABC):
    """The stub of one operator. package: its name in the catalog."""

    package: ClassVar[str]

    def __init__(self, account: Account, operands: Path) -> None:
        (row,) = (each for each in OPERATORS if each["package"] == self.package)
        self._deployment = f"/apis/apps/v1/namespaces/{row['namespace']}/deployments/{row['deployment']}"
        user = f"system:serviceaccount:{row['namespace']}:{row['account']}"
        self._everyones, self._api = Api(account), Api(account, timeout=60.0, user=user)
        self._operands = operands
        self._installed: dict[str, tuple[str, list[str]]] = {}

    def attend(self) -> None:
        """Work once if the operator's pod is ready. The next call retries what was rejected."""
        if _is_available(self._read(self._deployment, self._everyones)):
            try:
                self._work()
            except ApiError as error:
                log.info("%s: %s", self.package, error)

    @abstractmethod
    def _work(self) -> None:
        """Bring the cluster to the state that the operator's objects describe."""

    def _read(self, path: str, api: Api | None = None) -> Object | None:
        try:
            return (api or self._api).get(path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def _install(
        self,
        operand: str,
        owner: Object,
        edit: Edit = lambda document: None,
        config: object = None,
        *,
        label: str = "",
    ) -> bool:
        """Apply an operand's manifests for a new owner or configuration. Return whether its Deployments are available.

        edit: changes each manifest. config: what `edit` uses of the owner. label: of all objects.
        """
        wanted = json.dumps([owner["metadata"]["uid"], config])
        installed, deployments = self._installed.get(operand, ("", []))
        found = [self._read(path) for path in deployments]
        if wanted == installed and None not in found:
            return all(map(_is_available, found))
        paths = []
        text = (self._operands / f"{operand}.yaml").read_text()
        for document in yaml.load_all(text, Loader=yaml.CSafeLoader):
            edit(document)
            if label:
                document["metadata"].setdefault("labels", {})[label] = "true"
            if document["kind"] != "CustomResourceDefinition":
                document["metadata"]["ownerReferences"] = [reference(owner)]
            path = path_of(self._api, document)
            self._api.apply(path, document, self.package)
            if document["kind"] == "Deployment":
                paths.append(path)
        self._installed[operand] = wanted, paths
        return False

    def _report(self, path: str, found: Object, conditions: Sequence[Object], **status: Any) -> None:
        """Write the status of an object if it differs."""
        before = found.get("status") or {}
        plain = [{key: value for key, value in each.items() if key != "lastTransitionTime"} for each in conditions]
        shown = [
            {key: value for key, value in each.items() if key != "lastTransitionTime"}
            for each in before.get("conditions") or ()
        ]
        if plain != shown or any(before.get(key) != value for key, value in status.items()):
            now = timestamp(datetime.now(UTC))
            stamped = [{**each, "lastTransitionTime": now} for each in conditions]
            self._api.patch(f"{path}/status", {"status": {**status, "conditions": stamped}}, MERGE_PATCH)


def condition(kind: str, holds: bool, reason: str, message: str) -> Object:
    """Return a condition of an object's status, without its time."""
    return {"type": kind, "status": "True" if holds else "False", "reason": reason, "message": message}


def has_certificates(api: Api) -> bool:
    """Tell whether cert-manager's kinds are defined."""
    try:
        return any(each["kind"] == "Issuer" for each in api.get("/apis/cert-manager.io/v1")["resources"])
    except ApiError as error:
        if error.status == 404:
            return False
        raise


def _is_available(deployment: Object | None) -> bool:
    status = (deployment or {}).get("status") or {}
    return deployment is not None and status.get("readyReplicas", 0) == deployment["spec"].get("replicas", 1)


def reference(owner: Object) -> Object:
    """Return the reference to an object that owns another one."""
    metadata = owner["metadata"]
    return {**{key: owner[key] for key in ("apiVersion", "kind")}, **{key: metadata[key] for key in ("name", "uid")}}
