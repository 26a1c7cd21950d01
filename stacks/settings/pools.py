"""What the settings of each node pool but the first have in common."""

from __future__ import annotations

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
    """Yield names that no flavor can have, or that another one has. path: of the list."""
    if len(pools) >= _MOST:
        yield ConfigError(
            path=path,
            value=len(pools),
            message=f"a queue holds {_MOST} flavors at most",
            expected=f"at most {_MOST - 1} pools behind the first",
            hint="put nodes of one shape and price into one pool",
        )
    taken = [names.FLAVOR]
    for index, pool in enumerate(pools):
        if not is_label(pool.name) or pool.name in taken:
            yield ConfigError(
                path=(*path, index, "name"),
                value=pool.name,
                message="another pool has this name" if pool.name in taken else "no flavor can have this name",
                expected="a name of its own of at most 63 of a-z, 0-9 and -, with a letter or digit first and last",
                hint="for example spot",
            )
        taken.append(pool.name)


def overlapping(groups: Mapping[Path, NodeGroup]) -> Iterator[ConfigError]:
    """Yield pools whose labels do not tell their nodes from those of a pool before. groups: by the path of each."""
    before: list[tuple[Path, NodeGroup]] = []
    for where, group in groups.items():
        for other, nodes in before:
            if not any(nodes.node_selector.get(label, value) != value for label, value in group.node_selector.items()):
                yield ConfigError(
                    path=(*where, "nodeSelector"),
                    value=dict(group.node_selector),
                    message=f"a node may have these labels and those of {key((*other, 'nodeSelector'))}, and would "
                    "count for both pools",
                    expected="a label that both pools name, with different values",
                    hint="name a label such as nvidia.com/gpu.product or the provider's own of node pools in both",
                )
        before.append((where, group))
