"""The conditions of the annotation `pulumi.com/waitFor`.

One expression, or a JSON list of them: `jsonpath={.status.phase}=Running`, `jsonpath={.spec.caBundle}` (any value), or
`condition=Ready`, `condition=Ready=False`. Syntax and meaning: pulumi-kubernetes, `provider/pkg/jsonpath` and
`provider/pkg/await/condition`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import jsonpath_rfc9535 as jsonpath

from emulator.plugin.errors import ProviderError
from emulator.provider.objects import WAIT_FOR, Manifest, annotation, metadata

Condition = Callable[[Manifest], str]
"""Returns what is missing, or an empty string."""

_BRACES = re.compile(r"\{\s*(.*?)\s*\}\Z")


def conditions(manifest: Manifest) -> list[Condition]:
    """Return the conditions that the object's annotation asks for. Raises ProviderError when it is malformed."""
    text = annotation(manifest, WAIT_FOR)
    if not text:
        return []
    expressions = [text]
    if text.lstrip().startswith("["):
        try:
            parsed = json.loads(text)
        except json.JSONDecodeError as error:
            raise ProviderError(f"the annotation {WAIT_FOR} is no JSON list: {error}") from None
        if not parsed or not all(isinstance(each, str) for each in parsed):
            raise ProviderError(f"the annotation {WAIT_FOR} needs at least one expression, each a string")
        expressions = parsed
    return [_condition(expression) for expression in expressions]


def _condition(expression: str) -> Condition:
    if expression.startswith("jsonpath="):
        return _by_path(expression.removeprefix("jsonpath="))
    if expression.startswith("condition="):
        name, _, status = expression.removeprefix("condition=").partition("=")
        return lambda live: _missing_condition(live, name, status or "True")
    raise ProviderError(
        f"the annotation {WAIT_FOR} reads {expression!r}; jsonpath={{.path}}, jsonpath={{.path}}=value and "
        "condition=Type "
        "are allowed"
    )


def _by_path(text: str) -> Condition:
    # "==" belongs to a filter inside the braces; a single "=" separates the value.
    path, separator, value = text.rpartition("}")
    path += separator
    match = _BRACES.match(path)
    if match is None or (value and not value.startswith("=")) or value == "=":
        raise ProviderError(
            f"the annotation {WAIT_FOR} reads jsonpath={text!r}; jsonpath={{.path}} or jsonpath={{.path}}=value "
            "is allowed"
        )
    wanted = value[1:]
    query = match[1] if match[1].startswith("$") else f"${match[1]}"
    try:
        compiled = jsonpath.compile(query)
    except jsonpath.JSONPathError as error:
        raise ProviderError(f"the annotation {WAIT_FOR} has the path {path}, which does not parse: {error}") from None
    return lambda live: _missing_value(live, path, compiled, wanted)


def _missing_value(live: Manifest, path: str, compiled: jsonpath.JSONPathQuery, wanted: str) -> str:
    if _outdated(live, (live.get("status") or {}).get("observedGeneration")):
        return f"the controller has not seen the last change yet (waiting for {path})"
    nodes = compiled.find(live)
    if not nodes:
        return f"{path} selects nothing"
    found = nodes[0].value
    if not wanted:
        return ""
    if isinstance(found, dict | list):
        raise ProviderError(
            f"the annotation {WAIT_FOR} compares {path} with {wanted!r}, but there is no plain value there"
        )
    return "" if _as_text(found) == wanted else f"{path} is {_as_text(found)!r}, not {wanted!r}"


def _as_text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool) or value is None else str(value)


def _missing_condition(live: Manifest, name: str, wanted: str) -> str:
    status = live.get("status") or {}
    for condition in status.get("conditions") or []:
        if str(condition.get("type")).lower() != name.lower():
            continue
        if _outdated(live, condition.get("observedGeneration", status.get("observedGeneration"))):
            return f"condition {name} is of an older generation"
        found = str(condition.get("status"))
        if found.lower() == wanted.lower():
            return ""
        reason = condition.get("message") or condition.get("reason") or ""
        return f"condition {name} is {found}, not {wanted}" + (f": {reason}" if reason else "")
    return f"there is no condition {name} yet"


def _outdated(live: Manifest, observed: Any) -> bool:
    generation = metadata(live).get("generation")
    return isinstance(generation, int) and isinstance(observed, int) and observed < generation
