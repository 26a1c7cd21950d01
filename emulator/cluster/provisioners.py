"""Simulates provisioners of volumes for claims, while their pods are simulated.

Each request uses the rights of the service account of the provisioner's pod. No folder is created, because there is
neither a server nor a disk. Sources: kubernetes-sigs/nfs-subdir-external-provisioner,
cmd/nfs-subdir-external-provisioner/provisioner.go; rancher/local-path-provisioner v0.0.31, provisioner.go, with kind's
setup (kubernetes-sigs/kind v0.30.0, pkg/build/nodeimage/const_storage.go); and the library of both,
sigs.k8s.io/sig-storage-lib-external-provisioner, controller/controller.go.
"""

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from emulator.cluster.api import Api, ApiError, Object, is_ready, unless_gone
from emulator.cluster.credentials import Account
from emulator.cluster.store import Store

PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
STORAGE_PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"
"""Annotation of a claim with its provisioner, set by the claims' controller."""
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
"""Annotation of a claim with the node of its first pod, set by the scheduler."""
LOCAL_PATH: Final = "rancher.io/local-path"

_NFS_IMAGE: Final = "/nfs-subdir-external-provisioner:"
_LOCAL_PATH_IMAGE: Final = "/local-path-provisioner:"
_LOCAL_PATH_FOLDER: Final = "/var/local-path-provisioner"
_ONE_NODE: Final = frozenset({"ReadWriteOnce", "ReadWriteOncePod"})
_VOLUMES: Final = "/api/v1/persistentvolumes"
_SYNC_SECONDS: Final = 30.0
_RETRY_SECONDS: Final = 5.0  # after a rejection
_PACE_SECONDS: Final = 0.2
_log = logging.getLogger("volumes")


@dataclass(frozen=True)
class Provisioner(ABC):
    """A running provisioner. name: in storage classes. user: the user of its requests."""

    name: str
    user: str

    def gives(self, claim: Object) -> bool:
        """Tell whether it provides volumes like the claimed one."""
        spec = claim["spec"]
        return not spec.get("selector") and spec.get("volumeMode", "Filesystem") == "Filesystem"

    @abstractmethod
    def place(self, claim: Object, volume: str) -> Object:
        """Return the fields of a volume's spec with its location. volume: its name."""


@dataclass(frozen=True)
class NfsProvisioner(Provisioner):
    """Provides folders of an NFS server's export."""

    server: str
    path: str

    def place(self, claim: Object, volume: str) -> Object:
        """Return the folder on the server."""
        folder = f"{claim['metadata']['namespace']}-{claim['metadata']['name']}-{volume}"
        return {"nfs": {"server": self.server, "path": f"{self.path.rstrip('/')}/{folder}"}}


@dataclass(frozen=True)
class LocalPathProvisioner(Provisioner):
    """Provides folders of the node where the claim's first pod runs, only for pods of that node."""

    def gives(self, claim: Object) -> bool:
        """Tell whether only one node mounts the volume, and that node is known."""
        modes = frozenset(claim["spec"]["accessModes"])
        return super().gives(claim) and modes <= _ONE_NODE and bool(_annotation(claim, SELECTED_NODE))

    def place(self, claim: Object, volume: str) -> Object:
        """Return the folder and its node."""
        metadata = claim["metadata"]
        path = f"{_LOCAL_PATH_FOLDER}/{volume}_{metadata['namespace']}_{metadata['name']}"
        here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [_annotation(claim, SELECTED_NODE)]}
        return {
            "hostPath": {"path": path, "type": "DirectoryOrCreate"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        }


def provisioners(pods: Iterable[Object]) -> Iterator[Provisioner]:
    """Yield the provisioners whose pods are ready."""
    for pod in filter(is_ready, pods):
        account = pod["spec"].get("serviceAccountName") or "default"
        user = f"system:serviceaccount:{pod['metadata']['namespace']}:{account}"
        for container in pod["spec"]["containers"]:
            variables = {item["name"]: item.get("value") or "" for item in container.get("env") or ()}
            if _NFS_IMAGE in container["image"] and variables.get("PROVISIONER_NAME"):
                server, path = variables.get("NFS_SERVER", ""), variables.get("NFS_PATH", "")
                yield NfsProvisioner(name=variables["PROVISIONER_NAME"], user=user, server=server, path=path)
            elif _LOCAL_PATH_IMAGE in container["image"]:
                yield LocalPathProvisioner(name=LOCAL_PATH, user=user)


def wants_volume(claim: Object, provisioner: Provisioner) -> bool:
    """Tell whether a claim waits for a volume of this provisioner, which it can provide."""
    asked = _annotation(claim, STORAGE_PROVISIONER) == provisioner.name and not claim["spec"].get("volumeName")
    return asked and "deletionTimestamp" not in claim["metadata"] and provisioner.gives(claim)


def volume(claim: Object, storage_class: Object, provisioner: Provisioner) -> Object:
    """Return the volume for a claim."""
    metadata, spec = claim["metadata"], claim["spec"]
    name = f"pvc-{metadata['uid']}"
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    reference |= {key: metadata[key] for key in ("name", "namespace", "resourceVersion", "uid")}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: provisioner.name}},
        "spec": {
            "accessModes": spec["accessModes"],
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "claimRef": reference,
            "mountOptions": storage_class.get("mountOptions") or [],
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
            "storageClassName": storage_class["metadata"]["name"],
            "volumeMode": "Filesystem",
            **provisioner.place(claim, name),
        },
    }


def is_released(found: Object, provisioner: Provisioner) -> bool:
    """Tell whether the provisioner must delete a volume."""
    made = _annotation(found, PROVISIONED_BY) == provisioner.name
    released = (found.get("status") or {}).get("phase") == "Released"
    deleted = found["spec"].get("persistentVolumeReclaimPolicy") == "Delete"
    return made and released and deleted and "deletionTimestamp" not in found["metadata"]


def _annotation(found: Object, name: str) -> str:
    return str((found["metadata"].get("annotations") or {}).get(name) or "")


class Provisioners:
    """Serves the claims of all running provisioners; idle while the cluster has no storage class."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._wake = threading.Event()
        api = Api(account)
        paths = ("/apis/storage.k8s.io/v1/storageclasses", "/api/v1/pods", "/api/v1/persistentvolumeclaims", _VOLUMES)
        self._classes, *self._others = (Store(api, path, lambda key: self._wake.set()) for path in paths)
        self._pods, self._claims, self._found = self._others

    def start(self) -> None:
        """Start to serve, in a thread."""
        threading.Thread(target=self._run, name="volumes", daemon=True).start()

    def _run(self) -> None:
        self._classes.start()
        while not self._classes.all():
            self._wake.wait()
            self._wake.clear()
        for store in self._others:
            store.start()
        while not all(store.wait(_SYNC_SECONDS) for store in self._others):
            _log.info("the API server has not listed pods, claims and volumes yet")
        while True:
            self._serve()
            self._wake.wait(_RETRY_SECONDS)
            # A cluster with thousands of pods changes all the time, and each round reads all of them.
            time.sleep(_PACE_SECONDS)
            self._wake.clear()

    def _serve(self) -> None:
        classes = {found["metadata"]["name"]: found for found in self._classes.all()}
        for provisioner in provisioners(self._pods.all()):
            api = Api(self._account, user=provisioner.user)
            for claim in self._claims.all():
                storage_class = classes.get(claim["spec"].get("storageClassName") or "")
                if storage_class is not None and wants_volume(claim, provisioner):
                    self._try(api.create, _VOLUMES, volume(claim, storage_class, provisioner))
            for found in self._found.all():
                if is_released(found, provisioner):
                    self._try(api.delete, f"{_VOLUMES}/{found['metadata']['name']}", {})

    def _try(self, request: Callable[[str, Object], Object], path: str, body: Object) -> None:
        try:
            with unless_gone():
                request(path, body)
        except ApiError as error:
            _log.info("%s", error)
