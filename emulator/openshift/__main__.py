"""The process of OpenShift's own: puts its objects in place, then allots to each namespace what it lacks."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from emulator.cluster.api import MERGE_PATCH, Api, ApiError
from emulator.cluster.credentials import read_kubeconfig
from emulator.cluster.layout import Layout
from emulator.cluster.ready import announce
from emulator.cluster.store import Store
from emulator.openshift import definitions, namespaces, platform
from emulator.paths import Paths

_NAMESPACES = "/api/v1/namespaces"
_SYNC_SECONDS = 30.0
_RESYNC_SECONDS = 5.0

_log = logging.getLogger("openshift")


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve the cluster of one state folder until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m emulator.openshift", description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="the checkout")
    parser.add_argument("--state", type=Path, required=True, help="the environment's state folder")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    layout = Layout(Paths.of(root=options.root, state=options.state))
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: stop.set())
    signal.signal(signal.SIGINT, lambda number, frame: stop.set())
    try:
        api = Api(read_kubeconfig(layout.paths.kubeconfig.read_text()))
        platform.install(api, definitions.folder(layout.paths))
        _allot(api, layout, stop)
    except (ApiError, TimeoutError) as error:
        _log.error("%s", error)
        return 1
    return 0


def _allot(api: Api, layout: Layout, stop: threading.Event) -> None:
    """Allot to each namespace what it lacks, at once and whenever one comes."""
    changed = threading.Event()
    store = Store(api, _NAMESPACES, lambda key: changed.set())
    store.start()
    if not store.wait(_SYNC_SECONDS):
        raise TimeoutError(f"the API server did not list the namespaces in {_SYNC_SECONDS:.0f} s")
    ready = False
    while not stop.is_set():
        changed.clear()
        found = {namespace["metadata"]["name"]: namespace for namespace in store.all()}
        for name in sorted(name for name, namespace in found.items() if namespaces.lacks(namespace)):
            annotations = namespaces.allotted(namespaces.next_block(found.values()))
            try:
                body = {"metadata": {"annotations": annotations}}
                found[name] = api.patch(f"{_NAMESPACES}/{name}", body, MERGE_PATCH)
            except ApiError as error:  # tried again below, unless the namespace is gone
                _log.info("%s", error)
        if not ready:
            announce(layout.socket("openshift"))
            _log.info("the cluster has what every OpenShift has")
            ready = True
        changed.wait(_RESYNC_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
