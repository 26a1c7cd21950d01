"""Checks that two stacks of a project do not use the same VM name, which has a default."""

import pulumi

from stacks.config.errors import ConfigError, SettingsError
from stacks.targets.cpouta.project_facts import ProjectFacts
from stacks.targets.cpouta.settings import SECTION, OpenstackSettings


def stack() -> str:
    """Return the running stack with its organization and project, as its resources record it."""
    return f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}"


def check(openstack: OpenstackSettings, facts: ProjectFacts | None) -> None:
    """Reject a name that another stack has. Raises pulumi.RunError before anything is registered.

    Resources without a recorded owner count as the stack's own, because older versions did not record it.
    """
    if facts is None or facts.owner in ("", stack()):
        return
    problem = ConfigError(
        (*SECTION, "name"),
        f"stack {facts.owner} already has a VM, a firewall and a volume with this name in the project",
        f"write another name, such as {openstack.name}-2; if that is this stack under its former name, write "
        f"{stack()} into the description of the security group",
        value=openstack.name,
    )
    raise pulumi.RunError(str(SettingsError([problem])))
