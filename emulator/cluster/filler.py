"""The process that fills a local cluster with another cluster's content, and then runs until the cluster stops."""

import argparse
import json
import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from emulator.cluster.api import Api
from emulator.cluster.content import Content, fill, is_complete
from emulator.cluster.credentials import read_kubeconfig
from emulator.cluster.layout import Layout
from emulator.paths import Paths

_log = logging.getLogger("content")


def main(arguments: Sequence[str] | None = None) -> int:
    """Fill the cluster of a state folder, unless it is filled already."""
    parser = argparse.ArgumentParser(prog="python -m emulator.cluster.filler", description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="the checkout")
    parser.add_argument("--state", type=Path, required=True, help="the environment's state folder")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    layout = Layout(Paths.of(root=options.root, state=options.state))
    api = Api(read_kubeconfig(layout.paths.kubeconfig.read_text()))
    if not is_complete(api):
        content: Content = json.loads(layout.content.read_text())
        fill(api, layout.socket("etcd"), content)
        _log.info("%d objects are copied", len(content["exact"]))
    signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main())
