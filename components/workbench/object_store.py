"""An object store with S3's API, for checkpoints of distributed workloads.

The default is SeaweedFS. Its only identity is the workbench's. MinIO, which the guide installs, is optional. Its
project has ended (minio/minio#21714) and removed its images, so a maintained fork takes its place. The guide's has the
credentials `rootuser` and `rootuser123`, 16 GiB of memory and no volume, so a restart loses all data.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import pulumi

from components import catalogue
from components.kubernetes import objects
from components.kubernetes.manifests import SKIP_AWAIT, Document, Manifest
from components.kubernetes.namespace import Namespace, NamespaceArgs
from components.kubernetes.network import Pods, guard
from components.kubernetes.placement import ANYWHERE, NodeGroup
from components.kubernetes.resources import Resources
from components.kubernetes.security import UNPRIVILEGED
from components.kubernetes.volumes import AccessMode
from components.layer import Layer
from components.workbench import authority
from components.workloads.interface import USER, Storage, one_replica

LABEL: Final = "app.kubernetes.io/name"
_DATA: Final = "/data"
_CONFIG: Final = "/etc/seaweedfs"
_CONFIG_FILE: Final = "s3.json"
_CERTIFICATE: Final = "/etc/certificate"
_RESOURCES: Final = Resources(cpu_request="250m", memory_request="1Gi", cpu_limit="2", memory_limit="2Gi")


class StoreKind(StrEnum):
    """The store. The value is also the name of its namespace and its objects."""

    SEAWEEDFS = "seaweedfs"
    MINIO = "minio"


PORTS: Final[Mapping[StoreKind, int]] = {StoreKind.SEAWEEDFS: 8333, StoreKind.MINIO: 9000}
_READY: Final = {StoreKind.SEAWEEDFS: "/status", StoreKind.MINIO: "/minio/health/ready"}
"""Sources: kubeflow/pipelines, seaweedfs-deployment.yaml; minio/minio, docs/metrics/healthcheck/README.md."""


@dataclass(frozen=True, kw_only=True)
class ObjectStoreArgs:
    """The arguments of the store.

    access_key, secret_key: of its only user.
    storage: size of its volume.
    storage_class: None for the cluster's default.
    clients: the namespace whose pods use it.
    user: UID in the pod. None if the cluster assigns UIDs to each namespace (OpenShift).
    tls: serve TLS with a certificate of OpenShift's authority.
    protect: the engine refuses to delete or replace its volume.
    """

    kind: StoreKind
    image: str
    access_key: pulumi.Input[str]
    secret_key: pulumi.Input[str]
    storage: str
    storage_class: str | None = None
    clients: str
    nodes: NodeGroup = ANYWHERE
    user: int | None = USER
    tls: bool = True
    protect: bool = True

    @property
    def scheme(self) -> str:
        """URL scheme of the store."""
        return "https" if self.tls else "http"

    @property
    def certificate(self) -> str:
        """Name of the Secret with its certificate."""
        return f"{self.kind}-certificate"


class ObjectStore(Layer):
    """Run the store in its own namespace. Only its clients can connect to it."""

    endpoint: str
    """Its URL for clients in the cluster."""

    def __init__(self, name: str, args: ObjectStoreArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:workbench:ObjectStore", name, None, opts)
        kind, port = args.kind.value, PORTS[args.kind]
        namespace = Namespace(kind, NamespaceArgs(name=kind), pulumi.ResourceOptions(parent=self))
        child = pulumi.ResourceOptions(parent=self)
        kept = pulumi.ResourceOptions(parent=self, protect=args.protect)
        secret = Manifest(
            f"{name}/Secret",
            objects.secret(kind, namespace.name, credentials(args)),
            pulumi.ResourceOptions(parent=self, additional_secret_outputs=["data"]),
        )
        storage = Storage(storage_class=args.storage_class, size=args.storage, access=AccessMode.ONE_NODE)
        needs = [
            secret,
            Manifest(f"{name}/PersistentVolumeClaim", storage.claim(kind, namespace.name), kept),
            Manifest(f"{name}/NetworkPolicy", boundary(args, namespace.name), child),
        ]
        # The Service requests the certificate that the pod waits for.
        service = Manifest(f"{name}/Service", _service(args, namespace.name), child)
        server = Manifest(
            f"{name}/Deployment",
            deployment(args, namespace.name),
            pulumi.ResourceOptions(parent=self, depends_on=[*needs, service]),
        )
        self.endpoint = f"{args.scheme}://{kind}.{kind}.svc:{port}"
        self.ready = [server, service]
        self.register_outputs({"endpoint": self.endpoint})


def credentials(args: ObjectStoreArgs) -> Mapping[str, pulumi.Input[str]]:
    """Return the credentials that the store reads, by file or variable."""
    if args.kind is StoreKind.MINIO:
        return {"MINIO_ROOT_USER": args.access_key, "MINIO_ROOT_PASSWORD": args.secret_key}
    keys = pulumi.Output.all(args.access_key, args.secret_key)
    return {_CONFIG_FILE: keys.apply(lambda both: _identities(str(both[0]), str(both[1])))}


def _identities(access_key: str, secret_key: str) -> str:
    """Return SeaweedFS's file of identities (seaweedfs wiki, S3-Credentials). Demos create their own buckets."""
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    keys = [{"accessKey": access_key, "secretKey": secret_key}]
    return json.dumps({"identities": [{"name": "workbench", "credentials": keys, "actions": actions}]})


def boundary(args: ObjectStoreArgs, namespace: pulumi.Input[str]) -> Document:
    """Return the policy that allows only the clients' namespace to connect, and no outgoing connections."""
    clients = [Pods(namespace=args.clients).peer()]
    return guard(args.kind.value, namespace, pods={}, callers=clients, ports=[PORTS[args.kind]], closed=True)


def deployment(args: ObjectStoreArgs, namespace: pulumi.Input[str]) -> Document:
    """Return the Deployment. It has one replica, because only one node at a time can mount its volume."""
    name = args.kind.value
    container: Document = {
        "name": name,
        "image": args.image,
        "imagePullPolicy": "IfNotPresent",
        "ports": [{"name": "s3", "containerPort": PORTS[args.kind], "protocol": "TCP"}],
        "readinessProbe": {
            "httpGet": {"path": _READY[args.kind], "port": "s3", "scheme": args.scheme.upper()},
            "periodSeconds": 10,
        },
        "resources": _RESOURCES.body(),
        "securityContext": dict(UNPRIVILEGED),
        **_program(args.kind),
    }
    config = [{"name": "config", "secret": {"secretName": name}}] if args.kind is StoreKind.SEAWEEDFS else []
    mounted = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}, *config]
    if args.tls:
        flags, files = _certificate(args)
        container["command"] += flags
        container["volumeMounts"].append({"name": "certificate", "mountPath": _CERTIFICATE, "readOnly": True})
        mounted.append({"name": "certificate", "secret": files})
    return one_replica(name, namespace, container, mounted, label=LABEL, nodes=args.nodes, user=args.user)


def _program(kind: StoreKind) -> Document:
    """Return the container's command and mounts.

    Sources: kubeflow/pipelines, manifests/kustomize/third-party/seaweedfs/single-pod; seaweedfs wiki, S3-Configuration;
    the chart of minio 5.2.0 as hobbyist-guide-to-rhoai renders it, configs/08/minio/deployment.yaml. MinIO also has the
    console. Its fork has no program `minio`: the image's entrypoint calls the server.
    """
    data = {"name": "data", "mountPath": _DATA}
    if kind is StoreKind.MINIO:
        return {
            "command": [catalogue.MINIO_ENTRYPOINT, "server", _DATA, f"--address=:{PORTS[kind]}"],
            "envFrom": [{"secretRef": {"name": kind.value}}],
            "volumeMounts": [data],
        }
    return {
        "command": [
            "weed",
            "server",
            f"-dir={_DATA}",
            "-ip=localhost",
            "-ip.bind=0.0.0.0",
            "-filer",
            "-s3",
            f"-s3.config={_CONFIG}/{_CONFIG_FILE}",
            "-master.volumePreallocate=false",
        ],
        "volumeMounts": [data, {"name": "config", "mountPath": _CONFIG, "readOnly": True}],
    }


def _certificate(args: ObjectStoreArgs) -> tuple[list[str], Document]:
    """Return the options to serve TLS on the store's port, and the Secret volume with its files.

    SeaweedFS and MinIO reload a renewed certificate. Sources: seaweedfs/seaweedfs 4.00, weed/command/s3.go,
    startS3Server; minio's documentation, "Network Encryption (TLS)".
    """
    secret: Document = {"secretName": args.certificate}
    if args.kind is StoreKind.MINIO:
        named = {"tls.crt": "public.crt", "tls.key": "private.key"}
        return [f"--certs-dir={_CERTIFICATE}"], {
            **secret,
            "items": [{"key": key, "path": path} for key, path in named.items()],
        }
    return [f"-s3.cert.file={_CERTIFICATE}/tls.crt", f"-s3.key.file={_CERTIFICATE}/tls.key"], secret


def _service(args: ObjectStoreArgs, namespace: pulumi.Input[str]) -> Document:
    name, port = args.kind.value, PORTS[args.kind]
    annotations = {**SKIP_AWAIT, **(authority.certified(args.certificate) if args.tls else {})}
    document = objects.service(name, namespace, {LABEL: name}, {"s3": (port, "s3")}, annotations)
    document["spec"]["type"] = "ClusterIP"
    return document
