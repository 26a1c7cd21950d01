"""KubeRay: creates the pods of RayClusters and RayJobs.

Installed as in MLBatch (project-codeflare/mlbatch, `setup.k8s/kuberay`). Objects: ray-project/kuberay,
`ray-operator/config`. The role is upstream's, except that the lease is in its own namespace. It calls the dashboards of
Ray clusters through a proxy in its pod (`dashboard_proxy.py`), ten at a time. Upstream's single worker would wait two
seconds for each dashboard that does not answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import pulumi
import yaml

from components import names
from components.artifacts import Release
from components.job_kinds import RAY_CLUSTER, RAY_JOB
from components.kubernetes.controller import ONE_REPLICA, ControllerPods
from components.kubernetes.manifests import Document
from components.kubernetes.programs import Program
from components.kubernetes.resources import Resources
from components.kubernetes.volumes import volumes
from components.queueing.job_operators import LOG_LEVEL, JobOperator, JobOperatorLayer, service

NAME: Final = "kuberay-operator"
KINDS: Final = (RAY_CLUSTER.kind, RAY_JOB.kind)

_LABELS: Final = {"app.kubernetes.io/name": "kuberay", "app.kubernetes.io/component": NAME}

PROXY: Final = Program(module="components.queueing.dashboard_proxy")
_PROXY: Final = "dashboard-proxy"
_PROXY_FILES: Final = f"{NAME}-{_PROXY}"
_PROXY_PORT: Final = 8989
_PROXY_RESOURCES: Final = Resources(cpu_request="50m", memory_request="64Mi", cpu_limit="500m", memory_limit="256Mi")
_WORKERS: Final = 10


@dataclass(frozen=True, kw_only=True)
class KubeRayArgs:
    """The arguments of the operator.

    definitions: CRDs of Ray's three kinds. The operator does not start if one is missing. The first one has the image
    of the container `kuberay-operator`.
    """

    definitions: Sequence[Release]
    role: Release
    python: str
    pods: ControllerPods = ONE_REPLICA


class KubeRay(JobOperatorLayer):
    """Install the operator."""

    kinds: ClassVar[Sequence[str]] = KINDS

    def __init__(self, name: str, args: KubeRayArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:queueing:KubeRay", name, None, opts)
        metrics = service(NAME, _LABELS, {"monitoring-port": (8080, 8080)})
        self._install(name, job_operator(args), args.definitions, (metrics, proxy_files()))
        self.register_outputs({})


def job_operator(args: KubeRayArgs) -> JobOperator:
    """Return the operator's pod. As upstream, it uses a lease even with a single replica."""
    probe = {
        "httpGet": {"path": "/metrics", "port": "metrics", "scheme": "HTTP"},
        "initialDelaySeconds": 10,
        "periodSeconds": 5,
        "failureThreshold": 5,
    }
    files = [PROXY.volume(_PROXY_FILES)]
    return JobOperator(
        name=NAME,
        labels=_LABELS,
        image=args.definitions[0].images[NAME],
        arguments=[LOG_LEVEL, f"--reconcile-concurrency={_WORKERS}"],
        ports={"metrics": 8080},
        probes={"livenessProbe": probe, "readinessProbe": probe},
        # It calls the API server by HTTPS, which Go's client proxies through another variable.
        extra={"env": [{"name": "HTTP_PROXY", "value": f"http://127.0.0.1:{_PROXY_PORT}"}]},
        sidecars=[PROXY.container(_PROXY, args.python, [str(_PROXY_PORT)], _PROXY_RESOURCES, files)],
        volumes=volumes(files),
        annotations=PROXY.checksum(),
        pods=args.pods,
        cluster_rules=cluster_rules(args.role),
    )


def proxy_files() -> Document:
    """Return the ConfigMap with the proxy's program."""
    return PROXY.config_map(_PROXY_FILES, names.SYSTEM_NAMESPACE, _LABELS)


def cluster_rules(role: Release) -> list[Document]:
    """Return the rules of upstream's role without those for leases, which a role in its own namespace has."""
    document = yaml.safe_load(role.manifest)
    return [rule for rule in document["rules"] if "leases" not in rule["resources"]]
