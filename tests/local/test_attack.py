"""The attacks that the product brings, without one of its mechanisms, and on a plain Kueue."""

import contextlib
from collections.abc import Iterator
from typing import Final

import pytest

from attack.attacks import Attack
from attack.member import Ground
from attack.trial import tried
from cli.app import main
from components import names
from components.tenancy.promises import Promise
from emulator.paths import Paths
from tests.local.admission import unbound
from tests.local.environment import Cluster, eventually, operators_settings
from tests.local.standing import Standing

PLAIN: Final = "plain"


def test_no_attack_goes_through(standing: Standing, paths: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    standing.up("dev", operators_settings)
    code = main(["attack", "--kubeconfig", str(paths.kubeconfig)])
    said = capsys.readouterr().out
    assert code == 0, said
    assert "like blue" in said
    assert "no such kind" not in said
    assert "refused by policy mlbatch-team-own-volumes" in said


@pytest.mark.soak("two minutes; the test above makes the same attacks")
def test_without_a_mechanism_its_attacks_go_through(standing: Standing, paths: Paths, cluster: Cluster) -> None:
    """Members may submit Ray kinds without an AppWrapper here. Otherwise their role would reject these attacks
    first.
    """
    standing.up("dev", operators_settings)
    refused: dict[str, list[Attack]] = {}
    for attack, outcome in tried(paths.kubeconfig, None, None):
        assert outcome.through is None, attack.name
        refused.setdefault(outcome.by.removeprefix("policy "), []).append(attack)
    kept = {each.policy for each in Promise} - {each.policy for each in Promise.of_operators()}
    untried = {Promise.LENDING_SCOPE.policy, Promise.USER_QUEUES.policy}
    assert {policy for policy in refused if policy.startswith("mlbatch-team-")} == kept - untried
    ground = Ground(paths.kubeconfig, None)
    with ground.made(None):
        for policy in sorted(kept - untried):
            with unbound(cluster, policy):
                through = eventually(
                    f"attacks go through without {policy}",
                    lambda mine=refused[policy]: [each.name for each in mine if ground.try_out(each).through],
                )
            print(f"{policy}: {len(through)} of {len(refused[policy])}")


@pytest.mark.soak("two minutes; the first test makes the same attacks")
def test_attacks_go_through_where_a_plain_kueue_queues_jobs(
    standing: Standing, paths: Paths, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same Kueue, operators and role, in a namespace without a team, where the platform's policies do not apply."""
    standing.up("dev", operators_settings)
    with _plain_namespace(cluster):
        code = main(["attack", "--kubeconfig", str(paths.kubeconfig), "--like", PLAIN])
    said = capsys.readouterr().out
    print(said[said.rindex("\n\n") :])
    assert code == 1, said
    assert said.count("GOES THROUGH") > 100
    assert "A member can get root on a node" in said


@contextlib.contextmanager
def _plain_namespace(cluster: Cluster) -> Iterator[None]:
    """Create a namespace for the duration of the context. Its member has the role of team members."""
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLAIN}})
    subject = {"apiGroup": names.RBAC, "kind": "User", "name": "alice"}
    binding = {
        "apiVersion": f"{names.RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "members", "namespace": PLAIN},
        "roleRef": {"apiGroup": names.RBAC, "kind": "ClusterRole", "name": names.EDITOR_ROLE},
        "subjects": [subject],
    }
    try:
        cluster.create(binding)
        yield
    finally:
        cluster.delete("v1", "Namespace", PLAIN)
