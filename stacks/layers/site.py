"""What only one kind of cluster has, between the layers that all have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi

from components.health import repair_state
from components.health.reporter import NCCL_GATE, Check
from components.kubernetes.namespace import Namespace
from components.kubernetes.placement import NodeGroup
from components.layer import Layer
from components.queueing.fault_tolerance import FaultTolerance
from components.tenancy.team import Team
from components.workloads import nccl
from components.workloads.nccl import NcclProgram
from stacks.layers.scheduling import Scheduling


@dataclass(frozen=True, kw_only=True)
class Namespaces:
    """Where jobs run.

    workloads: the namespace of jobs without a team, and what it waits for. None without such jobs. teams: by name.
    """

    workloads: Layer | None
    workloads_name: str
    teams: Mapping[str, Team]

    def find(self, name: str) -> Layer:
        """Return what has to exist before something is put into a namespace of the stack; raises KeyError."""
        if self.workloads is not None and name == self.workloads_name:
            return self.workloads
        return self.teams[name]


class SiteLayers:
    """What a target adds to the platform's layers. The defaults add none. Called in the order of `platform.install`."""

    has_node_agents = False
    """Whether `node_agents` registers something."""
    has_repairs = False
    """Whether a controller taints nodes in repair. `platform.install` sets it from the settings."""
    own_checks: Sequence[Check] = ()
    """Those that `checks` may register."""
    gate_program: NcclProgram = nccl.PROGRAM
    """Where the target's own image for a single node has the all-reduce test."""
    privileged_monitoring = False
    """Whether every account of the monitoring chart may run privileged pods, where accounts decide."""
    scratch_nodes: NodeGroup | None = None
    """Those whose local disks are used, None for all GPU nodes."""

    def checks_known(self) -> Sequence[Check]:
        """Return all checks that there are, whether they run or not."""
        return [*self.own_checks, NCCL_GATE]

    def kept_usable(self, nodes: NodeGroup) -> NodeGroup:
        """Return nodes as what makes them usable gets there: where a check has failed or a repair goes on, too.

        Without drivers, plugins and labels a node is never checked again; and the network operator removes its driver
        from all nodes as soon as it tolerates the taints of none (Mellanox/network-operator, pkg/nodeinfo/filter.go).
        """
        return nodes.tolerating([*(check.taint for check in self.checks_known()), repair_state.KEY])

    def gpu_operator(self) -> Layer | None:
        """Register what makes GPUs usable; None where the platform's own operators do, as far as they are wanted."""
        return None

    def node_agents(self, namespace: Namespace) -> None:
        """Register the target's programs on the GPU nodes, in a namespace that allows privileged pods."""

    def volumes(self, namespaces: Namespaces) -> Mapping[str, pulumi.Input[str]]:
        """Register volumes with data; return the names of their claims by the names that the settings use."""
        return {}

    def checks(self, reporter: Layer) -> None:
        """Register the target's checks, which report through this."""

    def operators(self, scheduling: Scheduling, fault_tolerance: FaultTolerance) -> Layer | None:
        """Register Kueue, AppWrapper and the operators of jobs; None where the platform's own are installed.

        fault_tolerance: of AppWrapper's jobs.
        """
        return None

    def kueue(self, definitions: Sequence[pulumi.Resource]) -> Layer | None:
        """Register a Kueue other than upstream's; None where the stack or the cluster has one.

        definitions: of jobs, which Kueue looks for when it starts.
        """
        return None

    def job_operators(self, kueue: Sequence[Layer]) -> Layer | None:
        """Register operators of jobs other than upstream's, after Kueue."""
        return None

    def applications(self, queues: Sequence[Layer], flavor: pulumi.Input[str] | None) -> None:
        """Register what members use beside their jobs.

        queues: before somebody submits a job. flavor: that of the platform's queues, None where it has none.
        """
