"""Target `openshift`: the seeds' cluster, and what OpenShift alone asks for.

Seeds: 000, the MLBatch tutorial for KubeCon EU 2025 (`setup.KubeConEU25/README.md` of project-codeflare/mlbatch, called
the tutorial below), and 002, MLBatch's guide for a cluster (`setup.k8s/CLUSTER-SETUP.md`, the guide).
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from components.artifacts import Mirror
from components.tenancy.promises import Promise
from stacks.config import inputs
from stacks.config.cluster_facts import ClusterFacts, GpuPolicy, NodeFacts, comes_with_admission_policies
from stacks.config.errors import SettingsError
from stacks.config.inputs import StackInputs
from stacks.config.others import DataScience
from stacks.deploy import deploy
from stacks.targets.openshift.settings import NfsSettings
from tests.unit.configurations import stack_settings
from tests.unit.conftest import ROOT
from tests.unit.harness import Record, build

WORKERS = ("pokprod-b93r38s3", "pokprod-b93r39s2", "pokprod-b93r44s0")
"""As the tutorial names them."""
PROVISIONER = "pokprod-nfs-subdir-external-provisioner"
ALLOCATABLE = {"cpu": "224", "memory": "2113411288Ki", "nvidia.com/gpu": "8", "pods": "250"}


def worker(name: str, labels: Mapping[str, str] = {}, **allocatable: str) -> NodeFacts:
    gpus = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    return NodeFacts(name=name, labels={**gpus, **labels}, allocatable={**ALLOCATABLE, **allocatable})


NODES = tuple(worker(name) for name in WORKERS)


def shipped() -> dict[str, Any]:
    return stack_settings("openshift")


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
    data_science: DataScience | None = None,
    subscriptions: Mapping[str, str] = {},
    own_subscriptions: Mapping[str, str] = {},
    definitions: Mapping[str, str] = {},
) -> StackInputs[Any]:
    def ask(config: object, selector: Mapping[str, str] | None) -> ClusterFacts:
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
            subscriptions=subscriptions,
            own_subscriptions=own_subscriptions,
            definitions=definitions,
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
def record(whole: Callable[[str], Record]) -> Record:
    return whole("openshift")


class TestNfs:
    """The tutorial's Persistent Storage Setup."""

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


TUTORIAL = {"cpu": "224", "memory": "2000G", "nvidia.com/gpu": "8", "pods": "100"}
"""The tutorial's quota of the slack queue and of each team. It misspells the GPUs as nvidia.com/GPU."""


class TestQuotas:
    def test_it_keeps_no_room_for_daemon_sets_and_a_preview_says_so(self, mirror: Mirror, kubeconfig: Path) -> None:
        teams = [{"name": name, "users": [], "quota": TUTORIAL} for name in ("blue", "red")]
        raw = {**shipped(), "queueing": {"slack": TUTORIAL}, "teams": teams, "samples": {}}
        warnings = loaded(raw, mirror, kubeconfig).warnings
        assert any("the quotas of cpu add up to 672, but jobs can use 666" in text for text in warnings)


class TestMistakes:
    def test_the_class_that_the_stack_makes_is_one(self, mirror: Mirror, kubeconfig: Path) -> None:
        raw = {**shipped(), "monitoring": {"enabled": True, "storageClass": "nfs-client-pokprod"}}
        assert loaded(raw, mirror, kubeconfig)

    def test_teams_on_a_kubernetes_without_admission_policies(self, mirror: Mirror, kubeconfig: Path) -> None:
        """OpenShift 4.16, the tutorial's, has Kubernetes 1.29."""
        raw = {**shipped(), "scheduling": {"packing": "none"}}
        text = refused(raw, mirror, kubeconfig, version="1.29", openshift="4.16.30")
        assert "this cluster has no ValidatingAdmissionPolicy" in text
        raw["tenancy"] = {"acceptUnenforced": [str(promise) for promise in Promise]}
        assert loaded(raw, mirror, kubeconfig, version="1.29", openshift="4.16.30").resolved.unenforced

    def test_the_class_that_the_cluster_gives_all_pods_is_no_reason_to_refuse_them(
        self, mirror: Mirror, kubeconfig: Path
    ) -> None:
        record = registered(loaded(shipped(), mirror, kubeconfig, default_priority="site-default"))
        policy = record.one("ValidatingAdmissionPolicy", "mlbatch-requested-projects").inputs["spec"]
        *_, evicts = policy["validations"]
        assert "object.spec.?priorityClassName.orValue('') in ['site-default'] ||" in evicts["expression"]
