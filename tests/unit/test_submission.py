"""A workload as a manifest for a member equals the one that the stack itself would submit."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.app import main
from components.artifacts import Mirror
from components.tenancy.editor import RULES, UNWRAPPED_RAY
from stacks.config import secrets
from stacks.config.errors import SettingsError
from stacks.config.stack_file import configuration
from stacks.job_manifests import JOBS, manifest, wanted
from stacks.layers.jobs import documents
from tests.unit.harness import Record
from tests.unit.test_aks import deployed, loaded, settings

COMMON = {"enabled": True, "tag": "1", "nodes": 2, "submission": {"gang": "mlbatch", "team": "blue"}}
VOLUME = {"name": "data", "namespace": "blue", "container": "data", "access": "workloadIdentity"}


def raw(**workloads: Any) -> dict[str, Any]:
    operators = {"trainingOperator": {"enabled": True}, "kuberay": {"enabled": True}}
    return settings(storage={"volumes": [VOLUME]}, queueing=operators, workloads=workloads)


@pytest.fixture(scope="module")
def stack(mirror: Mirror) -> Record:
    """The stack with every batch job in team blue's queue."""
    metaseq = {**COMMON, "useAim": True}
    batch = {"enabled": True, "submission": COMMON["submission"]}
    training = {**batch, "nodes": 2, "data": "data"}
    jobs = {"nccl": COMMON, "metaseq": metaseq, "olmo": {**COMMON, "data": "data"}}
    tuning = {**batch, "workers": 3}
    return deployed(mirror, raw(**jobs, vllm=batch, pretraining=training, finetuning=tuning))


OWN: dict[str, dict[str, Any]] = {
    "olmo": {"tag": "1", "data": "data"},
    "vllm": {},
    "pretraining": {"data": "data"},
    "finetuning": {},
}
"""What a job's section says beside what is changed; that of the others is their image's tag."""
CHANGES: dict[str, dict[str, Any]] = {"vllm": {}, "finetuning": {"workers": 3}, "metaseq": {"nodes": 2, "useAim": True}}
"""What differs from that, for jobs whose change is not their number of nodes alone."""


@pytest.mark.parametrize("job", JOBS)
def test_it_is_what_the_stack_would_submit_but_for_what_members_may_not_make(
    job: str, stack: Record, mirror: Mirror
) -> None:
    idle = raw(**{job: OWN.get(job, {"tag": "1"})})
    inputs = loaded(mirror, wanted(idle, job, CHANGES.get(job, {"nodes": 2}), BLUE))
    found = documents(inputs, job)
    rights = (*RULES, UNWRAPPED_RAY)
    allowed = {(group, resource) for group, resources, verbs in rights if "create" in verbs for resource in resources}
    for document in found:
        group = document["apiVersion"].rpartition("/")[0]
        assert (group, f"{document['kind'].lower()}s") in allowed
        registered = stack.one(document["kind"], document["metadata"]["name"], "blue")
        assert json.loads(json.dumps(document)) == json.loads(json.dumps(dict(registered.inputs)))
    (queued,) = [document for document in found if document["kind"] in ("AppWrapper", "RayJob")]
    assert queued["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "default-queue"


BLUE = {"team": "blue", "user": None}


def test_no_other_workload_is_on_and_the_job_keeps_its_settings() -> None:
    before = raw(nccl={**COMMON, "largest": "1G"}, jupyterlab={"enabled": True}, cpu="90")
    after = wanted(before, "nccl", {"nodes": 3}, {"team": "red", "user": "bob"})["workloads"]
    assert after["nccl"] == {
        "enabled": True,
        "tag": "1",
        "nodes": 3,
        "largest": "1G",
        "submission": {"gang": "mlbatch", "team": "red", "user": "bob"},
    }
    assert after["jupyterlab"] == {"enabled": False}
    assert after["cpu"] == "90"
    assert before["workloads"]["nccl"]["nodes"] == 2, "the settings stay as they are"


def test_a_setting_within_a_section_leaves_the_others_of_it() -> None:
    before = raw(
        pretraining={"checkpoints": {"storageClass": "fast"}, "submission": {"gang": "none", "priorityClass": "x"}}
    )
    changes = {"checkpoints.size": "1Ti", "submission.priorityClass": "high-priority"}
    after = wanted(before, "pretraining", changes, BLUE)["workloads"]["pretraining"]
    assert after["checkpoints"] == {"storageClass": "fast", "size": "1Ti"}
    assert after["submission"] == {"gang": "mlbatch", "priorityClass": "high-priority", "team": "blue"}
    assert before["workloads"]["pretraining"]["checkpoints"] == {"storageClass": "fast"}, "the settings stay"


@pytest.mark.parametrize(
    "text", ["submission.priorityClass=high-priority", "submission={priorityClass: high-priority}"]
)
def test_a_member_names_the_priority_of_the_pods(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jobs", "nccl", "--stack", "aks", "--team", "blue", "--set", "tag=1", "--set", text]) == 0
    _, wrapper = yaml.safe_load_all(capsys.readouterr().out)
    job = wrapper["spec"]["components"][-1]["template"]
    assert job["spec"]["template"]["spec"]["priorityClassName"] == "high-priority"
    assert wrapper["metadata"]["namespace"] == "blue"


def test_it_is_printed_as_yaml_with_programs_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "nccl",
        "--stack",
        "aks",
        "--team",
        "blue",
        "--user",
        "ada@example.org",
        "--set",
        "nodes=2",
        "--set",
        "tag=2026",
    ]
    assert main(["jobs", *arguments]) == 0
    text = capsys.readouterr().out
    files, wrapper = yaml.safe_load_all(text)
    assert "  mpi_index.py: |" in text
    assert files["kind"] == "ConfigMap"
    assert wrapper["metadata"]["annotations"]["mlbatch/submitted-for"] == "ada@example.org"
    job = wrapper["spec"]["components"][-1]["template"]
    assert job["spec"]["parallelism"] == 2
    assert job["spec"]["template"]["spec"]["containers"][0]["image"].endswith(":2026")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nccl", "--team", "bleu", "--set", "tag=1"], "mlbatch:workloads.nccl.submission.team"),
        (["nccl", "--set", "node=2", "--set", "tag=1"], "mlbatch:workloads.nccl.node"),
        (["nccl", "--team", "blue"], "mlbatch:workloads.nccl.tag"),
        (["nccl", "--set", "nodes"], "--set nodes is not KEY=VALUE"),
        (["nccl", "--set", "nodes=[2"], "--set nodes=[2: line 1, column 3 is not valid YAML: expected ',' or ']'"),
        (["nccl", "--set", "nodes={a: b: c}"], "is not valid YAML"),
        (["nccl", "--team", "blue", "--set", "tag=1", "--set", "submission=[]"], "mlbatch:workloads.nccl.submission"),
        (["nccl", "--set", "tag=1", "--set", "submission.priority=high"], "workloads.nccl.submission.priority"),
        (["nccl", "--set", "tag=1", "--set", "nodes.most=2"], "mlbatch:workloads.nccl.nodes"),
        (["nccl", "--set", "enabled=false"], "--set enabled=false: a printed job is always enabled"),
        (["nccl", "--team", "blue", "--set", "submission.gang=none"], "omit --set submission.gang"),
        (["nccl", "--team", "blue", "--set", "tag=1", "--set", "submission.gang=no"], "nccl.submission.gang"),
        (["olmo", "--team", "blue", "--set", "tag=1"], "there is none, but data is in workloads"),
    ],
)
def test_a_mistake_is_told_as_by_the_program(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["jobs", *arguments, "--stack", "aks"]) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.out == ""


@pytest.mark.parametrize("team", [None, "blue"])
def test_no_job_is_printed_that_passes_by_the_queues(team: str | None) -> None:
    with pytest.raises(SettingsError) as refused:
        manifest(raw(nccl={"tag": "1"}), "nccl", {"submission.gang": "none"}, {"team": team, "user": None})
    (problem,) = refused.value.problems
    assert problem.path == ("workloads", "nccl", "submission", "gang")
    assert problem.hint == "omit --set submission.gang, and name the team with --team"


def test_whose_settings_has_to_be_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jobs", "nccl", "--team", "blue", "--set", "tag=1"]) == 2
    assert "--stack" in capsys.readouterr().err


LOGS = {**COMMON, "useAim": True, "useTensorboard": True}


@pytest.mark.parametrize(
    ("own", "team", "changes", "refused", "fix"),
    [
        pytest.param({}, "blue", {"useAim": True}, ["useAim"], "metaseq.enabled and", id="off"),
        pytest.param(
            {"useAim": True}, "blue", {}, ["useAim"], "--set useAim=false", id="off, and kept from the settings"
        ),
        pytest.param(LOGS, "red", {}, ["useAim", "useTensorboard"], "or name --team blue", id="in another team"),
        pytest.param(
            {**COMMON}, "blue", {"useTensorboard": True}, ["useTensorboard"], "to blue, and apply", id="no logs"
        ),
        pytest.param(LOGS, "blue", {}, [], "", id="in its team"),
        pytest.param({**COMMON, "useAim": True}, "blue", {"useTensorboard": True}, [], "", id="by the other option"),
        pytest.param(LOGS, "red", {"useAim": False, "useTensorboard": False}, [], "", id="without logs"),
    ],
)
def test_logs_go_where_the_stack_makes_their_claim(
    own: dict[str, Any], team: str, changes: dict[str, Any], refused: list[str], fix: str
) -> None:
    """A pod that mounts a missing claim waits for ever."""
    given = raw(metaseq={"tag": "1", **own})
    submission = {"team": team, "user": None}
    if not refused:
        text = manifest(given, "metaseq", changes, submission)
        assert ("claimName: training-logs" in text) == (team == "blue")
        return
    with pytest.raises(SettingsError) as error:
        manifest(given, "metaseq", changes, submission)
    problems = error.value.problems
    assert [problem.path for problem in problems] == [("workloads", "metaseq", name) for name in refused]
    assert all(fix in problem.hint and "training-logs" in problem.message for problem in problems)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("config:\n  mlbatch:target: aks\n  mlbatch:grafanaPassword: [hunter2\n", "line 4, column 1 is not valid YAML"),
        ("config:\n  mlbatch:target: aks\n mlbatch:teams: []\n", "line 3, column 2 is not valid YAML"),
        ("config: [mlbatch:target]\n", "no mapping `config`"),
        ("- config\n", "no mapping `config`"),
        (
            "config:\n  mlbatch:teams: []\n  mlbatch:teams: []\n",
            "line 3, column 3 is not valid YAML: duplicate key 'mlbatch",
        ),
    ],
)
def test_a_slip_in_the_stacks_file_names_the_file_and_the_line(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Pulumi.mysite.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert main(["jobs", "nccl", "--stack", "mysite"]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("error: Pulumi.mysite.yaml: ")
    assert said in shown
    assert len(shown.splitlines()) == 1
    assert "hunter2" not in shown


def test_a_stack_without_a_file_is_told_those_that_have_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("Pulumi.yaml", "Pulumi.mysite.yaml", "Pulumi.aks.yaml"):
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    assert main(["jobs", "nccl", "--stack", "nowhere"]) == 2
    said = "error: there is no Pulumi.nowhere.yaml here; stacks with a file: aks, mysite\n"
    assert capsys.readouterr().err == said


def test_secrets_are_there_by_their_keys_alone(tmp_path: Path) -> None:
    text = "config:\n  mlbatch:target: aks\n  mlbatch:jupyterToken: {secure: v1:abc}\n  other:key: 1\n"
    text += "  mlbatch:teams: [{name: {secure: v1:abc}}]\n  mlbatch:mirror: {secure: a, images: b}\n"
    (tmp_path / "Pulumi.mysite.yaml").write_text(text)
    assert configuration("mysite", tmp_path) == {
        "target": "aks",
        "jupyterToken": secrets.Concealed.SECRET,
        "teams": secrets.Concealed.SECRET,
        "mirror": {"secure": "a", "images": "b"},
    }
    (tmp_path / "Pulumi.mysite.yaml").write_text("")
    assert configuration("mysite", tmp_path) == {}
