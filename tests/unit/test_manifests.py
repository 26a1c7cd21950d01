"""Manifest files become one resource for each document, in a valid order, unchanged except for the edit."""

import pulumi
import pulumi_kubernetes as kubernetes

from components.kubernetes.manifests import Document, Manifest, Manifests, ManifestsArgs, edited, identity, ordered
from tests.unit.harness import Record, build
from tests.unit.tables import table

FILE = table("manifests", "file")


def manifests(args: ManifestsArgs) -> tuple[Record, list[str]]:
    ready: list[str] = []

    def program() -> None:
        provider = kubernetes.Provider("cluster", kubeconfig="{}")
        component = Manifests("tools", args, pulumi.ResourceOptions(providers=[provider]))
        for resource in component.ready:
            resource.urn.apply(ready.append)

    return build(program), ready


def test_each_document_is_one_resource_named_by_what_it_is() -> None:
    record, _ = manifests(ManifestsArgs(text=FILE))
    assert {resource.name for resource in record.objects()} == {
        "tools/Namespace/tools",
        "tools/CustomResourceDefinition/widgets.example.org",
        "tools/ConfigMap/tools/settings",
        "tools/Service/tools/server",
        "tools/Deployment/tools/server",
        "tools/ValidatingWebhookConfiguration/guard",
    }
    config = record.one("ConfigMap", "settings")
    assert config.type == "kubernetes:core/v1:ConfigMap"
    assert config.inputs["data"] == {"snake_case": "1", "camelCase": "2"}
    assert record.one("Deployment", "server").type == "kubernetes:apps/v1:Deployment"


def test_an_object_of_kueues_is_the_same_one_in_either_version() -> None:
    def program() -> None:
        provider = kubernetes.Provider("cluster", kubeconfig="{}")
        for version in ("kueue.x-k8s.io/v1beta1", "kueue.x-k8s.io/v1beta2", "v1"):
            body = {"apiVersion": version, "kind": "Thing", "metadata": {"name": version}}
            former = pulumi.ResourceOptions(provider=provider, aliases=[pulumi.Alias(type_="test:index:Older")])
            Manifest(version, body, former)

    former = {item.name: item.former_types for item in build(program).objects()}
    assert former == {
        "kueue.x-k8s.io/v1beta1": ("test:index:Older", "kubernetes:kueue.x-k8s.io/v1beta2:Thing"),
        "kueue.x-k8s.io/v1beta2": ("test:index:Older", "kubernetes:kueue.x-k8s.io/v1beta1:Thing"),
        "v1": ("test:index:Older",),
    }


def test_workloads_wait_for_all_below_and_webhooks_for_workloads() -> None:
    record, ready = manifests(ManifestsArgs(text=FILE))
    by_kind = {resource.kind: resource for resource in record.objects()}
    deployment, webhook = by_kind["Deployment"], by_kind["ValidatingWebhookConfiguration"]
    assert deployment.dependencies == {
        by_kind[kind].urn for kind in ("Namespace", "CustomResourceDefinition", "ConfigMap", "Service")
    }
    assert webhook.dependencies == {deployment.urn}
    assert set(ready) == {deployment.urn, webhook.urn}


def test_a_file_of_definitions_alone_is_ready_with_them() -> None:
    text = "apiVersion: v1\nkind: Namespace\nmetadata: {name: tools}\n"
    record, ready = manifests(ManifestsArgs(text=text))
    assert ready == [record.objects()[0].urn]


def test_an_edit_changes_and_leaves_out() -> None:
    def edit(document: Document) -> Document | None:
        return None if document["kind"] == "Namespace" else {**document, "edited": True}

    documents = list(edited(FILE, edit))
    assert {document["kind"] for document in documents} == {
        "Deployment",
        "ValidatingWebhookConfiguration",
        "ConfigMap",
        "CustomResourceDefinition",
        "Service",
    }
    assert all(document["edited"] for document in documents)


def test_order_is_by_what_depends_on_what_and_else_the_files() -> None:
    kinds = [document["kind"] for document in ordered(edited(FILE, lambda document: document))]
    assert kinds == [
        "CustomResourceDefinition",
        "Namespace",
        "ConfigMap",
        "Service",
        "Deployment",
        "ValidatingWebhookConfiguration",
    ]


def test_two_objects_of_one_name_in_two_namespaces_are_two_resources() -> None:
    one: Document = {"kind": "Role", "metadata": {"name": "reader", "namespace": "a"}}
    two: Document = {"kind": "Role", "metadata": {"name": "reader", "namespace": "b"}}
    assert identity(one) != identity(two)
