"""The stack on cPouta with the local OpenStack: killed, finished, updated, changed manually.

The tests of this module run in order on one stack. They have their own OpenStack and local cluster, and three objects
instead of the MLOps platform's hundreds.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from openstack.connection import Connection

from components import catalogue
from components.mlops import menu
from emulator.charts import archive
from emulator.openstack.__main__ import main
from emulator.paths import Paths
from runner import clusters
from tests.local.environment import Cluster, Project, eventually, local_environment, stack_settings
from tests.local.killed import Killed
from tests.local.test_openstack_services import connect

pytestmark = pytest.mark.emulated("it acts in the local OpenStack behind the engine's back")

NAME = "mlops-platform"
DEPLOYMENT = menu.find(integration=True, option=4)
"""The deployment in the shipped settings."""
OBJECTS = (
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mlflow"}},
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "mlflow"}},
)
CLAIM = ("v1", "PersistentVolumeClaim")
UNREACHABLE = "configured Kubernetes cluster is unreachable"
"""The Kubernetes provider's message without a tunnel. It does not contain the output of the tunnel's command."""
ANOTHER_VM = frozenset({"UserData user-data", "Instance machine", "VolumeAttach machine", "RemoteCluster cluster"})


def small_platform(paths: Paths, *more: dict[str, Any]) -> None:
    """Write a nearly empty archive of the platform's repository into the mirror. more: further objects."""
    name = f"oss-mlops-platform-{catalogue.MLOPS.commit}"
    files = {"kustomization.yaml": yaml.safe_dump({"resources": ["objects.yaml"]})}
    files |= {"objects.yaml": yaml.safe_dump_all([*OBJECTS, *more])}
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
    """Return the shipped settings, with other values in the section openstack."""
    shipped = stack_settings("cpouta")
    return {**shipped, "openstack": {**shipped["openstack"], **openstack}}


def act(paths: Paths, *arguments: str) -> None:
    """Change the OpenStack without the engine, like `make openstack`."""
    assert main([*arguments, "--state", str(paths.state)]) == 0


def planned(project: Project, *arguments: str) -> tuple[dict[str, str], str]:
    """Return the steps of a preview, which refreshes first, by type and name, and its warnings."""
    done = project.run("preview", "--json", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    operations: dict[str, set[str]] = {}
    for step in found["steps"]:
        if step["op"] not in ("same", "refresh", "read"):
            kind, name = step["urn"].split("::")[-2:]
            operations.setdefault(f"{kind.rpartition(':')[2]} {name}", set()).add(step["op"])
    said = "\n".join(each["message"] for each in found.get("diagnostics") or ())
    return {each: "replace" if len(steps) > 1 else next(iter(steps)) for each, steps in operations.items()}, said


def test_an_update_that_is_killed_is_finished_as_documented(project: Project, cloud: Connection, paths: Paths) -> None:
    """Killed while Nova builds the VM, the only resource that the state lacks. docs/operations.md says to delete it."""
    project.configure(settings())
    killed = Killed(project, Cluster(paths.kubeconfig))

    def begun() -> set[str]:
        return {each["resource"]["type"] for each in project.engine.read_state().get("pending_operations") or ()}

    killed.kill_when(lambda: list(cloud.compute.servers()) and begun() == {"openstack:compute/instance:Instance"})
    (orphan,) = cloud.compute.servers()
    delete_server(cloud, orphan)
    killed.finish()
    (server,) = cloud.compute.servers()
    assert server.id != orphan.id
    (volume,) = cloud.block_storage.volumes()
    (address,) = cloud.network.ips()
    (port,) = cloud.network.ports(name=NAME)
    assert (server.name, volume.name, volume.size) == (NAME, NAME, 500)
    assert Cluster(paths.kubeconfig).get("v1", "ConfigMap", "settings", "mlflow") is not None
    assert [each["server_id"] for each in volume.attachments] == [server.id]
    assert (address.port_id, port.device_id) == (port.id, server.id)
    project.unchanged()


def delete_server(cloud: Connection, server: Any) -> None:
    """Delete a VM that is not in the state, as in docs/operations.md and docs/cpouta.md."""
    cloud.compute.delete_server(server)
    cloud.compute.wait_for_delete(server, interval=0.5, wait=300)


def test_a_claim_without_a_class_has_kinds_once_a_pod_wants_it(project: Project, paths: Paths) -> None:
    """Like the MLOps platform's claims, which do not name a class."""
    cluster = Cluster(paths.kubeconfig)
    claims = {"one-node": "ReadWriteOnce", "many-nodes": "ReadWriteMany"}
    for name, mode in claims.items():
        cluster.create(claim(name, mode))
    assert cluster.existing(*CLAIM, "one-node", "mlflow")["spec"]["storageClassName"] == "standard"
    assert phase(cluster, "one-node") == "Pending", "a pod comes first"
    for name in claims:
        cluster.create(pod(name))
    try:
        eventually("the volume", lambda: phase(cluster, "one-node"), lambda found: found == "Bound")
        eventually(
            "the pod", lambda: cluster.existing("v1", "Pod", "one-node", "mlflow")["status"]["phase"] == "Running"
        )
        assert phase(cluster, "many-nodes") == "Pending", "kind's provisioner makes none for many nodes"
        (volume,) = cluster.list("v1", "PersistentVolume")
        assert volume["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"] == "rancher.io/local-path"
    finally:
        for name in claims:
            cluster.delete("v1", "Pod", name, "mlflow")
            cluster.delete(*CLAIM, name, "mlflow")
    eventually("it goes with its claim", lambda: not cluster.list("v1", "PersistentVolume"))


def phase(cluster: Cluster, claim: str) -> str:
    return str(cluster.existing(*CLAIM, claim, "mlflow")["status"]["phase"])


def claim(name: str, mode: str) -> dict[str, Any]:
    """Return a claim without a class."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "mlflow"},
        "spec": {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}},
    }


def pod(claim: str) -> dict[str, Any]:
    """Return a pod that mounts the claim."""
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
    container = {"name": "main", "image": "docker.io/library/busybox:1.37.0", "command": ["sleep", "3600"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": claim, "namespace": "mlflow"},
        "spec": {"containers": [container], "volumes": [volume]},
    }


def test_a_changed_address_replaces_only_its_rule(project: Project, paths: Paths) -> None:
    """Also from the new address, which cannot reach the cluster before; docs/cpouta.md has the steps."""
    project.configure(settings(sshFrom={"me": "198.51.100.9/32"}))
    rule = {"SecGroupRule tcp-22-203.0.113.7/32": "delete", "SecGroupRule tcp-22-198.51.100.9/32": "create"}
    assert planned(project)[0] == rule
    act(paths, "move", "--to", "198.51.100.9")
    eventually_without_tunnel(project)
    assert planned(project, "--refresh=false")[0] == rule
    project.up("--refresh=false")
    # It stays there, because each move cuts tunnels some seconds later, and would disturb the next tests.


def eventually_without_tunnel(project: Project) -> None:
    """Wait until the cluster is unreachable. An open tunnel ends some seconds after its VM or rule is deleted."""
    eventually(
        "the end of the tunnel",
        lambda: project.run("refresh", "--preview-only").stdout,
        lambda said: UNREACHABLE in said,
    )


def test_a_changed_flavor_says_what_is_replaced_and_what_is_kept(project: Project, paths: Paths) -> None:
    act(paths, "quota", "cores=22", "ram=152000")
    project.configure(settings(flavor="standard.3xlarge", sshFrom={"me": "198.51.100.9/32"}))
    resized, said = planned(project)
    assert resized == {"Instance machine": "update"}
    assert "the VM is resized from standard.xxlarge to standard.3xlarge, which restarts it" in said
    project.configure(settings(flavor="gpu.1.1gpu", sshFrom={"me": "198.51.100.9/32"}))
    replaced, said = planned(project)
    assert {each for each, operation in replaced.items() if operation == "replace"} == ANOTHER_VM
    assert not {each.partition(" ")[0] for each in replaced} & {"Volume", "Port", "FloatingIp", "Keypair", "SecGroup"}
    assert "the VM is replaced. Its address and its volume with its data remain" in said


def test_another_generation_is_another_vm_though_its_first_boot_is_the_same(project: Project) -> None:
    project.configure(settings(generation=2, sshFrom={"me": "198.51.100.9/32"}))
    assert {each for each, operation in planned(project)[0].items() if operation == "replace"} == ANOTHER_VM


def test_changes_of_others_are_found_and_reverted(project: Project, cloud: Connection, paths: Paths) -> None:
    """A refresh finds changes of the stack's resources. The program reports a rule that the stack does not own."""
    project.configure(settings(sshFrom={"me": "198.51.100.9/32"}))
    act(paths, "open", "--group", NAME)
    act(paths, "detach", "--volume", NAME)
    opened = f"the security group {NAME} allows 0.0.0.0/0 (port: 22), which is not in the settings"
    refreshed = project.run("refresh", "--preview-only", "--run-program", "--diff")
    assert "openstack:compute/volumeAttach:VolumeAttach" in refreshed.stdout
    assert opened in refreshed.stdout + refreshed.stderr
    found, said = planned(project)
    assert found == {"VolumeAttach machine": "create"}
    assert opened in said
    project.up()
    (volume,) = cloud.block_storage.volumes()
    assert volume.status == "in-use"


def replaced_with(project: Project, generation: int, **mlops: Any) -> None:
    """Request another VM, and a change in its cluster."""
    wanted = settings(generation=generation, sshFrom={"me": "198.51.100.9/32"})
    project.configure({**wanted, "mlops": {**wanted["mlops"], **mlops}})


@pytest.fixture(scope="module")
def installed(project: Project, paths: Paths) -> None:
    """Install the stack, unless the test of a killed update has done it."""
    if not project.state_file.exists():
        act(paths, "move", "--to", "198.51.100.9")
        project.configure(settings(sshFrom={"me": "198.51.100.9/32"}))
        project.up()


@pytest.mark.soak("a minute; test_a_vm_in_error_is_replaced_by_the_command_that_the_preview_names replaces one, too")
@pytest.mark.usefixtures("installed")
def test_a_failed_replacement_continues_without_reading_the_deleted_cluster(
    project: Project, cloud: Connection, paths: Paths
) -> None:
    """Also if an object in the cluster changes with the VM. It must wait for the tunnel to the new VM."""
    (before,) = cloud.compute.servers()
    replaced_with(project, 2)
    act(paths, "fault", "--on", "nova", "--call", "POST */servers", "--kind", "fail")
    failed = project.run("up", "--yes", "--skip-preview")
    assert failed.returncode != 0
    assert "503" in failed.stdout
    assert list(cloud.compute.servers()) == []
    assert clusters.is_replaced(project.engine.read_state())
    eventually_without_tunnel(project)
    looking = project.run("up", "--yes", "--skip-preview")
    assert looking.returncode != 0
    assert UNREACHABLE in looking.stdout, "docs/cpouta.md says what then helps"
    replaced_with(project, 2, localRegistry=False)
    project.up("--refresh=false")
    (after,) = cloud.compute.servers()
    assert after.id != before.id
    project.unchanged()


@pytest.mark.soak("a minute and a half; the next test replaces a VM, too")
@pytest.mark.usefixtures("installed")
def test_a_vm_whose_creation_lost_its_answer_is_deleted_as_documented(
    project: Project, cloud: Connection, paths: Paths
) -> None:
    """A proxy did not wait for Nova's response, so the VM exists without an ID in any state (docs/cpouta.md)."""
    replaced_with(project, 3)
    act(paths, "fault", "--on", "nova", "--call", "POST */servers", "--kind", "timeout")
    failed = project.run("up", "--yes", "--skip-preview")
    assert failed.returncode != 0
    assert "504" in failed.stdout
    (made,) = cloud.compute.servers()
    # Nova assigns the VM's port while it builds the VM.
    eventually("its port is its own", lambda: [each.device_id for each in cloud.network.ports(name=NAME)] == [made.id])
    again = project.run("up", "--yes", "--skip-preview", "--refresh=false")
    assert again.returncode != 0
    assert "is still in use" in again.stdout, "Nova has one port for one VM; docs/cpouta.md says what then helps"
    delete_server(cloud, made)
    project.up("--refresh=false")
    (server,) = cloud.compute.servers()
    assert server.id != made.id
    (volume,) = cloud.block_storage.volumes()
    assert [each["server_id"] for each in volume.attachments] == [server.id]
    project.unchanged()


def test_a_vm_in_error_is_replaced_by_the_command_that_the_preview_names(
    project: Project, cloud: Connection, paths: Paths
) -> None:
    """The host fails, and no other one has room: Nova creates a VM in status ERROR, which the state then has."""
    (before,) = cloud.compute.servers()
    act(paths, "delete", "--server", NAME)
    act(paths, "full")
    gone = (f"--target=**{kind}::machine" for kind in ("instance:Instance", "volumeAttach:VolumeAttach"))
    refreshed = project.run("refresh", "--yes", *gone)
    assert refreshed.returncode == 0, refreshed.stdout
    replace = ["--refresh=false", "--replace", "**compute/instance:Instance::machine"]
    failed = project.run("up", "--yes", "--skip-preview", "--refresh=false")
    assert failed.returncode != 0
    assert "unexpected state 'ERROR'" in failed.stdout, failed.stdout
    (broken,) = cloud.compute.servers()
    assert (broken.status, broken.id == before.id) == ("ERROR", False)
    act(paths, "full", "--off")
    assert "in vm_state error" in project.run("up", "--yes", "--skip-preview", "--refresh=false").stdout
    assert [each.status for each in cloud.compute.servers()] == ["ERROR"], "an update alone does not replace it"
    warned = planned(project, "--refresh=false")[1]
    assert f"the VM {broken.id} has the status ERROR: No valid host was found." in warned
    assert f"`pulumi up {' '.join(replace[:2])} '{replace[2]}'`" in warned
    project.up(*replace)
    (after,) = cloud.compute.servers()
    assert (after.status, after.id == broken.id) == ("ACTIVE", False)
    (volume,) = cloud.block_storage.volumes()
    assert [each["server_id"] for each in volume.attachments] == [after.id]
    project.unchanged()
