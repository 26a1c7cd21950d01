"""A workload as a manifest that a member submits is what the stack itself would submit."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from components.artifacts import Mirror
from components.tenancy.editor import RULES
from stacks.__main__ import main, wanted
from stacks.layers.jobs import documents
from tests.unit.harness import Record
from tests.unit.test_aks import deployed, loaded, settings

COMMON = {"enabled": True, "tag": "1", "nodes": 2, "submission": {"gang": "mlbatch", "team": "blue"}}
VOLUME = {"name": "data", "namespace": "blue", "container": "data", "access": "workloadIdentity"}


def raw(**workloads: Any) -> dict[str, Any]:
    return settings(storage={"volumes": [VOLUME]}, workloads=workloads)


@pytest.fixture(scope="module")
def stack(mirror: Mirror) -> Record:
    """The stack with every batch job in team blue's queue."""
    metaseq = {**COMMON, "useAim": True}
    return deployed(mirror, raw(nccl=COMMON, metaseq=metaseq, olmo={**COMMON, "data": "data"}))


@pytest.mark.parametrize("job", ["nccl", "metaseq", "olmo"])
def test_it_is_what_the_stack_would_submit_but_for_what_members_may_not_make(
    job: str, stack: Record, mirror: Mirror
) -> None:
    idle = raw(**{job: {"tag": "1", **({"data": "data"} if job == "olmo" else {})}})
    inputs = loaded(mirror, wanted(idle, job, {"nodes": 2, **({"useAim": True} if job == "metaseq" else {})}, BLUE))
    found = documents(inputs, job)
    allowed = {(group, resource) for group, resources, verbs in RULES if "create" in verbs for resource in resources}
    for document in found:
        group = document["apiVersion"].rpartition("/")[0]
        assert (group, f"{document['kind'].lower()}s") in allowed
        registered = stack.one(document["kind"], document["metadata"]["name"], "blue")
        assert json.loads(json.dumps(document)) == json.loads(json.dumps(dict(registered.inputs)))
    (wrapper,) = [document for document in found if document["kind"] == "AppWrapper"]
    assert wrapper["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "default-queue"


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


def test_it_is_printed_as_yaml_with_programs_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["nccl", "--team", "blue", "--user", "ada@example.org", "--set", "nodes=2", "--set", "tag=2026"]
    assert main(arguments) == 0
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
        (["nccl", "--set", "nodes"], "--set nodes is no KEY=VALUE"),
        (["nccl", "--stack", "nowhere"], "Pulumi.nowhere.yaml"),
    ],
)
def test_a_mistake_is_told_as_by_the_program(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 1
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.out == ""
