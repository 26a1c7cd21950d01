"""Nodes, priorities, tenancy and the sample job: exact objects, as MLBatch's documents have them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import pytest

from components import names
from components.kubernetes.network import Network, boundary
from components.kubernetes.node_pool import GPU_TOLERATION, NodePool
from components.kubernetes.placement import NodeGroup
from components.kubernetes.quantity import Quantity
from components.nodes.simulated import SimulatedNodes, SimulatedNodesArgs
from components.scheduling.priorities import Priorities, PrioritiesArgs
from components.tenancy.editor import EditorRole, EditorRoleArgs
from components.tenancy.flavor import Flavor, FlavorArgs
from components.tenancy.quota import FlavorQuota
from components.tenancy.slack import SlackController, SlackControllerArgs, SlackQueue, SlackQueueArgs
from components.tenancy.team import Subject, Team, TeamArgs, binding_name
from components.workloads.gang import Gang, GangArgs
from stacks.settings.machines import MACHINES
from tests.unit.harness import Record, build

QUOTA = {
    names.CPU: Quantity.parse("224000m"),
    names.MEMORY: Quantity.parse("2000G"),
    names.GPU: Quantity.parse(8),
    names.RDMA: Quantity.parse(0),
    names.INFINIBAND: Quantity.parse(0),
    names.PODS: Quantity.parse(100),
}
OWN = FlavorQuota(flavor="default-flavor", quota=QUOTA)
PREEMPTION = {
    "withinClusterQueue": "LowerOrNewerEqualPriority",
    "reclaimWithinCohort": "Any",
    "borrowWithinCohort": {"policy": "Never"},
}


def record(component: Callable[[pulumi.ResourceOptions], Any]) -> Record:
    def program() -> None:
        component(pulumi.ResourceOptions(providers=[kubernetes.Provider("cluster", kubeconfig="{}")]))

    return build(program)


def resource_groups(**limits: dict[str, str]) -> list[dict[str, Any]]:
    nominal = {"cpu": "224", "memory": "2T", "nvidia.com/gpu": "8", "nvidia.com/roce_gdr": "0"}
    nominal |= {"nvidia.com/mlnxnics": "0", "pods": "100"}
    resources = [{"name": name, "nominalQuota": amount, **limits.get(name, {})} for name, amount in nominal.items()]
    return [
        {"coveredResources": list(nominal), "flavors": [{"name": "default-flavor", "resources": resources}]},
    ]


class TestNodes:
    def nodes(self, count: int = 3, machine: str = "h100-sxm5-8x", gpus: int | None = None) -> Record:
        pool = NodePool(count=count, shape=MACHINES[machine].shape(gpus=gpus))
        return record(lambda opts: SimulatedNodes("nodes", SimulatedNodesArgs(pool=pool), opts))

    def test_a_node_is_kwoks_and_looks_like_a_gpu_machine(self) -> None:
        amounts = {"cpu": "224", "memory": "2113411288Ki", "nvidia.com/gpu": "8", "pods": "250"}
        assert self.nodes().one("Node", "gpu-node-0").inputs == {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": "gpu-node-0",
                "annotations": {"kwok.x-k8s.io/node": "fake"},
                "labels": {
                    "kubernetes.io/arch": "amd64",
                    "kubernetes.io/hostname": "gpu-node-0",
                    "kubernetes.io/os": "linux",
                    "node.kubernetes.io/instance-type": "h100-sxm5-8x",
                    "nvidia.com/gpu.present": "true",
                    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
                },
            },
            "spec": {"taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]},
            "status": {"allocatable": amounts, "capacity": amounts},
        }

    def test_as_many_as_asked_for_and_fewer_lose_the_last(self) -> None:
        assert {node.object_name for node in self.nodes(4).of("Node")} == {f"gpu-node-{index}" for index in range(4)}
        assert [node.object_name for node in self.nodes(1).of("Node")] == ["gpu-node-0"]

    def test_instance_type_and_gpus_can_be_chosen(self) -> None:
        node = self.nodes(1, "Standard_ND96isr_H100_v5", 4).one("Node", "gpu-node-0").inputs
        assert node["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "Standard_ND96isr_H100_v5"
        assert node["status"]["capacity"] == {
            "cpu": "94940m",
            "memory": "1895Gi",
            "nvidia.com/gpu": "4",
            "nvidia.com/mlnxnics": "8",
            "pods": "250",
        }

    def test_a_changed_shape_replaces_a_node_and_a_cordon_is_left_alone(self) -> None:
        node = self.nodes(1).one("Node", "gpu-node-0")
        assert node.replace_on_changes == ("status",)
        assert node.delete_before_replace
        assert node.ignore_changes == ("spec.taints",)


class TestPriorities:
    def test_three_classes_with_mlbatchs_values(self) -> None:
        classes = record(lambda opts: Priorities("priorities", PrioritiesArgs(), opts)).of("PriorityClass")
        assert {item.object_name: item.inputs["value"] for item in classes} == {
            "low-priority": 1,
            "default-priority": 5,
            "high-priority": 10,
        }
        # MLBatch has PreemptLowerPriority, with which a member evicts pods of other teams.
        assert {item.inputs["preemptionPolicy"] for item in classes} == {"Never"}

    def test_one_is_the_default_and_the_others_do_not_say_so(self) -> None:
        classes = record(lambda opts: Priorities("priorities", PrioritiesArgs(), opts)).of("PriorityClass")
        assert {item.object_name: item.inputs.get("globalDefault") for item in classes} == {
            "low-priority": None,
            "default-priority": True,
            "high-priority": None,
        }

    def test_what_cannot_be_changed_in_place_is_replaced(self) -> None:
        item = record(lambda opts: Priorities("priorities", PrioritiesArgs(), opts)).one(
            "PriorityClass", "low-priority"
        )
        assert set(item.replace_on_changes) == {"value", "preemptionPolicy"}


class TestFlavor:
    def test_on_tainted_nodes_it_gives_jobs_the_toleration(self) -> None:
        args = FlavorArgs(tolerations=[GPU_TOLERATION])
        flavor = record(lambda opts: Flavor("flavor", args, opts)).one("ResourceFlavor", "default-flavor")
        assert flavor.type == "kubernetes:kueue.x-k8s.io/v1beta2:ResourceFlavor"
        assert flavor.inputs["spec"] == {
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
        }

    def test_jobs_that_it_admits_run_on_the_gpu_nodes(self) -> None:
        args = FlavorArgs(nodes={"pool": "gpu"})
        flavor = record(lambda opts: Flavor("flavor", args, opts)).one("ResourceFlavor", "default-flavor")
        assert flavor.inputs["spec"] == {"nodeLabels": {"pool": "gpu"}}

    def test_on_others_it_is_empty(self) -> None:
        """Seeds 000 and 002: `kubectl apply -f setup.k8s/default-flavor.yaml`."""
        args = FlavorArgs()
        flavor = record(lambda opts: Flavor("flavor", args, opts)).one("ResourceFlavor", "default-flavor")
        assert "spec" not in flavor.inputs


class TestEditor:
    def test_the_role_has_mlbatchs_rules_but_for_secrets_and_commands_in_pods(self) -> None:
        read, end = ["get", "list", "watch"], ["delete", "get", "list", "watch"]
        write = ["create", "delete", "get", "list", "patch", "update", "watch"]
        role = record(lambda opts: EditorRole("editor", EditorRoleArgs(), opts)).one("ClusterRole", "mlbatch-edit")
        assert [(rule["apiGroups"], rule["resources"], rule["verbs"]) for rule in role.inputs["rules"]] == [
            ([""], ["pods"], end),
            (["apps"], ["deployments", "statefulsets"], end),
            ([""], ["services", "configmaps", "persistentvolumeclaims"], write),
            ([""], ["secrets"], ["create", "delete"]),
            (["kueue.x-k8s.io"], ["*"], read),
            (["kubeflow.org"], ["pytorchjobs"], write),
            (["ray.io"], ["rayjobs", "rayclusters"], end),
            (["trainer.kubeflow.org"], ["trainjobs"], write),
            (["jobset.x-k8s.io"], ["jobsets"], read),
            (["batch"], ["jobs"], end),
            (["workload.codeflare.dev"], ["appwrappers"], write),
            (["scheduling.k8s.io"], ["priorityclasses"], read),
            (["scheduling.x-k8s.io"], ["podgroups"], write),
            ([""], ["events"], read),
            ([""], ["namespaces", "pods/log"], ["get"]),
            ([""], ["pods/portforward"], ["create"]),
        ]

    def test_nothing_that_runs_can_be_created_around_the_queue(self) -> None:
        rights = EditorRoleArgs(reads_secrets=True, enters_pods=True)
        role = record(lambda opts: EditorRole("editor", rights, opts)).one("ClusterRole", "mlbatch-edit")
        creatable = {
            resource for rule in role.inputs["rules"] if "create" in rule["verbs"] for resource in rule["resources"]
        }
        assert not creatable & {"pods", "jobs", "deployments", "statefulsets"}


class TestTeam:
    def team(self, **values: Any) -> Record:
        args = {"name": "blue", "users": ("alice",), "flavors": [OWN], "cohort": "default-cohort", **values}
        return record(lambda opts: Team("blue", TeamArgs(**args, role="mlbatch-edit"), opts))

    def test_a_namespace_whose_jobs_kueue_manages(self) -> None:
        namespace = self.team().one("Namespace", "blue")
        assert namespace.inputs["metadata"] == {"name": "blue", "labels": {"mlbatch-team-namespace": "true"}}

    def test_its_namespace_is_not_deleted_with_the_claims_in_it_unless_somebody_said_so(self) -> None:
        kept = [item.name for item in self.team().resources if item.protect]
        assert kept == ["blue"]
        assert not [item for item in self.team(protect=False).resources if item.protect]

    def test_a_cluster_queue_with_mlbatchs_policies_and_canonical_quotas(self) -> None:
        queue = self.team().one("ClusterQueue", "blue-cluster-queue")
        assert queue.type == "kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue"
        assert queue.inputs["metadata"] == {"name": "blue-cluster-queue"}
        assert queue.inputs["spec"] == {
            "cohortName": "default-cohort",
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "blue"}},
            "preemption": PREEMPTION,
            "resourceGroups": resource_groups(),
        }

    def test_limits_stand_where_they_are_set(self) -> None:
        limits = {
            "borrowing_limit": {names.GPU: Quantity.parse(0)},
            "lending_limit": {names.CPU: Quantity.parse("8000m")},
        }
        queue = self.team(flavors=[replace(OWN, **limits)]).one("ClusterQueue", "blue-cluster-queue")
        assert queue.inputs["spec"]["resourceGroups"] == resource_groups(
            **{"nvidia.com/gpu": {"borrowingLimit": "0"}, "cpu": {"lendingLimit": "8"}}
        )

    def test_a_local_queue_in_the_namespace(self) -> None:
        queue = self.team().one("LocalQueue", "default-queue")
        assert queue.inputs["metadata"] == {"name": "default-queue", "namespace": "blue"}
        assert queue.inputs["spec"] == {"clusterQueue": "blue-cluster-queue"}
        assert queue.replace_on_changes == ("spec.clusterQueue",), "Kueue does not let it change"

    def test_each_user_is_bound_to_the_editor_role_there(self) -> None:
        built = self.team(users=("alice", "carol@example.org"))
        assert {item.object_name for item in built.of("RoleBinding")} == {"alice", "carol@example.org"}
        assert built.one("RoleBinding", "alice").inputs == {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "alice", "namespace": "blue"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "mlbatch-edit"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
        }

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

    def test_a_team_is_few_resources(self) -> None:
        """The engine writes its whole state at every step, so what a team adds counts with every other team."""
        assert sorted(item.kind for item in self.team(network=Network()).objects()) == [
            "ClusterQueue",
            "LimitRange",
            "LocalQueue",
            "Namespace",
            "NetworkPolicy",
            *["ResourceQuota"] * 5,
            "RoleBinding",
        ]

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


class TestSlack:
    def test_the_queue_is_a_teams_without_a_lending_limit(self) -> None:
        args = SlackQueueArgs(flavors=[OWN], cohort="default-cohort")
        queue = record(lambda opts: SlackQueue("slack", args, opts)).one("ClusterQueue", "slack-cluster-queue")
        assert queue.inputs["metadata"] == {"name": "slack-cluster-queue"}
        assert queue.inputs["spec"] == {
            "cohortName": "default-cohort",
            "preemption": PREEMPTION,
            "resourceGroups": resource_groups(),
        }
        assert queue.ignore_changes == ()

    def controller(self) -> Record:
        args = SlackControllerArgs(
            queue="slack-cluster-queue",
            teams=["blue-cluster-queue"],
            image="registry.example.org/library/python:3",
            pools=[NodePool(count=1, shape=MACHINES["h100-sxm5-8x"].shape())],
            nodes=NodeGroup(tolerations=[{"key": "system", "operator": "Exists"}]),
        )
        return record(lambda opts: SlackController("slack-controller", args, opts))

    def test_the_controller_may_move_those_queues_alone_and_touch_no_job(self) -> None:
        rules = self.controller().one("ClusterRole", "slack-controller").inputs["rules"]
        assert rules == [
            {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]},
            {"apiGroups": ["kueue.x-k8s.io"], "resources": ["clusterqueues"], "verbs": ["list", "watch"]},
            {
                "apiGroups": ["kueue.x-k8s.io"],
                "resources": ["clusterqueues"],
                "resourceNames": ["slack-cluster-queue", "blue-cluster-queue"],
                "verbs": ["patch"],
            },
        ]

    def test_the_controller_leaves_a_dead_node_after_half_a_minute(self) -> None:
        pod = self.controller().one("Deployment", "slack-controller").inputs["spec"]["template"]["spec"]
        assert pod["tolerations"] == [
            {"key": "system", "operator": "Exists"},
            *(
                {
                    "key": f"node.kubernetes.io/{state}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 30,
                }
                for state in ("not-ready", "unreachable")
            ),
        ]

    def test_the_controller_runs_its_program_from_a_config_map(self) -> None:
        built = self.controller()
        spec = built.one("Deployment", "slack-controller").inputs["spec"]
        pod = spec["template"]["spec"]
        (container,) = pod["containers"]
        folder = container["volumeMounts"][0]["mountPath"]
        assert container["image"] == "registry.example.org/library/python:3"
        program = "components.tenancy.slack_controller"
        assert container["command"] == ["python", "-m", program, f"{folder}/settings.json"]
        assert {"name": "PYTHONPATH", "value": folder} in container["env"]
        assert pod["serviceAccountName"] == "slack-controller"
        assert pod["priorityClassName"] == "system-node-critical"
        files = built.one("ConfigMap", "slack-controller").inputs["data"]
        assert set(files) == {"slack_controller.py", "lending.py", "in_cluster.py", "settings.json"}
        (volume,) = pod["volumes"]
        assert (volume["name"], volume["configMap"]["name"]) == ("program", "slack-controller")
        assert volume["configMap"]["items"] == [
            {"key": "settings.json", "path": "settings.json"},
            {"key": "slack_controller.py", "path": "components/tenancy/slack_controller.py"},
            {"key": "in_cluster.py", "path": "components/kubernetes/in_cluster.py"},
            {"key": "lending.py", "path": "components/tenancy/lending.py"},
        ]

    def test_the_controller_runs_without_rights_it_does_not_need(self) -> None:
        pod = self.controller().one("Deployment", "slack-controller").inputs["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["containers"][0]["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        }


class TestGang:
    def gang(self, **values: Any) -> Record:
        requests = {
            names.CPU: Quantity.parse("8000m"),
            names.MEMORY: Quantity.parse("65536Mi"),
            names.GPU: Quantity.parse(8),
        }
        args = GangArgs(
            **{
                "namespace": "blue",
                "pods": 2,
                "requests": requests,
                "seconds": 3600,
                "priority_class": "default-priority",
                "image": "registry.example.org/library/busybox:1",
                **values,
            }
        )
        return record(lambda opts: Gang("sample-gang", args, opts))

    def test_an_app_wrapper_around_one_job_whose_pods_run_together(self) -> None:
        amounts = {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "8"}
        assert self.gang().one("AppWrapper", "sample-gang").inputs == {
            "apiVersion": "workload.codeflare.dev/v1beta2",
            "kind": "AppWrapper",
            "metadata": {
                "name": "sample-gang",
                "namespace": "blue",
                "labels": {"kueue.x-k8s.io/queue-name": "default-queue"},
            },
            "spec": {
                "components": [
                    {
                        "template": {
                            "apiVersion": "batch/v1",
                            "kind": "Job",
                            "metadata": {"name": "sample-gang"},
                            "spec": {
                                "parallelism": 2,
                                "completions": 2,
                                "template": {
                                    "spec": {
                                        "restartPolicy": "Never",
                                        "terminationGracePeriodSeconds": 0,
                                        "priorityClassName": "default-priority",
                                        "containers": [
                                            {
                                                "name": "sleeper",
                                                "image": "registry.example.org/library/busybox:1",
                                                "command": ["sleep", "3600"],
                                                "securityContext": {
                                                    "allowPrivilegeEscalation": False,
                                                    "capabilities": {"drop": ["ALL"]},
                                                },
                                                "resources": {"requests": amounts, "limits": amounts},
                                            }
                                        ],
                                    }
                                },
                            },
                        }
                    }
                ]
            },
        }

    def test_for_whom_it_runs_is_recorded(self) -> None:
        wrapper = self.gang(user="alice").one("AppWrapper", "sample-gang")
        assert wrapper.inputs["metadata"]["annotations"] == {"mlbatch/submitted-for": "alice"}

    def test_a_changed_job_is_submitted_anew(self) -> None:
        wrapper = self.gang().one("AppWrapper", "sample-gang")
        assert set(wrapper.replace_on_changes) == {"metadata", "spec"}
        assert wrapper.delete_before_replace
