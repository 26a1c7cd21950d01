"""Parses a stack's configuration into its sections: types, keys and single values. Reports all errors together.

Each section and each team is parsed separately, so that an error in one does not hide errors in another.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import ErrorDetails

from stacks.config.engine_yaml import date_hint
from stacks.config.errors import MISSING, NAMESPACE, ConfigError, Path, form, instead, key, listed, nearest, unknown_key
from stacks.config.secrets import Concealed
from stacks.config.secrets import of_target as secrets_of
from stacks.derived.partial import PartialSettings
from stacks.settings import PlatformSettings
from stacks.settings.tenancy import TeamSettings
from stacks.targets.registry import SECRET_KEYS, TARGETS
from stacks.targets.spec import TargetSpec

_QUANTITIES = 'a Kubernetes quantity that is not negative, such as 8, "500m", "2000G" or "128Gi"'
_SWITCHES = ("true", "false", "yes", "no", "on", "off", "none")
"""What people write for a switch, or for one of some words."""
_AMOUNT = re.compile(r"\s*[-+]?[0-9.][0-9.,_e+-]*\s*[A-Za-z%]{0,5}\s*|")
"""What people write for a number or an amount."""
_KINDS: dict[type, str] = {
    bool: "true or false",
    str: "text",
    int: "a number",
    float: "a number with decimals",
    list: "a list",
    dict: "a mapping",
    type(None): "nothing",
}
_TYPES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
}
"""Types of JSON Schema in words."""


def read(raw: Mapping[str, object], secrets: frozenset[str] = frozenset()) -> tuple[PartialSettings, list[ConfigError]]:
    """Return the sections of a configuration, by key without the project's name, and their errors.

    secrets: the keys of the secrets that are set, which are not in `raw`. Without a known target, the sections of all
    targets are parsed.
    """
    target, errors = _target(raw.get("target"))
    partial = PartialSettings(raw=raw, target=target, secrets=secrets)
    owners = [target] if target is not None else list(TARGETS.values())
    for name, value in raw.items():
        if name != "target" and not any(name in owner.sections for owner in owners):
            errors += _not_here(name, value, target)
    if target is not None:
        errors += _foreign_secrets(secrets, target)
    for name, info in _sections(owners).items():
        value = raw.get(name)
        if isinstance(value, str) and not value.strip():
            value = None  # the engine passes a key without a value as an empty text
        if isinstance(value, Concealed):
            errors.append(_encrypted((name,), owners))
            if name == "teams":
                _unread_teams(partial)
        elif name == "teams":
            errors += _read_teams(partial, [] if value is None else value)
        elif info.is_required() and value in (None, {}):
            # The engine passes unset sections as empty ones.
            errors += [_missing((name,), _allowed(info.annotation, ()))] if target is not None else []
        elif value is None:
            partial.sections[name] = info.get_default(call_default_factory=True)
        else:
            section, found = _parse(info.annotation, (name,), value)
            errors += found
            if section is not None:
                partial.sections[name] = section
    return partial, errors


def whole(partial: PartialSettings) -> PlatformSettings | None:
    """Return the complete tree, or None if a section could not be parsed."""
    target = partial.target
    if target is None or None in partial.teams or not partial.sections.keys() | {"teams"} >= set(target.sections):
        return None
    given = {"target": target.name, **partial.sections, "teams": tuple(partial.teams)}
    settings: PlatformSettings = target.settings.model_validate(given)
    return settings


def _encrypted(path: Path, owners: list[TargetSpec[Any]]) -> ConfigError:
    names = dict.fromkeys(name for owner in owners for name in secrets_of(owner))
    return ConfigError(
        path,
        "a value in this section is encrypted, which makes the whole section a secret",
        "write the value under `secure` in plain text, or move it to its own key",
        expected=f"plain values in sections; secrets have separate keys: {listed(map(key, zip(names)))}",
    )


def _target(value: object) -> tuple[TargetSpec[Any] | None, list[ConfigError]]:
    path, known = ("target",), tuple(TARGETS)
    if value is None:
        hint = f"run `pulumi config set {key(path)} {known[0]}`"
        return None, [_required(path, listed(known), hint)]
    if isinstance(value, Concealed):
        hint = f"run `pulumi config set {key(path)} <target>`, without --secret"
        return None, [ConfigError(path, "this value is encrypted", hint, expected=listed(known))]
    if isinstance(value, str) and value in known:
        return TARGETS[value], []
    return None, [_not_known(path, value, "target", known)]


def _sections(owners: list[TargetSpec[Any]]) -> Mapping[str, FieldInfo]:
    """Return the sections of targets by key. If several targets share a key, the first wins."""
    found: dict[str, FieldInfo] = {}
    for owner in owners:
        for name in owner.sections:
            found.setdefault(name, owner.settings.model_fields[name])
    return found


def _not_here(name: str, value: object, target: TargetSpec[Any] | None) -> list[ConfigError]:
    """Return the error of a key that the target does not have: it belongs to another target, or is unknown."""
    if ":" in name:
        own = name.partition(":")[2]
        wrong = f"the configuration has {name}, which is ignored: this project is {NAMESPACE}"
        return [ConfigError((own,), wrong, f"rename {name} to {NAMESPACE}:{own}")]
    owners = [owner.name for owner in TARGETS.values() if name in owner.sections]
    if target is None or not owners:
        every = [target] if target is not None else TARGETS.values()
        known = ["target", *(each for owner in every for each in (*owner.sections, *secrets_of(owner)))]
        return [unknown_key((name,), dict.fromkeys(known))]
    if not value:
        return []  # the engine passes unset sections as empty ones
    only = f"target {owners[0]}" if len(owners) == 1 else f"targets {listed(owners)}"
    return [
        ConfigError(
            (name,),
            f"this section is for {only} only",
            f"remove mlbatch:{name}, or set mlbatch:target to {listed(owners, ' or ')}",
            value=form(value),
        )
    ]


def _foreign_secrets(given: frozenset[str], target: TargetSpec[Any]) -> Iterator[ConfigError]:
    for name in sorted(given.difference(secrets_of(target))):
        yield ConfigError(
            (name,),
            f"target {target.name} does not use this secret",
            f"run `pulumi config rm {key((name,))}`",
            expected=listed(secrets_of(target)),
        )


def _unread_teams(partial: PartialSettings) -> None:
    """Skip the checks that depend on the teams."""
    partial.teams.append(None)
    partial.team_names.append(None)


def _read_teams(partial: PartialSettings, value: object) -> list[ConfigError]:
    if not isinstance(value, list):
        _unread_teams(partial)
        return [_wrong_type(("teams",), value, "a list", "a list of teams, each with name, members and quota")]
    errors: list[ConfigError] = []
    for index, item in enumerate(value):
        team, found = _parse(TeamSettings, ("teams", index), item)
        name = item.get("name") if isinstance(item, dict) else None
        # Two teams with one name are ambiguous, so checks ignore the second.
        partial.teams.append(None if name in partial.team_names else team)
        partial.team_names.append(name)
        errors += found
    return errors


def _parse(annotation: Any, path: Path, value: object) -> tuple[Any, list[ConfigError]]:
    """Parse a value by pydantic's rules for JSON: a list becomes a tuple, a string may become an enum value."""
    try:
        return TypeAdapter(annotation).validate_json(json.dumps(value, default=str)), []
    except ValidationError as error:
        details = error.errors()
        return None, [
            _error(annotation, path, detail) for detail in details if not _misspelt(annotation, detail, details)
        ]


def _misspelt(root: Any, error: ErrorDetails, errors: list[ErrorDetails]) -> bool:
    """Whether a key is missing because it is misspelled, which another error reports."""
    if error["type"] != "missing":
        return False
    *place, name = error["loc"]
    known = list(_allowed(root, tuple(place))["properties"])
    strange = [other["loc"] for other in errors if other["type"] == "extra_forbidden"]
    return any(list(found[:-1]) == place and nearest(found[-1], known) == name for found in strange)


def _error(root: Any, path: Path, error: ErrorDetails) -> ConfigError:
    """Return one of pydantic's errors as a ConfigError."""
    found, location = _told(root, path, error), error["loc"]
    above = [_allowed(root, location[:end]) for end in range(len(location))]
    if error["input"] is None and error["type"] not in ("missing", "extra_forbidden"):
        optional = above[-1].get("properties", {}).keys() - above[-1].get("required", ()) if above else ()
        hint = "write a value" + (
            ", or remove the key; it has a default" if location and location[-1] in optional else ""
        )
        return replace(found, value=None, message="this key has no value", hint=hint)
    found = replace(found, hint=date_hint(error["input"]) or found.hint)
    # Any text in a mapping with free keys may be a password.
    return replace(found, value=MISSING) if any(map(_has_free_keys, above)) else found


def _told(root: Any, path: Path, error: ErrorDetails) -> ConfigError:
    """Return the ConfigError for one of pydantic's errors about an existing value."""
    location, kind, value = error["loc"], error["type"], error["input"]
    where = (*path, *location)
    context = error.get("ctx", {})
    allowed = _allowed(root, location)
    if kind == "missing":
        return _missing(where, allowed)
    if kind == "extra_forbidden":
        return unknown_key(where, _allowed(root, location[:-1])["properties"], SECRET_KEYS)
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        return _wrong_type(where, value, "a mapping", _in_words(allowed))
    if kind == "rejected":
        told = [item if isinstance(item, str) else form(item) for item in value] if isinstance(value, list) else value
        return ConfigError(
            where,
            context["message"],
            context["hint"],
            expected=context["expected"],
            value=MISSING if context["secret"] else told,
        )
    if kind in ("choice", "enum", "literal_error"):
        return _not_known(where, value, context.get("what") or " ".join(_words(where[-1])).lower(), allowed["enum"])
    if kind == "quantity":
        hint = _quantity_hint(value, context.get("hint"))
        return ConfigError(where, context["reason"], hint, expected=_QUANTITIES, value=_amount(value))
    if kind in ("greater_than_equal", "less_than_equal"):
        return ConfigError(
            where,
            "this number is out of range",
            f"set {key(where)} to a number in that range",
            expected=_in_words(allowed),
            value=value,
        )
    if kind in ("string_too_short", "string_too_long"):
        return ConfigError(
            where,
            f"this text has {len(str(value))} characters",
            f"set {key(where)} to a text of that length, or remove the key; it has a default",
            expected=f"{allowed['minLength']} to {allowed['maxLength']} characters",
            value=value,
        )
    wanted = _TYPES.get(allowed.get("type", ""), "another value")
    return _wrong_type(where, value, wanted, wanted)


def _not_known(path: Path, value: object, what: str, known: Sequence[str]) -> ConfigError:
    if (text := next((text for text in known if _is_number(text, value)), None)) is not None:
        return ConfigError(
            path,
            "this is a number, and YAML drops its trailing zeros",
            f'write "{text}" in quotes',
            expected=listed(known),
            value=value,
        )
    # A user writes an empty text, or a word that YAML reads as false, to choose none.
    is_nothing = value is False or (isinstance(value, str) and not value.strip())
    return ConfigError(
        path,
        f"unknown {what}",
        instead("none" if is_nothing else value, known, f"use one of: {listed(known)}"),
        expected=listed(known),
        value=_if_near(value, [*known, *_SWITCHES]),
    )


def _is_number(text: str, value: object) -> bool:
    """Return whether a value is the number that YAML makes of a text without quotes."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return float(text) == value
    except ValueError:
        return False


def _missing(path: Path, allowed: Mapping[str, Any]) -> ConfigError:
    expected = _in_words(allowed)
    if "minimum" in allowed:
        remedy = "an amount, or to 0 for none" if expected == _QUANTITIES else "a number in that range"
    else:
        remedy = "such a mapping" if "properties" in allowed else "a text" if expected == "text" else expected
    return _required(path, expected, f"set {key(path)} to {remedy}")


def _required(path: Path, expected: str, hint: str) -> ConfigError:
    return ConfigError(path, "this required key is missing", hint, expected=expected)


def _wrong_type(path: Path, value: object, wanted: str, allowed: str) -> ConfigError:
    found = _KINDS.get(type(value), "something else")
    hint = " without quotes" if isinstance(value, str) and wanted in ("a whole number", "true or false") else ""
    hint = " in quotes" if not isinstance(value, str | list | dict) and wanted == "text" else hint
    return ConfigError(
        path,
        f"expected {wanted}, found {found}",
        f"write {wanted}{hint}",
        expected=allowed,
        value=_out_of_place(value, wanted),
    )


def _out_of_place(value: object, wanted: str) -> object:
    """Return a value of the wrong type, as far as it cannot be a password."""
    if wanted == "text":
        return form(value) if isinstance(value, list | dict) else value
    return _amount(value) if wanted.endswith("number") else _if_near(value, _SWITCHES)


def _amount(value: object) -> object:
    """Return what was written for a number. A text is returned only if it looks like a number."""
    is_strange = isinstance(value, str) and not _AMOUNT.fullmatch(value)
    return MISSING if is_strange else form(value) if isinstance(value, list | dict) else value


def _if_near(value: object, known: Iterable[str]) -> object:
    """Return what was written for a known word. A text or number that is similar to none may be a password."""
    if isinstance(value, list | dict):
        return form(value)
    return value if isinstance(value, bool) or nearest(value, known) else MISSING


def _quantity_hint(value: object, usual: str | None) -> str:
    text = str(value)
    number = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
    unit = text[len(number) :].strip().lower().removesuffix("b")
    binary = {"ki": "Ki", "mi": "Mi", "gi": "Gi", "ti": "Ti", "k": "k", "g": "G", "t": "T", "mb": "M"}
    if isinstance(value, str) and text[:1].isdigit() and unit in binary and f"{number}{binary[unit]}" != text:
        return f"did you mean {json.dumps(number.strip() + binary[unit])}?"
    if text.startswith("-"):
        return "write 0 or a positive quantity"
    return usual or "write digits, with one of the suffixes m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi or Ei if needed"


def _words(name: str | int) -> list[str]:
    """Return the words of a key in camelCase."""
    return re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", str(name).replace("_", " ")) or [str(name)]


class _Generator(GenerateJsonSchema):
    ignored_warning_kinds: set[JsonSchemaWarningKind] = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012


@cache
def _schema(root: Any) -> Mapping[str, Any]:
    return TypeAdapter(root).json_schema(schema_generator=_Generator)


def _allowed(root: Any, location: tuple[str | int, ...]) -> Mapping[str, Any]:
    """Return the JSON Schema of the values at a location below a type, without null."""
    whole = _schema(root)
    current = _resolved(whole, whole)
    for part in location:
        if isinstance(part, int):
            found = current["items"]
        else:
            found = current.get("properties", {}).get(part) or current.get("additionalProperties") or {}
        current = _resolved(whole, found)
    return current


def _resolved(whole: Mapping[str, Any], found: Mapping[str, Any]) -> Mapping[str, Any]:
    # Null comes last.
    first: Mapping[str, Any] = found.get("anyOf", [found])[0]
    return whole["$defs"][first["$ref"].rpartition("/")[2]] if "$ref" in first else first


def _has_free_keys(allowed: Mapping[str, Any]) -> bool:
    return bool(allowed.get("additionalProperties"))


def _in_words(allowed: Mapping[str, Any]) -> str:
    """Return the values that a JSON Schema allows, in words."""
    if isinstance(allowed.get("type"), list):
        return _QUANTITIES
    if "minimum" in allowed:
        return f"{_TYPES[allowed['type']]} from {allowed['minimum']} to {allowed['maximum']}"
    if "properties" in allowed:
        return f"a mapping with the keys {listed(allowed['properties'])}"
    if _has_free_keys(allowed):
        return "a mapping of names to texts"
    return _TYPES.get(allowed.get("type", ""), "a value")
