"""Limits of a team's namespace: its ResourceQuotas, its Pod Security level, and their settings."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi_kubernetes as kubernetes
import pytest

from components.artifacts import Mirror
from components.job_kinds import TRAIN_JOB
from components.kubernetes.cluster import Cluster
from components.kubernetes.fabric import Fabric
from components.kubernetes.placement import Placement
from components.kubernetes.quantity import Quantity
from components.kubernetes.security import PodSecurity
from components.tenancy import editor, train_job_room
from components.tenancy.bounds import (
    APPWRAPPERS,
    BOUNDS,
    OWN,
    POD_GROUPS,
    Bounds,
    job_quotas,
    limit_range,
    quotas,
)
from components.tenancy.promises import Promise
from stacks.config.inputs import StackInputs
from stacks.layers import boundary
from tests.unit.harness import Record, build
from tests.unit.test_existing import loaded, registered, shipped
from tests.unit.test_stack import dev, stack_of


def hard(bounds: Bounds) -> dict[str, str]:
    return dict(quotas("blue", bounds)[0]["spec"]["hard"])


class TestQuotas:
    def test_nothing_that_a_cluster_queue_counts_has_a_second_quota(self) -> None:
        for quota in quotas("blue", Bounds()):
            counted = set(quota["spec"]["hard"]) & {"pods", "cpu", "memory", "requests.cpu", "requests.memory"}
            assert not counted or "scopeSelector" in quota["spec"]

    def test_load_balancers_bring_node_ports_along(self) -> None:
        """A load balancer's own ports of the nodes count as node ports, and would be refused."""
        assert "services.nodeports" not in hard(Bounds(load_balancers=2))
        assert hard(Bounds(load_balancers=2))["services.loadbalancers"] == "2"
        assert "services.nodeports" not in hard(Bounds(node_ports=True))

    def test_all_kinds_that_members_create_are_counted(self) -> None:
        custom = {
            f"count/{resource}.{group}"
            for group, resources, verbs in (*editor.RULES, editor.UNWRAPPED_RAY)
            if "create" in verbs and group
            for resource in resources
        }
        for defined in ([], [APPWRAPPERS], [APPWRAPPERS, POD_GROUPS]):
            hard = [each["spec"]["hard"] for each in job_quotas("blue", defined, Bounds())]
            assert {kind for each in hard for kind in each} == custom
            few = {kind for each in hard for kind, amount in each.items() if amount == "250"}
            assert few == {f"count/{TRAIN_JOB.resource}"}
            assert {amount for each in hard for amount in each.values()} == {"1k", "250"}

    def test_amounts_are_written_as_the_api_server_has_them(self) -> None:
        assert hard(Bounds(services=2000))["services"] == "2k"
        assert hard(Bounds(storage=Quantity.parse("1024Gi")))["requests.storage"] == "1Ti"


class TestTeams:
    def test_what_is_counted_is_defined_before(self, whole: Callable[[str], Record]) -> None:
        record = whole("existing")
        definitions = {
            item.urn
            for item in record.of("CustomResourceDefinition")
            if item.inputs["metadata"]["name"] in (APPWRAPPERS, POD_GROUPS)
        }
        assert len(definitions) == 2
        for kind in ("appwrappers", "podgroups"):
            assert definitions <= record.closure(record.one("ResourceQuota", kind, "blue"))

    def test_a_policy_leaves_room_for_the_services_of_train_jobs(self, mirror: Mirror, kubeconfig: Path) -> None:
        teams = shipped()["teams"]
        teams[0]["services"] = {"total": 20}
        record = registered(loaded({**shipped(), "teams": teams}, mirror, kubeconfig))
        limits = ((BOUNDS, "services", "20"), ("podgroups", f"count/{POD_GROUPS}", "1000"))
        for (quota, kind, most), policy in zip(limits, train_job_room.policies(), strict=True):
            counted = record.one("ResourceQuota", quota, teams[0]["name"]).inputs
            assert Quantity.parse(counted["spec"]["hard"][kind]) == Quantity.parse(5000 + int(most))
            assert counted["metadata"]["annotations"][OWN] == most
            _, binding = policy.documents()
            rules = record.one("ValidatingAdmissionPolicy", policy.name).inputs["spec"]
            assert rules["paramKind"] == {"apiVersion": "v1", "kind": "ResourceQuota"}
            assert binding["spec"]["paramRef"] == {"name": quota, "parameterNotFoundAction": "Allow"}
            assert OWN in rules["validations"][0]["expression"]

    def test_without_policies_what_is_left_out_is_filled_in(self, mirror: Mirror, kubeconfig: Path) -> None:
        raw = {**shipped(), "tenancy": {"acceptUnenforced": [str(promise) for promise in Promise]}}
        raw["scheduling"] = {"packing": "none"}  # the default's scheduler needs a newer cluster
        record = registered(loaded(raw, mirror, kubeconfig, version="1.29"))
        assert record.of("ValidatingAdmissionPolicy") == []
        assert record.one("ResourceQuota", BOUNDS, "blue").inputs["spec"]["hard"]["services"] == "500"
        ranges = {item.inputs["metadata"]["namespace"]: item.inputs["spec"] for item in record.of("LimitRange")}
        assert ranges == dict.fromkeys(("blue", "red"), limit_range("blue")["spec"])
        assert {item.inputs["metadata"]["namespace"] for item in record.of("ResourceQuota")} >= {"blue", "red"}


def labels_of(stack: StackInputs[Any], **cluster: Any) -> dict[str, str]:
    """Return the labels of a team's namespace on a cluster."""
    found: dict[str, str] = {}

    def program() -> None:
        value = Cluster(
            provider=kubernetes.Provider("cluster", kubeconfig="{}"),
            pools=stack.resolved.pools,
            placement=Placement(),
            **cluster,
        )
        found.update(boundary.namespace_labels(stack, value))

    build(program)
    return found


class TestPodSecurity:
    @pytest.fixture
    def stack(self, mirror: Mirror, kubeconfig: Path) -> StackInputs[Any]:
        return stack_of(dev(), mirror, kubeconfig)

    def levels(self, stack: StackInputs[Any], **cluster: Any) -> set[str]:
        labels = labels_of(stack, **cluster)
        assert all(label.startswith("pod-security.kubernetes.io/") for label in labels)
        return set(labels.values())

    def test_plain_pods_are_held_to_baseline(self, stack: StackInputs[Any]) -> None:
        assert self.levels(stack) == {"baseline"}

    def test_pinned_memory_is_more_than_baseline_lets_pass(self, stack: StackInputs[Any]) -> None:
        fabric = Fabric(resource="nvidia.com/roce_gdr", devices=2)
        assert self.levels(stack, fabric=fabric) == {"privileged"}

    def test_the_scratch_folder_is_too(self, mirror: Mirror, kubeconfig: Path) -> None:
        scratch = {"gpu": {"nvmeScratch": {"enabled": True, "diskModel": "x"}}}
        stack = loaded({**shipped(), **scratch}, mirror, kubeconfig)
        assert self.levels(stack) == {"privileged"}

    def test_openshift_says_itself(self, stack: StackInputs[Any]) -> None:
        assert self.levels(stack, pod_security=PodSecurity.SCC) == set()
