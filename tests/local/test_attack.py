"""The attacks that the product brings: on the platform, and on a cluster that has nothing of it."""

from __future__ import annotations

import pytest

from attack.__main__ import THROUGH, main
from emulator.paths import Paths
from tests.local.environment import dev_settings
from tests.local.standing import Standing


def test_no_attack_goes_through_on_the_platform(
    standing: Standing, paths: Paths, capsys: pytest.CaptureFixture[str]
) -> None:
    standing.up("dev", lambda project: {**dev_settings(project.mirror), "samples": {}})
    code = main(["--kubeconfig", str(paths.kubeconfig)])
    said = capsys.readouterr().out
    assert code == 0, said
    assert "like blue" in said
    assert "refused by policy mlbatch-team-own-volumes" in said


def test_attacks_go_through_where_nothing_is_installed(
    standing: Standing, paths: Paths, capsys: pytest.CaptureFixture[str]
) -> None:
    standing.nothing()
    code = main(["--kubeconfig", str(paths.kubeconfig)])
    said = capsys.readouterr().out
    assert code == THROUGH, said
    assert said.count("GOES THROUGH") > 30
    assert "A member can get root on a node" in said
