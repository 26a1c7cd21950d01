"""The Ray clusters of the guide's demos: the objects that codeflare-sdk creates from each ClusterConfiguration.

Sources: redhat-na-ssa/codeflare-sdk, demo-notebooks/guided-demos, for the amounts; codeflare-sdk v0.19,
src/codeflare_sdk/templates/base-template.yaml, for the form. There are two differences: the image is Ray's and not an
individual's, and the memory limit of each container is its request.

OpenShift AI adds the objects that codeflare-sdk expects (red-hat-data-services/codeflare-operator, rhoai-2.16 to 2.21,
pkg/controllers/raycluster_webhook.go): a sign-in with a Route in front of the dashboard, certificates for all
connections, and NetworkPolicies.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pulumi

from components import names
from components.kubernetes.manifests import SKIP_AWAIT, Document
from components.kubernetes.network import guard
from components.kubernetes.quantity import Quantity
from components.kubernetes.security import UNPRIVILEGED
from components.tables import Table
from components.workbench import authority
from components.workloads.interface import USER, pod_security, ray_token

DASHBOARD_PORT: Final = 8265
_TRUSTED: Final = ("SSL_CERT_FILE",)
"""Variable of Python. Arrow, which Ray uses to access a bucket, reads it through Python (apache/arrow,
python/pyarrow/_fs.pyx)."""
_EVERYWHERE: Final = "0.0.0.0"  # noqa: S104 - of the pod, which a policy lets the project alone reach
_PORTS: Final = {"gcs": 6379, "dashboard": DASHBOARD_PORT, "client": 10001}
_HEADS: Final = {"ray.io/node-type": "head"}
"""Label that KubeRay sets on the heads of Ray clusters."""


@dataclass(frozen=True, kw_only=True)
class Node:
    """Equal pods of a Ray cluster.

    cpu: request.
    most_cpu: limit of CPU.
    memory: request and limit.
    gpus: of each pod.
    """

    cpu: str
    most_cpu: str
    memory: str
    gpus: int = 0

    def requests(self, gpu_resource: str) -> Mapping[str, str]:
        """Return the requests of a pod by resource name."""
        gpus = {gpu_resource: str(self.gpus)} if self.gpus else {}
        return {names.CPU: self.cpu, names.MEMORY: self.memory, **gpus}


@dataclass(frozen=True, kw_only=True)
class Demo:
    """A demo's cluster: a head and a number of workers. notebook: the file that uses it."""

    cluster: str
    notebook: str
    head: Node
    worker: Node
    workers: int

    def requests(self) -> Mapping[str, Quantity]:
        """Return the requests of the whole cluster by resource name."""
        head, worker = (
            {name: Quantity.parse(amount) for name, amount in node.requests(names.GPU).items()}
            for node in (self.head, self.worker)
        )
        none = Quantity.parse(0)
        asked = {name: head.get(name, none) + worker.get(name, none) * self.workers for name in (*head, *worker)}
        return {name: amount for name, amount in asked.items() if amount.nano}


class _Demos(Table):
    demos: tuple[Demo, ...]


DEMOS: Final[Mapping[str, Demo]] = {demo.cluster: demo for demo in _Demos.load(__name__).demos}


@dataclass(frozen=True, kw_only=True)
class RayClusterArgs:
    """The arguments of the clusters.

    image: of Ray, with its version.
    user: UID in the pods. None if the cluster assigns UIDs to each namespace (OpenShift).
    trusts: trust the cluster's certificate authority, for the object store.
    """

    demos: Sequence[Demo]
    image: str
    version: str
    gpu_resource: str = names.GPU
    user: int | None = USER
    trusts: bool = False


def ray_cluster(demo: Demo, namespace: pulumi.Input[str], queue: pulumi.Input[str], args: RayClusterArgs) -> Document:
    """Return the RayCluster in a LocalQueue.

    Kueue admits all its pods at once, and adds the flavor's tolerations.
    """
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {
            "name": demo.cluster,
            "namespace": namespace,
            "labels": {names.QUEUE_LABEL: queue},
            "annotations": dict(SKIP_AWAIT),
        },
        "spec": {
            "rayVersion": args.version,
            "headGroupSpec": {
                "enableIngress": False,
                "serviceType": "ClusterIP",
                "rayStartParams": {"block": "true", "dashboard-host": _EVERYWHERE, "num-gpus": str(demo.head.gpus)},
                "template": {"spec": {**_pod("ray-head", demo.head, args, _PORTS), **ray_token(signs_in=True)}},
            },
            "workerGroupSpecs": [
                {
                    "groupName": f"small-group-{demo.cluster}",
                    "replicas": demo.workers,
                    "minReplicas": demo.workers,
                    "maxReplicas": demo.workers,
                    "rayStartParams": {"block": "true", "num-gpus": str(demo.worker.gpus)},
                    "template": {
                        "spec": {**_pod("machine-learning", demo.worker, args, {}), **ray_token(signs_in=False)}
                    },
                }
            ],
        },
    }


def boundary(namespace: pulumi.Input[str]) -> Document:
    """Return the policy that lets only the project's pods connect to the heads, whose interfaces have no password.

    It is the least restrictive of OpenShift AI's policies for a cluster, and exists before the first of them.
    """
    own: list[Document] = [{"podSelector": {}}]
    heads = {"matchLabels": dict(_HEADS)}
    return guard("ray-clusters", namespace, pods=heads, callers=own, ports=(DASHBOARD_PORT, _PORTS["client"]))


def _pod(name: str, node: Node, args: RayClusterArgs, ports: Mapping[str, int]) -> Document:
    requests = node.requests(args.gpu_resource)
    container: Document = {
        "name": name,
        "image": args.image,
        "imagePullPolicy": "IfNotPresent",
        "resources": {"requests": dict(requests), "limits": {**requests, names.CPU: node.most_cpu}},
        "lifecycle": {"preStop": {"exec": {"command": ["/bin/sh", "-c", "ray stop"]}}},
        "securityContext": dict(UNPRIVILEGED),
    }
    if ports:
        container["ports"] = [{"name": each, "containerPort": port, "protocol": "TCP"} for each, port in ports.items()]
    pod = {"securityContext": pod_security(args.user), "containers": [container]}
    return authority.trusting(pod, _TRUSTED) if args.trusts else pod
