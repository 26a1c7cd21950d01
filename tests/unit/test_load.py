"""The running stack's configuration, as the engine hands it over."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pulumi
import pytest
from pulumi.runtime.config import set_all_config

from stacks import load
from stacks.kubeconfig import Kubeconfig
from tests.unit.test_settings import valid


@pytest.fixture(autouse=True)
def no_configuration() -> Iterator[None]:
    yield
    set_all_config({}, [])


def configure(raw: dict[str, object], secrets: list[str] | None = None) -> None:
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in raw.items()}
    set_all_config(
        {f"mlbatch:{name}": text for name, text in texts.items()}, [f"mlbatch:{name}" for name in secrets or []]
    )


def test_lists_and_mappings_come_back_as_they_were_written() -> None:
    configure(valid())
    assert load.configuration() == valid()


def test_keys_of_other_projects_are_none_of_ours() -> None:
    set_all_config({"mlbatch:target": "simulated", "kubernetes:context": "x", "mlbatchother:a": "b"})
    assert load.configuration() == {"target": "simulated"}


def test_keys_that_nobody_declared_are_seen() -> None:
    configure({"target": "simulated", "taget": "x"})
    assert load.configuration()["taget"] == "x"


def test_text_that_only_looks_like_json_stays_text() -> None:
    configure({"target": "{simulated"})
    assert load.configuration() == {"target": "{simulated"}


def test_a_secret_never_reaches_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    configure({"target": "simulated", "token": "correct-horse-battery"}, secrets=["token"])
    with pytest.raises(pulumi.RunError) as error:
        load.load()
    assert "correct-horse-battery" not in str(error.value)
    assert 'mlbatch:token = "[secret]"' in str(error.value)


def test_mistakes_end_the_program_with_the_message_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    configure({"target": "moon"})
    with pytest.raises(pulumi.RunError, match=r"has 2 problems\. Nothing was created or changed") as error:
        load.load()
    assert error.value.__suppress_context__, "a person should see the message, not how the program came to it"


def test_the_cluster_is_asked_before_anything_else_happens(kubeconfig: Path) -> None:
    asked: list[str] = []

    def check(config: Kubeconfig, settings: object) -> None:
        asked.append(config.server)

    stack = load.interpret(
        {"target": "simulated"},
        base=kubeconfig.parent,
        environment={"KUBECONFIG": str(kubeconfig)},
        check_answers=check,
    )
    assert asked == ["https://127.0.0.1:6443"]
    assert stack.kubeconfig.cluster == "lab-cluster"
