"""Report a cluster's platform: nodes, queues, teams, workloads. Does not change the cluster."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import kubernetes
from kubernetes.client.rest import RESTClientObject
from kubernetes.config import ConfigException, kube_config
from kubernetes.dynamic.exceptions import NotFoundError, ResourceNotFoundError
from kubernetes.utils.quantity import parse_quantity
from yaml import YAMLError

from runner import nvshare
from runner.repairs import repairs
from runner.waiting import awaited

GPU: Final = "nvidia.com/gpu"
SHARED_GPU: Final = "nvshare.com/gpu"
"""Resource that nodes with NVshare offer in place of GPUs."""
MLOPS_LABEL: Final = "mlbatch/part-of=mlops"
TEAM_LABEL: Final = "mlbatch-team-namespace=true"
UNENFORCED: Final = "mlbatch/unenforced"
KUEUE: Final = ("kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1")
"""The versions of Kueue's API, preferred first. The Kueue of OpenShift AI 2 serves only the second."""
APPWRAPPER: Final = "workload.codeflare.dev/v1beta2"
_OF_APPWRAPPER: Final = "workload.codeflare.dev/appwrapper"
_MEMBERS: Final = {"User": "", "Group": "group "}
"""Prefix of a member's name, by the kind of subject."""
_ACCOUNTS: Final = "system:serviceaccount"
"""Prefix of service accounts and their groups. On OpenShift, those of each namespace may pull its images."""

_NODE_KINDS: Final = ("node.kubernetes.io/instance-type", "nvidia.com/gpu.product")
"""Labels with a node's machine type: from a cloud, otherwise from feature discovery."""
_UNANSWERED: Final = re.compile(r'failed calling webhook "([^"]+)": (?:failed to call webhook: )?(.*)')
"""The API server's message about an object whose webhook does not answer (k8s.io/apiserver v0.34.2,
`pkg/util/webhook/error.go` and `pkg/admission/plugin/webhook`)."""
SECONDS: Final = 60.0
"""Seconds that another person's cluster may take to send data."""

Client = kubernetes.dynamic.DynamicClient


def connect(kubeconfig: Path | None, context: str | None = None, seconds: float | None = None) -> Client:
    """Return a client of a kubeconfig's context. None means the default of kubectl.

    seconds: longest time without data from the cluster, before one retry. None for no limit. Raises
    kubernetes.config.ConfigException if the file or the context is invalid, and the Kubernetes client's exceptions
    if the cluster does not answer.
    """
    configuration = kubernetes.client.Configuration()
    configuration.retries = None if seconds is None else 1
    with _valid(kubeconfig) as file:
        api = kubernetes.config.new_client_from_config(file, context=context, client_configuration=configuration)
    if seconds is not None:
        api.rest_client = _Impatient(configuration, seconds)
    return Client(api)


def namespace(kubeconfig: Path | None, context: str | None) -> str | None:
    """Return the namespace of a kubeconfig's context, None if it names none. Raises ConfigException as `connect`."""
    with _valid(kubeconfig) as file:
        config = kube_config.KubeConfigMerger(file or kube_config.KUBE_CONFIG_DEFAULT_LOCATION).config
        chosen = kube_config.KubeConfigLoader(config, active_context=context).current_context
        found: str | None = chosen["context"].get("namespace")
    return found


@contextmanager
def _valid(kubeconfig: Path | None) -> Iterator[str | None]:
    """Raise ConfigException for each exception that the client raises about an invalid kubeconfig."""
    try:
        yield str(kubeconfig) if kubeconfig is not None else None
    except (YAMLError, AttributeError, KeyError, TypeError, ValueError, OSError) as error:
        raise ConfigException(" ".join(str(error).split())) from error


def message(error: Any) -> str:
    """Return the API server's message in an exception of the client, or the reason if it has none."""
    if not getattr(error, "body", None):
        # Streams put the headers and the body of a refusal into the reason (websocket-client, _handshake.py).
        return str(getattr(error, "reason", None) or error).partition(" -+-+- ")[0]
    body = error.body.decode() if isinstance(error.body, bytes) else str(error.body)
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body


class _Impatient(RESTClientObject):
    """Waits this number of seconds for data."""

    def __init__(self, configuration: kubernetes.client.Configuration, seconds: float) -> None:
        super().__init__(configuration)
        self._seconds = seconds

    def request(self, *arguments: Any, **options: Any) -> Any:
        """Send a request, as the client does."""
        bounded = options | {"_request_timeout": options.get("_request_timeout") or (self._seconds, self._seconds)}
        return RESTClientObject.request(self, *arguments, **bounded)


class Section(NamedTuple):
    """A table of the report."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def text(self) -> str:
        """Return the table in columns."""
        return table(self.title, self.header, self.rows)

    def content(self) -> list[dict[str, Any]]:
        """Return the rows for JSON, by the words of the header in lower case."""
        return [dict(zip(map(str.lower, self.header), row, strict=True)) for row in self.rows]


def platform_report(client: Client) -> str:
    """Return a description of the platform on a cluster.

    Raises the Kubernetes client's exceptions if the cluster does not answer.
    """
    return "\n\n".join(section.text() for section in sections(client))


def sections(client: Client) -> list[Section]:
    """Return the tables of the report. Raises the Kubernetes client's exceptions if the cluster does not answer."""
    nodes = objects(client, "v1", "Node")
    queues = ["CLUSTERQUEUE", "GPU QUOTA", "LENDABLE", "IN USE", "BORROWED", "PENDING"]
    return [
        Section("Nodes", ["INSTANCE TYPE", "NODES", "READY", "GPUS"], _nodes(nodes)),
        *in_repair(nodes),
        Section("Queues", queues, list(_queues(client))),
        Section("Teams", ["NAMESPACE", "QUEUE", "MEMBERS"], list(_teams(client))),
        *_unenforced(client),
        Section("Workloads", ["NAMESPACE", "APPWRAPPER", "STATE", "PODS"], list(_workloads(client))),
        *_nvshare(client),
        *_mlops(client),
        *_without_pods(client),
    ]


def in_repair(nodes: Iterable[Mapping[str, Any]]) -> Iterable[Section]:
    """Yield the nodes in repair, if there are any."""
    rows = [
        (each.node, each.state, each.reason, each.since, each.host or "-", each.case or "-", each.detail or "-")
        for each in repairs(nodes)
    ]
    if rows:
        yield Section("Nodes in repair", ["NODE", "STATE", "REASON", "SINCE", "HOST", "CASE", "DETAIL"], rows)


def await_settled(client: Client, seconds: float = 15.0) -> None:
    """Wait until the queues' numbers match the pods, at most this long. They follow with a delay."""
    awaited(lambda: _reserved_gpus(client) >= _running_gpus(client), seconds, 0.5)


def objects(client: Client, version: str, kind: str, **options: Any) -> list[dict[str, Any]]:
    """Return the objects of a kind. Empty if the cluster does not serve the kind.

    The client caches a cluster's kinds by its address, and another cluster can have the same address later.
    """
    try:
        resource = client.resources.get(api_version=version, kind=kind)
        found = client.get(resource, serializer=_as_it_is, **options)
    except (ResourceNotFoundError, NotFoundError):
        return []
    return [{"apiVersion": version, "kind": kind, **item} for item in found["items"]]


def queueing(client: Client, kind: str, **options: Any) -> list[dict[str, Any]]:
    """Return the objects of a kind of Kueue, in the first of its API versions that the cluster serves."""
    for version in KUEUE:
        if found := objects(client, version, kind, **options):
            return found
    return []


def condition(item: Mapping[str, Any], kind: str) -> dict[str, Any] | None:
    """Return a condition in an object's status, None if it does not have the condition."""
    conditions = (item.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == kind), None)


def is_true(item: Mapping[str, Any], kind: str) -> bool:
    """Return whether an object has a condition and it is true."""
    return (condition(item, kind) or {}).get("status") == "True"


def _as_it_is(client: Client, found: dict[str, Any]) -> dict[str, Any]:
    """Return an answer as JSON. The client's own objects take ten times as long."""
    return found


def pod_gpus(spec: Mapping[str, Any], gpu: str = GPU) -> int:
    """Return the GPUs that a pod requests. gpu: the resource's name."""
    asked = (container.get("resources") or {} for container in spec["containers"])
    return sum(int(parse_quantity((each.get("limits") or each.get("requests") or {}).get(gpu, 0))) for each in asked)


def table(title: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a titled table in columns."""
    cells = [[str(cell) for cell in row] for row in [header, *rows]]
    if len(cells) == 1:
        return f"{title}\n  none"
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join([title, *(f"  {line}" for line in lines)])


def members(bindings: Iterable[Mapping[str, Any]], kind: str) -> list[str]:
    """Return the users or the groups in RoleBindings, without service accounts. kind: User or Group."""
    subjects = [subject for binding in bindings for subject in binding.get("subjects") or ()]
    found = {subject["name"] for subject in subjects if subject["kind"] == kind}
    return sorted(name for name in found if not name.startswith(_ACCOUNTS))


def _reserved_gpus(client: Client) -> int:
    return sum(int(parse_quantity(row[3])) for row in _queues(client))


def _running_gpus(client: Client) -> int:
    pods = objects(client, "v1", "Pod", label_selector=_OF_APPWRAPPER)
    running = [pod for pod in pods if pod["status"]["phase"] == "Running"]
    containers = [container for pod in running for container in pod["spec"]["containers"]]
    limits = [(item.get("resources") or {}).get("limits") or {} for item in containers]
    return sum(int(parse_quantity(each.get(GPU) or each.get(SHARED_GPU) or 0)) for each in limits)


def _nodes(nodes: Iterable[Mapping[str, Any]]) -> Sequence[Sequence[Any]]:
    count: Counter[str] = Counter()
    ready: Counter[str] = Counter()
    gpus: Counter[str] = Counter()
    for node in nodes:
        labels = node["metadata"].get("labels") or {}
        kind = next((labels[name] for name in _NODE_KINDS if name in labels), "-")
        status = node.get("status") or {}
        count[kind] += 1
        ready[kind] += is_true(node, "Ready")
        offered = status.get("allocatable") or {}
        gpus[kind] += int(parse_quantity(offered.get(SHARED_GPU) or offered.get(GPU) or 0))
    return [(kind, count[kind], ready[kind], gpus[kind]) for kind in sorted(count)]


def _queues(client: Client) -> Iterable[Sequence[Any]]:
    for queue in queueing(client, "ClusterQueue"):
        status, name = queue.get("status") or {}, queue["metadata"]["name"]
        flavors = [flavor for group in queue["spec"].get("resourceGroups") or () for flavor in group["flavors"]]
        used = {flavor["name"]: _gpu(flavor["resources"]) for flavor in status.get("flavorsReservation") or ()}
        for position, flavor in enumerate(flavors or [{"name": "", "resources": []}]):
            quota, taken = _gpu(flavor["resources"]), used.get(flavor["name"], {})
            yield (
                name if position == 0 else f"  and of {flavor['name']}",
                quota.get("nominalQuota", "-"),
                quota.get("lendingLimit", "all"),
                taken.get("total", "0"),
                taken.get("borrowed", "0"),
                status.get("pendingWorkloads", 0) if position == 0 else "",
            )


def _teams(client: Client) -> Iterable[Sequence[Any]]:
    for namespace in objects(client, "v1", "Namespace", label_selector=TEAM_LABEL):
        name = namespace["metadata"]["name"]
        queues = [item["spec"]["clusterQueue"] for item in queueing(client, "LocalQueue", namespace=name)]
        bindings = objects(client, "rbac.authorization.k8s.io/v1", "RoleBinding", namespace=name)
        listed = [f"{prefix}{member}" for kind, prefix in _MEMBERS.items() for member in members(bindings, kind)]
        yield name, ", ".join(queues) or "-", ", ".join(listed) or "-"


def _unenforced(client: Client) -> Iterable[Section]:
    """Yield the promises to teams that this cluster cannot enforce, if there are any."""
    namespaces = objects(client, "v1", "Namespace", label_selector=TEAM_LABEL)
    found = [
        (item["metadata"]["name"], (item["metadata"].get("annotations") or {}).get(UNENFORCED)) for item in namespaces
    ]
    rows = [(name, promises) for name, promises in found if promises]
    if rows:
        yield Section("Promises that are not enforced", ["NAMESPACE", "PROMISES"], rows)


def _workloads(client: Client) -> Iterable[Sequence[Any]]:
    for wrapper in objects(client, APPWRAPPER, "AppWrapper"):
        metadata = wrapper["metadata"]
        selector = f"{_OF_APPWRAPPER}={metadata['name']}"
        pods = objects(client, "v1", "Pod", namespace=metadata["namespace"], label_selector=selector)
        phases = Counter(pod["status"]["phase"] for pod in pods)
        shown = ", ".join(f"{number} {phase}" for phase, number in sorted(phases.items())) or "none"
        yield metadata["namespace"], metadata["name"], (wrapper.get("status") or {}).get("phase", "new"), shown


def _nvshare(client: Client) -> Iterable[Section]:
    """Yield the result of the test of shared GPUs, if there is one."""
    jobs = objects(client, "batch/v1", "Job", namespace=nvshare.NAMESPACE)
    if any(job["metadata"]["name"] == nvshare.JOB for job in jobs):
        pods = objects(client, "v1", "Pod", namespace=nvshare.NAMESPACE, label_selector=nvshare.SELECTOR)
        row = (nvshare.JOB, nvshare.verdict(pods), nvshare.seconds(pods))
        yield Section("Test of shared GPUs", ["JOB", "VERDICT", "TOOK"], [row])


def _mlops(client: Client) -> Iterable[Section]:
    """Yield the available workloads of the OSS MLOps platform, by namespace, if there are any."""
    found: dict[str, list[tuple[str, bool]]] = {}
    for kind, ready in (("Deployment", "availableReplicas"), ("StatefulSet", "readyReplicas")):
        for item in objects(client, "apps/v1", kind, label_selector=MLOPS_LABEL):
            status = item.get("status") or {}
            is_there = (status.get(ready) or 0) >= item["spec"].get("replicas", 1)
            found.setdefault(item["metadata"]["namespace"], []).append((item["metadata"]["name"], is_there))
    rows = [
        (
            namespace,
            f"{sum(there for _, there in items)} of {len(items)}",
            ", ".join(name for name, there in items if not there) or "-",
        )
        for namespace, items in sorted(found.items())
    ]
    if rows:
        yield Section("OSS MLOps platform", ["NAMESPACE", "AVAILABLE", "NOT YET"], rows)


def _without_pods(client: Client) -> Iterable[Section]:
    """Yield the Deployments whose pods the API server rejects, with the reason, if there are any.

    A Deployment copies the condition of its ReplicaSet, which ends when the next pod is accepted
    (kube-controller-manager v1.34.2, `pkg/controller/replicaset/replica_set_utils.go`,
    `pkg/controller/deployment/progress.go`).
    """
    rows = [
        (item["metadata"]["namespace"], item["metadata"]["name"], _why(str(each.get("message") or "nobody says")))
        for item in objects(client, "apps/v1", "Deployment")
        for each in (item.get("status") or {}).get("conditions") or ()
        if (each["type"], each["status"], each.get("reason")) == ("ReplicaFailure", "True", "FailedCreate")
    ]
    if rows:
        yield Section("Deployments whose pods are rejected", ["NAMESPACE", "DEPLOYMENT", "BECAUSE"], sorted(rows))


def _why(said: str) -> str:
    """Return the API server's message in one line. It begins with the webhook that does not answer, if any."""
    line = " ".join(said.split())
    found = _UNANSWERED.search(line)
    return f"webhook {found[1]} does not answer: {found[2]}" if found else line


def _gpu(resources: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    return next((resource for resource in resources if resource["name"] in (GPU, SHARED_GPU)), {})
