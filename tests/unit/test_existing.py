"""Target `existing`: the platform on a cluster that somebody else has made, as its nodes and its API server say."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.artifacts import Mirror
from components.scheduling.priorities import PRIORITIES
from components.tenancy import train_job_room
from components.tenancy.promises import Promise
from stacks.config import inputs
from stacks.config.cluster_facts import ClusterFacts, NodeFacts, comes_with_admission_policies
from stacks.config.errors import SettingsError
from stacks.config.inputs import StackInputs
from stacks.deploy import deploy
from tests.reachability import End, Reachability
from tests.unit.configurations import stack_settings
from tests.unit.conftest import ROOT
from tests.unit.harness import Record, build

UID = "4b2f1a52-6c1a-4d0e-9a57-2f3f0d4c7a11"
ALLOCATABLE = {"cpu": "190", "memory": "1900Gi", "nvidia.com/gpu": "8", "pods": "110"}


def node(name: str, **allocatable: str) -> NodeFacts:
    labels = {"pool": "gpu", "node.kubernetes.io/instance-type": "p5.48xlarge", "nvidia.com/gpu.product": "H100"}
    return NodeFacts(name=name, labels=labels, allocatable={**ALLOCATABLE, **allocatable})


NODES = (node("a"), node("b", cpu="186", memory="1800Gi"), node("c"))


def shipped() -> dict[str, Any]:
    return stack_settings("existing")


def loaded(
    raw: Mapping[str, Any],
    mirror: Mirror,
    kubeconfig: Path,
    nodes: tuple[NodeFacts, ...] = NODES,
    version: str = "1.34",
    default_priority: str | None = None,
    priority_classes: Iterable[str] = (),
) -> StackInputs[Any]:
    def ask(config: object, selectors: Sequence[Mapping[str, str]]) -> ClusterFacts:
        labels = selectors[0] if selectors else {}
        return ClusterFacts(
            identifier=UID,
            version=version,
            nodes=tuple(replace(node, labels={**labels, **node.labels}) for node in nodes) if selectors else (),
            has_admission_policies=comes_with_admission_policies(version),
            priority_classes=frozenset(priority_classes),
            default_priority=default_priority,
        )

    files = {"artifacts": mirror.artifacts, "verify": False}
    return inputs.interpret({**raw, "mirror": files}, base=ROOT, environment={"KUBECONFIG": str(kubeconfig)}, ask=ask)


def refused(raw: Mapping[str, Any], mirror: Mirror, kubeconfig: Path, nodes: tuple[NodeFacts, ...] = NODES) -> str:
    with pytest.raises(SettingsError) as error:
        loaded(raw, mirror, kubeconfig, nodes)
    assert len(error.value.problems) == 1, str(error.value)
    return str(error.value)


def registered(stack: StackInputs[Any]) -> Record:
    """Return the program's registrations, with a password if one is generated."""
    return build(lambda: deploy(stack), outputs=lambda kind, name, given: {"result": "made-up"})


def test_the_pool_is_what_its_nodes_have_and_quotas_follow_the_smallest(mirror: Mirror, kubeconfig: Path) -> None:
    stack = loaded(shipped(), mirror, kubeconfig)
    pool = stack.resolved.pool
    assert pool.count == 3
    assert {name: str(amount) for name, amount in pool.shape.resources.items()} == {
        "cpu": "186",
        "memory": "1800Gi",
        "nvidia.com/gpu": "8",
        "nvidia.com/roce_gdr": "0",
        "nvidia.com/mlnxnics": "0",
        "pods": "110",
    }
    assert pool.shape.instance_type == "p5.48xlarge"
    assert {name: str(quota["nvidia.com/gpu"]) for name, quota in stack.resolved.divisions[0].quotas.items()} == {
        "blue": "8",
        "red": "8",
    }


@pytest.mark.parametrize("page", ["eks.md", "gke.md"])
def test_settings_of_the_guides_are_accepted(page: str, mirror: Mirror, kubeconfig: Path) -> None:
    text = (ROOT / "docs" / page).read_text()
    (settings,) = re.findall(r"cat >> Pulumi.mysite.yaml <<'EOF'\n(.*?)^EOF", text, re.DOTALL | re.MULTILINE)
    (more,) = re.findall(r"^    - .*name: green.*$", text, re.MULTILINE)
    raw = {key.removeprefix("mlbatch:"): value for key, value in yaml.safe_load(settings + more)["config"].items()}
    stack = loaded(raw, mirror, kubeconfig)
    assert {name: str(quota["nvidia.com/gpu"]) for name, quota in stack.resolved.divisions[0].quotas.items()} == {
        "blue": "8",
        "green": "8",
    }
    assert registered(stack).one("Namespace", "green")


@pytest.mark.parametrize(
    ("shape", "norm"), [({}, None), ({"instanceType": "h100-sxm5-8x", "cpu": 180, "memory": "1700Gi"}, "< 8 and")]
)
def test_what_broken_nodes_offer_is_no_norm_for_alerts(
    mirror: Mirror, kubeconfig: Path, shape: Mapping[str, Any], norm: str | None
) -> None:
    raw = shipped()
    raw["cluster"]["pool"] |= shape
    raw |= {"samples": {}, "monitoring": {"enabled": True}}
    found = registered(loaded(raw, mirror, kubeconfig, (*NODES, node("broken", **{"nvidia.com/gpu": "7"}))))
    (group,) = found.one("PrometheusRule", "mlbatch-alerts", "monitoring").inputs["spec"]["groups"]
    (fewer,) = (rule["expr"] for rule in group["rules"] if rule.get("alert") == "MLBatchNodeFewerGpus")
    assert "< on (node) max by (node) (max_over_time(" in fewer
    assert re.findall(r"< \d+ and", fewer) == ([norm] if norm else [])


def test_another_cluster_than_the_stacks_is_refused_and_nothing_else_is_said_of_it(
    mirror: Mirror, kubeconfig: Path
) -> None:
    """The other cluster has none of the nodes, which would be a separate error."""
    raw = {**shipped(), "kubernetes": {"identifier": "8e0c6f0e-0000-4000-8000-000000000000"}}
    said = refused(raw, mirror, kubeconfig, nodes=())
    assert 'mlbatch:kubernetes.identifier = "8e0c6f0e-0000-4000-8000-000000000000"' in said
    assert re.search(rf"names another cluster: \S+ at https://\S+ has the UID {UID}\n", said)
    assert "fix:     use that cluster's kubeconfig or context" in said
    assert loaded({**raw, "kubernetes": {"identifier": UID}}, mirror, kubeconfig).require_cluster().facts.nodes == NODES


def test_the_engine_asks_as_fast_as_the_settings_allow(mirror: Mirror, kubeconfig: Path) -> None:
    raw = {**shipped(), "kubernetes": {"client": {"qps": 50, "burst": 100}}}
    record = registered(loaded(raw, mirror, kubeconfig))
    (provider,) = [item for item in record.resources if item.type == "pulumi:providers:kubernetes"]
    assert json.loads(provider.inputs["kubeClientSettings"]) == {"qps": 50, "burst": 100}


def test_quotas_leave_each_node_what_its_daemon_sets_need(mirror: Mirror, kubeconfig: Path) -> None:
    def per_node(raw: Mapping[str, Any]) -> tuple[str, str]:
        slack = loaded(raw, mirror, kubeconfig).resolved.divisions[0].slack
        return str(slack["cpu"]), str(slack["memory"])

    assert per_node(shipped()) == ("184", "1796Gi")
    assert per_node({**shipped(), "queueing": {"nodeReserve": {"cpu": "500m"}}}) == ("185500m", "1796Gi")
    assert per_node({**shipped(), "queueing": {"nodeReserve": {"cpu": 0, "memory": 0}}}) == ("186", "1800Gi")


def test_members_data_is_protected_unless_the_settings_say_otherwise(mirror: Mirror, kubeconfig: Path) -> None:
    def protected(**tenancy: bool) -> set[str]:
        stack = loaded({**shipped(), "tenancy": tenancy}, mirror, kubeconfig)
        return {item.object_name for item in registered(stack).of("Namespace") if item.protect}

    assert protected() == protected(protect=True) == {"blue", "red"}
    assert protected(protect=False) == set()


def test_the_cluster_is_known_by_its_uid(whole: Callable[[str], Record]) -> None:
    (provider,) = [item for item in whole("existing").resources if item.type == "pulumi:providers:kubernetes"]
    assert provider.inputs["clusterIdentifier"] == UID


def test_each_layer_can_be_switched_off(mirror: Mirror, kubeconfig: Path) -> None:
    raw = {**shipped(), "teams": [], "samples": {}}
    no_tenancy = registered(loaded({**raw, "tenancy": {"enabled": False}}, mirror, kubeconfig))
    assert no_tenancy.of("Deployment")
    assert not [*no_tenancy.of("ClusterQueue"), *no_tenancy.of("ResourceFlavor"), *no_tenancy.of("ClusterRole")[99:]]
    assert no_tenancy.of("PriorityClass")
    own = {**raw, "scheduling": {"priorityClasses": False}}
    no_priorities = registered(loaded(own, mirror, kubeconfig, priority_classes=[*PRIORITIES, "site-default"]))
    assert not no_priorities.of("PriorityClass")
    nothing = registered(loaded({**raw, "queueing": {"enabled": False}}, mirror, kubeconfig))
    assert nothing.objects() == []


def test_drivers_and_metrics_are_installed_where_they_are_asked_for(mirror: Mirror, kubeconfig: Path) -> None:
    gpu = {"featureDiscovery": True, "operator": True, "fabric": {"enabled": False}}
    raw = {**shipped(), "gpu": gpu, "monitoring": {"enabled": True}}
    record = registered(loaded(raw, mirror, kubeconfig))
    releases = {item.name for item in record.resources if item.type == "kubernetes:helm.sh/v3:Release"}
    assert releases == {"feature-discovery", "gpu-operator", "monitoring"}
    assert "mlbatch-gpus" in {item.object_name for item in record.of("ConfigMap")}
    assert "MLBatchGpusNotWatched" in alerts_of(record)


def alerts_of(record: Record) -> set[str]:
    (group,) = record.one("PrometheusRule", "mlbatch-alerts", "monitoring").inputs["spec"]["groups"]
    return {rule["alert"] for rule in group["rules"] if "alert" in rule}


def test_gpus_whose_metrics_nobody_reads_have_no_dashboard_and_no_alerts(mirror: Mirror, kubeconfig: Path) -> None:
    stack = loaded({**shipped(), "monitoring": {"enabled": True}}, mirror, kubeconfig)
    (warning,) = stack.warnings
    assert warning.startswith("Prometheus has no GPU metrics")
    assert "Set mlbatch:monitoring.gpuOperatorNamespace to the namespace of the cluster's GPU operator" in warning
    record = registered(stack)
    shown = {item.object_name for item in record.of("ConfigMap")}
    assert "mlbatch-nodes" in shown
    assert "mlbatch-gpus" not in shown
    found = alerts_of(record)
    assert {"MLBatchNodeLost", "MLBatchQueueStuck"} <= found
    assert not [name for name in found if name.startswith(("MLBatchGpu", "MLBatchNvlink"))]


def test_metrics_of_the_clusters_own_gpu_operator_are_shown(mirror: Mirror, kubeconfig: Path) -> None:
    page = "https://git.example.org/runbooks.md"
    raw = {**shipped(), "monitoring": {"enabled": True, "gpuOperatorNamespace": "gpu-operator", "runbooks": page}}
    stack = loaded(raw, mirror, kubeconfig)
    assert stack.warnings == ()
    record = registered(stack)
    assert "mlbatch-gpus" in {item.object_name for item in record.of("ConfigMap")}
    assert "MLBatchGpusNotWatched" in alerts_of(record)
    (group,) = record.one("PrometheusRule", "mlbatch-alerts", "monitoring").inputs["spec"]["groups"]
    assert f"{page}#mlbatchgpusnotwatched" in [
        rule.get("annotations", {}).get("runbook_url") for rule in group["rules"]
    ]


def test_no_one_is_warned_of_metrics_that_nothing_would_show(mirror: Mirror, kubeconfig: Path) -> None:
    raw = {**shipped(), "monitoring": {"enabled": True, "dashboards": False, "alerts": False}}
    assert loaded(raw, mirror, kubeconfig).warnings == ()


def test_agent_jobs_and_rules_agree_on_where_the_disks_are_mounted(mirror: Mirror, kubeconfig: Path) -> None:
    scratch = {"enabled": True, "diskModel": "Lab NVMe", "folder": "/mnt/nvme"}
    lab = {"enabled": True, "image": "registry.example.org/lab:1", "submission": {"team": "blue"}}
    raw = {**shipped(), "gpu": {"nvmeScratch": scratch}, "workloads": {"jupyterlab": lab}}
    record = registered(loaded(raw, mirror, kubeconfig))
    (agent,) = record.one("DaemonSet", "local-nvme-scratch").inputs["spec"]["template"]["spec"]["containers"]
    assert agent["command"][-3] == "/mnt/nvme"
    (part,) = record.one("AppWrapper", "jupyterlab").inputs["spec"]["components"]
    volumes = part["template"]["spec"]["template"]["spec"]["volumes"]
    assert {"name": "scratch", "hostPath": {"path": "/mnt/nvme", "type": "Directory"}} in volumes
    rules = record.one("ValidatingAdmissionPolicy", Promise.POD_ISOLATION.policy).inputs["spec"]["validations"]
    assert any('v.hostPath.path == "/mnt/nvme"' in rule["expression"] for rule in rules)


def test_a_pool_that_is_given_whole_is_not_looked_up(mirror: Mirror, kubeconfig: Path) -> None:
    raw = shipped()
    raw["cluster"]["pool"] |= {"count": 2, "instanceType": "h100-sxm5-8x"}
    stack = loaded(raw, mirror, kubeconfig, nodes=())
    assert (stack.resolved.pool.count, str(stack.resolved.pool.resources["nvidia.com/gpu"])) == (2, "16")


def test_a_pool_may_offer_less_than_its_machines_have(mirror: Mirror, kubeconfig: Path) -> None:
    raw = shipped()
    smaller = {"gpusPerNode": 4, "cpu": 90, "memory": "900Gi"}
    raw["cluster"]["pool"] |= {"count": 2, "instanceType": "h100-sxm5-8x", **smaller}
    raw |= {"samples": {}, "monitoring": {"enabled": True}}
    shape = loaded(raw, mirror, kubeconfig, nodes=()).resolved.pool.shape
    offered = [str(shape.resources[name]) for name in ("nvidia.com/gpu", "cpu", "memory")]
    assert offered == ["4", "90", "900Gi"]


@pytest.mark.parametrize(("minimum", "most", "least"), [(None, 0, 0), (1, 4, 1)])
def test_nodes_that_an_autoscaler_has_removed_are_not_lost(
    mirror: Mirror, kubeconfig: Path, minimum: int | None, most: int, least: int
) -> None:
    raw = shipped()
    raw["cluster"]["pool"] |= {"count": 4, "instanceType": "h100-sxm5-8x"}
    if minimum is not None:
        raw["cluster"]["pool"]["minimum"] = minimum
    built = registered(loaded(raw, mirror, kubeconfig))
    nodes = json.loads(built.one("ConfigMap", "slack-controller").inputs["data"]["settings.json"])["pools"][0]
    assert (nodes["most"], nodes["least"]) == (most, least)
    assert nodes["shape"].get("nvidia.com/gpu") == ("8" if minimum else None)


def test_the_networks_resource_and_variables_are_the_sites(mirror: Mirror, kubeconfig: Path) -> None:
    raw = shipped()
    rdma = {"resource": "nvidia.com/roce_gdr", "perNode": 2, "variables": {"NCCL_IB_HCA": "mlx5"}}
    raw["cluster"]["pool"]["rdma"] = rdma
    nodes = tuple(node(name, **{"nvidia.com/roce_gdr": "2"}) for name in "abc")
    fabric = loaded(raw, mirror, kubeconfig, nodes).resolved.fabric
    assert fabric.requests() == {"nvidia.com/roce_gdr": "2"}
    assert fabric.variables == {"NCCL_IB_HCA": "mlx5"}


def test_a_priority_class_that_the_cluster_gives_pods_is_theirs(
    mirror: Mirror, kubeconfig: Path, whole: Callable[[str], Record]
) -> None:
    """Priority admission writes its name into pods before policies judge them, and a cluster has one default."""
    record = registered(loaded(shipped(), mirror, kubeconfig, default_priority="site-default"))
    policy = record.one("ValidatingAdmissionPolicy", Promise.POD_ISOLATION.policy)
    rules = [item["expression"] for item in policy.inputs["spec"]["validations"]]
    (rule,) = [rule for rule in rules if "priorityClassName" in rule]
    assert "'site-default'" in rule
    assert "'low-priority'" in rule
    assert len(record.of("PriorityClass")) == 3
    assert not [item for item in record.of("PriorityClass") if item.inputs.get("globalDefault")]
    assert whole("existing").one("PriorityClass", "default-priority").inputs["globalDefault"] is True


def test_the_clusters_dns_is_what_the_settings_name(mirror: Mirror, kubeconfig: Path) -> None:
    dns = {"pods": [{"namespace": "dns", "labels": {"app": "dns"}}], "ports": [1053], "addresses": ["10.1.2.3/32"]}
    raw = {**shipped(), "tenancy": {"network": {"dns": dns, "egress": {"internet": False}}}}
    record = registered(loaded(raw, mirror, kubeconfig))
    (policy,) = [item.inputs for item in record.of("NetworkPolicy") if item.inputs["metadata"]["namespace"] == "blue"]
    names = {name: {"kubernetes.io/metadata.name": name} for name in ("blue", "dns", "kube-system")}
    net = Reachability(policies=[policy], namespaces=names)
    pod = End(namespace="blue", address="10.244.0.5")
    own = End(namespace="dns", address="10.244.0.6", labels={"app": "dns"})
    usual = End(namespace="kube-system", address="10.244.0.7", labels={"k8s-app": "kube-dns"})
    assert net.allowed(pod, own, 1053, "UDP")
    assert net.allowed(pod, End(address="10.1.2.3"), 53, "UDP")
    assert net.denied(pod, own, 53, "UDP")
    assert net.denied(pod, usual, 53, "UDP")


@pytest.mark.parametrize(
    ("settings", "operators", "others"),
    [
        ({}, ("mlbatch-system",), ("red", "ray", "kube-system", "kuberay-system")),
        ({"rayOperators": ["ray"]}, ("ray",), ("red", "mlbatch-system", "kuberay-system")),
    ],
)
def test_kuberays_operator_asks_how_a_ray_job_does(
    settings: dict[str, Any], operators: tuple[str, ...], others: tuple[str, ...], mirror: Mirror, kubeconfig: Path
) -> None:
    record = registered(loaded({**shipped(), "tenancy": {"network": settings}}, mirror, kubeconfig))
    policies = [item.inputs for item in record.of("NetworkPolicy") if item.inputs["metadata"]["namespace"] == "blue"]
    names = {name: {"kubernetes.io/metadata.name": name} for name in ("blue", *operators, *others)}
    net = Reachability(policies=policies, namespaces=names)
    head = End(namespace="blue", address="10.244.0.5", labels={"ray.io/node-type": "head"})
    for name in operators:
        assert net.allowed(End(namespace=name, address="10.244.0.6"), head, 8265)
        assert net.denied(End(namespace=name, address="10.244.0.6"), head, 10001)
    for name in others:
        assert net.denied(End(namespace=name, address="10.244.0.7"), head, 8265)


def test_the_slack_queue_lends_after_the_nodes_of_the_pool_alone(whole: Callable[[str], Record]) -> None:
    record = whole("existing")
    settings = json.loads(record.one("ConfigMap", "slack-controller").inputs["data"]["settings.json"])
    assert settings["pools"][0]["labels"] == record.one("ResourceFlavor", "default-flavor").inputs["spec"]["nodeLabels"]


class TestMistakes:
    def test_less_of_some_nodes_than_the_settings_say_is_a_warning(self, mirror: Mirror, kubeconfig: Path) -> None:
        """A GPU that breaks must not keep the stack from being updated; nodes without a device plugin get one first."""
        raw = shipped()
        raw["cluster"]["pool"] |= {"gpusPerNode": 8, "cpu": 180, "memory": "1800Gi"}
        assert loaded(raw, mirror, kubeconfig).warnings == ()
        (said,) = loaded(raw, mirror, kubeconfig, (*NODES, node("d", **{"nvidia.com/gpu": "7"}))).warnings
        assert said.startswith("mlbatch:cluster.pool.gpusPerNode: these nodes offer less nvidia.com/gpu than 8: d;")
        bare = tuple(node(name, **{"nvidia.com/gpu": "0"}) for name in "abc")
        assert loaded(raw, mirror, kubeconfig, bare).warnings == ()

    def test_ports_that_the_nodes_offer_themselves_may_be_in_a_quota(self, mirror: Mirror, kubeconfig: Path) -> None:
        raw = shipped()
        raw["cluster"]["pool"]["rdma"] = {"resource": "nvidia.com/mlnxnics", "perNode": 8}
        quota = {"cpu": 100, "memory": "1000Gi", "nvidia.com/gpu": 8, "nvidia.com/mlnxnics": 8}
        raw["teams"][0] = {"name": "blue", "users": ["alice"], "quota": quota}
        nodes = tuple(node(name, **{"nvidia.com/mlnxnics": "8"}) for name in "abc")
        assert (
            str(loaded(raw, mirror, kubeconfig, nodes).resolved.divisions[0].quotas["blue"]["nvidia.com/mlnxnics"])
            == "8"
        )


class TestPromisesToTeams:
    """The policies that keep them are registered, all of them before any team can submit; or none, by name."""

    def test_each_promise_has_its_policy_and_each_policy_its_promise(self, whole: Callable[[str], Record]) -> None:
        record = whole("existing")
        bound = record.of("ValidatingAdmissionPolicyBinding")
        expected = {promise.policy for promise in Promise} | {policy.name for policy in train_job_room.policies()}
        assert {item.object_name for item in record.of("ValidatingAdmissionPolicy")} == expected
        assert {item.object_name for item in bound} == expected
        members = [item for item in record.of("RoleBinding") if item.inputs["metadata"]["namespace"] in ("blue", "red")]
        assert members
        for item in (*record.of("LocalQueue"), *members):
            assert {each.urn for each in bound} <= record.closure(item), item.urn

    def test_without_the_api_teams_come_by_name_and_policies_not_at_all(self, mirror: Mirror, kubeconfig: Path) -> None:
        with pytest.raises(SettingsError, match="cannot enforce these promises to teams"):
            loaded(shipped(), mirror, kubeconfig, version="1.29")
        by_name = {"acceptUnenforced": [str(promise) for promise in Promise]}
        accepted = {**shipped(), "tenancy": by_name, "scheduling": {"packing": "none"}}
        stack = loaded(accepted, mirror, kubeconfig, version="1.29")
        assert any("this cluster does not enforce these promises to teams" in warning for warning in stack.warnings)
        record = registered(stack)
        assert not record.of("ValidatingAdmissionPolicy")
        assert {item.inputs["metadata"]["namespace"] for item in record.of("LocalQueue")} == {"blue", "red"}

    def test_appwrapper_kills_what_was_told_to_go_by_the_settings_bound(self, mirror: Mirror, kubeconfig: Path) -> None:
        raw = {**shipped(), "tenancy": {"jobs": {"forcedDeletionGraceSeconds": 300}}}
        config = registered(loaded(raw, mirror, kubeconfig)).one("ConfigMap", "appwrapper-operator-config")
        tolerance = yaml.safe_load(config.inputs["data"]["config.yaml"])["appwrapper"]["faultTolerance"]
        assert tolerance["deletionGracePeriod"] == 300 * 10**9
        assert tolerance["gracePeriodCeiling"] == 3600 * 10**9
