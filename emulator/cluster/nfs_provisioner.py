"""What the NFS subdir external provisioner does for claims, done in its name while its pod is simulated.

A volume that names a folder of the export; no folder is made, for there is no server. It acts with the rights of the
pod's own service account. Source: kubernetes-sigs/nfs-subdir-external-provisioner, cmd/nfs-subdir-external-provisioner/
provisioner.go, and what it is made of, sigs.k8s.io/sig-storage-lib-external-provisioner, controller/controller.go.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from emulator.cluster.api import Api, ApiError, Object, is_ready, unless_gone
from emulator.cluster.credentials import Account
from emulator.cluster.store import Store

PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
STORAGE_PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"
"""Annotation by which the claims' controller says who is to make the volume."""

_IMAGE: Final = "/nfs-subdir-external-provisioner:"
_VOLUMES: Final = "/api/v1/persistentvolumes"
_SYNC_SECONDS: Final = 30.0
_RETRY_SECONDS: Final = 5.0  # after a refusal
_log = logging.getLogger("volumes")


@dataclass(frozen=True)
class Provisioner:
    """A provisioner that runs: its name in storage classes, the export, and the user as which it acts."""

    name: str
    server: str
    path: str
    user: str


def provisioners(pods: Iterable[Object]) -> Iterator[Provisioner]:
    """Yield the provisioners whose pods are ready."""
    for pod in pods:
        for container in pod["spec"]["containers"]:
            variables = {item["name"]: item.get("value") or "" for item in container.get("env") or ()}
            if _IMAGE in container["image"] and is_ready(pod) and variables.get("PROVISIONER_NAME"):
                account = pod["spec"].get("serviceAccountName") or "default"
                yield Provisioner(
                    name=variables["PROVISIONER_NAME"],
                    server=variables.get("NFS_SERVER", ""),
                    path=variables.get("NFS_PATH", ""),
                    user=f"system:serviceaccount:{pod['metadata']['namespace']}:{account}",
                )


def wants_volume(claim: Object, provisioner: Provisioner) -> bool:
    """Tell whether a claim waits for a volume of this provisioner, and asks for nothing that it cannot give."""
    metadata, spec = claim["metadata"], claim["spec"]
    asked = (metadata.get("annotations") or {}).get(STORAGE_PROVISIONER) == provisioner.name
    possible = not spec.get("selector") and spec.get("volumeMode", "Filesystem") == "Filesystem"
    return asked and possible and not spec.get("volumeName") and "deletionTimestamp" not in metadata


def volume(claim: Object, storage_class: Object, provisioner: Provisioner) -> Object:
    """Return the volume for a claim."""
    metadata, spec = claim["metadata"], claim["spec"]
    name = f"pvc-{metadata['uid']}"
    folder = f"{metadata['namespace']}-{metadata['name']}-{name}"
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
            "nfs": {"server": provisioner.server, "path": f"{provisioner.path.rstrip('/')}/{folder}"},
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
            "storageClassName": storage_class["metadata"]["name"],
            "volumeMode": "Filesystem",
        },
    }


def is_released(found: Object, provisioner: Provisioner) -> bool:
    """Tell whether a volume is the provisioner's to delete."""
    made = (found["metadata"].get("annotations") or {}).get(PROVISIONED_BY) == provisioner.name
    released = (found.get("status") or {}).get("phase") == "Released"
    deleted = found["spec"].get("persistentVolumeReclaimPolicy") == "Delete"
    return made and released and deleted and "deletionTimestamp" not in found["metadata"]


class NfsProvisioners:
    """Serves the claims of every provisioner that runs; idle while the cluster has no storage class."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._wake = threading.Event()
        api = Api(account)
        paths = ("/apis/storage.k8s.io/v1/storageclasses", "/api/v1/pods", "/api/v1/persistentvolumeclaims", _VOLUMES)
        self._classes, *self._others = (Store(api, path, lambda key: self._wake.set()) for path in paths)
        self._pods, self._claims, self._found = self._others

    def start(self) -> None:
        """Serve from now on, in a thread of its own."""
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
