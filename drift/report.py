"""The report of the drift check, as text."""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC
from difflib import unified_diff
from itertools import takewhile
from typing import Any, Final

from drift.check import Finding
from drift.compare import ABSENT, Difference, render
from drift.fields import Writer
from drift.restarts import Restart
from drift.state import SECRET

_VALUE: Final = 400
"""Largest number of characters of a value, or of a line of it."""

_BEFORE: Final = 40
"""Number of characters before the first difference of two values."""

_LINES: Final = 40
"""Largest number of lines in the comparison of two texts."""

_AROUND: Final = 2
"""Number of lines before and after a difference of two texts."""


def findings(found: Iterable[Finding], *, values: bool) -> Iterator[str]:
    """Yield lines about each object that drifted or was not compared. values: show values that are not secret."""
    for finding in found:
        if finding.trouble is not None:
            yield f"{finding.declared.title}: not compared, {finding.trouble}"
        elif finding.gone is not None:
            yield f"{finding.declared.title}: {finding.gone}"
        elif finding.differences:
            yield finding.declared.title
            for difference in finding.differences:
                yield from _difference(difference, values=values)
        if finding.drifted and finding.kept is not None:
            yield f"  --fix leaves it to `pulumi up`: {finding.kept}"


def summary(found: Sequence[Finding], releases: Sequence[str]) -> Iterator[str]:
    """Yield the summary lines."""
    drifted = [finding for finding in found if finding.drifted]
    compared = [finding for finding in found if finding.trouble is None]
    objects = _count(len(compared), "object")
    yield f"Not as declared: {len(drifted)} of {objects}." if drifted else f"As declared: all of {objects}."
    if len(compared) < len(found):
        yield f"Not compared: {_count(len(found) - len(compared), 'object')}."
    if releases:
        yield f"Objects of Helm releases are not compared (see docs/drift.md): {', '.join(sorted(releases))}."
    yield "Cloud resources are not compared here: `pulumi refresh --preview-only` compares them."


def restarts(done: Iterable[Restart]) -> Iterator[str]:
    """Yield a line about each workload that was restarted, or whose restart failed."""
    for each in done:
        reads = f"it reads {each.config.title}, which was restored"
        if each.refused is None:
            yield f"{each.workload.title}: restarted, as {reads}"
        else:
            yield f"{each.workload.title}: not restarted, though {reads}: {each.refused}"


def _difference(difference: Difference, *, values: bool) -> Iterator[str]:
    yield f"  {render(difference.path)}"
    if values:
        yield from _values(difference.declared, difference.live)
    yield f"    written   {_written(difference)}"


def _written(difference: Difference) -> str:
    if difference.writer is not None:
        return f"by {_who(difference.writer)}"
    if difference.suspect is not None:
        return f"writer not recorded; the last writer of the object was {_who(difference.suspect)}"
    return "writer not recorded"


def _who(writer: Writer) -> str:
    when = f", {writer.time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if writer.time is not None else ""
    return f"{writer.manager}{when}"


def _values(declared: Any, live: Any) -> Iterator[str]:
    if isinstance(declared, str) and isinstance(live, str) and "\n" in declared + live:
        lines = _compared_lines(declared, live)
        if all(len(line) <= _VALUE for line in lines):
            yield "    declared (-), live (+)"
            yield from (f"      {line}" for line in lines[:_LINES])
            if len(lines) > _LINES:
                yield f"      … ({_count(len(lines) - _LINES, 'more line')})"
            return
    wanted, lives = _value(declared), _value(live)
    same = takewhile(lambda pair: pair[0] == pair[1], zip(wanted, lives, strict=False))
    start = max(sum(1 for _ in same) - _BEFORE, 0)
    yield f"    declared  {_excerpt(wanted, start)}"
    yield f"    live      {_excerpt(lives, start)}"


def _compared_lines(declared: str, live: str) -> list[str]:
    wanted, lives = ([_printable(line) for line in text.split("\n")] for text in (declared, live))
    return list(unified_diff(wanted, lives, lineterm="", n=_AROUND))[2:]  # without the names of two files


def _value(value: Any) -> str:
    if value is ABSENT:
        return "nothing"
    if value is SECRET:
        return "[secret]"
    return _printable(json.dumps(value, ensure_ascii=False, sort_keys=True))


def _printable(text: str) -> str:
    """Return a text without control and invisible characters."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def _excerpt(text: str, start: int) -> str:
    """Return a short text as a whole, otherwise the part around a position."""
    if len(text) <= _VALUE:
        return text
    left = len(text) - start - _VALUE
    before = f"({start} characters) …" if start else ""
    return f"{before}{text[start : start + _VALUE]}" + (f"… ({left} more characters)" if left > 0 else "")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
