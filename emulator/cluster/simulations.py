"""What the project simulates of its own programs on nodes without a process: its `local/simulations.yaml`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

NEEDS = ("gpus", "infiniband", "nvme")
"""What an agent can need of a machine: the numbers in `devices.Hardware`."""

_LABEL_LIMIT = 63  # of a label's value, k8s.io/apimachinery/pkg/util/validation


class SimulationError(Exception):
    """The file cannot be used; the message names it and what is wrong."""


@dataclass(frozen=True)
class NodeAgent:
    """A program that labels the node on which it runs.

    daemonset: the name of its DaemonSet. needs: what the machine must have, one of `NEEDS`, or nothing.
    value: the label's value; `{node}` in it is the node's name.
    """

    daemonset: str
    label: str
    value: str
    needs: str = ""

    def value_on(self, node: str) -> str:
        """Return the label's value on a node, cut to what a label may hold."""
        return self.value.replace("{node}", node)[:_LABEL_LIMIT]


def node_agents(file: Path) -> tuple[NodeAgent, ...]:
    """Return the agents that a file lists, none where there is no file. Raises SimulationError for an unusable one."""
    if not file.exists():
        return ()
    try:
        agents = tuple(NodeAgent(**entry) for entry in yaml.safe_load(file.read_text()) or ())
    except (yaml.YAMLError, TypeError) as error:
        raise SimulationError(f"{file}: {error}") from error
    for agent in agents:
        if agent.needs and agent.needs not in NEEDS:
            raise SimulationError(f"{file}: {agent.daemonset} needs {agent.needs!r}, which is none of {NEEDS}")
    return agents
