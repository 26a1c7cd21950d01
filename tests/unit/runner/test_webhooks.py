"""Webhooks that do not answer, from the cluster's API."""

from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes.dynamic.exceptions import ResourceNotFoundError

from runner import webhooks

QUEUES = "clusterqueues.kueue.x-k8s.io"
PLURALS = {"ClusterQueue": "clusterqueues", "AppWrapper": "appwrappers", "Pod": "pods", "Namespace": "namespaces"}


class Served:
    """A client of a cluster with these objects by kind, and with slices of these Services."""

    def __init__(self, *, ready: tuple[str, ...] = (), **items: list[dict[str, Any]]) -> None:
        self._ready, self._items = ready, items
        self.resources = self

    def get(self, resource: Any = None, **options: Any) -> Any:
        if resource is None:
            kind = options["kind"]
            if kind == "Unknown":
                raise ResourceNotFoundError(kind)
            return SimpleNamespace(kind=kind, name=PLURALS.get(kind, kind.lower()))
        items = self._items.get(resource.kind, [])
        if resource.kind == "EndpointSlice":
            name = options["label_selector"].removeprefix("kubernetes.io/service-name=")
            items = [{"endpoints": [{"conditions": {"ready": name in self._ready}}]}, {"endpoints": None}]
        return {"items": items}


def definition(service: str | None) -> dict[str, Any]:
    """A definition of queues, which a webhook converts."""
    client = {"service": {"namespace": "mlbatch-system", "name": service}} if service else {"url": "https://x"}
    return {
        "metadata": {"name": QUEUES},
        "spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": client}}},
    }


def configuration(service: str, group: str, plural: str, *operations: str, policy: str = "Fail") -> dict[str, Any]:
    """A webhook that is asked of some operations."""
    rule = {"apiGroups": [group], "resources": [plural, f"{plural}/status"], "operations": list(operations)}
    client = {"service": {"namespace": "mlbatch-system", "name": service}}
    return {"webhooks": [{"clientConfig": client, "failurePolicy": policy, "rules": [rule]}]}


KUEUE = {
    "CustomResourceDefinition": [definition("kueue"), definition(None), {"metadata": {"name": "plain"}, "spec": {}}],
    "ValidatingWebhookConfiguration": [
        configuration("kueue", "kueue.x-k8s.io", "workloads", "CREATE", "UPDATE"),
        configuration("appwrapper", "workload.codeflare.dev", "appwrappers", "*"),
        configuration("lenient", "kueue.x-k8s.io", "cohorts", "UPDATE", policy="Ignore"),
        configuration("creating", "", "pods", "CREATE"),
    ],
    "MutatingWebhookConfiguration": [configuration("pods", "", "pods", "DELETE"), {"webhooks": None}],
}


def found(**ready: Any) -> dict[str, tuple[str, ...]]:
    client: Any = Served(**ready, **KUEUE)
    return {each.service: tuple(each.resources) for each in webhooks.absent(client)}


def test_those_that_hold_deletions_up_are_found_with_what_they_hold_up() -> None:
    assert found() == {
        "appwrapper": ("appwrappers.workload.codeflare.dev",),
        "kueue": (QUEUES, "workloads.kueue.x-k8s.io"),
        "pods": ("pods",),
    }


def test_a_service_with_a_ready_pod_is_none_of_them() -> None:
    assert found(ready=("kueue", "pods")) == {"appwrapper": ("appwrappers.workload.codeflare.dev",)}
    assert found(ready=("kueue", "pods", "appwrapper")) == {}


@pytest.mark.parametrize(
    ("kinds", "held"),
    [
        ({("kueue.x-k8s.io/v1beta2", "ClusterQueue"), ("v1", "Namespace")}, {"kueue": ["ClusterQueue"]}),
        ({("v1", "Pod"), ("example.com/v1", "Pod")}, {"pods": ["Pod"]}),
        ({("v1", "Namespace"), ("example.com/v1", "Unknown")}, {}),
    ],
    ids=["a queue", "another group", "neither"],
)
def test_only_those_count_that_hold_up_what_is_deleted(kinds: set[tuple[str, str]], held: dict[str, list[str]]) -> None:
    client: Any = Served(**KUEUE)
    assert {each.service: of for each, of in webhooks.holding(client, kinds).items()} == held


def test_a_webhook_of_every_kind_holds_all_up() -> None:
    client: Any = Served(ValidatingWebhookConfiguration=[configuration("any", "*", "*", "*")])
    found = webhooks.holding(client, {("v1", "Pod"), ("kueue.x-k8s.io/v1beta2", "ClusterQueue")})
    assert list(found.values()) == [["ClusterQueue", "Pod"]]


def test_the_report_names_them_and_is_empty_where_all_are_answered() -> None:
    client: Any = Served(**{**KUEUE, "MutatingWebhookConfiguration": []}, ready=("appwrapper",))
    (section,) = webhooks.report(client)
    assert section.text() == (
        "Webhooks that do not answer\n"
        "  NAMESPACE       SERVICE  HOLDS UP\n"
        f"  mlbatch-system  kueue    {QUEUES}, workloads.kueue.x-k8s.io"
    )
    everybody: Any = Served(**KUEUE, ready=("appwrapper", "kueue", "pods"))
    assert webhooks.report(everybody) == []
