"""Rules for teams, their quotas, and the sample job."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from components import names
from components.kubernetes.quantity import ZERO, Quantity
from components.tenancy.quota import Quota
from stacks.problems import Path, Problem, key, listed
from stacks.quotas import slack_quota
from stacks.reading import Parts
from stacks.rules import admission
from stacks.settings.tenancy import TeamSettings

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_LENGTH: Final = 63
_SUBDOMAIN_LENGTH: Final = 253
_LABEL_RULE: Final = (
    f"at most {_LABEL_LENGTH} of a-z, 0-9 and -, with a letter or digit first and last (RFC 1123 label)"
)
_RESERVED: Final = frozenset({"default", names.SYSTEM_NAMESPACE})
_RESERVED_PREFIXES: Final = ("kube-", "openshift-")
_ALWAYS_NEEDED: Final = (names.CPU, names.MEMORY, names.PODS)
"""What every pod uses: a queue that has none of it and may borrow none admits nothing."""


def check(parts: Parts) -> Iterator[Problem]:
    """Yield what is wrong with teams, quotas and the sample job."""
    rules: tuple[Callable[[Parts], Iterator[Problem]], ...] = (
        _team_names,
        _team_users,
        _team_amounts,
        _cohort,
        _limits,
        _capacity,
        _gang,
    )
    for rule in rules:
        yield from rule(parts)


def _teams(parts: Parts) -> Iterator[tuple[int, TeamSettings]]:
    return ((index, team) for index, team in enumerate(parts.teams) if team is not None)


def _team_names(parts: Parts) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, name in enumerate(parts.team_names):
        if not isinstance(name, str):
            continue
        path: Path = ("teams", index, "name")
        yield from _label(path, name)
        if name in _RESERVED or name.startswith(_RESERVED_PREFIXES):
            yield Problem(
                path=path,
                value=name,
                wrong="a team's name is its namespace's, and this namespace belongs to the cluster",
                allowed=f"any but {listed(sorted(_RESERVED))}, and none that starts with {listed(_RESERVED_PREFIXES)}",
                fix="give the team another name",
            )
        if name == names.SLACK_TEAM:
            yield Problem(
                path=path,
                value=name,
                wrong=f"the team's queue would be {names.SLACK_QUEUE}, which is the slack queue's name",
                allowed=f"any name but {names.SLACK_TEAM}",
                fix="give the team another name; the slack quota is set in mlbatch:queueing.slack",
            )
        if name in first:
            yield Problem(
                path=path,
                value=name,
                wrong=f"{key(('teams', first[name], 'name'))} is {name!r} too",
                allowed="a name that no other team has",
                fix="give one of the two another name, or make one team of them",
            )
        first.setdefault(name, index)


def _label(path: Path, name: str) -> Iterator[Problem]:
    if _LABEL.fullmatch(name) and len(name) <= _LABEL_LENGTH:
        return
    simpler = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_LABEL_LENGTH].strip("-")
    too_long = f"it has {len(name)} characters" if len(name) > _LABEL_LENGTH else "it has other characters"
    yield Problem(
        path=path,
        value=name,
        wrong=f"Kubernetes would reject this name: {too_long}",
        allowed=_LABEL_RULE,
        fix=f"for example {simpler!r}" if simpler else "write a name of such characters",
    )


def _team_users(parts: Parts) -> Iterator[Problem]:
    for index, team in _teams(parts):
        for position, user in enumerate(team.users):
            path: Path = ("teams", index, "users", position)
            if not user.strip():
                yield Problem(
                    path=path,
                    value=user,
                    wrong="a user's name is not empty",
                    allowed="the name that the cluster's identity provider gives the user",
                    fix="write the name, or remove the entry",
                )
            elif user.startswith("system:"):
                yield Problem(
                    path=path,
                    value=user,
                    wrong="names that start with system: belong to Kubernetes",
                    allowed="the name that the cluster's identity provider gives the user",
                    fix="write the user's own name",
                )
            elif user in team.users[:position]:
                yield Problem(
                    path=path,
                    value=user,
                    wrong="the team has this user already",
                    allowed="each user once",
                    fix="remove the second entry",
                )


def _cohort(parts: Parts) -> Iterator[Problem]:
    if parts.queueing is None:
        return
    cohort = parts.queueing.cohort
    if not _SUBDOMAIN.fullmatch(cohort) or len(cohort) > _SUBDOMAIN_LENGTH:
        yield Problem(
            path=("queueing", "cohort"),
            value=cohort,
            wrong="Kubernetes would reject this name",
            allowed=f"at most {_SUBDOMAIN_LENGTH} of a-z, 0-9, - and ., with a letter or digit first and last",
            fix="for example 'default-cohort'",
        )


def _team_amounts(parts: Parts) -> Iterator[Problem]:
    for index, team in _teams(parts):
        if (team.quota is None) == (team.share is None):
            yield Problem(
                path=("teams", index),
                wrong="a team has either a quota of its own or a share of the nodes"
                + (", and this one has both" if team.quota else ", and this one has neither"),
                allowed="one of the keys quota and share",
                fix="remove one of the two" if team.quota else "add share: 1, or a quota",
            )
    queueing = parts.queueing
    if queueing is not None and not queueing.enabled and parts.team_names:
        yield Problem(
            path=("queueing", "enabled"),
            value=False,
            wrong="there are teams, and teams share the cluster through queues",
            allowed="true, or no teams",
            fix="remove the key, or the teams",
        )


def _limits(parts: Parts) -> Iterator[Problem]:
    quotas = admission.quotas(parts)
    for index, team in _teams(parts):
        if team.name not in quotas:
            continue
        quota = quotas[team.name]
        borrowing = team.borrowing_limit.amounts()
        lending = team.lending_limit.amounts()
        for resource, limit in lending.items():
            if quota[resource] < limit:
                yield Problem(
                    path=("teams", index, "lendingLimit", resource),
                    value=str(limit),
                    wrong=f"the team cannot lend more than its quota of {quota[resource]}",
                    allowed=f"a quantity from 0 to {quota[resource]}",
                    fix="lower the limit, raise the quota, or remove the limit to lend everything that is idle",
                )
        for resource in _ALWAYS_NEEDED if team.quota else ():
            if not quota[resource].nano and borrowing.get(resource) == ZERO:
                yield Problem(
                    path=("teams", index, "quota", resource),
                    value=str(quota[resource]),
                    wrong=f"the team has no {resource} and may borrow none, so none of its jobs could ever run",
                    allowed="a quota above 0, or a borrowing limit above 0",
                    fix=f"raise the quota, or {key(('teams', index, 'borrowingLimit', resource))}",
                )


def _capacity(parts: Parts) -> Iterator[Problem]:
    """Hold MLBatch's rule that nominal quotas add up to no more than the cluster has (QUOTA_MAINTENANCE.md)."""
    pool = parts.pool
    if pool is None or parts.queueing is None:
        return
    amounts = admission.quotas(parts)
    quotas: list[tuple[str, Quota]] = [(names.SLACK_TEAM, slack_quota(parts.queueing, pool))]
    quotas += [(team.name, amounts[team.name]) for _, team in _teams(parts) if team.name in amounts]
    default = "" if parts.queueing.slack else " (slack is one node's worth unless mlbatch:queueing.slack is set)"
    for resource in names.RESOURCES:
        total = _sum(quota[resource] for _, quota in quotas)
        available = pool.resources[resource]
        if total <= available:
            continue
        parted = listed(f"{name} {quota[resource]}" for name, quota in quotas if quota[resource].nano)
        yield Problem(
            path=("teams",),
            value=f"{resource}: {total}",
            wrong=f"the quotas of {resource} add up to {total}, which is {total - available} more than the nodes have: "
            f"{parted}{default}",
            allowed=f"at most {available} together ({pool.count} nodes with {pool.shape.resources[resource]} each)",
            fix=f"lower quotas by {total - available}, or raise {admission.nodes_key(parts)}",
        )


def _gang(parts: Parts) -> Iterator[Problem]:
    gang = parts.samples.gang if parts.samples else None
    if gang is None or not gang.enabled:
        return
    yield from _label(("samples", "gang", "name"), gang.name)
    job = admission.Job(
        what="the gang", path=("samples", "gang"), size="pods", team=gang.team, pods=gang.pods, requests=gang.requests()
    )
    yield from admission.check(parts, job)
    members = {user: team.name for _, team in _teams(parts) for user in team.users}
    own = next((team.users for _, team in _teams(parts) if team.name == gang.team), None)
    if gang.user is not None and own is not None and gang.user not in own:
        other = members.get(gang.user)
        yield Problem(
            path=("samples", "gang", "user"),
            value=gang.user,
            wrong=f"this user is in team {other}, not in {gang.team}" if other else "this user is in no team",
            allowed=listed(own),
            fix=f"add {gang.user} to the users of {gang.team}, or name one of those",
        )


def _sum(amounts: Iterator[Quantity]) -> Quantity:
    return sum(amounts, start=ZERO)
