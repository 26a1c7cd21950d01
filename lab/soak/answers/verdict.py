"""Compares an answer with the outcome."""

import re
from collections.abc import Iterable

from ask.answer import Answer, Verdict
from lab.soak.answers.cases import Case
from lab.soak.answers.live import Outcome

NO_JOB = "no job"
"""The rule of the answer for a file without a job for members."""
_WORDS = {"RBAC": "is forbidden", NO_JOB: "is forbidden"}


def difference(case: Case, answer: Answer, outcome: Outcome) -> str:
    """Return the differences between answer and outcome, empty if the answer was right."""
    if case.expected is not None and outcome.verdict is not case.expected:
        return f"the cluster: {_told(outcome)}; expected: {case.expected}"
    if answer.verdict is not outcome.verdict:
        return f"answered: {answer.verdict} ({answer.reason}); the cluster: {_told(outcome)}"
    if outcome.verdict is Verdict.PREEMPTS and _alike(answer.preempts) != _alike(outcome.gave_way):
        return f"answered: {', '.join(answer.preempts)} give way; on the cluster {', '.join(outcome.gave_way)} do"
    rule = answer.rule or ""
    if outcome.verdict is Verdict.REFUSED and rule.startswith("mlbatch-") and rule not in outcome.said:
        return f"answered: refused by {rule}; the cluster: {outcome.said}"
    if rule in _WORDS and _WORDS[rule] not in outcome.said:
        return f"answered: refused by {rule}; the cluster: {outcome.said}"
    return ""


def _alike(jobs: Iterable[str]) -> list[str]:
    """Return jobs without the numbers of loans: Kueue preempts the newest loan, which differs in each case."""
    return sorted(re.sub(r"(?<=/loan)-\d+$", "", job) for job in jobs)


def _told(outcome: Outcome) -> str:
    return f"{outcome.verdict}" + (f" ({outcome.said})" if outcome.said else "")
