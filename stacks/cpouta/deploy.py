"""Target `cpouta`: a VM on OpenStack, and the platform on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stacks.cpouta import infrastructure
from stacks.cpouta.outputs import outputs
from stacks.cpouta.project_facts import ProjectFacts
from stacks.cpouta.settings import CpoutaSettings
from stacks.inputs import StackInputs
from stacks.layers.releases import Releases


def deploy(inputs: StackInputs[CpoutaSettings], releases: Releases) -> Mapping[str, Any]:
    """Register what OpenStack gives; return the stack's outputs."""
    openstack = inputs.settings.openstack
    facts = inputs.site if isinstance(inputs.site, ProjectFacts) else None
    made = infrastructure.create(openstack, facts)
    return outputs(openstack, made)
