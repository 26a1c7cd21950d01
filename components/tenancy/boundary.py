"""Admission policies that the API server enforces in the namespaces of teams."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pulumi

from components import names
from components.kubernetes.admission import AdmissionPolicy
from components.kubernetes.manifests import Manifest
from components.layer import Layer

TEAM_NAMESPACES: Final = {names.TEAM_LABEL: "true"}
"""Labels of the namespaces that the policies apply to. Members cannot change a namespace."""


@dataclass(frozen=True, kw_only=True)
class BoundaryArgs:
    """policies: all policies that must be in force before a team exists."""

    policies: Sequence[AdmissionPolicy]


class Boundary(Layer):
    """Create admission policies. They apply to the namespaces of all teams and to every caller."""

    ready: Sequence[pulumi.Resource]
    """Depend on these before members get access."""

    def __init__(self, name: str, args: BoundaryArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:tenancy:Boundary", name, None, opts)
        self.ready = [self._enforced(policy) for policy in args.policies]
        self.register_outputs({"policies": [policy.name for policy in args.policies]})

    def _enforced(self, policy: AdmissionPolicy) -> Manifest:
        rules, binding = policy.documents()
        written = Manifest(policy.name, rules, pulumi.ResourceOptions(parent=self))
        options = pulumi.ResourceOptions(parent=self, depends_on=[written])
        return Manifest(f"{policy.name}/binding", binding, options)
