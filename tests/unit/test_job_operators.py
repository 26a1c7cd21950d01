"""The training operator and KubeRay: MLBatch's settings, their order before Kueue, and what they may do.

Seeds 002 and 000: MLBatch's guide for a cluster (`setup.k8s/CLUSTER-SETUP.md`), "Kubeflow Training Operator" and
"KubeRay", and the files that it applies (`setup.k8s/training-operator`, `setup.k8s/kuberay`).
"""

from pathlib import Path
from typing import Any

import pytest

from components import catalogue
from components.artifacts import Mirror
from components.queueing import trainer
from components.queueing.trainer import TrainerArgs
from stacks.settings.tenancy import QueueingSettings, TrainerSettings
from tests.unit.harness import Record, Registered
from tests.unit.test_openshift import loaded, registered, shipped
from tests.unit.whole_stacks import registered as whole

OPERATORS = ("training-operator", "kuberay-operator")


@pytest.fixture(scope="module")
def record() -> Record:
    return whole("openshift")


def pod(record: Record, name: str) -> Any:
    return record.one("Deployment", name, "mlbatch-system").inputs["spec"]["template"]["spec"]


def test_gangs_of_pytorch_jobs_go_to_the_second_scheduler(record: Record) -> None:
    """The guide's `gang-scheduler-name`."""
    (container,) = pod(record, "training-operator")["containers"]
    assert "--gang-scheduler-name=scheduler-plugins-scheduler" in container["args"]
    assert record.one("Deployment", "scheduler-plugins-scheduler").urn in record.closure(
        record.one("Deployment", "training-operator")
    ), "it ends where PodGroup is not defined"


@pytest.mark.parametrize("packing", ["none", "topology"])
def test_without_gangs_the_operator_is_told_of_no_scheduler(packing: str, mirror: Mirror, kubeconfig: Path) -> None:
    record = registered(loaded({**shipped(), "scheduling": {"packing": packing}}, mirror, kubeconfig))
    (container,) = pod(record, "training-operator")["containers"]
    assert not [argument for argument in container["args"] if "gang" in argument]


def test_workers_wait_for_their_master_in_an_image_whose_nslookup_finds_it(record: Record) -> None:
    """Upstream's default, alpine:3.10, has BusyBox 1.30: later ones fail where a search domain lacks the name.

    Source: kubeflow/pytorch-operator, pull request 216.
    """
    (container,) = pod(record, "training-operator")["containers"]
    (argument,) = [each for each in container["args"] if each.startswith("--pytorch-init-container-image=")]
    assert argument.partition("=")[2].startswith("docker.io/library/alpine:3.10.")


def test_kueue_starts_after_the_definitions_of_the_kinds_that_it_queues(record: Record) -> None:
    """A Kueue that starts before looks for them in vain, the trap of the seed on distributed workloads."""
    kueue = record.closure(record.one("Deployment", "kueue-controller-manager"))
    for kind in ("pytorchjobs.kubeflow.org", "rayclusters.ray.io", "rayjobs.ray.io", "rayservices.ray.io"):
        assert record.one("CustomResourceDefinition", kind).urn in kueue, kind


def digest(record: Record) -> str:
    template = record.one("Deployment", "kueue-controller-manager").inputs["spec"]["template"]
    return str(template["metadata"]["annotations"]["mlbatch/config-sha256"])


def test_kueue_is_restarted_when_a_kind_appears(record: Record, mirror: Mirror, kubeconfig: Path) -> None:
    queueing = {"trainingOperator": {"enabled": True}}
    before = registered(loaded({**shipped(), "queueing": queueing}, mirror, kubeconfig))
    assert digest(before) != digest(record)


def test_a_queue_waits_for_the_webhook_of_pytorch_jobs(record: Record) -> None:
    webhook = record.one("ValidatingWebhookConfiguration", "validator.training-operator.kubeflow.org")
    assert webhook.urn in record.closure(record.one("LocalQueue", "default-queue", "blue"))


def rules(record: Record, kind: str, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = record.one(kind, name).inputs["rules"]
    return found


def switched_off(item: Registered) -> bool:
    return any(name in item.urn for name in ("training-operator", "kuberay"))


def test_they_are_installed_where_they_are_asked_for(mirror: Mirror, kubeconfig: Path) -> None:
    record = registered(loaded({**shipped(), "queueing": {}}, mirror, kubeconfig))
    assert [item.name for item in record.resources if switched_off(item)] == []


@pytest.mark.parametrize(("replicas", "budgets"), [(1, 0), (2, 1)])
def test_several_replicas_are_kept_apart_and_one_of_them_running(
    replicas: int, budgets: int, mirror: Mirror, kubeconfig: Path
) -> None:
    raw = shipped()
    raw["queueing"]["replicas"] = replicas
    record = registered(loaded(raw, mirror, kubeconfig))
    for name in OPERATORS:
        assert record.one("Deployment", name).inputs["spec"]["replicas"] == replicas
        assert len([item for item in record.of("PodDisruptionBudget") if item.object_name == name]) == budgets
        assert ("topologySpreadConstraints" in pod(record, name)) is (replicas > 1)
    (container,) = pod(record, "training-operator")["containers"]
    assert ("--leader-elect" in container["args"]) is (replicas > 1)


def test_job_set_writes_only_its_own_webhooks_and_starts_before_kueue() -> None:
    record = whole("aks-everything")
    writing = [
        rule
        for rule in rules(record, "ClusterRole", "jobset-manager-role")
        if "admissionregistration.k8s.io" in rule["apiGroups"] and "update" in rule["verbs"]
    ]
    assert [rule["resourceNames"] for rule in writing] == [
        ["jobset-mutating-webhook-configuration", "jobset-validating-webhook-configuration"]
    ]
    kueue = record.closure(record.one("Deployment", "kueue-controller-manager"))
    assert record.one("CustomResourceDefinition", "jobsets.jobset.x-k8s.io").urn in kueue


def test_trainer_starts_before_kueue_and_after_job_set() -> None:
    record = whole("aks-everything")
    deployment = record.one("Deployment", trainer.NAME)
    assert record.one("CustomResourceDefinition", "jobsets.jobset.x-k8s.io").urn in record.closure(deployment)
    kueue = record.closure(record.one("Deployment", "kueue-controller-manager"))
    for kind in ("trainjobs", "clustertrainingruntimes", "trainingruntimes"):
        assert record.one("CustomResourceDefinition", f"{kind}.trainer.kubeflow.org").urn in kueue


def test_a_stack_with_trainer_has_job_set_whether_or_not_it_says_so() -> None:
    wanted = QueueingSettings(trainer=TrainerSettings(enabled=True)).artifacts()
    assert catalogue.JOB_SET in {artifact.name for artifact in wanted}
    assert catalogue.JOB_SET not in {artifact.name for artifact in QueueingSettings().artifacts()}


def test_a_runtime_for_each_priority_keeps_off_sick_nodes_and_starts_its_pods_together() -> None:
    args = TrainerArgs(definitions=[], scheduler="gangs", gang_seconds=60, capabilities={"add": ["IPC_LOCK"]})
    found = {item["metadata"]["name"]: item["spec"] for item in trainer.runtimes(args)}
    assert list(found) == list(trainer.priorities())
    for name, spec in found.items():
        assert spec["podGroupPolicy"] == {"coscheduling": {"scheduleTimeoutSeconds": 60}}
        job_set = spec["template"]["spec"]
        assert job_set["failurePolicy"] == {"maxRestarts": 3}
        (job,) = job_set["replicatedJobs"]
        assert job["template"]["spec"]["backoffLimit"] == 0, "all pods are made again, not one"
        pod = job["template"]["spec"]["template"]["spec"]
        assert pod["schedulerName"] == "gangs"
        assert pod.get("priorityClassName") == trainer.priorities()[name]
        (term,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        sick = {"key": "autopilot.ibm.com/gpuhealth", "operator": "NotIn", "values": ["ERR", "TESTING", "EVICT"]}
        assert term["matchExpressions"] == [sick]
        (container,) = pod["containers"]
        assert "image" not in container
        assert container["securityContext"] == {"capabilities": {"add": ["IPC_LOCK"]}}
        assert "tolerations" not in pod, "Kueue replaces them"
    plain = trainer.runtimes(TrainerArgs(definitions=[]))[0]["spec"]
    assert "podGroupPolicy" not in plain
