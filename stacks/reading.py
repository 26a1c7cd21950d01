"""From a stack's configuration to the settings tree: types, keys and single values, every mistake at once.

Each section, and each team, is read by itself, so that a mistake in one hides none in another.
"""

from __future__ import annotations

import json
import re
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from annotated_types import Ge, Le
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from components.kubernetes.node_pool import NodePool
from components.kubernetes.quantity import Quantity
from stacks.problems import MISSING, Path, Problem, key, listed, nearest, unknown_key
from stacks.settings import Settings, Target, gpu_pool
from stacks.settings.azure import AzureSettings
from stacks.settings.cluster import KubernetesSettings, NodesSettings
from stacks.settings.gpu import GpuSettings
from stacks.settings.health import HealthSettings
from stacks.settings.mirror import MirrorSettings
from stacks.settings.monitoring import MonitoringSettings
from stacks.settings.samples import SamplesSettings
from stacks.settings.storage import StorageSettings
from stacks.settings.tenancy import QueueingSettings, TeamSettings
from stacks.settings.volcano import VolcanoSettings
from stacks.settings.workloads import WorkloadsSettings

_QUANTITIES = 'a Kubernetes quantity that is not negative, such as 8, "500m", "2000G" or "128Gi"'
_WANTED = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
}
_KINDS: dict[type, str] = {
    bool: "true or false",
    str: "a text",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "a mapping",
    type(None): "nothing",
}


_OWNERS: dict[str, Target] = {
    "kubernetes": Target.SIMULATED,
    "nodes": Target.SIMULATED,
    **dict.fromkeys(("azure", "gpu", "storage", "monitoring", "volcano", "health", "workloads"), Target.AKS),
}
"""The sections that mean something on one target only."""

_REQUIRED = frozenset({"azure"})
"""The sections that have no default where they mean something."""


@dataclass
class Parts:
    """The sections that could be read; None stands for one that could not.

    team_names: the name of each team as it was written, also of teams that could not be read otherwise.
    secrets: the keys of the secrets that are set.
    """

    target: Target | None = None
    kubernetes: KubernetesSettings | None = None
    nodes: NodesSettings | None = None
    queueing: QueueingSettings | None = None
    teams: list[TeamSettings | None] = field(default_factory=list)
    team_names: list[object] = field(default_factory=list)
    mirror: MirrorSettings | None = None
    samples: SamplesSettings | None = None
    azure: AzureSettings | None = None
    gpu: GpuSettings | None = None
    storage: StorageSettings | None = None
    monitoring: MonitoringSettings | None = None
    volcano: VolcanoSettings | None = None
    health: HealthSettings | None = None
    workloads: WorkloadsSettings | None = None
    secrets: frozenset[str] = frozenset()

    @property
    def pool(self) -> NodePool | None:
        """The GPU nodes, None when the section that describes them could not be read."""
        if self.target is Target.AKS:
            return gpu_pool(self.azure, self.gpu) if self.azure and self.gpu else None
        return self.nodes.pool() if self.nodes else None

    def settings(self) -> Settings:
        """Return the whole tree; every section must have been read."""
        sections = {name: getattr(self, name) for name in Settings.model_fields}
        return Settings.model_construct(**{**sections, "teams": tuple(self.teams)})


def read(raw: Mapping[str, object], secrets: frozenset[str] = frozenset()) -> tuple[Parts, list[Problem]]:
    """Return the sections of a configuration, by key without the project's name, and what is wrong with them.

    secrets: the keys of the secrets that are set, which are not in `raw`.
    """
    problems = [
        unknown_key((name,), raw[name], Settings.model_fields) for name in raw if name not in Settings.model_fields
    ]
    parts = Parts(secrets=secrets)
    target = raw.get("target")
    for name, info in Settings.model_fields.items():
        value = raw.get(name)
        owner = _OWNERS.get(name)
        if owner is not None and target in list(Target) and target != owner:
            # The engine hands sections that are not set over as empty ones.
            problems += [] if not value else [_foreign(name, value, owner)]
            setattr(parts, name, info.get_default(call_default_factory=True))
        elif name == "teams":
            problems += _read_teams(parts, [] if value is None else value)
        elif name in _REQUIRED and value in (None, {}):
            problems += [_missing((name,), info)] if target == owner else []
        elif value is None and not info.is_required():
            setattr(parts, name, info.get_default(call_default_factory=True))
        elif value is None:
            problems.append(_missing((name,), info))
        else:
            section, found = _parse(_plain(info.annotation), (name,), value)
            setattr(parts, name, section)
            problems += found
    return parts, problems


def _read_teams(parts: Parts, value: object) -> list[Problem]:
    if not isinstance(value, list):
        return [_wrong_type(("teams",), value, "a list", "a list of teams, each with name, users and quota")]
    problems: list[Problem] = []
    for index, item in enumerate(value):
        team, found = _parse(TeamSettings, ("teams", index), item)
        parts.teams.append(team)
        parts.team_names.append(item.get("name") if isinstance(item, dict) else None)
        problems += found
    return problems


def _parse(annotation: Any, path: Path, value: object) -> tuple[Any, list[Problem]]:
    """Read a value by pydantic's rules for JSON, in which a list is a tuple and a string may be an enumeration's."""
    try:
        return TypeAdapter(annotation).validate_json(json.dumps(value)), []
    except ValidationError as error:
        return None, [_problem(annotation, path, detail) for detail in error.errors()]


def _problem(root: Any, path: Path, error: ErrorDetails) -> Problem:
    """Put one finding of pydantic's into our words."""
    location, kind, value = error["loc"], error["type"], error["input"]
    where = (*path, *location)
    context = error.get("ctx", {})
    if kind == "missing":
        model = _type_at(root, location[:-1])
        return _missing(where, next(info for info in model.model_fields.values() if info.alias == location[-1]))
    if kind == "extra_forbidden":
        return unknown_key(where, value, _keys(_type_at(root, location[:-1])))
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        return _wrong_type(
            where, value, "a mapping", f"a mapping with the keys {listed(_keys(_type_at(root, location)))}"
        )
    if kind == "refused":
        return Problem(
            path=where,
            value=MISSING if context["secret"] else value,
            wrong=context["wrong"],
            allowed=context["allowed"],
            fix=context["fix"],
        )
    if kind in ("choice", "enum", "literal_error"):
        known = list(context["known"]) if kind == "choice" else _members(_type_at(root, location))
        meant = nearest(value, known)
        what = context["what"] if kind == "choice" else " ".join(_words(where[-1]))
        return Problem(
            path=where,
            value=value,
            wrong=f"this {what} is not known",
            allowed=listed(known),
            fix=f"did you mean {meant}?" if meant else f"take one of those that are known: {listed(known)}",
        )
    if kind == "quantity":
        return Problem(path=where, value=value, wrong=context["reason"], allowed=_QUANTITIES, fix=_quantity_fix(value))
    if kind in ("greater_than_equal", "less_than_equal"):
        low, high = _bounds(root, location)
        return Problem(
            path=where,
            value=value,
            wrong="this number is out of range",
            allowed=f"a whole number from {low} to {high}",
            fix=f"set {key(where)} to a number in that range",
        )
    wanted = _WANTED.get(kind)
    if wanted is None:
        said = error["msg"][:1].lower() + error["msg"][1:]
        return Problem(path=where, value=value, wrong=said, allowed="another value", fix=f"correct {key(where)}")
    return _wrong_type(where, value, wanted, wanted)


def _missing(path: Path, info: FieldInfo) -> Problem:
    annotation = _plain(info.annotation)
    if annotation is Target:
        allowed, example = listed(Target), f"run `pulumi config set {key(path)} {next(iter(Target))}`"
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        allowed, example = f"a mapping with the keys {listed(_keys(annotation))}", f"add {path[-1]}"
    elif path[-1] == "users":
        allowed, example = (
            "a list of user names, which may be empty",
            "add users, such as [alice], or [] for nobody yet",
        )
    elif path[-1] == "name":
        allowed, example = "a text", "add name"
    elif annotation is Quantity:
        allowed, example = _QUANTITIES, f"add {path[-1]}, 0 for none"
    else:
        allowed = _KINDS.get(annotation, "a value")
        example = f"add {path[-1]}"
    return Problem(
        path=path, value=MISSING, wrong="this key is required and is not there", allowed=allowed, fix=example
    )


def _foreign(name: str, value: object, owner: Target) -> Problem:
    return Problem(
        path=(name,),
        value=value,
        wrong=f"this section is for target {owner} only",
        allowed=f"nothing on other targets than {owner}",
        fix=f"remove mlbatch:{name}, or set mlbatch:target to {owner}",
    )


def _wrong_type(path: Path, value: object, wanted: str, allowed: str) -> Problem:
    found = _KINDS.get(type(value), "something else")
    hint = " without quotes" if isinstance(value, str) and wanted in ("a whole number", "true or false") else ""
    hint = " in quotes" if not isinstance(value, str | list | dict) and wanted == "a text" else hint
    return Problem(path=path, value=value, wrong=f"this is {found}", allowed=allowed, fix=f"write {wanted}{hint}")


def _quantity_fix(value: object) -> str:
    text = str(value)
    number = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
    unit = text[len(number) :].strip().lower().removesuffix("b")
    binary = {"ki": "Ki", "mi": "Mi", "gi": "Gi", "ti": "Ti", "k": "k", "g": "G", "t": "T", "mb": "M"}
    if isinstance(value, str) and text[:1].isdigit() and unit in binary and f"{number}{binary[unit]}" != text:
        return f"did you mean {json.dumps(number.strip() + binary[unit])}?"
    if text.startswith("-"):
        return "write 0 for none of it"
    return "write digits, and a suffix of m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi or Ei where one is needed"


def _keys(model: Any) -> Iterator[str]:
    return (info.alias or name for name, info in model.model_fields.items())


def _type_at(root: Any, location: tuple[str | int, ...]) -> Any:
    """Return the type of what stands at a location below a type, without `| None`, annotations and lists."""
    current = _plain(root)
    for part in location:
        fields = getattr(current, "model_fields", {})
        if isinstance(part, str):
            current = _plain(next((info.annotation for info in fields.values() if info.alias == part), str))
    return current


def _members(annotation: Any) -> list[str]:
    """Return what an enumeration or a literal type allows."""
    if typing.get_origin(annotation) is typing.Literal:
        return [str(member) for member in typing.get_args(annotation)]
    return [str(member) for member in annotation]


def _words(name: str | int) -> list[str]:
    """Return the words of a key in camelCase."""
    return re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", str(name).replace("_", " ")) or [str(name)]


def _bounds(root: Any, location: tuple[str | int, ...]) -> tuple[object, object]:
    """Return the smallest and the largest number that a field may have."""
    model = _type_at(root, location[:-1])
    info = next(info for info in model.model_fields.values() if info.alias == location[-1])
    marks = [*info.metadata]
    for argument in typing.get_args(info.annotation):
        marks += getattr(argument, "__metadata__", ())
    flat = [mark for entry in marks for mark in (getattr(entry, "metadata", None) or [entry])]
    low = next((mark.ge for mark in flat if isinstance(mark, Ge)), "any")
    high = next((mark.le for mark in flat if isinstance(mark, Le)), "any")
    return low, high


def _plain(annotation: Any) -> Any:
    if typing.get_origin(annotation) is typing.Annotated:
        return _plain(typing.get_args(annotation)[0])
    if typing.get_origin(annotation) in (types.UnionType, typing.Union, tuple):
        return _plain(next(item for item in typing.get_args(annotation) if item not in (type(None), Ellipsis)))
    return annotation
