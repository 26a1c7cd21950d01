"""The namespace of health checks, and the service account that writes their results on nodes."""

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
"""Autopilot's label, which AppWrapper and the slack controller read."""
QUEUE_VALUES: Final = {"NoSchedule": "ERR", "NoExecute": "EVICT"}
"""Values of the label for the effect of a taint: keep jobs away, or also move them away."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """A kind of check. name: of its objects. taint: key of a failed node's taint."""

    name: str
    taint: str

    @property
    def label(self) -> str:
        """Label of the node with its state: pass, warn, fail or unknown."""
        return f"mlbatch/{self.name}"

    @property
    def annotation(self) -> str:
        """Annotation of the node with its last report."""
        return f"mlbatch/{self.name}-report"


NCCL_GATE: Final = Check(name="nccl-gate", taint="nccl-gate")


@dataclass(frozen=True, kw_only=True)
class ReporterArgs:
    """The arguments of the reporter.

    checks: all checks, whether they run or not.
    writes: results are written on nodes. If false, the pods have no service account.
    """

    checks: Sequence[Check] = (NCCL_GATE,)
    writes: bool = True


class Reporter(Layer):
    """Create the checks' namespace and, if results are written, their service account with its policy."""

    namespace: pulumi.Output[str]

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
    """Return the service account. It may change only the checks' own labels, annotations and taints."""
    return OwnNodeAccount(
        name=ACCOUNT,
        namespace=namespace,
        cluster_name=POLICY,
        who="a health check",
        labels=[*(check.label for check in checks), QUEUE_LABEL],
        annotations=[check.annotation for check in checks],
        taints=[check.taint for check in checks],
    )
