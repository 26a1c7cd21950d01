"""What holds for every object of every stack, whichever component declares it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from kubernetes.client import models
from pydantic import ValidationError

from ask.content import CONTROLLERS, content
from ask.source import Source
from components import ownership
from components.kubernetes.quantity import canonical
from components.queueing.trainer import priorities
from emulator.charts.schema import of_chart, problems
from emulator.charts.sources import stub, stubs
from tests.unit.conftest import ROOT
from tests.unit.harness import Registered
from tests.unit.images import retired
from tests.unit.releases import definitions
from tests.unit.test_stack import pairs, quantities
from tests.unit.whole_stacks import STACKS, registered

MPI = "its ssh server starts as root and becomes the user of each session; pinned memory for the fabric"
UNCONFINED: Mapping[str, str] = {
    "DaemonSet autopilot/autopilot": "pings other nodes, and sees GPUs that it does not ask for",
    "DaemonSet mlbatch-nodes/local-nvme-scratch": "makes and mounts a file system on the node's disks",
    "Job mlbatch-health/nccl-gate": MPI,
    "Job mlbatch-health/node-check": "Azure's checks read the node's devices as root",
    "Job workloads/metaseq": MPI,
    "Job workloads/nccl-allreduce": MPI,
    "DaemonSet nvshare-system/nvshare-device-plugin": "mounts the library on the node under the name that others mount",
    "Notebook sandbox/demo-workbench": "is that of OpenShift AI's dashboard, which OpenShift's constraints confine",
    "PyTorchJob blue/pretraining": "pinned memory for the fabric",
    **dict.fromkeys(
        (f"ClusterTrainingRuntime {name}" for name in priorities()),
        "its pods, which are those of TrainJobs, run images of members; pinned memory for the fabric",
    ),
    "Job blue/olmo": "its image is made for root; pinned memory for the fabric",
}
"""Pods that keep capabilities or may gain some, and why they have to."""
BROUGHT = frozenset({("blue", "data")})
"""Claims that a cluster of somebody else's has, which its settings name."""
CERTIFIED = "service.beta.openshift.io/serving-cert-secret-name"
OPERATORS_NAMESPACES = frozenset({"nvidia-gpu-operator", "openshift-kueue-operator"})
"""Namespaces of operators that OLM installs, with Services that no stack declares."""
OF_A_CHART = "kube-prometheus-stack-"
"""How the accounts begin that the chart makes, and the stack grants a right."""
OF_A_NOTEBOOK = {("sandbox", "demo-workbench")}
"""The account of the workbench's notebook, which OpenShift AI creates."""
BUILT_IN_ROLES = frozenset(
    {
        "edit",
        "extension-apiserver-authentication-reader",
        "system:auth-delegator",
        "system:kube-scheduler",
        "system:openshift:scc:hostmount-anyuid",
        "system:openshift:scc:nonroot-v2",
        "system:openshift:scc:privileged",
        "system:volume-scheduler",
    }
)
BUILT_IN_PRIORITIES = frozenset({"system-node-critical", "system-cluster-critical"})
KNOWN = definitions.known()
OPERATORS_OWN = frozenset(
    {
        "ClusterPolicy",
        "ClusterTrainingRuntime",
        "DSCInitialization",
        "DataScienceCluster",
        "Kueue",
        "Notebook",
        "OperatorGroup",
        "PyTorchJob",
        "RayCluster",
        "RayJob",
        "Subscription",
    }
)
"""Whose definitions come with operators; the tests of those who declare them look at their fields."""
VERSIONS = {"v1": "V1", "v1beta1": "V1beta1", "v2": "V2"}


@pytest.fixture(scope="module", params=STACKS)
def parts(request: pytest.FixtureRequest) -> tuple[Part, ...]:
    return parts_of(request.param)


@dataclass(frozen=True)
class Part:
    """An object that a stack has made: one that it registers, or one that is wrapped in that."""

    document: Mapping[str, Any]
    item: Registered

    @property
    def namespace(self) -> str | None:
        namespace: str | None = self.item.inputs["metadata"].get("namespace")
        return namespace

    @property
    def kind(self) -> str:
        return str(self.document["kind"])

    @property
    def name(self) -> str:
        return str(self.document["metadata"]["name"])

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    @property
    def labels(self) -> Mapping[str, str]:
        found: Mapping[str, str] = self.document["metadata"].get("labels", {})
        return found

    @property
    def pods(self) -> list[Mapping[str, Any]]:
        return list(templates(self.document))


@cache
def parts_of(stack: str) -> tuple[Part, ...]:
    """Return the objects of a stack, but for definitions, which are upstream's own."""
    found: list[Part] = []
    for item in registered(stack).objects():
        if item.kind not in ("", "CustomResourceDefinition"):
            document = whole(item.inputs)
            is_wrapper = item.kind == "AppWrapper"
            wrapped = [inner["template"] for inner in document["spec"]["components"]] if is_wrapper else []
            found += [Part(part, item) for part in (document, *wrapped)]
    return tuple(found)


def whole(value: Any) -> Any:
    """Return a value with its whole numbers as such: the mocks hand every number back as one with a fraction."""
    if isinstance(value, Mapping):
        return {key: whole(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [whole(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def templates(value: object) -> Iterator[Mapping[str, Any]]:
    """Yield every template of pods in a value, but for those of objects that are wrapped in it."""
    if isinstance(value, Mapping):
        if isinstance(value.get("spec"), Mapping) and "containers" in value["spec"]:
            yield value
        else:
            yield from (found for key, inner in value.items() if key != "components" for found in templates(inner))
    elif isinstance(value, list):
        yield from (found for inner in value for found in templates(inner))


def containers(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]


def is_confined(container: Mapping[str, Any]) -> bool:
    context = container.get("securityContext", {})
    return context.get("allowPrivilegeEscalation") is False and context.get("capabilities", {}).get("drop") == ["ALL"]


def loose(parts: Iterable[Part]) -> set[str]:
    """Return the parts with a container that keeps capabilities, or may gain some."""
    return {str(part) for part in parts for pod in part.pods for one in containers(pod) if not is_confined(one)}


@pytest.mark.parametrize("stack", STACKS)
def test_every_component_tells_the_engine_that_it_is_complete(stack: str) -> None:
    record = registered(stack)
    components = {item.urn: item.name for item in record.resources if item.type.startswith("mlbatch:")}
    assert components
    assert [name for urn, name in components.items() if urn not in record.outputs] == []


@pytest.mark.parametrize("stack", STACKS)
def test_no_two_resources_of_a_component_have_the_same_type_and_name(stack: str) -> None:
    """The engine rejects them ("Duplicate resource URN"). The SDK's mocks do not."""
    assert [urn for urn, count in Counter(item.urn for item in registered(stack).resources).items() if count > 1] == []


@pytest.mark.parametrize("stack", STACKS)
def test_every_object_is_a_components_child_with_the_provider_of_its_cluster(stack: str) -> None:
    record = registered(stack)
    components = {item.urn for item in record.resources if item.type.startswith("mlbatch:")}
    (provider,) = [item.urn for item in record.resources if item.type == "pulumi:providers:kubernetes"]
    objects = record.objects()
    assert objects
    assert [item.name for item in objects if item.parent not in components] == []
    assert {item.provider.rpartition("::")[0] for item in objects} == {provider}


@pytest.mark.parametrize("stack", STACKS)
def test_tokens_of_components_name_their_folder(stack: str) -> None:
    tokens = {item.type for item in registered(stack).resources if item.type.startswith("mlbatch:")}
    folders = {folder.name for folder in (ROOT / "components").iterdir() if folder.is_dir()}
    for token in tokens:
        match = re.fullmatch(r"mlbatch:([a-z_]+):[A-Z][A-Za-z0-9]+", token)
        assert match, token
        assert match[1] in folders, token


@pytest.mark.parametrize("stack", STACKS)
def test_no_order_runs_in_a_circle_and_nothing_is_ignored_but_what_the_table_lists(stack: str) -> None:
    record = registered(stack)
    assert [item.name for item in record.resources if item.urn in record.closure(item)] == []
    for item in record.objects():
        assert list(item.ignore_changes) == (ownership.ignored(item.kind) or []), item.name


def test_every_quantity_is_canonical(parts: Sequence[Part]) -> None:
    """Another spelling of an amount comes back changed from the API server, and would differ in every preview."""
    found = [entry for part in parts for entry in quantities(part.item.inputs)]
    found += [entry for part in parts for entry in pairs(part.item.inputs) if entry[0] == "sizeLimit"]
    assert found
    assert [(key, value) for key, value in found if not isinstance(value, str) or canonical(value) != value] == []


def test_no_image_is_of_a_registry_that_no_longer_serves_it(parts: Sequence[Part]) -> None:
    found = [container for part in parts for pod in part.pods for container in containers(pod)]
    images = {container["image"] for container in found if "image" in container}  # a Trainer runtime's job sets others
    assert images
    assert retired(images) == []


def texts(value: object) -> Iterator[tuple[str, object]]:
    """Yield the annotations, labels, selectors of labels, and variables in a value."""
    if isinstance(value, list):
        yield from (found for inner in value for found in texts(inner))
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            if name in ("annotations", "labels", "matchLabels", "nodeSelector") and isinstance(inner, Mapping):
                yield from inner.items()
            elif name == "env" and isinstance(inner, list):
                yield from ((entry["name"], entry["value"]) for entry in inner if "value" in entry)
            else:
                yield from texts(inner)


def test_annotations_labels_and_variables_are_texts(parts: Sequence[Part]) -> None:
    """The API server refuses a number or a boolean there, and YAML readers turn some texts into them."""
    found = [(str(part), key, value) for part in parts for key, value in texts(part.item.inputs)]
    assert [each for each in found if not isinstance(each[-1], str)] == []


def test_every_value_of_a_chart_is_one_that_upstreams_chart_knows() -> None:
    """Helm ignores unknown values without a message. The stubs of charts know upstream's values."""
    judged = set()
    for item in (item for stack in STACKS for item in registered(stack).resources if item.type.endswith(":Release")):
        version = item.inputs["version"]
        name = item.inputs["chart"].rpartition("/")[2].removesuffix(f"-{version}.tgz")
        if (name, version) in stubs():
            assert list(problems(item.inputs["values"], of_chart(stub(name, version)))) == []
            judged.add(name)
    assert {"blob-csi-driver", "gpu-operator", "network-operator", "volcano"} <= judged


def test_every_container_drops_all_capabilities_and_gains_none_but_for_those_that_are_named(
    parts: Sequence[Part],
) -> None:
    assert loose(parts) - UNCONFINED.keys() == set()


def test_no_pod_is_excused_that_needs_no_excuse() -> None:
    assert loose(part for stack in STACKS for part in parts_of(stack)) == UNCONFINED.keys()


def test_every_object_has_the_fields_of_its_kind_and_no_other(parts: Sequence[Part]) -> None:
    wrong = []
    for part in parts:
        if part.kind in OPERATORS_OWN:
            continue
        group, _, version = part.document["apiVersion"].rpartition("/")
        if (schema := KNOWN.get(f"{group}/{version}/{part.kind}")) is not None:
            wrong += [f"{part}: {error.message}" for error in Draft202012Validator(schema).iter_errors(part.document)]
            continue
        try:
            getattr(models, f"{VERSIONS[version]}{part.kind}").from_dict(part.document)
        except ValidationError as error:
            wrong.append(f"{part}: {error}")
    assert wrong == []


def test_whatever_has_a_template_selects_its_own_pods(parts: Sequence[Part]) -> None:
    selecting = [part for part in parts if part.kind in ("Deployment", "DaemonSet", "StatefulSet")]
    assert len(selecting) >= 5
    for part in selecting:
        spec = part.document["spec"]
        assert spec["selector"].keys() == {"matchLabels"}
        assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items(), str(part)


def wanted(part: Part) -> Mapping[str, str]:
    """Return the labels that a part requires of its objects. Empty if it selects none or all."""
    spec: Mapping[str, Any] = part.document.get("spec", {})
    selector: Mapping[str, Any] = {
        "Service": {"matchLabels": spec.get("selector") or {}},
        "PodDisruptionBudget": spec.get("selector", {}),
        "ServiceMonitor": spec.get("selector", {}),
        "NetworkPolicy": spec.get("podSelector", {}),
    }.get(part.kind, {})
    found: Mapping[str, str] = selector.get("matchLabels", {})
    return found


def carried(part: Part, by: Part) -> list[Mapping[str, str]]:
    """Return the labels that can select a part: those of a Service with a monitor's ports, otherwise of its pods."""
    if by.kind == "ServiceMonitor":
        ports = {port.get("name") for port in part.document["spec"]["ports"]} if part.kind == "Service" else set()
        return [part.labels] if {each["port"] for each in by.document["spec"]["endpoints"]} <= ports else []
    # What Kubernetes', Volcano's and KubeRay's controllers add to the pods of what they run.
    jobs = dict.fromkeys(("job-name", "batch.kubernetes.io/job-name", "volcano.sh/job-name"), part.name)
    added = {"Job": jobs, "RayCluster": {"ray.io/node-type": "head"}}.get(part.kind, {})
    return [{**added, **pod.get("metadata", {}).get("labels", {})} for pod in part.pods]


def test_no_service_budget_monitor_or_policy_selects_nothing(parts: Sequence[Part]) -> None:
    for part in (part for part in parts if wanted(part)):
        namespaces = part.document["spec"].get("namespaceSelector", {}).get("matchNames", [part.namespace])
        if not OPERATORS_NAMESPACES.isdisjoint(namespaces):
            continue
        assert any(
            wanted(part).items() <= labels.items()
            for other in parts
            if other.namespace in namespaces
            for labels in carried(other, part)
        ), f"{part} selects {wanted(part)}, which nothing has"


def test_every_mount_has_its_volume_and_every_volume_is_mounted(parts: Sequence[Part]) -> None:
    for part in parts:
        for pod in part.pods:
            volumes = [volume["name"] for volume in pod["spec"].get("volumes", [])]
            mounted = {mount["name"] for container in containers(pod) for mount in container.get("volumeMounts", [])}
            assert len(volumes) == len(set(volumes)), str(part)
            assert set(volumes) == mounted, str(part)


def test_every_port_that_a_probe_or_a_service_names_is_a_port_of_the_pods(parts: Sequence[Part]) -> None:
    for part in parts:
        for container in (one for pod in part.pods for one in containers(pod)):
            ports = {port.get("name") for port in container.get("ports", [])}
            for probe in (container.get(kind, {}) for kind in ("livenessProbe", "readinessProbe", "startupProbe")):
                port = probe.get("httpGet", probe.get("tcpSocket", {})).get("port")
                assert not isinstance(port, str) or port in ports, f"{part}: {port}"


def existing(parts: Iterable[Part], kind: str) -> set[tuple[str | None, str]]:
    return {(part.namespace, part.name) for part in parts if part.kind == kind}


def certificate(part: Part) -> str | None:
    """Return the name of the Secret that OpenShift creates for a Service that requests a certificate."""
    name: str | None = part.document["metadata"].get("annotations", {}).get(CERTIFIED)
    return name


def certificates(parts: Iterable[Part]) -> set[tuple[str | None, str]]:
    """Return namespace and name of the Secrets that OpenShift creates for Services."""
    return {(part.namespace, secret) for part in parts if (secret := certificate(part)) is not None}


def given(volume: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return kind and name of the object that a volume is."""
    for key, kind, field in (
        ("configMap", "ConfigMap", "name"),
        ("secret", "Secret", "secretName"),
        ("persistentVolumeClaim", "PersistentVolumeClaim", "claimName"),
    ):
        if key in volume and not volume[key].get("optional"):
            return kind, volume[key][field]
    return None


def needed(part: Part) -> Iterator[tuple[str, str | None, str]]:
    """Yield kind, namespace and name of each object that the pods of a part refer to."""
    for spec in (pod["spec"] for pod in part.pods):
        for kind, name in filter(None, map(given, spec.get("volumes", []))):
            yield kind, part.namespace, name
        if "serviceAccountName" in spec:
            yield "ServiceAccount", part.namespace, spec["serviceAccountName"]
        if "priorityClassName" in spec:
            yield "PriorityClass", None, spec["priorityClassName"]


def test_what_a_pod_is_given_is_there(parts: Sequence[Part]) -> None:
    there = {(part.kind, part.namespace, part.name) for part in parts}
    there |= {("PriorityClass", None, name) for name in BUILT_IN_PRIORITIES}
    there |= {("PersistentVolumeClaim", *claim) for claim in BROUGHT}
    there |= {("Secret", *secret) for secret in certificates(parts)}
    for part in parts:
        assert set(needed(part)) <= there, str(part)


def granted(part: Part) -> set[tuple[str, ...]]:
    """Return namespace and name of each account that a binding or a constraint of OpenShift names."""
    users = [
        user.split(":")[2:] for user in part.document.get("users", ()) if user.startswith("system:serviceaccount:")
    ]
    subjects = [one for one in part.document.get("subjects", ()) if one["kind"] == "ServiceAccount"]
    return {*map(tuple, users), *((one["namespace"], one["name"]) for one in subjects)}


@pytest.mark.parametrize("stack", STACKS)
def test_namespaces_objects_of_pods_and_rights_of_their_account_come_first(stack: str) -> None:
    """Otherwise the cluster rejects the first pods, or they start without their rights."""
    parts, record = parts_of(stack), registered(stack)
    made = {(part.kind, part.namespace, part.name): part.item.urn for part in parts}
    made |= {("Secret", part.namespace, secret): part.item.urn for part in parts if (secret := certificate(part))}
    for part in parts:
        uses = {("Namespace", None, part.namespace), *needed(part)}
        accounts = {name[1:] for name in uses if name[0] == "ServiceAccount"}
        wanted = {made[name] for name in uses & made.keys()}
        wanted |= {other.item.urn for other in parts if accounts and granted(other) & accounts}
        assert wanted <= {part.item.urn, *record.closure(part.item)}, str(part)


def test_every_role_that_is_bound_exists_and_so_does_the_account_that_gets_it(parts: Sequence[Part]) -> None:
    bindings = [part for part in parts if part.kind in ("RoleBinding", "ClusterRoleBinding")]
    assert len(bindings) >= 5
    for part in bindings:
        role = part.document["roleRef"]
        where = part.namespace if role["kind"] == "Role" else None
        assert role["name"] in BUILT_IN_ROLES or (where, role["name"]) in existing(parts, role["kind"]), str(part)
        subjects = [one for one in part.document["subjects"] if one["kind"] == "ServiceAccount"]
        accounts = {(one["namespace"], one["name"]) for one in subjects if not one["name"].startswith(OF_A_CHART)}
        assert accounts - existing(parts, "ServiceAccount") <= OF_A_NOTEBOOK, str(part)


def test_every_namespace_is_the_stacks_own(parts: Sequence[Part]) -> None:
    made = {name for _, name in existing(parts, "Namespace")}
    assert {part.namespace for part in parts} - made <= {None, "kube-system"}


def test_a_replica_runs_every_controller_that_decides_about_jobs(parts: Sequence[Part]) -> None:
    """One without rights in the whole cluster is left out, and the answers about jobs are wrong."""
    kinds = {"Deployment": "mlbatch-system", "ClusterRoleBinding": None}
    source = Source(
        {
            kind: [dict(part.document) for part in parts if (part.kind, part.namespace) == (kind, where)]
            for kind, where in kinds.items()
        }
    )
    deciding = [
        item["metadata"]["name"]
        for item in source.all("Deployment")
        if any(part in each["image"] for each in item["spec"]["template"]["spec"]["containers"] for part in CONTROLLERS)
    ]
    last = content(source)["last"]
    assert [item["metadata"]["name"] for item in last if item["kind"] == "Deployment"] == deciding
