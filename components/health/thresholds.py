"""Required bandwidth of NCCL's all-reduce."""

from dataclasses import dataclass
from enum import StrEnum


class Scope(StrEnum):
    """Nodes of an all-reduce: one node, or all nodes together."""

    NODE = "node"
    FABRIC = "fabric"


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """Bus bandwidth of NCCL's all-reduce, in GB/s, for messages of `size`.

    expected: of a healthy machine, for comparison by people.
    warn, fail: below this bandwidth the state is `warn` or `fail`.
    """

    expected: float
    warn: float
    fail: float
    size: str = "16G"
    source: str
