"""The examples, submitted by a member as they are in the repository, with the commands of docs/members.md.

Kueue, AppWrapper and the operators of jobs are real. The pods are simulated, and end when a test ends them. Simulated
nodes have no kubelet for logs and port-forwards: the API server contacts the node only for permitted users.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.app import main
from emulator.paths import Paths
from tests.local.environment import Cluster, eventually, operators_settings
from tests.local.jobs import KUEUE
from tests.local.member import as_member, dry_run
from tests.local.standing import Standing
from tests.local.test_member_pages import NO_KUBELET, changes, done, run
from tests.local.test_member_train_jobs import finish
from tests.unit.test_member_pages import EXAMPLES, MEMBERS, NOTEBOOK, commands

GPUS = {
    "train-job": [8, 8],
    "pytorch-job": [8, 8],
    "train": [8, 8],
    "ray-job": [0, 8, 8],
    "batch-inference": [1],
    "notebook-alice": [1],
}
"""GPUs of each pod, by the name of the job."""
RENAMED = NOTEBOOK.with_name("mine.yaml")
NAMES = {name: path for path in EXAMPLES for name in GPUS if f"  name: {name}\n" in path.read_text()}
NAMES["notebook-alice"] = RENAMED
"""File of each job."""


@pytest.fixture(scope="module", autouse=True)
def platform(standing: Standing) -> None:
    standing.up("dev", operators_settings)


@pytest.fixture
def folder(tmp_path: Path, paths: Paths) -> Iterator[Path]:
    """Yield a member's working folder with the examples and a token."""
    for path in EXAMPLES:
        (tmp_path / path.name).write_text(path.read_text())
    (tmp_path / RENAMED.name).write_text(NOTEBOOK.read_text().replace("notebook", "notebook-alice"))
    (tmp_path / "token").write_text("secret")
    yield tmp_path
    for path in (*EXAMPLES, RENAMED):
        run(paths, tmp_path, ["kubectl", "-n", "blue", "delete", "--ignore-not-found", "-f", path.name])


def pods(cluster: Cluster, name: str) -> list[dict[str, Any]]:
    key = "jobset.sigs.k8s.io/jobset-name" if name == "train-job" else "workload.codeflare.dev/appwrapper"
    return cluster.list("v1", "Pod", "blue", label_selector=f"{key}={name}")


def gpus(pod: dict[str, Any]) -> int:
    return sum(int(each["resources"]["requests"].get("nvidia.com/gpu", 0)) for each in pod["spec"]["containers"])


def of_job(name: str) -> list[list[str]]:
    """Return the page's commands that name a job or its file, in words. Those of the PyTorchJob are like the Job's."""
    if name == "pytorch-job":
        like = [words for words in of_job("train") if words[3] != "describe"]
        return [[re.sub(r"\btrain$|^job(?=\.yaml$)", name, word) for word in words] for words in like]
    named = re.compile(rf"(.*[=/])?{name}(-node-0|-token|-head-svc)?|{re.escape(NAMES[name].name)}")
    found = [words for words in commands(MEMBERS) if any(map(named.fullmatch, words))]
    return [words for words in found if words[3] != "exec"]


def counted(cluster: Cluster, name: str) -> list[str]:
    """Return the Workloads of a job that keep quota."""
    return [
        item["metadata"]["name"]
        for item in cluster.list(KUEUE, "Workload", "blue")
        if f"-{name}-" in item["metadata"]["name"]
        and not any(c["type"] == "Finished" and c["status"] == "True" for c in item["status"].get("conditions", ()))
    ]


@pytest.mark.parametrize("name", GPUS)
def test_a_member_submits_watches_and_deletes_it(name: str, cluster: Cluster, paths: Paths, folder: Path) -> None:
    words = of_job(name)
    start = [each for each in words if each[3] in ("create", "apply")]
    look = [each for each in words if not changes(each)]
    end = [each for each in words if each[3] == "delete"]
    for command in start:
        done(paths, folder, command, user="alice")
    found = eventually(
        f"the pods of {name} run",
        lambda: [pod for pod in pods(cluster, name) if pod["status"]["phase"] == "Running"],
        lambda running: len(running) == len(GPUS[name]),
    )
    assert sorted(map(gpus, found)) == GPUS[name]
    for command in look:
        print(" ".join(command), done(paths, folder, command, user="alice"), sep="\n")
    if name != "ray-job":
        for pod in found:
            finish(cluster, pod)
        eventually(f"the quota of {name} is free", lambda: counted(cluster, name), lambda left: not left)
    for command in end:
        done(paths, folder, command, user="alice")
    eventually(f"{name} is gone", lambda: pods(cluster, name), lambda left: not left)
    eventually(f"{name} counts no more", lambda: counted(cluster, name), lambda left: not left)


def test_mlbatch_submits_a_train_job_with_its_files(cluster: Cluster, paths: Paths, folder: Path) -> None:
    options = ["--kubeconfig", str(paths.kubeconfig), "--team", "blue", "--as", "alice"]
    assert main(["submit", *options, str(folder / "train-job.yaml")]) == 0
    eventually("its pods exist", lambda: pods(cluster, "train-job"))
    assert cluster.get("v1", "ConfigMap", "train-job-program", "blue")
    assert main(["cancel", *options, "train-job"]) == 0
    eventually("it is gone", lambda: pods(cluster, "train-job"), lambda left: not left)
    eventually("so are its files", lambda: cluster.get("v1", "ConfigMap", "train-job-program", "blue") is None)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.name))
def test_the_lines_that_it_offers_are_accepted(path: Path, paths: Paths) -> None:
    """A volume keeps checkpoints, or the files of the notebook."""
    text = path.read_text().replace("- {name: home, emptyDir: {}}", "")
    for document in yaml.safe_load_all(re.sub(r"# (- \{name: )", r"\1", text)):
        document["metadata"]["namespace"] = "blue"
        dry_run(as_member(paths, "alice"), document)


def test_only_the_team_forwards_a_notebooks_port(cluster: Cluster, paths: Paths, folder: Path) -> None:
    kubectl = ["kubectl", "-n", "blue"]
    done(
        paths,
        folder,
        [*kubectl, "create", "secret", "generic", "notebook-alice-token", "--from-file", "token"],
        user="alice",
    )
    done(paths, folder, [*kubectl, "apply", "-f", RENAMED.name], user="alice")
    try:
        (pod,) = eventually(
            "it runs",
            lambda: [pod for pod in pods(cluster, "notebook-alice") if pod["status"]["phase"] == "Running"],
        )
        forward = [*kubectl, "port-forward", f"pod/{pod['metadata']['name']}", "8888"]
        assert NO_KUBELET in run(paths, folder, forward, user="alice").stderr
        assert "Forbidden" in run(paths, folder, forward, user="bob").stderr
        read = [*kubectl, "get", "secret", "notebook-alice-token"]
        assert "Forbidden" in run(paths, folder, read, user="alice").stderr, "not even the token's owner"
    finally:
        done(paths, folder, [*kubectl, "delete", "secret", "notebook-alice-token"], user="alice")


def test_every_command_of_a_job_is_tried() -> None:
    tried = {" ".join(words) for name in NAMES for words in of_job(name)}
    left = [words for words in commands(MEMBERS) if " ".join(words) not in tried and changes(words)]
    left = [words for words in left if "registry" not in words]
    assert left == [["kubectl", "-n", "blue", "apply", "-f", "volume.yaml"]], "its storage class is the site's own"
