"""The settings of batch inference: defaults, and one message with a fix for each error."""

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


MISTAKES: list[dict[str, Any]] = [
    {"model": "a b"},
    {"model": "$(reboot)"},
    {"image": "vllm/vllm-openai:latest"},
    {"generatorImage": "vllm/bench"},
    {"requests": 0},
    {"name": "Batch"},
    {"cache": {"name": "A"}},
    {"deadlineSeconds": 3600},
    {"submission": {"team": "bleu"}},
    {"submission": {}},
    {"submission": {"team": "blue", "user": "bob"}},
    {"submission": {"gang": "volcano"}},
    # no node holds it
    {"gpus": 9},
    {"memory": "4Ti"},
    {"cpu": 96, "submission": {"gang": "none"}},
]
"""`tests/unit/refusals` has the text of each."""
