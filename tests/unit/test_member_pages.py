"""The pages about a job's life: a member has the rights for each command, and finds the job that the page submits."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from ask.manifest import read
from components import catalogue
from components.tenancy import editor
from tests.unit.test_operations import blocks

DOCS = Path(__file__).parents[2] / "docs"
MEMBERS = DOCS / "members.md"
OWNERS = DOCS / "my-job-does-not-start.md"
EXAMPLES = sorted(path for path in (DOCS.parent / "examples").glob("*.yaml") if path.name != "volume.yaml")
JOB = DOCS.parent / "examples" / "job.yaml"
NOTEBOOK = JOB.with_name("notebook.yaml")
TRAININGS = ("train-job", "pytorch-job", "job")
NEEDS = {
    "apply": {"get", "create", "patch"},
    "create": {"create"},
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
    "port-forward": {("jobs", "get"), ("pods", "list"), ("pods/portforward", "create")},
}
"""What else it needs: resources and verbs."""


def commands(page: Path) -> list[list[str]]:
    """Return the commands of a page's blocks and tables that act in the team's namespace, in words."""
    inline = re.findall(r"`(kubectl [^`\n]+)`", page.read_text())
    lines = [line for block in blocks(page) for line in block.splitlines()] + inline
    return [words for words in map(shlex.split, lines) if words[:3] == ["kubectl", "-n", "blue"]]


def kinds_in(file: str) -> list[str]:
    """Return the kinds of an example's objects, in lower case."""
    path = NOTEBOOK if file == "mine.yaml" else JOB.with_name(file)  # the page renames the notebook in it
    return [each["kind"].lower() for each in yaml.safe_load_all(path.read_text())]


def rights(words: list[str]) -> set[tuple[str, str]]:
    """Return the resources and verbs that a command needs."""
    verb, *rest = words[3:]
    kinds = kinds_in(words[-1]) if words[-1].endswith(".yaml") else rest[0].split(",") if verb in NEEDS else []
    if (verb, kinds) == ("delete", ["secret"]):
        return {("secrets", "delete")}  # kubectl ends without an error if it may not wait (pkg/cmd/delete/delete.go)
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


def parts(path: Path) -> dict[str, Any]:
    """Return the objects of an example by kind, those in its AppWrapper too."""
    documents = list(yaml.safe_load_all(path.read_text()))
    wrapped = [part["template"] for each in documents for part in each.get("spec", {}).get("components", ())]
    return {each["kind"]: each for each in (*documents, *wrapped)}


def test_commands_are_about_the_jobs_that_are_submitted() -> None:
    jobs = {parts(path)["AppWrapper"]["metadata"]["name"] for path in EXAMPLES if path.name != "train-job.yaml"}
    assert set(re.findall(r"appwrapper=([\w-]+)", MEMBERS.read_text())) <= jobs
    assert set(re.findall(r"appwrapper=([\w-]+)", OWNERS.read_text())) == {"train"}
    assert set(re.findall(r"describe workload appwrapper-(\w+)", OWNERS.read_text())) == {"train"}


def test_the_page_shows_the_train_job_that_is_submitted() -> None:
    (shown,) = re.findall(r"```yaml\n(.*?)```", MEMBERS.read_text(), re.DOTALL)
    assert shown == (JOB.parent / "train-job.yaml").read_text().partition("---\n")[2]


def test_the_job_can_be_asked_about_and_its_pods_start_together() -> None:
    assert read(JOB.read_text(), "blue").name == "train"
    found = parts(JOB)
    job, nodes = found["Job"]["spec"], found["PodGroup"]["spec"]["minMember"]
    assert nodes == job["parallelism"] == job["completions"]
    assert job["template"]["metadata"]["labels"] == {
        "scheduling.x-k8s.io/pod-group": found["PodGroup"]["metadata"]["name"]
    }
    assert f"--nnodes={nodes}" in job["template"]["spec"]["containers"][0]["command"]


def test_the_trainings_run_the_same_program() -> None:
    programs = {parts(JOB.parent / f"{name}.yaml")["ConfigMap"]["data"]["train.py"] for name in TRAININGS}
    assert len(programs) == 1
    compile(programs.pop(), "train.py", "exec")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.name))
def test_the_images_and_models_of_an_example_are_pinned_in_the_catalogue(path: Path) -> None:
    text = path.read_text()
    known = {image.reference for image in catalogue.IMAGES.values()}
    assert set(re.findall(r"\bimage: (\S+)", text)) <= known
    for model, revision in re.findall(r'LLM\("([^"]+)", revision="(\w+)"\)', text):
        assert revision == catalogue.hub_revision(model)


def test_a_notebook_ends_when_it_is_idle_and_listens_to_port_forwards_only() -> None:
    (container,) = parts(NOTEBOOK)["Job"]["spec"]["template"]["spec"]["containers"]
    options = dict(each.removeprefix("--").partition("=")[::2] for each in container["command"][1:])
    assert options["ip"] == "127.0.0.1"
    assert {name for name in options if "timeout" in name and int(options[name]) > 0} == {
        "MappingKernelManager.cull_idle_timeout",
        "TerminalManager.cull_inactive_timeout",
        "ServerApp.shutdown_no_activity_timeout",
    }
    assert not [name for name in options if "token" in name]
