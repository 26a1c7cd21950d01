"""Simulations of the project's own programs on nodes without processes: its `local/simulations.yaml`."""

from dataclasses import dataclass
from pathlib import Path

import yaml

NEEDS = ("gpus", "infiniband", "nvme")
"""Hardware that an agent can need: the numbers in `devices.Hardware`."""

_LABEL_LIMIT = 63  # of a label's value, k8s.io/apimachinery/pkg/util/validation


class SimulationError(Exception):
    """The file cannot be used; the message names it and the problem."""


@dataclass(frozen=True)
class NodeAgent:
    """A program that labels its node.

    daemonset: the name of its DaemonSet.
    needs: the hardware that it needs, one of `NEEDS`, or empty.
    value: the label's value; `{node}` in it is the node's name.
    """

    daemonset: str
    label: str
    value: str
    needs: str = ""

    def value_on(self, node: str) -> str:
        """Return the label's value on a node, cut to the allowed length."""
        return self.value.replace("{node}", node)[:_LABEL_LIMIT]


def node_agents(file: Path) -> tuple[NodeAgent, ...]:
    """Return the agents in a file, none without a file. Raises SimulationError for an invalid file."""
    if not file.exists():
        return ()
    try:
        agents = tuple(NodeAgent(**entry) for entry in yaml.safe_load(file.read_text()) or ())
    except (yaml.YAMLError, TypeError) as error:
        raise SimulationError(f"{file}: {error}") from error
    for agent in agents:
        if agent.needs and agent.needs not in NEEDS:
            raise SimulationError(f"{file}: {agent.daemonset} needs {agent.needs!r}, which is not in {NEEDS}")
    return agents
