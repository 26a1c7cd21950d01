"""Runs a day on an existing cluster: submits, breaks, observes and records."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from http.client import CONFLICT
from typing import Any, Final

from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from components.workloads.synthetic import SyntheticJob
from emulator.paths import Paths
from lab.gameday.ledger import OVER, Ledger, Phase, Seen
from lab.gameday.report import Report
from lab.gameday.size import RECOVERY, USERS, Size
from lab.pods import OF_JOB, held, is_up
from lab.scenarios.size import GPUS_PER_NODE
from lab.soak.breaking import Breaking
from lab.soak.trace import Event, Fault
from runner.report import condition, is_true, message
from tests.bounds import recovery
from tests.local.environment import Cluster
from tests.local.jobs import APPWRAPPER, HEALTH, KUEUE
from tests.local.member import as_member
from tests.local.paused import paused

STALLED: Final = 900
"""Seconds without an accepted or finished job, although one is due, that end a day."""
_EVERY, _TELL = 1, 20
WISHES: Final = {"workload.codeflare.dev.appwrapper/warmupGracePeriodDuration": "2m"}
"""Shorter waits of a job. On a real cluster, pulling images takes half an hour; here it takes minutes."""


class Day:
    """One day on a cluster. jobs: each with its manifest, in order of arrival."""

    def __init__(
        self,
        paths: Paths,
        size: Size,
        jobs: Sequence[tuple[SyntheticJob, Mapping[str, Any]]],
        events: Sequence[Event],
    ) -> None:
        self._paths, self._cluster = paths, Cluster(paths.kubeconfig)
        self._members = {team: as_member(paths, user) for team, user in USERS.items()}
        self._breaking = Breaking(self._cluster)
        self.ledger = Ledger(size.quotas, size.gpus, recovery(RECOVERY["recoveryTimeoutSeconds"]))
        self.to_come, self._faults, self._ends = list(jobs), list(events), list[Event]()
        self.happened: list[Event] = []
        self.refused, self.seconds, self.is_whole = 0, 0.0, True
        self._began, self._moved = time.monotonic(), 0.0

    @property
    def now(self) -> float:
        return time.monotonic() - self._began

    def go(self) -> None:
        """Run until all jobs have finished, none finishes any more, or the user interrupts it."""
        try:
            self._play()
        except KeyboardInterrupt:
            self.is_whole = False
        self.seconds = self.now
        for event in self._ends:
            self._answered(partial(self._breaking.end, event))

    def report(self, title: str, time_scale: float) -> Report:
        """Return the results. time_scale: seconds of the day in one second of the clock."""
        return Report(
            title=title,
            ledger=self.ledger,
            seconds=self.seconds,
            time_scale=time_scale,
            events=self.happened,
            to_come=len(self.to_come),
            refused=self.refused,
            is_whole=self.is_whole,
        )

    def _play(self) -> None:
        told = 0.0
        while (self.to_come or self.ledger.open) and self.now < self._quiet_until() + STALLED:
            self._submit()
            self._break()
            self._answered(self._look)
            if self.now - told > _TELL:
                told = self.now
                print(self._line(), flush=True)
            time.sleep(_EVERY)

    def _quiet_until(self) -> float:
        """Return the time until which no event is due: no job arrives, and running jobs need at least that long."""
        next_arrival = self.to_come[0][0].arrival if self.to_come else 0.0
        return max(self._moved, next_arrival, self.ledger.due)

    def _submit(self) -> None:
        while self.to_come and self.to_come[0][0].arrival <= self.now:
            job, document = self.to_come[0]
            try:
                self._members[job.team].create(document)
            except (ApiException, HTTPError) as error:
                # An existing job was accepted, although the response was lost.
                if getattr(error, "status", None) != CONFLICT:
                    self.refused += 1
                    print(f"{self.now:6.0f} s  {job.team}/{job.name} was refused: {_said(error)[:300]}", flush=True)
                    return
            self.ledger.submit(job, self.now)
            self.to_come.pop(0)
            self._moved = self.now

    def _break(self) -> None:
        for event in [event for event in self._ends if event.until <= self.now]:
            if self._answered(partial(self._breaking.end, event)):
                self._ends.remove(event)
        while self._faults and self._faults[0].at <= self.now and self.to_come:
            event = self._faults[0]
            if not self._answered(partial(self._start, event)):
                return
            self._faults.pop(0)
            self.happened.append(event)
            if event.until and event.fault is not Fault.API_SERVER:
                self._ends.append(event)

    def _start(self, event: Event) -> None:
        print(f"{self.now:6.0f} s  {event.fault}", flush=True)
        if event.fault is not Fault.API_SERVER:
            self._breaking.start(event)
            return
        with paused(self._paths, "kube-apiserver"):
            time.sleep(event.until - event.at)

    def _answered(self, action: Callable[[], None]) -> bool:
        """Run an action and tell whether the API server accepted it. The server may be slow to return."""
        try:
            action()
        except (ApiException, HTTPError) as error:
            print(f"{self.now:6.0f} s  no answer: {str(error)[:300]}", flush=True)
            return False
        return True

    def _look(self) -> None:
        nodes = {node["metadata"]["name"]: node for node in self._cluster.list("v1", "Node")}
        there = {name for name in self._breaking.nodes if name in nodes}
        sick = {name for name in there if (nodes[name]["metadata"].get("labels") or {}).get(HEALTH) == "EVICT"}
        well = {name for name in there - sick if not nodes[name]["spec"].get("unschedulable")}
        lost = frozenset(self._breaking.nodes) - there | sick
        phases = {
            item["metadata"]["name"]: (item.get("status") or {}).get("phase") or Phase.NEW
            for team in USERS
            for item in self._cluster.list(APPWRAPPER, "AppWrapper", team)
        }
        reasons = {
            owner["name"]: _evicted(item)
            for team in USERS
            for item in self._cluster.list(KUEUE, "Workload", team)
            for owner in item["metadata"].get("ownerReferences") or ()
        }
        pods = [pod for team in USERS for pod in self._cluster.list("v1", "Pod", team, label_selector=OF_JOB)]
        seen = {name: _seen(name, phases, reasons, pods) for name in self.ledger.open}
        used = sum(held(pod) for pod in pods if pod["spec"].get("nodeName") in well)
        self.ledger.look(self.now, seen, lost, len(well) * GPUS_PER_NODE, used)
        for name, found in seen.items():
            if found.phase in OVER:
                self._moved = self.now
                tale = self.ledger.tales[name]
                if (found.phase == Phase.SUCCEEDED) != tale.job.failure.succeeds:
                    print(f"{self.now:6.0f} s  {tale.job.team}/{name} {found.phase}", flush=True)

    def _line(self) -> str:
        """Return the current state as a line."""
        tales = self.ledger.tales.values()
        phases = Counter(tale.phase for tale in tales)
        last = self.ledger.samples[-1]
        return (
            f"{self.now:6.0f} s  {len(self.to_come)} to come, {sum(tale.is_up for tale in tales)} run on "
            f"{sum(last.held.values())} of {last.well} GPUs, {phases[Phase.SUSPENDED]} wait, "
            f"{phases[Phase.SUCCEEDED]} succeeded, {phases[Phase.FAILED]} failed"
        )


def _said(error: ApiException | HTTPError) -> str:
    return str(error) if isinstance(error, HTTPError) else message(error)


def _evicted(workload: Mapping[str, Any]) -> str:
    """Return Kueue's reason for taking a job's quota back, empty otherwise."""
    return str((condition(workload, "Evicted") or {})["reason"]) if is_true(workload, "Evicted") else ""


def _seen(name: str, phases: Mapping[str, str], reasons: Mapping[str, str], pods: Sequence[Mapping[str, Any]]) -> Seen:
    own = [pod for pod in pods if pod["metadata"]["labels"][OF_JOB] == name]
    done = sum(pod["status"].get("phase") == "Succeeded" for pod in own)
    running = [pod for pod in own if is_up(pod)]
    return Seen(
        phase=phases.get(name, Phase.LOST),
        up=done + len(running),
        gpus=sum(held(pod) for pod in own),
        nodes=frozenset(pod["spec"]["nodeName"] for pod in running),
        evicted=reasons.get(name, ""),
    )
