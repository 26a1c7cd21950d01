"""The volumes of a pod on this machine, and its containers for the sandbox."""

import shutil
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from emulator.cluster import downward, images, volumes
from emulator.cluster.api import Api, Object
from emulator.cluster.container import PROBES
from emulator.cluster.errors import MissingError, UnsupportedError
from emulator.cluster.node import NODE_ADDRESS
from emulator.cluster.pod_sandbox import API_PORT, ContainerRun, Mount
from emulator.cluster.probes import Probe

_RENEW_TOKEN_AT = 0.8  # of its lifetime, like a kubelet


@dataclass(frozen=True)
class Host:
    """What a kubelet gives to its pods.

    binaries: folder of the programs for images.
    pods, logs: folders of volumes and of output.
    isolation: the command that creates namespaces.
    server: host and port of the API server.
    join: connects two sockets and takes them over.
    pod: (namespace, name) -> the pod in the API server.
    lookup: (kind, namespace, name) -> ConfigMap or Secret.
    """

    api: Api
    binaries: Path
    pods: Path
    logs: Path
    isolation: Sequence[str]
    server: tuple[str, int]
    join: Callable[[socket.socket, socket.socket], None]
    pod: Callable[[str, str], Object | None]
    lookup: Callable[[str, str, str], Object | None]


class PodContent:
    """The files and processes of one pod, in its own folder."""

    def __init__(self, host: Host, folder: Path, address: str) -> None:
        self._host = host
        self._folder = folder
        self._addresses = {"podIP": address, "hostIP": NODE_ADDRESS}
        self._tokens: dict[tuple[str, int], tuple[float, str]] = {}

    def check(self, pod: Object) -> None:
        """Write the volumes and check that all containers could start.

        Raises UnsupportedError for a feature that would be missing silently, UnknownImageError and MissingError.
        """
        _refuse_unsupported(pod["spec"])
        for spec in pod["spec"]["containers"]:
            images.resolve(spec["image"], self._host.binaries)
        self.write_volumes(pod)
        for spec in pod["spec"]["containers"]:
            self._environment(pod, spec, {})

    def write_volumes(self, pod: Object) -> None:
        """Write the current content of the volumes' sources. Raises MissingError.

        Ignores volumes that no container mounts (kubernetes, pkg/kubelet/volumemanager/populator).
        """
        mounted = {mount["name"] for each in pod["spec"]["containers"] for mount in each.get("volumeMounts") or []}
        for volume in pod["spec"].get("volumes") or []:
            if volume["name"] not in mounted:
                continue
            folder = self._folder / "volumes" / volume["name"]
            files = volumes.content(
                volume,
                {**pod, "status": self._addresses},
                lambda kind, name: self._host.lookup(kind, pod["metadata"]["namespace"], name),
                lambda audience, seconds: self._token(pod, audience, seconds),
            )
            if files is None:
                folder.mkdir(parents=True, exist_ok=True)
            else:
                volumes.write(folder, files)

    def container(self, pod: Object, spec: Object) -> ContainerRun:
        """Return what a container needs to start. Raises MissingError."""
        image = images.resolve(spec["image"], self._host.binaries)
        variables = self._environment(pod, spec, self._base(pod, spec))
        command = (*(spec.get("command") or image.entrypoint), *(spec.get("args") or []))
        name = pod["metadata"]["name"]
        root = self._folder / "roots" / spec["name"]
        root.mkdir(parents=True, exist_ok=True)
        return ContainerRun(
            name=spec["name"],
            command=[downward.expand(text, variables) for text in command],
            environment=variables,
            cwd=spec.get("workingDir") or "/",
            root=str(root),
            files=image.files,
            links=image.links,
            mounts=[
                *self._copies(spec["name"], image.copies),
                *(self._mount(pod, spec, mount) for mount in spec.get("volumeMounts") or []),
            ],
            etc={
                "hosts": f"127.0.0.1 localhost\n{self._addresses['podIP']} {name}\n",
                "hostname": f"{name}\n",
                "passwd": "root:x:0:0:root:/root:/sbin/nologin\n",
                "group": "root:x:0:\n",
                "resolv.conf": "",
            },
            read_only_root=bool((spec.get("securityContext") or {}).get("readOnlyRootFilesystem")),
        )

    def _copies(self, container: str, copies: Mapping[str, str]) -> list[Mount]:
        """Return new copies of the image's folders that a container may write to."""
        found = []
        for path, source in copies.items():
            own = self._folder / "copies" / container / path.strip("/")
            shutil.rmtree(own, ignore_errors=True)
            shutil.copytree(source, own)
            found.append(Mount(str(own), path, read_only=False))
        return found

    def _base(self, pod: Object, spec: Object) -> dict[str, str]:
        """Return the variables of every container."""
        return {
            "PATH": images.resolve(spec["image"], self._host.binaries).path,
            "HOME": "/root",
            "HOSTNAME": pod["metadata"]["name"],
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(API_PORT),
            "KUBERNETES_SERVICE_PORT_HTTPS": str(API_PORT),
        }

    def _environment(self, pod: Object, spec: Object, base: dict[str, str]) -> dict[str, str]:
        """Return a container's own variables, added to `base`."""
        return downward.environment(
            spec,
            {**pod, "status": self._addresses},
            base,
            lambda kind, reference: self._data(kind, pod["metadata"]["namespace"], reference),
        )

    def _data(self, kind: str, namespace: str, reference: Object) -> dict[str, str] | None:
        """Return the keys of an environment reference; see `downward.environment`."""
        found = self._host.lookup(kind, namespace, reference["name"])
        values = {} if found is None else volumes.data_of(found)
        wanted = reference.get("key")
        if found is None or (wanted is not None and wanted not in values):
            if reference.get("optional"):
                return None
            missing = f'{kind.lower()} "{reference["name"]}"'
            raise MissingError(f"{missing} not found" if found is None else f"{missing} has no key {wanted}")
        return {key: value.decode(errors="replace") for key, value in values.items()}

    def _token(self, pod: Object, audience: str, seconds: int) -> str:
        """Return a token of the pod's service account, bound to the pod and renewed before it expires."""
        renew_at, token = self._tokens.get((audience, seconds), (0.0, ""))
        if time.time() < renew_at:
            return token
        metadata = pod["metadata"]
        bound = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
        request: Object = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {
                "audiences": [audience] if audience else [],
                "expirationSeconds": seconds,
                "boundObjectRef": bound,
            },
        }
        account = pod["spec"].get("serviceAccountName") or "default"
        path = f"/api/v1/namespaces/{metadata['namespace']}/serviceaccounts/{account}/token"
        status = self._host.api.create(path, request)["status"]
        # The API server may extend the lifetime; the requested one decides about renewal.
        lifetime = min(seconds, datetime.fromisoformat(status["expirationTimestamp"]).timestamp() - time.time())
        token = str(status["token"])
        self._tokens[audience, seconds] = (time.time() + _RENEW_TOKEN_AT * lifetime, token)
        return token

    def _mount(self, pod: Object, spec: Object, mount: Object) -> Mount:
        source = self._folder / "volumes" / mount["name"]
        sub_path = downward.sub_path(mount, self._environment(pod, spec, {}))
        if sub_path:
            # Like in a kubelet: resolved once and bound as a file, so later updates of the volume do not reach it.
            source = (source / sub_path).resolve()
            if not source.is_relative_to(self._folder):
                raise MissingError(f"subPath {sub_path} leaves the volume {mount['name']}")
            if not source.exists():
                volume = next(item for item in pod["spec"]["volumes"] if item["name"] == mount["name"])
                if "emptyDir" not in volume:
                    raise MissingError(f"volume {mount['name']} has no {sub_path}")
                source.mkdir(parents=True)
        return Mount(str(source), mount["mountPath"], bool(mount.get("readOnly")))


def _refuse_unsupported(spec: Object) -> None:
    for key in ("initContainers", "hostNetwork", "hostPID", "hostIPC"):
        if spec.get(key):
            raise UnsupportedError(f"the local kubelet does not support {key}")
    for container in spec["containers"]:
        if container.get("lifecycle"):
            raise UnsupportedError(f"container {container['name']}: the local kubelet does not support lifecycle hooks")
        for kind in PROBES:
            Probe.of(container, kind, 0.0)
