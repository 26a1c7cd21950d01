"""`mlbatch ask`: whether a job would run, before it is submitted."""

import os
from collections.abc import Callable
from pathlib import Path

from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from ask.answer import shown
from ask.asking import ask, tell
from ask.manifest import ManifestError, read, text_of
from ask.replica import FOLDER, Replica, ReplicaError
from ask.source import SourceError
from ask.source import read as read_cluster
from ask.versions import VersionError
from cli.ending import FINE, FOUND, failed, interrupted
from emulator.cluster import ClusterError
from emulator.paths import Paths
from emulator.toolchain import ToolchainError
from runner.environment import past_proxies
from runner.files import UMASK
from runner.report import message


def run(
    manifest: str | None,
    team: str,
    user: str | None,
    group: str | None,
    kubeconfig: Path | None,
    context: str | None,
    output: str,
    paths: Paths | None = None,
) -> int:
    """Print the answer. Return the exit code, 1 if the job would not run now.

    paths: folder of the replica. Default: this checkout's.
    """

    def answer(replica: Replica) -> int:
        job = read(_text(manifest), _team(team))
        found = ask(replica, read_cluster(kubeconfig, context), job, team, user, group)
        print(found.json() if output == "json" else found.text())
        return FINE if found.runs else FOUND

    return _with_replica(answer, paths)


def stop(paths: Paths | None = None) -> int:
    """Stop the replica and delete its copy of the cluster; return the exit code."""

    def end(replica: Replica) -> int:
        with replica.turn(tell):
            replica.stop()
        return FINE

    return _with_replica(end, paths)


def _with_replica(act: Callable[[Replica], int], paths: Paths | None) -> int:
    """Return the exit code of an action on the replica, or of its failure."""
    os.umask(UMASK)
    os.environ.update(past_proxies())
    try:
        return act(Replica(paths or Paths.of().of_stack(FOLDER)))
    except (ClusterError, ToolchainError) as error:
        return failed(error)
    except (ManifestError, OSError, ReplicaError, SourceError, VersionError) as error:
        return failed(shown(str(error)))
    except (ApiException, HTTPError) as error:
        return failed(f"the replica does not answer as expected: {shown(' '.join(message(error).split()))}")
    except KeyboardInterrupt:
        return interrupted()


def _team(team: str) -> str:
    if not team:
        raise ManifestError("name the team that submits the job with --team")
    return team


def _text(manifest: str | None) -> str:
    if manifest is None:
        raise ManifestError("name the file of the job, or - for the standard input")
    return text_of(manifest)
