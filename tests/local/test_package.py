"""A program of others with the package pulumi-mlbatch."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from emulator.paths import Paths
from runner.engine import Engine
from tests.local.environment import ROOT, Cluster, engine_environment, gang, local_environment
from tests.local.jobs import running
from tests.package import EXAMPLE, built, installed

pytestmark = pytest.mark.emulated("its operators would run beside those of the platform")


@pytest.fixture(scope="module")
def paths() -> Iterator[Paths]:
    """Yield a local cluster with the nodes of a site."""
    with local_environment(stack="existing") as paths:
        yield paths


@pytest.fixture(scope="module")
def engine(paths: Paths, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """Return the engine on the example, which does not see the checkout."""
    folder: Path = tmp_path_factory.mktemp("package")
    for file in EXAMPLE.iterdir():
        (folder / file.name).write_text(file.read_text())
    (folder / ".venv").symlink_to(ROOT / ".venv")
    environment = engine_environment(paths)
    config = {
        "queues:kubeconfig": paths.kubeconfig.read_text(),
        "queues:mirror": {"artifacts": str(environment.mirror), "verify": False},
    }
    (folder / "Pulumi.site.yaml").write_text(yaml.safe_dump({"config": config}))
    variables = {**environment.variables, "PYTHONPATH": str(installed(built(folder), folder))}
    engine = Engine(folder, folder / "state", "site", replace(environment, mirror=None, variables=variables))
    engine.prepare()
    return engine


def test_the_example_installs_queues_where_a_teams_job_runs(engine: Engine, cluster: Cluster) -> None:
    done = engine.capture("up", ["--yes", "--skip-preview", "--non-interactive", "--color", "never"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'queue: "blue-cluster-queue"' in done.stdout
    cluster.create(gang("job", "blue", pods=2, gpus=8))
    running(cluster, "blue", "job", pods=2)
