"""The guides to a job's life: each command runs in a real kubectl, as a member or as the platform's owner.

Simulated nodes have no kubelet for logs and shells, as the page says. The rights for these are still tested: the API
server contacts the node only for permitted users.
"""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from emulator.paths import Paths
from tests.local.environment import ROOT, Cluster, eventually, member_settings
from tests.local.jobs import pods_of, running
from tests.local.standing import Standing
from tests.unit.test_member_pages import JOB, MEMBERS, OWNERS, commands

NO_KUBELET = "no preferred addresses found"
UNREACHED = ("logs", "exec", "port-forward")
"""Commands that fail at the simulated node."""
WHERE = shlex.split("kubectl -n blue")
OTHERS = "train-?job|pytorch-job|ray-job|batch-inference|notebook"
"""Names of the examples that test_member_examples.py submits."""


def of_owners() -> list[list[str]]:
    """Return the commands of the owner's page that look at more than one team's namespace, in words."""
    inline = re.findall(r"`(kubectl [^`\n]+|\./mlbatch status[^`\n]*)`", OWNERS.read_text())
    return [words for words in map(shlex.split, inline) if words[:3] != WHERE]


def changes(words: list[str]) -> bool:
    return words[3] in ("create", "apply", "delete")


def of_job(page: Path) -> list[list[str]]:
    """Return the commands that look at the page's job, in words, without those for the other examples."""
    return [words for words in commands(page) if not changes(words) and not re.search(OTHERS, " ".join(words))]


@pytest.fixture(scope="module", autouse=True)
def platform(standing: Standing) -> None:
    standing.up("dev", member_settings)


@pytest.fixture(scope="module")
def folder(platform: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a member's working folder with the page's job."""
    found = tmp_path_factory.mktemp("member")
    (found / "job.yaml").write_text(JOB.read_text())
    return found


def run(paths: Paths, folder: Path, words: list[str], *, user: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a page's command. user: impersonated user, None for the platform's owner."""
    as_user = ["--as", user] if user is not None else []
    context = yaml.safe_load(paths.kubeconfig.read_text())["current-context"]
    own = words[0] == "./mlbatch"
    given = [context if word == "my-cluster" else word for word in words[1:]]
    command = [words[0], *given] if own else ["kubectl", *as_user, *given]
    path = f"{paths.bin}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(folder), "KUBECONFIG": str(paths.kubeconfig)}
    where = ROOT if own else folder
    return subprocess.run(command, cwd=where, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)


def done(paths: Paths, folder: Path, words: list[str], *, user: str | None = None) -> str:
    """Run a page's command; return its output. It must succeed, or fail at the simulated node."""
    found = run(paths, folder, words, user=user)
    if words[:3] == WHERE and words[3] in UNREACHED:
        assert NO_KUBELET in found.stderr, found.stderr
    else:
        assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.fixture(scope="module")
def job(paths: Paths, folder: Path, cluster: Cluster) -> Iterator[None]:
    """Submit the page's job, and stop it afterwards, with the page's commands."""
    submit, stop = (words for words in commands(MEMBERS) if words[-1] == "job.yaml")
    assert (submit[3], stop[3]) == ("apply", "delete")
    done(paths, folder, submit, user="alice")
    try:
        running(cluster, "blue", "train", pods=2)
        yield
    finally:
        done(paths, folder, stop, user="alice")
        eventually("its pods are gone", lambda: pods_of(cluster, "blue", "train"), lambda found: not found)


@pytest.mark.parametrize("words", [*of_job(MEMBERS), *of_job(OWNERS)], ids=" ".join)
def test_a_member_finds_the_job_by_each_command(words: list[str], paths: Paths, folder: Path, job: None) -> None:
    printed = done(paths, folder, words, user="alice")
    assert ("default-queue" if "localqueues" in words else "train") in printed or words[3] in UNREACHED


def test_a_member_of_another_team_cannot_see_it(paths: Paths, folder: Path, job: None) -> None:
    found = run(paths, folder, [*WHERE, "get", "appwrapper", "train"], user="bob")
    assert found.returncode != 0
    assert "Forbidden" in found.stderr


@pytest.mark.parametrize("words", of_owners(), ids=" ".join)
def test_an_administrator_finds_the_objects_of_the_page(
    words: list[str], paths: Paths, folder: Path, job: None
) -> None:
    assert done(paths, folder, words).strip()
