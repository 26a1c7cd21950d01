"""The workloads' pages: their commands name a stack, and those that print a job print one of the shipped settings."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

from cli.app import main
from stacks.job_manifests import JOBS, manifest
from stacks.settings.submission import WorkloadSettings
from stacks.settings.workloads import WorkloadsSettings
from tests.unit.test_aks import settings

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "workloads").glob("*.md"))
SELECTED = re.compile(r"app\.kubernetes\.io/name=([\w-]+)")
PRINTS = "./mlbatch jobs "


def commands(text: str) -> list[str]:
    """Return the commands of a page, each on one line."""
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    return [line for block in blocks for line in re.sub(r"\\\n *", "", block).splitlines()]


PRINTED = [
    (page.name, command)
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]
    for command in [*commands(page.read_text()), *re.findall(r"`([^`\n]+)`", page.read_text())]
    if command.startswith(PRINTS)
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.name))
def test_what_changes_a_stack_says_which(page: Path) -> None:
    changes = [each for each in commands(page.read_text()) if each.startswith(("pulumi config set", "pulumi up"))]
    assert [each for each in changes if not each.endswith(" --stack mysite")] == []


def test_commands_are_found() -> None:
    pages = {"README.md", "nccl.md", "metaseq.md", "vllm.md", "synthetic.md", "CONTRIBUTING.md"}
    assert pages == {page for page, _ in PRINTED}


@pytest.mark.parametrize(("page", "command"), PRINTED, ids=[page for page, _ in PRINTED])
def test_a_job_is_printed_as_the_page_says(page: str, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = shlex.split(re.split(r" [>|] ", command.removeprefix(PRINTS))[0])
    assert main(["jobs", *arguments]) == 0, capsys.readouterr().err
    documents = list(yaml.safe_load_all(capsys.readouterr().out))
    wrappers = [document for document in documents if document["kind"] == "AppWrapper"]
    assert {wrapper["metadata"]["namespace"] for wrapper in wrappers} == {"blue"}


def test_logs_are_those_of_the_job_that_was_named() -> None:
    text = (ROOT / "docs" / "workloads" / "README.md").read_text()
    (given,) = re.findall(r"--set name=([\w-]+)", text)
    assert SELECTED.findall(text) == [given]


@pytest.mark.parametrize("job", JOBS)
def test_logs_are_those_of_the_job_by_its_own_name(job: str) -> None:
    shown = SELECTED.findall((ROOT / "docs" / "workloads" / f"{job}.md").read_text())
    volume = {"name": "data", "namespace": "blue", "container": "data"}
    operators = {"trainingOperator": {"enabled": True}, "kuberay": {"enabled": True}}
    own = {"queueing": operators, "tenancy": {"unwrappedRay": True}, "workloads": {}}
    raw = settings(storage={"volumes": [volume]}, **own)
    given = {"olmo": {"tag": "1", "data": "data"}, "nccl": {"tag": "1"}, "metaseq": {"tag": "1"}}.get(job, {})
    documents = yaml.safe_load_all(manifest(raw, job, given, {"team": "blue", "user": None}))
    *_, submitted = documents
    wrapped = submitted["spec"].get("components")
    specification = wrapped[-1]["template"]["spec"] if wrapped else submitted["spec"]["rayClusterSpec"]["headGroupSpec"]
    pods = specification.get("pytorchReplicaSpecs", {}).get("Master", specification)
    assert shown == [pods["template"]["metadata"]["labels"]["app.kubernetes.io/name"]]


def test_members_can_print_every_job_of_the_settings() -> None:
    assert set(JOBS) == set(WorkloadsSettings().of(WorkloadSettings)) - {"jupyterlab"}, "a notebook server is no job"


def test_olmo_is_switched_on_beside_the_volumes_that_there_are(tmp_path: Path) -> None:
    """The page's settings, on the shipped stack's: the volume is added, and none is written over."""
    before = settings()
    text = (ROOT / "docs" / "workloads" / "olmo.md").read_text()
    lines = commands(text.partition("## Switch it on")[2])
    volume: dict[str, str] = {}
    for line in lines:
        found = re.match(r"pulumi config set --path 'mlbatch:storage\.volumes\[(\d+)\]\.(\w+)' (\S+)", line)
        if found:
            assert int(found[1]) == len(before["storage"]["volumes"])
            volume[found[2]] = found[3]
    job = dict(re.findall(r"'mlbatch:workloads\.olmo\.(tag|data)' (\S+)", "\n".join(lines)))
    raw = {**before, "storage": {"volumes": [*before["storage"]["volumes"], volume]}}
    printed = manifest(raw, "olmo", job, {"team": "blue", "user": None})
    assert f"claimName: {volume['name']}" in printed


def test_the_layers_are_all_in_the_architecture() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    modules = [each.name for each in (ROOT / "stacks" / "layers").glob("[!_]*.py")]
    assert [name for name in modules if name not in text] == []
    assert "`mlbatch jobs`" in text
    assert "./mlbatch jobs" in (ROOT / "CONTRIBUTING.md").read_text()
