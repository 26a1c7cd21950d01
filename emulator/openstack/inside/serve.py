"""Serve one service of OpenStack on loopback until SIGTERM, with its workers in the same process.

Messages go from thread to thread (oslo.messaging's driver `fake`), so the workers of Nova and Cinder are here. Each
process has only one service, because `oslo_config.cfg.CONF` is global.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import waitress

from emulator.openstack.faults import Faults
from emulator.openstack.folder import SERVICES, Folder
from emulator.openstack.inside import sqlite
from emulator.openstack.inside.failing import Failing

_THREADS = 16


def main() -> None:
    """Serve the service in the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("service", choices=SERVICES)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    folder = Folder(options.folder)
    os.environ[f"OS_{options.service.upper()}_CONFIG_DIR"] = os.fspath(folder.configuration(options.service))
    sys.argv = [options.service, "--config-file", os.fspath(folder.configuration_file(options.service))]
    sqlite.take_turns()
    application = Failing(_APPLICATIONS[options.service](), options.service, Faults(folder.faults_file))
    waitress.serve(
        application,
        host="127.0.0.1",
        port=options.port,
        threads=_THREADS,
        clear_untrusted_proxy_headers=False,
        ident=None,
    )


def _keystone() -> Any:
    sys.argv = sys.argv[:1]
    return _wsgi("keystone.wsgi.api")


def _placement() -> Any:
    sys.argv = sys.argv[:1]
    return _wsgi("placement.wsgi.api")


def _glance() -> Any:
    sys.argv = sys.argv[:1]
    return _wsgi("glance.wsgi.api")


def _neutron() -> Any:
    application = _wsgi("neutron.wsgi.api")
    from neutron import policy
    from neutron.db.migration.models import head  # noqa: F401 (imports every model)
    from neutron_lib.plugins import directory
    from sqlalchemy import orm

    # Otherwise the first query does this. Of two first queries at once, the second has no policy rules yet and gets 404
    # for existing objects.
    orm.configure_mappers()
    policy.init()
    directory.get_plugin().start_rpc_listeners()
    return application


def _cinder() -> Any:
    from oslo_service import backend

    backend.init_backend(backend.BackendType.THREADING)
    application = _wsgi("cinder.wsgi.api")
    import os_brick
    from cinder import policy, service
    from cinder.common import constants
    from oslo_config import cfg

    os_brick.setup(cfg.CONF)
    policy.init()  # like Neutron's: two first queries at once would each load half
    volume = {"host": "local@nowhere", "service_name": "nowhere", "binary": constants.VOLUME_BINARY}
    service.Service.create(**volume, coordination=True).start()
    service.Service.create(binary=constants.SCHEDULER_BINARY).start()
    return application


def _nova() -> Any:
    application = _wsgi("nova.wsgi.osapi_compute")
    import nova.conf
    import os_brick
    import os_vif
    from nova import context, service
    from nova.compute import rpcapi as compute
    from nova.conductor import rpcapi as conductor
    from nova.objects import host_mapping
    from nova.scheduler import rpcapi as scheduler

    from emulator.openstack.inside import hypervisor

    os_brick.setup(nova.conf.CONF)
    os_vif.initialize()
    hypervisor.install()
    service.Service.create(binary="nova-conductor", topic=conductor.RPC_TOPIC).start()
    service.Service.create(binary="nova-scheduler", topic=scheduler.RPC_TOPIC).start()
    topics = {"topic": compute.RPC_TOPIC, "topic_alt": compute.RPC_TOPIC_ALT}  # a resize needs both
    service.Service.create(binary="nova-compute", **topics).start()
    host_mapping.discover_hosts(context.get_admin_context())
    return application


def _wsgi(module: str) -> Any:
    """Return a service's WSGI application. Importing its module initializes the service, so it must come first."""
    return import_module(module).application


_APPLICATIONS: dict[str, Callable[[], Any]] = {
    "keystone": _keystone,
    "placement": _placement,
    "glance": _glance,
    "neutron": _neutron,
    "cinder": _cinder,
    "nova": _nova,
}


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        sys.excepthook(type(error), error, error.__traceback__)
        os._exit(1)  # threads of the service's workers would keep the process running
