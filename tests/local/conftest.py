"""One local cluster for all tests of this folder, in a state folder of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from emulator.paths import Paths
from tests.local.environment import Cluster, Project, local_environment


@pytest.fixture(scope="session")
def paths() -> Iterator[Paths]:
    """A running local cluster beside whatever the checkout itself runs; stopped and removed at the end."""
    with local_environment() as paths:
        yield paths


@pytest.fixture(scope="session")
def cluster(paths: Paths) -> Cluster:
    return Cluster(paths.kubeconfig)


@pytest.fixture(scope="session")
def make_project(paths: Paths, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Project]:
    """Return a function that makes a project folder with a stack of the given name, on the tests' cluster."""

    def make(stack: str, *, as_written: bool = False) -> Project:
        return Project(tmp_path_factory.mktemp(stack), paths, stack, as_written=as_written)

    return make
