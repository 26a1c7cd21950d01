"""The page: drawings, and what was told last. One file, no script, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from xml.etree.ElementTree import Element

from runner.picture import charts, shapes, timeline
from runner.picture.elements import element, written
from runner.picture.state import Snapshot

MOST_EVENTS: Final = 40
_COLOURS: Final = ("#2b6cb0", "#c05621", "#2f855a", "#6b46c1", "#b83280", "#8a6d00", "#0b7285", "#5a5a5a")
_DARK: Final = ("#8ab8ee", "#f2a97c", "#7fd1a2", "#bda4ef", "#ee9fcb", "#dcc46a", "#74c9d6", "#b5b5b5")
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
"""By which a browser fetches and runs nothing, whatever a name holds."""
_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #ffffff; --line: #767676; --soft: #e4e4e4; %(light)s }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ededed; --paper: #161616; --line: #9a9a9a; --soft: #333333; %(dark)s }
}
body { font: 14px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 1000px; padding: 0 1rem }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin: 1.6rem 0 .4rem }
section { overflow-x: auto }
svg text { font: 12px system-ui, sans-serif; fill: var(--ink) }
svg .label { text-anchor: end }
svg .axis { fill: var(--line) }
.free { fill: var(--paper); stroke: var(--line) }
.quota { fill: none; stroke: var(--ink) }
.used { fill: var(--line) }
.waiting { fill: var(--soft); stroke: var(--line); stroke-dasharray: 2 2 }
.earlier { fill: none; stroke: var(--line) }
.lost, .borrowed, .team { stroke: var(--ink); stroke-width: .7 }
.columns rect { stroke: none; shape-rendering: crispEdges }
rect.lost { fill: url(#lost) }
rect.borrowed { fill: url(#borrowed) }
pattern .ground { stroke: none }
pattern.lost .ground { fill: var(--soft) } pattern.borrowed .ground { fill: var(--paper) }
pattern.lost path, pattern.borrowed path { stroke: var(--ink) }
%(teams)s
.defs { position: absolute }
.legend { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .2rem 1rem }
.legend svg { vertical-align: middle }
table { border-collapse: collapse } td, th { text-align: left; padding: .15rem .8rem .15rem 0; vertical-align: top }
td { border-top: 1px solid var(--soft); overflow-wrap: anywhere }
td:nth-child(odd) { white-space: nowrap; overflow-wrap: normal }
.warning { font-weight: bold }
"""


def page(snapshot: Snapshot) -> str:
    """Return the whole document."""
    teams = {*(team for node in snapshot.nodes for team in node.held), *(job.namespace for job in snapshot.jobs)}
    order = {team: number for number, team in enumerate(sorted(teams))}
    return document(
        f"Cluster {snapshot.name}",
        element("p", f"As it was on {snapshot.taken:%d %B %Y at %H:%M:%S} UTC. {_sum(snapshot)}"),
        charts.legend(order),
        section("Nodes", charts.nodes(snapshot, order)),
        section("Queues", charts.queues(snapshot.queues)),
        section("GPUs over time", timeline.usage(snapshot, order)),
        section(_jobs_title(snapshot), timeline.jobs(snapshot, order)),
        section(_events_title(snapshot), _events(snapshot)),
    )


def document(title: str, *content: Element) -> str:
    """Return a whole document with this title, in which the charts' classes have their patterns and colours."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("title", title),
        element("style", _style()),
    )
    body = element("body", shapes.patterns(), element("h1", title), *content)
    return written(element("html", head, body, lang="en"))


def section(title: str, content: Element) -> Element:
    """Return a part of a document under a heading of its own."""
    return element("section", element("h2", title), content)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Element:
    """Return a table of texts."""
    lines = [element("tr", *(element("td", cell) for cell in row)) for row in rows]
    return element("table", element("tr", *(element("th", name) for name in header)), *lines)


def _sum(snapshot: Snapshot) -> str:
    gpus, usable = (sum(getattr(node, name) for node in snapshot.nodes) for name in ("gpus", "usable"))
    used, lent = (sum(getattr(queue, name) for queue in snapshot.queues) for name in ("used", "borrowed"))
    pending = sum(queue.pending for queue in snapshot.queues)
    return (
        f"{gpus} GPUs, {gpus - usable} of them lost; {used} given to jobs, {lent} of these on loan between queues; "
        f"workloads that wait: {pending}."
    )


def _style() -> str:
    names = range(shapes.TEAMS)
    teams = [
        f"rect.team-{number} {{ fill: url(#team-{number}) }}"
        f" pattern.team-{number} .ground {{ fill: var(--team-{number}) }}"
        f" pattern.team-{number} :not(.ground) {{ stroke: var(--paper); fill: var(--paper) }}"
        for number in names
    ]
    light, dark = (
        " ".join(f"--team-{number}: {colours[number]};" for number in names) for colours in (_COLOURS, _DARK)
    )
    return _STYLE % {"light": light, "dark": dark, "teams": "\n".join(teams)}


def _jobs_title(snapshot: Snapshot) -> str:
    shown = len(timeline.latest(snapshot.jobs))
    return "Jobs" if shown == len(snapshot.jobs) else f"Jobs, the last {shown} of {len(snapshot.jobs)}"


def _events_title(snapshot: Snapshot) -> str:
    number = len(snapshot.events)
    return "Events" if number <= MOST_EVENTS else f"Events, the last {MOST_EVENTS} of {number}"


def _events(snapshot: Snapshot) -> Element:
    rows = [
        element(
            "tr",
            element("td", f"{event.time:%d %b %H:%M:%S}"),
            element("td", "/".join(filter(None, [event.kind, event.namespace, event.name]))),
            element("td", f"{'warning: ' if event.is_warning else ''}{event.reason}", class_=_weight(event.is_warning)),
            element("td", event.message[:400]),
        )
        for event in snapshot.events[:MOST_EVENTS]
    ]
    header = element("tr", *(element("th", name) for name in ("time (UTC)", "about", "what", "says")))
    return element("table", header, *rows) if rows else element("p", "none")


def _weight(is_warning: bool) -> str:
    return "warning" if is_warning else "normal"
