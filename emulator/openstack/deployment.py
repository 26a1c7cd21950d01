"""The OpenStack of one environment: its copy of the databases, adapted to folder and ports, and its credentials."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from emulator.openstack import configuration
from emulator.openstack.facts import facts
from emulator.openstack.folder import CATALOG, Folder, command, url
from emulator.paths import Paths
from runner.files import replacing, write_private

PACKAGES_LINK: Final = "openstack"
DATABASES_LINK: Final = "openstack-databases"
"""Names of the links in `paths.bin` to the installed packages and databases."""


class Deployment:
    """The OpenStack in an environment's state folder."""

    def __init__(self, paths: Paths) -> None:
        self.folder = Folder(paths.openstack)
        self._python = paths.bin / PACKAGES_LINK / "bin" / "python"
        self._databases = Folder(paths.bin / DATABASES_LINK)

    @property
    def installed(self) -> bool:
        """Whether its packages and databases are installed."""
        return os.access(self._python, os.X_OK) and self._databases.path.exists()

    @property
    def foreign(self) -> bool:
        """Whether other packages than the installed ones created its databases."""
        made = self.folder.packages_file
        return made.exists() and made.read_text() != self._databases.packages_file.read_text()

    def ensure(self, ports: Mapping[str, int]) -> None:
        """Copy the initial databases, unless they exist."""
        if self.folder.path.exists():
            return
        with replacing(self.folder.path) as unfinished:
            shutil.copytree(self._databases.path, unfinished, ignore=shutil.ignore_patterns("*.log"))
        self.fit(ports)

    def fit(self, ports: Mapping[str, int]) -> None:
        """Adapt everything to its folder and ports. No service may run.

        Most of it is configuration. Three addresses are in databases: Keystone's endpoints, the databases of Nova's
        cells, and the files of Glance's images.
        """
        folder = self.folder
        configuration.write(folder, self._python, ports, facts())
        write_private(folder.ports_file, json.dumps(dict(ports)))
        with _changing(folder.database("keystone")) as database:
            for service, (kind, path) in CATALOG.items():
                database.execute(
                    "UPDATE endpoint SET url = ? WHERE service_id = (SELECT id FROM service WHERE type = ?)",
                    (url(ports[service]) + path, kind),
                )
        with _changing(folder.database("nova_api")) as database:
            for cell, name in (("cell0", "nova_cell0"), ("cell1", "nova")):
                connection = f"sqlite:///{folder.database(name)}?timeout=20"
                database.execute("UPDATE cell_mappings SET database_connection = ? WHERE name = ?", (connection, cell))
        with _changing(folder.database("glance")) as database:
            images = f"file://{folder.path}/glance/images/"
            database.execute("UPDATE image_locations SET value = ? || image_id", (images,))

    def command(self, service: str, port: int) -> tuple[str, ...]:
        """Return the command that serves a service."""
        return command(self._python, self.folder, service, port)

    def variables(self) -> dict[str, str]:
        """Return the variables that an `openrc` file of the project's application credential exports."""
        secrets = self.folder.secrets()
        return {
            "OS_AUTH_TYPE": "v3applicationcredential",
            "OS_AUTH_URL": f"{url(self.folder.ports()['keystone'])}/v3",
            "OS_IDENTITY_API_VERSION": "3",
            "OS_REGION_NAME": str(facts()["region"]),
            "OS_INTERFACE": "public",
            "OS_APPLICATION_CREDENTIAL_ID": secrets["credential_id"],
            "OS_APPLICATION_CREDENTIAL_SECRET": secrets["credential_secret"],
        }


@contextlib.contextmanager
def _changing(file: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(file)) as database, database:
        yield database
