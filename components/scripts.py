"""Shell scripts of jobs and long manifests, as templates (`*.jinja`) beside the code."""

from importlib import resources
from typing import Final

from jinja2 import Environment, StrictUndefined

_ENVIRONMENT: Final = Environment(
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    autoescape=False,  # noqa: S701 - scripts are not HTML
)


def script(module: str, name: str, /, **values: object) -> str:
    """Return the text of a template in the folder of a module. Raises UndefinedError if a value is missing."""
    package = module.rpartition(".")[0]
    text = resources.files(package).joinpath(f"{name}.jinja").read_text(encoding="utf-8")
    return _ENVIRONMENT.from_string(text).render(values)
