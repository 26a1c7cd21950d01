"""Size of the scenarios' simulated cluster, and the shares of the teams."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from stacks.settings.limits import MOST_NODES
from tests.bounds import recovery
from tests.local.environment import Project, dev_settings

TEAMS: Final[Mapping[str, str]] = {"blue": "alice", "red": "bob"}
"""The teams and their submitting users."""
FAIR: Final = "blue"
"""The team with a queue for each user."""
OTHER: Final = "carol"
"""Its second user."""
GPUS_PER_NODE: Final = 8
FEWEST: Final = 3
"""Least number of nodes: one for each team, and one for the slack queue."""
RECOVERY: Final = {"retryPauseSeconds": 1, "recoveryTimeoutSeconds": 15, "healthSeconds": 5}
"""Seconds for what takes minutes on a real cluster."""
FAILURE_GRACE: Final = 1
"""Seconds that AppWrapper waits for the replacement of failed pods, for the same reason."""
BOUND: Final = recovery(RECOVERY["recoveryTimeoutSeconds"], FAILURE_GRACE)
"""Seconds from the loss of a node until its team has its quota again. They include 60 for ending pods and for
controllers. These need only seconds here, so a busy machine has a reserve.
"""


@dataclass(frozen=True)
class Size:
    """A cluster of this many nodes with eight GPUs, which two teams and the slack queue share.

    Raises ValueError for fewer nodes than queues, and for more than a stack can have.
    """

    nodes: int = FEWEST

    def __post_init__(self) -> None:
        check(self.nodes, FEWEST, f"two teams and the slack queue need {FEWEST} or more")

    @property
    def gpus(self) -> int:
        return self.nodes * GPUS_PER_NODE

    @property
    def team_nodes(self) -> int:
        """Whole nodes in each team's quota."""
        return (self.nodes - 1) // len(TEAMS)

    @property
    def team(self) -> int:
        """GPUs of each team's quota."""
        return self.team_nodes * GPUS_PER_NODE

    @property
    def slack_nodes(self) -> int:
        """Whole nodes of the slack queue, one or two."""
        return self.nodes - self.team_nodes * len(TEAMS)

    @property
    def slack(self) -> int:
        """GPUs of the slack queue."""
        return self.slack_nodes * GPUS_PER_NODE


def scenario_settings(project: Project, size: Size) -> dict[str, Any]:
    """Return the settings of the scenarios' stack: those of `settings`, with queues for the users of one team, and the
    repair of nodes.
    """
    found = settings(project, size)
    teams = [
        {**team, "users": [*team["users"], OTHER], "userFairSharing": True} if team["name"] == FAIR else team
        for team in found["teams"]
    ]
    return {
        **found,
        "queueing": {**found["queueing"], "fairSharingHalfLifeMinutes": 10},
        "recovery": {**found["recovery"], "repair": {"enabled": True}},
        "teams": teams,
    }


def settings(project: Project, size: Size) -> dict[str, Any]:
    """Return a stack's settings: those of Pulumi.dev.yaml at another size, with seconds instead of minutes."""
    teams = [{"name": team, "users": [user], "quota": quota(size.team)} for team, user in TEAMS.items()]
    return sized(project.mirror, size.nodes, teams, {"slack": quota(size.slack)}, recovery=RECOVERY)


def sized(
    mirror: Path | None, nodes: int, teams: Sequence[Mapping[str, Any]], queueing: Mapping[str, Any], **sections: Any
) -> dict[str, Any]:
    """Return the settings of Pulumi.dev.yaml without samples, with other nodes, teams, keys and sections."""
    base = dev_settings(mirror)
    return {
        **base,
        "nodes": {**base["nodes"], "count": nodes},
        "queueing": {**base["queueing"], **queueing},
        "teams": list(teams),
        "samples": {},
        **sections,
    }


def check(nodes: int, fewest: int, need: str) -> None:
    """Raise ValueError for fewer nodes than the queues need, and for more than a stack can have."""
    if nodes < fewest:
        raise ValueError(f"{nodes} nodes are too few: {need}")
    if nodes > MOST_NODES:
        raise ValueError(f"{nodes} nodes are too many: a stack has at most {MOST_NODES}")


def quota(gpus: int) -> dict[str, Any]:
    """Return a quota of GPUs, with a node's other resources for each of them."""
    return {"cpu": 28 * gpus, "memory": f"{250 * gpus}G", "nvidia.com/gpu": gpus, "pods": max(100, 4 * gpus)}
