"""Labels a node with what Hyper-V tells the machine about its host, so that a fault can be reported with the host.

Azure writes pairs of key and value into /var/lib/hyperv/.kvp_pool_3: records of fixed length, keys of 512 and values of
2048 bytes, padded with zeros (Linux, tools/hv/hv_kvp_daemon.c). Each pair becomes the label `hyperv/<key>`. A node that
has moved to another host gets new values, and labels without a pair go.

The partition key of the InfiniBand ports, the full-member one of a machine's own partition, becomes `ib/pkey`
(edwardsp/ai-on-aks, examples/node-labeler).

Usage: python -m components.azure.agents.hyperv_labels, with $NODE_NAME set.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from components.nodes.agents import node

PREFIX = "hyperv/"
PARTITION = "ib/pkey"
POOL = Path("/var/lib/hyperv/.kvp_pool_3")
INFINIBAND = Path("/sys/class/infiniband")
PORT = 8081
PERIOD_SECONDS = 300.0

KEY_BYTES, VALUE_BYTES = 512, 2048
MOST_LABELS = 32
"""So that a pool gone wild does not fill the node's object."""
LONGEST = 63
_DEFAULT_PARTITION = 0x7FFF
_FULL_MEMBER = 0x8000


def pairs(content: bytes) -> Iterator[tuple[str, str]]:
    """Yield key and value of each record; a record cut short, or without a key, is left out."""
    size = KEY_BYTES + VALUE_BYTES
    for start in range(0, len(content) - size + 1, size):
        record = content[start : start + size]
        key, value = (_text(part) for part in (record[:KEY_BYTES], record[KEY_BYTES:]))
        if key:
            yield key, value


def _text(padded: bytes) -> str:
    return padded.split(b"\0", 1)[0].decode("utf-8", "replace").strip()


def label_part(text: str) -> str:
    """Return a text as a label may hold it: up to 63 letters, digits, `-`, `_` and `.`, a letter or digit at the ends.

    Every other character becomes `-`. The result can be empty.
    """
    return re.sub(r"[^A-Za-z0-9_.-]", "-", text)[:LONGEST].strip("-_.")


def wanted(content: bytes, keys: Iterable[str]) -> dict[str, str]:
    """Return the labels for a pool's content and the partition keys of the ports."""
    labels = {}
    for key, value in pairs(content):
        if name := label_part(key):
            labels[f"{PREFIX}{name}"] = label_part(value)
    labels = dict(sorted(labels.items())[:MOST_LABELS])
    if partition := partition_key(keys):
        labels[PARTITION] = partition
    return labels


def partition_key(keys: Iterable[str]) -> str | None:
    """Return the one key of which a port is a full member, other than the default partition's; None when unclear."""
    found = set()
    for key in keys:
        try:
            number = int(key, 16)
        except ValueError:
            continue
        if number & _FULL_MEMBER and number & ~_FULL_MEMBER != _DEFAULT_PARTITION:
            found.add(f"0x{number:04x}")
    return found.pop() if len(found) == 1 else None


def changes(present: Mapping[str, str], labels: Mapping[str, str]) -> dict[str, str | None]:
    """Return what to change of a node's labels; those of others are left alone."""
    stale = [name for name in present if _is_ours(name) and name not in labels]
    return {
        **{name: value for name, value in labels.items() if present.get(name) != value},
        **dict.fromkeys(stale, None),
    }


def _is_ours(name: str) -> bool:
    return name.startswith(PREFIX) or name == PARTITION


def port_keys(folder: Path) -> list[str]:
    """Return the partition keys of all ports, none where there is no InfiniBand."""
    return [file.read_text().strip() for file in sorted(folder.glob("mlx5_*/ports/1/pkeys/*"))]


def main() -> None:
    """Keep the labels of this node up to date."""
    own = node.Node.own()

    def work() -> bool:
        own.label(changes(own.labels(), wanted(POOL.read_bytes(), port_keys(INFINIBAND))))
        return True

    node.run(work, PERIOD_SECONDS, PORT)


if __name__ == "__main__":
    main()
