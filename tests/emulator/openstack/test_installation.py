"""Stacks with an OpenStack, its installation, and the initial state of an environment."""

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import yaml

from emulator.distribution import has_openstack
from emulator.openstack.deployment import DATABASES_LINK, PACKAGES_LINK, Deployment
from emulator.openstack.folder import CATALOG, SERVICES, Folder
from emulator.openstack.installation import DATABASES, PACKAGES, Installation
from emulator.paths import Paths
from runner.environment import Environment

ROOT = Path(__file__).parents[3]
REQUIREMENTS = ROOT / "emulator" / "tools" / "openstack"
PORTS = {service: 20000 + index for index, service in enumerate(SERVICES)}
MADE = {"credential_id": "an-id", "credential_secret": "a-secret", "service": "a-password", "volume_key": "0" * 64}


@contextmanager
def opened(file: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(file)) as database, database:
        yield database


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths.of(root=tmp_path, state=tmp_path / "state", cache=tmp_path / "cache")


@pytest.fixture
def deployment(paths: Paths) -> Deployment:
    """Return a deployment whose databases have the tables with addresses."""
    packages = paths.bin / PACKAGES_LINK
    (packages / "bin").mkdir(parents=True)
    (packages / "etc" / "nova").mkdir(parents=True)
    (packages / "etc" / "nova" / "api-paste.ini").write_text("[composite:osapi_compute]\n")
    made = Folder(paths.bin / DATABASES_LINK)
    (made.path / "db").mkdir(parents=True)
    made.secrets_file.write_text(json.dumps(MADE))
    made.packages_file.write_text("openstack-1")
    with opened(made.database("keystone")) as database:
        database.execute("CREATE TABLE service (id, type)")
        database.execute("CREATE TABLE endpoint (service_id, url)")
        for kind, _ in CATALOG.values():
            database.execute("INSERT INTO service VALUES (?, ?)", (f"{kind}-id", kind))
            database.execute("INSERT INTO endpoint VALUES (?, 'http://127.0.0.1:1')", (f"{kind}-id",))
    with opened(made.database("nova_api")) as database:
        database.execute("CREATE TABLE cell_mappings (name, database_connection)")
        database.execute("INSERT INTO cell_mappings VALUES ('cell0', 'elsewhere'), ('cell1', 'elsewhere')")
    with opened(made.database("glance")) as database:
        database.execute("CREATE TABLE image_locations (image_id, value)")
        database.execute("INSERT INTO image_locations VALUES ('an-image', 'file:///elsewhere')")
    return Deployment(paths)


def test_only_the_stacks_of_cpouta_have_an_openstack(tmp_path: Path) -> None:
    (tmp_path / "local").symlink_to(ROOT / "local")
    for target in ("cpouta", "openshift", "simulated"):
        (tmp_path / f"Pulumi.{target}.yaml").write_text(yaml.safe_dump({"config": {"mlbatch:target": target}}))
    assert has_openstack(tmp_path, "cpouta")
    assert not any(has_openstack(tmp_path, stack) for stack in ("openshift", "simulated", "none-of-ours"))


def test_a_missing_installation_is_reported_before_it_starts(paths: Paths) -> None:
    assert Installation(paths).missing() == [PACKAGES, DATABASES]


def test_every_package_is_locked_with_digests() -> None:
    wanted = set(re.findall(r"^[\w.-]+==\S+$", (REQUIREMENTS / "requirements.in").read_text(), re.MULTILINE))
    entries = re.split(r"\n(?=\S)", (REQUIREMENTS / "requirements.txt").read_text().split("\n", 2)[2])
    assert len(wanted) == 7
    assert wanted <= {entry.split()[0] for entry in entries}
    assert [
        entry for entry in entries if not re.match(r"[\w.-]+==\S+.*(\\\n +--hash=sha256:[0-9a-f]{64} ?)+$", entry)
    ] == []


def test_a_copy_is_fitted_to_its_place_and_its_ports(deployment: Deployment, paths: Paths) -> None:
    deployment.ensure(PORTS)
    folder = deployment.folder
    with opened(folder.database("keystone")) as database:
        found = dict(database.execute("SELECT type, url FROM endpoint JOIN service ON service.id = service_id"))
    assert found["compute"] == f"http://127.0.0.1:{PORTS['nova']}/v2.1"
    assert found["block-storage"] == f"http://127.0.0.1:{PORTS['cinder']}/v3/%(project_id)s"
    with opened(folder.database("nova_api")) as database:
        cells = dict(database.execute("SELECT name, database_connection FROM cell_mappings"))
    assert cells["cell1"] == f"sqlite:///{paths.state}/openstack/db/nova.sqlite?timeout=20"
    assert cells["cell0"] == f"sqlite:///{paths.state}/openstack/db/nova_cell0.sqlite?timeout=20"
    with opened(folder.database("glance")) as database:
        (value,) = database.execute("SELECT value FROM image_locations").fetchone()
    assert value == f"file://{paths.state}/openstack/glance/images/an-image"
    text = folder.configuration_file("nova").read_text()
    assert f"auth_url = http://127.0.0.1:{PORTS['keystone']}/v3" in text
    assert f"lock_path = {paths.state}/openstack/nova/lock" in text
    assert "password = a-password" in text
    assert folder.configuration_file("nova").stat().st_mode & 0o777 == 0o600


def test_an_existing_installation_is_not_changed(deployment: Deployment) -> None:
    deployment.ensure(PORTS)
    with opened(deployment.folder.database("glance")) as database:
        database.execute("DELETE FROM image_locations")
    deployment.ensure(PORTS)
    with opened(deployment.folder.database("glance")) as database:
        assert database.execute("SELECT count(*) FROM image_locations").fetchone() == (0,)


def test_databases_of_another_release_are_detected(deployment: Deployment, paths: Paths) -> None:
    assert not deployment.foreign
    deployment.ensure(PORTS)
    assert not deployment.foreign
    Folder(paths.bin / DATABASES_LINK).packages_file.write_text("openstack-2")
    assert deployment.foreign


def test_the_engine_finds_only_an_application_credential(deployment: Deployment, tmp_path: Path) -> None:
    deployment.ensure(PORTS)
    variables = deployment.variables()
    assert variables == {
        "OS_AUTH_TYPE": "v3applicationcredential",
        "OS_AUTH_URL": f"http://127.0.0.1:{PORTS['keystone']}/v3",
        "OS_IDENTITY_API_VERSION": "3",
        "OS_REGION_NAME": "regionOne",
        "OS_INTERFACE": "public",
        "OS_APPLICATION_CREDENTIAL_ID": "an-id",
        "OS_APPLICATION_CREDENTIAL_SECRET": "a-secret",
    }
    found = Environment(kubeconfig=tmp_path, variables=variables)
    assert Environment.load(found.dump()) == found
