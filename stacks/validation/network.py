"""Checks the network settings of teams, and warns about promises that they give up."""

from collections.abc import Iterator
from ipaddress import ip_network

from stacks.config.errors import ConfigError, Path, key
from stacks.derived.partial import PartialSettings
from stacks.settings.cidr import overlapping
from stacks.settings.tenancy import QueueingSettings, TenancySettings


def has_policies(partial: PartialSettings) -> bool:
    """Whether there are teams and NetworkPolicies around them."""
    tenancy = partial.section(TenancySettings)
    return has_teams(partial) and tenancy is not None and tenancy.network.enabled


def has_teams(partial: PartialSettings) -> bool:
    """Whether the stack makes teams."""
    tenancy, queueing = partial.section(TenancySettings), partial.section(QueueingSettings)
    return bool(partial.teams and tenancy and tenancy.enabled and queueing and queueing.enabled)


def check(partial: PartialSettings, tenancy: TenancySettings) -> Iterator[ConfigError]:
    """Reject teams' namespaces as operators' namespaces: a team cannot reach another team's pods."""
    if tenancy.network.enabled:
        yield from _denied(partial, tenancy)
    for index, name in enumerate(tenancy.network.ray_operators):
        if name in partial.team_names:
            yield ConfigError(
                ("tenancy", "network", "rayOperators", index),
                f"this is the namespace of team {name}, and a team cannot reach another team's pods",
                "name the namespace in which KubeRay's operator runs, or rename the team",
            )


def _denied(partial: PartialSettings, tenancy: TenancySettings) -> Iterator[ConfigError]:
    """Reject networks that are both allowed and denied: NetworkPolicies only allow, so the denial has no effect."""
    egress = tenancy.network.egress
    allowed: list[tuple[Path, tuple[str, ...]]] = [(("tenancy", "network", "egress", "addresses"), egress.addresses)]
    for index, team in partial.numbered_teams:
        allowed.append((("teams", index, "network", "egress", "addresses"), team.network.egress.addresses))
    for path, texts in allowed:
        for position, text in enumerate(texts):
            found = overlapping(ip_network(text), egress.denied)
            if found is not None:
                own = key(("tenancy", "network", "egress", "denied"))
                yield ConfigError(
                    (*path, position),
                    f"{own} denies {found}, which overlaps it, and an allowed network overrides a denied one",
                    "remove one of the two networks, or narrow one so that they do not overlap",
                )


def warnings(partial: PartialSettings, tenancy: TenancySettings) -> Iterator[str]:
    """Yield warnings about promises that need NetworkPolicies."""
    if not tenancy.network.enabled and has_teams(partial):
        given_up = "any pod can reach all teams' pods, which can reach the platform and the nodes' metadata service"
        yield f"mlbatch:tenancy.network.enabled is false: {given_up}"
