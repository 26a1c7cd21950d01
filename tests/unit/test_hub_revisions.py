"""Which state of a model or data set on Hugging Face's hub a job takes, and what can be no such state."""

import re
from typing import Any

import pytest

from cli.app import main
from components import catalogue
from components.artifacts import Mirror
from components.workloads import finetuning, vllm
from stacks.layers.jobs import documents
from tests.unit.test_aks import loaded, settings

COMMIT = "0123456789abcdef0123456789abcdef01234567"
BATCH = {"enabled": True, "submission": {"team": "blue"}}


def raw(job: str, **own: Any) -> dict[str, Any]:
    return settings(queueing={"kuberay": {"enabled": True}}, workloads={job: {**BATCH, **own}})


def said(mirror: Mirror, job: str, **own: Any) -> str:
    """Return the input of the job's program."""
    *_, found = documents(loaded(mirror, raw(job, **own)), job)
    return str(found["spec"])


@pytest.mark.parametrize(
    "revision",
    [
        COMMIT,
        "main",
        "v1.0",
        "refs/pr/1",
        "refs/convert/parquet",
        "step1000-tokens4B",
        "gptq-4bit-32g-actorder_True",
        "a",
        "20250101",
        "defaced",
        "1.0+local",
        "a./b",
        "b" * 255,
    ],
)
def test_a_commit_a_branch_or_a_tag_reaches_the_program(mirror: Mirror, revision: str) -> None:
    tuned = said(mirror, "finetuning", modelRevision=revision, datasetRevision=revision)
    assert f"--model-revision={revision} " in tuned
    assert f"--dataset-revision={revision} " in tuned
    served = said(mirror, "vllm", modelRevision=revision)
    assert re.search(rf"vllm serve \S+ --host=127.0.0.1 --revision={re.escape(revision)}[;)]", served)


def test_what_is_not_told_which_takes_the_commit_that_is_known(mirror: Mirror) -> None:
    tuned = said(mirror, "finetuning")
    for name, option in ((finetuning.MODEL, "--model-revision"), (finetuning.DATASET, "--dataset-revision")):
        assert re.fullmatch("[0-9a-f]{40}", catalogue.HUB_COMMITS[name])
        assert f"{option}={catalogue.HUB_COMMITS[name]} " in tuned
    assert f"--revision={catalogue.HUB_COMMITS[vllm.MODEL]}" in said(mirror, "vllm")


def test_the_commit_of_one_model_is_not_asked_of_another(mirror: Mirror) -> None:
    own = {"model": "somebody/model"}
    tuned = said(mirror, "finetuning", **own)
    assert "--model=somebody/model --model-revision=main " in tuned
    assert f"--dataset-revision={catalogue.HUB_COMMITS[finetuning.DATASET]} " in tuned
    assert "--revision=main" in said(mirror, "vllm", **own)


def test_a_member_names_one_that_yaml_would_take_for_a_number(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("stacks.config.stack_file.configuration", lambda *_: raw("vllm"))
    monkeypatch.setattr("stacks.job_manifests.interpret", lambda found, **_: loaded(mirror, found))
    assert main(["jobs", "vllm", "--stack", "aks", "--team", "blue", "--set", "modelRevision=20250101"]) == 0
    assert "--revision=20250101" in capsys.readouterr().out
