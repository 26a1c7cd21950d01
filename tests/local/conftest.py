"""One local cluster for all tests of this folder, in a state folder of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from emulator import cluster as local_cluster
from emulator import mirror
from emulator.paths import Paths
from emulator.progress import Progress
from emulator.toolchain import Toolchain
from tests.local.environment import ROOT, Cluster, Project


@pytest.fixture(scope="session")
def paths() -> Iterator[Paths]:
    """A running local cluster beside whatever the checkout itself runs; stopped and removed at the end."""
    with tempfile.TemporaryDirectory(prefix="mlbatch-test-") as folder:
        paths = Paths.of(root=ROOT, state=Path(folder))
        toolchain = Toolchain(paths)
        toolchain.install(cluster=True, progress=Progress(len(toolchain.missing(cluster=True))))
        mirror.fill(paths, toolchain)
        local_cluster.start(paths, print)
        try:
            yield paths
        finally:
            local_cluster.stop(paths)


@pytest.fixture(scope="session")
def cluster(paths: Paths) -> Cluster:
    return Cluster(paths.kubeconfig)


@pytest.fixture(scope="session")
def make_project(paths: Paths, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Project]:
    """Return a function that makes a project folder with a stack of the given name, on the tests' cluster."""

    def make(stack: str) -> Project:
        return Project(tmp_path_factory.mktemp(stack), paths, stack, local_cluster.status(paths).providers)

    return make
