"""Size of a game day's cluster, shares of the teams, and the check of this machine's memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from lab.scenarios.size import GPUS_PER_NODE, check, quota, sized
from stacks.config.trace import Room
from tests.local.environment import Project

USERS: Final[Mapping[str, str]] = {"blue": "alice", "red": "bob", "green": "carol"}
"""The teams and their submitting users."""
FEWEST: Final = len(USERS) + 1
RECOVERY: Final = {"retryPauseSeconds": 5, "recoveryTimeoutSeconds": 20, "healthSeconds": 20}
"""Seconds for what takes minutes on a real cluster."""


@dataclass(frozen=True)
class Size:
    """A cluster of this many nodes with eight GPUs. The teams share all nodes but one.

    Raises ValueError for fewer nodes than queues, and for more than a stack can have.
    """

    nodes: int = 6

    def __post_init__(self) -> None:
        check(self.nodes, FEWEST, f"{len(USERS)} teams and the slack queue need {FEWEST}")

    @property
    def gpus(self) -> int:
        return self.nodes * GPUS_PER_NODE

    @property
    def quotas(self) -> Mapping[str, int]:
        """GPUs of each team, in whole nodes. The first teams get the remaining ones."""
        each, more = divmod(self.nodes - 1, len(USERS))
        return {team: (each + (number < more)) * GPUS_PER_NODE for number, team in enumerate(USERS)}

    @property
    def room(self) -> Room:
        """The limits for a trace."""
        return Room(teams=list(USERS), nodes=self.nodes, gpus=GPUS_PER_NODE)


def settings(project: Project, size: Size, load: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the stack's settings: the teams, two of each operator, seconds instead of minutes.

    load: the synthetic load, if any. It is disabled here, because this program submits its jobs at their arrival times.
    """
    teams = [{"name": team, "users": [USERS[team]], "quota": quota(gpus)} for team, gpus in size.quotas.items()]
    queueing = {"slack": quota(GPUS_PER_NODE), "replicas": 2}
    samples = {"synthetic": {**load, "enabled": False}} if load else {}
    return sized(project.mirror, size.nodes, teams, queueing, recovery=RECOVERY, samples=samples)
