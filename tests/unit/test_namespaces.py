"""Namespaces of the platform's own pods, on a cluster that limits the system's priority classes by default."""

from pathlib import Path
from typing import Any

import pytest

from components.artifacts import Mirror
from tests.unit.harness import Record, Registered
from tests.unit.test_existing import loaded, registered, shipped

CRITICAL = ("system-node-critical", "system-cluster-critical")
CHARTS = {"nvidia-operator", "volcano-system"}
"""Where charts put pods of these classes: NVIDIA's operators and their DaemonSets, and Volcano's controllers."""


@pytest.fixture(scope="module")
def record(mirror: Mirror, same_kubeconfig: Path) -> Record:
    gpu: dict[str, Any] = {
        "operator": True,
        "featureDiscovery": True,
        "nvmeScratch": {"enabled": True, "diskModel": "NVMe"},
    }
    return registered(loaded({**shipped(), "gpu": gpu, "volcano": {"enabled": True}}, mirror, same_kubeconfig))


def namespace_of(item: Registered) -> str:
    return str(item.inputs["metadata"]["namespace"])


def lets_in(quota: Registered, priority: str) -> bool:
    """Return whether the API server admits pods of a limited class into a namespace with this quota."""
    spec = quota.inputs["spec"]
    (scope,) = spec.get("scopeSelector", {}).get("matchExpressions", [{}])
    return (
        (scope.get("scopeName"), scope.get("operator")) == ("PriorityClass", "In")
        and priority in scope["values"]
        and spec["hard"] == {"pods": "1G"}
    )


def test_critical_pods_are_let_in_wherever_the_platform_has_any(record: Record) -> None:
    found = set()
    for item in [*record.of("Deployment"), *record.of("DaemonSet")]:
        priority = item.inputs["spec"]["template"]["spec"].get("priorityClassName")
        if priority in CRITICAL:
            found.add(namespace_of(item))
            quotas = [quota for quota in record.of("ResourceQuota") if namespace_of(quota) == namespace_of(item)]
            (quota,) = [quota for quota in quotas if lets_in(quota, priority)]
            assert quota.urn in record.closure(item), "the pods may be refused before it is there"
    assert found == {"mlbatch-system", "scheduler-plugins", "mlbatch-nodes"}


def test_so_they_are_where_charts_have_them(record: Record) -> None:
    for name in CHARTS:
        (quota,) = [quota for quota in record.of("ResourceQuota") if namespace_of(quota) == name]
        assert all(lets_in(quota, priority) for priority in CRITICAL)
        releases = [item for item in record.resources if item.type.endswith(":Release")]
        mine = [item for item in releases if item.inputs.get("namespace") == name]
        assert mine
        assert all(quota.urn in record.closure(item) for item in mine)


def test_teams_have_none(record: Record) -> None:
    quotas = [quota for quota in record.of("ResourceQuota") if namespace_of(quota) in ("blue", "red")]
    assert quotas
    assert not [quota for quota in quotas if any(lets_in(quota, priority) for priority in CRITICAL)]
