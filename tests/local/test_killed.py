"""A killed plain `pulumi up` can be finished with the commands of docs/operations.md, without leftovers."""

from collections.abc import Callable

import pytest

from tests.local.environment import Cluster, Project, dev_settings
from tests.local.killed import Killed
from tests.local.standing import Standing


@pytest.fixture(scope="module")
def killed(standing: Standing, make_project: Callable[[str], Project], cluster: Cluster) -> Killed:
    standing.down()
    project = make_project("dev")
    project.configure({**dev_settings(project.mirror), "samples": {}})
    return Killed(project, cluster)


@pytest.mark.soak("three minutes; test_cpouta.py kills an update, too")
def test_the_documented_commands_finish_it(killed: Killed) -> None:
    """Killed during the installation. `make soak` kills in all phases."""
    killed.kill_at(100)
    killed.finish()
    killed.judge()
    killed.destroy()
