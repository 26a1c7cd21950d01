"""Keeps the scratch file system of a node's local NVMe disks mounted, and labels the node while it really is.

Every round looks at the node as it is. Mounted from these disks: label. Not mounted: take the label away, then mount
them. Where that fails the node gets no label. While they are mounted, the folders of pods that have ended are removed.

All commands are the node's own, run in its mount namespace: it needs mdadm, and e2fsprogs or xfsprogs.

Usage: python -m components.nodes.agents.nvme_scratch FOLDER FILESYSTEM MODEL, where MODEL is a regular expression, with
$NODE_NAME and $POD_UID set; in a privileged pod that shares the node's process ids.
"""

from __future__ import annotations

import os
import sys

from components.nodes.agents import node
from components.nodes.agents.commands import CommandError, on_the_node
from components.nodes.agents.scratch_folders import Folders
from components.nodes.agents.scratch_space import Scratch

LABEL = "mlbatch/nvme-scratch"
READY = "ready"
PORT = 8082
PERIOD_SECONDS = 60.0


def round_of(scratch: Scratch, own: node.Node) -> bool:
    """Bring disks and label together once; return whether the scratch space can be used.

    The label goes before anything is repaired, also when the repair fails.
    """
    try:
        mounted = scratch.is_mounted()
    except CommandError:
        _label(own, None)
        raise
    if not mounted:
        _label(own, None)
        scratch.mount()
        mounted = scratch.is_mounted()
    _label(own, READY if mounted else None)
    return mounted


def _label(own: node.Node, value: str | None) -> None:
    if own.labels().get(LABEL) != value:
        own.label({LABEL: value})


def clean(folders: Folders) -> None:
    """Remove the folders of pods that have ended. What stays takes room, and the space can be used all the same."""
    try:
        folders.clean()
    except OSError as error:
        node.log.warning("folders of pods that have ended may still be there: %s", error)


def main(folder: str, filesystem: str, model: str) -> None:
    """Keep the scratch space of this node mounted and free of what nobody uses, and its label true."""
    scratch, own = Scratch(on_the_node, folder, filesystem, model), node.Node.own()
    folders = Folders(on_the_node, folder, os.environ["POD_UID"])

    def work() -> bool:
        is_usable = round_of(scratch, own)
        if is_usable:
            clean(folders)
        return is_usable

    node.run(work, PERIOD_SECONDS, PORT)


if __name__ == "__main__":
    main(*sys.argv[1:])
