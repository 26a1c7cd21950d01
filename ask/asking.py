"""Ask about a job on a cluster that was read: choose the user, check that the replica can decide, get the answer."""

import sys
from dataclasses import replace
from typing import Final

from ask import versions
from ask.answer import Answer
from ask.content import APPWRAPPER as WRAPPING
from ask.content import KUEUE, runs
from ask.manifest import Job, ManifestError, check_resources
from ask.question import Question
from ask.replica import Replica, ReplicaError
from ask.source import Source
from components import names
from components.job_kinds import APPWRAPPER

SOMEBODY: Final = "somebody"
"""User name for a team whose members are known only by a group."""


def ask(
    standing: Replica, source: Source, job: Job, team: str, user: str | None = None, group: str | None = None
) -> Answer:
    """Return what would happen to a job on a cluster that was read.

    user, group: who submits it, by default a member of the team. Raises ManifestError for a team, queue or user that
    does not exist, VersionError and ReplicaError.
    """
    if team not in source.teams:
        raise ManifestError(f"there is no team {team}; there are {', '.join(source.teams) or 'none'}")
    queues = [item["metadata"]["name"] for item in source.all("LocalQueue") if item["metadata"]["namespace"] == team]
    if job.queue not in queues:
        raise ManifestError(f"team {team} has no queue {job.queue}; it has {', '.join(queues) or 'none'}")
    member = _member(source, team, job.queue, user, group)
    check_resources(job, source.covered())
    _check_controllers(source, job)
    differences = versions.differences(source)
    with standing.turn(tell):
        question = Question(standing.stand(source, tell), job, team, *member)
        answer = question.ask()
        if not question.changed:
            standing.keep()
    return replace(answer, differences=differences)


def _member(source: Source, team: str, queue: str, user: str | None, group: str | None) -> tuple[str, str | None]:
    """Return the user and the group that submit a job, by default a user who may use its queue.

    A question with a group alone gets a user who has only the group's rights.
    """
    for given in (user, group):
        if given is not None and not (given.isprintable() and given.strip()):
            raise ManifestError(f"{given!r} cannot be a user or a group: write a name of printable characters")
    if user is not None or group is not None:
        return user or SOMEBODY, group
    users, groups = source.members(team), source.members(team, "Group")
    owners = source.queue_owners(team)
    users = [each for each in users if owners.get(each, names.LOCAL_QUEUE) == queue]
    if users:
        return users[0], None
    if not groups:
        raise ManifestError(f"team {team} has no member who could submit the job: name one with --user")
    return SOMEBODY, groups[0]


def _check_controllers(source: Source, job: Job) -> None:
    """Reject a kind that the cluster does not serve, or whose controller does not run on the replica."""
    known = [item["spec"]["names"]["kind"] for item in source.all("CustomResourceDefinition")]
    if job.kind not in known:
        raise ManifestError(
            f"the cluster does not serve {job.kind}: write the job as an AppWrapper that contains it, or ask an "
            f"administrator to install the operator of {job.kind}"
        )
    deciding = {"Kueue": KUEUE, **({APPWRAPPER.kind: WRAPPING} if job.kind == APPWRAPPER.kind else {})}
    for name, parts in deciding.items():
        if not runs(source, parts):
            raise ReplicaError(
                f"the cluster runs {name} from an unknown image or not at all, so this machine cannot predict its "
                f"answer: {versions.INSTEAD}"
            )


def tell(line: str) -> None:
    """Print a progress message, which is not part of the answer."""
    print(line, file=sys.stderr)
