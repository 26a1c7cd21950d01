"""The targets by name. A target is a folder beside this module, whose module `target` has its TargetSpec as TARGET."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final

from stacks.targets.spec import TargetSpec

NAMES: Final = ("simulated", "aks", "existing", "openshift", "cpouta")


def find(name: str) -> TargetSpec[Any]:
    """Return a target; loads its module, not its SDKs. Raises KeyError for a name that none has."""
    if name not in NAMES:
        raise KeyError(name)
    target: TargetSpec[Any] = import_module(f"stacks.targets.{name}.target").TARGET
    return target


def every() -> Iterator[TargetSpec[Any]]:
    """Yield all targets."""
    return (find(name) for name in NAMES)
