"""The words under each field of a model.

Pydantic can read them itself (`use_attribute_docstrings`), but would do so whenever the program starts, which takes it
longer than reading the settings.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import typing
from collections.abc import Mapping
from functools import cache
from itertools import pairwise

from stacks.settings.model import SettingsModel


def of_model(model: type[SettingsModel]) -> str:
    """Return what a section is for, in one line; empty for one that has no docstring of its own."""
    return _line(model.__doc__ or "")


def of_fields(model: type[SettingsModel]) -> Mapping[str, str]:
    """Return what each field is for, by its name, in one line.

    A field that is a section, and has no words of its own, has those of the section; one without any is left out.
    """
    found: dict[str, str] = {}
    for name, info in model.model_fields.items():
        if section := section_of(info.annotation):
            found[name] = of_model(section)
    for ancestor in reversed(model.__mro__):
        if issubclass(ancestor, SettingsModel):
            found |= _written(ancestor)
    return {name: text for name, text in found.items() if name in model.model_fields and text}


def section_of(annotation: object) -> type[SettingsModel] | None:
    """Return the section that a field's type is, or a list of, or may be; None for what is none."""
    if isinstance(annotation, type) and issubclass(annotation, SettingsModel):
        return annotation
    return next((found for part in typing.get_args(annotation) if (found := section_of(part))), None)


@cache
def _written(model: type[SettingsModel]) -> Mapping[str, str]:
    source = ast.parse(textwrap.dedent(inspect.getsource(model)))
    lines = next(node for node in source.body if isinstance(node, ast.ClassDef)).body
    found = {}
    for field, words in pairwise(lines):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(words, ast.Expr):
            found[field.target.id] = _line(ast.literal_eval(words.value))
    return found


def _line(text: str) -> str:
    return " ".join(text.split())
