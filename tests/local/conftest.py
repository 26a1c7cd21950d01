"""One local cluster for all tests of this folder, in its own state folder."""

from collections.abc import Callable, Iterator

import pytest
import yaml

from emulator.paths import Paths
from tests.local import browser as browsers
from tests.local import official
from tests.local.browser import Browser
from tests.local.environment import ROOT, Cluster, Project, environment_of_tests, eventually, is_ready, machines
from tests.local.standing import Standing


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort modules that share a stack last, so that the other modules find no stack. Deselect tests that cannot run
    here.

    Modules that share a site's nodes come at the very end, because no other stack has these nodes. Tests that need the
    emulated environment are deselected on another one.
    """
    items.sort(key=lambda item: [name in getattr(item, "fixturenames", ()) for name in ("standing", "site_nodes")])
    if official.named_cluster() is None:
        return
    for item in items:
        for marker in item.iter_markers("emulated"):
            item.add_marker(pytest.mark.skip(reason=f"emulated only: {marker.args[0]}"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the providers of the test run."""
    terminalreporter.section("providers")
    for line in official.providers():
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def paths() -> Iterator[Paths]:
    """Yield a running cluster, separate from the checkout's own. A local one is deleted at the end."""
    with environment_of_tests() as paths:
        yield paths


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsers.started(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture(scope="module")
def cluster(paths: Paths) -> Cluster:
    """Return the API of the cluster in `paths`, of the tests or of a module's own."""
    return Cluster(paths.kubeconfig)


@pytest.fixture(scope="session")
def site_nodes(paths: Paths, standing: Standing) -> Iterator[list[str]]:
    """Yield a site's nodes, which exist before the platform: three with GPUs, one without."""
    standing.down()
    cluster = Cluster(paths.kubeconfig)
    seeds = list(yaml.safe_load_all((ROOT / "local" / "seeds" / "existing.yaml").read_text()))
    created = [seed for seed in seeds if seed.get("status")]
    names = [seed["metadata"]["name"] for seed in created]
    for seed in created:
        cluster.create(seed)
    (machine,) = machines(cluster)
    cluster.patch("v1", "Node", machine, {"metadata": {"labels": {"pool": "system"}}})
    for name in names:
        eventually(f"{name} is ready", lambda name=name: is_ready(cluster, name))
    yield names
    if official.named_cluster() is None:
        return
    standing.down()
    cluster.patch("v1", "Node", machine, {"metadata": {"labels": {"pool": None}}})
    for name in names:
        cluster.delete("v1", "Node", name)


@pytest.fixture(scope="session")
def make_project(paths: Paths, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Project]:
    """Return a function that creates a project folder with a stack of the given name on the tests' cluster."""

    def make(stack: str, *, as_written: bool = False) -> Project:
        return Project(tmp_path_factory.mktemp(stack), paths, stack, as_written=as_written)

    return make


@pytest.fixture(scope="session")
def standing(make_project: Callable[[str], Project]) -> Iterator[Standing]:
    """Yield the stack that modules share. Its last state is deleted with a local cluster."""
    found = Standing(make_project)
    yield found
    if official.named_cluster() is not None:
        found.down()
