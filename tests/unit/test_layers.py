"""Simulated nodes, the role of members, and teams."""

from dataclasses import replace
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import pytest

from components import names
from components.kubernetes.network import Network, boundary
from components.kubernetes.node_pool import NodePool
from components.kubernetes.quantity import Quantity
from components.nodes.simulated import SimulatedNodes, SimulatedNodesArgs
from components.tenancy.editor import EditorRole, EditorRoleArgs
from components.tenancy.quota import FlavorQuota
from components.tenancy.team import Subject, Team, TeamArgs, binding_name
from stacks.settings.machines import MACHINES
from tests.unit.harness import Record, build, on_cluster

QUOTA = {
    names.CPU: Quantity.parse("224000m"),
    names.MEMORY: Quantity.parse("2000G"),
    names.GPU: Quantity.parse(8),
    names.RDMA: Quantity.parse(0),
    names.INFINIBAND: Quantity.parse(0),
    names.PODS: Quantity.parse(100),
}
OWN = FlavorQuota(flavor="default-flavor", quota=QUOTA)


def resource_groups(**limits: dict[str, str]) -> list[dict[str, Any]]:
    nominal = {"cpu": "224", "memory": "2T", "nvidia.com/gpu": "8", "nvidia.com/roce_gdr": "0"}
    nominal |= {"nvidia.com/mlnxnics": "0", "pods": "100"}
    resources = [{"name": name, "nominalQuota": amount, **limits.get(name, {})} for name, amount in nominal.items()]
    return [
        {"coveredResources": list(nominal), "flavors": [{"name": "default-flavor", "resources": resources}]},
    ]


class TestNodes:
    def nodes(self, count: int) -> Record:
        pool = NodePool(count=count, shape=MACHINES["h100-sxm5-8x"].shape())
        return on_cluster(lambda opts: SimulatedNodes("nodes", SimulatedNodesArgs(pool=pool), opts))

    def test_as_many_as_asked_for_and_fewer_lose_the_last(self) -> None:
        assert {node.object_name for node in self.nodes(4).of("Node")} == {f"gpu-node-{index}" for index in range(4)}
        assert [node.object_name for node in self.nodes(1).of("Node")] == ["gpu-node-0"]


class TestEditor:
    def test_nothing_that_runs_can_be_created_around_the_queue(self) -> None:
        rights = EditorRoleArgs(reads_secrets=True, enters_pods=True)
        role = on_cluster(lambda opts: EditorRole("editor", rights, opts)).one("ClusterRole", "mlbatch-edit")
        creatable = {
            resource for rule in role.inputs["rules"] if "create" in rule["verbs"] for resource in rule["resources"]
        }
        assert not creatable & {"pods", "jobs", "deployments", "statefulsets"}


class TestTeam:
    def team(self, **values: Any) -> Record:
        args = {"name": "blue", "users": ("alice",), "flavors": [OWN], "cohort": "default-cohort", **values}
        return on_cluster(lambda opts: Team("blue", TeamArgs(**args, role="mlbatch-edit"), opts))

    def test_its_namespace_is_not_deleted_with_the_claims_in_it_unless_somebody_said_so(self) -> None:
        kept = [item.name for item in self.team().resources if item.protect]
        assert kept == ["blue"]
        assert not [item for item in self.team(protect=False).resources if item.protect]

    def test_limits_stand_where_they_are_set(self) -> None:
        limits = {
            "borrowing_limit": {names.GPU: Quantity.parse(0)},
            "lending_limit": {names.CPU: Quantity.parse("8000m")},
        }
        queue = self.team(flavors=[replace(OWN, **limits)]).one("ClusterQueue", "blue-cluster-queue")
        assert queue.inputs["spec"]["resourceGroups"] == resource_groups(
            **{"nvidia.com/gpu": {"borrowingLimit": "0"}, "cpu": {"lendingLimit": "8"}}
        )

    def test_each_group_is_bound_beside_the_users(self) -> None:
        built = self.team(users=("gpu",), groups=("gpu", "CN=GPU Users,O=lab"))
        user, other, plain = sorted(built.of("RoleBinding"), key=lambda item: item.object_name)
        assert user.object_name == "gpu"
        assert user.inputs["subjects"] == [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "gpu"}]
        assert plain.object_name == "group:gpu"
        assert plain.inputs["subjects"] == [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "gpu"}]
        assert other.object_name.startswith("group:CN-GPU-Users-O-lab-")
        assert other.inputs["subjects"][0]["name"] == "CN=GPU Users,O=lab"
        assert plain.inputs["roleRef"] == user.inputs["roleRef"]

    def test_no_two_teams_give_bindings_one_name_in_the_stack(self) -> None:
        def teams() -> None:
            opts = pulumi.ResourceOptions(providers=[kubernetes.Provider("cluster", kubeconfig="{}")])
            common = {"flavors": [OWN], "cohort": "default-cohort", "role": "mlbatch-edit"}
            Team("blue", TeamArgs(name="blue", users=("ops-alice",), **common), opts)
            Team("blue-ops", TeamArgs(name="blue-ops", users=("alice",), **common), opts)

        bindings = build(teams).of("RoleBinding")
        assert sorted(item.inputs["metadata"]["namespace"] for item in bindings) == ["blue", "blue-ops"]
        assert len({item.urn for item in bindings}) == 2

    def test_an_older_stack_keeps_its_users_bindings(self) -> None:
        user, group = sorted(self.team(groups=("gpu",)).of("RoleBinding"), key=lambda item: item.object_name)
        assert user.former_names == ("blue-alice",)
        assert group.former_names == ()

    def test_its_network_is_bounded_before_it_has_a_queue(self) -> None:
        built = self.team(network=Network(internet=False))
        policy = built.one("NetworkPolicy", "network-boundary", "blue")
        assert policy.inputs["spec"] == boundary("blue", Network(internet=False))["spec"]
        assert policy.urn in built.one("LocalQueue", "default-queue").dependencies

    def test_taking_down_empties_the_namespace_before_the_queue_that_its_jobs_hold(self) -> None:
        built = self.team()
        namespace, queue = built.one("Namespace", "blue"), built.one("ClusterQueue", "blue-cluster-queue")
        local = built.one("LocalQueue", "default-queue")
        assert queue.urn in namespace.dependencies
        bounds = [*built.of("ResourceQuota"), *built.of("LimitRange")]
        assert local.dependencies == {namespace.urn, queue.urn, *(item.urn for item in bounds)}


@pytest.mark.parametrize(
    ("user", "name"),
    [
        ("alice", "alice"),
        ("alice@example.org", "alice@example.org"),
        ("Bob.Smith+gpu", "Bob.Smith+gpu"),
        ("oidc:alice", "oidc:alice"),
    ],
)
def test_a_binding_is_named_after_its_user(user: str, name: str) -> None:
    assert binding_name(user) == name


@pytest.mark.parametrize("user", ["a/b", "50%", "alice smith", ".", "..", "x" * 254, "ålice", "CN=alice,O=lab"])
def test_a_user_who_cannot_name_an_object_gets_a_name_that_can(user: str) -> None:
    name = binding_name(user)
    assert len(name) <= 253
    assert not set(name) & set("/% ")
    assert name.strip(".")
    assert name.isascii()
    assert name != binding_name(user + "x")


def test_two_users_never_share_a_binding() -> None:
    assert binding_name("a/b") != binding_name("a%b")


@pytest.mark.parametrize("name", ["gpu", "group:gpu", "a/b", ".", "x" * 253])
def test_a_user_and_a_group_never_share_a_binding(name: str) -> None:
    assert binding_name(name, Subject.GROUP).startswith("group:")
    assert len(binding_name(name, Subject.GROUP)) <= 253
    assert not binding_name(name).startswith("group:")
    assert not binding_name(f"group:{name}").startswith("group:")
