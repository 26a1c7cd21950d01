"""What each kind still lacks before it counts as ready.

The rules follow pulumi-kubernetes, `provider/pkg/await`. A kind without rules is ready as soon as it exists.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from emulator.plugin.errors import ProviderError
from emulator.provider.objects import Manifest, group_of, metadata


class FailedError(ProviderError):
    """The object can not become ready any more."""


class Neighbours(Protocol):
    """Reads of other objects that readiness depends on."""

    def list(self, api_version: str, kind: str, namespace: str, labels: dict[str, str]) -> list[Manifest]:
        """Return the objects of a kind with the labels."""

    def get(self, api_version: str, kind: str, namespace: str, name: str) -> Manifest | None:
        """Return one object, or None."""


Rule = Callable[[Manifest, Neighbours], list[str]]


def rule_for(manifest: Manifest) -> Rule | None:
    """Return the rule of the object's kind: live object in, what is missing out (nothing when it is ready)."""
    return _RULES.get((group_of(manifest), str(manifest.get("kind"))))


def polled(manifest: Manifest) -> bool:
    """Tell whether readiness lies in other objects, so that watching this one is not enough."""
    return manifest.get("kind") in ("Service", "PersistentVolumeClaim") and group_of(manifest) == ""


def checked_on_read(manifest: Manifest) -> bool:
    """Tell whether a refresh reports an object of this kind that is not ready."""
    return (group_of(manifest), str(manifest.get("kind"))) in _ON_READ


def details(manifest: Manifest, neighbours: Neighbours) -> list[str]:
    """Say what the pods of a workload wait for; empty for other kinds."""
    selector = ((manifest.get("spec") or {}).get("selector") or {}).get("matchLabels")
    if manifest.get("kind") not in ("Deployment", "StatefulSet", "DaemonSet", "Job") or not selector:
        return []
    pods = neighbours.list("v1", "Pod", metadata(manifest).get("namespace") or "", selector)
    return [f"pod {metadata(pod)['name']}: {problem}" for pod in pods for problem in pod_problems(pod)][:10]


def pod_problems(pod: Manifest) -> list[str]:
    """Say why a pod is not ready: conditions that are not met, containers that wait or failed."""
    status = pod.get("status") or {}
    problems = [
        f"not {condition['type']}: {condition.get('message') or condition.get('reason')}"
        for condition in status.get("conditions") or []
        if condition.get("status") == "False" and condition.get("message") and condition.get("type") != "Ready"
    ]
    for container in [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]:
        state = container.get("state") or {}
        waiting, ended = state.get("waiting"), state.get("terminated")
        if waiting and waiting.get("reason") not in ("ContainerCreating", "PodInitializing"):
            problems.append(
                f"container {container.get('name')} waits: {waiting.get('reason')} {waiting.get('message', '')}"
            )
        elif ended and ended.get("exitCode"):
            problems.append(
                f"container {container.get('name')} ended with exit code {ended['exitCode']} {ended.get('message', '')}"
            )
    return [problem.strip() for problem in problems]


def _status(manifest: Manifest) -> dict[str, Any]:
    found = manifest.get("status")
    return found if isinstance(found, dict) else {}


def _condition(manifest: Manifest, name: str) -> dict[str, Any]:
    for condition in _status(manifest).get("conditions") or []:
        if condition.get("type") == name:
            return dict(condition)
    return {}


def _observed(manifest: Manifest) -> bool:
    return int(_status(manifest).get("observedGeneration") or 0) >= int(metadata(manifest).get("generation") or 0)


def _replicas(manifest: Manifest) -> int:
    wanted = (manifest.get("spec") or {}).get("replicas")
    return 1 if wanted is None else int(wanted)


def _deployment(live: Manifest, neighbours: Neighbours) -> list[str]:
    if not _observed(live):
        return ["the deployment controller has not seen the last change yet"]
    status, wanted = _status(live), _replicas(live)
    updated, available = status.get("updatedReplicas") or 0, status.get("availableReplicas") or 0
    missing = []
    progressing = _condition(live, "Progressing")
    if progressing.get("status") == "False":
        missing.append(f"[{progressing.get('reason')}] {progressing.get('message')}")
    if updated < wanted:
        missing.append(f"{updated} of {wanted} replicas are up to date")
    elif available < wanted:
        missing.append(f"{available} of {wanted} replicas are available")
    elif (status.get("replicas") or 0) > updated:
        missing.append(f"{status['replicas'] - updated} old replicas have not gone yet")
    return missing


def _stateful_set(live: Manifest, neighbours: Neighbours) -> list[str]:
    if not _observed(live):
        return ["the stateful set controller has not seen the last change yet"]
    status, wanted = _status(live), _replicas(live)
    ready, updated = status.get("readyReplicas") or 0, status.get("updatedReplicas") or 0
    if ready < wanted:
        return [f"{ready} of {wanted} replicas are ready"]
    strategy = ((live.get("spec") or {}).get("updateStrategy") or {}).get("type")
    if strategy != "OnDelete" and status.get("currentRevision") != status.get("updateRevision"):
        return [f"{updated} of {wanted} replicas are up to date"]
    return []


def _daemon_set(live: Manifest, neighbours: Neighbours) -> list[str]:
    if not _observed(live):
        return ["the daemon set controller has not seen the last change yet"]
    status = _status(live)
    wanted = status.get("desiredNumberScheduled") or 0
    updated, available = status.get("updatedNumberScheduled") or 0, status.get("numberAvailable") or 0
    strategy = ((live.get("spec") or {}).get("updateStrategy") or {}).get("type")
    if strategy != "OnDelete" and updated < wanted:
        return [f"{updated} of {wanted} nodes run the current pod"]
    if available < wanted:
        return [f"the pod is available on {available} of {wanted} nodes"]
    return []


def _job(live: Manifest, neighbours: Neighbours) -> list[str]:
    failed = _condition(live, "Failed")
    if failed.get("status") == "True":
        raise FailedError(f"the job failed: [{failed.get('reason')}] {failed.get('message')}")
    if _condition(live, "Complete").get("status") == "True":
        return []
    status = _status(live)
    wanted = (live.get("spec") or {}).get("completions") or 1
    return [f"{status.get('succeeded') or 0} of {wanted} pods have succeeded, {status.get('active') or 0} are active"]


def _pod(live: Manifest, neighbours: Neighbours) -> list[str]:
    status = _status(live)
    if status.get("phase") == "Succeeded" or _condition(live, "Ready").get("status") == "True":
        return []
    problems = pod_problems(live)
    if status.get("phase") == "Failed":
        raise FailedError(f"the pod failed: {'; '.join(problems) or status.get('message') or status.get('reason')}")
    return problems or [f"the pod is {status.get('phase') or 'not scheduled'}"]


def _service(live: Manifest, neighbours: Neighbours) -> list[str]:
    spec = live.get("spec") or {}
    missing = []
    if spec.get("type") == "LoadBalancer" and not (_status(live).get("loadBalancer") or {}).get("ingress"):
        missing.append("no address was allocated for the load balancer: does this cluster have one?")
    if spec.get("type") == "ExternalName" or spec.get("clusterIP") == "None" or not spec.get("selector"):
        return missing
    meta = metadata(live)
    labels = {"kubernetes.io/service-name": str(meta["name"])}
    slices = neighbours.list("discovery.k8s.io/v1", "EndpointSlice", meta.get("namespace") or "", labels)
    endpoints = [endpoint for each in slices for endpoint in each.get("endpoints") or []]
    ready = [each for each in endpoints if (each.get("conditions") or {}).get("ready") is not False]
    if not ready:
        missing.append("it selects no ready pod: pods may not be ready, or spec.selector matches the labels of none")
    return missing


def _persistent_volume(live: Manifest, neighbours: Neighbours) -> list[str]:
    phase = _status(live).get("phase")
    return [] if phase in ("Available", "Bound") else [f"the volume is {phase or 'without a phase'}"]


def _persistent_volume_claim(live: Manifest, neighbours: Neighbours) -> list[str]:
    phase = _status(live).get("phase")
    if phase == "Bound":
        return []
    name = (live.get("spec") or {}).get("storageClassName")
    storage_class = neighbours.get("storage.k8s.io/v1", "StorageClass", "", name) if name else None
    if phase == "Pending" and (storage_class or {}).get("volumeBindingMode") == "WaitForFirstConsumer":
        return []
    return [f"the claim is {phase or 'without a phase'}, not Bound (storage class {name!r})"]


def _replication_controller(live: Manifest, neighbours: Neighbours) -> list[str]:
    available, wanted = _status(live).get("availableReplicas") or 0, _replicas(live)
    return [] if available == wanted else [f"{available} of {wanted} replicas are available"]


def _resource_quota(live: Manifest, neighbours: Neighbours) -> list[str]:
    hard = (live.get("spec") or {}).get("hard") or {}
    return [] if (_status(live).get("hard") or {}) == hard else ["the quota controller has not taken the limits in yet"]


def _secret(live: Manifest, neighbours: Neighbours) -> list[str]:
    if live.get("type") != "kubernetes.io/service-account-token" or live.get("data"):
        return []
    return ["the token controller has not written the token yet"]


def _ingress(live: Manifest, neighbours: Neighbours) -> list[str]:
    if (_status(live).get("loadBalancer") or {}).get("ingress"):
        return []
    return ["no address was allocated for the ingress: does this cluster have an ingress controller?"]


def _crd(live: Manifest, neighbours: Neighbours) -> list[str]:
    refused = _condition(live, "NamesAccepted")
    if refused.get("status") == "False":
        raise FailedError(f"the names are not accepted: {refused.get('message')}")
    if _condition(live, "Established").get("status") == "True":
        return []
    return ["the API server has not established the definition yet"]


_RULES: dict[tuple[str, str], Rule] = {
    ("apps", "Deployment"): _deployment,
    ("apps", "StatefulSet"): _stateful_set,
    ("apps", "DaemonSet"): _daemon_set,
    ("batch", "Job"): _job,
    ("", "Pod"): _pod,
    ("", "Service"): _service,
    ("", "PersistentVolume"): _persistent_volume,
    ("", "PersistentVolumeClaim"): _persistent_volume_claim,
    ("", "ReplicationController"): _replication_controller,
    ("", "ResourceQuota"): _resource_quota,
    ("", "Secret"): _secret,
    ("networking.k8s.io", "Ingress"): _ingress,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _crd,
}
_ON_READ = frozenset(
    {
        ("apps", "Deployment"),
        ("apps", "StatefulSet"),
        ("apps", "DaemonSet"),
        ("batch", "Job"),
        ("", "Pod"),
        ("", "Service"),
        ("networking.k8s.io", "Ingress"),
    }
)
