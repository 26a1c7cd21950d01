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
from pathlib import Path
from typing import Final

from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import DynamicApiError
from urllib3.exceptions import HTTPError

from ask.answer import TROUBLE, Answer
from ask.manifest import Job, ManifestError, check_resources, read
from ask.question import Question
from ask.replica import FOLDER, Replica, ReplicaError, replica
from ask.source import Source, SourceError
from ask.source import read as read_cluster
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
    try:
        with replica(paths or Paths.of().of_stack(FOLDER)) as standing:
            if options.stop:
                standing.stop()
                return 0
            job = read(_text(options.manifest), options.team)
            source = read_cluster(options.kubeconfig, options.context)
            answer = ask(standing, source, job, options.team, options.user, options.group)
    except (ClusterError, ManifestError, OSError, ReplicaError, SourceError, ToolchainError) as error:
        print(f"error: {error}", file=sys.stderr)
        return TROUBLE
    except (ApiException, DynamicApiError, HTTPError) as error:
        print(f"error: the replica does not answer as expected: {error}", file=sys.stderr)
        return TROUBLE
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    print(answer.json() if options.json else answer.text())
    return answer.code


def ask(
    standing: Replica, source: Source, job: Job, team: str, user: str | None = None, group: str | None = None
) -> Answer:
    """Return what would become of a job on a cluster that was read.

    user, group: who submits it, by default a member of the team. Raises ManifestError for what cannot be meant, and
    ReplicaError.
    """
    if team not in source.teams:
        raise ManifestError(f"there is no team {team}; there are {', '.join(source.teams) or 'none'}")
    queues = [item["metadata"]["name"] for item in source.all("LocalQueue") if item["metadata"]["namespace"] == team]
    if job.queue not in queues:
        raise ManifestError(f"team {team} has no queue {job.queue}; it has {', '.join(queues) or 'none'}")
    users, groups = source.members(team), source.members(team, "Group")
    if user is None and not users:
        group = group or next(iter(groups), None)
        if group is None:
            raise ManifestError(f"team {team} has no member who could submit the job: name one with --user")
    check_resources(job, source.covered())
    client = standing.stand(source, lambda line: print(line, file=sys.stderr))
    question = Question(client, job, team, user or next(iter(users), SOMEBODY), group)
    try:
        return question.ask()
    finally:
        if question.changed:
            standing.forget()


def _text(manifest: str | None) -> str:
    if manifest is None:
        raise ManifestError("name the file of the job, or - for the standard input")
    if manifest == "-":
        return sys.stdin.read()
    try:
        return Path(manifest).read_text()
    except UnicodeDecodeError as error:
        raise ManifestError(f"{manifest} is no text file: {error}") from error


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
