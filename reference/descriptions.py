"""The descriptions of a model's fields.

Pydantic can read them itself (`use_attribute_docstrings`). It would do so at each start of the program, which takes
longer than reading the settings.
"""

import ast
import inspect
import textwrap
import typing
from collections.abc import Mapping
from functools import cache
from itertools import pairwise

from stacks.settings.model import SettingsModel


def of_model(model: type[SettingsModel]) -> str:
    """Return the purpose of a section in one line. Empty if it has no docstring."""
    return _line(model.__doc__ or "")


def of_fields(model: type[SettingsModel]) -> Mapping[str, str]:
    """Return the purpose of each field in one line, by its name.

    A section without a description gets that of its model. A field without one is left out.
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
    """Return the section in a field's type, also in a list or a union. None if the type has no section."""
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
