"""IBM's Autopilot: periodic checks of GPUs, network and storage on each node, whose verdict jobs and queues go by.

Declared object by object, as the chart autopilot v2.1.3 has it (IBM/autopilot, helm-charts/autopilot). The chart has no
value for tolerations, the runtime class, the monitor's label and the permissions, so that it would check nothing on
tainted or guarded nodes (docs/decisions, autopilot-is-declared). Names and namespace are those that its program looks
for (autopilot-daemon/pkg/utils/functions.go, CreateJob).

A periodic round leaves PASS or WARN in the node's label; a deep check has TESTING there while it takes the GPUs of an
idle node, and leaves PASS, WARN or EVICT. The next round writes over each of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pulumi

from components.kubernetes import own_node
from components.kubernetes.constraints import Constraint
from components.kubernetes.manifests import SKIP_AWAIT, Document, Manifest
from components.kubernetes.namespace import Namespace, NamespaceArgs
from components.kubernetes.network import Pods, inward
from components.kubernetes.own_node import OwnNodeAccount
from components.kubernetes.placement import NodeGroup
from components.kubernetes.security import PodSecurity
from components.layer import Layer

NAMESPACE: Final = "autopilot"
ACCOUNT: Final = "autopilot"
POLICY: Final = "mlbatch-autopilot"
"""Of the admission policy and of the permissions that are not in the namespace."""
RUNTIME_CLASS: Final = "nvidia"
"""The RuntimeClass that NVIDIA's GPU operator makes (NVIDIA/gpu-operator, assets/pre-requisites)."""

PVC: Final = "pvc"
CHECKS: Final = ("pciebw", "remapped", "dcgm", "ping", "gpupower", "gpumem", PVC)
"""Those that a periodic round knows (autopilot-daemon/pkg/healthcheck/healthcheck.go, RunHealthLocalNode); of any other
it notes that it is not supported and goes on."""
DEFAULT_CHECKS: Final = ("pciebw", "remapped", "dcgm", "ping", "gpupower")
DEEP_CHECK_GPUS: Final = 8
"""What a deep check asks for, whatever the node has (autopilot-daemon/pkg/utils/functions.go, CreateJob)."""

METRICS_PORT: Final = 8081
_API_PORT: Final = 3333
_READINESS_PORT: Final = 8080
_LABELS: Final = {"app": "autopilot"}
_USER: Final = 1000910000
_CAPABILITIES: Final = ("NET_RAW", "NET_ADMIN")
_SEES_ALL_GPUS: Final = "SYS_ADMIN"
"""By this capability NVIDIA's runtime knows a privileged container, also of a user other than root
(NVIDIA/nvidia-container-toolkit, internal/config/image/privileged.go)."""
_NEVER_HOURS: Final = 876_000
"""A hundred years. Of 0, which upstream documents as never, v2.1.3 makes a ticker that panics (pkg/cmd/main.go)."""
_FAILED_JOB_SECONDS: Final = 1800
_NVIDIA_SMI: Final = "/usr/bin/nvidia-smi"
_LABEL_PREFIX: Final = "autopilot.ibm.com/"
_RBAC: Final = "rbac.authorization.k8s.io"


@dataclass(frozen=True, kw_only=True)
class AutopilotArgs:
    """What to install.

    image: of Autopilot, in a tag or digest that stays: `latest` reads other units than v2.1.3.
    checks: of a periodic round, some of CHECKS. interval_hours: between two rounds.
    deep_check_hours: between two deep checks of an idle node with eight GPUs; 0 for none.
    pvc_storage_class: whose volumes the check pvc makes, each of 100 MiB and ReadWriteMany.
    pcie_gbs: bandwidth of a GPU's PCIe link in GB/s, below which it is broken.
    nodes: those that are checked.
    runtime_class: of the pods; None for the nodes' default runtime.
    guarded_gpus: the nodes' toolkit shows GPUs to containers that ask for them, and to privileged ones alone.
    held: an admission policy keeps each pod to its own node's labels; off where the cluster has no such policies.
    pod_security: what decides which pods may have capabilities.
    callers: pods that read the metrics, beside which nobody connects from outside of the namespace; None for no
        NetworkPolicy. monitor_labels: by which a Prometheus finds its monitors; None for no ServiceMonitor, whose kind
        has to exist otherwise.
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

    def __post_init__(self) -> None:
        """Refuse checks that cannot run; raises ValueError."""
        if unknown := [check for check in self.checks if check not in CHECKS]:
            raise ValueError(f"{unknown[0]} is none of {', '.join(CHECKS)}")
        if PVC in self.checks and self.pvc_storage_class is None:
            raise ValueError("the check pvc needs a storage class")


class Autopilot(Layer):
    """Run Autopilot on the nodes, each of its pods with rights on its own node's labels."""

    namespace: pulumi.Output[str]

    def __init__(self, name: str, args: AutopilotArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:health:Autopilot", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        # Pings need capabilities that no Pod Security Standard but this one allows.
        namespace = Namespace(NAMESPACE, NamespaceArgs(name=NAMESPACE, privileged=True), child)
        self.namespace = namespace.name
        rights = own_node.register(account(self.namespace, args), name, self)
        foundation = [
            Manifest(f"{name}/{document['kind']}/{document['metadata']['name']}", document, child)
            for document in _foundation(self.namespace, args)
        ]
        after = pulumi.ResourceOptions(parent=self, depends_on=[*rights, *foundation])
        daemons = Manifest(f"{name}/DaemonSet", daemon_set(self.namespace, args), after)
        if args.monitor_labels is not None:
            Manifest(f"{name}/ServiceMonitor", monitor(self.namespace, args.monitor_labels), child)
        self.ready = [daemons]
        self.register_outputs({"namespace": self.namespace})


def account(namespace: pulumi.Input[str], args: AutopilotArgs) -> OwnNodeAccount:
    """Return the account: of the cluster it reads nodes, and for deep checks the GPUs that pods have.

    Before a deep check it looks at the pods of all namespaces for one that has GPUs of its node
    (pkg/utils/functions.go, GPUsAvailability).
    """
    pods = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
    return OwnNodeAccount(
        name=ACCOUNT,
        namespace=namespace,
        cluster_name=POLICY,
        who="Autopilot",
        labels=[_LABEL_PREFIX],
        annotations=[_LABEL_PREFIX],
        reads=[
            {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]},
            *([pods] if args.deep_check_hours else []),
        ],
        held=args.held,
    )


def daemon_set(namespace: pulumi.Input[str], args: AutopilotArgs) -> Document:
    """Return the DaemonSet (helm-charts/autopilot/templates/autopilot.yaml)."""
    runtime = {"runtimeClassName": args.runtime_class} if args.runtime_class is not None else {}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        # A node whose GPUs do not answer shows in its pod, and must not hold up everything else.
        "metadata": {
            "name": NAMESPACE,
            "namespace": namespace,
            "labels": dict(_LABELS),
            "annotations": dict(SKIP_AWAIT),
        },
        "spec": {
            "selector": {"matchLabels": dict(_LABELS)},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
            "template": {
                "metadata": {"labels": dict(_LABELS)},
                "spec": {
                    "serviceAccountName": ACCOUNT,
                    **args.nodes.body(),
                    **runtime,
                    "initContainers": [_validation(args)],
                    "containers": [_container(args)],
                },
            },
        },
    }


def monitor(namespace: pulumi.Input[str], labels: Mapping[str, str]) -> Document:
    """Return the monitor, under the chart's name (templates/servicemonitor.yaml)."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {
            "name": "autopilot-metrics-monitor",
            "namespace": namespace,
            "labels": {**_LABELS, **labels},
        },
        "spec": {
            "selector": {"matchLabels": dict(_LABELS)},
            "endpoints": [{"port": "http", "path": "/metrics", "scheme": "http"}],
        },
    }


def constraint(args: AutopilotArgs) -> Constraint:
    """Return what OpenShift lets the pods have.

    The chart's own also lets a pod be privileged and mount the node's folders (templates/serviceaccount.yaml).
    The job of a deep check asks for nothing: OpenShift takes the narrowest constraint for it, `restricted-v2`.
    """
    return Constraint(
        name=POLICY,
        namespace=NAMESPACE,
        account=ACCOUNT,
        capabilities=_capabilities(args),
    )


def _foundation(namespace: pulumi.Input[str], args: AutopilotArgs) -> list[Document]:
    documents = [
        *_role(namespace, args),
        _service(namespace, "autopilot-healthchecks", "healthcheck", _API_PORT),
        _service(namespace, "autopilot-metrics-service", "http", METRICS_PORT),
    ]
    if args.callers is not None:
        # Whoever reaches the other ports may start checks that take GPUs.
        documents.append(inward(namespace, {METRICS_PORT: [pods.peer() for pods in args.callers]}))
    if args.pod_security is PodSecurity.SCC:
        documents.append(constraint(args).document())
    return documents


def _role(namespace: pulumi.Input[str], args: AutopilotArgs) -> list[Document]:
    """Return the rights in the namespace, which the chart gives in all of them.

    Each is asked for: pods and endpoints by network/ping-entrypoint.py and utils/runHealthchecks.py, the DaemonSet by
    the former, jobs by pkg/utils/functions.go, claims by pkg/healthcheck/functions.go.
    """
    metadata = {"name": NAMESPACE, "namespace": namespace}
    rules: list[Document] = [
        {"apiGroups": [""], "resources": ["endpoints", "pods"], "verbs": ["list"]},
        {"apiGroups": ["apps"], "resources": ["daemonsets"], "verbs": ["list"]},
    ]
    if args.deep_check_hours:
        rules.append({"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create"]})
    if PVC in args.checks:
        verbs = ["create", "delete", "get"]
        rules.append({"apiGroups": [""], "resources": ["persistentvolumeclaims"], "verbs": verbs})
    return [
        {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": rules},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": NAMESPACE},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
        },
    ]


def _service(namespace: pulumi.Input[str], name: str, port: str, number: int) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(_LABELS)},
        "spec": {
            "selector": dict(_LABELS),
            "ports": [{"name": port, "port": number, "targetPort": port, "protocol": "TCP"}],
        },
    }


def _validation(args: AutopilotArgs) -> Document:
    """Return the container that ends until the runtime shows the GPUs, which it decides as a container is made.

    A deep check's job copies command and image, but neither environment nor rights: there it has nothing to wait for.
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
        "env": [{"name": "WAIT_FOR", "value": _NVIDIA_SMI}],
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

    Without a list of fatal errors, even an empty one, a failed dcgm check ends in an error that counts as passed
    (autopilot-daemon/gpu-dcgm/entrypoint.py, patch_node); the seed's extended values leave it out.
    """
    volumes = [{"name": "PVC_TEST_STORAGE_CLASS", "value": args.pvc_storage_class}] if PVC in args.checks else []
    return [
        {"name": "PERIODIC_CHECKS", "value": ",".join(args.checks)},
        *volumes,
        {"name": "DCGM_FATAL_ERRORS", "value": ""},
        # A deep check that fails leaves no verdict, only its job: long enough for alerts to see it.
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


def _capabilities(args: AutopilotArgs) -> tuple[str, ...]:
    return (*_CAPABILITIES, *([_SEES_ALL_GPUS] if args.guarded_gpus else []))


def _security(args: AutopilotArgs, needed: Sequence[str]) -> Mapping[str, Any]:
    """Return the security context of a container that needs these capabilities, and sees the GPUs."""
    added = [*needed, *([_SEES_ALL_GPUS] if args.guarded_gpus else [])]
    return {
        "runAsNonRoot": True,
        "runAsUser": _USER,
        **({} if needed else {"allowPrivilegeEscalation": False}),
        "capabilities": {"drop": ["ALL"], **({"add": added} if added else {})},
    }
