"""The pages about a job's life: a member has the rights for each command, and finds the job that the page submits."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

from ask.manifest import read
from components import names
from components.tenancy import editor
from tests.unit.test_operations import blocks

DOCS = Path(__file__).parents[2] / "docs"
MEMBERS = DOCS / "members.md"
OWNERS = DOCS / "my-job-does-not-start.md"
JOB = re.findall(r"```yaml\n(.*?)```", MEMBERS.read_text(), re.DOTALL)[0]
NEEDS = {
    "apply": {"get", "create", "patch"},
    "delete": {"get", "list", "watch", "delete"},
    "describe": {"get", "list"},
    "get": {"get", "list"},
}
"""Verbs that a command of kubectl needs on what it names."""
MORE = {
    "describe": {("events", "list")},
    "events": {("events", "list")},
    "exec": {("jobs", "get"), ("pods", "list"), ("pods/exec", "create")},
    "logs": {("pods", "list"), ("pods/log", "get")},
}
"""What else it needs: resources and verbs."""


def commands(page: Path) -> list[list[str]]:
    """Return the commands of a page's blocks and tables that act in the team's namespace, in words."""
    inline = re.findall(r"`(kubectl [^`\n]+)`", page.read_text())
    lines = [line for block in blocks(page) for line in block.splitlines()] + inline
    return [words for words in map(shlex.split, lines) if words[:3] == ["kubectl", "-n", "blue"]]


def rights(words: list[str]) -> set[tuple[str, str]]:
    """Return the resources and verbs that a command needs."""
    verb, *rest = words[3:]
    kinds = ["appwrapper"] if "job.yaml" in rest else rest[0].split(",") if verb in NEEDS else []
    named = [kind.rstrip("s") + "s" for kind in kinds]
    return {(kind, need) for kind in named for need in NEEDS.get(verb, set())} | MORE.get(verb, set())


def granted() -> set[tuple[str, str]]:
    """Return the rights of members, including the right to enter pods, which the page describes as optional."""
    rules = (*editor.RULES, editor.ENTERS_PODS)
    return {(resource, verb) for _, resources, verbs in rules for resource in resources for verb in verbs}


def missing(words: list[str]) -> set[tuple[str, str]]:
    """Return what of it members may not do; Kueue's resources are granted all at once."""
    return {
        need
        for need in rights(words) - granted()
        if need[0] not in ("workloads", "localqueues") or ("*", need[1]) not in granted()
    }


@pytest.mark.parametrize("words", commands(MEMBERS) + commands(OWNERS), ids=" ".join)
def test_a_member_may_do_what_the_page_says(words: list[str]) -> None:
    assert words[3] in NEEDS | MORE
    assert missing(words) == set()


def test_a_right_that_members_lack_is_found() -> None:
    assert missing(shlex.split("kubectl -n blue get clusterroles")) == {
        ("clusterroles", "get"),
        ("clusterroles", "list"),
    }


@pytest.mark.parametrize("page", [MEMBERS, OWNERS], ids=lambda page: str(page.name))
def test_commands_are_about_the_job_that_is_submitted(page: Path) -> None:
    name = yaml.safe_load(JOB)["metadata"]["name"]
    text = page.read_text()
    assert set(re.findall(r"appwrapper=(\w+)", text)) == {name}
    described = r"describe (?:appwrapper |workload appwrapper-)(\w+)"
    assert set(re.findall(described, text) + re.findall(r"exec -it job/(\w+)", text)) == {name}


def test_the_job_can_be_asked_about_and_its_pods_start_together() -> None:
    assert read(JOB, "blue").name == "train"
    group, job = (part["template"] for part in yaml.safe_load(JOB)["spec"]["components"])
    assert group["spec"]["minMember"] == job["spec"]["parallelism"] == job["spec"]["completions"]
    pod = job["spec"]["template"]
    assert pod["spec"]["priorityClassName"] == names.DEFAULT_PRIORITY
    assert pod["metadata"]["labels"] == {"scheduling.x-k8s.io/pod-group": group["metadata"]["name"]}
