"""Whether a job would run, asked before it is submitted; what stands in its way, and what helps.

python -m ask job.yaml --team blue [--user alice] [--kubeconfig FILE] [--context NAME] [--json]
python -m ask --stop

The cluster is the one that kubectl would take, or that the options name, and is only read. The job is tried on a local
replica of its queues, nodes, policies and workloads, with the real controllers, which stays for the next question.

Exit code: 0 when it would run now, 3 when it would wait, 4 when it can never run, 5 when it would be refused; 1 when
the question cannot be answered.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import DynamicApiError
from urllib3.exceptions import HTTPError

from ask import versions
from ask.answer import TROUBLE, Answer, shown
from ask.content import APPWRAPPER as WRAPPING
from ask.content import KUEUE, runs
from ask.manifest import Job, ManifestError, check_resources, read
from ask.question import Question
from ask.reading import MOST_OF_A_FILE
from ask.replica import FOLDER, Replica, ReplicaError
from ask.source import Source, SourceError
from ask.source import read as read_cluster
from ask.versions import VersionError
from components import names
from components.job_kinds import APPWRAPPER
from emulator.cluster import ClusterError
from emulator.paths import Paths
from emulator.toolchain import ToolchainError
from runner.environment import past_proxies
from runner.files import UMASK

SOMEBODY: Final = "somebody"
"""The name of a member whom a team knows by a group alone."""


def main(arguments: Sequence[str] | None = None, paths: Paths | None = None) -> int:
    """Print the answer; return the process's exit code. paths: where the replica is; default: this checkout's."""
    options = _parser().parse_args(arguments)
    os.umask(UMASK)
    os.environ.update(past_proxies())
    standing = Replica(paths or Paths.of().of_stack(FOLDER))
    try:
        if options.stop:
            with standing.turn(_tell):
                standing.stop()
            return 0
        job = read(_text(options.manifest), _team(options.team))
        source = read_cluster(options.kubeconfig, options.context)
        answer = ask(standing, source, job, options.team, options.user, options.group)
    except (ClusterError, ToolchainError) as error:
        _tell(f"error: {error}")
        return TROUBLE
    except (ManifestError, OSError, ReplicaError, SourceError, VersionError) as error:
        _tell(f"error: {shown(str(error))}")
        return TROUBLE
    except (ApiException, DynamicApiError, HTTPError) as error:
        _tell(f"error: the replica does not answer as expected: {shown(' '.join(str(error).split()))}")
        return TROUBLE
    except KeyboardInterrupt:
        _tell("interrupted")
        return 130
    print(answer.json() if options.json else answer.text())
    return answer.code


def ask(
    standing: Replica, source: Source, job: Job, team: str, user: str | None = None, group: str | None = None
) -> Answer:
    """Return what would become of a job on a cluster that was read.

    user, group: who submits it, by default a member of the team. Raises ManifestError for what cannot be meant,
    VersionError and ReplicaError.
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
    with standing.turn(_tell):
        question = Question(standing.stand(source, _tell), job, team, *member)
        answer = question.ask()
        if not question.changed:
            standing.keep()
    return replace(answer, differences=differences)


def _member(source: Source, team: str, queue: str, user: str | None, group: str | None) -> tuple[str, str | None]:
    """Return the user and the group in whose name a job is submitted: by default one who may use its queue.

    Who asks for a group alone asks for somebody who has no rights but the group's.
    """
    for given in (user, group):
        if given is not None and not (given.isprintable() and given.strip()):
            raise ManifestError(f"nobody can sign in as {given!r}: write a name of printable characters")
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
    """Refuse a question about a kind that the cluster does not know, or about which nobody decides on the replica."""
    known = [item["spec"]["names"]["kind"] for item in source.all("CustomResourceDefinition")]
    if job.kind not in known:
        raise ManifestError(
            f"the cluster knows no {job.kind}: wrap the job in an AppWrapper, or have its operator added"
        )
    deciding = {"Kueue": KUEUE, **({APPWRAPPER.kind: WRAPPING} if job.kind == APPWRAPPER.kind else {})}
    for name, parts in deciding.items():
        if not runs(source, parts):
            raise ReplicaError(
                f"no Deployment of the cluster runs {name} in an image that a program of this machine stands for: "
                f"{versions.INSTEAD}"
            )


def _tell(line: str) -> None:
    print(line, file=sys.stderr)


def _team(team: str) -> str:
    if not team:
        raise ManifestError("name the team in whose queue the job is to be, with --team")
    return team


def _text(manifest: str | None) -> str:
    if manifest is None:
        raise ManifestError("name the file of the job, or - for the standard input")
    try:
        return _read(manifest).decode()
    except UnicodeDecodeError as error:
        raise ManifestError(f"{manifest} is no text file: {error}") from error


def _read(manifest: str) -> bytes:
    """Return a file's bytes, or as many of them as show that it is too large."""
    if manifest == "-":
        return sys.stdin.buffer.read(MOST_OF_A_FILE + 1)
    with Path(manifest).open("rb") as file:
        return file.read(MOST_OF_A_FILE + 1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m ask", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("manifest", nargs="?", help="the job's file; - for the standard input")
    parser.add_argument("--team", default="", help="in whose queue")
    parser.add_argument("--user", help="who submits it; default: a member of the team")
    parser.add_argument("--group", help="a group that the user is in, where the team has that as a member")
    parser.add_argument("--kubeconfig", type=Path, help="default: $KUBECONFIG, else ~/.kube/config")
    parser.add_argument("--context", help="default: the file's current context")
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    parser.add_argument("--stop", action="store_true", help="stop the replica, and answer nothing")
    return parser


if __name__ == "__main__":
    sys.exit(main())
