"""Jobs that keep their quota without pods, because somebody creates their objects again.

AppWrapper deletes the objects of a job by name, and frees the quota when no object has one of these names (v1.2.2,
`internal/controller/appwrapper/resource_management.go`, deleteComponents). A member can create a deleted ConfigMap
again before AppWrapper looks, as often as AppWrapper deletes it. JobSet does so with the Service of a JobSet that runs.
This program then writes into the AppWrapper's status that the objects are deleted, and AppWrapper frees the quota.

Runs in the cluster; standard library only.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from urllib.error import HTTPError
from urllib.parse import quote

from components.kubernetes.followed import Followed
from components.kubernetes.in_cluster import Api, Json

PATH = "/apis/workload.codeflare.dev/v1beta2"
LABEL = "workload.codeflare.dev/appwrapper"
"""Label of a job's pods."""
PATIENCE = 60.0
"""Seconds that AppWrapper gets to delete the objects of a job without pods."""
PAGE = 2
"""AppWrappers in one answer to a list. Python may need 22 MiB for one of 1.5 MiB, the API server's limit, because a
character beyond 16 bits makes the others of a text four bytes long."""
BEAT = 20.0
"""Seconds between two looks."""
_DELETING = "DeletingResources"
_DEPLOYED = "ResourcesDeployed"

log = logging.getLogger("ending-jobs")


@dataclass(frozen=True)
class EndingJob:
    """An AppWrapper that deletes its objects.

    began: when it began, as AppWrapper writes it. seen: the same in monotonic time.
    """

    namespace: str
    name: str
    version: str
    conditions: tuple[Json, ...]
    began: str
    seen: float

    @classmethod
    def read(cls, item: Json, before: EndingJob | None) -> EndingJob | None:
        """Return an AppWrapper that deletes its objects, None for another one."""
        metadata = item["metadata"]
        conditions = item.get("status", {}).get("conditions", ())
        begun = {each["type"]: each["lastTransitionTime"] for each in conditions if each["status"] == "True"}
        if _DELETING not in begun or _DEPLOYED not in begun:
            return None
        began = begun[_DELETING]
        seen = before.seen if before is not None and before.began == began else time.monotonic()
        return cls(metadata["namespace"], metadata["name"], metadata["resourceVersion"], tuple(conditions), began, seen)

    def ended(self, now: str) -> Json:
        """Return the patch that reports all objects as deleted. now: the time, in the API's form."""
        change = {"status": "False", "reason": "ObjectsCameBack", "lastTransitionTime": now}
        change["message"] = "no pods are left, and somebody creates deleted objects of this job again"
        conditions = [
            {**each, **change} if each["type"] in (_DELETING, _DEPLOYED) else each for each in self.conditions
        ]
        return {"metadata": {"resourceVersion": self.version}, "status": {"conditions": conditions}}


class EndingJobs:
    """Follows AppWrappers, and frees the quota of those that cannot delete their objects.

    alive: called with the seconds until the next sign of life of `follow`, and of `free`.
    """

    def __init__(self, api: Api, alive: Callable[[str, float], None]) -> None:
        self._api, self._alive = api, alive
        following = partial(alive, "ending jobs")
        self._jobs = Followed(api, f"{PATH}/appwrappers", EndingJob.read, following, threading.Event(), PAGE)
        self.follow = self._jobs.follow

    def free(self) -> None:
        """Free quota once, after a pause."""
        time.sleep(BEAT)
        with self._jobs.lock:
            jobs = list(self._jobs.objects.values())
        for job in jobs:
            if time.monotonic() - job.seen >= PATIENCE:
                self._end(job)
        self._alive("quota", BEAT)

    def _has_pods(self, job: EndingJob) -> bool:
        path = f"/api/v1/namespaces/{quote(job.namespace)}/pods"
        return bool(self._api.metadata(path, labelSelector=f"{LABEL}={job.name}", limit="1")["items"])

    def _end(self, job: EndingJob) -> None:
        """Free the quota of a job without pods."""
        path = f"{PATH}/namespaces/{quote(job.namespace)}/appwrappers/{quote(job.name)}/status"
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        try:
            if self._has_pods(job):
                return
            self._api.patch(path, job.ended(now))
        except HTTPError as error:
            log.warning("%s/%s is not freed: %r", job.namespace, job.name, error)  # the others must be
        else:
            log.info("%s/%s has no pods, and objects that come back: its quota is freed", job.namespace, job.name)
