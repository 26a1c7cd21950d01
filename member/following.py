"""Follow a job until it ends: its state, then its output."""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError, ReadTimeoutError

from member.session import Document, MemberError, Session
from member.state import Found, Report, State, find, pods, report
from runner.report import message

EVERY: Final = 2.0
"""Seconds between two looks at the job."""
_INDEX: Final = "batch.kubernetes.io/job-completion-index"
"""Label of the pods of an Indexed Job. It is missing before Kubernetes 1.28."""
_STAMP: Final = re.compile(r"(\d{4}-\d\d-\d\dT\S+) ")
_TOO_MANY: Final = 429


def submitted(session: Session, name: str, seconds: float) -> Report:
    """Return the report on a job, after Kueue has decided about it or this many seconds have passed."""
    deadline = time.monotonic() + seconds
    while True:
        found = find(session, name)
        has_decision = found.workload is not None and (found.workload.get("status") or {}).get("conditions")
        if has_decision or time.monotonic() > deadline:
            return report(session, found)
        time.sleep(0.5)


def follow(session: Session, name: str, rank: int, tell: Callable[[str], None], out: Callable[[str], None]) -> State:
    """Return the final state of a job. Raises MemberError if it is deleted meanwhile.

    tell: gets each change of the state, and what cannot be read now. out: gets the lines of one pod's output.
    """
    follower = _Follower(session, name, rank, tell, out)
    while True:
        state = follower.look()
        if state is not None and state.ended:
            return state
        time.sleep(EVERY)


@dataclass
class _Follower:
    """Reads a job again and again.

    told: the last text, by its topic. since: time of the last line, by the pod's UID. read: UIDs of pods whose output
    is read to its end.
    """

    session: Session
    name: str
    rank: int
    tell: Callable[[str], None]
    out: Callable[[str], None]
    told: dict[str, str] = field(default_factory=dict)
    since: dict[str, str] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)

    def look(self) -> State | None:
        """Tell what is new, and return the job's state. None if the cluster does not answer now."""
        try:
            found = find(self.session, self.name)
            now = report(self.session, found)
            pod = _pod(self.session, found, self.rank)
        except (ApiException, HTTPError) as error:
            if not self.told or not _passes(error):
                raise
            self._say("cluster", f"the cluster does not answer, trying again: {_reason(error)}")
            return None
        self._say("state", now.text())
        if pod is None and now.state is State.RUNNING:
            self._say("output", f"{self.name} has no pod {self.rank} now. --rank counts from 0")
        if pod is not None and pod["status"].get("phase") != "Pending" and pod["metadata"]["uid"] not in self.read:
            self._read(pod, ended=now.state.ended or pod["status"].get("phase") in ("Succeeded", "Failed"))
        return now.state

    def _read(self, pod: Document, *, ended: bool) -> None:
        """Print a pod's output until it ends, breaks or is silent for a while. The next look continues after it."""
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        since = self.since.get(uid)
        query = {} if ended else {"follow": "true"}
        query |= {"sinceTime": since} if since else {}  # the API server reads whole seconds of it (metav1.Time)
        try:
            for line in _output(self.session, pod, timestamps="true", **query):
                stamp = _STAMP.match(line)  # the kubelet's own messages have none
                if stamp and since and _moment(stamp[1]) <= _moment(since):
                    continue
                if stamp:
                    self.since[uid] = stamp[1]
                self.out(line[stamp.end() :] if stamp else line)
        except (ApiException, HTTPError) as error:
            if not _was_silent(error):
                self._say("output", f"the output of {name} cannot be read now: {_reason(error)}")
        else:
            self.read |= {uid} if ended else set()

    def _say(self, topic: str, text: str) -> None:
        if self.told.get(topic) != text:
            self.told[topic] = text
            self.tell(text)


def logs(session: Session, found: Found, rank: int, out: Callable[[str], None]) -> None:
    """Print the output of one pod of a job until now. Raises MemberError if the job has no such pod."""
    pod = _pod(session, found, rank)
    if pod is None:
        count = len(pods(session, found))
        raise MemberError(f"{found.name} has no pod {rank} now, of {count} pods: `mlbatch why {found.name}`")
    try:
        for line in _output(session, pod):
            out(line)
    except ApiException as error:
        raise MemberError(f"the output of {pod['metadata']['name']} cannot be read: {_reason(error)}") from error


def _pod(session: Session, found: Found, rank: int) -> Document | None:
    """Return the newest pod of a rank. Kubernetes may create a pod again before the former one is deleted."""
    of_rank = [pod for index, pod in enumerate(pods(session, found)) if _rank(pod, index) == rank]
    return max(of_rank, key=lambda pod: str(pod["metadata"].get("creationTimestamp")), default=None)


def _rank(pod: Mapping[str, Any], index: int) -> int:
    return int((pod["metadata"].get("labels") or {}).get(_INDEX, index))


def _output(session: Session, pod: Document, **query: str) -> Iterator[str]:
    return session.log(pod["metadata"]["name"], pod["spec"]["containers"][0]["name"], **query)


def _moment(stamp: str) -> tuple[datetime, str]:
    """Return a time for comparisons. A datetime has microseconds, the text has nanoseconds."""
    return datetime.fromisoformat(stamp), stamp


def _passes(error: ApiException | HTTPError) -> bool:
    """Return whether the same request may succeed later."""
    return isinstance(error, HTTPError) or (error.status or 500) >= 500 or error.status == _TOO_MANY


def _was_silent(error: Exception) -> bool:
    """Return whether the error is a container without output for a while, before or after its first line."""
    return any(isinstance(each, ReadTimeoutError) for each in (error, getattr(error, "reason", None)))


def _reason(error: Exception) -> str:
    return message(error) if isinstance(error, ApiException) else str(error)
