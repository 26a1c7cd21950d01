"""A destroyed stack on cPouta: what remains, and the reinstallation on it.

`make soak` runs it. The tests of this module run in order. They have their own OpenStack, and a local cluster that
replaces the one on the volume.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from openstack.connection import Connection

from emulator import cluster
from emulator.openstack.deployment import Deployment
from emulator.openstack.faults import Faults
from emulator.paths import Paths
from tests.local.environment import Cluster, Project, eventually, local_environment
from tests.local.test_cpouta import NAME, act, eventually_without_tunnel, settings, small_platform
from tests.local.test_openstack_services import connect

pytestmark = pytest.mark.emulated("it acts in the local OpenStack")

UPSERT = {"PULUMI_K8S_UPSERT_EXISTING_OBJECTS": "true"}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mlflow-secrets", "namespace": "mlflow"}}


@pytest.fixture(scope="module")
def paths() -> Iterator[Paths]:
    with local_environment(lambda paths: small_platform(paths, SECRET), openstack=True, stack="cpouta") as paths:
        yield paths


@pytest.fixture(scope="module")
def cloud(paths: Paths) -> Connection:
    return connect(paths)


@pytest.fixture(scope="module")
def project(paths: Paths, tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("cpouta"), paths, "cpouta")


def password(paths: Paths) -> str:
    """Return the password of MLflow's database in the cluster, in base64."""
    return str(Cluster(paths.kubeconfig).existing("v1", "Secret", "mlflow-secrets", "mlflow")["data"]["DB_PASSWORD"])


def test_only_the_volume_and_its_password_are_left(project: Project, cloud: Connection, paths: Paths) -> None:
    project.configure(settings())
    project.up()
    before = password(paths)
    said = project.destroy("--exclude-protected")
    assert "protected resources associated with this stack" in said
    kept = {each["urn"].rpartition("::")[2] for each in project.resources() if each.get("protect")}
    assert kept == {"data", "mlops"}
    assert [volume.name for volume in cloud.block_storage.volumes()] == [NAME]
    assert list(cloud.compute.servers()) == list(cloud.network.ips()) == list(cloud.compute.keypairs()) == []
    assert list(cloud.network.ports(name=NAME)) == list(cloud.network.security_groups(name=NAME)) == []
    assert password(paths) == before, "the cluster is on the volume, with all that is in it"


def take_over(project: Project) -> None:
    """Run the update that takes over existing objects in the cluster, as in docs/cpouta.md."""
    update = project.engine.start("up", ["--yes", "--skip-preview"], UPSERT)
    update.communicate()
    assert project.engine.finish(update) == 0


def attached_to(cloud: Connection, volume: str) -> list[str]:
    """Return the servers with the volume."""
    return [each["server_id"] for each in cloud.block_storage.get_volume(volume).attachments]


def test_a_second_deployment_has_the_data_and_its_password(project: Project, cloud: Connection, paths: Paths) -> None:
    before, (volume,) = password(paths), cloud.block_storage.volumes()
    take_over(project)
    project.up()
    (server,) = cloud.compute.servers()
    assert attached_to(cloud, volume.id) == [server.id]
    assert password(paths) == before
    project.unchanged()


def test_a_replacement_that_is_killed_between_two_vms_creates_one(
    project: Project, cloud: Connection, paths: Paths
) -> None:
    """The next update finds the old VM neither in OpenStack nor behind the tunnel."""
    (before,), (volume,) = cloud.compute.servers(), cloud.block_storage.volumes()
    project.configure(settings(generation=2))
    act(paths, "fault", "--on", "nova", "--call", "POST */servers", "--kind", "hang")
    project.engine.prepare()
    process = project.start("up", "--yes", "--skip-preview")
    eventually("the end of the VM", lambda: not list(cloud.compute.servers()), seconds=300)
    eventually("the call", lambda: not Faults(Deployment(paths).folder.faults_file).planned())
    process.kill()
    process.communicate()
    project.engine.finish(process)
    # Otherwise Nova would run the call a minute late, on a slow machine before the next update's own call.
    restart_nova(paths)
    eventually_without_tunnel(project)
    project.up("--refresh=false")
    (after,) = cloud.compute.servers()
    assert after.id != before.id
    assert attached_to(cloud, volume.id) == [after.id]
    project.unchanged()


def restart_nova(paths: Paths) -> None:
    """Restart Nova, so that it forgets calls that it has not started."""

    def pid() -> int:
        return next(each.pid or 0 for each in cluster.status(paths).processes if each.name == "nova")

    ended = pid()
    os.kill(ended, signal.SIGKILL)
    eventually("Nova's end", pid, lambda now: now != ended)
    eventually("the services", lambda: cluster.status(paths).ready)


def test_another_stack_takes_over_the_volume_with_the_cluster_and_its_password(
    project: Project, cloud: Connection, paths: Paths, tmp_path: Path
) -> None:
    before, (volume,) = password(paths), cloud.block_storage.volumes()
    of_stack = ("--stack", project.stack)
    main = project.engine._pulumi(["stack", "output", "mlopsPassword", "--show-secrets", *of_stack]).stdout.strip()
    project.destroy("--exclude-protected")
    (data,) = (each["urn"] for each in project.resources() if each["urn"].endswith("::data") and each["custom"])
    project.engine._pulumi(["state", "delete", data, "--force", "--yes", *of_stack])
    other, wanted = Project(tmp_path, paths, "other"), settings(volume={"existing": volume.id})
    other.configure(wanted)
    other.configure({**wanted, "mlopsPassword": other.secret("mlopsPassword", main)})
    take_over(other)
    other.up()
    (server,) = cloud.compute.servers()
    assert attached_to(cloud, volume.id) == [server.id]
    assert [each.id for each in cloud.block_storage.volumes()] == [volume.id]
    assert password(paths) == before
    other.unchanged()
