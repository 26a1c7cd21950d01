"""What the settings of each node pool but the first have in common."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from components import names
from components.kubernetes.placement import NodeGroup
from stacks.config.errors import ConfigError, Path, key
from stacks.settings.model import SettingsModel
from stacks.settings.names import is_label
from stacks.settings.tenancy import QuotaSettings

_MOST: Final = 64
"""Flavors of a ClusterQueue (kubernetes-sigs/kueue, apis/kueue/v1beta2/clusterqueue_types.go)."""


class FurtherPoolSettings(SettingsModel):
    """A further node pool, which queues try after the pools before it.

    It has its own ResourceFlavor, and each queue has a quota of it.
    """

    name: str
    """Name of the pool and of its ResourceFlavor (with a suffix if `packing` is `topology`). Teams use it in
    `pools`."""
    slack: QuotaSettings | None = None
    """Quota of the slack queue in this pool. Default: one node's resources if the pool has several nodes, otherwise
    none.
    """


def check(path: Path, pools: Sequence[FurtherPoolSettings]) -> Iterator[ConfigError]:
    """Yield errors of invalid and duplicate names of flavors. path: of the list."""
    if len(pools) >= _MOST:
        yield ConfigError(
            path, f"a queue can have at most {_MOST} flavors", "merge pools with the same machine type and price"
        )
    taken = [names.FLAVOR]
    for index, pool in enumerate(pools):
        if not is_label(pool.name) or pool.name in taken:
            yield ConfigError(
                (*path, index, "name"),
                "another pool has this name" if pool.name in taken else "this name is invalid for a flavor",
                "for example spot",
                expected="a unique name of at most 63 of a-z, 0-9 and -, with a letter or digit first and last",
            )
        taken.append(pool.name)


def overlapping(groups: Mapping[Path, NodeGroup]) -> Iterator[ConfigError]:
    """Yield errors of pools whose labels can match nodes of an earlier pool. groups: labels by path."""
    before: list[tuple[Path, NodeGroup]] = []
    for where, group in groups.items():
        for other, nodes in before:
            if not any(nodes.node_selector.get(label, value) != value for label, value in group.node_selector.items()):
                yield ConfigError(
                    (*where, "nodeSelector"),
                    f"a node could match these labels and {key((*other, 'nodeSelector'))}, and would count "
                    "for both pools",
                    "add a label such as nvidia.com/gpu.product, or the provider's node pool label, to both, with "
                    "different values",
                )
        before.append((where, group))
