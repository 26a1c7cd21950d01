"""Target `openshift`: the seeds' cluster, and what OpenShift alone asks for.

Seeds: 000, the MLBatch tutorial for KubeCon EU 2025 (`setup.KubeConEU25/README.md` of project-codeflare/mlbatch, called
the tutorial below), and 002, MLBatch's guide for a cluster (`setup.k8s/CLUSTER-SETUP.md`, the guide).
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.artifacts import Mirror
from components.tenancy.promises import Promise
from stacks.config import inputs
from stacks.config.cluster_facts import ClusterFacts, GpuPolicy, NodeFacts, comes_with_admission_policies
from stacks.config.errors import SettingsError
from stacks.config.inputs import StackInputs
from stacks.deploy import deploy
from stacks.targets.openshift.settings import NfsSettings
from tests.unit.conftest import ROOT
from tests.unit.harness import Record, build, strings

WORKERS = ("pokprod-b93r38s3", "pokprod-b93r39s2", "pokprod-b93r44s0")
"""As the tutorial names them."""
PROVISIONER = "pokprod-nfs-subdir-external-provisioner"
ALLOCATABLE = {"cpu": "224", "memory": "2113411288Ki", "nvidia.com/gpu": "8", "pods": "250"}


def worker(name: str, labels: Mapping[str, str] = {}, **allocatable: str) -> NodeFacts:
    gpus = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    return NodeFacts(name=name, labels={**gpus, **labels}, allocatable={**ALLOCATABLE, **allocatable})


NODES = tuple(worker(name) for name in WORKERS)


def shipped() -> dict[str, Any]:
    config = yaml.safe_load((ROOT / "Pulumi.openshift.yaml").read_text())["config"]
    return {name.removeprefix("mlbatch:"): copy.deepcopy(value) for name, value in config.items()}


def loaded(
    raw: Mapping[str, Any],
    mirror: Mirror,
    kubeconfig: Path,
    nodes: tuple[NodeFacts, ...] = NODES,
    version: str = "1.34",
    openshift: str | None = "4.21.3",
    has_registry: bool = True,
    default_priority: str | None = None,
    gpu_policies: tuple[GpuPolicy, ...] = (),
    data_science: tuple[str, ...] = (),
) -> StackInputs[Any]:
    def ask(config: object, settings: object, selector: Mapping[str, str] | None) -> ClusterFacts:
        return ClusterFacts(
            identifier="0d5a7b6e-3c55-4a8e-8f7e-f9f4d5ab0c10",
            version=version,
            nodes=nodes if selector is not None else (),
            has_admission_policies=comes_with_admission_policies(version),
            storage_classes=frozenset(),
            openshift=openshift,
            has_registry=has_registry,
            default_priority=default_priority,
            gpu_policies=gpu_policies,
            data_science=data_science,
        )

    files = {"artifacts": mirror.artifacts, "verify": False}
    return inputs.interpret({**raw, "mirror": files}, base=ROOT, environment={"KUBECONFIG": str(kubeconfig)}, ask=ask)


def refused(raw: Mapping[str, Any], mirror: Mirror, kubeconfig: Path, **cluster: Any) -> str:
    with pytest.raises(SettingsError) as error:
        loaded(raw, mirror, kubeconfig, **cluster)
    assert len(error.value.problems) == 1, str(error.value)
    return str(error.value)


def registered(stack: StackInputs[Any]) -> Record:
    return build(lambda: deploy(stack), outputs=lambda kind, name, given: {"result": "made-up"})


@pytest.fixture(scope="module")
def record() -> Record:
    from tests.unit.whole_stacks import registered as whole

    return whole("openshift")


class TestCluster:
    def test_the_example_is_the_tutorials_cluster(self, mirror: Mirror, kubeconfig: Path) -> None:
        stack = loaded(shipped(), mirror, kubeconfig)
        pool = stack.resolved.pool
        assert (pool.count, str(pool.resources["nvidia.com/gpu"])) == (3, "24")
        assert str(stack.resolved.divisions[0].slack["nvidia.com/gpu"]) == "8"
        assert {name: str(quota["nvidia.com/gpu"]) for name, quota in stack.resolved.divisions[0].quotas.items()} == {
            "blue": "8",
            "red": "8",
        }

    @pytest.mark.parametrize("version", ["4.16.0", "4.21.3"])
    def test_an_openshift_that_was_tried_is_taken(self, version: str, mirror: Mirror, kubeconfig: Path) -> None:
        assert loaded(shipped(), mirror, kubeconfig, openshift=version)


class TestNfs:
    """The tutorial's Persistent Storage Setup."""

    def test_the_provisioner_alone_mounts_nfs_and_no_folder_of_its_node(self, record: Record) -> None:
        constraint = record.one("SecurityContextConstraints", "mlbatch-nfs-provisioner")
        assert constraint.inputs["users"] == [f"system:serviceaccount:nfs-provisioner:{PROVISIONER}"]
        assert constraint.inputs["groups"] == []
        assert constraint.inputs["volumes"] == ["nfs", "projected"]
        assert constraint.inputs["seccompProfiles"] == ["runtime/default"]
        assert constraint.inputs["runAsUser"] == {"type": "RunAsAny"}
        allowed = [key for key, value in constraint.inputs.items() if key.startswith("allow") and value]
        assert allowed == [], "neither privileges nor the node's folders, network and processes"
        assert constraint.inputs["requiredDropCapabilities"] == ["ALL"]
        deployment = record.one("Deployment", PROVISIONER)
        assert constraint.urn in record.closure(deployment), "its pod would be refused"

    def test_the_tutorials_constraint_is_granted_to_exactly_its_account(self, mirror: Mirror, kubeconfig: Path) -> None:
        """`oc adm policy add-scc-to-user hostmount-anyuid`."""
        raw = shipped()
        raw["nfs"]["hostmountAnyuid"] = True
        record = registered(loaded(raw, mirror, kubeconfig))
        binding = record.one("RoleBinding", "system:openshift:scc:hostmount-anyuid", "nfs-provisioner")
        assert binding.inputs["roleRef"]["name"] == "system:openshift:scc:hostmount-anyuid"
        assert binding.inputs["subjects"] == [
            {"kind": "ServiceAccount", "name": PROVISIONER, "namespace": "nfs-provisioner"}
        ]
        assert binding.urn in record.closure(record.one("Deployment", PROVISIONER))
        assert record.of("SecurityContextConstraints") == []

    def test_everything_that_stores_waits_for_the_class(self, record: Record) -> None:
        made = record.one("StorageClass", "nfs-client-pokprod")
        assert made.urn in record.closure(record.one("ClusterQueue", "blue-cluster-queue"))

    def test_no_server_no_provisioner(self, mirror: Mirror, kubeconfig: Path) -> None:
        raw = {**shipped(), "nfs": {}}
        record = registered(loaded(raw, mirror, kubeconfig))
        assert record.of("StorageClass") == []
        assert record.of("SecurityContextConstraints") == []

    @pytest.mark.parametrize(
        ("values", "name"),
        [
            ({}, "cluster.local/nfs-nfs-subdir-external-provisioner"),
            ({"release": "pokprod"}, "cluster.local/pokprod-nfs-subdir-external-provisioner"),
            ({"release": "a" * 32}, f"cluster.local/{'a' * 32}-nfs-subdir-external-provisione"),
            ({"release": "a" * 62}, f"cluster.local/{'a' * 62}"),
            ({"release": "my-nfs-subdir-external-provisioner"}, "cluster.local/my-nfs-subdir-external-provisioner"),
            ({"provisionerName": "k8s-sigs.io/nfs"}, "k8s-sigs.io/nfs"),
        ],
    )
    def test_it_is_called_as_its_chart_calls_it(self, values: dict[str, str], name: str) -> None:
        """The chart's `_helpers.tpl` cuts the name, and the StorageClass has to have the same."""
        assert NfsSettings.model_validate(values).provisioner == name


class TestPodsOfThePlatform:
    def test_none_names_a_user_outside_of_its_namespaces_range(self, record: Record) -> None:
        """`restricted-v2` refuses them; the provisioner alone has a grant for root."""
        named = {
            item.object_name: user
            for kind in ("Deployment", "DaemonSet", "StatefulSet", "Job")
            for item in record.of(kind)
            for pod in [item.inputs["spec"]["template"]["spec"]]
            for place in (pod, *pod["containers"], *pod.get("initContainers", ()))
            if (user := place.get("securityContext", {}).get("runAsUser")) is not None
        }
        assert named == {PROVISIONER: 0}

    def test_namespaces_of_teams_leave_pod_security_to_the_constraints(self, record: Record) -> None:
        labels = record.one("Namespace", "blue").inputs["metadata"]["labels"]
        assert labels == {"mlbatch-team-namespace": "true"}


TUTORIAL = {"cpu": "224", "memory": "2000G", "nvidia.com/gpu": "8", "pods": "100"}
"""The tutorial's quota of the slack queue and of each team. It misspells the GPUs as nvidia.com/GPU."""
JOB = {"enabled": True, "image": "registry.example.org/nccl", "tag": "1", "submission": {"team": "blue"}}
CANONICAL = {**TUTORIAL, "memory": "2T"}
"""The same, as Kubernetes writes it."""
GUIDE = {"cpu": "8000m", "memory": "128Gi", "nvidia.com/gpu": "8", "nvidia.com/roce_gdr": "1", "pods": "100"}
"""The guide's quota of the slack queue."""


def nominal(record: Record, queue: str) -> dict[str, str]:
    (group,) = record.one("ClusterQueue", queue).inputs["spec"]["resourceGroups"]
    (flavor,) = group["flavors"]
    assert group["coveredResources"] == [resource["name"] for resource in flavor["resources"]]
    return {resource["name"]: resource["nominalQuota"] for resource in flavor["resources"]}


class TestQuotas:
    @pytest.fixture
    def raw(self) -> dict[str, Any]:
        raw = {**shipped(), "queueing": {"slack": TUTORIAL}}
        raw["teams"] = [
            {"name": "blue", "users": ["alice"], "quota": TUTORIAL},
            {"name": "red", "users": ["bob"], "quota": TUTORIAL},
        ]
        return raw

    def test_the_tutorials_queues_as_it_has_them(self, raw: dict[str, Any], mirror: Mirror, kubeconfig: Path) -> None:
        raw["queueing"]["openToAll"] = True
        record = registered(loaded(raw, mirror, kubeconfig))
        for queue in ("slack-cluster-queue", "blue-cluster-queue", "red-cluster-queue"):
            spec = record.one("ClusterQueue", queue).inputs["spec"]
            assert spec["cohortName"] == "default-cohort"
            assert spec.get("namespaceSelector") == (None if queue == "slack-cluster-queue" else {})
            assert spec["preemption"] == {
                "withinClusterQueue": "LowerOrNewerEqualPriority",
                "reclaimWithinCohort": "Any",
                "borrowWithinCohort": {"policy": "Never"},
            }
            assert {name: amount for name, amount in nominal(record, queue).items() if amount != "0"} == CANONICAL
        for team, user in (("blue", "alice"), ("red", "bob")):
            local = record.one("LocalQueue", "default-queue", team)
            assert local.inputs["spec"] == {"clusterQueue": f"{team}-cluster-queue"}
            binding = record.one("RoleBinding", user, team).inputs
            assert binding["roleRef"]["name"] == "mlbatch-edit"
            assert binding["subjects"] == [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]

    def test_a_queue_takes_jobs_of_its_teams_namespace_alone(self, record: Record) -> None:
        """The tutorial's take those of any namespace, with a LocalQueue that leads there."""
        selectors = {
            item.object_name: item.inputs["spec"].get("namespaceSelector") for item in record.of("ClusterQueue")
        }
        assert selectors == {
            "blue-cluster-queue": {"matchLabels": {"kubernetes.io/metadata.name": "blue"}},
            "red-cluster-queue": {"matchLabels": {"kubernetes.io/metadata.name": "red"}},
            "slack-cluster-queue": None,
        }

    def test_it_keeps_no_room_for_daemon_sets_and_a_preview_says_so(
        self, raw: dict[str, Any], mirror: Mirror, kubeconfig: Path
    ) -> None:
        warnings = loaded(raw, mirror, kubeconfig).warnings
        assert any("the quotas of cpu add up to 672, but jobs can use 666" in text for text in warnings)

    def test_the_guides_slack_queue_covers_roce_devices(self, mirror: Mirror, kubeconfig: Path) -> None:
        raw = {**shipped(), "queueing": {"slack": GUIDE}}
        raw["cluster"]["pool"]["rdma"] = {"perNode": 1}
        nodes = tuple(worker(name, **{"nvidia.com/roce_gdr": "1"}) for name in WORKERS)
        found = nominal(registered(loaded(raw, mirror, kubeconfig, nodes=nodes)), "slack-cluster-queue")
        assert {name: amount for name, amount in found.items() if amount != "0"} == {**GUIDE, "cpu": "8"}

    def test_pods_can_be_left_out(self, mirror: Mirror, kubeconfig: Path) -> None:
        """The guide: "Pod counts are optional and can be omitted from the list of covered resources"."""
        stack = loaded({**shipped(), "queueing": {"countPods": False}}, mirror, kubeconfig)
        record = registered(stack)
        for queue in ("slack-cluster-queue", "blue-cluster-queue"):
            assert list(nominal(record, queue)) == [
                "cpu",
                "memory",
                "nvidia.com/gpu",
                "nvidia.com/roce_gdr",
                "nvidia.com/mlnxnics",
            ]

    def test_no_object_has_the_tutorials_spelling(self, record: Record) -> None:
        spelt = re.compile(r"nvidia\.com/GPU|nvidia-GPU-operator")
        assert [
            item.name for item in record.resources if any(spelt.search(text) for text in strings(item.inputs))
        ] == []


class TestRole:
    def test_mlbatch_edit_is_upstreams_without_secrets_and_commands_in_pods(self, record: Record) -> None:
        found = record.one("ClusterRole", "mlbatch-edit").inputs["rules"]
        (secrets,) = (rule["verbs"] for rule in found if "secrets" in rule["resources"])
        assert secrets == ["create", "delete"], "an answer to whoever changes one would show it"
        assert not [rule for rule in found if "pods/exec" in rule["resources"]]

    def test_upstreams_rules_are_an_option(self, mirror: Mirror, kubeconfig: Path) -> None:
        """`setup.k8s/mlbatch-edit-role.yaml` of 2025-03-21 and later: members may read pods/log.

        And the last three of `setup.RHOAI-v2.19/mlbatch-edit-role.yaml`, which `oc project` and the console need.
        """
        raw = {**shipped(), "tenancy": {"readSecrets": True, "exec": True, "unwrappedRay": True}}
        found = registered(loaded(raw, mirror, kubeconfig)).one("ClusterRole", "mlbatch-edit").inputs["rules"]
        end, read = ["delete", "get", "list", "watch"], ["get", "list", "watch"]
        write = ["create", "delete", "get", "list", "patch", "update", "watch"]
        wanted = [
            ("", ["pods"], end),
            ("apps", ["deployments", "statefulsets"], end),
            ("", ["services", "secrets", "configmaps", "persistentvolumeclaims"], write),
            ("kueue.x-k8s.io", ["*"], read),
            ("kubeflow.org", ["pytorchjobs"], write),
            ("ray.io", ["rayjobs", "rayclusters"], write),
            ("batch", ["jobs"], end),
            ("workload.codeflare.dev", ["appwrappers"], write),
            ("scheduling.k8s.io", ["priorityclasses"], read),
            ("scheduling.x-k8s.io", ["podgroups"], write),
            ("", ["events"], read),
            ("", ["namespaces", "pods/log"], ["get"]),
            ("", ["pods/exec", "pods/portforward"], ["create"]),
            ("route.openshift.io", ["routes"], end),
            ("", ["projects"], ["get"]),
            ("project.openshift.io", ["projects"], ["get"]),
        ]
        upstreams = [(group, each, verb) for group, resources, verbs in wanted for each in resources for verb in verbs]
        ours = [
            (*rule["apiGroups"], each, verb) for rule in found for each in rule["resources"] for verb in rule["verbs"]
        ]
        trained = {("trainer.kubeflow.org", "trainjobs", verb) for verb in write}
        trained |= {("jobset.x-k8s.io", "jobsets", verb) for verb in read}
        assert set(ours) == set(upstreams) | trained


class TestMistakes:
    def test_the_class_that_the_stack_makes_is_one(self, mirror: Mirror, kubeconfig: Path) -> None:
        raw = {**shipped(), "monitoring": {"enabled": True, "storageClass": "nfs-client-pokprod"}}
        assert loaded(raw, mirror, kubeconfig)

    def test_monitoring_stands_beside_openshifts_own(self, mirror: Mirror, kubeconfig: Path) -> None:
        record = registered(loaded({**shipped(), "monitoring": {"enabled": True}}, mirror, kubeconfig))
        (values,) = [
            item.inputs["values"]
            for item in record.resources
            if "prometheus-node-exporter" in item.inputs.get("values", {})
        ]
        assert values["prometheus-node-exporter"]["service"]["port"] == 9110
        assert values["crds"] == {"enabled": False}
        assert values["prometheusOperator"]["prometheusInstanceNamespaces"] == ["monitoring"]
        monitors = [item.object_name for item in record.of("ServiceMonitor")]
        assert "nvidia-dcgm-exporter" in monitors

    @pytest.mark.parametrize(
        ("chosen", "roles"),
        [({}, ["nonroot-v2"]), ({"privilegedAccounts": True}, ["privileged"])],
    )
    def test_the_tutorials_grant_to_the_accounts_of_monitoring_is_an_option(
        self, chosen: dict[str, Any], roles: list[str], mirror: Mirror, kubeconfig: Path
    ) -> None:
        """oc adm policy add-scc-to-user privileged system:serviceaccount:prometheus:..., seven times."""
        raw = {**shipped(), "monitoring": {"enabled": True, "namespace": "prometheus", **chosen}}
        record = registered(loaded(raw, mirror, kubeconfig))
        bindings = [item.inputs for item in record.of("RoleBinding")]
        granted = [
            body["roleRef"]["name"]
            for body in bindings
            if body["subjects"][0]["name"].startswith("kube-prometheus-stack-")
        ]
        assert granted == [f"system:openshift:scc:{role}" for role in roles]

    def test_teams_on_a_kubernetes_without_admission_policies(self, mirror: Mirror, kubeconfig: Path) -> None:
        """OpenShift 4.16, the tutorial's, has Kubernetes 1.29."""
        raw = {**shipped(), "scheduling": {"packing": "none"}}
        text = refused(raw, mirror, kubeconfig, version="1.29", openshift="4.16.30")
        assert "this cluster has no ValidatingAdmissionPolicy" in text
        raw["tenancy"] = {"acceptUnenforced": [str(promise) for promise in Promise]}
        assert loaded(raw, mirror, kubeconfig, version="1.29", openshift="4.16.30").resolved.unenforced

    def test_a_project_that_somebody_requested_has_no_gpus_and_evicts_nobody(self, record: Record) -> None:
        (policy,) = [
            item
            for item in record.of("ValidatingAdmissionPolicy")
            if item.object_name not in {promise.policy for promise in Promise}
        ]
        assert policy.object_name == "mlbatch-requested-projects"
        asked, claims, runtime, evicts = policy.inputs["spec"]["validations"]
        assert "key in ['nvidia.com/gpu']" in asked["expression"]
        assert claims["expression"] == "!variables.held || object.spec.?resourceClaims.orValue([]).size() == 0"
        assert runtime["expression"].endswith("!object.spec.?runtimeClassName.orValue('').startsWith('nvidia')")
        assert evicts["expression"].endswith(" in [] || object.spec.?priority.orValue(0) <= 1")
        bound = record.one("ValidatingAdmissionPolicyBinding", "mlbatch-requested-projects")
        assert all(bound.urn in record.closure(queue) for queue in record.of("LocalQueue"))

    def test_the_class_that_the_cluster_gives_all_pods_is_no_reason_to_refuse_them(
        self, mirror: Mirror, kubeconfig: Path
    ) -> None:
        record = registered(loaded(shipped(), mirror, kubeconfig, default_priority="site-default"))
        policy = record.one("ValidatingAdmissionPolicy", "mlbatch-requested-projects").inputs["spec"]
        *_, evicts = policy["validations"]
        assert "object.spec.?priorityClassName.orValue('') in ['site-default'] ||" in evicts["expression"]
