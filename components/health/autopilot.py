"""IBM's Autopilot: periodic checks of GPUs, network and storage on each node, with results for jobs and queues.

Its objects are declared one by one, as in the chart autopilot v2.1.3 (IBM/autopilot, helm-charts/autopilot). The chart
has no values for tolerations, the runtime class, the monitor's label and the permissions. Without these it would not
check tainted or guarded nodes (docs/decisions, autopilot-is-declared). Its program requires these names and this
namespace (autopilot-daemon/pkg/utils/functions.go, CreateJob).

A periodic round sets PASS or WARN in the node's label. A deep check sets TESTING while it takes the GPUs of an idle
node, and then PASS, WARN or EVICT. The next round overwrites each of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pulumi

from components.kubernetes import objects, own_node, workloads
from components.kubernetes.constraints import Constraint
from components.kubernetes.manifests import Document, Manifest, register_all
from components.kubernetes.namespace import Namespace, NamespaceArgs
from components.kubernetes.network import Pods, inward
from components.kubernetes.own_node import OwnNodeAccount
from components.kubernetes.placement import NodeGroup
from components.kubernetes.rbac import Account, rule
from components.kubernetes.security import PodSecurity
from components.layer import Layer

NAMESPACE: Final = "autopilot"
ACCOUNT: Final = "autopilot"
POLICY: Final = "mlbatch-autopilot"
"""Name of the admission policy and of the cluster-scoped permissions."""
RUNTIME_CLASS: Final = "nvidia"
"""The RuntimeClass that NVIDIA's GPU operator creates (NVIDIA/gpu-operator, assets/pre-requisites)."""

PVC: Final = "pvc"
CHECKS: Final = ("pciebw", "remapped", "dcgm", "ping", "gpupower", "gpumem", PVC)
"""The checks that a periodic round supports (autopilot-daemon/pkg/healthcheck/healthcheck.go, RunHealthLocalNode). It
logs that any other check is not supported, and continues."""
DEFAULT_CHECKS: Final = ("pciebw", "remapped", "dcgm", "ping", "gpupower")
DEEP_CHECK_GPUS: Final = 8
"""GPUs that a deep check requests on every node (autopilot-daemon/pkg/utils/functions.go, CreateJob)."""

METRICS_PORT: Final = 8081
_API_PORT: Final = 3333
_READINESS_PORT: Final = 8080
_LABELS: Final = {"app": "autopilot"}
_USER: Final = 1000910000
_CAPABILITIES: Final = ("NET_RAW", "NET_ADMIN")
_SEES_ALL_GPUS: Final = "SYS_ADMIN"
"""With this capability NVIDIA's runtime treats a container as privileged, also for a user other than root
(NVIDIA/nvidia-container-toolkit, internal/config/image/privileged.go)."""
_NEVER_HOURS: Final = 876_000
"""A hundred years. Upstream documents 0 as never, but v2.1.3 creates a ticker with it, which panics (pkg/cmd/main.go).
"""
_FAILED_JOB_SECONDS: Final = 1800
_LABEL_PREFIX: Final = "autopilot.ibm.com/"


@dataclass(frozen=True, kw_only=True)
class AutopilotArgs:
    """The arguments of Autopilot.

    image: of Autopilot, with a fixed tag or digest. `latest` reads other units than v2.1.3.
    checks: of a periodic round, some of CHECKS.
    interval_hours: between two rounds.
    deep_check_hours: between two deep checks of an idle node with eight GPUs. 0 for none.
    pvc_storage_class: for the volumes of the check pvc, each with 100 MiB and ReadWriteMany.
    pcie_gbs: a GPU is broken if the bandwidth of its PCIe link is below this, in GB/s.
    nodes: nodes to check.
    runtime_class: of the pods. None for the nodes' default runtime.
    guarded_gpus: the nodes' toolkit shows GPUs only to containers that request them and to privileged ones.
    held: an admission policy restricts each pod to the labels of the pod's node. False if the cluster has no such
    policies.
    pod_security: the mechanism that decides which pods may have capabilities.
    callers: pods that read the metrics. No other pods outside the namespace can connect. None for no NetworkPolicy.
    monitor_labels: labels that Prometheus selects monitors by. None for no ServiceMonitor. Otherwise its CRD must
    exist.
    """

    image: str
    nodes: NodeGroup
    checks: Sequence[str] = DEFAULT_CHECKS
    interval_hours: int = 1
    deep_check_hours: int = 4
    pvc_storage_class: str | None = None
    pcie_gbs: int = 4
    runtime_class: str | None = None
    guarded_gpus: bool = False
    held: bool = True
    pod_security: PodSecurity = PodSecurity.STANDARDS
    callers: Sequence[Pods] | None = None
    monitor_labels: Mapping[str, str] | None = None


class Autopilot(Layer):
    """Run Autopilot on the nodes. Each of its pods has rights only on the labels of that pod's node."""

    namespace: pulumi.Output[str]

    def __init__(self, name: str, args: AutopilotArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:health:Autopilot", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        # Pings need capabilities that only this Pod Security Standard allows.
        namespace = Namespace(NAMESPACE, NamespaceArgs(name=NAMESPACE, privileged=True), child)
        self.namespace = namespace.name
        rights = own_node.register(account(self.namespace, args), name, self)
        foundation = register_all(name, _foundation(self.namespace, args), child, named=True)
        after = pulumi.ResourceOptions(parent=self, depends_on=[*rights, *foundation])
        daemons = Manifest(f"{name}/DaemonSet", daemon_set(self.namespace, args), after)
        if args.monitor_labels is not None:
            Manifest(f"{name}/ServiceMonitor", monitor(self.namespace, args.monitor_labels), child)
        self.ready = [daemons]
        self.register_outputs({"namespace": self.namespace})


def account(namespace: pulumi.Input[str], args: AutopilotArgs) -> OwnNodeAccount:
    """Return the service account. It reads nodes of the cluster and, for deep checks, the GPUs of pods.

    Before a deep check it reads the pods of all namespaces, to find one with GPUs of its node (pkg/utils/functions.go,
    GPUsAvailability).
    """
    return OwnNodeAccount(
        name=ACCOUNT,
        namespace=namespace,
        cluster_name=POLICY,
        who="Autopilot",
        labels=[_LABEL_PREFIX],
        annotations=[_LABEL_PREFIX],
        reads=[
            rule("", ["nodes"], ["list", "watch"]),
            *([rule("", ["pods"], ["list"])] if args.deep_check_hours else []),
        ],
        held=args.held,
    )


def daemon_set(namespace: pulumi.Input[str], args: AutopilotArgs) -> Document:
    """Return the DaemonSet (helm-charts/autopilot/templates/autopilot.yaml)."""
    pod = {
        "serviceAccountName": ACCOUNT,
        **args.nodes.body(),
        **({"runtimeClassName": args.runtime_class} if args.runtime_class is not None else {}),
        "initContainers": [_validation(args)],
        "containers": [_container(args)],
    }
    return workloads.daemon_set(NAMESPACE, namespace, _LABELS, pod, unavailable="10%")


def monitor(namespace: pulumi.Input[str], labels: Mapping[str, str]) -> Document:
    """Return the monitor with the chart's name (templates/servicemonitor.yaml)."""
    endpoint = {"port": "http", "scheme": "http"}
    return objects.service_monitor(
        "autopilot-metrics-monitor", namespace, _LABELS, endpoint, labels={**_LABELS, **labels}
    )


def constraint(args: AutopilotArgs) -> Constraint:
    """Return the SecurityContextConstraints of the pods on OpenShift.

    The chart's also allow privileged pods and mounts of the node's folders (templates/serviceaccount.yaml). The job of
    a deep check needs no extra rights, so OpenShift assigns the most restrictive constraint, `restricted-v2`.
    """
    capabilities = (*_CAPABILITIES, *([_SEES_ALL_GPUS] if args.guarded_gpus else []))
    return Constraint(name=POLICY, namespace=NAMESPACE, account=ACCOUNT, capabilities=capabilities)


def _foundation(namespace: pulumi.Input[str], args: AutopilotArgs) -> list[Document]:
    documents = [
        *_role(namespace, args),
        _service(namespace, "autopilot-healthchecks", "healthcheck", _API_PORT),
        _service(namespace, "autopilot-metrics-service", "http", METRICS_PORT),
    ]
    if args.callers is not None:
        # Clients of the other ports may start checks that take GPUs.
        documents.append(inward(namespace, {METRICS_PORT: [pods.peer() for pods in args.callers]}))
    if args.pod_security is PodSecurity.SCC:
        documents.append(constraint(args).document())
    return documents


def _role(namespace: pulumi.Input[str], args: AutopilotArgs) -> list[Document]:
    """Return the rights in the namespace. The chart grants them in all namespaces.

    They are for pods and endpoints (network/ping-entrypoint.py and utils/runHealthchecks.py), the DaemonSet
    (network/ping-entrypoint.py), jobs (pkg/utils/functions.go) and PVCs (pkg/healthcheck/functions.go).
    """
    rules = [rule("", ["endpoints", "pods"], ["list"]), rule("apps", ["daemonsets"], ["list"])]
    if args.deep_check_hours:
        rules.append(rule("batch", ["jobs"], ["create"]))
    if PVC in args.checks:
        rules.append(rule("", ["persistentvolumeclaims"], ["create", "delete", "get"]))
    return Account(name=ACCOUNT, namespace=namespace).granted(rules, namespace)


def _service(namespace: pulumi.Input[str], name: str, port: str, number: int) -> Document:
    return objects.service(name, namespace, _LABELS, {port: (number, port)}, annotations={})


def _validation(args: AutopilotArgs) -> Document:
    """Return the container that fails until it sees the GPUs.

    The runtime decides this when it creates a container. A deep check's job copies the command and the image, but not
    the environment or the rights. There, it does not wait.
    """
    script = (
        '[ -z "$WAIT_FOR" ] || [ -f "$WAIT_FOR" ] || '
        "{ echo waiting for nvidia device plug-in to be setup; sleep 5; exit 1; }"
    )
    return {
        "name": "device-plugin-validation",
        "image": args.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c"],
        "args": [script],
        "env": [{"name": "WAIT_FOR", "value": "/usr/bin/nvidia-smi"}],
        "securityContext": _security(args, ()),
    }


def _container(args: AutopilotArgs) -> Document:
    return {
        "name": "autopilot",
        "image": args.image,
        "imagePullPolicy": "IfNotPresent",
        "command": [
            "/usr/local/bin/autopilot",
            *("--port", str(_API_PORT), "--loglevel", "2", "--bw", str(args.pcie_gbs)),
            *("--w", str(args.interval_hours)),
            *("--invasive-check-timer", str(args.deep_check_hours or _NEVER_HOURS)),
        ],
        "env": environment(args),
        "ports": [
            {"name": "healthcheck", "containerPort": _API_PORT, "protocol": "TCP"},
            {"name": "http", "containerPort": METRICS_PORT, "protocol": "TCP"},
            {"name": "readinessprobe", "containerPort": _READINESS_PORT, "protocol": "TCP"},
        ],
        "readinessProbe": {
            "httpGet": {"path": "/readinessprobe", "port": _READINESS_PORT, "scheme": "HTTP"},
            "initialDelaySeconds": 15,
            "periodSeconds": 120,
            "timeoutSeconds": 10,
        },
        "livenessProbe": {
            "exec": {"command": ["nvidia-smi"]},
            "initialDelaySeconds": 15,
            "periodSeconds": 120,
            "timeoutSeconds": 15,
        },
        # Upstream advises against limits: NVIDIA's diagnostics take several GB (helm-charts/autopilot/values.yaml).
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}},
        "securityContext": _security(args, _CAPABILITIES),
    }


def environment(args: AutopilotArgs) -> list[Document]:
    """Return the environment of the checks.

    A list of fatal errors must be set, even an empty one. Otherwise a failed dcgm check ends with an error that counts
    as passed (autopilot-daemon/gpu-dcgm/entrypoint.py, patch_node). MLBatch's `autopilot-extended.yaml` omits it.
    """
    volumes = [{"name": "PVC_TEST_STORAGE_CLASS", "value": args.pvc_storage_class}] if PVC in args.checks else []
    return [
        {"name": "PERIODIC_CHECKS", "value": ",".join(args.checks)},
        *volumes,
        {"name": "DCGM_FATAL_ERRORS", "value": ""},
        # A failed deep check leaves only its job, no result. This is long enough for alerts to see it.
        {"name": "INVASIVE_JOB_TTLSEC", "value": str(_FAILED_JOB_SECONDS)},
        *(
            {"name": variable, "valueFrom": {"fieldRef": {"fieldPath": field}}}
            for variable, field in (
                ("NODE_NAME", "spec.nodeName"),
                ("NAMESPACE", "metadata.namespace"),
                ("POD_NAME", "metadata.name"),
            )
        ),
    ]


def _security(args: AutopilotArgs, needed: Sequence[str]) -> Mapping[str, Any]:
    """Return the security context of a container that needs these capabilities and sees the GPUs."""
    added = [*needed, *([_SEES_ALL_GPUS] if args.guarded_gpus else [])]
    return {
        "runAsNonRoot": True,
        "runAsUser": _USER,
        **({} if needed else {"allowPrivilegeEscalation": False}),
        "capabilities": {"drop": ["ALL"], **({"add": added} if added else {})},
    }
