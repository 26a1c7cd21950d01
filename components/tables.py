"""Tables of the program, such as versions and machine types, as YAML files with types."""

import json
from importlib import resources
from typing import Self

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError


class Table(BaseModel):
    """The keys of a YAML file, which a subclass declares. Values may be dataclasses."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @classmethod
    def load(cls, module: str) -> Self:
        """Return the table in the YAML file that lies beside a module and has its name.

        Raises ValueError, which names the file and each key, for unknown or missing keys and values of another type.
        """
        package, _, name = module.rpartition(".")
        file = resources.files(package).joinpath(f"{name}.yaml")
        try:
            return cls.parse(file.read_text(encoding="utf-8"))
        except ValidationError as error:
            raise ValueError(f"{file}: {error}") from error

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the table in a text; raises ValidationError.

        Types are those of JSON: a list is a tuple or a set, a text in quotes is a date or a decimal number.
        """
        content = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506, a safe loader
        return cls.model_validate_json(json.dumps(content))
