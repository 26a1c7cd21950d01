"""What was found, as text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC
from typing import Any, Final

from drift.check import Finding
from drift.compare import ABSENT, Difference, render
from drift.fields import Writer
from drift.state import SECRET

_VALUE: Final = 400
"""Most characters of one value."""


def findings(found: Iterable[Finding], *, values: bool) -> Iterator[str]:
    """Yield lines about each object that drifted or could not be compared. values: show those that are no secrets."""
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
    """Yield lines about the whole."""
    drifted = [finding for finding in found if finding.drifted]
    compared = [finding for finding in found if finding.trouble is None]
    objects = _count(len(compared), "object")
    yield f"Not as declared: {len(drifted)} of {objects}." if drifted else f"As declared: all of {objects}."
    if len(compared) < len(found):
        yield f"Not compared: {_count(len(found) - len(compared), 'object')}."
    if releases:
        yield f"Not compared are the objects of Helm's releases (see docs/drift.md): {', '.join(sorted(releases))}."
    yield "Cloud resources are not compared here: `pulumi refresh --preview-only` looks at them."


def _difference(difference: Difference, *, values: bool) -> Iterator[str]:
    yield f"  {render(difference.path)}"
    if values:
        yield f"    declared  {_value(difference.declared)}"
        yield f"    lives     {_value(difference.live)}"
    yield f"    written   {_written(difference)}"


def _written(difference: Difference) -> str:
    if difference.writer is not None:
        return f"by {_who(difference.writer)}"
    if difference.suspect is not None:
        return f"by whom is not recorded; the last to write to the object was {_who(difference.suspect)}"
    return "by whom is not recorded"


def _who(writer: Writer) -> str:
    when = f", {writer.time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if writer.time is not None else ""
    return f"{writer.manager}{when}"


def _value(value: Any) -> str:
    if value is ABSENT:
        return "nothing"
    if value is SECRET:
        return "[secret]"
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= _VALUE else f"{text[:_VALUE]}… ({len(text) - _VALUE} more characters)"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
