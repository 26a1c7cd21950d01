"""What is answered, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Final

FORM: Final = 1
"""The number of the JSON's form: it grows where a key goes or changes its meaning, not where one is added."""


class Verdict(StrEnum):
    """What would become of the job."""

    ADMITTED = "admitted"
    """It runs now."""
    PREEMPTS = "preempts"
    """It runs now, and others give way to it."""
    WAITS = "waits"
    """It runs when others have ended."""
    NEVER = "never"
    """It does not run on this cluster, whoever ends."""
    REFUSED = "refused"
    """It, or a pod of it, is not taken."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer about one job.

    nodes: how many of its pods would run on each. resource: what it waits for. behind: jobs of its queue that come
    first. preempts: jobs that give way. Jobs are named `<team>/<name>`. rule: what refuses it. reason: in the words of
    who decided. change: what to do, the least that helps. differences: what the replica has not as the cluster has it.
    """

    verdict: Verdict
    job: str
    queue: str
    nodes: Mapping[str, int] = field(default_factory=dict)
    resource: str | None = None
    behind: Sequence[str] = ()
    preempts: Sequence[str] = ()
    rule: str | None = None
    reason: str = ""
    change: str | None = None
    differences: Sequence[str] = ()

    @property
    def runs(self) -> bool:
        """Whether the job would run now."""
        return self.verdict in (Verdict.ADMITTED, Verdict.PREEMPTS)

    def json(self) -> str:
        """Return the answer in its documented form (docs/ask.md)."""
        return json.dumps({"form": FORM, **asdict(self)}, indent=2)

    def text(self) -> str:
        """Return the answer for people, a line for each thing there is to say."""
        lines = [f"{self.job} {_SAID[self.verdict]}"]
        lines += [f"  on {node}: {count} pod{'s' * (count > 1)}" for node, count in sorted(self.nodes.items())]
        lines += [f"  gives way to it: {name}" for name in self.preempts]
        lines += [f"  for: {self.resource}"] if self.resource else []
        lines += [f"  behind: {name}" for name in self.behind]
        lines += [f"  rule: {self.rule}"] if self.rule else []
        lines += [f"  because: {self.reason}"] if self.reason else []
        lines += [f"  what helps: {self.change}"] if self.change else []
        lines += [f"  differs here: {each}" for each in self.differences]
        return "\n".join(map(shown, lines))


def shown(text: str) -> str:
    """Return a text as one line that cannot act in a terminal: some of it stands in a job that somebody else wrote."""
    line = " ".join(text.splitlines())
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in line)


_SAID: Final = {
    Verdict.ADMITTED: "would be admitted now",
    Verdict.PREEMPTS: "would be admitted now, and others would give way",
    Verdict.WAITS: "would wait",
    Verdict.NEVER: "would never run",
    Verdict.REFUSED: "would be refused",
}
