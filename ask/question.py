"""Ask the replica: submit the job there as a member and watch what queues and schedulers do with it."""

import contextlib
import json
import re
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import ResourceNotFoundError

from ask import room, wrapped
from ask.answer import Answer, Verdict
from ask.manifest import Job
from ask.messages import MOST, OF_JOB, OTHER_NODES, POD_LABELS, POLICY, PREEMPTING, SHORT, UNCOVERED, added, lacks
from components import names
from components.job_kinds import APPWRAPPER, RAY_CLUSTER, RAY_JOB
from components.kubernetes.quantity import Quantity
from components.tenancy.lending import DECLARED
from runner.report import Client, condition, is_true, message, objects, queueing
from runner.waiting import awaited

SECONDS: Final = 30.0
"""Seconds until a job without a decision counts as waiting."""
SETTLED: Final = 8.0
"""Seconds that a scheduler has to place a pod after it reported the pod as unschedulable.

A gang's pods arrive one by one, preempted pods need a moment to end, and a scheduler waits before it tries again.
"""
_EVERY: Final = 0.1
_WORKED_OUT: Final = ("priority", "preemptionPolicy")
"""Fields in Kueue's copy of a pod that the API server computes from the pod's priority class."""
_NOT_YET: Final = ("failed calling webhook", "failed to call webhook", "not yet ready", "status unknown for quota")

_SUBMITTER: Final = "job-name"
_BAD_REQUEST, _FORBIDDEN, _CONFLICT, _INVALID = 400, 403, 409, 422
_UNREADABLE: Final = "cannot be handled as a"
"""Message of the API server about a built-in object with a text where a number belongs (k8s.io/apiserver
v0.34.2, `pkg/endpoints/handlers/rest.go`, transformDecodeError). AppWrapper retries the creation without end."""
_AS_KUBECTL: Final = ("fieldValidation", "Strict")
"""The API server rejects fields that it does not know, as for `kubectl apply` (its option --validate)."""
_EXCEEDED: Final = "exceeded quota"
_COUNTED: Final = re.compile(_EXCEEDED + r": (\S+), requested: (\S+), used: \S+, limited: (\S+)")
"""Message of the API server about an object that exceeds a ResourceQuota (k8s.io/apiserver v0.34.2,
`pkg/admission/plugin/resourcequota/controller.go`, checkQuotas). Amounts look like
`services=1,services.nodeports=1`."""
_FULL: Final = "delete jobs of the team that are over, or ask for less"
"""End of the fix for a quota that is full now. Other jobs free it when they end."""
_NOT_WEIGHED: Final = tuple(name for name in names.RESOURCES if name != names.GPU)
_TOUCHED: Final = "mlbatch/touched"
_MERGE_PATCH: Final = "application/merge-patch+json"

Document = dict[str, Any]


@dataclass
class Question:
    """A question to a replica, by a user and one of the user's groups.

    changed: whether the question changed the replica. ray_cluster: the RayCluster of a RayJob.
    """

    client: Client
    job: Job
    team: str
    user: str
    group: str | None = None
    changed: bool = False
    ray_cluster: str = ""

    def ask(self) -> Answer:
        """Return the answer. Raises the Kubernetes client's exceptions if the replica does not answer."""
        before = self._victims()
        try:
            uid = self._submit()
        except ApiException as error:
            return self._refusal(error)
        try:
            return self._watch(uid, before)
        finally:
            self._remove(uid)
            # Kueue has made room for it also where the answer did not wait for that.
            self.changed = self.changed or bool(self._victims() - before)

    def _submit(self) -> str:
        """Submit as the member and return the job's uid. Waits for a controller that has just started."""
        resource = self.client.resources.get(api_version=self.job.version, kind=self.job.kind)
        named = {"Impersonate-User": self.user, "Impersonate-Group": self.group}
        # The client sends headers as Latin-1, and the API server reads names as UTF-8.
        member = {header: name.encode().decode("latin-1") for header, name in named.items() if name}
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                made = self.client.create(
                    resource,
                    body=self.job.document,
                    namespace=self.team,
                    header_params=dict(member),
                    query_params=[_AS_KUBECTL],
                )
                return str(made.metadata.uid)
            except ApiException as error:
                if time.monotonic() > deadline or not any(word in message(error) for word in _NOT_YET):
                    raise
                time.sleep(0.3)

    def _watch(self, uid: str, before: set[tuple[str, str]]) -> Answer:
        workload = awaited(lambda: self._workload(uid), SECONDS, _EVERY)
        wrapper = self._wrapper()
        refused = self._refused_pods(wrapper, workload) or self._refused_parts(wrapper)
        if workload is None:
            return refused or self._answer(Verdict.WAITS, reason="no queue has decided about it")
        if refused is not None and not ((refused.change or "").endswith(_FULL) and self._waits(uid)):
            # Pods are made when a job is admitted: one that never is comes to no refusal.
            return self._never_admitted(uid) or refused
        judged = self._impossible(workload)
        if judged is not None:
            return judged
        deadline = time.monotonic() + SECONDS
        homeless_since: float | None = None
        while True:
            workload = self._workload(uid) or workload
            said = condition(workload, "QuotaReserved")
            is_late = time.monotonic() > deadline
            if said and said["status"] == "True":
                pods = self._pods()
                placed = Counter(pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName"))
                if placed.total() >= _count(workload):
                    victims = self._gave_way(before)
                    verdict = Verdict.PREEMPTS if victims else Verdict.ADMITTED
                    return self._answer(verdict, nodes=dict(placed), preempts=victims)
                homeless = [reason for pod in pods if (reason := _homeless(pod))]
                homeless_since = (homeless_since or time.monotonic()) if homeless else None
                if is_late or (homeless_since and time.monotonic() - homeless_since > SETTLED):
                    reason = homeless[0] if homeless else "its pods do not exist yet"
                    return self._answer(Verdict.WAITS, resource="nodes with room for its pods", reason=reason)
            elif said and PREEMPTING not in said["message"]:
                return self._without_quota(workload, str(said["message"]))
            elif is_late:
                reason = str(said["message"]) if said else "no queue has decided about it"
                return self._answer(Verdict.WAITS, reason=reason, preempts=self._gave_way(before))
            time.sleep(_EVERY)

    def _refused_pods(self, wrapper: Document | None, workload: Document | None) -> Answer | None:
        """Return the rejection of the job's pods, which are created only after admission."""
        counted = [each["template"] for each in workload["spec"]["podSets"]] if workload else []
        resource = self.client.resources.get(api_version="v1", kind="Pod")
        for template in (wrapped.templates(wrapper) if wrapper else []) or counted:
            told = template.get("metadata") or {}
            copied = {key: told.get(key) or {} for key in ("labels", "annotations")}
            metadata = {"generateName": "pod-", "namespace": self.team, **copied}
            spec = {key: value for key, value in template["spec"].items() if key not in _WORKED_OUT}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
            try:
                self.client.create(resource, body=pod, namespace=self.team, dry_run="All")
            except ApiException as error:
                return self._refusal(error)
        return None

    def _refused_parts(self, wrapper: Document | None) -> Answer | None:
        """Return the rejection of an object that an AppWrapper creates after admission, for example of a Job.

        Only three reasons count: the object is invalid, its name is taken, or the team has too many of its kind. The
        job and its pods have already been checked against other rules.
        """
        for part in wrapped.parts(wrapper) if wrapper else ():
            try:
                resource = self.client.resources.get(api_version=part["apiVersion"], kind=part["kind"])
                self.client.create(resource, body=part, namespace=self.team, dry_run="All")
            except ApiException as error:
                said = message(error)
                is_invalid = error.status == _INVALID and not POLICY.search(said)
                is_other = error.status == _BAD_REQUEST and _UNREADABLE in said
                is_taken = error.status == _CONFLICT and self._is_taken(part)
                is_too_much = error.status == _FORBIDDEN and _EXCEEDED in said and not self._is_made(part)
                if is_invalid or is_other or is_taken or is_too_much:
                    return self._refusal(error)
            except ResourceNotFoundError:
                continue
        return None

    def _is_taken(self, part: Document) -> bool:
        """Return whether an object exists that no AppWrapper with the job's name controls.

        The job then fails for good (AppWrapper v1.2.2, `resource_management.go`, createComponent). If the job has been
        admitted meanwhile, the object is its own.
        """
        return any(self.job.name not in owners for owners in self._owners(part))

    def _is_made(self, part: Document) -> bool:
        """Return whether the job has been admitted meanwhile and has the object, which would count twice."""
        return any(self.job.name in owners for owners in self._owners(part))

    def _owners(self, part: Document) -> list[list[str]]:
        """Return the names of the controllers of each object with this name or generateName."""
        version, kind, wanted = part["apiVersion"], part["kind"], part["metadata"]
        if wanted.get("name"):
            found = self._named(version, kind, wanted["name"])
        else:
            every = objects(self.client, version, kind, namespace=self.team)
            found = [item for item in every if item["metadata"].get("generateName") == wanted.get("generateName")]
        there = [item["metadata"].get("ownerReferences") or () for item in found]
        return [[each["name"] for each in owners if each.get("controller")] for owners in there]

    def _wrapper(self) -> Document | None:
        """Return the job after AppWrapper has noted its pods. None if it is not an AppWrapper, or not noted yet."""
        if self.job.kind != APPWRAPPER.kind:
            return None

        def noted() -> Document | None:
            found = self._named(self.job.version, self.job.kind, self.job.name)
            return next((item for item in found if wrapped.templates(item)), None)

        return awaited(noted, SECONDS, _EVERY)

    def _never_admitted(self, uid: str) -> Answer | None:
        """Return the answer for a job that no queue ever admits, None for any other job."""
        workload, said = self._decided(uid)
        answer = self._without_quota(workload, str(said["message"])) if said and said["status"] != "True" else None
        return answer if answer and answer.verdict is Verdict.NEVER else None

    def _waits(self, uid: str) -> bool:
        """Return whether the job waits for other jobs to end, which frees quota."""
        _, said = self._decided(uid)
        return bool(said) and said["status"] != "True" and PREEMPTING not in said["message"]

    def _decided(self, uid: str) -> tuple[Document, Document]:
        """Return the job's Workload and its condition about quota. Each is empty if it does not exist."""

        def decided() -> tuple[Document, Document] | None:
            workload = self._workload(uid)
            said = condition(workload, "QuotaReserved") if workload else None
            return (workload, said) if workload and said else None

        return awaited(decided, SECONDS, _EVERY) or ({}, {})

    def _impossible(self, workload: Document) -> Answer | None:
        """Return the answer for pods that the nodes cannot hold even if no team runs a pod."""
        pods = [(each["template"]["spec"], int(each["count"])) for each in workload["spec"]["podSets"]]
        pods, labels = [each for each in pods if each[1]], self._node_labels()
        pools = [[each] for each in labels] if len(pods) == 1 else [labels]  # like pods are of one flavor
        short = [room.short(pods, room.rooms(self.client, pool)) for pool in pools]
        reasons = [each for each in short if each is not None]
        if len(reasons) < len(short):
            return None
        found = min(reasons, key=lambda each: each.reason.startswith(room.NO_LABELS))
        return self._answer(Verdict.NEVER, resource=found.resource, reason=found.reason, change=found.change)

    def _without_quota(self, workload: Document, said: str) -> Answer:
        found = UNCOVERED.search(said)
        if found:
            change = f"{room.without(found[1], self._covered())}: no queue covers it"
            return self._answer(Verdict.NEVER, resource=found[1], reason=said, change=change)
        beyond = {found["flavor"]: found for found in MOST.finditer(said)}
        others = {found["selected"] or found["tainted"] for found in OTHER_NODES.finditer(said)}
        if beyond and self._flavors() <= beyond.keys() | others:
            resource = next(iter(beyond.values()))["resource"]
            alike = [each for each in beyond.values() if each["resource"] == resource]
            found = max(alike, key=lambda each: Quantity.parse(each["most"]).nano)
            most, wanted = found["most"], added(found["before"], found["asked"])
            if any(self._had_without_loss(each) for each in beyond.values()):
                lost = f"nodes that are lost now: the queues lend {most} {resource} until they are back"
                return self._answer(Verdict.WAITS, resource=lost, behind=self._ahead(workload), reason=said)
            change = f"ask for {most} {resource} in all, in place of {wanted}"
            return self._answer(Verdict.NEVER, resource=resource, reason=said, change=change)
        for each in SHORT.finditer(said):
            resource = each[each.lastindex or 0]
            total, lent = _total(workload, resource), self._lent_without_loss(resource, workload)
            if total > lent:
                amounts = [room.text(resource, nano) for nano in (lent, total)]
                change = f"ask for {amounts[0]} {resource} in all, in place of {amounts[1]}"
                return self._answer(Verdict.NEVER, resource=resource, reason=said, change=change)
        missing = lacks(said)
        if not missing and others and self._flavors() <= others:
            change = "take out of the job which nodes it selects: those of its queue are the only ones with quota"
            return self._answer(Verdict.NEVER, resource="nodes", reason=said, change=change)
        return self._answer(Verdict.WAITS, resource=missing or None, behind=self._ahead(workload), reason=said)

    def _queue(self) -> Document:
        """Return the ClusterQueue of the job's LocalQueue. If it does not exist, return one without quotas."""
        own = queueing(self.client, "LocalQueue", namespace=self.team)
        named = [item["spec"]["clusterQueue"] for item in own if item["metadata"]["name"] == self.job.queue]
        found = [item for item in self._queues() if item["metadata"]["name"] in named]
        return found[0] if found else {"metadata": {"name": ""}, "spec": {}}

    def _queues(self) -> list[Document]:
        return queueing(self.client, "ClusterQueue")

    def _covered(self) -> list[str]:
        groups = self._queue()["spec"].get("resourceGroups") or ()
        return [name for group in groups for name in group["coveredResources"]]

    def _flavors(self) -> set[str]:
        """Return the names of the flavors in the quotas of the job's queue."""
        return {flavor["name"] for flavor in _flavors(self._queue())}

    def _node_labels(self) -> list[dict[str, str]]:
        """Return the node labels of each flavor in the quotas of the job's queue, or one empty set for all nodes."""
        flavors = self._flavors()
        found = [item for item in queueing(self.client, "ResourceFlavor") if item["metadata"]["name"] in flavors]
        return [item.get("spec", {}).get("nodeLabels") or {} for item in found] or [{}]

    def _lent_without_loss(self, resource: str, workload: Document) -> int:
        """Return the most that a job could have of a resource if no node were lost, in billionths.

        Equal pods have one flavor. Different pods can have different flavors. The slack controller lowers what queues
        lend while nodes are lost, and notes the declared amount.
        """
        most = [self._lent_of(flavor, resource) for flavor in self._flavors()]
        return max(most, default=0) if len(workload["spec"]["podSets"]) == 1 else sum(most)

    def _had_without_loss(self, beyond: re.Match[str]) -> bool:
        """Return whether a flavor would have the amount that Kueue reports as too much, if no node were lost."""
        wanted = added(beyond["before"], beyond["asked"])
        return wanted.nano <= self._lent_of(beyond["flavor"], beyond["resource"])

    def _lent_of(self, flavor: str, resource: str) -> int:
        own = self._queue()
        others = [
            item
            for item in self._queues()
            if item["metadata"]["name"] != own["metadata"]["name"] and _cohort(item) == _cohort(own)
        ]
        nominal, borrowing = (_quota(own, flavor, resource, key) for key in ("nominalQuota", "borrowingLimit"))
        lent = sum(_declared(item, flavor, resource) for item in others) if _cohort(own) else 0
        return (nominal or 0) + (lent if borrowing is None else min(lent, borrowing))

    def _refusal(self, error: ApiException) -> Answer:
        """Return the API server's rejection. Raises an error that is not about the job."""
        said, status = message(error), error.status
        if status == 429 or status >= 500 or any(word in said for word in _NOT_YET):
            raise error
        found = POLICY.search(said)
        if found:
            rule, reason = found[1], found[2].strip()
            return self._answer(Verdict.REFUSED, rule=rule, reason=reason, change="change what the rule names")
        if status == _FORBIDDEN and "cannot create" in said:
            change = f"have {self.user} added to the members of team {self.team}, or ask as one of them (--user)"
            return self._answer(Verdict.REFUSED, rule="RBAC", reason=said, change=change)
        if status == _CONFLICT:
            change = "delete what has that name, or take another one"
            return self._answer(Verdict.REFUSED, rule="name", reason=said, change=change)
        if _EXCEEDED in said:
            change = _beyond(said) or _full(said)
            return self._answer(Verdict.REFUSED, rule="ResourceQuota", reason=said, change=change)
        return self._answer(Verdict.REFUSED, rule="validation", reason=said, change="correct the field that it names")

    def _answer(self, verdict: Verdict, **fields: Any) -> Answer:
        return Answer(verdict=verdict, job=f"{self.team}/{self.job.name}", queue=self.job.queue, **fields)

    def _workloads(self, **options: str) -> list[Document]:
        return queueing(self.client, "Workload", **options)

    def _workload(self, uid: str) -> Document | None:
        for item in self._workloads(namespace=self.team, label_selector=f"{OF_JOB}={uid}"):
            if any(owner["uid"] == uid for owner in item["metadata"].get("ownerReferences") or ()):
                return item
        return None

    def _victims(self) -> set[tuple[str, str]]:
        """Return the jobs that Kueue has preempted, as `<team>/<name>`, and when."""
        told = [(item, condition(item, "Preempted")) for item in self._workloads()]
        return {(_job_of(item), each["lastTransitionTime"]) for item, each in told if each and each["status"] == "True"}

    def _gave_way(self, before: set[tuple[str, str]]) -> list[str]:
        """Return the jobs that Kueue has preempted since then."""
        return sorted({name for name, _ in self._victims() - before})

    def _ahead(self, workload: Document) -> list[str]:
        """Return the jobs of the ClusterQueue that come first.

        If the team counts use, jobs of users who have used less come first. Jobs with a higher priority, and older
        jobs with the same priority, come next.
        """
        shared = self._queue()
        weighed = "admissionScope" in shared["spec"]
        used = {self.job.queue: 0} | {
            item["metadata"]["name"]: _used(item) if weighed else 0
            for item in queueing(self.client, "LocalQueue", namespace=self.team)
            if item["spec"]["clusterQueue"] == shared["metadata"]["name"]
        }

        def rank(item: Document) -> tuple[int, int, str]:
            return used[item["spec"]["queueName"]], *_rank(item)

        mine = rank(workload)
        waiting = [
            item
            for item in self._workloads(namespace=self.team)
            if item["spec"].get("queueName") in used
            and not is_true(item, "QuotaReserved")
            and not condition(item, "Finished")
            and item["metadata"]["uid"] != workload["metadata"]["uid"]
        ]
        return [_job_of(item) for item in sorted(waiting, key=rank) if rank(item) <= mine]

    def _pods(self) -> list[Document]:
        """Return the pods of the job."""
        return [
            pod
            for selector in self._selectors()
            for pod in objects(self.client, "v1", "Pod", namespace=self.team, label_selector=selector)
        ]

    def _selectors(self) -> list[str]:
        """Return the label selectors of the job's pods."""
        if self.job.kind != RAY_JOB.kind:
            return [f"{POD_LABELS[self.job.kind]}={self.job.name}"]
        for item in self._named(self.job.version, self.job.kind, self.job.name):
            self.ray_cluster = (item.get("status") or {}).get("rayClusterName") or self.ray_cluster
        made = [f"{POD_LABELS[RAY_CLUSTER.kind]}={self.ray_cluster}"] if self.ray_cluster else []
        return [*made, f"{_SUBMITTER}={self.job.name}"]

    def _named(self, version: str, kind: str, name: str) -> list[Document]:
        """Return the team's objects of a kind and name, none if it does not exist. Other objects are not read."""
        found = objects(self.client, version, kind, namespace=self.team, field_selector=f"metadata.name={name}")
        return [item for item in found if item["metadata"]["name"] == name]

    def _remove(self, uid: str) -> None:
        """Delete the job and wait until no Workload counts for it."""
        resource = self.client.resources.get(api_version=self.job.version, kind=self.job.kind)
        self.client.delete(resource, name=self.job.name, namespace=self.team)
        deadline = time.monotonic() + SECONDS
        while (pods := self._pods()) or self._workload(uid):
            if time.monotonic() > deadline:
                self.changed = True
                return
            if not pods:
                self._touch(resource)
            time.sleep(_EVERY)

    def _touch(self, resource: Any) -> None:
        """Have AppWrapper reconcile a job that is being deleted and has no objects left.

        AppWrapper checks again after five seconds, or when the AppWrapper changes (v1.2.2, `appwrapper_controller.go`,
        Reconcile). This wait would be most of the time of a question. The wait is not necessary if the job no longer
        exists or cannot be changed.
        """
        if self.job.kind == APPWRAPPER.kind:
            change = {"metadata": {"annotations": {_TOUCHED: str(time.monotonic_ns())}}}
            with contextlib.suppress(ApiException):
                self.client.patch(
                    resource, body=change, name=self.job.name, namespace=self.team, content_type=_MERGE_PATCH
                )


def _count(workload: Document) -> int:
    """Return how many pods a job has."""
    return sum(int(pods["count"]) for pods in workload["spec"]["podSets"])


def _total(workload: Document, resource: str) -> int:
    """Return how much of a resource all pods of a job request, in billionths."""
    return sum(
        room.asked(each["template"]["spec"])[resource] * int(each["count"]) for each in workload["spec"]["podSets"]
    )


def _homeless(pod: Document) -> str:
    """Return why no node can run a pod. Empty if a node can, or no scheduler has tried."""
    found = condition(pod, "PodScheduled")
    return str(found["message"]) if found and found["status"] == "False" and not pod["spec"].get("nodeName") else ""


def _used(queue: Document) -> int:
    """Return the recent use by the jobs of a LocalQueue, of the resources that Kueue counts: only GPUs."""
    told = (queue.get("status") or {}).get("fairSharing") or {}
    consumed = (told.get("admissionFairSharingStatus") or {}).get("consumedResources") or {}
    return sum(Quantity.parse(amount).nano for name, amount in consumed.items() if name not in _NOT_WEIGHED)


def _rank(workload: Document) -> tuple[int, str]:
    """Return the sort key for the jobs of a user: priority, then age."""
    return -int(workload["spec"].get("priority") or 0), str(workload["metadata"]["creationTimestamp"])


def _job_of(workload: Document) -> str:
    owners = workload["metadata"].get("ownerReferences") or ()
    name = owners[0]["name"] if owners else workload["metadata"]["name"]
    return f"{workload['metadata']['namespace']}/{name}"


def _quota(queue: Document, flavor: str, resource: str, key: str) -> int | None:
    """Return a limit of a queue for a resource of a flavor, in billionths. None if it has no limit."""
    found = (
        Quantity.parse(item[key]).nano
        for each in _flavors(queue)
        if each["name"] == flavor
        for item in each["resources"]
        if item["name"] == resource and item.get(key) is not None
    )
    return next(found, None)


def _flavors(queue: Document) -> list[Document]:
    return [flavor for group in queue["spec"].get("resourceGroups") or () for flavor in group["flavors"]]


def _cohort(queue: Document) -> str | None:
    """Return the queue's cohort. The Kueue of OpenShift AI 2 serves only the field's older name."""
    cohort: str | None = queue["spec"].get("cohortName") or queue["spec"].get("cohort")
    return cohort


def _declared(queue: Document, flavor: str, resource: str) -> int:
    """Return how much of a resource of a flavor a queue lends by its settings, in billionths."""
    noted = json.loads((queue["metadata"].get("annotations") or {}).get(DECLARED) or "{}")
    names_of = [each["name"] for each in _flavors(queue)]
    limits = dict(zip(names_of, noted if isinstance(noted, list) else [noted], strict=False)).get(flavor) or {}
    nominal = _quota(queue, flavor, resource, "nominalQuota") or 0
    return min(nominal, Quantity.parse(limits[resource]).nano) if resource in limits else nominal


def _full(said: str) -> str:
    """Return the change for an object that a quota has no room for now. The message names only what is exceeded."""
    found = _COUNTED.search(said)
    if found is None:
        return _FULL
    counted = " and ".join(each.partition("=")[0].removeprefix("count/") for each in found[2].split(","))
    return f"delete {counted} that the team no longer needs, {_FULL}"


def _beyond(said: str) -> str:
    """Return the change for an object that exceeds a quota's limit. Empty if it may fit later."""
    found = _COUNTED.search(said)
    if found is None:
        return ""
    requested, limited = (dict(each.split("=") for each in text.split(",")) for text in found.groups()[1:])
    for resource, amount in requested.items():
        most = Quantity.parse(limited[resource])
        if most.nano == 0:
            return f"take out what the ResourceQuota {found[1]} counts ({resource}): the team has none of it"
        if Quantity.parse(amount).nano > most.nano:
            return f"ask for at most {most} {resource}, in place of {amount}"
    return ""
