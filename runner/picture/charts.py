"""Drawings of the current state, as rows of boxes: nodes with their GPUs, queues as bars."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from runner.picture.state import Node, Queue, Snapshot

BOX: Final = 18
"""Width of a GPU, in pixels."""
_QUEUE: Final = 400
"""Width of the longest queue, in pixels."""
_PATTERNS: Final = 8
"""Teams with their own pattern (`document.html.j2`). Later teams share patterns and are distinguished by name."""


class Box(NamedTuple):
    """A box in the middle of a row, in pixels. x is 0 right of the row's name. kind: its class."""

    kind: str
    title: str
    x: float
    width: float
    height: int = BOX


class Row(NamedTuple):
    """A row of a drawing. said: the text right of the boxes, which starts at `end`."""

    name: str
    boxes: Sequence[Box]
    said: str
    end: float


def classes(teams: Iterable[str]) -> dict[str, str]:
    """Return the class of each team's boxes."""
    return {team: f"team team-{number % _PATTERNS}" for number, team in enumerate(teams)}


def nodes(snapshot: Snapshot, class_of: Mapping[str, str]) -> list[Row]:
    """Return each node as a row of its GPUs: used by a team, free or lost."""
    rows = []
    for node in snapshot.nodes:
        gpus = enumerate(_gpus(node, class_of))
        boxes = [Box(kind, title, number * (BOX + 3), BOX) for number, (kind, title) in gpus]
        said = ", ".join([node.state, *(f"{team} {gpus}" for team, gpus in node.held.items())])
        rows.append(Row(node.name, boxes, said, max(8, node.gpus) * (BOX + 3) + 10))
    return rows


def queues(found: Sequence[Queue]) -> list[Row]:
    """Return each queue: a frame for its quota, in it the use and the part not lent, after it what it borrows."""
    scale = _QUEUE / max([1, *(max(queue.nominal, queue.used) for queue in found)])
    return [_queue(queue, scale) for queue in found]


def _queue(queue: Queue, scale: float) -> Row:
    own = min(queue.used, queue.nominal)
    withheld = 0 if queue.lendable is None else max(0, queue.nominal - queue.lendable)
    borrowed = max(queue.borrowed, queue.used - queue.nominal, 0)
    free = max(0, queue.nominal - own)
    bars = [
        ("used", f"{own} of its quota used", 0, own),
        ("lost", f"{withheld} not lent", queue.nominal - min(withheld, free), min(withheld, free)),
        ("borrowed", f"{borrowed} borrowed", queue.nominal, borrowed),
    ]
    boxes = [Box(kind, title, start * scale, length * scale, BOX - 4) for kind, title, start, length in bars if length]
    quota = Box("quota", f"quota {queue.nominal}", 0, max(queue.nominal * scale, 1))
    said = [f"{queue.used} used, quota {queue.nominal}"]
    said += [f"{borrowed} borrowed"] if borrowed else []
    said += [f"{free - withheld} left to others"] if free > withheld else []
    said += [f"{withheld} not lent"] if withheld else []
    said += [f"{queue.pending} waiting"] if queue.pending else []
    return Row(queue.name, [*boxes, quota], ", ".join(said), (queue.nominal + borrowed) * scale + 10)


def _gpus(node: Node, class_of: Mapping[str, str]) -> list[tuple[str, str]]:
    held = [(class_of[team], f"{node.name}: {team}") for team, number in node.held.items() for _ in range(number)]
    lost = max(0, min(node.gpus - node.usable, node.gpus - len(held)))
    free = max(0, node.gpus - len(held) - lost)
    return [*held, *[("free", f"{node.name}: free")] * free, *[("lost", f"{node.name}: {node.state}")] * lost]
