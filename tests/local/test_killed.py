"""A plain `pulumi up` that is killed: what docs/operations.md says finishes it, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from emulator.paths import Paths
from tests.local.environment import Cluster, Project, dev_settings
from tests.local.killed import Killed


@pytest.fixture(scope="module")
def killed(make_project: Callable[[str], Project], cluster: Cluster) -> Killed:
    project = make_project("dev")
    project.configure({**dev_settings(project.mirror), "samples": {}})
    return Killed(project, cluster)


def test_the_documented_commands_finish_it(killed: Killed) -> None:
    """In the middle of the installation; `make soak` kills at moments of all its parts."""
    killed.kill_at(100)
    killed.finish()
    killed.judge()
    killed.destroy()


def test_without_them_it_is_stuck_and_make_finishes_it(killed: Killed, paths: Paths) -> None:
    """What an engine without checkpoints, as the make targets run it, had created is not in the state at all."""
    engine = killed.project.engine
    process = killed.project.start("up", "--yes", "--skip-preview")
    while len(killed.cluster.list("apps/v1", "Deployment", "mlbatch-system")) < 1:
        assert process.poll() is None
    process.kill()
    process.communicate()
    engine.finish(process)
    stuck = killed.plain_up()
    assert stuck.returncode != 0
    assert "already exists" in stuck.stdout + stuck.stderr
    assert engine.killed is not None
    killed.project.up()
    assert engine.killed is None
    killed.judge()
    killed.destroy()
