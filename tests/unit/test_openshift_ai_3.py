"""OpenShift AI 3 on target `openshift`: Red Hat build of Kueue, and the operators of jobs in OpenShift AI."""

from pathlib import Path
from typing import Any

import pytest

from components.artifacts import Mirror
from tests.unit.harness import Record
from tests.unit.releases import FOLDER
from tests.unit.test_openshift import loaded, registered
from tests.unit.test_openshift_ai import chosen

OPERATORS = {
    "cert-manager-operator": ("openshift-cert-manager-operator", "stable-v1.19", ["cert-manager-operator"]),
    "openshift-kueue-operator": ("kueue-operator", "stable-v1.4", None),
    "redhat-ods-operator": ("rhods-operator", "stable-3.4", None),
}


def with_3(kubeconfig: Path, **cluster: Any) -> Record:
    return registered(loaded(chosen(version="3.4"), Mirror(artifacts=str(FOLDER)), kubeconfig, **cluster))


@pytest.fixture(scope="module")
def record(same_kubeconfig: Path) -> Record:
    return with_3(same_kubeconfig)


def test_olm_gets_each_operator_in_its_own_namespace(record: Record) -> None:
    """The Kueue operator supports only all namespaces, the others as their documentation has them."""
    for namespace, (package, channel, watched) in OPERATORS.items():
        spec = record.one("Subscription", package, namespace).inputs["spec"]
        assert (spec["channel"], spec["installPlanApproval"]) == (channel, "Manual")
        group = record.one("OperatorGroup", package, namespace)
        assert group.inputs["spec"].get("targetNamespaces") == watched


@pytest.mark.parametrize(
    "cluster",
    [
        {"subscriptions": {"openshift-cert-manager-operator": "cert-manager-operator.v1.20.0"}},
        {"definitions": {"certificates.cert-manager.io": "the Helm release cert-manager/cert-manager"}},
    ],
)
def test_an_operator_that_the_cluster_has_is_not_installed_again(cluster: dict[str, Any], kubeconfig: Path) -> None:
    found = with_3(kubeconfig, **cluster)
    assert {each.inputs["spec"]["name"] for each in found.of("Subscription")} == {"kueue-operator", "rhods-operator"}
    assert "cert-manager-operator" not in {each.object_name for each in found.of("Namespace")}


def test_the_stacks_own_cert_manager_stays(kubeconfig: Path) -> None:
    """OLM creates its definitions, as for somebody else's Subscription."""
    own = {"openshift-cert-manager-operator": "cert-manager-operator.v1.19.1"}
    found = with_3(kubeconfig, definitions={"certificates.cert-manager.io": "the operator"}, own_subscriptions=own)
    assert found.one("Subscription", "openshift-cert-manager-operator")


def test_definitions_that_olm_has_left_are_not_a_cert_manager(kubeconfig: Path) -> None:
    left = {"certificates.cert-manager.io": "the operator openshift-cert-manager-operator.cert-manager-operator"}
    assert with_3(kubeconfig, definitions=left).one("Subscription", "openshift-cert-manager-operator")


def test_kueue_is_configured_by_its_operator(record: Record) -> None:
    config = record.one("Kueue", "cluster").inputs["spec"]["config"]
    frameworks = set(config["integrations"]["frameworks"])
    assert {"AppWrapper", "PyTorchJob", "RayCluster", "TrainJob"} <= frameworks
    assert "JobSet" not in frameworks, "without Red Hat's JobSet operator its Kueue would be degraded"
    assert config["workloadManagement"] == {"labelPolicy": "None"}
    assert config["preemption"] == {"preemptionPolicy": "FairSharing"}
    assert record.one("Namespace", "blue").inputs["metadata"]["labels"]["kueue.openshift.io/managed"] == "true"
    assert "kueue-controller-manager" not in {each.object_name for each in record.of("Deployment")}


def test_openshift_ai_runs_kuberay_and_leaves_kueue_alone(record: Record) -> None:
    cluster = record.one("DataScienceCluster", "mlbatch-dsc")
    components = cluster.inputs["spec"]["components"]
    assert cluster.inputs["apiVersion"] == "datasciencecluster.opendatahub.io/v2"
    assert {name for name, each in components.items() if each["managementState"] == "Managed"} == {"ray"}
    assert components["kueue"]["managementState"] == "Unmanaged"
    initialization = record.one("DSCInitialization", "mlbatch-dsci")
    assert initialization.inputs["spec"]["monitoring"]["managementState"] == "Removed"


def test_openshift_ai_finds_a_closed_queue_instead_of_creating_an_open_one(record: Record) -> None:
    """It would otherwise give every team a queue with the resources of all nodes (rhods-operator, kueue_support.go)."""
    cluster = record.one("DataScienceCluster", "mlbatch-dsc")
    kueue = cluster.inputs["spec"]["components"]["kueue"]
    held = record.one("ClusterQueue", kueue["defaultClusterQueueName"])
    assert held.inputs["spec"] == {"stopPolicy": "Hold"}
    assert held.urn in record.closure(cluster)
    assert kueue["defaultLocalQueueName"] not in ("default", "default-queue")
    flavors = {each.object_name for each in record.of("ResourceFlavor")}
    assert flavors == {"mlbatch-default-flavor"}, "OpenShift AI creates default-flavor"


def test_the_stack_adds_appwrapper_and_the_rights_of_this_kueue(record: Record) -> None:
    assert "appwrapper-controller-manager" in {each.object_name for each in record.of("Deployment")}
    policy = record.one("ValidatingAdmissionPolicy", "mlbatch-team-quota-gate")
    for account in (
        "system:serviceaccount:openshift-kueue-operator:kueue-controller-manager",
        "system:serviceaccount:mlbatch-system:appwrapper-controller-manager",
    ):
        assert account in str(policy.inputs)


def test_the_platforms_own_trainer_runs_train_jobs(kubeconfig: Path) -> None:
    """That of OpenShift AI 3.4 drops what its Kueue writes into a TrainJob (kubernetes-sigs/kueue, issue 14722)."""
    raw = chosen({"queueing": {"trainer": {"enabled": True}}}, version="3.4")
    found = registered(loaded(raw, Mirror(artifacts=str(FOLDER)), kubeconfig))
    assert {"kubeflow-trainer-controller-manager", "jobset-controller-manager"} <= {
        each.object_name for each in found.of("Deployment")
    }
    assert "torch-distributed" in {each.object_name for each in found.of("ClusterTrainingRuntime")}
    account = "system:serviceaccount:mlbatch-system:kubeflow-trainer-controller-manager"
    assert account in str(found.one("ValidatingAdmissionPolicy", "mlbatch-team-train-jobs").inputs)


def test_an_alert_watches_red_hats_kueue(kubeconfig: Path) -> None:
    raw = chosen({"monitoring": {"enabled": True}}, version="3.4")
    found = registered(loaded(raw, Mirror(artifacts=str(FOLDER)), kubeconfig))
    rules = str(found.one("PrometheusRule", "mlbatch-alerts").inputs)
    assert 'namespace="openshift-kueue-operator",deployment="kueue-controller-manager"' in rules


def test_jobs_wait_for_openshift_ai(record: Record) -> None:
    before = record.closure(record.one("LocalQueue", "default-queue", "blue"))
    assert record.one("DataScienceCluster", "mlbatch-dsc").urn in before


@pytest.mark.parametrize(("network", "is_open"), [({}, True), ({"rayOperators": ["mlbatch-system"]}, False)])
def test_kuberay_of_openshift_ai_reads_the_status_of_ray_jobs(
    network: dict[str, Any], is_open: bool, kubeconfig: Path
) -> None:
    raw = chosen({"tenancy": {"network": network}}, version="3.4")
    found = registered(loaded(raw, Mirror(artifacts=str(FOLDER)), kubeconfig))
    policies = [each.inputs for each in found.of("NetworkPolicy") if each.inputs["metadata"]["namespace"] == "blue"]
    assert ("redhat-ods-applications" in str(policies)) is is_open
