"""The status page: drawings of a cluster, and its last events."""

from pathlib import Path

from runner.picture import charts, timeline
from runner.picture.rendering import render
from runner.picture.state import Snapshot, read
from runner.report import Client


def picture(client: Client, name: str) -> str:
    """Return a cluster's picture as HTML. Raises the Kubernetes client's exceptions."""
    return page(read(client, name))


def draw(client: Client, file: Path, name: str) -> str:
    """Write a cluster's picture into a file. Return a message about it.

    Raises OSError if the file cannot be written, and the Kubernetes client's exceptions.
    """
    file.write_text(picture(client, name), encoding="utf-8")
    return f"Picture\n  {file}"


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
