"""The GPU operator of a cluster: a preview says where it gives GPUs past a request, or hides them from Autopilot."""

from collections.abc import Mapping
from typing import Any

import pytest

from stacks.config import parsing
from stacks.config.cluster_facts import ClusterFacts, GpuPolicy
from stacks.validation import rules
from tests.unit.test_existing import NODES, shipped
from tests.unit.test_nvshare import config as sharing

VARIABLE = "ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED"
MOUNT = "ACCEPT_NVIDIA_VISIBLE_DEVICES_AS_VOLUME_MOUNTS"
GUARDED = GpuPolicy(name="gpu-cluster-policy", by_variable=False, by_mount=False, cdi=True)
OPEN = GpuPolicy(name="gpu-cluster-policy", by_variable=True, by_mount=False, cdi=False)


def said(raw: Mapping[str, Any], policy: GpuPolicy) -> list[str]:
    partial, wrong = parsing.read(raw)
    assert wrong == []
    partial.facts = ClusterFacts(identifier="own", version="1.34", nodes=NODES, gpu_policies=(policy,))
    return [text for text in rules.warnings(partial) if "ClusterPolicy" in text]


def with_autopilot(**values: Any) -> dict[str, Any]:
    return {**shipped(), "health": {"autopilot": {"enabled": True, **values}}}


def test_gpus_past_a_request_are_told_by_the_policys_name_with_the_fix() -> None:
    (text,) = said(shipped(), OPEN)
    assert text.startswith("the GPU operator's ClusterPolicy gpu-cluster-policy lets a pod use GPUs")
    assert f'set {VARIABLE} to "false" in its spec.toolkit.env' in text


@pytest.mark.parametrize(
    ("sections", "policy"),
    [
        ({}, GUARDED),
        ({"queueing": {"enabled": False}, "tenancy": {"enabled": False}, "teams": [], "samples": {}}, OPEN),
        ({"gpu": {"operator": True}}, OPEN),
    ],
    ids=["it guards them", "nothing is counted", "the stack's own, before its next update"],
)
def test_where_there_is_nothing_to_say(sections: dict[str, Any], policy: GpuPolicy) -> None:
    assert said({**shipped(), **sections}, policy) == []


def test_mounts_are_nvshares_way_and_nobody_elses() -> None:
    mounts = GpuPolicy(name="own", by_variable=False, by_mount=True, cdi=False)
    (text,) = said(shipped(), mounts)
    assert f'set {MOUNT} to "false"' in text
    assert said(sharing(), mounts) == []


@pytest.mark.parametrize(
    ("values", "policy", "settings"),
    [
        (
            {},
            GUARDED,
            "set mlbatch:health.autopilot.runtimeClass: nvidia and mlbatch:health.autopilot.guardedGpus: true",
        ),
        ({"runtimeClass": "nvidia"}, GUARDED, "set mlbatch:health.autopilot.guardedGpus: true"),
        ({"guardedGpus": True}, GUARDED, "set mlbatch:health.autopilot.runtimeClass: nvidia"),
        ({"guardedGpus": True, "runtimeClass": "nvidia"}, GUARDED, None),
    ],
)
def test_autopilot_that_would_see_no_gpu(values: dict[str, Any], policy: GpuPolicy, settings: str | None) -> None:
    texts = said(with_autopilot(**values), policy)
    assert [text.partition("cannot mark nodes: ")[2] for text in texts] == ([settings] if settings else [])


def test_autopilot_sees_all_gpus_where_variables_give_them() -> None:
    (text,) = said(with_autopilot(), OPEN)
    assert "Autopilot" not in text
