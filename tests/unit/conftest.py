"""Fixtures of the program's unit tests. They use no engine, cluster or network."""

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from pathlib import Path

import pytest
from hypothesis import settings

from components import catalogue
from components.artifacts import Mirror, Release
from stacks.settings import support_end
from tests.unit.harness import Record
from tests.unit.releases import FOLDER

ROOT = Path(__file__).resolve().parents[2]

settings.register_profile("unit", max_examples=60, deadline=None, derandomize=True, database=None)
settings.register_profile("random", max_examples=2000, deadline=None, database=None, print_blob=True)
settings.load_profile("unit")


@pytest.fixture(scope="session", autouse=True)
def some_day() -> Iterator[None]:
    """Let every test run on the same day of the calendars of support."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(support_end, "today", lambda: date(2026, 11, 21))
        yield


@pytest.fixture(scope="session")
def mirror() -> Mirror:
    """A mirror with upstream's manifests, reduced (see `tests.unit.releases`)."""
    return Mirror(artifacts=str(FOLDER), verify=False)


@pytest.fixture(scope="session")
def kueue_release(mirror: Mirror) -> Release:
    return mirror.release(catalogue.find(catalogue.KUEUE, catalogue.versions(catalogue.KUEUE)[0]))


@pytest.fixture(scope="session")
def scheduler_releases(mirror: Mirror) -> Sequence[Release]:
    wanted = (catalogue.SCHEDULER_PLUGINS, catalogue.ELASTIC_QUOTAS)
    return [mirror.release(catalogue.find(name, catalogue.versions(name)[0])) for name in wanted]


@pytest.fixture(scope="session")
def appwrapper_release(mirror: Mirror) -> Release:
    return mirror.release(catalogue.find(catalogue.APPWRAPPER, catalogue.versions(catalogue.APPWRAPPER)[0]))


@pytest.fixture(scope="session")
def whole() -> Callable[[str], Record]:
    """The registrations of a stack of `whole_stacks.py`, built once for all tests."""
    from tests.unit.whole_stacks import registered

    return registered


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    """A kubeconfig of a cluster that receives no requests."""
    return write_kubeconfig(tmp_path)


@pytest.fixture(scope="session")
def same_kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The one of those fixtures that outlive a test."""
    return write_kubeconfig(tmp_path_factory.mktemp("kubeconfig"))


def write_kubeconfig(folder: Path) -> Path:
    """Write the kubeconfig of a cluster that receives no requests into a folder, and return its path."""
    file = folder / "kubeconfig"
    file.write_text(
        """
apiVersion: v1
kind: Config
current-context: lab
contexts:
- {name: lab, context: {cluster: lab-cluster, user: admin}}
- {name: other, context: {cluster: lab-cluster, user: admin}}
clusters:
- {name: lab-cluster, cluster: {server: "https://127.0.0.1:6443"}}
users:
- {name: admin, user: {token: correct-horse-battery}}
"""
    )
    return file
