"""Sees an operator installed: approves its plan, and has Kueue start once everything is defined.

Runs in the cluster; standard library only. Each step ends when it is done, and after a while with what it waits for,
to be started anew by its Job.

`approve` looks for the InstallPlan of exactly one ClusterServiceVersion, approves it if it is to, and waits until that
version has succeeded. Plans for other versions, which OLM proposes by itself, are left alone. If an administrator
approved a later patch of the version, the step waits for that patch. OLM finds a
Subscription's settings when its status names the version (operator-lifecycle-manager,
pkg/controller/operators/olm/overrides/config.go), and by then an operator may have run without them: the step waits
until they have reached it, and deletes what an operator makes that runs without.

`start-kueue` waits for the definitions of the jobs that Kueue is to manage, and deletes Kueue's pods that are older:
Kueue 0.8 puts webhooks that do nothing in the place of those of kinds that are not defined when it starts, so that jobs
of these kinds would run past every queue (opendatahub-io/kueue v0.8.3, pkg/controller/jobframework/setup.go).

Usage: python -m components.olm.installer SETTINGS, where SETTINGS is a JSON file with the `step`, its
`namespace`, `seconds` of a try, and `csv`, `approve`, and perhaps `environment` (variables that the Subscription gives)
and `unwanted` (a path), or `definitions` and `selector`.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError

from components.kubernetes.in_cluster import Api, Json

POLL_SECONDS = 2.0
_OPERATORS = "/apis/operators.coreos.com/v1alpha1"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_NOT_FOUND = 404

Step = Callable[[Api, Mapping[str, Any]], str]
"""Takes one look; returns what is still waited for, nothing when the step is done."""


def approve(api: Api, settings: Mapping[str, Any]) -> str:
    """Approve the plan of the wanted version, and wait for it."""
    namespace, csv = settings["namespace"], settings["csv"]
    found = _existing(api, f"{_OPERATORS}/namespaces/{namespace}/clusterserviceversions/{csv}")
    if found is None and (found := _later_patch(api, namespace, csv)) is not None:
        csv = found["metadata"]["name"]
    status = (found or {}).get("status") or {}
    if found is not None and status.get("phase") == "Succeeded":
        return _without_settings(api, settings, found) or _made_without(api, settings.get("unwanted"))
    if found is not None:
        said = f": {status['message']}" if status.get("message") else ""
        return f"{csv} is {status.get('phase') or 'new'}{said}"
    plans = api.get(f"{_OPERATORS}/namespaces/{namespace}/installplans")["items"]
    own = [plan for plan in plans if csv in plan["spec"]["clusterServiceVersionNames"]]
    if not own:
        return _nothing_planned(api, namespace, csv, plans)
    # OLM gives up a plan that somebody changes before it has written this, and makes another one.
    asking = [plan for plan in own if (plan.get("status") or {}).get("phase") == "RequiresApproval"]
    if not asking:
        return "; ".join([_progress(own[-1]), *_installed(api, namespace)])
    name = asking[0]["metadata"]["name"]
    if not settings["approve"]:
        patch = '\'{"spec":{"approved":true}}\''
        return (
            f"InstallPlan {name} waits for approval: oc patch installplan {name} -n {namespace} --type merge -p {patch}"
        )
    api.patch(f"{_OPERATORS}/namespaces/{namespace}/installplans/{name}", {"spec": {"approved": True}})
    return f"InstallPlan {name} has just been approved"


def _later_patch(api: Api, namespace: str, csv: str) -> Json | None:
    """Return the newest patch after a version, or None. OLM deletes the version that a patch replaces."""
    minor, _, patch = csv.rpartition(".")
    patches = {}
    for item in api.get(f"{_OPERATORS}/namespaces/{namespace}/clusterserviceversions")["items"]:
        if found := re.match(rf"{re.escape(minor)}\.(\d+)", item["metadata"]["name"]):
            patches[int(found[1])] = item
    newest = max(patches, default=-1)
    return patches[newest] if newest > int(patch) else None


def _without_settings(api: Api, settings: Mapping[str, Any], version: Json) -> str:
    """Return which of the operator's Deployments does not run with the Subscription's settings yet."""
    wanted = set(settings.get("environment") or ())
    for each in version["spec"]["install"]["spec"]["deployments"] if wanted else ():
        found = _existing(api, f"/apis/apps/v1/namespaces/{settings['namespace']}/deployments/{each['name']}")
        if found is None or not _has_rolled_out(found) or wanted - _variables(found):
            return f"{each['name']} does not run with the Subscription's settings yet"
    return ""


def _variables(deployment: Json) -> set[str]:
    containers = deployment["spec"]["template"]["spec"]["containers"]
    return {variable["name"] for container in containers for variable in container.get("env") or ()}


def _has_rolled_out(deployment: Json) -> bool:
    """Whether all pods, and no other ones, are of its newest form, as `kubectl rollout status` tells."""
    status, replicas = deployment.get("status") or {}, deployment["spec"].get("replicas", 1)
    counts = [status.get(name, 0) for name in ("updatedReplicas", "replicas", "availableReplicas")]
    return status.get("observedGeneration") == deployment["metadata"]["generation"] and counts == [replicas] * 3


def _made_without(api: Api, unwanted: str | None) -> str:
    """Delete what an operator has made that ran without its settings; return what is still there of it."""
    if unwanted is None or _existing(api, unwanted) is None:
        return ""
    api.delete(unwanted)
    return f"{unwanted.rpartition('/')[2]}, which the operator made before it had its settings, is being deleted"


def _progress(plan: Json) -> str:
    """Return how far a plan is that waits for nobody, and what keeps it."""
    name, status = plan["metadata"]["name"], plan.get("status") or {}
    kept = [
        item["message"] for item in status.get("conditions") or () if item["status"] != "True" and item.get("message")
    ]
    return "; ".join([f"InstallPlan {name} is {status.get('phase') or 'not begun'}", *kept])


def _nothing_planned(api: Api, namespace: str, csv: str, plans: list[Json]) -> str:
    """Return why there is no plan for the version: as the Subscription says, and which plans there are."""
    proposed = sorted({name for plan in plans for name in plan["spec"]["clusterServiceVersionNames"]})
    said = [
        f"{condition['type']}: {condition.get('message') or condition.get('reason')}"
        for status in _subscribed(api, namespace)
        for condition in status.get("conditions") or ()
        if condition["status"] == "True" and condition["type"] != "InstallPlanPending"
    ]
    others = [f"OLM proposes {', '.join(proposed)}"] if proposed else []
    return "; ".join([f"OLM has no InstallPlan for {csv}", *_installed(api, namespace), *others, *said])


def _installed(api: Api, namespace: str) -> list[str]:
    """Return which versions run, to show those that OLM does not replace by the wanted one: it never goes back."""
    return [
        f"OLM has installed {status['installedCSV']}"
        for status in _subscribed(api, namespace)
        if status.get("installedCSV")
    ]


def _subscribed(api: Api, namespace: str) -> list[Json]:
    """Return the status of each Subscription."""
    found = api.get(f"{_OPERATORS}/namespaces/{namespace}/subscriptions")["items"]
    return [subscription.get("status") or {} for subscription in found]


def start_kueue(api: Api, settings: Mapping[str, Any]) -> str:
    """Have Kueue run with all definitions there."""
    stamps: list[str] = []
    for name in settings["definitions"]:
        found = _existing(api, f"{_DEFINITIONS}/{name}")
        if found is None:
            return f"{name} is not defined"
        stamps.append(found["metadata"]["creationTimestamp"])
    path = f"/api/v1/namespaces/{settings['namespace']}/pods"
    pods = api.get(path, labelSelector=settings["selector"])["items"]
    old = [pod["metadata"]["name"] for pod in pods if pod["metadata"]["creationTimestamp"] <= max(stamps)]
    for name in old:
        api.delete(f"{path}/{name}")
    if old:
        return f"{', '.join(old)} started before {settings['definitions'][stamps.index(max(stamps))]} was defined"
    return "" if any(_is_ready(pod) for pod in pods) else "no pod of Kueue is ready"


STEPS: Mapping[str, Step] = {"approve": approve, "start-kueue": start_kueue}


def run(api: Api, settings: Mapping[str, Any], pause: float = POLL_SECONDS) -> str:
    """Look until the step is done or its time is over; return what it then still waits for."""
    deadline, told = time.monotonic() + settings["seconds"], ""
    while True:
        try:
            waiting = STEPS[settings["step"]](api, settings)
        except (HTTPError, URLError, TimeoutError) as error:
            waiting = f"the API server does not answer: {error}"
        if not waiting or time.monotonic() > deadline:
            return waiting
        if waiting != told:
            print(waiting, flush=True)
            told = waiting
        time.sleep(pause)


def _existing(api: Api, path: str) -> Json | None:
    try:
        return api.get(path)
    except HTTPError as error:
        if error.code == _NOT_FOUND:
            return None
        raise


def _is_ready(pod: Json) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any((item["type"], item["status"]) == ("Ready", "True") for item in conditions)


def main() -> int:
    """Take the step that the settings name."""
    settings = json.loads(Path(sys.argv[1]).read_text())
    waiting = run(Api.in_cluster(), settings)
    print(waiting or "done", flush=True)
    return 1 if waiting else 0


if __name__ == "__main__":
    sys.exit(main())
