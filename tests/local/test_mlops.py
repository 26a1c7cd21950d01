"""The shipped stack on cPouta: all objects of the MLOps platform, through the tunnel to the VM's cluster.

`make soak` runs it, because it is too large for `make test`. The tests of this module run in order.
"""

from collections.abc import Iterator

import pytest

from emulator.paths import Paths
from runner.report import MLOPS_LABEL
from tests.local.environment import Cluster, Project, local_environment, stack_settings

pytestmark = pytest.mark.emulated("it acts in the local OpenStack")

OBJECTS = 431
"""Objects of the tutorial's deployment, without the forwarder, with the registry's note and policies."""
DEPLOYMENTS = 37


@pytest.fixture(scope="module")
def paths() -> Iterator[Paths]:
    with local_environment(openstack=True, stack="cpouta") as paths:
        yield paths


@pytest.fixture(scope="module")
def project(paths: Paths, tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("mlops"), paths, "cpouta")


def test_the_whole_platform_is_installed_and_up_to_date(project: Project, paths: Paths) -> None:
    project.configure(stack_settings("cpouta"))
    project.up()
    project.unchanged()
    made = [each for each in project.resources() if each["urn"].rpartition("::")[2].startswith("mlops/")]
    assert len(made) == OBJECTS
    cluster = Cluster(paths.kubeconfig)
    assert len(cluster.list("apps/v1", "Deployment", label_selector=MLOPS_LABEL)) == DEPLOYMENTS
    assert cluster.existing("networking.istio.io/v1beta1", "Gateway", "kubeflow-gateway", "kubeflow")


def test_switched_off_it_leaves_no_objects(project: Project, paths: Paths) -> None:
    project.configure({**stack_settings("cpouta"), "mlops": {"enabled": False}})
    project.up()
    cluster = Cluster(paths.kubeconfig)
    for api_version, kind in (
        ("v1", "Namespace"),
        ("apps/v1", "Deployment"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ):
        assert cluster.list(api_version, kind, label_selector=MLOPS_LABEL) == []
    project.unchanged()
