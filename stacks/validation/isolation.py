"""Checks that the cluster has the admission policies that enforce the promises to teams."""

from collections.abc import Iterator, Sequence

from components.job_kinds import JOB_SET, PYTORCH_JOB, RAY_CLUSTER, TRAIN_JOB
from components.tenancy.promises import Promise
from stacks.config.errors import ConfigError, key, listed
from stacks.derived.partial import PartialSettings
from stacks.settings.tenancy import TenancySettings
from stacks.validation.network import has_teams

_ACCEPT = ("tenancy", "acceptUnenforced")
_JOBS = frozenset(kind.resource for kind in (JOB_SET, PYTORCH_JOB, RAY_CLUSTER, TRAIN_JOB))
"""Definitions that tell that an operator of jobs is installed."""


def check(partial: PartialSettings, tenancy: TenancySettings) -> Iterator[ConfigError]:
    """Yield the promises that a cluster without admission policies cannot enforce, except the accepted ones."""
    if not has_teams(partial) or partial.has_admission_policies is not False:
        return
    broken = [promise for promise in Promise if promise not in tenancy.accept_unenforced]
    if broken:
        yield ConfigError(
            ("teams",),
            "this cluster has no ValidatingAdmissionPolicy and cannot enforce these promises to teams: "
            + listed(broken),
            f"to continue without them, set {key(_ACCEPT)} to [{listed(Promise)}]",
            expected="Kubernetes 1.30 or later with that API on, or no teams, or all of these promises in "
            + key(_ACCEPT),
        )


def warnings(partial: PartialSettings, tenancy: TenancySettings) -> list[str]:
    """Return a warning about the promises that the settings give up."""
    if not has_teams(partial) or not tenancy.accept_unenforced:
        return []
    accepted = listed(tenancy.accept_unenforced)
    if partial.has_admission_policies is not False:
        return [f"{key(_ACCEPT)} has no effect here, because the cluster enforces {accepted}"]
    return [f"this cluster does not enforce these promises to teams, as {key(_ACCEPT)} accepts: {accepted}"]


def unenforced(partial: PartialSettings) -> Sequence[str]:
    """Return the promises to teams that this cluster does not enforce.

    Without admission policies these are all promises. Otherwise they are those about operators that the stack does
    not install.
    """
    if not has_teams(partial):
        return ()
    if partial.has_admission_policies is False:
        return tuple(str(promise) for promise in Promise)
    if partial.target is not None and not partial.target.installs_operators(partial):
        return tuple(str(promise) for promise in Promise.of_operators())
    lost = [Promise.KUEUE_SCOPE] if partial.running_kueue is not None else []
    brings = partial.target is not None and bool(partial.target.brings(partial))
    if brings or (partial.facts is not None and not _JOBS.isdisjoint(partial.facts.definitions)):
        lost.append(Promise.JOB_OPERATOR_SCOPE)
    return tuple(map(str, lost))
