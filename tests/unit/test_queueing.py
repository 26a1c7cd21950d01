"""Kueue and AppWrapper are installed as MLBatch installs them, from upstream's real files."""

import re
from collections.abc import Iterator
from copy import deepcopy
from functools import partial

import pytest
import yaml

from components import catalogue, names
from components.artifacts import Mirror, Release
from components.kubernetes.manifests import Document, edited, identity
from components.kubernetes.objects import checksum
from components.queueing import appwrapper, kueue
from components.queueing.appwrapper import AppWrappersArgs
from components.queueing.kueue import KueueArgs
from runner import report
from tests.unit.harness import strings


@pytest.fixture(scope="module")
def kueue_documents(kueue_release: Release) -> dict[str, Document]:
    args = KueueArgs(release=kueue_release)
    return {
        identity(item): item for item in edited(kueue_release.manifest, lambda document: kueue.edit(document, args))
    }


@pytest.fixture(scope="module")
def appwrapper_documents(appwrapper_release: Release) -> dict[str, Document]:
    args = AppWrappersArgs(release=appwrapper_release)
    edit = partial(appwrapper.edit, args=args)
    return {identity(item): item for item in edited(appwrapper_release.manifest, edit)}


def originals(release: Release) -> dict[str, Document]:
    return {identity(item): item for item in edited(release.manifest, lambda document: document)}


ADMISSION = "admissionregistration.k8s.io"


def test_operators_write_into_their_own_webhooks_alone(
    kueue_documents: dict[str, Document], appwrapper_documents: dict[str, Document]
) -> None:
    """An account that may update all webhooks controls every request to the cluster, past the admission policies."""
    for name, documents in (("kueue", kueue_documents), ("appwrapper", appwrapper_documents)):
        roles = [item for item in documents.values() if item["kind"] == "ClusterRole"]
        rules = [rule for role in roles for rule in role.get("rules") or () if ADMISSION in rule.get("apiGroups", ())]
        own = [item["metadata"]["name"] for item in documents.values() if item["kind"].endswith("WebhookConfiguration")]
        assert sorted(own) == [f"{name}-mutating-webhook-configuration", f"{name}-validating-webhook-configuration"]
        writing = [rule for rule in rules if not {*rule["verbs"]} <= {"get", "list", "watch"}]
        assert {verb for rule in writing for verb in rule["verbs"]} <= {"get", "update"}
        assert sorted({each for rule in writing for each in rule["resourceNames"]}) == sorted(own)


def test_rules_that_kubernetes_aggregates_are_declared_by_nobody(kueue_documents: dict[str, Document]) -> None:
    """Declared empty, they would be emptied by each update, and filled again by Kubernetes."""
    aggregated = [item for item in kueue_documents.values() if "aggregationRule" in item]
    assert {item["metadata"]["name"] for item in aggregated} == {"kueue-batch-admin-role", "kueue-batch-user-role"}
    assert [item for item in aggregated if "rules" in item] == []


def webhooks(documents: dict[str, Document], kind: str, name: str) -> set[str]:
    return {webhook["name"] for webhook in documents[f"{kind}WebhookConfiguration/{name}"]["webhooks"]}


class TestKueue:
    def test_everything_is_in_mlbatch_system_and_nothing_names_upstreams_namespace(
        self, kueue_documents: dict[str, Document]
    ) -> None:
        assert "kueue-system" not in set(strings(list(kueue_documents.values())))
        namespaces = {item["metadata"].get("namespace") for item in kueue_documents.values()}
        assert namespaces == {None, "mlbatch-system", "kube-system"}
        assert not any(item["kind"] == "Namespace" for item in kueue_documents.values())

    def test_only_webhooks_of_what_kueue_manages_remain(self, kueue_documents: dict[str, Document]) -> None:
        frameworks = {
            "appwrapper",
            "jobset",
            "mpijob",
            "paddlejob",
            "pytorchjob",
            "raycluster",
            "rayjob",
            "tfjob",
            "xgboostjob",
            "trainjob",
        }
        mutating = frameworks | {"clusterqueue", "resourceflavor", "workload"}
        assert webhooks(kueue_documents, "Mutating", "kueue-mutating-webhook-configuration") == {
            f"m{kind}.kb.io" for kind in mutating
        }
        assert webhooks(kueue_documents, "Validating", "kueue-validating-webhook-configuration") == {
            f"v{kind}.kb.io" for kind in mutating | {"cohort"}
        }

    def test_a_kueue_that_is_down_blocks_no_pod_job_deployment_or_statefulset(
        self, kueue_documents: dict[str, Document]
    ) -> None:
        guarded = {
            resource
            for item in kueue_documents.values()
            for webhook in item.get("webhooks", [])
            for rule in webhook["rules"]
            for resource in rule["resources"]
        }
        assert not guarded & {"pods", "jobs", "deployments", "statefulsets", "leaderworkersets", "*"}

    def test_what_kueue_passes_over_is_no_resource_with_a_quota(self) -> None:
        assert names.SHARED_INFINIBAND.startswith(kueue.UNCOUNTED)
        assert not [resource for resource in names.RESOURCES if resource.startswith(kueue.UNCOUNTED)]

    def test_the_configuration_uses_the_files_own_api_and_known_frameworks(self, kueue_release: Release) -> None:
        upstream = originals(kueue_release)["ConfigMap/kueue-system/kueue-manager-config"]["data"]
        text = upstream["controller_manager_config.yaml"]
        ours = kueue.configuration()
        assert ours["apiVersion"] == yaml.safe_load(text)["apiVersion"]
        known = re.findall(r'^ *(?:# )?- "(\S+/\S+)"$', text, re.MULTILINE)  # those of retired kinds are in comments
        assert set(ours["integrations"]["frameworks"]) <= set(known)

    def test_a_changed_configuration_restarts_the_manager(self, kueue_documents: dict[str, Document]) -> None:
        config = kueue_documents["ConfigMap/mlbatch-system/kueue-manager-config"]["data"]
        template = kueue_documents["Deployment/mlbatch-system/kueue-controller-manager"]["spec"]["template"]
        (text,) = config.values()
        assert checksum(text).items() <= template["metadata"]["annotations"].items()
        assert checksum(text) != checksum(text + " ")

    def test_definitions_are_upstreams_but_for_the_namespace(
        self, kueue_documents: dict[str, Document], kueue_release: Release
    ) -> None:
        definitions = {
            name: item for name, item in originals(kueue_release).items() if name.startswith("CustomResource")
        }
        assert len(definitions) == 11
        for name, theirs in definitions.items():
            ours = deepcopy(kueue_documents[name])
            if "conversion" in ours["spec"]:
                ours["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["namespace"] = "kueue-system"
            assert ours == theirs

    @pytest.mark.parametrize("version", catalogue.versions(catalogue.KUEUE))
    def test_what_the_program_declares_is_read_without_kueue(self, mirror: Mirror, version: str) -> None:
        """Kueue converts objects that are not declared in the stored version, and Kueue may be down."""
        documents = originals(mirror.release(catalogue.find(catalogue.KUEUE, version))).values()
        definitions = [item["spec"] for item in documents if item["kind"] == "CustomResourceDefinition"]
        stored = {
            spec["names"]["kind"]: f"{spec['group']}/{each['name']}"
            for spec in definitions
            for each in spec["versions"]
            if each["storage"]
        }
        declared = {"ClusterQueue", "LocalQueue", "ResourceFlavor", "Topology"}
        assert {kind: stored[kind] for kind in declared} == dict.fromkeys(declared, names.KUEUE_API)
        assert report.KUEUE == (names.KUEUE_API, names.KUEUE_API_BEFORE)

    def test_an_edit_leaves_its_input_alone(self, kueue_release: Release) -> None:
        before = originals(kueue_release)["Deployment/kueue-system/kueue-controller-manager"]
        copy = deepcopy(before)
        kueue.edit(before, KueueArgs(release=kueue_release))
        assert before == copy


class TestAppWrapper:
    def test_everything_is_in_mlbatch_system(self, appwrapper_documents: dict[str, Document]) -> None:
        assert "appwrapper-system" not in set(strings(list(appwrapper_documents.values())))
        assert {item["metadata"].get("namespace") for item in appwrapper_documents.values()} == {None, "mlbatch-system"}

    def test_the_controller_may_create_the_files_of_a_job_and_no_other_kind_more(
        self, appwrapper_release: Release, appwrapper_documents: dict[str, Document]
    ) -> None:
        upstream = originals(appwrapper_release)["ClusterRole/appwrapper-manager-role"]["rules"]
        rules = appwrapper_documents["ClusterRole/appwrapper-manager-role"]["rules"]
        assert [rule for rule in rules[:-2] if rule["apiGroups"] != [ADMISSION]] == [
            rule for rule in upstream if rule["apiGroups"] != [ADMISSION] and rule["resources"] != ["secrets"]
        ]
        more = [(rule["apiGroups"], rule["resources"]) for rule in rules[-2:]]
        assert more == [([""], ["configmaps"]), (["events.k8s.io"], ["events"])]

    def test_the_controller_reads_the_secrets_of_its_own_namespace_alone(
        self, appwrapper_documents: dict[str, Document]
    ) -> None:
        having = {
            name: rule["verbs"]
            for name, document in appwrapper_documents.items()
            for rule in document.get("rules", ())
            if "secrets" in rule.get("resources", ())
        }
        assert having == {
            "Role/mlbatch-system/appwrapper-leader-election-role": ["get", "list", "update", "watch"],
        }

    def test_its_webhooks_remain(self, appwrapper_documents: dict[str, Document]) -> None:
        assert webhooks(appwrapper_documents, "Mutating", "appwrapper-mutating-webhook-configuration") == {
            "mappwrapper.kb.io"
        }
        assert webhooks(appwrapper_documents, "Validating", "appwrapper-validating-webhook-configuration") == {
            "vappwrapper.kb.io"
        }


class TestBoth:
    """In one namespace, the two must not take each other's names or pods."""

    @pytest.fixture
    def both(
        self, kueue_documents: dict[str, Document], appwrapper_documents: dict[str, Document]
    ) -> tuple[dict[str, Document], dict[str, Document]]:
        return kueue_documents, appwrapper_documents

    def test_no_two_objects_have_one_name(self, both: tuple[dict[str, Document], dict[str, Document]]) -> None:
        assert not both[0].keys() & both[1].keys()

    def test_each_selects_its_own_pods(self, both: tuple[dict[str, Document], dict[str, Document]]) -> None:
        for own, other in (both, both[::-1]):
            (mine,) = pod_labels(own)
            (others,) = pod_labels(other)
            found = list(selectors(own))
            assert len(found) >= 3
            for selector in found:
                assert selector.items() <= mine.items()
                assert not selector.items() <= others.items()

    def test_services_are_not_waited_for(self, both: tuple[dict[str, Document], dict[str, Document]]) -> None:
        """Waiting for a pod behind a Service, while its Deployment waits for the Service, would never end."""
        services = [item for documents in both for item in documents.values() if item["kind"] == "Service"]
        assert len(services) == 5
        assert all(item["metadata"]["annotations"]["pulumi.com/skipAwait"] == "true" for item in services)

    def test_webhooks_leave_their_namespaces_to_a_cluster_that_chooses_them(
        self, both: tuple[dict[str, Document], dict[str, Document]]
    ) -> None:
        """AKS writes its own selector into each. If the program declares one too, its update fails with a conflict."""
        declared = [hook for documents in both for item in documents.values() for hook in item.get("webhooks", ())]
        assert declared
        assert not [hook["name"] for hook in declared if "namespaceSelector" in hook]

    def test_webhooks_are_waited_for_until_they_can_be_called(
        self, both: tuple[dict[str, Document], dict[str, Document]]
    ) -> None:
        configurations = [item for documents in both for item in documents.values() if "webhooks" in item]
        assert len(configurations) == 4
        for item in configurations:
            assert (
                item["metadata"]["annotations"]["pulumi.com/waitFor"] == "jsonpath={.webhooks[*].clientConfig.caBundle}"
            )

    def test_certificates_are_the_controllers(self, both: tuple[dict[str, Document], dict[str, Document]]) -> None:
        secrets = [item for documents in both for item in documents.values() if item["kind"] == "Secret"]
        assert {item["metadata"]["name"] for item in secrets} == {
            "kueue-webhook-server-cert",
            "appwrapper-webhook-server-cert",
        }
        assert not any("data" in item or "stringData" in item for item in secrets)
        assert not any("caBundle" in text for documents in both for text in keys(list(documents.values())))


def selectors(documents: dict[str, Document]) -> Iterator[dict[str, str]]:
    for item in documents.values():
        if item["kind"] == "Service":
            yield item["spec"]["selector"]
        if item["kind"] == "Deployment":
            yield item["spec"]["selector"]["matchLabels"]


def pod_labels(documents: dict[str, Document]) -> Iterator[dict[str, str]]:
    for item in documents.values():
        if item["kind"] == "Deployment":
            yield item["spec"]["template"]["metadata"]["labels"]


def keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
        for item in value.values():
            yield from keys(item)
    elif isinstance(value, list):
        for item in value:
            yield from keys(item)
