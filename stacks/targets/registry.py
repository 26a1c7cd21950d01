"""All targets, by name."""

from collections.abc import Mapping
from typing import Any, Final

from stacks.config.secrets import COMMON
from stacks.targets.aks.target import AKS
from stacks.targets.cpouta.target import CPOUTA
from stacks.targets.existing.target import EXISTING
from stacks.targets.openshift.target import OPENSHIFT
from stacks.targets.simulated.target import SIMULATED
from stacks.targets.spec import TargetSpec

TARGETS: Final[Mapping[str, TargetSpec[Any]]] = {
    spec.name: spec for spec in (SIMULATED, AKS, EXISTING, OPENSHIFT, CPOUTA)
}
SECRET_KEYS: Final = tuple(dict.fromkeys([*COMMON, *(name for spec in TARGETS.values() for name in spec.secrets)]))
"""The keys of the secrets of every target."""
