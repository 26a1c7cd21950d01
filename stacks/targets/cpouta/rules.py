"""Rules of target `cpouta`."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.config.errors import ConfigError
from stacks.derived.partial import PartialSettings
from stacks.targets.cpouta import project_rules
from stacks.targets.cpouta.project_facts import ProjectFacts
from stacks.targets.cpouta.settings import OpenstackSettings


def check(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield what the VM is too small for, and what the project does not have, or has no room for."""
    openstack, facts = partial.section(OpenstackSettings), partial.site
    if openstack is not None:
        yield from project_rules.fits(partial, openstack)
    if openstack is not None and isinstance(facts, ProjectFacts):
        yield from project_rules.offers(openstack, facts)
        yield from project_rules.room(openstack, facts)


def warnings(partial: PartialSettings) -> Iterator[str]:
    """Yield what is outlived, an example or not offered, who was let in, and what becomes of the VM there."""
    openstack, facts = partial.section(OpenstackSettings), partial.site
    if openstack is not None:
        yield from project_rules.examples(openstack)
        yield from project_rules.ended(openstack)
        yield from project_rules.unoffered(partial, openstack)
    if openstack is not None and isinstance(facts, ProjectFacts):
        yield from project_rules.warnings(openstack, facts)
        yield from project_rules.another_password(partial, openstack, facts)
