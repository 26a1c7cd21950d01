"""Prometheus, Alertmanager and Grafana: the chart kube-prometheus-stack.

None of them is reachable from outside the cluster. Use `kubectl port-forward`.
"""

import json
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
from components.kubernetes.network import Pods, guard, inward
from components.kubernetes.placement import NodeGroup
from components.kubernetes.quantity import Quantity
from components.kubernetes.resources import Resources
from components.kubernetes.security import PodSecurity
from components.layer import Layer
from components.observability import accounts, receivers
from components.observability.receivers import Receiver
from components.tables import Table
from components.tenancy import slack


class _ObjectState(Table):
    values: dict[str, Any]


NAMESPACE: Final = "monitoring"
"""The default namespace."""
RELEASE: Final = accounts.RELEASE
GRAFANA_SERVICE: Final = f"{RELEASE}-grafana"
GRAFANA_USER: Final = "admin"
PORT: Final = 9090
"""Port of Prometheus's pods and of its Service."""
NODE_EXPORTER_PORT: Final = 9100
MONITOR_LABELS: Final[Mapping[str, str]] = {"release": RELEASE}
"""Prometheus selects monitors and rules with this label in all namespaces (`serviceMonitorSelector`)."""

BY_NODE: Final[Mapping[str, Any]] = {
    "sourceLabels": ["__meta_kubernetes_pod_node_name"],
    "targetLabel": "node",
    "action": "replace",
}
"""Relabeling for monitors of pods that run once on each node. It sets the label `node` to the node's name, for any
exporter.

NVIDIA's exporter uses `Hostname` or `hostname`, depending on its version (NVIDIA/dcgm-exporter, pull request 655). The
node exporter uses the address of its port.
"""

OBJECT_STATE: Final = _ObjectState.load("components.observability.object_state").values
_ADMIN_SECRET: Final = "grafana-admin"
_UNREACHABLE: Final = ("kubeControllerManager", "kubeScheduler", "kubeEtcd", "kubeProxy")
"""Parts of the control plane that are hidden in managed clusters. Prometheus would report them as down."""
_NODE_LABELS: Final = ("autopilot.ibm.com/gpuhealth", "autopilot.ibm.com/dcgm.level.3")
"""Labels of nodes that alerts use. kube-state-metrics exports only the labels in its configuration."""

_KUEUE_METRICS: Final = {"app.kubernetes.io/name": "kueue", "app.kubernetes.io/component": "metrics-service"}
"""Labels of the Service for metrics in Kueue's manifest. Two other Services share its other labels."""
_RED_HATS: Final = {"app.openshift.io/name": "kueue"}
"""Label of the pods of Red Hat build of Kueue, whose NetworkPolicies admit only OpenShift's Prometheus
(openshift/kueue-operator, bindata/assets/kueue-operator/networkpolicy). Pods of another Kueue do not have it."""
_RED_HATS_PORT: Final = 8443
_APPWRAPPER_METRICS: Final = {"app.kubernetes.io/name": "appwrapper", "app.kubernetes.io/component": "controller"}
"""Labels of both Services in AppWrapper's manifest (config/default). Only the one for metrics has a named port."""

_OPERATOR: Final = Resources(cpu_request="100m", memory_request="128Mi", cpu_limit="500m", memory_limit="512Mi")
_ALERTMANAGER: Final = Resources(cpu_request="50m", memory_request="64Mi", cpu_limit="200m", memory_limit="256Mi")
_GRAFANA: Final = Resources(cpu_request="100m", memory_request="256Mi", cpu_limit="1", memory_limit="512Mi")
_SIDECAR: Final = Resources(cpu_request="20m", memory_request="96Mi", cpu_limit="200m", memory_limit="192Mi")
_STATE_METRICS: Final = Resources(cpu_request="50m", memory_request="128Mi", cpu_limit="500m", memory_limit="512Mi")
_NODE_EXPORTER: Final = Resources(cpu_request="50m", memory_request="32Mi", cpu_limit="500m", memory_limit="128Mi")
_PROMETHEUS: Final = Resources(cpu_request="500m", memory_request="2Gi", cpu_limit="2", memory_limit="4Gi")
"""Enough for some hundred GPUs, each with about 25 series every 15 seconds."""


@dataclass(frozen=True, kw_only=True)
class MonitoringArgs:
    """The arguments of the monitoring.

    grafana_password: of Grafana's user admin. Kept secret.
    storage_class: of all volumes. None for the cluster's default.
    alertmanager_storage, grafana_storage: of their volumes. With None, silences and changes in Grafana are lost with
    the pod.
    retention_days: how long metrics are kept. The oldest are deleted earlier when they fill nine tenths of the volume.
    receivers: receivers of alerts. Without any, alerts are only in Alertmanager's page.
    definitions: install the chart's CRDs. False if the cluster has its own, which may be older.
    node_exporter_port: on each node. Another exporter may already use the default port.
    pod_security: the mechanism that decides which pods may use their node.
    privileged: if service accounts decide, all those of the chart may run privileged pods. Otherwise only the node
    exporter's may use its node.
    nodes: where services run. The node exporter runs on all nodes.
    closed: only pods of the namespace can connect to its pods. The node exporter uses its node's network, where
    policies do not apply.
    alert_readers: pods that may connect to Prometheus nevertheless.
    kueue_api: API version of Kueue's objects.
    gpu_resource: what their quotas count.
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
    alert_readers: Sequence[Pods] = ()
    kueue_api: str = names.KUEUE_API
    gpu_resource: str = names.GPU


class Monitoring(Layer):
    """Create the namespace and install the chart into it.

    The chart installs the CRDs and leaves them when it is deleted. Helm does not upgrade them. Volumes are deleted with
    the namespace.
    """

    namespace: pulumi.Output[str]
    """Grafana's namespace, where it looks for dashboards."""

    access: Mapping[str, pulumi.Input[str]]
    """An administrator's access to Grafana: command, its URL, user and password, which is secret."""

    def __init__(self, name: str, args: MonitoringArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:observability:Monitoring", name, None, opts)
        # Node exporter's pods need the node's network and folders.
        labels = unwatched(args.pod_security)
        body = namespace_body(NamespaceArgs(name=args.namespace, privileged=True, labels=labels))
        namespace = Manifest(NAMESPACE, body, pulumi.ResourceOptions(parent=self))
        self.namespace = namespace.object_name
        if args.closed:
            policy = inward(self.namespace, {PORT: [pods.peer() for pods in args.alert_readers]})
            Manifest(f"{name}/NetworkPolicy", policy, pulumi.ResourceOptions(parent=self))
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


@dataclass(frozen=True, kw_only=True)
class KueueMonitorArgs:
    """namespace: of Kueue. reader: Prometheus, if others have installed Kueue. None for the platform's Kueue."""

    namespace: str = names.SYSTEM_NAMESPACE
    reader: Pods | None = None


class KueueMonitor(pulumi.ComponentResource):
    """Let Prometheus read Kueue's metrics. Kueue and the CRD of ServiceMonitor must exist.

    Kueue asks the API server whether the reader may get `/metrics`. The chart grants this right to Prometheus's service
    account.
    """

    def __init__(self, name: str, args: KueueMonitorArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:observability:KueueMonitor", name, None, opts)
        Manifest(f"{name}/ServiceMonitor", kueue_monitor(args.namespace), pulumi.ResourceOptions(parent=self))
        if args.reader is not None:
            policy = guard(
                "mlbatch-kueue-metrics",
                args.namespace,
                pods={"matchLabels": _RED_HATS},
                callers=[args.reader.peer()],
                ports=[_RED_HATS_PORT],
            )
            Manifest(f"{name}/NetworkPolicy", policy, pulumi.ResourceOptions(parent=self))
        self.register_outputs({})


class AppWrapperMonitor(pulumi.ComponentResource):
    """Let Prometheus read AppWrapper's metrics, like Kueue's. AppWrapper and the CRD of ServiceMonitor must exist."""

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:observability:AppWrapperMonitor", name, None, opts)
        Manifest(f"{name}/ServiceMonitor", appwrapper_monitor(), pulumi.ResourceOptions(parent=self))
        self.register_outputs({})


class SlackMonitor(pulumi.ComponentResource):
    """Let Prometheus read the slack controller's metrics of nodes and limits. The CRD of PodMonitor must exist."""

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:observability:SlackMonitor", name, None, opts)
        Manifest(f"{name}/PodMonitor", slack_monitor(), pulumi.ResourceOptions(parent=self))
        self.register_outputs({})


def unwatched(pod_security: PodSecurity) -> Mapping[str, str]:
    """Return labels of namespaces with monitors or rules that only the platform's Prometheus is to read.

    OpenShift's Prometheus for user projects would read these rules, too. It limits each query to the rule's namespace,
    so alerts about missing metrics would fire. It rejects monitors that name the file of a token
    (openshift/cluster-monitoring-operator, assets/prometheus-user-workload/prometheus.yaml).
    """
    return {"openshift.io/user-monitoring": "false"} if pod_security is PodSecurity.SCC else {}


def address(namespace: str = NAMESPACE) -> str:
    """Return Prometheus's address in the cluster (templates/prometheus/service.yaml)."""
    return f"http://{RELEASE}-prometheus.{namespace}.svc:{PORT}"


def scrapers(namespace: str = NAMESPACE) -> Pods:
    """Return Prometheus's pods by the labels of its operator.

    Source: prometheus-operator/prometheus-operator, pkg/prometheus/server/statefulset.go.
    """
    return Pods(namespace=namespace, labels={"app.kubernetes.io/name": "prometheus"})


def grafana_access(args: MonitoringArgs) -> Mapping[str, pulumi.Input[str]]:
    """Return the access to Grafana, which has no address outside the cluster."""
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
                "resources": _PROMETHEUS.body(),
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
            # The webhook only checks the syntax of rules, which this program writes. It would need a hook that may
            # change all webhooks of the cluster. The operator's certificate belongs to the webhook.
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
            **_object_state(args),
            "resources": _STATE_METRICS.body(),
            "metricLabelsAllowlist": [f"nodes=[{','.join(_NODE_LABELS)}]"],
        },
        "prometheus-node-exporter": {
            "resources": _NODE_EXPORTER.body(),
            "tolerations": [{"operator": "Exists"}],
            "prometheus": {"monitor": {"relabelings": [dict(BY_NODE)]}},
            # The chart's port is the exporter's. Without this, its Service would still use 9100.
            **({"service": exporter_port} if args.node_exporter_port != NODE_EXPORTER_PORT else {}),
        },
    }


def _elsewhere(pod_security: PodSecurity) -> Sequence[str]:
    """Return the chart's parts that look for the DNS in kube-system. On OpenShift, it is in openshift-dns.

    They would only create an empty dashboard (templates/exporters/core-dns; openshift/cluster-dns-operator).
    """
    return ["coreDns"] if pod_security is PodSecurity.SCC else []


def _own_alone(namespace: str) -> Mapping[str, Sequence[str]]:
    """Return values that limit the operator to its own namespace. It still reads monitors and rules of all namespaces.

    Otherwise it manages every Prometheus and Alertmanager of the cluster. With another operator, the two would revert
    each other's changes forever. Its Alertmanager would also send alerts to the receivers of every AlertmanagerConfig
    (prometheus-operator/prometheus-operator, cmd/operator/main.go).
    """
    kinds = ("prometheusInstance", "alertmanagerInstance", "alertmanagerConfig", "thanosRulerInstance")
    return {f"{kind}Namespaces": [namespace] for kind in kinds}


def slack_monitor() -> Document:
    """Return the monitor of the slack controller, whose pod has no Service."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PodMonitor",
        "metadata": objects.metadata(slack.CONTROLLER, names.SYSTEM_NAMESPACE, labels=MONITOR_LABELS),
        "spec": {
            "selector": {"matchLabels": dict(slack.LABELS)},
            "podMetricsEndpoints": [{"port": slack.PORT_NAME, "path": "/metrics"}],
        },
    }


def kueue_monitor(namespace: str) -> Document:
    """Return the monitor of upstream's config/components/prometheus. namespace: of Kueue."""
    return _operator_monitor("kueue-metrics", namespace, _KUEUE_METRICS)


def appwrapper_monitor() -> Document:
    """Return the monitor of upstream's config/prometheus."""
    return _operator_monitor("appwrapper-metrics", names.SYSTEM_NAMESPACE, _APPWRAPPER_METRICS)


def _operator_monitor(name: str, namespace: str, service: Mapping[str, str]) -> Document:
    """Return the monitor of an operator's Service.

    Operators create the certificate of this port themselves, so it cannot be verified. The port is reachable only in
    the cluster.
    """
    endpoint = {
        "port": "https",
        "scheme": "https",
        "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
        "tlsConfig": {"insecureSkipVerify": True},
    }
    return objects.service_monitor(name, namespace, service, endpoint, labels=MONITOR_LABELS)


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
    """Return the field that keeps PVCs, if the chart's CRDs are installed. Older CRDs do not have it.

    Without the field, StatefulSets keep their PVCs (kubernetes.io, concepts/workloads/controllers/statefulset).
    """
    kept = {"whenDeleted": "Retain", "whenScaled": "Retain"}
    return {"persistentVolumeClaimRetentionPolicy": kept} if args.definitions else {}


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
        # It would change the volume's owner as root. The pod's group can already write there.
        "initChownData": {"enabled": False},
    }


def retention_size(storage: Quantity) -> str:
    """Return nine tenths of a volume in Prometheus's unit. The rest is for the write-ahead log."""
    mebibytes = storage.nano // 10**9 * 9 // 10 // 2**20
    return f"{mebibytes}MB"


def _object_state(args: MonitoringArgs) -> Mapping[str, Any]:
    """Return values of the chart kube-state-metrics: the kinds of objects that it reads."""
    values = json.loads(json.dumps(OBJECT_STATE).replace(names.GPU, args.gpu_resource))
    group, version = args.kueue_api.split("/")
    for resource in values["customResourceState"]["config"]["spec"]["resources"]:
        if resource["groupVersionKind"]["group"] == group:
            resource["groupVersionKind"]["version"] = version
    return dict(values)
