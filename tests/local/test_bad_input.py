"""Invalid settings end the real engine's run with only their message, before anything is created.

Unit tests check all messages. This test checks that a message reaches the terminal.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tests.local.environment import Cluster, Project, dev_settings


@pytest.fixture(scope="module")
def project(make_project: Callable[..., Project]) -> Project:
    return make_project("bad", as_written=True)


BAD: list[tuple[dict[str, Any], list[str]]] = [
    (
        {"teems": [], "nodes": {"count": "three"}},
        ["mlbatch:teems", "did you mean 'teams'", "mlbatch:nodes.count", "2 problems"],
    ),
    (
        {"teams": [{"name": "Blue", "users": [], "quota": {"cpu": 1, "memory": "1Gi", "nvidia.com/GPU": 8}}]},
        ["mlbatch:teams[0].name", "nvidia.com/GPU", "nvidia.com/gpu"],
    ),
    ({"teams": [{"name": "blue", "users": ["replace-me-alice"]}]}, ["mlbatch:teams[0].users[0]", "of the example"]),
    ({"target": "openshit"}, ["mlbatch:target", "openshit", "simulated"]),
    ({"mirror": {"artifacts": "/nowhere"}}, ["mlbatch:mirror.artifacts", "there is no folder /nowhere"]),
    ({"kubernetes": {"kubeconfig": "absent.yaml"}}, ["mlbatch:kubernetes.kubeconfig", "absent.yaml"]),
]


@pytest.mark.parametrize(
    ("change", "expected"), BAD, ids=lambda value: "+".join(value) if isinstance(value, dict) else ""
)
def test_only_the_message_is_shown_and_no_resource_is_created(
    project: Project, cluster: Cluster, change: dict[str, Any], expected: list[str]
) -> None:
    before = {item["metadata"]["name"] for item in cluster.list("v1", "Namespace")}
    project.configure({**dev_settings(project.mirror), **change})
    done = project.run("up", "--yes", "--skip-preview")
    printed = done.stdout + done.stderr
    assert done.returncode != 0
    for text in expected:
        assert text in printed, printed
    assert "Traceback" not in printed
    assert [r["type"] for r in project.resources() if r["type"] != "pulumi:pulumi:Stack"] == []
    assert {item["metadata"]["name"] for item in cluster.list("v1", "Namespace")} == before


def test_a_stack_without_a_target_is_an_error(project: Project) -> None:
    settings = dev_settings(project.mirror)
    del settings["target"]
    project.configure(settings)
    done = project.run("up", "--yes", "--skip-preview")
    assert done.returncode != 0
    assert "target" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
