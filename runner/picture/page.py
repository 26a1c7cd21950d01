"""The status page: drawings of a cluster, and its last events."""

from __future__ import annotations

from runner.picture import charts, timeline
from runner.picture.rendering import render
from runner.picture.state import Snapshot


def page(snapshot: Snapshot) -> str:
    """Return the whole document."""
    teams = {*(team for node in snapshot.nodes for team in node.held), *(job.namespace for job in snapshot.jobs)}
    class_of = charts.classes(sorted(teams))
    return render(
        "runner/picture/page.html.j2",
        title=f"Cluster {snapshot.name}",
        snapshot=snapshot,
        class_of=class_of,
        nodes=charts.nodes(snapshot, class_of),
        queues=charts.queues(snapshot.queues),
        usage=timeline.usage(snapshot, class_of),
        jobs=timeline.jobs(snapshot, class_of),
    )
