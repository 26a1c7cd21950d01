"""The settings of batch inference: defaults, and each mistake with one message that says what to do."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.test_workload_settings import problems, settings, valid

BLUE = {"enabled": True, "submission": {"team": "blue"}}


def with_batch(**values: Any) -> dict[str, Any]:
    return {**valid(), "workloads": {"vllm": {**BLUE, **values}}}


def test_the_tutorials_batch_is_the_default() -> None:
    """Seed 000, MLBatch's tutorial, "Batch Inference with vLLM"."""
    own = settings().vllm
    assert (own.name, own.model) == ("batch-inference", "ibm-granite/granite-3.2-8b-instruct")
    assert (own.requests, own.concurrency, own.input_tokens, own.output_tokens) == (512, 16, 128, 128)
    assert (own.gpus, str(own.cpu), str(own.memory)) == (1, "4", "64Gi")
    assert (own.claim, str(own.cache.size)) == ("granite-3.2-8b-instruct", "50Gi")
    assert own.bounded, "the tutorial's is not"
    assert not own.enabled


@pytest.mark.parametrize(
    ("model", "claim"),
    [("meta-llama/Llama-3.1_8B", "llama-3.1-8b"), ("gpt2", "gpt2"), ("a/b", "b")],
)
def test_the_weights_are_kept_under_the_models_name(model: str, claim: str) -> None:
    assert settings(vllm={"model": model}).vllm.claim == claim
    assert settings(vllm={"model": model, "cache": {"name": "mine"}}).vllm.claim == "mine"


def test_its_pod_asks_for_what_both_containers_do() -> None:
    asked = settings(vllm={"gpus": 2, "cpu": 6, "generatorMemory": "2Gi"}).vllm.amounts()
    assert {name: str(amount) for name, amount in asked.items()} == {
        "cpu": "7",
        "memory": "66Gi",
        "nvidia.com/gpu": "2",
    }


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"gpus": 8, "cpu": 80, "memory": "1500Gi"},
        {"bounded": False, "deadlineSeconds": 60},
        {"submission": {"gang": "none"}},
        {
            "image": "quay.io/tardieu/vllm-openai:v0.7.3",
            "generatorImage": "quay.io/tardieu/vllm-benchmarks:v0.7.3",
            "cache": {"storageClass": "nfs-client-pokprod"},
        },
    ],
)
def test_what_can_run_is_taken(values: dict[str, Any]) -> None:
    assert [str(problem) for problem in problems(with_batch(**values))] == []


def test_a_claim_in_the_teams_namespace_is_within_the_teams_bounds() -> None:
    raw = with_batch(cache={"size": "2Ti"})
    raw["teams"][0]["storage"] = {"size": "1Ti"}
    (found,) = problems(raw)
    assert "mlbatch:workloads.vllm.cache.size" in str(found)


MISTAKES: list[tuple[dict[str, Any], str, str, str]] = [
    ({"model": "a b"}, 'workloads.vllm.model = "a b"', "no model of Hugging Face's hub", "as the model's page"),
    ({"model": "$(reboot)"}, "workloads.vllm.model", "no model of Hugging Face's hub", "as the model's page"),
    ({"image": "vllm/vllm-openai:latest"}, "workloads.vllm.image", "this tag is moved", "a version or a date"),
    ({"generatorImage": "vllm/bench"}, "workloads.vllm.generatorImage", "which of its tags", "add a tag"),
    ({"requests": 0}, "workloads.vllm.requests = 0", "", ""),
    ({"name": "Batch"}, 'workloads.vllm.name = "Batch"', "Kubernetes would reject", "for example vllm"),
    ({"cache": {"name": "A"}}, 'workloads.vllm.cache.name = "A"', "Kubernetes would reject", "the model's own name"),
    ({"deadlineSeconds": 3600}, "workloads.vllm.deadlineSeconds = 3600", "3600 seconds until it answers", "raise it"),
    ({"submission": {"team": "bleu"}}, "workloads.vllm.submission.team", "there is no such team", "did you mean blue?"),
    ({"submission": {}}, "workloads.vllm.submission.team", "a team has to submit the job", "set it to blue"),
    (
        {"submission": {"team": "blue", "user": "bob"}},
        'workloads.vllm.submission.user = "bob"',
        "not in team blue",
        "add bob",
    ),
    (
        {"submission": {"gang": "volcano"}},
        'workloads.vllm.submission.gang = "volcano"',
        "one pod, which waits for no other",
        "to mlbatch",
    ),
    # no node holds it
    ({"gpus": 9}, "workloads.vllm.gpus = 9", "a node has 8 nvidia.com/gpu, a pod asks for 9", "ask for less"),
    (
        {"memory": "4Ti"},
        'workloads.vllm.memory = "4Ti"',
        "for its DaemonSets, a pod asks for 4100Gi",
        "ask for less, or take larger nodes",
    ),
    ({"cpu": 96, "submission": {"gang": "none"}}, "workloads.vllm.cpu = 96", "a pod asks for 97", "ask for less"),
]


@pytest.mark.parametrize(("values", "where", "why", "fix"), MISTAKES, ids=lambda value: str(value)[:40])
def test_a_mistake_gives_one_message(values: dict[str, Any], where: str, why: str, fix: str) -> None:
    (problem,) = problems(with_batch(**values))
    assert f"mlbatch:{where}" in str(problem)
    assert why in problem.message
    assert fix in problem.hint


@pytest.mark.parametrize(
    ("bounds", "asked", "key", "why"),
    [
        (
            {"quota": {"cpu": 90, "memory": "1000Gi", "nvidia.com/gpu": 2}, "borrowingLimit": {"nvidia.com/gpu": 1}},
            {"gpus": 4},
            "workloads.vllm.gpus = 4",
            (
                "the vLLM batch needs 4 nvidia.com/gpu, and team blue can never have more than 3: 2 of its own and 1 "
                "that it may borrow"
            ),
        ),
        (
            {"quota": {"cpu": 90, "memory": "32Gi", "nvidia.com/gpu": 2}, "borrowingLimit": {"memory": "4Gi"}},
            {},
            "workloads.vllm.memory",
            "the vLLM batch needs 68Gi memory, and team blue can never have more than 36Gi: 32Gi of its own and 4Gi",
        ),
    ],
)
def test_what_the_team_could_never_have_is_refused_by_resource_and_amount(
    bounds: dict[str, Any], asked: dict[str, Any], key: str, why: str
) -> None:
    raw = with_batch(**asked)
    raw["teams"] = [{"name": "blue", "users": ["alice"], **bounds}, {"name": "red", "users": ["bob"], "share": 1}]
    (problem,) = problems(raw)
    assert f"mlbatch:{key}" in str(problem)
    assert why in problem.message


def test_a_batch_that_is_off_is_not_judged() -> None:
    assert problems({**valid(), "workloads": {"vllm": {**BLUE, "enabled": False, "gpus": 16}}}) == []


def test_a_model_whose_name_no_claim_can_have_needs_one() -> None:
    model = "owner/a.-b"
    (problem,) = problems(with_batch(model=model))
    assert problem.path == ("workloads", "vllm", "cache", "name")
    assert "'a.-b'" in problem.message
    assert problems(with_batch(model=model, cache={"name": "mine"})) == []
