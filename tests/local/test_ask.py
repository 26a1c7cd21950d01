"""Answers about jobs before submission on a full cluster, compared with their outcomes."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ask import source
from ask.answer import Answer, Verdict
from ask.asking import ask
from ask.manifest import read
from ask.replica import Replica
from cli.ask import run
from emulator import cluster as local_cluster
from emulator.paths import Paths
from lab.scenarios.size import Size, settings
from tests.local.environment import ROOT, Cluster, Project, eventually, gang
from tests.local.jobs import APPWRAPPER, KUEUE, phase, running
from tests.local.member import as_member
from tests.local.standing import Standing
from tests.local.submission import submitted

pytestmark = pytest.mark.emulated("the replica is a second local cluster")


@pytest.fixture(scope="module", autouse=True)
def platform(standing: Standing) -> Project:
    return standing.up("dev", lambda project: settings(project, Size()))


@pytest.fixture(scope="module")
def replica(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replica]:
    found = Replica(Paths.of(root=ROOT, state=tmp_path_factory.mktemp("replica")))
    yield found
    local_cluster.kill(found.paths)


@pytest.fixture(scope="module", autouse=True)
def loans(cluster: Cluster, paths: Paths, platform: Project) -> Iterator[None]:
    """Fill all GPUs with jobs of blue, two thirds of them borrowed.

    Each job is newer than the previous one in whole seconds, which Kueue compares. Of two equally new jobs, Kueue might
    first preempt the older one, which would then preempt the newer one.
    """
    with contextlib.ExitStack() as stack:
        for index in range(3):
            stack.enter_context(submitted(as_member(paths, "alice"), gang(f"loan-{index}", "blue", pods=1, gpus=8)))
            running(cluster, "blue", f"loan-{index}", pods=1)
            time.sleep(1.1)
        yield


@pytest.fixture
def asked(paths: Paths, replica: Replica) -> Callable[..., Answer]:
    def ask_about(document: dict[str, Any], team: str, **options: str) -> Answer:
        return ask(replica, source.read(paths.kubeconfig, None), read(yaml.safe_dump(document), team), team, **options)

    return ask_about


def test_a_waiting_job_is_answered_with_resource_and_jobs_ahead(
    asked: Callable[..., Answer], cluster: Cluster, paths: Paths
) -> None:
    with submitted(as_member(paths, "alice"), gang("first", "blue", pods=1, gpus=8)):
        eventually("Kueue has looked at blue/first", lambda: is_told_to_wait(cluster, "first"))
        answer = asked(gang("job", "blue", pods=1, gpus=8), "blue")
        assert (answer.verdict, answer.resource) == (Verdict.WAITS, "8 nvidia.com/gpu more")
        assert answer.behind == ["blue/first"]
        assert not answer.runs


def is_told_to_wait(cluster: Cluster, name: str) -> bool:
    """Tell whether Kueue has reported that a job of blue has no quota yet."""
    counted = [
        item for item in cluster.list(KUEUE, "Workload", "blue") if f"appwrapper-{name}-" in item["metadata"]["name"]
    ]
    conditions = [each for item in counted for each in (item.get("status") or {}).get("conditions") or ()]
    return ("QuotaReserved", "False") in [(each["type"], each["status"]) for each in conditions]


@pytest.mark.soak("a minute; tests/unit/test_ask_question.py has the answers that never run")
def test_a_job_larger_than_the_cluster_never_runs_and_the_answer_has_the_change(asked: Callable[..., Answer]) -> None:
    answer = asked(gang("job", "blue", pods=4, gpus=8), "blue")
    assert answer.verdict is Verdict.NEVER
    assert answer.change == "run 3 pods, in place of 4, or ask for less in each"
    answer = asked(gang("job", "blue", pods=1, gpus=16), "blue")
    assert (answer.verdict, answer.resource) == (Verdict.NEVER, "nvidia.com/gpu")
    assert answer.change == "ask for 8 nvidia.com/gpu a pod, in place of 16"


def test_a_refused_job_is_answered_with_the_rule(asked: Callable[..., Answer]) -> None:
    rooted = gang("job", "blue", pods=1, gpus=1)
    pod = rooted["spec"]["components"][0]["template"]["spec"]["template"]["spec"]
    answer = asked({**rooted, "metadata": {**rooted["metadata"], "finalizers": ["example.org/hold"]}}, "blue")
    assert answer.verdict is Verdict.REFUSED
    assert answer.rule is not None
    pod["tolerations"] = [{"operator": "Exists"}]
    answer = asked(rooted, "blue")
    assert (answer.verdict, answer.rule) == (Verdict.REFUSED, "mlbatch-team-pod-isolation")
    assert "spec.tolerations" in answer.reason
    answer = asked(gang("job", "blue", pods=1, gpus=1), "blue", user="bob")
    assert (answer.verdict, answer.rule) == (Verdict.REFUSED, "RBAC")


def test_the_answer_names_the_job_that_is_preempted(
    asked: Callable[..., Answer], cluster: Cluster, paths: Paths, replica: Replica
) -> None:
    job = gang("own", "red", pods=2, gpus=4)
    answer = asked(job, "red")
    assert (answer.verdict, answer.runs) == (Verdict.PREEMPTS, True)
    assert sum(answer.nodes.values()) == 2
    with submitted(as_member(paths, "bob"), job):
        running(cluster, "red", "own", pods=2)
        gave_way = [f"blue/loan-{index}" for index in range(3) if phase(cluster, "blue", f"loan-{index}") != "Running"]
        assert list(answer.preempts) == gave_way
    for index in range(3):
        running(cluster, "blue", f"loan-{index}", pods=1)


@pytest.fixture
def claim(paths: Paths) -> Iterator[str]:
    """Yield a claim of red without a pod."""
    member, spec = as_member(paths, "bob"), {"accessModes": ["ReadWriteOnce"]}
    spec |= {"resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "simulated"}
    document = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": spec}
    member.create({**document, "metadata": {"name": "checkpoints", "namespace": "red"}})
    yield "checkpoints"
    member.delete("v1", "PersistentVolumeClaim", "checkpoints", "red")


@pytest.mark.soak("a minute; tests/unit/test_ask.py has the replica's volumes")
def test_a_job_with_a_volume_finds_its_place(
    asked: Callable[..., Answer], cluster: Cluster, paths: Paths, claim: str
) -> None:
    job = gang("saving", "red", pods=1, gpus=0)
    pod = job["spec"]["components"][0]["template"]["spec"]["template"]["spec"]
    pod["volumes"] = [{"name": "checkpoints", "persistentVolumeClaim": {"claimName": claim}}]
    answer = asked(job, "red")
    assert (answer.verdict, sum(answer.nodes.values())) == (Verdict.ADMITTED, 1)
    with submitted(as_member(paths, "bob"), job):
        running(cluster, "red", "saving", pods=1)


@pytest.mark.soak("a minute; tests/unit/test_ask_question.py has refused contents")
def test_an_appwrapper_with_an_invalid_job_is_refused_by_ask_and_fails_in_the_cluster(
    asked: Callable[..., Answer], cluster: Cluster, paths: Paths
) -> None:
    job = gang("endless", "red", pods=1, gpus=0)
    del job["spec"]["components"][0]["template"]["spec"]["template"]["spec"]["restartPolicy"]
    answer = asked(job, "red")
    assert answer.verdict is Verdict.REFUSED
    assert "spec.template.spec.restartPolicy: Required value" in answer.reason
    with submitted(as_member(paths, "bob"), job):
        eventually("it fails", lambda: phase(cluster, "red", "endless"), lambda found: found == "Failed")


def test_the_cluster_is_only_read(asked: Callable[..., Answer], cluster: Cluster) -> None:
    """Afterwards the cluster has the same jobs. Jobs that gave way on the replica did not give way here."""
    before = identities(cluster)
    assert asked(gang("job", "red", pods=1, gpus=8), "red").verdict is Verdict.PREEMPTS
    assert identities(cluster) == before
    assert [phase(cluster, "blue", f"loan-{index}") for index in range(3)] == ["Running"] * 3


def identities(cluster: Cluster) -> set[str]:
    """Return the uids of all jobs and their pods."""
    jobs, pods = cluster.list(APPWRAPPER, "AppWrapper"), cluster.list("v1", "Pod", "blue")
    return {item["metadata"]["uid"] for item in (*jobs, *pods)}


def test_the_command_answers_as_json(
    paths: Paths, tmp_path: Path, capsys: pytest.CaptureFixture[str], replica: Replica
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(gang("job", "blue", pods=1, gpus=8)))
    assert run(str(file), "blue", None, None, paths.kubeconfig, None, "json", replica.paths) == 1
    answer = json.loads(capsys.readouterr().out)
    assert {key: answer[key] for key in ("form", "verdict", "job", "queue", "resource")} == {
        "form": 1,
        "verdict": "waits",
        "job": "blue/job",
        "queue": "default-queue",
        "resource": "8 nvidia.com/gpu more",
    }
