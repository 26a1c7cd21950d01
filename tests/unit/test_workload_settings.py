"""Volcano, health checks and workloads: each error in their settings gives one message with a fix."""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from components import names
from components.azure.baselines import THRESHOLDS
from components.azure.fabric import SRIOV, fabric
from components.health.thresholds import Scope
from components.kubernetes.fabric import NO_RDMA
from components.kubernetes.node_pool import NodePool
from components.kubernetes.quantity import Quantity
from components.workloads.metaseq import SIZES, Size
from components.workloads.submission import SubmissionMode
from stacks.settings.health import HealthSettings, NcclGateSettings
from stacks.settings.machines import MACHINES
from stacks.settings.workloads import NodeWorkloadSettings, WorkloadsSettings
from tests.unit.configurations import partial_of, stack_settings

ROOT = Path(__file__).resolve().parents[2]
NDV5 = "Standard_ND96isr_H100_v5"


def valid() -> dict[str, Any]:
    """A configuration without errors: two NDv5 nodes shared by two teams, Volcano, a data set, and no workload."""
    raw = stack_settings("aks")
    example = {name: raw[name] for name in ("target", "azure", "teams")}
    example["azure"]["gpuPool"]["count"] = 2
    example["teams"] = [{"name": "blue", "users": ["alice"], "share": 1}, {"name": "red", "users": ["bob"], "share": 1}]
    volumes = [
        {"name": "data", "container": "data", "namespace": "blue"},
        {"name": "more-data", "container": "data", "namespace": "workloads"},
    ]
    return {**example, "storage": {"volumes": volumes}, "volcano": {"enabled": True}, "health": {}, "workloads": {}}


def job(**values: Any) -> dict[str, Any]:
    return {"enabled": True, "tag": "1", "submission": {"team": "blue"}, **values}


def changed(path: tuple[str, ...], value: object) -> dict[str, Any]:
    raw: dict[str, Any] = deepcopy(valid())
    place: Any = raw
    for part in path[:-1]:
        place = place.setdefault(part, {})
    place[path[-1]] = value
    return raw


def settings(**sections: Any) -> WorkloadsSettings:
    read = partial_of({**valid(), "workloads": sections}).section(WorkloadsSettings)
    assert read is not None
    return read


def test_nothing_runs_unless_it_is_asked_for() -> None:
    own = settings()
    assert not [item for item in own.of(NodeWorkloadSettings).values() if item.enabled]
    assert not own.logs_needed()
    health = partial_of(valid()).section(HealthSettings)
    assert health is not None
    assert set(health.checks()) == {"nodeCheck", "ncclGate"}
    assert not [item for item in health.checks().values() if item.enabled]


def test_the_document_s_example_is_the_default_of_each_workload() -> None:
    own = settings()
    assert (own.nccl.smallest, own.nccl.largest, own.nccl.sharp) == ("1K", "16G", False)
    assert (own.metaseq.size, own.metaseq.nodes, own.metaseq.updates) == ("1.3b", 1, 61036)
    assert own.olmo.training == "configs/official-0724/OLMo-1B.yaml"
    assert own.nccl.submission.gang is SubmissionMode.MLBATCH, "a quota counts what nobody submits differently"


def test_logs_have_a_volume_where_something_writes_them() -> None:
    assert settings(metaseq=job(useAim=True)).logs_needed()
    assert not settings(metaseq=job()).logs_needed()


@pytest.mark.parametrize(
    ("size", "gpu", "expected"),
    [
        (NDV5, {}, SRIOV),
        (NDV5, {"fabric": {"enabled": False}}, NO_RDMA),
        (NDV5, {"fabric": {"devicePlugin": "shared"}}, fabric(8, SRIOV.topology, shared=True)),
        ("Standard_NC40ads_H100_v5", {}, NO_RDMA),
    ],
)
def test_the_fabric_follows_the_nodes(size: str, gpu: dict[str, Any], expected: object) -> None:
    raw = {**valid(), "gpu": gpu}
    raw["azure"]["gpuPool"]["vmSize"] = size
    assert partial_of(raw).fabric == expected


def test_a_pod_asks_for_the_nodes_gpus_and_ports() -> None:
    own = settings(nccl=job(cpu=32))
    pool = NodePool(count=1, shape=MACHINES[NDV5].shape())
    asked = own.requests(own.nccl, pool, SRIOV)
    assert {name: str(amount) for name, amount in asked.items()} == {
        names.CPU: "32",
        names.MEMORY: "1000Gi",
        names.GPU: "8",
        names.INFINIBAND: "8",
    }


def test_thresholds_can_be_set_and_default_to_the_machine_types() -> None:
    pool = NodePool(count=2, shape=MACHINES[NDV5].shape())
    other = NodePool(count=2, shape=MACHINES["h100-sxm5-8x"].shape())
    assert NcclGateSettings().threshold(pool) == THRESHOLDS[NDV5][Scope.NODE]
    fabric = NcclGateSettings.model_validate({"scope": Scope.FABRIC}).threshold(pool)
    lowered = NcclGateSettings.model_validate({"failGbs": 440}).threshold(pool)
    own = NcclGateSettings.model_validate({"warnGbs": 350, "failGbs": 300}).threshold(other)
    assert fabric is not None
    assert fabric.fail == 300
    assert lowered is not None
    assert (lowered.warn, lowered.fail) == (470, 440)
    assert own is not None
    assert (own.warn, own.fail, own.source) == (350, 300, "the stack's settings")
    assert NcclGateSettings().threshold(other) is None


def test_what_is_given_of_a_model_takes_the_place_of_its_sizes() -> None:
    assert settings(metaseq=job()).metaseq.model == SIZES["1.3b"]
    given = {"layers": 4, "embedding": 256, "heads": 4, "batch": 65536, "learningRate": 0.001, "modelParallel": 1}
    assert settings(metaseq=job(**given)).metaseq.model == Size(
        layers=4, embedding=256, heads=4, batch=65536, learning_rate=0.001, model_parallel=1
    )
    assert settings(metaseq=job(layers=12)).metaseq.model == replace(SIZES["1.3b"], layers=12)


@pytest.mark.parametrize(("cpu", "memory", "share"), [(80, "1000Gi", ("10", "125Gi")), (4, "7Gi", ("500m", "896Mi"))])
def test_a_part_of_a_node_is_no_more_than_its_share(cpu: int, memory: str, share: tuple[str, str]) -> None:
    found = settings(cpu=cpu, memory=memory, jupyterlab={"gpus": 1})
    amounts = found.amounts(found.jupyterlab, Quantity.parse(8))
    assert (str(amounts["cpu"]), str(amounts["memory"])) == share
