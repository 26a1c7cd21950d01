"""`mlbatch submit`, `run`, `why`, `logs` and `cancel`: a team member's own jobs, with the member's rights."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException
from urllib3.exceptions import HTTPError

from ask.manifest import ManifestError, read_objects, text_of
from cli.ending import FINE, FOUND, failed, interrupted
from member import following, manifests, training
from member.session import MemberError, Session, connect
from member.state import State, find, listed, report
from member.training import Training
from runner.report import message, table

DECISION: Final = 10.0
"""Seconds that Kueue usually takes to decide about a new job, at most."""


@dataclass(frozen=True)
class Member:
    """The options that all subcommands of members have."""

    kubeconfig: Path | None
    context: str | None
    team: str | None
    user: str | None

    def act(self, action: Callable[[Session], int]) -> int:
        """Return the exit code of an action in the team's namespace, or of its failure."""
        try:
            return action(connect(self.kubeconfig, self.context, self.team, self.user))
        except ConfigException as error:
            return failed(f"the kubeconfig cannot be used: {error}")
        except (MemberError, ManifestError, OSError) as error:
            return failed(error)
        except ApiException as error:
            return failed(f"the cluster rejects the request: {' '.join(message(error).split())}")
        except HTTPError as error:
            return failed(f"the cluster does not answer as expected: {error}")
        except KeyboardInterrupt:
            return interrupted()


def submit(member: Member, file: str, *, follow: bool, dry_run: bool) -> int:
    """Submit the job of a file; return the exit code."""
    return _submit(member, lambda: read_objects(text_of(file)), follow=follow, dry_run=dry_run)


def run(
    member: Member,
    options: Mapping[str, Any],
    variables: Sequence[str],
    volumes: Sequence[str],
    *,
    follow: bool,
    dry_run: bool,
) -> int:
    """Submit the job of a command; return the exit code. options: fields of `Training`."""

    def read() -> Sequence[dict[str, Any]]:
        args = Training(**options, variables=training.variables(variables), volumes=training.volumes(volumes))
        return training.objects(args)

    return _submit(member, read, follow=follow, dry_run=dry_run)


def _submit(member: Member, read: Callable[[], Sequence[dict[str, Any]]], *, follow: bool, dry_run: bool) -> int:
    def act(session: Session) -> int:
        objects = read()
        job = manifests.job_of(objects, session.team, session.queue(), pod_groups=session.has_pod_groups())
        files = manifests.files(objects, job.name)
        session.check(job, files)
        if dry_run:
            print(yaml.safe_dump_all([*files, job.document], sort_keys=False), end="")
            return FINE
        session.submit(job, files)
        print(f"submitted {session.team}/{job.name} to {job.queue}", flush=True)
        if follow:
            return _follow(session, job.name, 0)
        print(following.submitted(session, job.name, DECISION).text())
        print(f"Follow it with `mlbatch logs {job.name} --follow`. Stop it with `mlbatch cancel {job.name}`.")
        return FINE

    return member.act(act)


def why(member: Member, name: str | None, output: str) -> int:
    """Print the state of one job or of all jobs; return the exit code, 1 if the job does not run."""

    def act(session: Session) -> int:
        if name is None:
            header = ("JOB", "STATE", "GPUS", "POSITION", "WAITS FOR")
            rows = listed(session)
            content = [dict(zip(map(str.lower, header), row, strict=True)) for row in rows]
            print(json.dumps(content, indent=2) if output == "json" else table(f"Jobs of {session.team}", header, rows))
            return FINE
        found = report(session, find(session, name))
        print(json.dumps(found.content(), indent=2, ensure_ascii=False) if output == "json" else found.text())
        return FINE if found.state in (State.RUNNING, State.SUCCEEDED) else FOUND

    return member.act(act)


def logs(member: Member, name: str, rank: int, *, follow: bool) -> int:
    """Print a job's output; return the exit code, 1 if a followed job fails."""

    def act(session: Session) -> int:
        if follow:
            return _follow(session, name, rank)
        following.logs(session, find(session, name), rank, print)
        return FINE

    return member.act(act)


def cancel(member: Member, name: str) -> int:
    """Delete a job; return the exit code."""

    def act(session: Session) -> int:
        found = find(session, name)
        session.cancel(found.kind, name)
        print(f"{session.team}/{name} is being deleted. Its GPUs are free when its pods have ended.")
        return FINE

    return member.act(act)


def _follow(session: Session, name: str, rank: int) -> int:
    """Follow a job until it ends. Return the exit code, 1 if it fails. An interruption does not stop the job."""
    try:
        state = following.follow(session, name, rank, lambda text: print(text, file=sys.stderr, flush=True), _line)
    except KeyboardInterrupt:
        return interrupted(f"the job goes on. Follow it again with `mlbatch logs {name} --follow`")
    return FINE if state is State.SUCCEEDED else FOUND


def _line(text: str) -> None:
    print(text, flush=True)
