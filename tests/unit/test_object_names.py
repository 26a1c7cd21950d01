"""No two objects have the same name: names in settings are separate, and the list of names is complete."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from components.artifacts import Mirror
from stacks.config.errors import key
from stacks.config.inputs import StackInputs
from stacks.derived.partial import PartialSettings
from stacks.targets.spec import PLATFORM
from stacks.validation import names, objects
from tests.unit.configurations import aks, errors_of, partial_of
from tests.unit.harness import Record
from tests.unit.tables import table
from tests.unit.test_aks import deployed, everything
from tests.unit.test_existing import loaded, registered, shipped

JOB = {"enabled": True, "tag": "1", "submission": {"team": "blue"}}
LAB = {"enabled": True, "scratch": False, "submission": {"team": "blue"}}
FREE = {"enabled": True, "submission": {"gang": "none"}}
LOGGED = {"enabled": True, "tag": "1", "useAim": True, "submission": {"gang": "none"}}


def test_a_volume_is_by_default_where_the_workloads_are() -> None:
    raw = aks(workloads={"namespace": "research"}, storage={"volumes": [{"name": "data", "container": "data"}]})
    assert errors_of(raw) == []
    partial = partial_of(raw)
    assert partial.target is not None
    assert partial.target.volumes(partial) == {"data": "research"}


def judged(raw: Mapping[str, Any], stack: StackInputs[Any] | None = None) -> PartialSettings:
    partial = partial_of(raw)
    partial.facts = stack.named_cluster.facts if stack is not None and stack.named_cluster is not None else None
    return partial


def identities(record: Record, kinds: set[str], namespaces: set[str]) -> set[tuple[str, str, str]]:
    """Return the registered objects of these kinds in these namespaces, what is in AppWrappers among them."""
    found = set()
    for item in record.resources:
        if item.type == "random:index/randomPassword:RandomPassword":
            found.add(("RandomPassword", "", item.name))
        if not item.type.startswith("kubernetes:") or "metadata" not in item.inputs:
            continue
        kind = "Volcano Job" if item.type.startswith("kubernetes:batch.volcano.sh") else item.kind
        namespace = item.inputs["metadata"].get("namespace", "")
        found.add(
            (kind, namespace, re.sub("-[0-9a-f]{8}$", "", item.object_name) if not namespace else item.object_name)
        )
        for component in item.inputs.get("spec", {}).get("components", []) if kind == "AppWrapper" else []:
            inner = component["template"]
            found.add((inner["kind"], namespace, inner["metadata"]["name"]))
    return {each for each in found if each[0] in kinds and each[1] in namespaces}


def assert_planned(partial: PartialSettings, record: Record) -> None:
    """What is registered under names of settings is planned; what else is planned, Volcano's plugins make."""
    planned = {item.identity for item in objects.planned(partial)}
    kinds = {kind for kind, _, _ in planned} - {"Workload"}
    namespaces = {*(team.name for team in partial.known_teams), "workloads"}
    made = identities(record, kinds, namespaces)
    made |= identities(record, {"PersistentVolume", "RandomPassword"}, {""})
    volcanos = {item for item in planned if item[1:] in {job[1:] for job in planned if job[0] == "Volcano Job"}}
    volcanos |= {(kind, space, name) for kind, space, name in planned if name.endswith(("-svc", "-ssh"))}
    assert made <= planned
    assert {item for item in planned if item[0] != "Workload"} - volcanos <= made


OPERATORS: dict[str, Any] = {"trainingOperator": {"enabled": True}, "kuberay": {"enabled": True}}
WORKLOADS: dict[str, Any] = {
    "queued": {
        "nccl": {**JOB, "nodes": 2},
        "metaseq": JOB,
        "olmo": {**JOB, "data": "data"},
        "vllm": {"enabled": True, "submission": {"team": "blue"}},
        "pretraining": {"enabled": True, "submission": {"team": "blue"}},
        "finetuning": {"enabled": True, "submission": {"team": "blue"}},
        "jupyterlab": LAB,
    },
    "free": {
        "nccl": {**JOB, "submission": {"gang": "none"}},
        "metaseq": {**LOGGED, "useTensorboard": True},
        "vllm": FREE,
        "jupyterlab": {**FREE, "exposure": "internal", "sourceRanges": ["10.1.0.0/16"]},
        "aim": {"enabled": True},
        "tensorboard": {"enabled": True},
    },
    "volcano": {"nccl": {**JOB, "submission": {"gang": "volcano"}}},
}


@pytest.mark.parametrize(
    ("ways", "packing"),
    [("queued", "coscheduling"), ("queued", "none"), ("free", "none"), ("volcano", "coscheduling")],
)
def test_the_plan_is_what_the_program_registers(mirror: Mirror, ways: str, packing: str) -> None:
    raw = everything()
    raw |= {"workloads": WORKLOADS[ways], "samples": {"gang": {"team": "blue"}}, "scheduling": {"packing": packing}}
    raw["queueing"] = OPERATORS
    assert_planned(judged(raw), deployed(mirror, raw))


def test_each_object_is_told_by_the_key_that_names_it() -> None:
    """A duplicate name is reported at these keys."""
    raw = everything()
    raw["teams"][0] |= {"users": ["me@example.org", "me@example.org", "you@example.org"], "groups": []}
    pretraining = {**WORKLOADS["queued"]["pretraining"], "checkpoints": {"name": "states"}}
    viewed = {name: WORKLOADS["free"][name] for name in ("metaseq", "aim", "tensorboard")}
    raw |= {"workloads": {**WORKLOADS["queued"], **viewed, "pretraining": pretraining}, "queueing": OPERATORS}
    raw |= {"samples": {"gang": {"team": "blue", "name": "sample"}}}
    told: dict[str, list[str]] = {}
    for item in objects.planned(partial_of(raw)):
        if item.path != PLATFORM:
            told.setdefault(key(item.path).removeprefix("mlbatch:"), []).append(f"{item.kind} {item.name}")
    assert told == table("object_names", "told")


def test_so_it_is_on_an_existing_cluster(mirror: Mirror, kubeconfig: Path) -> None:
    workloads = {**WORKLOADS["free"], "jupyterlab": {"enabled": False}}
    raw = {**shipped(), "workloads": workloads, "cluster": {**shipped()["cluster"], "registry": "registry.example.org"}}
    raw["queueing"] = {**raw.get("queueing", {}), **OPERATORS}
    stack = loaded(raw, mirror, kubeconfig)
    assert_planned(judged(raw, stack), registered(stack))


def test_every_namespace_that_the_platform_makes_is_reserved(mirror: Mirror) -> None:
    raw = everything(volcano={"enabled": True})
    made = {item.object_name for item in deployed(mirror, raw).of("Namespace")}
    own = made - {"blue", "red", "workloads"}
    assert own
    for name in own:
        assert errors_of({**raw, "teams": [{"name": name, "users": [], "share": 1}]}), name
    assert {"aks-", "kube-", "openshift-"} <= {*names.reserved(judged(raw))}
