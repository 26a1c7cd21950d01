"""All kinds and versions of the job operators: the rules for jobs cover them, or people cannot create them.

The definitions are the operators' own. An administrator sends the requests, because members have no rights to most of
these kinds.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from components.job_kinds import APPWRAPPER, RAY_CLUSTER, TRAIN_JOB
from components.tenancy.pod_templates import TEMPLATES
from components.tenancy.quota_gate import JOBS, KNOWN
from tests.local.environment import Cluster, Project, operators_settings
from tests.local.member import dry_run, refused
from tests.local.standing import Standing
from tests.local.test_member_jobs import WAITS, direct, pods, ray

UNKNOWN = "members submit "
GROUPS = tuple(group for group, _ in JOBS)


@pytest.fixture(scope="module", autouse=True)
def project(standing: Standing) -> Project:
    return standing.up("dev", operators_settings)


@pytest.fixture(scope="module")
def served(project: Project, cluster: Cluster) -> Mapping[str, Mapping[str, Any]]:
    """Return the schema of each namespaced kind and version in the job groups."""
    definitions = [each["spec"] for each in cluster.list("apiextensions.k8s.io/v1", "CustomResourceDefinition")]
    return {
        f"{each['group']}/{version['name']}/{each['names']['kind']}": version["schema"]["openAPIV3Schema"]
        for each in definitions
        if each["group"] in GROUPS and each["scope"] == "Namespaced"
        for version in each["versions"]
        if version["served"]
    }


def least(schema: Mapping[str, Any]) -> Any:
    """Return a valid value for a schema. Lists, maps and pods are not empty, because webhooks write empty ones as
    null.
    """
    if schema.get("enum"):
        return schema["enum"][0]
    if schema.get("type") == "object":
        inner, each = schema.get("properties") or {}, schema.get("additionalProperties")
        if list(pod_templates(schema)) == [""]:
            return pods()
        names = schema.get("required") or list(inner)[: schema.get("minProperties", 0)]
        required = {name: least(inner[name]) for name in names}
        return required | ({"x": least(each)} if isinstance(each, dict) else {})
    if schema.get("type") == "array":
        return [least(schema["items"])]
    return {"string": "x", "boolean": False, "integer": schema.get("minimum", 1)}.get(schema.get("type", ""), {})


def test_no_person_creates_a_kind_or_version_without_rules(
    served: Mapping[str, Mapping[str, Any]], cluster: Cluster
) -> None:
    unknown = set(served) - set(KNOWN)
    assert {"ray.io/v1alpha1/RayCluster", "ray.io/v1alpha1/RayJob", "ray.io/v1/RayService"} <= unknown
    assert set(KNOWN) <= set(served)
    for identity in sorted(unknown):
        version, _, kind = identity.rpartition("/")
        document = {"apiVersion": version, "kind": kind, "spec": least(served[identity]["properties"]["spec"])}
        document["metadata"] = {"name": "unknown", "namespace": "blue"}
        assert UNKNOWN in refused(dry_run, cluster, document), identity


def pod_templates(schema: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Yield the paths of pod templates in a kind's schema."""
    inner = schema.get("properties") or {}
    if "containers" in ((inner.get("spec") or {}).get("properties") or {}):
        yield path
        return
    for name, each in inner.items():
        yield from pod_templates(each, f"{path}.{name}".lstrip("."))
    if isinstance(schema.get("items"), dict):
        yield from pod_templates(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from pod_templates(schema["additionalProperties"], f"{path}{{}}")


@pytest.mark.parametrize("identity", [kind for kind in KNOWN if kind not in (APPWRAPPER.identity, TRAIN_JOB.identity)])
def test_the_rules_find_every_pod_template_of_a_kind(identity: str, served: Mapping[str, Mapping[str, Any]]) -> None:
    """AppWrappers have the templates of their contents. TrainJobs have only known fields."""
    assert sorted(pod_templates(served[identity])) == sorted(TEMPLATES[identity])


ATTACKS = {
    "a Ray cluster of an older version, with workers that are not counted": (
        direct(
            "ray.io/v1alpha1",
            "RayCluster",
            suspend=True,
            headGroupSpec={"rayStartParams": {}, "template": pods()},
            workerGroupSpecs=ray(replicas=0, minReplicas=100, maxReplicas=100, rayStartParams={})["workerGroupSpecs"],
        ),
        UNKNOWN,
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_refused(attack: str, cluster: Cluster) -> None:
    document, reason = ATTACKS[attack]
    assert reason in refused(dry_run, cluster, document)


def test_a_job_cannot_be_changed_by_a_version_without_rules(cluster: Cluster) -> None:
    """Its schema lacks fields, which the API server would drop from the job."""
    cluster.create(direct(RAY_CLUSTER.api, RAY_CLUSTER.kind, suspend=True, **ray(**WAITS)))
    try:
        change = {"metadata": {"labels": {"a": "b"}}}
        assert UNKNOWN in refused(cluster.patch, "ray.io/v1alpha1", RAY_CLUSTER.kind, "direct", change, "blue")
        cluster.patch(RAY_CLUSTER.api, RAY_CLUSTER.kind, "direct", change, "blue")
    finally:
        cluster.delete(RAY_CLUSTER.api, RAY_CLUSTER.kind, "direct", "blue")
