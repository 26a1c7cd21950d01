"""Ask about 60 jobs, then submit them. Fails if an answer differs from the job's outcome.

python -m lab.soak.answers [--seed 1] [--only TEXT ...]

Thirty jobs are written, thirty are generated from a seed. A job that waits on the full cluster is also submitted to the
empty one, where it runs or stays pending.
"""

import contextlib
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from ask import source
from ask.answer import Answer, Verdict
from ask.asking import ask
from ask.manifest import ManifestError, read
from ask.replica import Replica
from emulator import cluster as local_cluster
from emulator.paths import Paths
from lab.scenarios.size import Size
from lab.scenarios.size import settings as scenario_settings
from lab.soak.answers.cases import WRITTEN, Case, State, generated
from lab.soak.answers.live import Live, Outcome
from lab.soak.answers.verdict import NO_JOB, difference
from runner.report import condition
from tests.commands import Parser, whole
from tests.local.environment import ROOT, Cluster, Project, eventually, gang, local_project
from tests.local.jobs import KUEUE, phase, pods_of
from tests.local.member import as_member
from tests.local.submission import submitted

COUNT = 30
"""Number of jobs generated from a seed."""
LOANS = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask, submit, compare and print; return the process's exit code."""
    parser = Parser(prog="python -m lab.soak.answers", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=whole("SEED"), default=1)
    parser.add_argument("--only", nargs="+", default=[""], help="parts of the names of those to try; default: all")
    options = parser.parse_args(arguments)
    every = {**WRITTEN, **generated(options.seed, COUNT)}
    cases = {name: case for name, case in every.items() if any(part in name for part in options.only)}
    print(f"seed {options.seed}: {len(cases)} jobs", flush=True)
    wrong = []
    with (
        tempfile.TemporaryDirectory(prefix="mlbatch-answers-") as folder,
        local_project(job_operators=True) as (paths, project),
    ):
        project.configure(settings(project))
        project.up()
        replica = Replica(Paths.of(root=ROOT, state=Path(folder) / "replica"))
        try:
            for name, case, answer, outcome in compared(paths, replica, cases):
                problem = difference(case, answer, outcome)
                wrong += [name] if problem else []
                print(
                    f"{'WRONG' if problem else 'ok':5}  {case.state}  {name}: {problem or answer.verdict}", flush=True
                )
        finally:
            local_cluster.stop(replica.paths)
    print(f"{len(cases) - len(wrong)} of {len(cases)} answers are what then became of the job")
    if wrong:
        print(f"error: wrong about {'; '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


def settings(project: Project) -> dict[str, Any]:
    """Return the stack's settings: those of the scenarios, with the operators of all kinds of jobs for members."""
    base = scenario_settings(project, Size())
    operators = {name: {"enabled": True} for name in ("trainingOperator", "kuberay", "trainer")}
    return {**base, "queueing": {**base["queueing"], **operators}, "tenancy": {"unwrappedRay": True}}


def compared(paths: Paths, replica: Replica, cases: Mapping[str, Case]) -> Iterator[tuple[str, Case, Answer, Outcome]]:
    """Yield each case with its answer and its outcome. In each state, all questions come first."""
    live = Live(paths)
    kept = []
    for state in State:
        here = {name: case for name, case in cases.items() if case.state is state}
        with held(paths, state):
            answers = {name: answered(paths, replica, case) for name, case in here.items()}
            for name, case in here.items():
                outcome = live.outcome(case)
                if state is State.FULL:
                    loans_run(live.cluster)
                if outcome.verdict is not Verdict.WAITS:
                    yield name, case, answers[name], outcome
                elif state is State.EMPTY:
                    yield name, case, answers[name], Outcome(Verdict.NEVER, said=outcome.said)
                else:
                    kept.append((name, case, answers[name], outcome))
    for name, case, answer, outcome in kept:
        yield name, case, answer, in_the_end(outcome, live.outcome(case))


def in_the_end(full: Outcome, empty: Outcome) -> Outcome:
    """Return the final outcome of a job that waits on the full cluster, from its outcome on the empty one."""
    match empty.verdict:
        case Verdict.ADMITTED:
            return full
        case Verdict.REFUSED:
            return empty
        case _:
            return Outcome(Verdict.NEVER, said=empty.said)


def answered(paths: Paths, replica: Replica, case: Case) -> Answer:
    """Return the answer about a case. A file without a job for members counts as rejected."""
    began = time.monotonic()
    try:
        job = read(yaml.safe_dump(case.document), case.team)
        found = ask(replica, source.read(paths.kubeconfig, None), job, case.team, case.submitter)
    except ManifestError as error:
        return Answer(verdict=Verdict.REFUSED, job=f"{case.team}/{case.name}", queue="", rule=NO_JOB, reason=str(error))
    print(f"       asked in {time.monotonic() - began:.1f} s: {found.verdict}", flush=True)
    return found


@contextlib.contextmanager
def held(paths: Paths, state: State) -> Iterator[None]:
    """Put the cluster into a state for the length of the context."""
    if state is State.EMPTY:
        yield
        return
    cluster, loans = Cluster(paths.kubeconfig), [gang(f"loan-{index}", "blue", 1, 8) for index in range(LOANS)]
    with submitted(as_member(paths, "alice"), *loans):
        loans_run(cluster)
        # Kueue compares creation times in whole seconds, and a loan takes its place back from a newer job.
        time.sleep(1.1)
        with submitted(as_member(paths, "alice"), gang("first", "blue", 1, 8)):
            eventually("the first one waits", lambda: waits(cluster, "first"))
            yield


def waits(cluster: Cluster, name: str) -> bool:
    """Tell whether Kueue has considered a job and not given it quota."""
    found = [
        each
        for each in cluster.list(KUEUE, "Workload", "blue")
        if each["metadata"]["name"].startswith(f"appwrapper-{name}-")
    ]
    return any((condition(each, "QuotaReserved") or {}).get("status") == "False" for each in found)


def loans_run(cluster: Cluster) -> None:
    """Wait until the loans have all GPUs again. A newer job takes a loan's place for a while."""
    eventually(
        "the loans run",
        lambda: (
            [len(pods_of(cluster, "blue", f"loan-{index}")) for index in range(LOANS)]
            + [phase(cluster, "blue", f"loan-{index}") for index in range(LOANS)]
        ),
        lambda found: found == [1] * LOANS + ["Running"] * LOANS,
        seconds=300,
    )


if __name__ == "__main__":
    sys.exit(main())
