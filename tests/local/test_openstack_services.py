"""The local OpenStack through its own API, as a member of a CSC project uses it."""

import base64
import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import grpc
import openstack
import pytest
from google.protobuf.struct_pb2 import Struct
from openstack.connection import Connection
from openstack.exceptions import HttpException
from pulumi.runtime.proto import provider_pb2 as pb
from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderStub

from emulator import cluster
from emulator.cluster.layout import Layout
from emulator.environment import OPENSTACK, built_plugin, environment
from emulator.openstack import seed
from emulator.openstack.__main__ import main as act
from emulator.openstack.deployment import Deployment
from emulator.openstack.overview import report
from emulator.paths import Paths
from tests.local.environment import eventually, local_environment

pytestmark = pytest.mark.emulated("it is about the local OpenStack itself")

PROJECT = "project_2001234"
SERVICES = {"keystone", "placement", "glance", "neutron", "cinder", "nova"}
SECONDS = 300


def connect(paths: Paths) -> Connection:
    """Connect with only the variables of the engine's environment."""
    variables = {name.removeprefix("OS_").lower(): text for name, text in environment(paths).variables.items()}
    return openstack.connect(load_envvars=False, load_yaml_config=False, **variables)


@pytest.fixture(scope="module")
def paths() -> Iterator[Paths]:
    with local_environment(openstack=True) as paths:
        yield paths


@pytest.fixture(scope="module")
def cloud(paths: Paths) -> Connection:
    return connect(paths)


@pytest.fixture(scope="module")
def change(paths: Paths) -> Callable[..., None]:
    """Return a function that changes the OpenStack without the engine."""

    def run(*arguments: str) -> None:
        assert act([*arguments, "--state", str(paths.state)]) == 0

    return run


@pytest.fixture(scope="module")
def port(cloud: Connection) -> Any:
    """Return a port in the project's network, whose group admits SSH from one address."""
    group = cloud.network.create_security_group(name="ssh")
    rule = {"direction": "ingress", "ether_type": "IPv4", "protocol": "tcp"}
    cloud.network.create_security_group_rule(
        security_group_id=group.id, port_range_min=22, port_range_max=22, remote_ip_prefix="198.51.100.7/32", **rule
    )
    network = cloud.network.find_network(PROJECT)
    return cloud.network.create_port(name="platform", network_id=network.id, security_group_ids=[group.id])


def create_server(cloud: Connection, name: str, flavor: str, **where: Any) -> Any:
    return cloud.compute.create_server(
        name=name,
        image_id=cloud.image.find_image("Ubuntu-22.04").id,
        flavor_id=cloud.compute.find_flavor(flavor).id,
        user_data=base64.b64encode(b"#cloud-config\n").decode(),
        **where,
    )


@pytest.fixture(scope="module")
def server(cloud: Connection, port: Any) -> Any:
    made = create_server(cloud, "platform", "standard.large", networks=[{"port": port.id}])
    return cloud.compute.wait_for_server(made, interval=0.5, wait=SECONDS)


@pytest.fixture(scope="module")
def volume(cloud: Connection, server: Any) -> Any:
    made = cloud.block_storage.create_volume(name="data", size=500)
    await_volume(cloud, made, "available")
    cloud.compute.create_volume_attachment(server.id, volume=made.id)
    return await_volume(cloud, made, "in-use")


@pytest.fixture(scope="module")
def address(cloud: Connection, port: Any, server: Any) -> Any:
    made = cloud.network.create_ip(floating_network_id=cloud.network.find_network("public").id)
    return cloud.network.update_ip(made, port_id=port.id)


def await_volume(cloud: Connection, volume: Any, status: str) -> Any:
    return cloud.block_storage.wait_for_status(volume, status, interval=0.5, wait=SECONDS)


def refused(call: Callable[[], object]) -> tuple[int, str]:
    with pytest.raises(HttpException) as found:
        call()
    assert found.value.status_code is not None
    return found.value.status_code, str(found.value)


def test_the_project_is_as_csc_gives_it(cloud: Connection) -> None:
    flavors = {flavor.name: (flavor.vcpus, flavor.ram, flavor.disk) for flavor in cloud.compute.flavors()}
    assert flavors["standard.xxlarge"] == (8, 32000, 80)
    assert flavors["gpu.1.1gpu"] == (14, 120000, 80)
    assert {"Ubuntu-22.04", "Ubuntu-24.04"} <= {image.name for image in cloud.image.images()}
    networks = {network.name: network.is_router_external for network in cloud.network.networks()}
    assert networks == {"public": True, PROJECT: False}
    assert {zone.name for zone in cloud.compute.availability_zones()} == {"nova"}
    assert {each.name for each in cloud.block_storage.types()} == {"standard", "capacity"}
    project = cloud.current_project_id
    compute = cloud.compute.get_quota_set(project)
    assert (compute.instances, compute.cores, compute.ram) == (8, 8, 32768)
    assert cloud.network.get_quota(project).floating_ips == 2
    assert cloud.block_storage.get_quota_set(project).gigabytes == 1024


def test_the_credential_is_a_members_and_cannot_create_others(cloud: Connection) -> None:
    identity: Any = cloud.identity
    status, text = refused(lambda: identity.create_application_credential(user=cloud.current_user_id, name="more"))
    assert (status, "is not allowed for managing additional application credentials" in text) == (403, True)
    assert refused(lambda: cloud.compute.create_flavor(name="mine", vcpus=1, ram=1, disk=1))[0] == 403


def test_a_server_has_its_addresses_and_its_volume(cloud: Connection, server: Any, address: Any, volume: Any) -> None:
    found = cloud.compute.get_server(server.id)
    assert (found.status, found.availability_zone) == ("ACTIVE", "nova")
    assert address.floating_ip_address.startswith("203.0.113.")
    # Nova gets an address from Neutron a moment later.
    eventually(
        "the floating IP on the server",
        lambda: [each["addr"] for each in cloud.compute.get_server(server.id).addresses[PROJECT]],
        lambda found: address.floating_ip_address in found,
    )
    assert [each["server_id"] for each in volume.attachments] == [server.id]
    assert volume.attachments[0]["device"] == "/dev/vdb"
    assert (volume.volume_type, volume.availability_zone) == ("standard", "nova")


def test_a_request_above_a_quota_is_refused(
    cloud: Connection, server: Any, volume: Any, address: Any, change: Callable[..., None]
) -> None:
    network = [{"uuid": cloud.network.find_network(PROJECT).id}]
    status, text = refused(lambda: create_server(cloud, "gpu", "gpu.1.1gpu", networks=network))
    assert (status, "Quota exceeded for cores, ram" in text) == (403, True)
    assert refused(lambda: cloud.block_storage.create_volume(size=600))[0] == 413
    change("quota", "floatingip=1", "cores=18", "ram=140000")
    public = cloud.network.find_network("public").id
    assert refused(lambda: cloud.network.create_ip(floating_network_id=public))[0] == 409
    gpu = create_server(cloud, "gpu", "gpu.1.1gpu", networks=network)
    assert cloud.compute.wait_for_server(gpu, interval=0.5, wait=SECONDS).status == "ACTIVE"
    cloud.compute.delete_server(gpu.id)
    cloud.compute.wait_for_delete(gpu, interval=0.5, wait=SECONDS)


def test_a_change_of_flavor_is_a_resize(cloud: Connection, server: Any, paths: Paths) -> None:
    medium: Any = cloud.compute.find_flavor("standard.medium")
    cloud.compute.resize_server(server, medium.id)
    cloud.compute.wait_for_server(server, status="VERIFY_RESIZE", interval=0.5, wait=SECONDS)
    cloud.compute.confirm_server_resize(server)
    resized = cloud.compute.wait_for_server(server, interval=0.5, wait=SECONDS)
    assert (resized.id, resized.flavor.name) == (server.id, "standard.medium")
    # Nova releases the server's former resources once it is ACTIVE. Otherwise the full hosts would later have room
    # again.
    eventually("its former memory is free", lambda: memory_taken(paths), lambda taken: taken == medium.ram)


def memory_taken(paths: Paths) -> int:
    """Return the MiB of the hosts that servers use, as Placement counts them."""
    administrator = seed.administrator(Deployment(paths).folder)
    hosts = [each.id for each in administrator.placement.resource_providers()]
    answers = [administrator.placement.get(f"/resource_providers/{host}/usages").json() for host in hosts]
    return sum(int(answer["usages"].get("MEMORY_MB", 0)) for answer in answers)


def test_hosts_that_are_full_take_no_server(cloud: Connection, server: Any, change: Callable[..., None]) -> None:
    network = [{"uuid": cloud.network.find_network(PROJECT).id}]
    change("full")
    made = create_server(cloud, "late", "standard.tiny", networks=network)
    failed = eventually(
        "the server's fault", lambda: cloud.compute.get_server(made.id), lambda found: found.status == "ERROR"
    )
    assert failed.fault["message"] == "No valid host was found. "
    cloud.compute.delete_server(made.id)
    change("full", "--off")
    made = create_server(cloud, "late", "standard.tiny", networks=network)
    cloud.compute.wait_for_server(made, interval=0.5, wait=SECONDS)
    cloud.compute.delete_server(made.id)
    cloud.compute.wait_for_delete(made, interval=0.5, wait=SECONDS)


def test_others_of_the_project_change_it(
    cloud: Connection, port: Any, volume: Any, change: Callable[..., None], paths: Paths
) -> None:
    change("open", "--group", "ssh")
    rules = cloud.network.security_group_rules(security_group_id=port.security_group_ids[0], direction="ingress")
    assert {rule.remote_ip_prefix for rule in rules} == {"198.51.100.7/32", "0.0.0.0/0"}
    change("detach", "--volume", "data")
    assert cloud.block_storage.get_volume(volume.id).status == "available"
    text = report(paths)
    assert [line.split() for line in text.splitlines() if " platform " in line] == [
        ["server", "platform", "ACTIVE", "standard.medium"]
    ]
    assert "500 GiB, standard" in text


def test_the_provider_refuses_every_other_cloud(paths: Paths) -> None:
    """Before it connects, and also if one service of the local cloud would be elsewhere."""
    key = "openstack:compute/keypair:Keypair"
    overridden = {"endpointOverrides": json.dumps({"compute": "http://192.0.2.1:8774/v2.1/"})}
    variables = environment(paths).variables
    with provider(paths, variables) as called, pytest.raises(grpc.RpcError, match="is not on this machine"):
        called.Configure(pb.ConfigureRequest(args=struct({"authUrl": "https://pouta.csc.fi:5001/v3"})))
    with provider(paths, variables) as called:
        called.Configure(pb.ConfigureRequest(args=struct(overridden)))
        inputs = called.Check(pb.CheckRequest(urn=f"urn:pulumi:s::p::{key}::k", news=struct({}), randomSeed=b"0" * 32))
        with pytest.raises(grpc.RpcError, match="proxyconnect"):
            called.Create(pb.CreateRequest(urn=f"urn:pulumi:s::p::{key}::k", properties=inputs.inputs))


@contextlib.contextmanager
def provider(paths: Paths, variables: Mapping[str, str]) -> Iterator[ResourceProviderStub]:
    """Yield the engine's plugin, running with these variables."""
    program = built_plugin(paths, OPENSTACK) / "pulumi-resource-openstack"
    with subprocess.Popen([program], stdout=subprocess.PIPE, text=True, env={**variables}) as process:
        try:
            assert process.stdout is not None
            with grpc.insecure_channel(f"127.0.0.1:{process.stdout.readline().strip()}") as channel:
                yield ResourceProviderStub(channel)
        finally:
            process.kill()


def struct(values: Mapping[str, str]) -> Struct:
    found = Struct()
    found.update(values)
    return found


def test_a_planned_fault_happens_as_often_as_planned(cloud: Connection, change: Callable[..., None]) -> None:
    def named(name: str) -> list[str]:
        return [group.name for group in cloud.network.security_groups(name=name)]

    change("fault", "--on", "neutron", "--call", "POST */security-groups", "--kind", "fail", "--times", "2")
    for _ in range(2):
        assert refused(lambda: cloud.network.create_security_group(name="failed"))[0] == 503
    assert named("failed") == []
    change("fault", "--on", "neutron", "--call", "POST */security-groups", "--kind", "timeout")
    assert refused(lambda: cloud.network.create_security_group(name="lost"))[0] == 504
    assert named("lost") == ["lost"]
    assert cloud.network.create_security_group(name="made").name == "made"


def test_a_killed_service_restarts(cloud: Connection, server: Any, paths: Paths) -> None:
    def pid() -> int:
        return next(each.pid or 0 for each in cluster.status(paths).processes if each.name == "nova")

    killed = pid()
    os.kill(killed, signal.SIGKILL)
    eventually("Nova's end", pid, lambda now: now != killed)
    eventually("the services", lambda: cluster.status(paths).ready, seconds=SECONDS)
    assert cloud.compute.get_server(server.id).status == "ACTIVE"
    for switch, status in ((cloud.compute.stop_server, "SHUTOFF"), (cloud.compute.start_server, "ACTIVE")):
        switch(server.id)
        cloud.compute.wait_for_server(server, status=status, interval=0.5, wait=SECONDS)


def test_everything_survives_a_restart_on_other_ports(
    cloud: Connection, server: Any, volume: Any, address: Any, paths: Paths
) -> None:
    cluster.stop(paths)
    assert cluster.status(paths).leftovers == {}
    file = Layout(paths).ports_file
    before = json.loads(file.read_text())
    moved = {name: port for name, port in before.items() if name not in SERVICES}
    moved |= dict.fromkeys(SERVICES, 0) | {"keystone": before["nova"], "nova": before["keystone"]}
    file.write_text(json.dumps({name: port for name, port in moved.items() if port}))
    cluster.start(paths, print, openstack=True)
    again = connect(paths)
    assert again.compute.get_server(server.id).status == "ACTIVE"
    assert again.network.get_ip(address.id).port_id == address.port_id
    again.compute.create_volume_attachment(server.id, volume=volume.id)
    await_volume(again, again.block_storage.get_volume(volume.id), "in-use")
    assert again.image.find_image("Ubuntu-22.04").status == "active"
