"""What keeps a team to itself: rules that the API server holds everything in teams' namespaces to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pulumi

from components import names
from components.kubernetes.admission import AdmissionPolicy
from components.kubernetes.manifests import Manifest
from components.layer import Layer

TEAM_NAMESPACES: Final = {names.TEAM_LABEL: "true"}
"""Labels of the namespaces that the policies hold for. Members may not change a namespace."""


@dataclass(frozen=True, kw_only=True)
class BoundaryArgs:
    """policies: all that are to be in force before a team exists."""

    policies: Sequence[AdmissionPolicy]


class Boundary(Layer):
    """Put admission policies into force. They hold for every team's namespace, whoever asks."""

    ready: Sequence[pulumi.Resource]
    """Depend on these to let members in."""

    def __init__(self, name: str, args: BoundaryArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:tenancy:Boundary", name, None, opts)
        self.ready = [self._enforced(policy) for policy in args.policies]
        self.register_outputs({"policies": [policy.name for policy in args.policies]})

    def _enforced(self, policy: AdmissionPolicy) -> Manifest:
        rules, binding = policy.documents()
        written = Manifest(policy.name, rules, pulumi.ResourceOptions(parent=self))
        options = pulumi.ResourceOptions(parent=self, depends_on=[written])
        return Manifest(f"{policy.name}/binding", binding, options)
