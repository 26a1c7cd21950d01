"""The folder of an OpenStack: databases, configuration, keys, images."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SERVICES: Final = ("keystone", "placement", "glance", "neutron", "cinder", "nova")
"""Each is one process; the workers of Nova and Cinder are its threads."""

CATALOG: Final = {
    "keystone": ("identity", "/v3"),
    "placement": ("placement", ""),
    "glance": ("image", ""),
    "neutron": ("network", ""),
    "cinder": ("block-storage", "/v3/%(project_id)s"),
    "nova": ("compute", "/v2.1"),
}
"""The type of each service, and the path of its endpoint."""

DATABASES: Final = (*SERVICES, "nova_api", "nova_cell0")


@dataclass(frozen=True)
class Folder:
    """The files of one OpenStack, all in one folder, which can be copied while no service runs."""

    path: Path

    def configuration(self, service: str) -> Path:
        """Return the folder with the configuration of a service."""
        return self.path / "etc" / service

    def configuration_file(self, service: str) -> Path:
        """Return the configuration file of a service."""
        return self.configuration(service) / ("glance-api.conf" if service == "glance" else f"{service}.conf")

    def database(self, name: str) -> Path:
        """Return the file of a database."""
        return self.path / "db" / f"{name}.sqlite"

    @property
    def ports_file(self) -> Path:
        """The ports that the files here refer to."""
        return self.path / "ports.json"

    @property
    def secrets_file(self) -> Path:
        """The passwords of this OpenStack and the project's application credential; mode 0600."""
        return self.path / "secrets.json"

    @property
    def faults_file(self) -> Path:
        """The planned faults."""
        return self.path / "faults.json"

    @property
    def caller_file(self) -> Path:
        """The source address of connections to guests."""
        return self.path / "caller"

    @property
    def packages_file(self) -> Path:
        """The packages that created the databases and can read them."""
        return self.path / "packages"

    def caller(self) -> str | None:
        """Return the source address of connections to guests, None for any address that a rule admits."""
        return self.caller_file.read_text() if self.caller_file.exists() else None

    def ports(self) -> dict[str, int]:
        """Return the port of each service on 127.0.0.1."""
        return {name: int(port) for name, port in json.loads(self.ports_file.read_text()).items()}

    def secrets(self) -> dict[str, str]:
        """Return the content of `secrets_file`."""
        return dict(json.loads(self.secrets_file.read_text()))


def url(port: int) -> str:
    """Return the address of a port of this machine."""
    return f"http://127.0.0.1:{port}"


def command(python: Path, folder: Folder, service: str, port: int) -> tuple[str, ...]:
    """Return the command that serves a service; `python` is the interpreter of OpenStack's packages."""
    module = ("-m", "emulator.openstack.inside.serve", service)
    return (str(python), *module, "--folder", str(folder.path), "--port", str(port))
