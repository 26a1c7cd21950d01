"""A Kueue that somebody else has installed: how it is found, and what the stack creates on top of it."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.artifacts import Mirror
from stacks.config import inputs
from stacks.config.cluster_facts import ClusterFacts, ask
from stacks.config.inputs import StackInputs
from stacks.config.others import DataScience, ExistingKueue, owner
from stacks.deploy import deploy
from tests.unit import test_existing
from tests.unit.harness import Record, build
from tests.unit.test_cluster_facts import DATA_SCIENCE, ApiServer, named, server

__all__ = ["server"]

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SUBSCRIPTIONS = "/apis/operators.coreos.com/v1alpha1/subscriptions"
QUEUES = "clusterqueues.kueue.x-k8s.io"
HELM = {"meta.helm.sh/release-name": "kueue", "meta.helm.sh/release-namespace": "kueue-system"}
STACK = [{"manager": "pulumi-kubernetes-4f2c1a9b"}]
CONFIGURATION: Mapping[str, Any] = {
    "integrations": {"frameworks": ["workload.codeflare.dev/appwrapper"]},
    "managedJobsNamespaceSelector": {"matchLabels": {"kueue.openshift.io/managed": "true"}},
}


def defined(name: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}}


def kueue_deployment(image: str) -> dict[str, Any]:
    pod = {
        "serviceAccountName": "kueue-controller-manager",
        "containers": [{"name": "manager", "image": image}],
        "volumes": [{"name": "cert", "secret": {}}, {"name": "config", "configMap": {"name": "kueue-manager-config"}}],
    }
    metadata = {"name": "lab-controller-manager", "namespace": "kueue-system"}
    return {"metadata": metadata, "spec": {"template": {"spec": pod}}}


class TestFacts:
    def test_definitions_of_others_have_an_owner_and_those_of_a_stack_do_not_count(
        self, server: ApiServer, tmp_path: Path
    ) -> None:
        items = [
            defined(QUEUES, annotations=HELM, managedFields=[{"manager": "helm"}]),
            defined("rayclusters.ray.io", managedFields=STACK),
            defined("widgets.example.org"),
        ]
        server.answers[DEFINITIONS] = (200, {"items": items})
        found = ask(named(server.port, tmp_path))
        assert found.definitions == {QUEUES: "the Helm release kueue-system/kueue"}
        assert found.own_definitions == {"rayclusters.ray.io"}

    @pytest.mark.parametrize(
        ("package", "definition"),
        [
            ("rhods-operator", defined("rayclusters.ray.io", labels={"app.opendatahub.io/ray": "true"})),
            ("kueue-operator", defined(QUEUES, managedFields=[{"manager": "kueue-operator"}])),
            ("job-set", defined("jobsets.jobset.x-k8s.io", labels={"operators.coreos.com/job-set.openshift": ""})),
        ],
    )
    def test_definitions_of_a_stacks_operators_are_not_those_of_others(
        self, server: ApiServer, tmp_path: Path, package: str, definition: dict[str, Any]
    ) -> None:
        server.answers[DEFINITIONS] = (200, {"items": [definition]})
        assert ask(named(server.port, tmp_path)).definitions
        subscription = {**defined(package, managedFields=STACK), "spec": {"name": package}}
        server.answers[SUBSCRIPTIONS] = (200, {"items": [subscription]})
        found = ask(named(server.port, tmp_path))
        assert not found.definitions
        assert not found.own_definitions

    @pytest.mark.parametrize(
        ("metadata", "text"),
        [
            ({"labels": {"app.opendatahub.io/kueue": "true"}}, "OpenShift AI"),
            ({"labels": {"operators.coreos.com/job-set.openshift-jobset-operator": ""}},
             "the operator job-set.openshift-jobset-operator"),
            ({"ownerReferences": [{"kind": "Kueue", "name": "cluster", "apiVersion": "kueue.openshift.io/v1"}]},
             "Kueue cluster (kueue.openshift.io/v1)"),
            ({"managedFields": [{"manager": "kubectl-client-side-apply"}]}, "kubectl"),
            ({}, "somebody else"),
        ],
    )  # fmt: skip
    def test_an_owner_is_named(self, metadata: dict[str, Any], text: str) -> None:
        assert owner(metadata) == text

    def test_a_kueue_is_read_with_its_version_account_api_and_configuration(
        self, server: ApiServer, tmp_path: Path
    ) -> None:
        """Of the namespace of its webhook. Users may have Deployments with the same labels in others."""
        image = "10.0.0.5:5000/kueue/kueue:v0.17.1@sha256:00"
        webhook = {
            "clientConfig": {"service": {"namespace": "kueue-system", "name": "kueue-webhook-service"}},
            "rules": [{"apiGroups": ["kueue.x-k8s.io"]}],
        }
        versions = [{"name": "v1beta1", "storage": True}, {"name": "v1beta2", "storage": False}]
        server.answers |= {
            DEFINITIONS: (200, {"items": [defined(QUEUES)]}),
            f"{DEFINITIONS}/{QUEUES}": (200, {"spec": {"versions": versions}}),
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations": (
                200,
                {"items": [{**defined("other"), "webhooks": []}, {**defined("kueue"), "webhooks": [webhook]}]},
            ),
            "/apis/apps/v1/namespaces/kueue-system/deployments": (200, {"items": [kueue_deployment(image)]}),
            "/api/v1/namespaces/kueue-system/configmaps/kueue-manager-config": (
                200,
                {"data": {"controller_manager_config.yaml": yaml.safe_dump(dict(CONFIGURATION))}},
            ),
            "/apis/kueue.x-k8s.io/v1beta1/resourceflavors": (
                200,
                {"items": [defined("default-flavor"), defined("pool", managedFields=STACK)]},
            ),
            "/apis/kueue.x-k8s.io/v1beta1/clusterqueues": (
                200,
                {"items": [defined("default"), defined("blue-cluster-queue", managedFields=STACK)]},
            ),
        }
        assert ask(named(server.port, tmp_path)).kueue == ExistingKueue(
            owner="somebody else",
            namespace="kueue-system",
            account="kueue-controller-manager",
            deployment="lab-controller-manager",
            version="0.17.1",
            api="kueue.x-k8s.io/v1beta1",
            configuration=CONFIGURATION,
            flavors=("default-flavor",),
            queues=("default",),
        )

    def test_openshift_ai_has_a_version_and_the_components_that_it_runs(
        self, server: ApiServer, tmp_path: Path
    ) -> None:
        components = {"kueue": {"managementState": "Unmanaged"}, "ray": {"managementState": "Removed"}, "kserve": {}}
        server.answers |= {
            DATA_SCIENCE: (200, {"items": [{**defined("default-dsc"), "spec": {"components": components}}]}),
            SUBSCRIPTIONS: (
                200,
                {
                    "items": [
                        {
                            **defined("rhods-operator"),
                            "spec": {"name": "rhods-operator"},
                            "status": {"installedCSV": "rhods-operator.2.25.8"},
                        },
                        {
                            **defined("kueue-operator", managedFields=STACK),
                            "spec": {"name": "kueue-operator", "startingCSV": "kueue-operator.v1.4.1"},
                        },
                    ]
                },
            ),
        }
        found = ask(named(server.port, tmp_path))
        assert found.data_science == DataScience(name="default-dsc", components=("kueue",), version="2.25.8")
        assert found.subscriptions == {"rhods-operator": "rhods-operator.2.25.8"}
        assert found.own_subscriptions == {"kueue-operator": "kueue-operator.v1.4.1"}


KUEUE = ExistingKueue(
    owner="kubectl",
    namespace="kueue-system",
    account="kueue-controller-manager",
    version="0.17.1",
    configuration=CONFIGURATION,
    flavors=("default-flavor",),
    queues=("default",),
)


def adopted(
    mirror: Mirror, kubeconfig: Path, definitions: Mapping[str, str], kueue: ExistingKueue = KUEUE, **queueing: Any
) -> StackInputs[Any]:
    facts = ClusterFacts(
        identifier=test_existing.UID,
        version="1.34",
        nodes=tuple(replace(each, labels={**each.labels, "pool": "gpu"}) for each in test_existing.NODES),
        definitions={QUEUES: "kubectl", **definitions},
        kueue=kueue,
    )
    raw = test_existing.shipped()
    raw["queueing"] = {**raw.get("queueing", {}), "adopt": True, **queueing}
    raw["monitoring"] = {**raw.get("monitoring", {}), "enabled": True}
    files = {"artifacts": mirror.artifacts, "verify": False}
    return inputs.interpret(
        {**raw, "mirror": files},
        base=test_existing.ROOT,
        environment={"KUBECONFIG": str(kubeconfig)},
        ask=lambda *_: facts,
    )


def registered(stack: StackInputs[Any]) -> Record:
    return build(lambda: deploy(stack), outputs=lambda kind, name, given: {"result": "made-up"})


@pytest.fixture(scope="module")
def record(mirror: Mirror, same_kubeconfig: Path) -> Record:
    return registered(adopted(mirror, same_kubeconfig, {}))


class TestStack:
    def test_it_installs_appwrapper_and_no_kueue(self, record: Record) -> None:
        deployments = {each.inputs["metadata"]["name"] for each in record.of("Deployment")}
        assert "appwrapper-controller-manager" in deployments
        assert "kueue-controller-manager" not in deployments
        assert QUEUES not in {each.inputs["metadata"]["name"] for each in record.of("CustomResourceDefinition")}

    def test_kueue_manages_the_namespaces_of_teams(self, record: Record) -> None:
        assert record.one("Namespace", "blue").inputs["metadata"]["labels"]["kueue.openshift.io/managed"] == "true"

    def test_queues_take_jobs_with_disk_that_this_kueue_does_not_exclude(self, record: Record) -> None:
        (group,) = record.one("ClusterQueue", "blue-cluster-queue").inputs["spec"]["resourceGroups"]
        assert group["coveredResources"][-2:] == ["ephemeral-storage", "rdma/rdma_shared_device_a"]
        (flavor,) = group["flavors"]
        assert flavor["resources"][-2:] == [
            {"name": "ephemeral-storage", "nominalQuota": "1P"},
            {"name": "rdma/rdma_shared_device_a", "nominalQuota": "1P"},
        ]

    def test_its_account_starts_jobs_and_no_policy_claims_to_limit_it(self, record: Record) -> None:
        policies = {each.inputs["metadata"]["name"]: each.inputs for each in record.of("ValidatingAdmissionPolicy")}
        assert "system:serviceaccount:kueue-system:kueue-controller-manager" in str(policies["mlbatch-team-quota-gate"])
        assert "mlbatch-team-kueue-scope" not in policies
        assert "mlbatch-team-appwrapper-scope" in policies
        assert record.one("Namespace", "blue").inputs["metadata"]["annotations"]["mlbatch/unenforced"] == "kueue-scope"

    def test_its_metrics_are_read_where_it_runs(self, record: Record) -> None:
        """Red Hat's Kueue admits only OpenShift's Prometheus. No other Kueue has pods with this label."""
        assert record.one("ServiceMonitor", "kueue-metrics").inputs["metadata"]["namespace"] == "kueue-system"
        opened = record.one("NetworkPolicy", "mlbatch-kueue-metrics", "kueue-system").inputs["spec"]
        assert opened["podSelector"] == {"matchLabels": {"app.openshift.io/name": "kueue"}}
        assert "prometheus" in str(opened["ingress"])

    def test_metrics_of_workloads_are_read_in_the_api_version_of_this_kueue(
        self, mirror: Mirror, same_kubeconfig: Path
    ) -> None:
        older = replace(KUEUE, version="0.14.1", api="kueue.x-k8s.io/v1beta1")
        found = registered(adopted(mirror, same_kubeconfig, {}, older))
        (values,) = [
            each.inputs["values"] for each in found.resources if each.inputs.get("name") == "kube-prometheus-stack"
        ]
        resources = values["kube-state-metrics"]["customResourceState"]["config"]["spec"]["resources"]
        kinds = {each["groupVersionKind"]["kind"]: each["groupVersionKind"]["version"] for each in resources}
        assert kinds == {"Workload": "v1beta1", "LocalQueue": "v1beta1", "AppWrapper": "v1beta2"}

    def test_the_first_flavor_does_not_have_the_name_of_one_that_exists(self, record: Record) -> None:
        assert {each.object_name for each in record.of("ResourceFlavor")} == {"mlbatch-default-flavor"}

    def test_members_cannot_use_queues_of_others(self, record: Record) -> None:
        """OpenShift AI 3 creates a LocalQueue `default` in the namespace of each team, for all nodes' resources."""
        policy = record.one("ValidatingAdmissionPolicy", "mlbatch-team-user-queues").inputs["spec"]
        (rule,) = [each for each in policy["validations"] if "has the team's quota" in each["message"]]
        assert "oldObject != null || object.metadata.?labels[?'kueue.x-k8s.io/queue-name'].orValue('') in " in str(rule)
        assert "['', 'default-queue']" in rule["expression"]


class TestOperatorsOfOthers:
    def test_their_scope_is_not_enforced_and_that_of_the_stacks_own_operators_is(
        self, mirror: Mirror, same_kubeconfig: Path
    ) -> None:
        for own in (False, True):
            stack = adopted(mirror, same_kubeconfig, {"rayclusters.ray.io": "kubectl"}, jobSet={"enabled": own})
            assert list(stack.resolved.unenforced) == ["kueue-scope", "job-operator-scope"]
            policies = {each.object_name for each in registered(stack).of("ValidatingAdmissionPolicy")}
            assert ("mlbatch-team-job-operator-scope" in policies) is own

    def test_a_trainer_of_others_is_a_warning(self, mirror: Mirror, same_kubeconfig: Path) -> None:
        stack = adopted(mirror, same_kubeconfig, {"trainjobs.trainer.kubeflow.org": "OpenShift AI"})
        assert any("TrainJobs of teams do not start" in each and "OpenShift AI" in each for each in stack.warnings)

    def test_their_queues_are_a_warning(self, mirror: Mirror, same_kubeconfig: Path) -> None:
        assert any(
            "also has the ClusterQueues default" in each for each in adopted(mirror, same_kubeconfig, {}).warnings
        )
