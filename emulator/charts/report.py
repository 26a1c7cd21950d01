"""The report of installed charts, for `make status`: rendered, stub, simulated."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from emulator.charts import releases
from emulator.cluster.pod_status import SIMULATED
from runner.report import table

HEADER = ("RELEASE", "NAMESPACE", "CHART", "VERSION", "STATUS", "SORT", "SIMULATED PODS")

Objects = Iterable[Mapping[str, Any]]


def rows(secrets: Objects, pods: Objects) -> list[Sequence[str]]:
    """Return a row for each release.

    secrets: those with the label selector `releases.SELECTOR`.
    pods: of all namespaces. A pod counts for the release in its label app.kubernetes.io/instance, else for the only
        release of its namespace.
    """
    found = releases.newest(secrets)
    by_namespace = Counter(release.namespace for release in found)
    names = {(release.namespace, release.name) for release in found}
    alone = {release.namespace: release.name for release in found if by_namespace[release.namespace] == 1}
    simulated: Counter[tuple[str, str]] = Counter()
    for pod in filter(is_simulated, pods):
        namespace = pod["metadata"]["namespace"]
        label = (pod["metadata"].get("labels") or {}).get("app.kubernetes.io/instance", "")
        simulated[namespace, label if (namespace, label) in names else alone.get(namespace, "")] += 1
    return [
        (
            release.name,
            release.namespace,
            release.chart,
            release.version,
            release.status,
            "stub" if release.stub_of else "rendered",
            str(simulated[release.namespace, release.name]),
        )
        for release in sorted(found, key=lambda release: (release.namespace, release.name))
    ]


def is_simulated(pod: Mapping[str, Any]) -> bool:
    """Tell whether a pod runs without a process: on a simulated node, or because its images have no program here."""
    status = pod.get("status") or {}
    if status.get("phase") != "Running":
        return False
    # A real container's runtime sets imageID; KWOK, and the local kubelet without a process, do not.
    return status.get("reason") == SIMULATED or not any(
        container.get("imageID") for container in status.get("containerStatuses") or []
    )


def report(secrets: Objects, pods: Objects) -> str:
    """Return the report as a table with notes; empty without a release."""
    found = rows(secrets, pods)
    if not found:
        return ""
    notes = ["  simulated: Running and Ready without a process"]
    if any(row[5] == "stub" for row in found):
        notes.append("  stub: the chart is not available here; values, kinds and workloads are copied from upstream")
    return "\n".join([table("Charts", HEADER, found), *notes])
