"""What a replica contains: all objects that decide about jobs, and the controllers that read them."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ask.source import Document, Source, in_namespaces
from components import names
from components.queueing.trainer import SNAPSHOT
from emulator.cluster.content import Content
from emulator.cluster.images import known
from runner.report import is_true

KUEUE: Final = ("kueue",)
APPWRAPPER: Final = ("appwrapper", "codeflare")
"""With OpenShift AI, AppWrapper is part of the CodeFlare operator."""
_OF_JOBS: Final = ("scheduler-plugins", "jobset", "training-operator", "trainer-controller", "kuberay")
CONTROLLERS: Final = (*KUEUE, *APPWRAPPER, *_OF_JOBS)
"""Parts of the image names of controllers that decide about jobs. The replica does not run other controllers."""
_WEBHOOKS_OF_JOBS: Final = ("jobset", "pytorchjob", "training-operator", "trainer.kubeflow.org")
WEBHOOKS: Final = (names.KUEUE_GROUP, *KUEUE, *APPWRAPPER, *_WEBHOOKS_OF_JOBS)
"""Parts of the names of webhook configurations of these controllers."""
NODE: Final = "local-controllers"
"""The replica's own node, which runs its controllers."""
_SIMULATED: Final = {"kwok.x-k8s.io/node": "fake"}
_OWN_NODE: Final = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": NODE, "annotations": _SIMULATED},
    "spec": {"taints": [{"key": "mlbatch/replica", "effect": "NoSchedule"}]},
}
"""The node does not belong to the cluster. No job gets there as soon as a scheduler runs."""
_OWN: Final = ("system:", "kubeadm:")
_CLUSTER_ROLES: Final = ("admin", "cluster-admin", "edit", "view")
"""Every API server creates roles and bindings with these name prefixes. A team's bindings are named after its members,
whose names can be anything."""
_DEFINITIONS: Final = ("CustomResourceDefinition", "Namespace", "PriorityClass")
_EVERYWHERE: Final = (*_DEFINITIONS, "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
"""Kinds that the replica copies from all namespaces, without built-in objects."""
_BESIDE: Final = ("ServiceAccount", "Service", "ConfigMap")
_POLICIES: Final = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
_CONFIGURATIONS: Final = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_OF_TEAMS: Final = ("Job", "Deployment", "ReplicaSet", "StatefulSet")
_OF_VOLUMES: Final = ("capacity", "accessModes", "storageClassName", "volumeMode", "nodeAffinity")
"""Fields of a volume that a scheduler reads. A replica does not need the location, and must not reach it."""
_ADDRESSES: Final = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort")
"""Fields of a Service that come from its cluster's network."""
_BOUND: Final = {"pv.kubernetes.io/bind-completed": "yes"}


def content(source: Source) -> Content:
    """Return the content. Objects of teams and nodes are exact, because age and holders decide about jobs."""
    deciding = controllers(source, CONTROLLERS)
    places = sorted({item["metadata"]["namespace"] for item in deciding})
    nodes = [_node(item) for item in source.all("Node") if item["metadata"]["name"] != NODE]
    first = [
        _OWN_NODE,
        *(_reset(item) for kind in _EVERYWHERE for item in source.all(kind) if not _is_built_in(item)),
        *(_reset(item) for kind in _BESIDE for item in in_namespaces(source.all(kind), places)),
        *(_reset(item) for item in in_namespaces(source.all("LimitRange"), source.teams)),
        *(_reset(item) for kind in _POLICIES for item in source.all(kind)),
    ]
    custom = [each["spec"]["names"]["kind"] for each in source.all("CustomResourceDefinition")]
    volumes = {item["metadata"]["name"]: item for item in source.all("PersistentVolume")}
    exact = [
        *nodes,
        *in_namespaces(source.all("ResourceQuota"), source.teams),
        *(item for kind in custom for item in source.all(kind)),
        *(item for kind in _OF_TEAMS for item in in_namespaces(source.all(kind), source.teams)),
        *map(_without_address, in_namespaces(source.all("Service"), source.teams)),
        *map(
            _without_data,
            (
                item
                for item in in_namespaces(source.all("ConfigMap"), source.teams)
                if not item["metadata"]["name"].endswith(SNAPSHOT)  # Trainer makes it again, with its data
            ),
        ),
        *(
            item
            for claim in in_namespaces(source.all("PersistentVolumeClaim"), source.teams)
            for item in _bound(volumes, claim)
        ),
    ]
    exact += _pods(source, {item["metadata"]["name"] for item in nodes}, exact)
    last = [
        *(_secret(item) for deployment in deciding for item in _secrets(deployment)),
        *map(_deployment, deciding),
        *(
            _webhooks(item)
            for kind in _CONFIGURATIONS
            for item in source.all(kind)
            if any(word in item["metadata"]["name"] for word in WEBHOOKS)
        ),
    ]
    return Content(first=first, exact=exact, last=last)


def _is_built_in(item: Document) -> bool:
    name = item["metadata"]["name"]
    return name.startswith(_OWN) or (item["kind"] in ("ClusterRole", "ClusterRoleBinding") and name in _CLUSTER_ROLES)


def runs(source: Source, parts: Sequence[str]) -> bool:
    """Return whether a controller runs on the cluster, and so on its replica. parts: alternatives in the image name."""
    return bool(controllers(source, parts))


def controllers(source: Source, parts: Sequence[str]) -> list[Document]:
    """Return the Deployments of controllers: those with rights in the whole cluster, which only administrators give.

    They run on this machine with their own commands. The image name alone is not enough, because a team can use it too.
    """
    entitled = {
        (subject.get("namespace"), subject["name"])
        for binding in source.all("ClusterRoleBinding")
        for subject in binding.get("subjects") or ()
        if subject["kind"] == "ServiceAccount"
    }
    return [item for item in source.all("Deployment") if _account(item) in entitled and _runs(item, parts)]


def _account(deployment: Document) -> tuple[str, str]:
    """Return the namespace and the name of a Deployment's service account."""
    account = deployment["spec"]["template"]["spec"].get("serviceAccountName") or "default"
    return deployment["metadata"]["namespace"], account


def _runs(deployment: Document, parts: Sequence[str]) -> bool:
    images = [item["image"] for item in deployment["spec"]["template"]["spec"]["containers"]]
    return all(known(image) for image in images) and any(part in image for image in images for part in parts)


def _without_address(item: Document) -> Document:
    """Return a Service that reserves its name but not its address, which a controller of the replica may get."""
    spec = {key: value for key, value in (item.get("spec") or {}).items() if key not in _ADDRESSES}
    return {**item, "spec": spec | {"clusterIP": "None", "clusterIPs": ["None"]}}


def _without_data(item: Document) -> Document:
    """Return a ConfigMap that reserves its name, so that no job can use it. No pod reads its data here.

    `kubectl apply` keeps the data in an annotation too. Some programs elect a leader by an annotation every few
    seconds.
    """
    metadata = {key: value for key, value in item["metadata"].items() if key != "annotations"}
    return {key: value for key, value in item.items() if key not in ("data", "binaryData")} | {"metadata": metadata}


def _bound(volumes: Mapping[str, Document], claim: Document) -> list[Document]:
    """Return a claim and its volume. The replica has no provisioner, so a missing volume is created here.

    volumes: the cluster's, by name.

    A scheduler does not place a pod whose claim has no volume (kubernetes.io, concepts/storage/storage-classes,
    volumeBindingMode). A claim that lost its volume, or names the volume of another claim, gets none.
    """
    metadata, wanted = claim["metadata"], claim.get("spec") or {}
    name = wanted.get("volumeName") or f"replica-{metadata['uid']}"
    found = volumes.get(name)
    if wanted.get("volumeName") and not (found and _is_of(found, metadata)):
        return [claim]
    has = found["spec"] if found else {**wanted, "capacity": (wanted.get("resources") or {}).get("requests") or {}}
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "uid": metadata["uid"]}
    reference |= {"name": metadata["name"], "namespace": metadata["namespace"]}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": name,
            "uid": str(uuid.uuid5(uuid.NAMESPACE_URL, name)),
            "labels": (found or {"metadata": {}})["metadata"].get("labels") or {},
            "creationTimestamp": metadata["creationTimestamp"],
        },
        "spec": {
            **{key: has[key] for key in _OF_VOLUMES if key in has},
            "claimRef": reference,
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": "/nowhere"},
        },
        "status": {"phase": "Bound"},
    }
    annotations = {**(metadata.get("annotations") or {}), **_BOUND}
    status = {**(claim.get("status") or {}), "phase": "Bound"}
    bound = {
        "metadata": {**metadata, "annotations": annotations},
        "spec": {**wanted, "volumeName": name},
        "status": status,
    }
    return [volume, {**claim, **bound}]


def _is_of(volume: Document, claim: Document) -> bool:
    """Return whether a volume belongs to a claim. Several volumes can name one claim. claim: its metadata."""
    reference = volume["spec"].get("claimRef") or {}
    return all(reference.get(key) == claim[key] for key in ("namespace", "name", "uid"))


def _reset(item: Document) -> Document:
    """Return an object as if it were new: without status, identity and addresses of its cluster."""
    dropped = ("uid", "creationTimestamp", "generation", "managedFields", "ownerReferences", "deletionTimestamp")
    metadata = {key: value for key, value in item["metadata"].items() if key not in dropped}
    result = {key: value for key, value in item.items() if key != "status"} | {"metadata": metadata}
    if item["kind"] == "Service":
        result["spec"] = {key: value for key, value in item["spec"].items() if key not in _ADDRESSES}
    return result


def _node(item: Document) -> Document:
    """Return a copy of a node with the same health. KWOK keeps a Ready node Ready."""
    annotations = {**(item["metadata"].get("annotations") or {}), **(_SIMULATED if is_true(item, "Ready") else {})}
    return {**item, "metadata": {**item["metadata"], "annotations": annotations}}


def _pods(source: Source, nodes: set[str], others: list[Document]) -> list[Document]:
    """Return the pods of teams and all other pods that use nodes. Pods lose owners that are not in the replica."""
    there = {item["metadata"].get("uid") for item in others}
    found = []
    for pod in source.all("Pod"):
        place, metadata = pod["spec"].get("nodeName"), pod["metadata"]
        if place not in nodes and (place or metadata["namespace"] not in source.teams):
            continue
        owners = [owner for owner in metadata.get("ownerReferences") or () if owner["uid"] in there]
        kept = {key: value for key, value in metadata.items() if key != "ownerReferences"}
        found.append({**pod, "metadata": {**kept, **({"ownerReferences": owners} if owners else {})}})
    return found


def _deployment(item: Document) -> Document:
    """Return a controller with one replica that runs on the replica's own node."""
    result = _reset(item)
    spec = result["spec"]
    pod = {
        key: value
        for key, value in spec["template"]["spec"].items()
        if key not in ("affinity", "topologySpreadConstraints", "imagePullSecrets")
    }
    pod |= {"nodeSelector": {"kubernetes.io/hostname": NODE}, "tolerations": [{"operator": "Exists"}]}
    template = {**spec["template"], "spec": pod}
    return {**result, "spec": {**spec, "replicas": 1, "template": template}}


def _secrets(deployment: Document) -> list[tuple[str, str]]:
    volumes = deployment["spec"]["template"]["spec"].get("volumes") or ()
    namespace = deployment["metadata"]["namespace"]
    return [(namespace, volume["secret"]["secretName"]) for volume in volumes if volume.get("secret")]


def _secret(identity: tuple[str, str]) -> Document:
    """Return an empty Secret, which a controller fills with its certificate."""
    namespace, name = identity
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}}


def _webhooks(item: Document) -> Document:
    """Return a webhook configuration without its CA bundle, which is filled in again."""
    result = _reset(item)
    webhooks: list[Mapping[str, Any]] = [
        {**webhook, "clientConfig": {k: v for k, v in webhook["clientConfig"].items() if k != "caBundle"}}
        for webhook in item.get("webhooks") or ()
    ]
    return {**result, "webhooks": webhooks}
