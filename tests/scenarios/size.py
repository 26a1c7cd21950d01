"""How large the simulated cluster of the scenarios is, and who has what of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from stacks.settings.limits import MOST_NODES
from tests.bounds import recovery
from tests.local.environment import Project, dev_settings

TEAMS: Final[Mapping[str, str]] = {"blue": "alice", "red": "bob"}
"""The teams, and who submits for each."""
FAIR: Final = "blue"
"""The team whose users have queues of their own."""
OTHER: Final = "carol"
"""Its second user."""
GPUS_PER_NODE: Final = 8
FEWEST: Final = 3
"""Nodes: one for each team, and one that belongs to nobody."""
RECOVERY: Final = {"retryPauseSeconds": 1, "recoveryTimeoutSeconds": 15, "healthSeconds": 5}
"""What takes minutes on a cluster of machines, in seconds."""
FAILURE_GRACE: Final = 1
"""Seconds for which each job has AppWrapper wait for failed pods to be replaced, for the same reason."""
BOUND: Final = recovery(RECOVERY["recoveryTimeoutSeconds"], FAILURE_GRACE)
"""Seconds after a node is lost within which its team has its quota again. 60 of them are for pods to end and for
controllers to act, which take seconds here: a machine that does much else has the rest of those, and gets no more.
"""


@dataclass(frozen=True)
class Size:
    """A cluster of this many nodes of eight GPUs, which two teams and the slack queue share.

    Raises ValueError for fewer nodes than there are queues, and for more than a stack may have.
    """

    nodes: int = FEWEST

    def __post_init__(self) -> None:
        if self.nodes < FEWEST:
            raise ValueError(f"{self.nodes} nodes are too few: two teams and the slack queue need {FEWEST} or more")
        if self.nodes > MOST_NODES:
            raise ValueError(f"{self.nodes} nodes are too many: a stack has at most {MOST_NODES}")

    @property
    def gpus(self) -> int:
        """All GPUs."""
        return self.nodes * GPUS_PER_NODE

    @property
    def team_nodes(self) -> int:
        """Whole nodes that each team's quota has."""
        return (self.nodes - 1) // len(TEAMS)

    @property
    def team(self) -> int:
        """GPUs of each team's quota."""
        return self.team_nodes * GPUS_PER_NODE

    @property
    def slack_nodes(self) -> int:
        """Whole nodes that belong to nobody, one or two."""
        return self.nodes - self.team_nodes * len(TEAMS)

    @property
    def slack(self) -> int:
        """GPUs that belong to nobody."""
        return self.slack_nodes * GPUS_PER_NODE


def scenario_settings(project: Project, size: Size) -> dict[str, Any]:
    """Return the settings of the scenarios' stack: the same, with queues for the users of one team."""
    found = settings(project, size)
    teams = [
        {**team, "users": [*team["users"], OTHER], "userFairSharing": True} if team["name"] == FAIR else team
        for team in found["teams"]
    ]
    return {**found, "queueing": {**found["queueing"], "fairSharingHalfLifeMinutes": 10}, "teams": teams}


def settings(project: Project, size: Size) -> dict[str, Any]:
    """Return a stack's settings: those of Pulumi.dev.yaml at another size, with seconds for minutes."""
    base = dev_settings(project.mirror)
    return {
        **base,
        "nodes": {**base["nodes"], "count": size.nodes},
        "queueing": {**base["queueing"], "slack": quota(size.slack)},
        "recovery": RECOVERY,
        "teams": [{"name": team, "users": [user], "quota": quota(size.team)} for team, user in TEAMS.items()],
        "samples": {},
    }


def quota(gpus: int) -> dict[str, Any]:
    """Return a quota of GPUs, with what a node has beside each of them."""
    return {"cpu": 28 * gpus, "memory": f"{250 * gpus}G", "nvidia.com/gpu": gpus, "pods": max(100, 4 * gpus)}
