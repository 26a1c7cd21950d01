"""The target cpouta on an OpenStack with other names than CSC's: flavor, image, networks, volume type, region, address.

The local OpenStack gets these names from its administrator, and loses CSC's.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from emulator.openstack import seed
from emulator.openstack.deployment import Deployment
from emulator.paths import Paths
from tests.local.environment import WITHOUT_CHECKPOINTS, Project, engine_environment, local_environment
from tests.local.test_cpouta import settings, small_platform
from tests.local.test_openstack_services import PROJECT, connect

pytestmark = pytest.mark.emulated("it renames the content of the local OpenStack")

REGION = "lab"
OTHER_NAMES = {
    "customFlavor": {"name": "m1.xlarge", "cores": 8, "memory": 16},
    "image": "jammy-server-cloudimg-amd64",
    "ubuntu": "22.04",
    "network": "internal",
    "pool": "external",
    "volume": {"size": 80, "type": "ceph"},
    "sshFrom": {"laptop": "192.168.122.7/32"},
}


@pytest.fixture(scope="module")
def paths() -> Iterator[Paths]:
    with local_environment(small_platform, openstack=True, stack="cpouta") as paths:
        rename(paths)
        yield paths


def rename(paths: Paths) -> None:
    cloud = seed.administrator(Deployment(paths).folder)
    cloud.compute.create_flavor(name="m1.xlarge", vcpus=8, ram=16 * 1024, disk=40)
    cloud.compute.delete_flavor(cloud.compute.find_flavor("standard.xxlarge"))
    cloud.image.update_image(cloud.image.find_image("Ubuntu-22.04"), name=OTHER_NAMES["image"])
    for old, new in ((PROJECT, "internal"), ("public", "external")):
        cloud.network.update_network(cloud.network.find_network(old, ignore_missing=False), name=new)
    cloud.block_storage.create_type(name="ceph")
    cloud.block_storage.delete_type(cloud.block_storage.find_type("capacity"))
    cloud.identity.create_region(id=REGION)
    for each in list(cloud.identity.endpoints()):
        cloud.identity.create_endpoint(
            service_id=each.service_id, interface=each.interface, url=each.url, region_id=REGION
        )


@pytest.mark.soak("two minutes; tests/unit/test_cpouta.py has the settings")
def test_another_openstack_is_a_matter_of_settings(paths: Paths, tmp_path_factory: pytest.TempPathFactory) -> None:
    project = Project(tmp_path_factory.mktemp("elsewhere"), paths, "cpouta")
    environment = engine_environment(paths)
    address = environment.variables["OS_AUTH_URL"].replace("127.0.0.1", "localhost")
    other = {**environment.variables, **WITHOUT_CHECKPOINTS, "OS_REGION_NAME": REGION, "OS_AUTH_URL": address}
    project.engine = project.attached_to(replace(environment, variables=other))
    wanted = settings(**OTHER_NAMES)
    del wanted["openstack"]["flavor"]
    project.configure(wanted)
    project.up()
    (server,) = connect(paths).compute.servers()
    assert (server.status, server.flavor.name, [*server.addresses]) == ("ACTIVE", "m1.xlarge", ["internal"])
    (volume,) = connect(paths).block_storage.volumes()
    assert (volume.volume_type, volume.size) == ("ceph", 80)
    (stack,) = [each for each in project.engine.read_state()["resources"] if each["type"] == "pulumi:pulumi:Stack"]
    assert (stack["outputs"]["flavor"], stack["outputs"]["billingUnits"]) == ("m1.xlarge", {})
    project.unchanged()
    project.destroy("--exclude-protected")
