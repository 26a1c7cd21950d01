"""The state of a team's jobs, and why a job does not run.

From the job, its Workload in Kueue, its place in the queue, its pods and their events.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from ask.messages import OF_JOB, POD_LABELS, PREEMPTING, lacks
from components.job_kinds import POD, RAY_CLUSTER, RAY_JOB, SUBMITTED, JobKind
from member.advice import action, too_large
from member.session import Document, MemberError, Session
from runner.report import condition, is_true, pod_gpus

_SHOWN: Final = 3
"""The most different problems of pods, and the most jobs in front, in a report."""
_STARTING: Final = ("ContainerCreating", "PodInitializing")
"""Reasons of a container that waits for its image, its volumes or an earlier container (Kubernetes,
`pkg/kubelet/kubelet_pods.go`)."""
_EXIT: Final = "exit code"


class State(StrEnum):
    """The state of a job.

    PENDING: has no quota. STARTING: has quota and waits for pods. UNHEALTHY: a pod failed, and AppWrapper restarts the
    job unless it recovers. STOPPED: Kueue does not start it again.
    """

    PENDING = "pending"
    STARTING = "starting"
    RUNNING = "running"
    UNHEALTHY = "unhealthy"
    RESTARTING = "restarting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"
    DELETING = "being deleted"

    @property
    def ended(self) -> bool:
        """Return whether the job has finished or is not started again."""
        return self in (State.SUCCEEDED, State.FAILED, State.STOPPED)


@dataclass(frozen=True)
class Report:
    """What a member gets to read about a job. facts: text by label."""

    job: str
    state: State
    facts: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """Return the report in lines."""
        return "\n".join([f"{self.job}: {self.state}", *(f"  {key}: {value}" for key, value in self.facts.items())])

    def content(self) -> dict[str, Any]:
        """Return the report for JSON."""
        return {"job": self.job, "state": str(self.state), **self.facts}


@dataclass(frozen=True)
class Found:
    """A job with its Workload, which is None until Kueue has created it."""

    kind: JobKind
    job: Document
    workload: Document | None

    @property
    def name(self) -> str:
        return str(self.job["metadata"]["name"])

    @property
    def phase(self) -> str:
        return str((self.job.get("status") or {}).get("phase") or "")


def find(session: Session, name: str) -> Found:
    """Return a job of the team; raises MemberError if it does not exist."""
    for kind in SUBMITTED:
        for job in session.items(kind, field_selector=f"metadata.name={name}"):
            if job["metadata"]["name"] == name:
                uid = job["metadata"]["uid"]
                workloads = session.queueing("workloads", label_selector=f"{OF_JOB}={uid}")
                return Found(kind, job, next(iter(workloads), None))
    raise MemberError(f"team {session.team} has no job {name}: `mlbatch why` lists its jobs")


def listed(session: Session) -> list[tuple[str, str, str, str, str]]:
    """Return name, state, GPUs, place in the queue and missing quota of each job, the oldest first."""
    workloads = {each["metadata"]["labels"].get(OF_JOB): each for each in session.queueing("workloads")}
    queues = {str(each["spec"].get("queueName")) for each in workloads.values() if not is_true(each, "QuotaReserved")}
    places = {item["metadata"]["name"]: item for queue in sorted(queues) for item in session.pending(queue)}
    found = [
        Found(kind, job, workloads.get(job["metadata"]["uid"])) for kind in SUBMITTED for job in session.items(kind)
    ]
    own = [each for each in found if not each.job["metadata"].get("ownerReferences")]
    rows = []
    for each in sorted(own, key=lambda each: str(each.job["metadata"]["creationTimestamp"])):
        workload = each.workload or {"metadata": {"name": ""}}
        place = places.get(workload["metadata"]["name"])
        position = str(int(place["positionInClusterQueue"]) + 1) if place else "-"
        gpus = str(_gpus(each.workload)) if each.workload else "-"
        said = _said(each)
        rows.append((each.name, str(_state(each, [])), gpus, position, too_large(said) or lacks(said) or "-"))
    return rows


def report(session: Session, found: Found) -> Report:
    """Return the state of a job and why it does not run."""
    job, name = f"{session.team}/{found.name}", found.name
    its_pods = pods(session, found) if _has_quota(found) else []
    state = _state(found, its_pods)
    if state is State.PENDING:
        facts = dict(_of_queue(session, found))
    elif state in (State.STARTING, State.RUNNING, State.UNHEALTHY, State.RESTARTING):
        facts = dict(_of_pods(session, found, its_pods))
    else:
        facts = {key: text for key, text in (("because", _end(found)), ("pods", _problems(its_pods))) if text}
    told = " ".join(facts.values())
    if todo := action(told, name):
        facts["to do"] = todo
    return Report(job, state, facts)


def pods(session: Session, found: Found) -> list[Document]:
    """Return the pods of a job, by name, and by the numbers in the names."""
    name, kind = found.name, found.kind
    if kind is RAY_JOB:
        name, kind = str((found.job.get("status") or {}).get("rayClusterName")), RAY_CLUSTER
    own = session.items(POD, label_selector=f"{POD_LABELS[kind.kind]}={name}")
    return sorted(own, key=lambda pod: _ordered(pod["metadata"]["name"]))


def _ordered(name: str) -> list[tuple[str, int]]:
    return [(text, int(number or 0)) for text, number in re.findall(r"(\D*)(\d*)", name)]


def _has_quota(found: Found) -> bool:
    """Return whether a job has quota. Kueue takes it back from an evicted job when its pods have ended."""
    workload = found.workload or {}
    return is_true(workload, "QuotaReserved") and not is_true(workload, "Evicted")


def _state(found: Found, its_pods: Sequence[Document]) -> State:
    finished = condition(found.workload or {}, "Finished")
    if found.phase in ("Succeeded", "Failed"):
        return State(found.phase.lower())
    if found.job["metadata"].get("deletionTimestamp"):
        return State.DELETING
    if finished and finished["status"] == "True":
        return State.FAILED if finished.get("reason") == "Failed" else State.SUCCEEDED
    if found.workload and found.workload["spec"].get("active") is False:
        return State.STOPPED
    if not _has_quota(found):
        return State.PENDING
    if found.phase == "Resetting":
        return State.RESTARTING
    problems = _problems(its_pods)
    if _trouble(found) or _EXIT in problems:
        return State.UNHEALTHY
    ready = any(is_true(item, "PodsReady") for item in (found.workload or {}, found.job))
    running = _running(its_pods) >= _wanted(found)
    return State.RUNNING if (ready or running) and not problems else State.STARTING


def _said(found: Found) -> str:
    """Return why Kueue does not give a job quota, empty if it has quota."""
    if _has_quota(found):
        return ""
    said = condition(found.workload or {}, "QuotaReserved")
    if said and said["status"] == "True":
        said = condition(found.workload or {}, "Evicted")
    return str(said["message"]) if said else "Kueue has not decided about the job yet"


def _of_queue(session: Session, found: Found) -> Iterator[tuple[str, str]]:
    said, workload = _said(found), found.workload
    if beyond := too_large(said):
        yield "too large", beyond
    elif missing := lacks(said):
        yield "waits for", missing
    if workload is not None:
        queue = str(workload["spec"].get("queueName"))
        if place := _place(session.pending(queue), workload["metadata"]["name"]):
            yield "position", place
    yield "because", said
    evicted = condition(workload or {}, "Evicted")
    if evicted and evicted["status"] == "True" and evicted["message"] != said and PREEMPTING not in said:
        yield "stopped before", f"{evicted['lastTransitionTime']}: {evicted['message']}"
    again = ((workload or {}).get("status") or {}).get("requeueState", {}).get("requeueAt")
    if again:
        yield "not before", str(again)


def _place(pending: Sequence[Mapping[str, Any]], name: str) -> str:
    """Return a job's place among the pending jobs of its team. Empty if Kueue does not tell."""
    order = [item["metadata"]["name"] for item in pending]
    if name not in order:
        return ""
    own = order.index(name)
    place = int(pending[own]["positionInClusterQueue"]) + 1
    ahead = [_owner(item) for item in pending[:own]]
    shown = ", ".join(ahead[-_SHOWN:]) + (" and others" if len(ahead) > _SHOWN else "")
    others = place - 1 - len(ahead)
    behind = [*([shown] if ahead else []), *([f"{others} of other users"] if others else [])]
    return f"{place} in the team's queue" + (f", behind {' and '.join(behind)}" if behind else "")


def _owner(item: Mapping[str, Any]) -> str:
    owners = item["metadata"].get("ownerReferences") or ()
    return str(owners[0]["name"] if owners else item["metadata"]["name"])


def _of_pods(session: Session, found: Found, its_pods: Sequence[Document]) -> Iterator[tuple[str, str]]:
    workload = found.workload or {}
    if not is_true(workload, "Admitted"):
        checks = (workload.get("status") or {}).get("admissionChecks") or ()
        waiting = [f"{each['name']}: {each.get('message') or each['state']}" for each in checks]
        yield "admission checks", "; ".join(waiting) or "not ready"
        return
    nodes = Counter(str(pod["spec"]["nodeName"]) for pod in its_pods if pod["spec"].get("nodeName"))
    wanted = _wanted(found)
    on = f", on {', '.join(sorted(nodes))}" if nodes else ""
    yield "pods", f"{_running(its_pods)} of {wanted} run{on}"
    problems = _problems(its_pods)
    if problems:
        yield "because", problems
    elif len(its_pods) < wanted and (said := _rejected(session, found)):
        yield "because", said
    if trouble := _trouble(found):
        yield "AppWrapper", trouble
    again = (found.job.get("status") or {}).get("resettingCount")
    if again:
        yield "attempts", f"{again} failed before this one"


def _running(its_pods: Sequence[Document]) -> int:
    return sum(pod["status"].get("phase") == "Running" for pod in its_pods)


def _wanted(found: Found) -> int:
    return sum(int(each["count"]) for each in (found.workload or {})["spec"]["podSets"])


def _problems(its_pods: Sequence[Document]) -> str:
    """Return the problems of pods, each once, with the number of pods that have it."""
    found = Counter(problem for pod in its_pods if (problem := _problem(pod)))
    return "; ".join(f"{count} pods: {text}" if count > 1 else text for text, count in found.most_common(_SHOWN))


def _problem(pod: Mapping[str, Any]) -> str:
    """Return why a pod does not run. Empty if it runs, starts or has succeeded."""
    scheduled = condition(pod, "PodScheduled")
    if scheduled and scheduled["status"] == "False":
        return str(scheduled.get("message") or scheduled.get("reason"))
    status = pod["status"]
    containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    for each in containers:
        now = each.get("state") or {}
        waiting = now.get("waiting") or {}
        before = (each.get("lastState") or {}).get("terminated") if waiting else None
        ended = now.get("terminated") or before
        if ended and int(ended.get("exitCode", 0)) != 0:
            return f"{_EXIT} {ended['exitCode']} ({ended.get('reason') or 'Error'})"
        if waiting.get("reason") and waiting["reason"] not in _STARTING:
            return f"{waiting['reason']}: {waiting.get('message') or 'no message'}"
    return str(status.get("message") or status.get("reason") or "") if status.get("phase") == "Failed" else ""


def _rejected(session: Session, found: Found) -> str:
    """Return the newest warning about the creation of a job's objects or pods."""
    parts = [str(each.get("name")) for each in (found.job.get("status") or {}).get("componentStatus") or ()]
    own = {found.name, *parts}
    said = [
        str(event.get("message"))
        for event in session.events()
        if event["involvedObject"].get("name") in own and str(event.get("reason")).startswith("Failed")
    ]
    return said[-1] if said else ""


def _trouble(found: Found) -> str:
    """Return why AppWrapper takes a job as unhealthy."""
    unhealthy = condition(found.job, "Unhealthy")
    return str(unhealthy["message"]) if unhealthy and unhealthy["status"] == "True" else ""


def _end(found: Found) -> str:
    """Return why a job has ended or stopped. Empty for a job that succeeded."""
    evicted, finished = (condition(found.workload or {}, kind) for kind in ("Evicted", "Finished"))
    if found.workload and found.workload["spec"].get("active") is False and evicted:
        return str(evicted["message"])
    failed = finished and finished.get("reason") == "Failed"
    return _trouble(found) or (str(finished["message"]) if finished and failed else "")


def _gpus(workload: Mapping[str, Any]) -> int:
    """Return the GPUs that a job requests."""
    return sum(int(each["count"]) * pod_gpus(each["template"]["spec"]) for each in workload["spec"]["podSets"])
