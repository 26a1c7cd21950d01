"""A cluster without ValidatingAdmissionPolicy: no teams, unless the settings accept the missing enforcement."""

from collections.abc import Iterator
from typing import Any

import pytest

from components.tenancy.promises import Promise
from emulator.paths import Paths
from runner.report import platform_report
from tests.local.environment import Cluster, Project, dev_settings, eventually, gang, local_environment
from tests.local.member import as_member
from tests.local.submission import submitted

pytestmark = pytest.mark.emulated("its API server lacks an API")

APPWRAPPER = "workload.codeflare.dev/v1beta2"


@pytest.fixture(scope="module")
def paths() -> Iterator[Paths]:
    """Yield a new local cluster."""
    with local_environment(admission_policies=False) as paths:
        yield paths


@pytest.fixture(scope="module")
def project(paths: Paths, tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("bare"), paths, "bare")


@pytest.fixture(scope="module")
def settings(project: Project) -> dict[str, Any]:
    return {**dev_settings(project.mirror), "samples": {}}


def test_teams_are_refused_with_every_unenforced_promise(project: Project, settings: dict[str, Any]) -> None:
    project.configure(settings)
    done = project.run("up", "--yes", "--skip-preview")
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert "mlbatch:teams" in said
    assert "has no ValidatingAdmissionPolicy" in said
    assert all(promise in said for promise in Promise)
    assert [item["type"] for item in project.resources() if item["type"] != "pulumi:pulumi:Stack"] == []


@pytest.mark.soak("a minute; tests/unit/test_isolation.py has what a stack accepts")
def test_a_stack_that_accepts_them_by_name_gets_teams_and_a_warning(
    project: Project, settings: dict[str, Any], paths: Paths
) -> None:
    project.configure({**settings, "tenancy": {"acceptUnenforced": [str(promise) for promise in Promise]}})
    said = project.up()
    assert "this cluster does not enforce these promises to teams" in said
    assert not [item for item in project.resources() if "AdmissionPolicy" in item["type"]]
    (stack,) = [item for item in project.resources() if item["type"] == "pulumi:pulumi:Stack"]
    assert stack["outputs"]["unenforced"] == [str(promise) for promise in Promise]
    report = platform_report(Cluster(paths.kubeconfig).client)
    assert f"blue       {', '.join(Promise)}" in report
    alice, cluster = as_member(paths, "alice"), Cluster(paths.kubeconfig)
    with submitted(alice, gang("plain", "blue", pods=1, gpus=8)):
        eventually(
            "the job runs",
            lambda: cluster.get(APPWRAPPER, "AppWrapper", "plain", "blue"),
            lambda found: found is not None and (found.get("status") or {}).get("phase") == "Running",
        )
