"""Whether a stack's clusters are there to be looked at, by its state."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from runner import clusters
from runner.engine import Engine

VM = "urn:pulumi:lab::mlbatch::mlbatch:RemoteCluster::cluster"
VOLUME = "urn:pulumi:lab::mlbatch::openstack:blockstorage/volume:Volume::data"


def deployment(kubeconfig: Any = None, **gone: bool) -> dict[str, Any]:
    """A state. gone: a resource that is already deleted and will be replaced."""
    provider = {
        "urn": "urn:pulumi:lab::mlbatch::pulumi:providers:kubernetes::cluster",
        "type": clusters.PROVIDER,
        "dependencies": [VM],
        "inputs": {"kubeconfig": kubeconfig},
    }
    others = {"vm": VM, "volume": VOLUME}
    states = [{"urn": urn, "type": "t", "pendingReplacement": gone.get(name, False)} for name, urn in others.items()]
    return {"resources": [*states, provider]}


def test_a_cluster_is_replaced_while_what_its_provider_needs_is_gone() -> None:
    assert clusters.is_replaced(deployment(vm=True))
    assert not clusters.is_replaced(deployment(volume=True))
    assert not clusters.is_replaced(deployment())
    assert not clusters.is_replaced({})


@pytest.mark.parametrize("answers", [True, False])
def test_a_cluster_is_asked_by_the_kubeconfig_of_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: bool
) -> None:
    """kubectl runs a credential plugin, which must find the environment's own ssh."""
    asked = tmp_path / "asked"
    (tmp_path / "kubectl").write_text(f'#!/bin/sh\ncat "${{1#*=}}" > {asked}\nexit {0 if answers else 1}\n')
    (tmp_path / "kubectl").chmod(0o755)

    class Recorded:
        def read_state(self, *, secrets: bool) -> dict[str, Any]:
            assert secrets
            return deployment({"plaintext": json.dumps("kind: Config\n")})

        def variables(self) -> dict[str, str]:
            return {"PATH": f"{tmp_path}:/usr/bin:/bin"}

    assert clusters.answer(cast(Engine, Recorded())) is answers
    assert asked.read_text() == "kind: Config\n"
