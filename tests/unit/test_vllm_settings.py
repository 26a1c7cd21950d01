"""The settings of batch inference: defaults, and one message with a fix for each error."""

from typing import Any

import pytest

from tests.unit.test_workload_settings import settings, valid

BLUE = {"enabled": True, "submission": {"team": "blue"}}


def with_batch(**values: Any) -> dict[str, Any]:
    return {**valid(), "workloads": {"vllm": {**BLUE, **values}}}


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
