"""The stack on cPouta against the local OpenStack: killed, carried on, changed.

The tests of this module run in order on one stack, with an OpenStack and a local cluster of their own, and with three
objects in place of the MLOps platform's hundreds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from openstack.connection import Connection

from components import catalogue
from components.mlops import menu
from emulator.charts import archive
from emulator.paths import Paths
from tests.local.environment import Cluster, Project, eventually, local_environment, stack_settings
from tests.local.test_openstack_services import connect

pytestmark = pytest.mark.emulated("it acts in the local OpenStack behind the engine's back")

NAME = "mlops-platform"
DEPLOYMENT = menu.find(integration=True, option=4)
"""Of the shipped settings."""
OBJECTS = (
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mlflow"}},
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "mlflow"}},
)


def small_platform(paths: Paths) -> None:
    """Put an archive of the platform's repository into the mirror that has next to nothing in it."""
    name = f"oss-mlops-platform-{catalogue.MLOPS.commit}"
    files = {"kustomization.yaml": yaml.safe_dump({"resources": ["objects.yaml"]})}
    files |= {"objects.yaml": yaml.safe_dump_all(OBJECTS)}
    packed = archive.pack(name, {f"{DEPLOYMENT.folder}/{file}": text.encode() for file, text in files.items()})
    (paths.mirror / f"{name}.tar.gz").write_bytes(packed)


@pytest.fixture(scope="module")
def paths() -> Iterator[Paths]:
    with local_environment(small_platform, openstack=True, stack="cpouta") as paths:
        yield paths


@pytest.fixture(scope="module")
def cloud(paths: Paths) -> Connection:
    return connect(paths)


@pytest.fixture(scope="module")
def project(paths: Paths, tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("cpouta"), paths, "cpouta")


def settings(**openstack: Any) -> dict[str, Any]:
    """Return the shipped settings, with other values in their section openstack."""
    shipped = stack_settings("cpouta")
    return {**shipped, "openstack": {**shipped["openstack"], **openstack}}


def planned(project: Project) -> dict[str, str]:
    """Return what a preview, which refreshes first, would do, operation by type and name."""
    done = project.run("preview", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    operations: dict[str, set[str]] = {}
    for step in json.loads(done.stdout)["steps"]:
        if step["op"] not in ("same", "refresh", "read"):
            kind, name = step["urn"].split("::")[-2:]
            operations.setdefault(f"{kind.rpartition(':')[2]} {name}", set()).add(step["op"])
    return {each: "replace" if len(steps) > 1 else next(iter(steps)) for each, steps in operations.items()}


def test_an_update_that_is_killed_and_carried_on_makes_nothing_twice(
    project: Project, cloud: Connection, paths: Paths
) -> None:
    project.configure(settings())
    project.engine.prepare()
    process = project.start("up", "--yes", "--skip-preview")
    eventually("the server", lambda: list(cloud.compute.servers()) or process.poll() is not None, seconds=300)
    process.kill()
    process.communicate()
    project.engine.finish(process)
    project.up()
    (server,) = cloud.compute.servers()
    (volume,) = cloud.block_storage.volumes()
    (address,) = cloud.network.ips()
    (port,) = cloud.network.ports(name=NAME)
    assert (server.name, volume.name, volume.size) == (NAME, NAME, 500)
    assert Cluster(paths.kubeconfig).get("v1", "ConfigMap", "settings", "mlflow") is not None
    assert [each["server_id"] for each in volume.attachments] == [server.id]
    assert (address.port_id, port.device_id) == (port.id, server.id)
    project.unchanged()


def test_a_changed_address_is_that_one_rule_and_nothing_else(project: Project) -> None:
    project.configure(settings(sshFrom={"me": "198.51.100.9/32"}))
    assert planned(project) == {
        "SecGroupRule tcp-22-203.0.113.7/32": "delete",
        "SecGroupRule tcp-22-198.51.100.9/32": "create",
    }
