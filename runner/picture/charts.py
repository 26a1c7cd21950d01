"""The drawings of what is now: nodes with their GPUs, queues as bars. Each is one SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.etree.ElementTree import Element

from runner.picture.elements import element
from runner.picture.shapes import BOX, LEFT, ROW, WIDTH, box, drawing, label, of_team, text
from runner.picture.state import Node, Queue, Snapshot


def nodes(snapshot: Snapshot, order: Mapping[str, int]) -> Element:
    """Draw each node as a row of its GPUs: whose they are, which are free, which are lost."""
    rows: list[Element] = []
    for number, node in enumerate(snapshot.nodes):
        y = number * ROW
        rows.append(label(node.name, y))
        for position, (kind, title) in enumerate(_gpus(node, order)):
            rows.append(box(kind, title, x=LEFT + position * (BOX + 3), y=y + 3, width=BOX, height=BOX))
        said = ", ".join([node.state, *(f"{team} {gpus}" for team, gpus in node.held.items())])
        rows.append(text(said, LEFT + max(8, node.gpus) * (BOX + 3) + 10, y))
    return drawing("Nodes and their GPUs", rows, len(snapshot.nodes))


def queues(found: Sequence[Queue]) -> Element:
    """Draw each queue: its quota as a frame, in it what it uses and does not lend, beyond it what it borrows."""
    scale = (WIDTH - LEFT - 330) / max([1, *(max(queue.nominal, queue.used) for queue in found)])
    rows: list[Element] = []
    for number, queue in enumerate(found):
        y, own = number * ROW, min(queue.used, queue.nominal)
        withheld = 0 if queue.lendable is None else max(0, queue.nominal - queue.lendable)
        borrowed = max(queue.borrowed, queue.used - queue.nominal, 0)
        free = max(0, queue.nominal - own)
        bars = [
            ("used", 0, own, f"{own} used of its own"),
            ("lost", queue.nominal - min(withheld, free), min(withheld, free), f"{withheld} not lent"),
            ("borrowed", queue.nominal, borrowed, f"{borrowed} borrowed"),
        ]
        rows.append(label(queue.name, y))
        for kind, start, length, title in bars:
            if length:
                rows.append(box(kind, title, x=LEFT + start * scale, y=y + 5, width=length * scale, height=BOX - 4))
        width = max(queue.nominal * scale, 1)
        rows.append(box("quota", f"quota {queue.nominal}", x=LEFT, y=y + 3, width=width, height=BOX))
        said = [f"{queue.used} used, quota {queue.nominal}"]
        said += [f"{borrowed} borrowed"] if borrowed else []
        said += [f"{free - withheld} left to others"] if free > withheld else []
        said += [f"{withheld} not lent"] if withheld else []
        said += [f"{queue.pending} waiting"] if queue.pending else []
        end = max(queue.nominal, queue.nominal + borrowed) * scale
        rows.append(text(", ".join(said), LEFT + end + 10, y))
    return drawing("Queues: GPUs used, borrowed, not lent", rows, len(found))


def legend(order: Mapping[str, int]) -> Element:
    """Return which pattern is whose."""
    items = [(of_team(order, team), team) for team in order]
    items += [
        ("free", "free"),
        ("lost", "lost or not lent"),
        ("borrowed", "borrowed"),
        ("waiting", "waits"),
        ("earlier", "waited and ran before"),
    ]
    keys = [
        element(
            "li",
            element(
                "svg",
                element("rect", class_=kind, width=16, height=16, x=1, y=1),
                width=18,
                height=18,
                aria_hidden="true",
            ),
            f" {name}",
        )
        for kind, name in items
    ]
    return element("ul", *keys, class_="legend")


def _gpus(node: Node, order: Mapping[str, int]) -> list[tuple[str, str]]:
    held = [(of_team(order, team), f"{node.name}: {team}") for team, number in node.held.items() for _ in range(number)]
    lost = max(0, min(node.gpus - node.usable, node.gpus - len(held)))
    free = max(0, node.gpus - len(held) - lost)
    return [*held, *[("free", f"{node.name}: free")] * free, *[("lost", f"{node.name}: {node.state}")] * lost]
