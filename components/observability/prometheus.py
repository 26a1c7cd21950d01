"""Prometheus, Alertmanager and Grafana: the chart kube-prometheus-stack.

Nothing is reachable from outside of the cluster: `kubectl port-forward` is the way in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pulumi

from components import names
from components.artifacts import LocatedChart
from components.kubernetes import objects
from components.kubernetes.charts import Chart, ChartArgs
from components.kubernetes.manifests import Document, Manifest
from components.kubernetes.namespace import NamespaceArgs, namespace_body
from components.kubernetes.network import Pods, inward
from components.kubernetes.placement import NodeGroup
from components.kubernetes.quantity import Quantity
from components.kubernetes.resources import Resources
from components.kubernetes.security import PodSecurity
from components.layer import Layer
from components.observability import accounts, object_state, receivers
from components.observability.receivers import Receiver
from components.tenancy import slack

NAMESPACE: Final = "monitoring"
"""Unless the settings name another."""
RELEASE: Final = accounts.RELEASE
GRAFANA_SERVICE: Final = f"{RELEASE}-grafana"
GRAFANA_USER: Final = "admin"
NODE_EXPORTER_PORT: Final = 9100
MONITOR_LABELS: Final[Mapping[str, str]] = {"release": RELEASE}
"""Prometheus takes up the monitors and rules that carry this label, in every namespace (`serviceMonitorSelector`)."""

BY_NODE: Final[Mapping[str, Any]] = {
    "sourceLabels": ["__meta_kubernetes_pod_node_name"],
    "targetLabel": "node",
    "action": "replace",
}
"""Of a monitor of pods that are one to a node: the node's name as the label `node`, whatever the exporter calls it.

NVIDIA's has `Hostname` or `hostname` by its version (NVIDIA/dcgm-exporter, pull request 655), and the node exporter the
address of its port."""

_ADMIN_SECRET: Final = "grafana-admin"
_UNREACHABLE: Final = ("kubeControllerManager", "kubeScheduler", "kubeEtcd", "kubeProxy")
"""Parts of the control plane that managed clusters run out of sight. Watched nevertheless, they would be reported as
down."""
_EVERYWHERE: Final = {"operator": "Exists"}
_KEPT: Final = {"whenDeleted": "Retain", "whenScaled": "Retain"}
_NODE_LABELS: Final = ("autopilot.ibm.com/gpuhealth", "autopilot.ibm.com/dcgm.level.3")
"""What alerts look for on nodes; kube-state-metrics shows no label unless it is told to."""

_KUEUE_METRICS: Final = {"app.kubernetes.io/name": "kueue", "app.kubernetes.io/component": "metrics-service"}
"""Labels of the Service that Kueue's manifest has for its metrics; two others share the rest of its labels."""
_APPWRAPPER_METRICS: Final = {"app.kubernetes.io/name": "appwrapper", "app.kubernetes.io/component": "controller"}
"""Labels of both Services of AppWrapper's manifest (config/default); the one for its metrics alone names a port."""

_OPERATOR: Final = Resources(cpu_request="100m", memory_request="128Mi", cpu_limit="500m", memory_limit="512Mi")
_ALERTMANAGER: Final = Resources(cpu_request="50m", memory_request="64Mi", cpu_limit="200m", memory_limit="256Mi")
_GRAFANA: Final = Resources(cpu_request="100m", memory_request="256Mi", cpu_limit="1", memory_limit="512Mi")
_SIDECAR: Final = Resources(cpu_request="20m", memory_request="96Mi", cpu_limit="200m", memory_limit="192Mi")
_STATE_METRICS: Final = Resources(cpu_request="50m", memory_request="128Mi", cpu_limit="500m", memory_limit="512Mi")
_NODE_EXPORTER: Final = Resources(cpu_request="50m", memory_request="32Mi", cpu_limit="500m", memory_limit="128Mi")
PROMETHEUS: Final = Resources(cpu_request="500m", memory_request="2Gi", cpu_limit="2", memory_limit="4Gi")
"""Enough for some hundred GPUs, each with about 25 series a quarter of a minute."""


@dataclass(frozen=True, kw_only=True)
class MonitoringArgs:
    """What to install.

    chart: kube-prometheus-stack. namespace: of all that it installs.
    grafana_password: of Grafana's user admin; kept secret.
    storage: of Prometheus's volume. storage_class: of all volumes; None for the cluster's default class.
    alertmanager_storage, grafana_storage: of theirs; None for none, so that what people silence, or change in Grafana,
        goes with the pod.
    retention_days: how long metrics are kept; the oldest go earlier when they fill nine tenths of the volume.
    receivers: whom alerts reach. Without any they stand in Alertmanager's page alone.
    definitions: install those of the chart's kinds. Off where the cluster has its own, which may be older.
    node_exporter_port: on each node, where another exporter may have the usual one.
    pod_security: what decides which pods may use their node. privileged: let every account of the chart run privileged
        pods, where that is decided by accounts; otherwise the node exporter's may use its node, and no other's.
    nodes: for services; the node exporter is everywhere.
    closed: only pods of the namespace connect to its pods. The node exporter is on its node's network, which no policy
        holds for.
    """

    chart: LocatedChart
    grafana_password: pulumi.Input[str]
    storage: Quantity
    storage_class: str | None
    retention_days: int
    nodes: NodeGroup
    namespace: str = NAMESPACE
    receivers: Sequence[Receiver] = ()
    alertmanager_storage: Quantity | None = None
    grafana_storage: Quantity | None = None
    definitions: bool = True
    node_exporter_port: int = NODE_EXPORTER_PORT
    pod_security: PodSecurity = PodSecurity.STANDARDS
    privileged: bool = False
    closed: bool = False
    resources: Resources = PROMETHEUS


class Monitoring(Layer):
    """Create the namespace and install the chart into it.

    Custom resource definitions come with the chart and stay when it goes; Helm does not upgrade them. Volumes go with
    the namespace.
    """

    namespace: pulumi.Output[str]
    """Grafana's, where it looks for dashboards."""

    access: Mapping[str, pulumi.Input[str]]
    """How an administrator reaches Grafana: command, the address that it opens, user and password, which is secret."""

    ready: Sequence[pulumi.Resource]
    """Depend on these to create monitors and rules."""

    def __init__(self, name: str, args: MonitoringArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:observability:Monitoring", name, None, opts)
        # Node exporter's pods need the node's network and folders.
        body = namespace_body(NamespaceArgs(name=args.namespace, privileged=True))
        namespace = Manifest(NAMESPACE, body, pulumi.ResourceOptions(parent=self))
        self.namespace = namespace.object_name
        if args.closed:
            Manifest(f"{name}/NetworkPolicy", inward(self.namespace), pulumi.ResourceOptions(parent=self))
        secret = Manifest(
            f"{name}/{_ADMIN_SECRET}",
            objects.secret(
                _ADMIN_SECRET, self.namespace, {"admin-user": GRAFANA_USER, "admin-password": args.grafana_password}
            ),
            pulumi.ResourceOptions(parent=self, additional_secret_outputs=["data"]),
        )
        urls = []
        if args.receivers:
            body = receivers.secret(args.receivers, self.namespace)
            options = pulumi.ResourceOptions(parent=self, additional_secret_outputs=["data"])
            urls = [Manifest(f"{name}/{receivers.SECRET}", body, options)]
        chart = Chart(
            name,
            ChartArgs(chart=args.chart, namespace=self.namespace, release=RELEASE, values=monitoring_values(args)),
            pulumi.ResourceOptions(parent=self, depends_on=[secret, *urls, *self._rights(name, args)]),
        )
        self.access = grafana_access(args)
        self.ready = chart.ready
        self.register_outputs({"namespace": self.namespace})

    def _rights(self, name: str, args: MonitoringArgs) -> list[Manifest]:
        if args.pod_security is not PodSecurity.SCC:
            return []
        documents = accounts.rights(args.namespace, self.namespace, privileged=args.privileged)
        options = pulumi.ResourceOptions(parent=self)
        return [Manifest(f"{name}/{document['kind']}", document, options) for document in documents]


class KueueMonitor(pulumi.ComponentResource):
    """Have Prometheus read Kueue's metrics. Kueue and the kind ServiceMonitor must exist.

    Kueue asks the API server whether the reader may get `/metrics`; the chart gives Prometheus's account that right.
    """

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:observability:KueueMonitor", name, None, opts)
        Manifest(f"{name}/ServiceMonitor", kueue_monitor(), pulumi.ResourceOptions(parent=self))
        self.register_outputs({})


class AppWrapperMonitor(pulumi.ComponentResource):
    """Have Prometheus read AppWrapper's metrics, as Kueue's. AppWrapper and the kind ServiceMonitor must exist."""

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:observability:AppWrapperMonitor", name, None, opts)
        Manifest(f"{name}/ServiceMonitor", appwrapper_monitor(), pulumi.ResourceOptions(parent=self))
        self.register_outputs({})


class SlackMonitor(pulumi.ComponentResource):
    """Have Prometheus read what the slack controller knows of nodes and limits. The kind PodMonitor must exist."""

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:observability:SlackMonitor", name, None, opts)
        Manifest(f"{name}/PodMonitor", slack_monitor(), pulumi.ResourceOptions(parent=self))
        self.register_outputs({})


def scrapers(namespace: str = NAMESPACE) -> Pods:
    """Return Prometheus's own pods, as its operator labels them.

    Source: prometheus-operator/prometheus-operator, pkg/prometheus/server/statefulset.go.
    """
    return Pods(namespace=namespace, labels={"app.kubernetes.io/name": "prometheus"})


def grafana_access(args: MonitoringArgs) -> Mapping[str, pulumi.Input[str]]:
    """Return how Grafana is reached, which has no address outside of the cluster."""
    return {
        "command": f"kubectl --namespace {args.namespace} port-forward service/{GRAFANA_SERVICE} 3000:80",
        "address": "http://localhost:3000",
        "user": GRAFANA_USER,
        "password": pulumi.Output.secret(args.grafana_password),
    }


def monitoring_values(args: MonitoringArgs) -> Mapping[str, Any]:
    """Return the chart's values (prometheus-community/helm-charts, charts/kube-prometheus-stack/values.yaml)."""
    nodes = args.nodes.body()
    exporter_port = {"port": args.node_exporter_port, "targetPort": args.node_exporter_port}
    return {
        **({} if args.definitions else {"crds": {"enabled": False}}),
        **{part: {"enabled": False} for part in (*_UNREACHABLE, *_elsewhere(args.pod_security))},
        "prometheus": {
            "service": {"type": "ClusterIP"},
            "prometheusSpec": {
                **nodes,
                "retention": f"{args.retention_days}d",
                "retentionSize": retention_size(args.storage),
                "resources": args.resources.body(),
                "storageSpec": _template(args, args.storage),
                **_kept(args),
            },
        },
        "alertmanager": {
            "service": {"type": "ClusterIP"},
            "alertmanagerSpec": {
                **nodes,
                "resources": _ALERTMANAGER.body(),
                **_alertmanager_volume(args),
                **({"secrets": [receivers.SECRET]} if args.receivers else {}),
            },
            **({"config": receivers.configuration(args.receivers)} if args.receivers else {}),
        },
        "prometheusOperator": {
            **nodes,
            "resources": _OPERATOR.body(),
            # The webhook only checks the syntax of rules, which are this program's; it would cost a hook that may
            # change every webhook of the cluster. The operator's certificate is the webhook's.
            "admissionWebhooks": {"enabled": False},
            "tls": {"enabled": False},
            **_own_alone(args.namespace),
        },
        "grafana": {
            **nodes,
            "adminUser": GRAFANA_USER,
            "admin": {"existingSecret": _ADMIN_SECRET, "userKey": "admin-user", "passwordKey": "admin-password"},
            "service": {"type": "ClusterIP"},
            "ingress": {"enabled": False},
            "resources": _GRAFANA.body(),
            # By default the sidecar reads ConfigMaps and Secrets of all namespaces.
            "rbac": {"namespaced": True},
            "sidecar": {"resources": _SIDECAR.body(), "dashboards": {"searchNamespace": args.namespace}},
            **_grafana_volume(args),
            "grafana.ini": {
                "analytics": {"check_for_updates": False, "reporting_enabled": False},
                "users": {"allow_sign_up": False},
                "auth.anonymous": {"enabled": False},
            },
        },
        "kube-state-metrics": {
            **nodes,
            **object_state.values(),
            "resources": _STATE_METRICS.body(),
            "metricLabelsAllowlist": [f"nodes=[{','.join(_NODE_LABELS)}]"],
        },
        "prometheus-node-exporter": {
            "resources": _NODE_EXPORTER.body(),
            "tolerations": [dict(_EVERYWHERE)],
            "prometheus": {"monitor": {"relabelings": [dict(BY_NODE)]}},
            # The chart's port is the exporter's, and its Service goes on leading to 9100.
            **({"service": exporter_port} if args.node_exporter_port != NODE_EXPORTER_PORT else {}),
        },
    }


def _elsewhere(pod_security: PodSecurity) -> Sequence[str]:
    """Return what the chart looks for in kube-system, where OpenShift does not have it: its DNS is in openshift-dns.

    An empty dashboard would be all that comes of it (templates/exporters/core-dns; openshift/cluster-dns-operator).
    """
    return ["coreDns"] if pod_security is PodSecurity.SCC else []


def _own_alone(namespace: str) -> Mapping[str, Sequence[str]]:
    """Return that the operator looks after what runs in its own namespace; monitors and rules it reads everywhere.

    Otherwise it takes up every Prometheus and Alertmanager of the cluster, and where another operator is, the two undo
    each other's work for ever; and its Alertmanager would send to whom anybody's AlertmanagerConfig names
    (prometheus-operator/prometheus-operator, cmd/operator/main.go).
    """
    kinds = ("prometheusInstance", "alertmanagerInstance", "alertmanagerConfig", "thanosRulerInstance")
    return {f"{kind}Namespaces": [namespace] for kind in kinds}


def slack_monitor() -> Document:
    """Return the monitor of the slack controller, whose pod has no Service."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PodMonitor",
        "metadata": {"name": slack.CONTROLLER, "namespace": names.SYSTEM_NAMESPACE, "labels": dict(MONITOR_LABELS)},
        "spec": {
            "selector": {"matchLabels": dict(slack.LABELS)},
            "podMetricsEndpoints": [{"port": slack.PORT_NAME, "path": "/metrics"}],
        },
    }


def kueue_monitor() -> Document:
    """Return the monitor, as upstream's config/components/prometheus has it."""
    return _operator_monitor("kueue-metrics", _KUEUE_METRICS)


def appwrapper_monitor() -> Document:
    """Return the monitor, as upstream's config/prometheus has it."""
    return _operator_monitor("appwrapper-metrics", _APPWRAPPER_METRICS)


def _operator_monitor(name: str, service: Mapping[str, str]) -> Document:
    """Return the monitor of an operator's Service.

    Operators make the certificate of this port themselves, so nobody can vouch for it; the port is inside of the
    cluster.
    """
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {"name": name, "namespace": names.SYSTEM_NAMESPACE, "labels": dict(MONITOR_LABELS)},
        "spec": {
            "selector": {"matchLabels": dict(service)},
            "endpoints": [
                {
                    "port": "https",
                    "path": "/metrics",
                    "scheme": "https",
                    "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
                    "tlsConfig": {"insecureSkipVerify": True},
                }
            ],
        },
    }


def _template(args: MonitoringArgs, storage: Quantity) -> Mapping[str, Any]:
    return {
        "volumeClaimTemplate": {
            "spec": {
                **_storage_class(args),
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": str(storage)}},
            }
        }
    }


def _storage_class(args: MonitoringArgs) -> Mapping[str, str]:
    return {"storageClassName": args.storage_class} if args.storage_class is not None else {}


def _kept(args: MonitoringArgs) -> Mapping[str, Any]:
    """Return that claims stay, as a field that older definitions do not have.

    StatefulSets keep their claims where nothing is said (kubernetes.io, concepts/workloads/controllers/statefulset).
    """
    return {"persistentVolumeClaimRetentionPolicy": dict(_KEPT)} if args.definitions else {}


def _alertmanager_volume(args: MonitoringArgs) -> Mapping[str, Any]:
    if args.alertmanager_storage is None:
        return {}
    return {"storage": _template(args, args.alertmanager_storage), **_kept(args)}


def _grafana_volume(args: MonitoringArgs) -> Mapping[str, Any]:
    if args.grafana_storage is None:
        return {}
    return {
        "persistence": {
            "enabled": True,
            "type": "sts",
            **_storage_class(args),
            "accessModes": ["ReadWriteOnce"],
            "size": str(args.grafana_storage),
            "finalizers": ["kubernetes.io/pvc-protection"],
        },
        # It would change the volume's owner as root; the pod's group may write there.
        "initChownData": {"enabled": False},
    }


def retention_size(storage: Quantity) -> str:
    """Return nine tenths of a volume, in Prometheus's unit: what is left is for the log of what was not yet sorted."""
    mebibytes = storage.nano // 10**9 * 9 // 10 // 2**20
    return f"{mebibytes}MB"
