"""The namespace of health checks, and the account that writes their verdicts on nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pulumi

from components.kubernetes import own_node
from components.kubernetes.manifests import Manifest
from components.kubernetes.namespace import NamespaceArgs, namespace_body
from components.kubernetes.own_node import OwnNodeAccount
from components.layer import Layer
from components.queueing.appwrapper import AUTOPILOT_TAINTS

NAMESPACE: Final = "mlbatch-health"
ACCOUNT: Final = "health-reporter"
POLICY: Final = "mlbatch-health-reporter"

TAINT_VALUE: Final = "failed"
QUEUE_LABEL: Final = next(iter(AUTOPILOT_TAINTS.values()))[0]["key"]
"""The label of Autopilot, which AppWrapper and the slack controller watch."""
QUEUE_VALUES: Final = {"NoSchedule": "ERR", "NoExecute": "EVICT"}
"""What the label says for a taint's effect: keep jobs away, or move them away as well."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """A kind of check. name: of its objects. taint: key of a failed node's taint."""

    name: str
    taint: str

    @property
    def label(self) -> str:
        """The node's label with its state: pass, warn, fail or unknown."""
        return f"mlbatch/{self.name}"

    @property
    def annotation(self) -> str:
        """The node's annotation with its last report."""
        return f"mlbatch/{self.name}-report"


NCCL_GATE: Final = Check(name="nccl-gate", taint="nccl-gate")


@dataclass(frozen=True, kw_only=True)
class ReporterArgs:
    """checks: those that there are, whether they run or not.

    writes: whether verdicts are written on nodes at all; without it there is no account.
    """

    checks: Sequence[Check] = (NCCL_GATE,)
    writes: bool = True


class Reporter(Layer):
    """Create the checks' namespace and, where verdicts are written, their account with its policy."""

    namespace: pulumi.Output[str]

    ready: Sequence[pulumi.Resource]
    """Depend on these to run checks."""

    def __init__(self, name: str, args: ReporterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:health:Reporter", name, None, opts)
        # A check may read the host's kernel log, which no stricter level allows.
        body = namespace_body(NamespaceArgs(name=NAMESPACE, privileged=True))
        namespace = Manifest(f"{name}/Namespace", body, pulumi.ResourceOptions(parent=self))
        self.namespace = namespace.object_name
        given = own_node.register(account(self.namespace, args.checks), name, self) if args.writes else []
        self.ready = [namespace, *given]
        self.register_outputs({"namespace": self.namespace})


def account(namespace: pulumi.Input[str], checks: Sequence[Check]) -> OwnNodeAccount:
    """Return the account: it may change the checks' own labels, annotations and taints, and nothing else."""
    return OwnNodeAccount(
        name=ACCOUNT,
        namespace=namespace,
        cluster_name=POLICY,
        who="a health check",
        labels=[*(check.label for check in checks), QUEUE_LABEL],
        annotations=[check.annotation for check in checks],
        taints=[check.taint for check in checks],
    )
