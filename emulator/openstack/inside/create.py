"""Create the databases of a service, with the service's own commands.

Each command is one of `<service>-manage`. It runs in a process forked after the imports, which take longer than the
work.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from emulator.openstack.folder import Folder


def main() -> None:
    """Create the databases of one service."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("service", choices=sorted(_CREATE))
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    _CREATE[options.service](Folder(options.folder))


def _keystone(folder: Folder) -> None:
    from keystone.cmd import cli

    owner = ("--keystone-user", str(os.getuid()), "--keystone-group", str(os.getgid()))
    # OS_BOOTSTRAP_* configures the bootstrap, because the list of processes would show a password in a command.
    for arguments in (("fernet_setup", *owner), ("credential_setup", *owner), ("db_sync",), ("bootstrap",)):
        _forked("keystone", folder, arguments, lambda: cli.main(argv=sys.argv))


def _glance(folder: Folder) -> None:
    from glance.cmd import manage

    _forked("glance", folder, ("db_sync",), manage.main)


def _cinder(folder: Folder) -> None:
    from cinder.cmd import manage

    _forked("cinder", folder, ("db", "sync"), manage.main)


def _nova(folder: Folder) -> None:
    from nova.cmd import manage

    cell0 = f"sqlite:///{folder.database('nova_cell0')}?timeout=20"
    for arguments in (
        ("api_db", "sync"),
        ("cell_v2", "map_cell0", "--database_connection", cell0),
        ("db", "sync"),
        ("cell_v2", "create_cell", "--name", "cell1"),
    ):
        _forked("nova", folder, arguments, manage.main)


def _neutron(folder: Folder) -> None:
    """Create the tables from the models, because Neutron's migrations do not support SQLite."""
    from neutron.common import config
    from neutron.db.migration.models import head  # noqa: F401 (imports every model)
    from neutron_lib.db import api, model_base

    config.register_common_config_options()
    config.init(["--config-file", str(folder.configuration_file("neutron"))])
    model_base.BASEV2.metadata.create_all(api.CONTEXT_WRITER.get_engine())


def _forked(service: str, folder: Folder, arguments: tuple[str, ...], command: Callable[[], object]) -> None:
    """Run a command of `<service>-manage`. Raises SystemExit if it fails."""
    child = os.fork()
    if child == 0:
        sys.argv = [f"{service}-manage", "--config-file", str(folder.configuration_file(service)), *arguments]
        try:
            code = command()
        except SystemExit as end:
            code = end.code
        except BaseException as error:
            sys.excepthook(type(error), error, error.__traceback__)
            code = 1
        sys.stdout.flush()
        os._exit(int(bool(code)))
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
        sys.exit(f"{service}-manage {' '.join(arguments)} failed")


_CREATE: dict[str, Callable[[Folder], None]] = {
    "keystone": _keystone,
    "glance": _glance,
    "neutron": _neutron,
    "cinder": _cinder,
    "nova": _nova,
}
"""Without Placement, which migrates its database when it starts."""


if __name__ == "__main__":
    main()
