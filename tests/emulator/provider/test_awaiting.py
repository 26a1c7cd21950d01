"""What counts as ready, and what a wait reports."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.plugin.errors import ProviderError
from emulator.provider import readiness, waitfor


class Neighbours:
    """Other objects, by kind."""

    def __init__(self, **objects: list[dict[str, Any]]) -> None:
        self._objects = objects

    def list(self, api_version: str, kind: str, namespace: str, labels: dict[str, str]) -> list[dict[str, Any]]:
        return self._objects.get(kind, [])

    def get(self, api_version: str, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        return next(iter(self._objects.get(kind, [])), None)


def missing(live: dict[str, Any], **neighbours: list[dict[str, Any]]) -> list[str]:
    rule = readiness.rule_for(live)
    assert rule is not None
    return rule(live, Neighbours(**neighbours))


def live(kind: str, api_version: str, spec: dict[str, Any], status: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "n", "namespace": "ns", "generation": 2},
        "spec": spec,
        "status": status,
    }


READY = {"observedGeneration": 2, "updatedReplicas": 2, "availableReplicas": 2, "replicas": 2, "readyReplicas": 2}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, ""),
        ({"observedGeneration": 1}, "has not seen the last change"),
        ({"updatedReplicas": 1}, "1 of 2 replicas are up to date"),
        ({"availableReplicas": 0}, "0 of 2 replicas are available"),
        ({"replicas": 3}, "1 old replicas have not gone yet"),
    ],
)
def test_deployments(change: dict[str, Any], expected: str) -> None:
    found = missing(live("Deployment", "apps/v1", {"replicas": 2}, READY | change))
    assert "; ".join(found).startswith("") if not expected else expected in "; ".join(found)
    assert bool(found) is bool(expected)


def test_workloads() -> None:
    stateful = live("StatefulSet", "apps/v1", {"replicas": 2}, READY | {"currentRevision": "a", "updateRevision": "b"})
    assert missing(stateful) == ["2 of 2 replicas are up to date"]
    daemon = live("DaemonSet", "apps/v1", {}, {"observedGeneration": 2, "desiredNumberScheduled": 3})
    assert missing(daemon) == ["0 of 3 nodes run the current pod"]
    job = live("Job", "batch/v1", {"completions": 2}, {"active": 1, "succeeded": 1})
    assert missing(job) == ["1 of 2 pods have succeeded, 1 are active"]
    failed = {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "m"}]}
    with pytest.raises(readiness.FailedError, match="BackoffLimitExceeded"):
        missing(live("Job", "batch/v1", {}, failed))


def test_services() -> None:
    service = live("Service", "v1", {"selector": {"a": "b"}}, {})
    assert "selects no ready pod" in missing(service)[0]
    assert missing(service, EndpointSlice=[{"endpoints": [{"conditions": {"ready": True}}]}]) == []
    assert missing(service, EndpointSlice=[{"endpoints": [{"conditions": {"ready": False}}]}]) != []
    for spec in ({}, {"selector": {"a": "b"}, "clusterIP": "None"}, {"selector": {"a": "b"}, "type": "ExternalName"}):
        assert missing(live("Service", "v1", spec, {})) == []
    assert "load balancer" in missing(live("Service", "v1", {"type": "LoadBalancer"}, {}))[0]


def test_claims_that_wait_for_their_consumer_are_ready() -> None:
    claim = live("PersistentVolumeClaim", "v1", {"storageClassName": "s"}, {"phase": "Pending"})
    assert missing(claim, StorageClass=[{"volumeBindingMode": "WaitForFirstConsumer"}]) == []
    assert missing(claim, StorageClass=[{"volumeBindingMode": "Immediate"}]) != []


def test_pods_say_why_they_wait() -> None:
    waiting = {"reason": "ErrImagePull", "message": "no such image"}
    status = {"phase": "Pending", "containerStatuses": [{"name": "c", "state": {"waiting": waiting}}]}
    assert missing(live("Pod", "v1", {}, status)) == ["container c waits: ErrImagePull no such image"]


def test_definitions_have_to_be_established() -> None:
    kind, version = "CustomResourceDefinition", "apiextensions.k8s.io/v1"
    assert missing(live(kind, version, {}, {"conditions": [{"type": "Established", "status": "True"}]})) == []
    assert missing(live(kind, version, {}, {})) != []


def test_custom_resources_and_plain_kinds_are_ready_at_once() -> None:
    assert readiness.rule_for({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue"}) is None
    assert readiness.rule_for({"apiVersion": "v1", "kind": "ConfigMap"}) is None


def annotated(expression: str, **rest: Any) -> dict[str, Any]:
    return {"metadata": {"annotations": {"pulumi.com/waitFor": expression}}, **rest}


@pytest.mark.parametrize(
    ("expression", "satisfied", "not_satisfied"),
    [
        ("jsonpath={.status.phase}=Running", {"status": {"phase": "Running"}}, {"status": {"phase": "Pending"}}),
        ("jsonpath={.status.ip}", {"status": {"ip": "1"}}, {"status": {}}),
        (
            "jsonpath={.webhooks[0].clientConfig.caBundle}",
            {"webhooks": [{"clientConfig": {"caBundle": "x"}}]},
            {"webhooks": [{"clientConfig": {}}]},
        ),
        ('jsonpath={.c[?(@.t=="A")].s}=yes', {"c": [{"t": "A", "s": "yes"}]}, {"c": [{"t": "B", "s": "yes"}]}),
        (
            "condition=Ready",
            {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
            {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
        ),
        ("condition=Ready=False", {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, {"status": {}}),
        (
            '["condition=A", "jsonpath={.x}=true"]',
            {"x": True, "status": {"conditions": [{"type": "A", "status": "True"}]}},
            {"x": False, "status": {"conditions": [{"type": "A", "status": "True"}]}},
        ),
    ],
)
def test_wait_for(expression: str, satisfied: dict[str, Any], not_satisfied: dict[str, Any]) -> None:
    conditions = waitfor.conditions(annotated(expression))
    assert not any(condition(satisfied) for condition in conditions)
    assert any(condition(not_satisfied) for condition in conditions)


def test_conditions_of_an_older_generation_do_not_count() -> None:
    (condition,) = waitfor.conditions(annotated("condition=Ready"))
    ready = {"type": "Ready", "status": "True", "observedGeneration": 1}
    assert "older generation" in condition({"metadata": {"generation": 2}, "status": {"conditions": [ready]}})


@pytest.mark.parametrize(
    "expression", ["Ready", "jsonpath=.status", "jsonpath={.a}b", "jsonpath={.a}=", "jsonpath={[}", "[]", "[1]"]
)
def test_malformed_wait_for(expression: str) -> None:
    with pytest.raises(ProviderError, match=r"pulumi\.com/waitFor"):
        waitfor.conditions(annotated(expression))
