"""Whether what teams are promised can be kept: by admission policies, which not every cluster has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from components.tenancy.promises import Promise
from stacks.config.errors import ConfigError, key, listed
from stacks.derived.partial import PartialSettings
from stacks.settings.tenancy import TenancySettings
from stacks.validation.network import has_teams

_ACCEPT = ("tenancy", "acceptUnenforced")


def check(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield the promises that a cluster without admission policies cannot keep, but for those that are accepted."""
    tenancy = _tenancy(partial)
    if tenancy is None or partial.has_admission_policies is not False:
        return
    broken = [promise for promise in Promise if promise not in tenancy.accept_unenforced]
    if broken:
        yield ConfigError(
            path=("teams",),
            message="this cluster has no ValidatingAdmissionPolicy, and nothing would hold these promises to teams: "
            + listed(broken),
            expected="Kubernetes 1.30 or later with that API on, or no teams, or each of these promises in "
            + key(_ACCEPT),
            hint=f"to go without them, set {key(_ACCEPT)} to [{listed(Promise)}]",
        )


def warnings(partial: PartialSettings) -> list[str]:
    """Return which promises to teams nothing holds, by the settings' own word."""
    tenancy = _tenancy(partial)
    if tenancy is None or not tenancy.accept_unenforced:
        return []
    accepted = listed(tenancy.accept_unenforced)
    if partial.has_admission_policies is not False:
        return [f"{key(_ACCEPT)} has no effect here, because the cluster enforces {accepted}"]
    return [f"nothing holds these promises to teams on this cluster, as {key(_ACCEPT)} accepts: {accepted}"]


def unenforced(partial: PartialSettings) -> Sequence[str]:
    """Return the promises that nothing holds to the teams of this cluster.

    All of them, which have been accepted by then, or those about operators that somebody else brings.
    """
    if _tenancy(partial) is None:
        return ()
    if partial.has_admission_policies is False:
        return tuple(str(promise) for promise in Promise)
    own = partial.target is None or partial.target.installs_operators(partial)
    return () if own else tuple(str(promise) for promise in Promise.of_operators())


def _tenancy(partial: PartialSettings) -> TenancySettings | None:
    """Return the section where there are to be teams."""
    return partial.section(TenancySettings) if has_teams(partial) else None
