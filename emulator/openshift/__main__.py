"""The process of the local OpenShift: creates its objects, then serves namespaces and Routes."""

import argparse
import logging
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from emulator.cluster.api import MERGE_PATCH, Api, ApiError, Object, unless_gone
from emulator.cluster.credentials import read_kubeconfig
from emulator.cluster.layout import Layout
from emulator.cluster.ready import announce
from emulator.cluster.store import Key, Store
from emulator.openshift import accounts, definitions, namespaces, operator_hub, platform, routes
from emulator.openshift.red_hat.kueue_operator import KueueOperator
from emulator.openshift.red_hat.openshift_ai import OpenShiftAi
from emulator.paths import Paths

_NAMESPACES = "/api/v1/namespaces"
_ROUTES = "/apis/route.openshift.io/v1"
_COLLECTIONS = {
    "ServiceAccount": "/api/v1{0}/serviceaccounts",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1{0}/rolebindings",
}
"""API paths of the objects in each namespace, by kind. {0} is the namespace, or empty for all."""
_STUBS = (KueueOperator, OpenShiftAi)
_SYNC_SECONDS = 30.0
_RESYNC_SECONDS = 5.0

_log = logging.getLogger("openshift")


class Attendant:
    """Creates the missing objects of each namespace, and sets the status of each Route."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._changed = threading.Event()
        self._namespaces = Store(api, _NAMESPACES, lambda key: self._changed.set())
        self._routes = Store(api, f"{_ROUTES}/routes", lambda key: self._changed.set())
        self._made = {
            kind: Store(api, path.format(""), lambda key: self._changed.set()) for kind, path in _COLLECTIONS.items()
        }

    def start(self) -> None:
        """Follow namespaces, their objects, and Routes. Raises TimeoutError if the API server does not list them."""
        stores = (self._namespaces, self._routes, *self._made.values())
        for store in stores:
            store.start()
        if not all(store.wait(_SYNC_SECONDS) for store in stores):
            raise TimeoutError(f"the API server did not list namespaces and Routes in {_SYNC_SECONDS:.0f} s")

    def attend(self) -> None:
        """Serve all namespaces and Routes once. The next call retries what was rejected."""
        try:
            self._allot()
            self._admit()
            self._furnish()
        except ApiError as error:
            _log.info("%s", error)

    def wait(self) -> None:
        """Wait for a change, or for the resync interval."""
        self._changed.wait(_RESYNC_SECONDS)
        self._changed.clear()

    def _allot(self) -> None:
        found = {namespace["metadata"]["name"]: namespace for namespace in self._namespaces.all()}
        for name in sorted(name for name, namespace in found.items() if namespaces.lacks(namespace)):
            annotations = namespaces.allotted(namespaces.next_block(found.values()))
            with unless_gone():
                found[name] = self._api.patch(
                    f"{_NAMESPACES}/{name}", {"metadata": {"annotations": annotations}}, MERGE_PATCH
                )

    def _admit(self) -> None:
        for route in self._routes.all():
            host = routes.with_host(route, platform.DOMAIN)
            if host is not None:
                self._patch(route, host)
        for route, status in routes.verdicts(self._routes.all(), platform.DOMAIN):
            self._patch(route, status, "/status")

    def _furnish(self) -> None:
        there = {kind: {_key(each) for each in store.all()} for kind, store in self._made.items()}
        for document in accounts.lacking(self._namespaces.all(), there["ServiceAccount"], there["RoleBinding"]):
            with unless_gone():
                namespace = f"/namespaces/{document['metadata']['namespace']}"
                self._api.create(_COLLECTIONS[document["kind"]].format(namespace), document)

    def _patch(self, route: Object, body: Object, subresource: str = "") -> None:
        metadata = route["metadata"]
        path = f"{_ROUTES}/namespaces/{metadata['namespace']}/routes/{metadata['name']}{subresource}"
        with unless_gone():
            self._api.patch(path, body, MERGE_PATCH)


def _key(each: Object) -> Key:
    return each["metadata"]["namespace"], each["metadata"]["name"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve the cluster of one state folder until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m emulator.openshift", description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="the checkout")
    parser.add_argument("--state", type=Path, required=True, help="the environment's state folder")
    parser.add_argument("--operator-hub", action="store_true", help="also install operators from a catalog")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    layout = Layout(Paths.of(root=options.root, state=options.state))
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: stop.set())
    signal.signal(signal.SIGINT, lambda number, frame: stop.set())
    try:
        # On a busy machine, a definition of half a megabyte takes a while.
        account = read_kubeconfig(layout.paths.kubeconfig.read_text())
        api = Api(account, timeout=60.0)
        platform.install(api, definitions.read(layout.paths))
        if options.operator_hub:
            platform.define(api, operator_hub.definitions(layout.paths))
            platform.apply(api, operator_hub.objects())
        operands = operator_hub.folder(layout.paths.mirror) / "operands"
        stubs = [each(account, operands) for each in _STUBS] if options.operator_hub else []
        attendant = Attendant(api)
        attendant.start()
        attendant.attend()
    except (ApiError, TimeoutError) as error:
        _log.error("%s", error)
        return 1
    announce(layout.socket("openshift"))
    _log.info("the cluster is an OpenShift now")
    while not stop.is_set():
        attendant.wait()
        attendant.attend()
        for stub in stubs:
            stub.attend()
    return 0


if __name__ == "__main__":
    sys.exit(main())
