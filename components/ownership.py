"""Fields of the program's objects that other programs write at run time, each with its owner, from ownership.yaml.

The program does not declare them. If an object requires such a field at its creation, the program declares it once and
then ignores it. A refresh therefore does not report them as drift, and an update does not overwrite them.
"""

from dataclasses import dataclass
from typing import Final

from components.tables import Table


@dataclass(frozen=True, kw_only=True)
class RuntimeField:
    """A field that another program owns at run time.

    path: in the object, with `[*]` for each element of a list.
    declared_once: the program sets the first value and ignores later changes.
    """

    kind: str
    path: str
    owner: str
    declared_once: bool = False


class _Ownership(Table):
    fields: tuple[RuntimeField, ...]


RUNTIME_FIELDS: Final = _Ownership.load(__name__).fields


def ignored(kind: str) -> list[str]:
    """Return the paths of a kind that are declared only at creation, for the option `ignore_changes`."""
    return [field.path for field in RUNTIME_FIELDS if field.kind == kind and field.declared_once]
