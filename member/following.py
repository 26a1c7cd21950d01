"""Follow a job until it ends: its state, then its output."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from member.session import MemberError, Session
from member.state import Found, Report, State, find, pods, report
from runner.report import message

EVERY: Final = 2.0
"""Seconds between two looks at the job."""
_INDEX: Final = "batch.kubernetes.io/job-completion-index"
"""Label of the pods of an Indexed Job. It is missing before Kubernetes 1.28."""


def submitted(session: Session, name: str, seconds: float) -> Report:
    """Return the report on a job, after Kueue has decided about it or this many seconds have passed."""
    deadline = time.monotonic() + seconds
    while True:
        found = find(session, name)
        has_decision = found.workload is not None and (found.workload.get("status") or {}).get("conditions")
        if has_decision or time.monotonic() > deadline:
            return report(session, found)
        time.sleep(0.5)


def follow(session: Session, name: str, tell: Callable[[str], None], out: Callable[[str], None]) -> State:
    """Return the final state of a job. Raises MemberError if it is deleted meanwhile.

    tell: gets each change of the state. out: gets the lines of the first pod's output.
    """
    told, read = "", set[str]()
    while True:
        found = find(session, name)
        now = report(session, found)
        if now.text() != told:
            told = now.text()
            tell(told)
        if now.state.ended:
            return now.state
        pod = next((each for each in pods(session, found) if each["status"].get("phase") != "Pending"), None)
        if pod is not None and pod["metadata"]["uid"] not in read:
            read.add(pod["metadata"]["uid"])
            try:
                _print(session, pod, out, follow=True)
            except (ApiException, HTTPError) as error:
                tell(f"the output of {pod['metadata']['name']} cannot be read: {_reason(error)}")
        time.sleep(EVERY)


def logs(session: Session, found: Found, rank: int, out: Callable[[str], None], *, follow: bool) -> None:
    """Print the output of one pod of a job. Raises MemberError if the job has no such pod."""
    every = pods(session, found)
    pod = next((each for index, each in enumerate(every) if _rank(each, index) == rank), None)
    if pod is None:
        raise MemberError(f"{found.name} has no pod {rank} now, of {len(every)} pods: `mlbatch why {found.name}`")
    try:
        _print(session, pod, out, follow=follow)
    except ApiException as error:
        raise MemberError(f"the output of {pod['metadata']['name']} cannot be read: {_reason(error)}") from error


def _rank(pod: Mapping[str, Any], index: int) -> int:
    return int((pod["metadata"].get("labels") or {}).get(_INDEX, index))


def _print(session: Session, pod: Mapping[str, Any], out: Callable[[str], None], *, follow: bool) -> None:
    for line in session.log(pod["metadata"]["name"], pod["spec"]["containers"][0]["name"], follow=follow):
        out(line)


def _reason(error: Exception) -> str:
    return message(error) if isinstance(error, ApiException) else str(error)
