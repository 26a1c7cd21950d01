"""Drains of nodes in an upgrade, and the budgets that make AKS refuse an upgrade."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from emulator.azure.errors import refused
from emulator.cluster.api import MERGE_PATCH, Api, ApiError, unless_gone

_PATIENCE = 5.0
"""Seconds that a drain waits for the pods of a node. AKS waits for drainTimeoutInMinutes."""
_PAUSE = 0.2
_REFUSED = 429
_FINISHED = ("Succeeded", "Failed")

Object = Mapping[str, Any]


def unsatisfiable(budgets: Sequence[Object]) -> list[str]:
    """Return why AKS refuses an upgrade, for each PodDisruptionBudget that allows no disruption.

    AKS checks all budgets of the cluster, also for the upgrade of one pool. Sources: Azure/AKS, issues 4805, 4839 and
    4860; MicrosoftDocs/SupportArticles-docs, error-codes/unsatisfiablepdb-error.md. AKS does not
    document whether it ignores budgets without pods. Here it does not.
    """
    return [
        f"PDB {_name(each)} has {reason} can't proceed with put operation" for each in budgets for reason in _of(each)
    ]


def _of(budget: Object) -> Iterator[str]:
    spec, pods = budget["spec"], (budget.get("status") or {}).get("expectedPods", 0)
    if spec.get("maxUnavailable") in (0, "0", "0%"):
        yield "maxUnavailable == 0"
    least = spec.get("minAvailable")
    if least == "100%" or (isinstance(least, int) and least >= pods):
        yield f"minAvailable({least}) >= expectedPods({pods})"


def drain(api: Api, nodes: Sequence[str]) -> None:
    """Cordon and drain one node after the other. Each takes pods again afterwards, with its new image.

    Raises ArmError with AKS's error if a pod cannot be evicted. That node also takes pods again (AKS's behavior
    `Schedule` for undrainable nodes), and the nodes after it are not drained.
    """
    for node in nodes:
        _cordon(api, node, value=True)
        try:
            _evict(api, node)
        finally:
            _cordon(api, node, value=None)


def _cordon(api: Api, node: str, *, value: bool | None) -> None:
    api.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": value}}, MERGE_PATCH)


def _evict(api: Api, node: str) -> None:
    """Evict the pods of a node and wait until they are gone. Raises ArmError after the time for it."""
    ends = time.monotonic() + _PATIENCE
    while pods := _evictable(api, node):
        refusals = [pod for pod in pods if not _evicted(api, pod)]
        if time.monotonic() > ends:
            pod = (refusals or pods)[0]
            raise refused("TooManyRequestsForEviction" if refusals else "PodStillRunning", node=node, pod=_name(pod))
        time.sleep(_PAUSE)


def _evictable(api: Api, node: str) -> list[Object]:
    """Return the pods that a drain evicts: not those of DaemonSets, and not finished ones."""
    pods = api.get(f"/api/v1/pods?fieldSelector=spec.nodeName={node}").get("items") or []
    return [
        pod
        for pod in pods
        if pod["status"].get("phase") not in _FINISHED
        and not any(owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences") or ())
    ]


def _evicted(api: Api, pod: Object) -> bool:
    """Evict a pod. Return false if a budget refuses it."""
    metadata = {key: pod["metadata"][key] for key in ("namespace", "name")}
    if "deletionTimestamp" in pod["metadata"]:
        return True
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/eviction"
    try:
        with unless_gone():
            api.create(path, {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata})
    except ApiError as error:
        if error.status != _REFUSED:
            raise
        return False
    return True


def _name(found: Object) -> str:
    return f"{found['metadata']['namespace']}/{found['metadata']['name']}"
