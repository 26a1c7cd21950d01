"""Whose the things of a name are: two stacks of one project may not share a VM's name, which has a default."""

from __future__ import annotations

import pulumi

from stacks.config.errors import ConfigError, SettingsError
from stacks.targets.cpouta.project_facts import ProjectFacts
from stacks.targets.cpouta.settings import SECTION, OpenstackSettings


def stack() -> str:
    """Return the running stack with its organization and project, as it notes its own things."""
    return f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}"


def check(openstack: OpenstackSettings, facts: ProjectFacts | None) -> None:
    """Refuse a name that another stack has; raises pulumi.RunError, before anything is registered.

    What is noted nowhere counts as one's own: a stack of an older version has noted nothing.
    """
    if facts is None or facts.owner in ("", stack()):
        return
    problem = ConfigError(
        path=(*SECTION, "name"),
        value=openstack.name,
        message=f"stack {facts.owner} has a VM, a firewall and a volume of this name in the project",
        expected="a name that no other stack of the project has",
        hint=f"write another name, such as {openstack.name}-2; where that stack is this one under its former name, put "
        f"{stack()} into the description of the security group",
    )
    raise pulumi.RunError(str(SettingsError([problem])))
