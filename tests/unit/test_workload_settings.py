"""Volcano, health checks and workloads: each mistake in their settings gives one message that says what to do."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from components import names
from components.azure.baselines import THRESHOLDS
from components.azure.fabric import SHARED, SRIOV
from components.health.thresholds import Scope
from components.kubernetes.fabric import NO_RDMA
from components.kubernetes.node_pool import NodePool
from components.workloads.metaseq import SIZES, Size
from components.workloads.submission import SubmissionMode
from stacks.config.errors import ConfigError, key
from stacks.settings.health import HealthSettings, NcclGateSettings
from stacks.settings.machines import MACHINES
from stacks.settings.workloads import WorkloadsSettings
from tests.unit.configurations import errors_of, partial_of

ROOT = Path(__file__).resolve().parents[2]
NDV5 = "Standard_ND96isr_H100_v5"


def valid() -> dict[str, Any]:
    """A configuration without a mistake: two NDv5 nodes shared by two teams, Volcano, a data set, and no workload."""
    config = yaml.safe_load((ROOT / "Pulumi.aks.yaml").read_text())["config"]
    raw = {name.removeprefix("mlbatch:"): value for name, value in config.items()}
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


def problems(raw: dict[str, Any]) -> list[ConfigError]:
    """Return what is wrong with anything but the volumes, which stay as they are in all of these configurations."""
    return [error for error in errors_of(raw) if error.path[0] != "storage"]


def settings(**sections: Any) -> WorkloadsSettings:
    read = partial_of({**valid(), "workloads": sections}).section(WorkloadsSettings)
    assert read is not None
    return read


FITTING = [
    {"nccl": job()},
    {"nccl": job(nodes=2)},
    {"nccl": job(submission={"gang": "volcano"}), "metaseq": job(submission={"gang": "none"})},
    {"metaseq": job(size="66b", nodes=2, useAim=True, useTensorboard=True), "aim": {"enabled": True}},
    {"olmo": job(data="data")},
    {"olmo": job(data="more-data", submission={"gang": "none"})},
    {"jupyterlab": {"enabled": True, "submission": {"team": "red", "user": "bob"}}},
    {
        "jupyterlab": {
            "enabled": True,
            "submission": {"gang": "none"},
            "exposure": "public",
            "sourceRanges": ["203.0.113.0/24", "198.51.100.7/32"],
        }
    },
]


@pytest.mark.parametrize("sections", FITTING, ids=",".join)
def test_what_can_run_is_taken(sections: dict[str, Any]) -> None:
    assert [str(problem) for problem in problems({**valid(), "workloads": sections})] == []


def test_nothing_runs_unless_it_is_asked_for() -> None:
    own = settings()
    assert not [item for item in own.node_workloads().values() if item.enabled]
    assert not own.logs_needed()
    health = partial_of(valid()).section(HealthSettings)
    assert health is not None
    assert set(health.checks()) == {"nodeCheck", "ncclGate"}
    assert not [item for item in health.checks().values() if item.enabled]


def test_the_document_s_example_is_the_default_of_each_workload() -> None:
    own = settings()
    assert (own.nccl.smallest, own.nccl.largest, own.nccl.sharp) == ("1K", "16G", False)
    assert (own.metaseq.size, own.metaseq.nodes, own.metaseq.updates) == ("1.3b", 1, 61036)
    assert own.olmo.training == "configs/official/OLMo-1B.yaml"
    assert own.nccl.submission.gang is SubmissionMode.MLBATCH, "a quota counts what nobody submits differently"


def test_logs_have_a_volume_where_something_writes_them() -> None:
    assert settings(metaseq=job(useAim=True)).logs_needed()
    assert not settings(metaseq=job()).logs_needed()


@pytest.mark.parametrize(
    ("size", "gpu", "expected"),
    [
        (NDV5, {}, SRIOV),
        (NDV5, {"fabric": {"enabled": False}}, NO_RDMA),
        (NDV5, {"fabric": {"devicePlugin": "shared"}}, SHARED),
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


MISTAKES: list[tuple[tuple[str, ...], object, str, str, str]] = [
    # sizes of models
    (
        ("workloads", "metaseq"),
        job(size="1.5b"),
        'mlbatch:workloads.metaseq.size = "1.5b"',
        "there is no model of this size",
        "the nearest is 1.3b",
    ),
    (
        ("workloads", "metaseq"),
        job(size="200B"),
        'mlbatch:workloads.metaseq.size = "200B"',
        "there is no model of this size",
        "the nearest is 175b",
    ),
    (
        ("workloads", "metaseq"),
        job(size="175b", nodes=2),
        'mlbatch:workloads.metaseq.size = "175b"',
        "take 2095 GB of GPU memory, and 16 GPUs have 64 GiB each",
        "set mlbatch:workloads.metaseq.nodes to 4 and mlbatch:azure.gpuPool.count to as many, or take 66b",
    ),
    (
        ("workloads", "metaseq"),
        job(size="66b", nodes=1),
        'mlbatch:workloads.metaseq.size = "66b"',
        "8 GPUs have 64 GiB each",
        "set mlbatch:workloads.metaseq.nodes to 2, or take 30b",
    ),
    # parts of models
    (
        ("workloads", "metaseq"),
        job(heads=30),
        "mlbatch:workloads.metaseq.heads = 30",
        "the embedding of 2048 cannot be divided among 30",
        "the next smaller one is 16",
    ),
    (
        ("workloads", "metaseq"),
        job(embedding=3072, heads=12, modelParallel=8),
        "mlbatch:workloads.metaseq.modelParallel = 8",
        "the heads of 12 cannot be divided among 8",
        "the next smaller one is 6",
    ),
    (
        ("workloads", "metaseq"),
        job(modelParallel=6, heads=48, embedding=4608),
        "mlbatch:workloads.metaseq.modelParallel = 6",
        "a sequence of 2048 cannot be divided among 6",
        "the next smaller one is 4",
    ),
    (
        ("workloads", "metaseq"),
        job(learningRate=0),
        "mlbatch:workloads.metaseq.learningRate = 0",
        "out of range",
        "set mlbatch:workloads.metaseq.learningRate to a number in that range",
    ),
    # nodes and quotas
    (
        ("workloads", "nccl"),
        job(nodes=3),
        "mlbatch:workloads.nccl.nodes = 3",
        "there are 2 GPU nodes",
        "raise mlbatch:azure.gpuPool.count",
    ),
    (
        ("workloads", "nccl"),
        job(memory="2Ti", submission={"gang": "none"}),
        'mlbatch:workloads.nccl.memory = "2Ti"',
        "hold 0 such pods at once",
        "ask for less, or take larger nodes",
    ),
    # gangs
    (
        ("workloads", "nccl"),
        job(submission={"gang": "volcano", "team": "blue"}),
        'mlbatch:workloads.nccl.submission.team = "blue"',
        "which gang: volcano passes by; the two exclude each other",
        "remove the team, or set mlbatch:workloads.nccl.submission.gang to mlbatch",
    ),
    (
        ("workloads", "nccl"),
        job(submission={"gang": ["volcano", "mlbatch"]}),
        'mlbatch:workloads.nccl.submission.gang = ["volcano", "mlbatch"]',
        "a workload is submitted in one way",
        "for two, run two workloads",
    ),
    (
        ("workloads", "nccl"),
        job(submission={"gang": "vulcano"}),
        'mlbatch:workloads.nccl.submission.gang = "vulcano"',
        "this gang is not known",
        "did you mean volcano?",
    ),
    (
        ("workloads", "nccl"),
        job(submission={"team": "bleu"}),
        'mlbatch:workloads.nccl.submission.team = "bleu"',
        "there is no such team",
        "did you mean blue?",
    ),
    (
        ("workloads", "nccl"),
        job(submission={}),
        "mlbatch:workloads.nccl.submission.team",
        "a team has to submit the job",
        "set it to blue",
    ),
    (
        ("workloads", "nccl"),
        job(submission={"team": "blue", "user": "bob"}),
        'mlbatch:workloads.nccl.submission.user = "bob"',
        "this user is not in team blue",
        "add bob to the users of blue",
    ),
    (
        ("workloads", "olmo"),
        job(data="more-data", submission={"gang": "volcano"}),
        'mlbatch:workloads.olmo.submission.gang = "volcano"',
        "which Volcano does not start together",
        "set mlbatch:workloads.olmo.submission.gang to mlbatch",
    ),
    (
        ("workloads",),
        {"namespace": "blue", "nccl": job()},
        'mlbatch:workloads.namespace = "blue"',
        "this is a team's namespace",
        "name another namespace",
    ),
    # images
    (
        ("workloads", "nccl"),
        {"enabled": True, "submission": {"team": "blue"}},
        "mlbatch:workloads.nccl.tag",
        "nothing says which image nccltest to run",
        "build it (docs/aks.md says how) and set the tag",
    ),
    (
        ("workloads", "metaseq"),
        job(tag="latest"),
        'mlbatch:workloads.metaseq.tag = "latest"',
        "nobody knows what runs",
        "push the image under such a tag",
    ),
    (
        ("workloads", "nccl"),
        job(image="registry.example.org/nccltest:1"),
        'mlbatch:workloads.nccl.image = "registry.example.org/nccltest:1"',
        "has a tag or a digest in it",
        "put the tag into the key tag",
    ),
    (
        ("workloads", "nccl"),
        job(smallest="1Gi"),
        'mlbatch:workloads.nccl.smallest = "1Gi"',
        "no message size of nccl-tests",
        "for example 1K or 16G",
    ),
    (
        ("workloads", "nccl"),
        job(smallest="1G", largest="16M"),
        'mlbatch:workloads.nccl.smallest = "1G"',
        "larger than the largest, 16M",
        "lower it, or raise largest",
    ),
    # data
    (
        ("workloads", "olmo"),
        job(),
        "mlbatch:workloads.olmo.data",
        "no volume is named",
        "set it to data",
    ),
    (
        ("workloads", "olmo"),
        job(data="dat"),
        'mlbatch:workloads.olmo.data = "dat"',
        "there is no such volume",
        "did you mean data?",
    ),
    (
        ("workloads", "olmo"),
        job(data="more-data"),
        'mlbatch:workloads.olmo.data = "more-data"',
        "this volume is in namespace workloads, and the job in blue",
        "set the volume's namespace to blue",
    ),
    # JupyterLab
    (
        ("workloads", "jupyterlab"),
        {"enabled": True, "submission": {"gang": "none"}, "exposure": "public"},
        "mlbatch:workloads.jupyterlab.sourceRanges",
        "offers a shell on GPU nodes to everybody",
        "set mlbatch:workloads.jupyterlab.exposure to cluster",
    ),
    (
        ("workloads", "jupyterlab"),
        {"enabled": True, "submission": {"gang": "none"}, "exposure": "internal", "sourceRanges": ["0.0.0.0/0"]},
        'mlbatch:workloads.jupyterlab.sourceRanges[0] = "0.0.0.0/0"',
        "every address there is",
        "name your own network's range",
    ),
    (
        ("workloads", "jupyterlab"),
        {"enabled": True, "submission": {"gang": "none"}, "exposure": "internal", "sourceRanges": ["10.0.0.5/8"]},
        'mlbatch:workloads.jupyterlab.sourceRanges[0] = "10.0.0.5/8"',
        "this is no address range",
        "a single address ends in /32",
    ),
    (
        ("workloads", "jupyterlab"),
        {"enabled": True, "submission": {"team": "blue"}, "sourceRanges": ["10.0.0.0/8"]},
        'mlbatch:workloads.jupyterlab.sourceRanges = ["10.0.0.0/8"]',
        "without a load balancer",
        "remove them, or set mlbatch:workloads.jupyterlab.exposure",
    ),
    # viewers and names
    (
        ("workloads", "aim"),
        {"enabled": True},
        "mlbatch:workloads.aim.enabled = true",
        "nothing writes logs for it to show",
        "enable metaseq and set useAim",
    ),
    (
        ("workloads",),
        {"nccl": job(name="job"), "metaseq": job(name="job")},
        'mlbatch:workloads.metaseq.name = "job"',
        "kind Workload with the name job: this one and one that mlbatch:workloads.nccl.name",
        "give one of the two another name",
    ),
    (
        ("workloads", "nccl"),
        job(name="NCCL_test"),
        'mlbatch:workloads.nccl.name = "NCCL_test"',
        "Kubernetes would reject this name",
        "for example nccl",
    ),
    (
        ("workloads", "metaseq"),
        job(useTensorBoard=True),
        "mlbatch:workloads.metaseq.useTensorBoard",
        "there is no key 'useTensorBoard' here",
        "did you mean 'useTensorboard'?",
    ),
    # health checks
    (
        ("health", "nodeCheck"),
        {"enabled": True, "nodes": 3},
        "mlbatch:health.nodeCheck.nodes = 3",
        "there are 2 GPU nodes",
        "leave it out for all nodes, or raise mlbatch:azure.gpuPool.count",
    ),
    (
        ("health", "nodeCheck"),
        {"enabled": True, "effect": "NoExecute"},
        'mlbatch:health.nodeCheck.effect = "NoExecute"',
        "a check without a gate taints no node",
        "set mlbatch:health.nodeCheck.mode to gate",
    ),
    (
        ("health", "ncclGate"),
        {"enabled": True, "effect": "PreferNoSchedule"},
        'mlbatch:health.ncclGate.effect = "PreferNoSchedule"',
        "this effect is not known",
        "did you mean NoSchedule?",
    ),
    (
        ("health", "ncclGate"),
        {"enabled": True, "failGbs": 475},
        "mlbatch:health.ncclGate.failGbs = 475",
        "nodes would fail below 475 GB/s before they are warned of below 470",
        "raise warnGbs or lower failGbs",
    ),
    (
        ("health", "ncclGate"),
        {"enabled": True, "scope": "fabric"},
        "mlbatch:workloads.nccl.tag",
        "the gate over several nodes runs the image of the NCCL test",
        "set mlbatch:workloads.nccl.tag, or mlbatch:health.ncclGate.scope to node",
    ),
    (
        ("health", "nodeCheck"),
        {"enabled": True, "imageTag": "latest"},
        'mlbatch:health.nodeCheck.imageTag = "latest"',
        "nobody knows what runs",
        "push the image under such a tag",
    ),
    # Volcano
    (
        ("volcano",),
        {"enabled": True, "version": "1.7.0"},
        'mlbatch:volcano.version = "1.7.0"',
        "this Volcano version is not known",
        "1.15.0",
    ),
    (
        ("volcano",),
        {"enabled": True, "queue": "My Queue"},
        'mlbatch:volcano.queue = "My Queue"',
        "Kubernetes would reject this name",
        "for example workloads",
    ),
]


@pytest.mark.parametrize(
    ("rate", "wrong", "allowed"),
    [("6e-4", "this is a text", "a number"), (0, "this number is out of range", "a number from 1e-09 to 1")],
)
def test_a_rate_is_a_number_and_no_whole_one(rate: object, wrong: str, allowed: str) -> None:
    (found,) = problems(changed(("workloads", "metaseq"), {"learningRate": rate}))
    assert (found.message, found.expected) == (wrong, allowed)


@pytest.mark.parametrize(
    ("path", "value", "where", "wrong", "fix"), MISTAKES, ids=[f"{item[2]}: {item[3]}"[:90] for item in MISTAKES]
)
def test_a_mistake_is_one_problem_with_key_reason_and_fix(
    path: tuple[str, ...], value: object, where: str, wrong: str, fix: str
) -> None:
    found = problems(changed(path, value))
    assert len(found) == 1, "\n\n".join(str(problem) for problem in found)
    text = str(found[0])
    assert text.startswith(f"{where}\n"), text
    assert wrong in found[0].message
    assert fix in found[0].hint
    assert found[0].expected


@pytest.mark.parametrize("name", ["token", "password"])
def test_a_token_in_plain_configuration_is_refused_and_not_repeated(name: str) -> None:
    (problem,) = problems(changed(("workloads", "jupyterlab"), {name: "hunter2"}))
    assert key(problem.path) == f"mlbatch:workloads.jupyterlab.{name}"
    assert "pulumi config set --secret mlbatch:jupyterToken" in problem.hint
    assert "hunter2" not in str(problem)


def test_a_gang_that_is_not_installed_is_refused() -> None:
    raw = {**valid(), "volcano": {}, "workloads": {"nccl": job(submission={"gang": "volcano"})}}
    (problem,) = problems(raw)
    assert key(problem.path) == "mlbatch:workloads.nccl.submission.gang"
    assert "Volcano is not installed" in problem.message
    assert "mlbatch:volcano.enabled" in problem.hint


def test_a_teams_queue_needs_queues() -> None:
    raw = {**valid(), "queueing": {"enabled": False}, "workloads": {"nccl": job()}}
    (problem,) = [error for error in problems(raw) if error.path[0] == "workloads"]
    assert (problem.message, key(problem.path)) == ("there are no queues", "mlbatch:workloads.nccl.submission.gang")


def test_a_quota_that_could_never_admit_a_job_is_named() -> None:
    raw = valid()
    raw["teams"] = [
        {
            "name": "blue",
            "users": [],
            "quota": {"cpu": 64, "memory": "1500G", "nvidia.com/gpu": 4, "nvidia.com/mlnxnics": 8},
            "borrowingLimit": {"nvidia.com/gpu": 0},
        }
    ]
    raw["workloads"] = {"nccl": job()}
    (problem,) = problems(raw)
    assert "the NCCL test needs 8 nvidia.com/gpu, and team blue can never have more than 4" in problem.message


def test_a_team_may_submit_a_job_that_shares_the_ports_of_a_node() -> None:
    assert problems({**valid(), "gpu": {"fabric": {"devicePlugin": "shared"}}, "workloads": {"nccl": job()}}) == []


@pytest.mark.parametrize(
    ("section", "value", "where"),
    [
        ("olmo", job(data="data"), "mlbatch:workloads.olmo.enabled"),
        ("jupyterlab", {"enabled": True, "submission": {"team": "blue"}}, "mlbatch:workloads.jupyterlab.scratch"),
    ],
)
def test_local_disks_that_nothing_makes_ready_are_not_mounted(section: str, value: object, where: str) -> None:
    raw = {**valid(), "gpu": {"nvmeScratch": {"enabled": False}}, "workloads": {section: value}}
    (problem,) = problems(raw)
    assert key(problem.path) == where
    assert "mlbatch:gpu.nvmeScratch.enabled" in problem.hint


def test_no_workload_and_no_check_fits_an_empty_pool() -> None:
    raw = {**valid(), "health": {"nodeCheck": {"enabled": True}}, "workloads": {"nccl": job()}}
    raw["azure"]["gpuPool"]["count"] = 0
    assert {key(problem.path) for problem in problems(raw)} == {
        "mlbatch:health.nodeCheck.enabled",
        "mlbatch:workloads.nccl.nodes",
    }


def test_one_node_has_no_fabric_to_test() -> None:
    raw = {**valid(), "health": {"ncclGate": {"enabled": True, "scope": "fabric"}}, "workloads": {"nccl": {"tag": "1"}}}
    raw["azure"]["gpuPool"]["count"] = 1
    (problem,) = problems(raw)
    assert key(problem.path) == "mlbatch:health.ncclGate.scope"
    assert "which is no pass" in problem.message
