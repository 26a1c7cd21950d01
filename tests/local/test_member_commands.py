"""`mlbatch submit`, `run`, `why`, `logs` and `cancel`, as a member of a team with the member's rights."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.app import main
from emulator.paths import Paths
from tests.local.environment import Cluster, eventually, gang, member_settings
from tests.local.jobs import running
from tests.local.standing import Standing
from tests.local.submission import remains

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module", autouse=True)
def platform(standing: Standing) -> None:
    standing.up("dev", member_settings)


@pytest.fixture
def mlbatch(paths: Paths, capsys: pytest.CaptureFixture[str]) -> Command:
    """Return a function that runs a command as alice of team blue, and returns its exit code and outputs."""

    def call(name: str, *arguments: object) -> tuple[int, str, str]:
        options = ["--kubeconfig", paths.kubeconfig, "--team", "blue", "--as", "alice"]
        code = main([name, *map(str, options), *map(str, arguments)])
        return code, *capsys.readouterr()

    return call


@pytest.fixture(autouse=True)
def _no_jobs_left(cluster: Cluster, mlbatch: Command) -> Iterator[None]:
    yield
    _, out, _ = mlbatch("why", "--output", "json")
    jobs = [each["job"] for each in json.loads(out)]
    for job in jobs:
        mlbatch("cancel", job)
    for job in jobs:
        eventually(f"{job} is gone", lambda job=job: remains(cluster, "blue", job), lambda left: not left)


def run(mlbatch: Command, name: str, gpus: int, *options: object) -> tuple[int, str, str]:
    """Run a command on this many GPUs."""
    image = "docker.io/library/busybox:1.37.0"
    return mlbatch("run", "--name", name, "--gpus", gpus, "--image", image, *options, "--", "sleep", "3600")


def says(mlbatch: Command, name: str, *texts: str) -> str:
    """Wait until `why` says these texts; return the answer."""
    return eventually(f"why {name}", lambda: mlbatch("why", name)[1], lambda said: all(text in said for text in texts))


def test_a_command_on_two_nodes_runs_and_is_cancelled(mlbatch: Command, cluster: Cluster) -> None:
    code, out, err = run(mlbatch, "train", 16)
    assert (code, err) == (0, "")
    assert out.startswith("submitted blue/train to default-queue\n")
    running(cluster, "blue", "train", pods=2)
    assert "pods: 2 of 2 run, on gpu-node-" in says(mlbatch, "train", "blue/train: running")
    code, _, err = mlbatch("logs", "train")
    assert (code, "error: the output of train-0-" in err) == (2, True)  # a simulated node has no kubelet
    assert mlbatch("cancel", "train")[0] == 0


def test_a_job_that_waits_is_told_what_is_missing_and_who_comes_first(mlbatch: Command, cluster: Cluster) -> None:
    run(mlbatch, "full", 24)
    running(cluster, "blue", "full", pods=3)
    run(mlbatch, "first", 8)
    time.sleep(1.1)  # Kueue compares whole seconds
    code, out, _ = run(mlbatch, "second", 16)
    assert code == 0
    assert "blue/second: pending" in out
    said = says(mlbatch, "second", "waits for: 16 nvidia.com/gpu more", "position: 2 in the team's queue")
    assert "behind first" in said
    assert "to do: Wait." in said
    assert mlbatch("why", "second")[0] == 1
    rows = {each["job"]: each for each in json.loads(mlbatch("why", "--output", "json")[1])}
    assert {name: (each["gpus"], each["position"]) for name, each in rows.items()} == {
        "full": ("24", "-"),
        "first": ("8", "1"),
        "second": ("16", "2"),
    }


def test_a_job_larger_than_its_queue_is_told_the_largest_size(mlbatch: Command) -> None:
    run(mlbatch, "huge", 32)
    said = says(mlbatch, "huge", "too large: 32 nvidia.com/gpu, the queue can get 24")
    assert "Otherwise delete the job and request less." in said


def write(folder: Path, *documents: dict[str, Any]) -> Path:
    file = folder / "job.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    return file


def job_of(wrapper: dict[str, Any]) -> dict[str, Any]:
    """Return the Job in an AppWrapper."""
    return dict(wrapper["spec"]["components"][0]["template"])


def test_a_job_of_a_file_is_wrapped_with_its_files(mlbatch: Command, cluster: Cluster, tmp_path: Path) -> None:
    files = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "program"}, "data": {"train.py": "print()"}}
    file = write(tmp_path, files, job_of(gang("plain", "blue", pods=2, gpus=8)))
    assert mlbatch("submit", file)[0] == 0
    running(cluster, "blue", "plain", pods=2)
    assert cluster.existing("v1", "ConfigMap", "program", "blue")
    code, _, err = mlbatch("submit", file)
    assert (code, "error: the team has a job plain: run `mlbatch cancel plain`" in err) == (2, True)


def test_a_policy_rejects_a_job_with_its_own_words(mlbatch: Command, tmp_path: Path) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": spec}
    code, out, err = mlbatch("submit", write(tmp_path, claim, job_of(gang("refused", "blue", pods=1, gpus=1))))
    assert (code, out) == (2, "")
    assert err.startswith("error: policy mlbatch-team-wrapped-kinds rejects the job: ")
    assert "create the PersistentVolumeClaim by itself, before the AppWrapper" in err


def test_rejected_pods_are_told_with_the_policy(mlbatch: Command, tmp_path: Path) -> None:
    job = job_of(gang("tolerant", "blue", pods=1, gpus=1))
    job["spec"]["template"]["spec"]["tolerations"] = [{"operator": "Exists"}]
    assert mlbatch("submit", write(tmp_path, job))[0] == 0
    said = says(mlbatch, "tolerant", "because: ", "spec.tolerations")
    assert "to do: Delete the job, correct the field in the message" in said


def test_a_job_goes_to_the_users_own_queue(mlbatch: Command, paths: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--kubeconfig", str(paths.kubeconfig), "--team", "green", "--as", "carol"]
    assert main(["run", *options, "--dry-run", "--image", "x", "--", "true"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "user-carol"}


def test_another_team_is_refused(mlbatch: Command, paths: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "--kubeconfig", str(paths.kubeconfig), "--team", "red", "--as", "alice"]) == 2
    assert "forbidden" in capsys.readouterr().err
