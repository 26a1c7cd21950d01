"""Render the review as Markdown that fits into one comment. Pure functions: comparisons in, text out."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any, Final

from review import costs, quotas
from review.compare import ABSENT, Change, Comparison, Operation, PropertyChange, compare
from review.consequences import Share, by_cause, shares
from review.costs import UNIT
from review.losses import Loss, losses
from review.plan import SECRET, Plan
from review.prices import CURRENCY, Cost, Price
from review.secrets import Fates

MARKER: Final = "<!-- mlbatch-review -->"
"""First line of the comment. The workflow finds the comment by it."""

LIMIT: Final = 59_000
"""Largest number of characters of the review. GitHub allows 65536 in a comment, and its client adds some."""

_VALUE: Final = 160
"""Largest number of characters of one value."""

_ROWS_UNFOLDED: Final = 12
"""Longer tables are folded."""

_NAMED: Final = 5
"""Largest number of resources or teams that are named if the same happens to many."""

_DONE: Final = {
    Operation.CREATE: "created",
    Operation.CHANGE: "changed",
    Operation.REPLACE: "**replaced**",
    Operation.DELETE: "**deleted**",
}
_HARMLESS: Final = (Operation.CREATE, Operation.CHANGE)
_SHORTENED: Final = "the rest does not fit into a comment: `make review` prints the full review"


@dataclass(frozen=True, kw_only=True)
class StackReview:
    """One stack at both revisions.

    before, after: its plans. None if the revision does not have the stack, or could not preview it.
    before_error, after_error: the message of the engine or the program when a preview failed, else None.
    secrets: what happens to the secrets in its file. notes: limits of this review that the reader must know.
    """

    stack: str
    before: Plan | None = None
    after: Plan | None = None
    before_error: str | None = None
    after_error: str | None = None
    secrets: Fates = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether the preview of a revision failed."""
        return self.before_error is not None or self.after_error is not None

    @property
    def changes(self) -> bool:
        """Whether the stack changes or its preview failed."""
        return self.failed or bool(self.comparison.changes or self.secrets)

    @cached_property
    def comparison(self) -> Comparison:
        """The changes. Empty if a preview failed."""
        return Comparison(()) if self.failed else compare(self.before, self.after)


@dataclass(frozen=True, kw_only=True)
class Review:
    """The stacks of two revisions. base, head: names of the revisions for the reader. notes: about all stacks."""

    base: str
    head: str
    stacks: tuple[StackReview, ...]
    notes: tuple[str, ...] = ()


def render(review: Review, limit: int = LIMIT) -> str:
    """Return the review as Markdown of at most `limit` characters. The marker is its first line."""
    stacks = sorted(review.stacks, key=lambda each: each.stack)
    head = _joined([MARKER, "## What this changes", _summary(review, stacks), *_warnings(stacks), *_notes(review)])
    head = _cut(head, limit // 3)
    busy = [each for each in stacks if each.changes]
    texts = [head]
    left = limit - len(head)
    for at, stack in enumerate(busy):
        share = left // (len(busy) - at)
        texts.append(_stack(stack, share - 2))
        left -= len(texts[-1]) + 2
    return "\n\n".join(texts) + "\n"


def _summary(review: Review, stacks: Sequence[StackReview]) -> str:
    lines = [f"{_code(review.head)} against {_code(review.base)}, each previewed from an empty state.", ""]
    rows = []
    for each in stacks:
        counts = ["cannot be previewed", "", "", ""] if each.failed else _counts(each)
        money = "" if each.failed else _money(each)
        rows.append([_code(each.stack) + _existence(each), *counts, str(len(each.secrets) or ""), money])
    if not rows:
        return "\n".join([*lines, "Neither revision has a stack."])
    lines += _table(["stack", "created", "changed", "replaced", "deleted", "secrets", f"{CURRENCY} per hour"], rows)
    if not any(each.changes for each in stacks):
        lines += ["", "**No stack changes.**"]
    return "\n".join(lines)


def _existence(stack: StackReview) -> str:
    if stack.failed:
        return ""
    return " (new)" if stack.before is None else " (removed)" if stack.after is None else ""


def _counts(stack: StackReview) -> list[str]:
    comparison = stack.comparison
    if not stack.changes:
        return ["no change", "", "", ""]
    order = (Operation.CREATE, Operation.CHANGE, Operation.REPLACE, Operation.DELETE)
    return [
        f"**{count}**" if count and operation not in _HARMLESS else str(count)
        for operation, count in ((each, comparison.count(each)) for each in order)
    ]


def _warnings(stacks: Iterable[StackReview]) -> list[str]:
    alike: dict[tuple[str, ...], list[Loss]] = {}
    for stack in stacks:
        for loss in losses(stack.comparison):
            # A loss with dependent losses has its own line. Other losses of the same kind share one.
            lot = (loss.change.resource.urn,) if loss.along else (loss.change.resource.kind, loss.lost, loss.reason)
            alike.setdefault((stack.stack, loss.change.operation, *lot), []).append(loss)
    if not alike:
        return []
    lines = ["> [!CAUTION]", "> **This replaces, deletes or shrinks resources with data or a cluster:**", ">"]
    lines += [f"> - {_code(stack)}: {_warning(found)}" for (stack, *_), found in alike.items()]
    return ["\n".join(lines)]


def _warning(alike: Sequence[Loss]) -> str:
    """Return the sentence about losses of one kind with the same reason."""
    loss = alike[0]
    titles = [each.change.resource.title for each in alike]
    what = _code(titles[0]) if len(alike) == 1 else f"{len(alike)} {_code(loss.change.resource.kind)}"
    named = "" if len(alike) == 1 else f" ({_named(titles)})"
    lost = f", {'which' if len(alike) == 1 else 'each of which'} loses {loss.lost}" if loss.lost else ""
    why = f"**{loss.change.operation} {what}**{named}{lost}. Why: {_text(loss.reason)}."
    return f"{why} {_along(loss)}" if loss.along else why


def _along(loss: Loss) -> str:
    """Return the sentences about resources that are lost with another one."""
    operation = _DONE[loss.along[0].operation].strip("*")
    counted = ", ".join(f"{layer} {count}" for layer, count in Counter(each.layer for each in loss.along).items())
    said = f"**With it {_pieces(len(loss.along), 'resource')} are {operation}**: {counted}."
    if held := loss.lost_along:
        said += (
            " Among them: " + "; ".join(f"{count} {_code(kind)} ({lost})" for kind, (count, lost) in held.items()) + "."
        )
    if loss.stops:
        said += f" {loss.stops} of them {'is' if loss.stops == 1 else 'are'} protected, so the update fails."
    return said


def _notes(review: Review) -> list[str]:
    return ["\n".join(f"- {note}" for note in review.notes)] if review.notes else []


def _stack(stack: StackReview, limit: int) -> str:
    """Return a stack's section. Parts that do not fit are shortened, beginning with the last."""
    parts = [f"### Stack {_code(stack.stack)}{_existence(stack)}"]
    parts += [f"> {note}" for note in stack.notes]
    for side, error in (("base", stack.before_error), ("head", stack.after_error)):
        if error is not None:
            said = _fenced(error, min(limit // 2 - 200, 8000))
            parts.append(f"**The {side} revision cannot be previewed:**\n\n{said}")
    text = _joined(parts)
    changes = stack.comparison.changes
    blocks = _secrets_block(stack.secrets)
    if not stack.failed:
        blocks += _quota_block(stack)
        blocks += _cost_block(stack)
        blocks += _change_block(changes)
        blocks += _property_blocks(changes)
    for opening, rows, closing in blocks:
        fitted = _fit(opening, rows, closing, limit - len(text) - 2)
        if fitted is None:
            left = f"_{_SHORTENED}_"
            return f"{text}\n\n{left}" if len(text) + len(left) + 2 <= limit else _cut(text, limit)
        text = f"{text}\n\n{fitted}"
    return _cut(text, limit)


def _quota_block(stack: StackReview) -> list[tuple[str, list[str], list[str]]]:
    table = quotas.table(stack.before, stack.after)
    if not table.rows:
        return []
    header = _table(["queue", *map(_code, table.columns)], [])
    rows = [
        _row([_code(queue), *(_cell(row.get(name)) for name in table.columns)]) for queue, row in table.rows.items()
    ]
    rows.append(_row(["all queues", *(_cell(table.total.get(name)) for name in table.columns)]))
    same = f"{_pieces(table.unchanged, 'other queue')} unchanged." if table.unchanged else ""
    return [_folded(f"Quotas of {_pieces(len(table.rows), 'queue')}", header, rows, [same] if same else [])]


def _cost_block(stack: StackReview) -> list[tuple[str, list[str], list[str]]]:
    rows: list[str] = []
    for currency, before, after in _costs(stack):
        rows.append(f"{currency} per hour: {_moved(before, after)}.")
        rows += [_priced(price) for price in dict.fromkeys((*before.prices, *after.prices))]
        unknown = sorted({*before.unknown, *after.unknown})
        if unknown:
            rows.append(f"- unknown, and not in the sum: {', '.join(map(_code, unknown))}")
    return [("#### Cost", rows, [])] if rows else []


def _costs(stack: StackReview) -> list[tuple[str, Cost, Cost]]:
    """Return the stack's costs before and after, in each currency that it has costs in."""
    dollars = costs.of_plan(stack.before), costs.of_plan(stack.after)
    units = costs.units_of_plan(stack.before), costs.units_of_plan(stack.after)
    found = ((CURRENCY, *dollars), (UNIT, *units))
    return [each for each in found if any(cost.prices or cost.unknown for cost in each[1:])]


def _priced(price: Price) -> str:
    where = f" in {', '.join(price.regions)}" if price.regions else ""
    return f"- {_code(price.item)}{where}: {price.per_hour} ({price.as_of.isoformat()}, {_code(price.source)})"


def _secrets_block(fates: Fates) -> list[tuple[str, list[str], list[str]]]:
    rows = [f"- {_code(path)}: {fate}" for path, fate in fates.items()]
    closing = ["", "No value was read. If the plan needs a secret, it gets a made-up value."]
    return [("#### Secrets\n", rows, closing)] if rows else []


def _change_block(changes: Sequence[Change]) -> list[tuple[str, list[str], list[str]]]:
    if not changes:
        return []
    header = _table(["layer", "team", "", "resource"], [])
    many = {urn: taken for urn, taken in by_cause(changes).items() if len(taken) > _ROWS_UNFOLDED}
    rows = []
    for change in changes:
        if change.cause is None or change.cause.urn not in many:
            why = f" ({_code(change.because)})" if change.because else ""
            team = _code(change.team) if change.team else ""
            rows.append(_row([change.layer, team, _DONE[change.operation], f"{_code(change.resource.title)}{why}"]))
    for taken in many.values():
        rows += [_share(each, taken[0]) for each in shares(taken)]
    return [_folded(f"{_pieces(len(changes), 'resource')} by layer and team", header, rows, [])]


def _share(share: Share, example: Change) -> str:
    """Return the row about resources that change because of one cause. example: one of them."""
    cause = example.cause.title if example.cause else ""
    each = f", {share.each} of each team" if len(share.teams) > 1 else ""
    what = f"{_pieces(share.count, 'resource')}{each} (with {_code(cause)})"
    return _row([share.layer, _named(share.teams), _DONE[example.operation], what])


def _named(names: Sequence[str]) -> str:
    """Return the first names and the number of further names."""
    listed = ", ".join(map(_code, names[:_NAMED]))
    return f"{listed} and {len(names) - _NAMED} more" if len(names) > _NAMED else listed


def _property_blocks(changes: Sequence[Change]) -> list[tuple[str, list[str], list[str]]]:
    alike: dict[tuple[Operation, tuple[str, ...]], list[str]] = {}
    for change in changes:
        if change.properties:
            lines = tuple(map(_property, change.properties))
            alike.setdefault((change.operation, lines), []).append(change.resource.title)
    rows: list[str] = []
    for (operation, lines), titles in alike.items():
        rows += [f"- {_named(titles)} {_DONE[operation]}", *lines]
    if not rows:
        return []
    opening = f"<details><summary>{_pieces(len(rows), 'line')} of changed properties</summary>\n"
    return [(opening, rows, ["", "</details>"])]


def _property(change: PropertyChange) -> str:
    forced = " **forces the replacement**" if change.forces else ""
    return f"  - {_code(change.path)}: {_value(change.before)} → {_value(change.after)}{forced}"


def _folded(title: str, header: list[str], rows: list[str], after: list[str]) -> tuple[str, list[str], list[str]]:
    """Return a table as a block, folded if it is long."""
    if len(rows) <= _ROWS_UNFOLDED:
        return "\n".join([f"#### {title}", "", *header]), rows, ["", *after] if after else []
    opening = "\n".join([f"<details><summary>{title}</summary>", "", *header])
    return opening, rows, ["", *after, "", "</details>"] if after else ["", "</details>"]


def _fit(opening: str, rows: Sequence[str], closing: Sequence[str], room: int) -> str | None:
    """Return the block with as many rows as fit, and a note about omitted rows. None if no row fits."""
    whole = "\n".join([opening, *rows, *closing])
    if len(whole) <= room:
        return whole
    end = "\n".join(["", "", f"_{_SHORTENED}_", *closing])
    kept = len(opening) + len(end)
    taken = []
    for row in rows:
        kept += len(row) + 1
        if kept > room:
            break
        taken.append(row)
    return "\n".join([opening, *taken]) + end if taken else None


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    lines, kept = [], len(_SHORTENED) + 4
    for line in text.split("\n"):
        kept += len(line) + 1
        if kept > limit:
            break
        lines.append(line)
    return "\n".join([*lines, "", f"_{_SHORTENED}_"])


def _money(stack: StackReview) -> str:
    found = _costs(stack)
    if not found:
        return _amount(costs.of_plan(None))
    return ", ".join(_moved(*sides) + (f" {unit}" if unit != CURRENCY else "") for unit, *sides in found)


def _moved(before: Cost, after: Cost) -> str:
    old, new = _amount(before), _amount(after)
    return old if old == new else f"{old} → **{new}**"


def _amount(cost: Cost) -> str:
    low, high = (f"{amount.quantize(Decimal('0.01'))}" for amount in (cost.low, cost.high))
    known = low if low == high else f"{low} to {high}"
    if not cost.unknown:
        return known
    return f"{known} and what is unknown" if cost.prices else "unknown"


def _cell(sides: tuple[str | None, str | None] | None) -> str:
    before, after = sides or (None, None)
    if before == after:
        return _or_none(before)
    return f"{_or_none(before)} → **{_or_none(after)}**"


def _or_none(text: str | None) -> str:
    return "none" if text is None else _text(text)


def _value(value: Any) -> str:
    if value is ABSENT:
        return "nothing"
    if value == SECRET:
        return SECRET
    return _code(json.dumps(value, ensure_ascii=False, sort_keys=True, default=str), _VALUE)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [_row(header), _row(["---"] * len(header)), *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _code(text: str, most: int = 200) -> str:
    """Return text as a code span on one line. Its content cannot end the span, mention a user or create a link."""
    line = re.sub(r"\s+", " ", text)
    line = line if len(line) <= most else f"{line[:most]}…"
    fence = "`" * (max((len(run) for run in re.findall(r"`+", line)), default=0) + 1)
    space = " " if "`" in line else ""
    return f"{fence}{space}{line}{space}{fence}"


def _text(text: str) -> str:
    """Return text that appears as written, without markup."""
    line = re.sub(r"\s+", " ", text)
    return re.sub(r"([\\`*_{}\[\]<>#])", r"\\\1", line)


def _fenced(text: str, most: int) -> str:
    shown = text if len(text) <= most else f"{text[:most]}\n… ({len(text) - most} more characters)"
    fence = "`" * max(3, max((len(run) for run in re.findall(r"`+", shown)), default=0) + 1)
    return f"{fence}text\n{shown}\n{fence}"


def _pieces(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _joined(parts: Iterable[str]) -> str:
    return "\n\n".join(part for part in parts if part)
