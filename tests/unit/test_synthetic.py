"""Synthetic load: the jobs of a trace on every target, and rejected settings."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.app import main
from components.artifacts import Mirror
from components.kubernetes.placement import NodeGroup
from components.kubernetes.quantity import Quantity
from components.workloads.submission import Submission, SubmissionMode
from components.workloads.synthetic import (
    Failure,
    Kind,
    SyntheticJob,
    SyntheticLoadArgs,
    document,
    program,
)
from stacks.config.errors import SettingsError
from stacks.job_manifests import manifest, wanted_load
from stacks.layers.jobs import load
from tests.unit import test_cpouta, test_existing, test_openshift, test_stack
from tests.unit.test_aks import deployed, loaded, settings

JOB = SyntheticJob(
    name="load-0", team="blue", arrival=12.5, pods=2, gpus=4, seconds=600, priority_class="high-priority"
)
ARGS = SyntheticLoadArgs(
    jobs=[JOB],
    namespaces={"blue": "blue"},
    submission=Submission(mode=SubmissionMode.MLBATCH, namespace=""),
    image="busybox:1",
    per_gpu={"cpu": Quantity.parse("500m"), "memory": Quantity.parse("2Gi")},
    placement=NodeGroup(node_selector={"gpu": "true"}),
)
CRASHES = replace(JOB, failure=Failure(Kind.CRASH, after=30, times=2))
TRACE = "arrival,team,pods,gpus,seconds,priority,failure\n0,blue,2,8,600,,\n5,blue,1,4,60,low-priority,hang\n"


def job(made: SyntheticJob = JOB, args: SyntheticLoadArgs = ARGS) -> Any:
    return document(made, args)["spec"]["components"][-1]["template"]


def test_pods_fail_as_the_trace_says() -> None:
    assert program(replace(JOB, failure=Failure(Kind.CRASH, after=30))) == ["sh", "-c", "sleep 30; exit 1"]
    hung = document(replace(JOB, failure=Failure(Kind.HANG)), ARGS)
    assert hung["metadata"]["annotations"]["workload.codeflare.dev.appwrapper/retryLimit"] == "0"
    hangs = hung["spec"]["components"][0]["template"]["spec"]
    assert hangs["activeDeadlineSeconds"] == 600
    assert hangs["template"]["spec"]["containers"][0]["command"] == ["sleep", "infinity"]


def test_what_crashes_some_times_is_started_again_in_its_place() -> None:
    specification = job(CRASHES)["spec"]
    assert specification["backoffLimit"] == 5, "more than two crashes of two pods"
    pod = specification["template"]["spec"]
    assert pod["restartPolicy"] == "OnFailure"
    assert pod["volumes"] == [{"name": "state", "emptyDir": {}}]
    assert pod["containers"][0]["volumeMounts"] == [{"name": "state", "mountPath": "/state"}]


def test_it_crashes_as_often_as_it_says_and_then_runs(tmp_path: Path) -> None:
    *shell, text = program(replace(JOB, seconds=7, failure=Failure(Kind.CRASH, after=3, times=2)))
    says = f"sleep() {{ echo slept $1; }}; {text.replace('/state', str(tmp_path))}"
    runs = [subprocess.run([*shell, says], capture_output=True, text=True) for _ in range(3)]
    assert [(run.stdout, run.returncode) for run in runs] == [("slept 3\n", 1), ("slept 3\n", 1), ("slept 7\n", 0)]


@pytest.mark.parametrize("text", ["none", "hang", "crash@0", "crash@30", "crash@30x2"])
def test_a_failure_is_written_as_it_is_read(text: str) -> None:
    failure = Failure.parse(text)
    assert str(failure) == text
    assert failure.succeeds == (text in ("none", "crash@30x2"))


def test_a_gang_has_a_pod_group_where_the_scheduler_knows_them_and_one_pod_where_it_needs_one() -> None:
    def kinds(pods: int, **submission: bool) -> list[str]:
        args = replace(ARGS, submission=replace(ARGS.submission, **submission))
        wrapped = document(replace(JOB, pods=pods), args)["spec"]["components"]
        return [component["template"]["kind"] for component in wrapped]

    assert kinds(2, has_pod_groups=True) == ["PodGroup", "Job"]
    assert kinds(1, has_pod_groups=True) == ["Job"]
    assert kinds(1, groups_alone=True) == ["PodGroup", "Job"]


def raw(folder: Path, text: str = TRACE, **own: Any) -> dict[str, Any]:
    file = folder / "day.csv"
    file.write_text(text)
    return settings(samples={"synthetic": {"trace": str(file), **own}})


def test_the_stack_submits_what_a_member_would(tmp_path: Path, mirror: Mirror) -> None:
    stack = deployed(mirror, raw(tmp_path, timeScale=10))
    printed = load(loaded(mirror, raw(tmp_path, timeScale=10)))
    assert [each["metadata"]["name"] for each in printed] == ["load-0", "load-1"]
    for wrapper in printed:
        registered = stack.one("AppWrapper", wrapper["metadata"]["name"], "blue")
        assert registered.inputs["spec"] == wrapper["spec"]
    (first, _) = printed
    pod = first["spec"]["components"][-1]["template"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["command"] == ["sleep", "60"]


def test_every_target_has_it(mirror: Mirror, kubeconfig: Path, tmp_path: Path) -> None:
    file = tmp_path / "day.csv"
    file.write_text("arrival,team,pods,gpus,seconds\n0,blue,1,1,60\n")
    samples = {"samples": {"synthetic": {"trace": str(file)}}}
    stacks = {
        "simulated": test_stack.stack_of({**test_stack.dev(), **samples}, mirror, kubeconfig),
        "existing": test_existing.loaded({**test_existing.shipped(), **samples}, mirror, kubeconfig),
        "openshift": test_openshift.loaded({**test_openshift.shipped(), **samples}, mirror, kubeconfig),
        "aks": loaded(mirror, settings(**samples)),
    }
    for name, inputs in stacks.items():
        (wrapper,) = load(inputs)
        pod = wrapper["spec"]["components"][-1]["template"]["spec"]["template"]["spec"]
        assert pod["containers"][0]["command"] == ["sleep", "60"], name
        assert pod["nodeSelector"], name
    gpus = {"gpu": {"operator": True, "featureDiscovery": True}}
    registered = test_cpouta.Run(sections={**test_cpouta.LAYERS, **gpus, **samples}, flavor="gpu.1.1gpu").record
    assert registered.one("AppWrapper", "load-0", "blue").inputs["spec"]["components"]


def test_it_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "day.csv"
    file.write_text(TRACE)
    code = main(["jobs", "synthetic", "--stack", "aks", "--team", "blue", "--user", "ada", "--set", f"trace={file}"])
    said = capsys.readouterr()
    assert code == 0, said.err
    found = [each["metadata"] for each in yaml.safe_load_all(said.out)]
    assert [each["namespace"] for each in found] == ["blue", "blue"]
    assert [each["annotations"]["mlbatch/submitted-for"] for each in found] == ["ada", "ada"]


def test_the_jobs_of_another_team_are_not_printed(tmp_path: Path, mirror: Mirror) -> None:
    inputs = loaded(mirror, wanted_load(raw(tmp_path), {}))
    assert load(inputs, "red") == []
    assert len(load(inputs, "blue")) == 2


@pytest.mark.parametrize("user", ["mallory", ""])
def test_nobody_else_submits_jobs_of_a_team(user: str) -> None:
    """A team that has only users. Only the identity provider knows the members of a group."""
    teams = [{"name": name, "users": [f"{name}s-own"], "share": 1} for name in ("blue", "red")]
    load = {"trace": "reference/examples/trace.csv"}
    given = {**settings(), "teams": teams}
    with pytest.raises(ValueError, match=f"--user '{user}': this user is not in team blue, .*its users are blues-own"):
        manifest(given, "synthetic", load, {"team": "blue", "user": user})
    with pytest.raises(ValueError, match=r"not in team red, .*; --team blue prints only the jobs of blue$"):
        manifest(given, "synthetic", load, {"team": None, "user": "blues-own"})
    assert "submitted-for: blues-own" in manifest(given, "synthetic", load, {"team": "blue", "user": "blues-own"})


def test_a_team_without_jobs_is_told_those_that_have_some(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "day.csv"
    file.write_text(TRACE)
    assert main(["jobs", "synthetic", "--stack", "aks", "--team", "grene", "--set", f"trace={file}"]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "error: the trace has no job of team grene; it has jobs of blue\n")


@pytest.mark.parametrize(
    ("job", "wrong"),
    [
        ("synthetic", {"samples": [1]}),
        ("synthetic", {"samples": {"synthetic": "day.csv"}}),
        ("pretraining", {"workloads": "all"}),
        ("pretraining", {"workloads": {"pretraining": True}}),
        ("finetuning", {"workloads": {"finetuning": {"submission": ["blue"]}}}),
    ],
)
def test_what_is_no_mapping_is_refused_as_by_the_program(job: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="allowed: a mapping"):
        manifest({**settings(), **wrong}, job, {}, {"team": "blue", "user": None})


MISTAKES: list[tuple[str, dict[str, Any], str, str]] = [
    (TRACE.replace("blue,1", "bleu,1"), {}, "trace", "day.csv:3: there is no team 'bleu'; did you mean blue?"),
    (TRACE.replace("5,blue", "-5,blue"), {}, "trace", "day.csv:3: arrival is '-5'"),
    (TRACE.replace("2,8", "300,8"), {}, "trace", "day.csv:2: 300 pods of 8 GPUs cannot run together on "),
    (TRACE, {"cpuPerGpu": 90}, "cpuPerGpu", "such pods at once: a node has "),
    (TRACE, {"trace": "/nowhere.csv"}, "trace", "the file cannot be read: No such file or directory"),
    (TRACE, {"name": "Load"}, "name", "Kubernetes would reject this name"),
    (TRACE, {"timeScale": 0}, "timeScale", "out of range"),
]


@pytest.mark.parametrize(("text", "own", "where", "why"), MISTAKES, ids=[why[:40] for *_, why in MISTAKES])
def test_a_mistake_gives_one_message(
    text: str, own: dict[str, Any], where: str, why: str, tmp_path: Path, mirror: Mirror
) -> None:
    with pytest.raises(SettingsError) as caught:
        loaded(mirror, raw(tmp_path, text, **own))
    (problem,) = caught.value.problems
    assert problem.path == ("samples", "synthetic", where)
    assert why in problem.message
