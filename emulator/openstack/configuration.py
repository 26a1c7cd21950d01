"""Writes the configuration files of all services for one folder and its ports, from `templates`."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any, Final

from emulator.openstack.folder import SERVICES, Folder, url
from runner.files import write_private

SERVICE_USER: Final = "services"
SERVICE_PROJECT: Final = "service"

_TEMPLATES: Final = Path(__file__).parent / "templates"
_FOLDERS: Final = (
    *(f"{service}/lock" for service in SERVICES),
    "db",
    "cinder/coordination",
    "glance/images",
    "glance/staging",
    "glance/tasks",
    "keystone/tokens",
    "keystone/receipts",
    "keystone/credentials",
)

_ACCOUNT: Final = Template("""\
auth_type = password
auth_url = $keystone/v3
username = $user
password = $password
project_name = $project
user_domain_name = Default
project_domain_name = Default
region_name = $region
valid_interfaces = public""")
"""How a service authenticates to the others (keystoneauth1, `identity/v3/password.py`)."""

_TOKENS: Final = Template("""\
interface = public
www_authenticate_uri = $keystone/v3
service_token_roles = service
service_token_roles_required = True
memcache_security_strategy = None
token_cache_time = 60""")
"""How a service validates tokens (keystonemiddleware, `auth_token/_opts.py`)."""


def write(folder: Folder, python: Path, ports: Mapping[str, int], facts: Mapping[str, Any]) -> None:
    """Write the files of all services.

    python: the interpreter of OpenStack's packages.
    ports: of each service.
    facts: `facts.yaml`.
    """
    etc = python.parent.parent / "etc"  # the packages' own configuration files
    for name in _FOLDERS:
        (folder.path / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    secrets = folder.secrets()
    addresses = {service: url(ports[service]) for service in SERVICES}
    sign_in = {
        **addresses,
        "user": SERVICE_USER,
        "project": SERVICE_PROJECT,
        "password": secrets["service"],
        "region": facts["region"],
    }
    values = {
        **sign_in,
        "folder": _literal(folder.path),
        "etc": _literal(etc),
        "key": secrets["volume_key"],
        "zone": facts["availability_zone"],
        "volume_type": next(iter(facts["volume_types"])),
        "account": _ACCOUNT.substitute(sign_in),
        "tokens": _TOKENS.substitute(sign_in),
    }
    for service in SERVICES:
        folder.configuration(service).mkdir(mode=0o700, parents=True, exist_ok=True)
        text = Template((_TEMPLATES / f"{service}.conf").read_text()).substitute(values)
        write_private(folder.configuration_file(service), text)
    # Nova looks for it only next to its configuration.
    shutil.copyfile(etc / "nova" / "api-paste.ini", folder.configuration("nova") / "api-paste.ini")


def _literal(path: Path) -> str:
    """Return a path with escaped `$`, which oslo.config would read as a reference to another option."""
    return str(path).replace("$", "$$")
