"""The jobs that are asked about and then submitted, and when an answer counts as wrong."""

from collections import Counter

import pytest
import yaml

from ask.answer import Answer, Verdict
from ask.manifest import KINDS, read
from lab.soak.answers.__main__ import COUNT, in_the_end
from lab.soak.answers.cases import WRITTEN, Case, State, generated
from lab.soak.answers.live import Outcome
from lab.soak.answers.manifests import ray_cluster, wrapped
from lab.soak.answers.verdict import NO_JOB, difference


def test_there_are_sixty_of_every_kind_and_verdict() -> None:
    cases = [*WRITTEN.values(), *generated(1, COUNT).values()]
    assert (len(WRITTEN), len(cases)) == (30, 60)
    assert {str(case.document["kind"]) for case in cases} == {*KINDS, "Job"}
    assert {case.expected for case in WRITTEN.values()} == set(Verdict)
    kinds = Counter(str(case.document["kind"]) for case in generated(1, COUNT).values())
    assert set(kinds) == set(KINDS)


def test_a_seed_decides_what_is_generated() -> None:
    first = generated(1, COUNT)
    assert first == generated(1, COUNT)
    assert first != generated(2, COUNT)
    assert {case.state for case in first.values()} == set(State)


@pytest.mark.parametrize("name", [name for name in WRITTEN if name != "a plain Job"])
def test_each_written_one_can_be_asked_about(name: str) -> None:
    case = WRITTEN[name]
    assert read(yaml.safe_dump(case.document), case.team).name == "job"


CASE = Case(State.EMPTY, "blue", wrapped("job", "blue"))


def answer(verdict: Verdict, rule: str | None = None, preempts: tuple[str, ...] = ()) -> Answer:
    return Answer(verdict=verdict, job="blue/job", queue="q", rule=rule, preempts=preempts, reason="a reason")


def test_an_answer_is_wrong_where_another_verdict_came() -> None:
    said = difference(CASE, answer(Verdict.WAITS), Outcome(Verdict.NEVER, said="too large"))
    assert said == "answered: waits (a reason); the cluster: never (too large)"
    assert difference(CASE, answer(Verdict.WAITS), Outcome(Verdict.WAITS, said="too few")) == ""


def test_an_answer_is_wrong_where_other_jobs_gave_way() -> None:
    outcome = Outcome(Verdict.PREEMPTS, gave_way=("blue/a", "blue/b"))
    assert difference(CASE, answer(Verdict.PREEMPTS, preempts=("blue/b", "blue/a")), outcome) == ""
    said = difference(CASE, answer(Verdict.PREEMPTS, preempts=("blue/a",)), outcome)
    assert said == "answered: blue/a give way; on the cluster blue/a, blue/b do"
    another = answer(Verdict.PREEMPTS, preempts=("blue/loan-2",))
    assert difference(CASE, another, Outcome(Verdict.PREEMPTS, gave_way=("blue/loan-1",))) == "", "loans are alike"
    assert difference(CASE, another, Outcome(Verdict.PREEMPTS, gave_way=("blue/loan-1", "blue/loan-2"))) != ""


@pytest.mark.parametrize(
    ("rule", "said", "is_right"),
    [
        ("mlbatch-team-jobs", "ValidatingAdmissionPolicy 'mlbatch-team-jobs' denied request: no", True),
        ("mlbatch-team-jobs", "ValidatingAdmissionPolicy 'mlbatch-other' denied request: no", False),
        ("RBAC", 'appwrappers is forbidden: User "bob" cannot create', True),
        (NO_JOB, "spec.x: Invalid value", False),
    ],
)
def test_a_refusal_is_by_the_rule_that_was_named(rule: str, said: str, is_right: bool) -> None:
    found = difference(CASE, answer(Verdict.REFUSED, rule), Outcome(Verdict.REFUSED, said=said))
    assert (found == "") == is_right


def test_what_somebody_expects_counts_too() -> None:
    case = Case(State.EMPTY, "blue", ray_cluster("job", "blue"), Verdict.ADMITTED)
    said = difference(case, answer(Verdict.WAITS), Outcome(Verdict.WAITS, said="no room"))
    assert said == "the cluster: waits (no room); expected: admitted"


def test_what_waits_is_told_by_what_comes_of_it_on_the_empty_cluster() -> None:
    waits = Outcome(Verdict.WAITS, said="no room")
    assert in_the_end(waits, Outcome(Verdict.ADMITTED)) is waits
    refused = Outcome(Verdict.REFUSED, said="a policy")
    assert in_the_end(waits, refused) is refused
    assert in_the_end(waits, Outcome(Verdict.WAITS, said="too large")) == Outcome(Verdict.NEVER, said="too large")
