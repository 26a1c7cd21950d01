"""Rules of target `cpouta`."""

from collections.abc import Iterator

from stacks.config.errors import ConfigError
from stacks.derived.partial import PartialSettings
from stacks.targets.cpouta import project_rules, support
from stacks.targets.cpouta.project_facts import ProjectFacts
from stacks.targets.cpouta.settings import OpenstackSettings


def check(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield errors of settings that the VM or the project cannot support."""
    openstack, facts = partial.section(OpenstackSettings), partial.site
    if openstack is not None:
        yield from project_rules.fits(partial, openstack)
    if openstack is not None and isinstance(facts, ProjectFacts):
        yield from project_rules.offers(openstack, facts)
        yield from project_rules.room(openstack, facts)


def warnings(partial: PartialSettings) -> Iterator[str]:
    """Yield warnings about outdated and example values, additional access, and changes of the existing VM."""
    openstack, facts = partial.section(OpenstackSettings), partial.site
    if openstack is not None:
        yield from project_rules.examples(openstack)
        yield from support.warnings(openstack, is_kept=isinstance(facts, ProjectFacts) and facts.server is not None)
        yield from project_rules.unoffered(partial, openstack)
    if openstack is not None and isinstance(facts, ProjectFacts):
        yield from project_rules.warnings(openstack, facts)
        yield from project_rules.another_password(partial, openstack, facts)
