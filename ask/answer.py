"""The answer to a question, as text and as JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Final

FORM: Final = 1
"""Version of the JSON form. It increases when a key is removed or changes its meaning, not when one is added."""


class Verdict(StrEnum):
    """What would happen to the job."""

    ADMITTED = "admitted"
    """The job runs now."""
    PREEMPTS = "preempts"
    """The job runs now and preempts other jobs."""
    WAITS = "waits"
    """The job runs after other jobs have ended."""
    NEVER = "never"
    """The job never runs on this cluster, even if all other jobs end."""
    REFUSED = "refused"
    """The cluster rejects the job or one of its pods."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer about one job.

    nodes: number of its pods on each node. resource: what the job waits for. behind: jobs of its queue that come first.
    preempts: jobs that it preempts. Jobs are named `<team>/<name>`. rule: what rejects the job. reason: the message of
    the controller or rule that decided. change: the smallest change that helps. differences: where the replica differs
    from the cluster.
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
        return self.verdict in (Verdict.ADMITTED, Verdict.PREEMPTS)

    def json(self) -> str:
        """Return the answer in its documented form (docs/ask.md)."""
        return json.dumps({"form": FORM, **asdict(self)}, indent=2)

    def text(self) -> str:
        """Return the answer for people, one line for each fact."""
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
    """Return a text as one line without control characters. Another person may have written the job that it quotes."""
    line = " ".join(text.splitlines())
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in line)


_SAID: Final = {
    Verdict.ADMITTED: "would be admitted now",
    Verdict.PREEMPTS: "would be admitted now, and others would give way",
    Verdict.WAITS: "would wait",
    Verdict.NEVER: "would never run",
    Verdict.REFUSED: "would be refused",
}
