"""Changes to the text of a `Pulumi.<stack>.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml


class StackFile:
    """A stack's file as a tree of YAML nodes.

    What is not changed keeps its spelling: the engine reads some plain words and numbers as something else than PyYAML
    does (`no`, `1:30`), so that they must not pass through Python's values.
    """

    def __init__(self, text: str) -> None:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        self._root = root if isinstance(root, yaml.MappingNode) else _node({})

    @property
    def values(self) -> dict[str, Any]:
        """The whole, as Python's values."""
        return dict(yaml.safe_load(self.text()) or {})

    @property
    def config(self) -> Mapping[str, Any]:
        """What stands under `config`."""
        return dict(self.values.get("config") or {})

    def text(self) -> str:
        """Return the file's text."""
        return str(yaml.serialize(self._root, Dumper=yaml.SafeDumper))

    def drop(self, key: str) -> None:
        """Take out a key of the file."""
        _drop(self._root, key)

    def put(self, key: str, value: Any) -> None:
        """Set a key of the file."""
        _drop(self._root, key)
        self._root.value.append((_node(key), _node(value)))

    def drop_config(self, key: str) -> None:
        """Take out a key of `config`."""
        _drop(self._config(), key)

    def put_config(self, key: str, value: Any) -> None:
        """Set a key of `config`."""
        config = self._config()
        _drop(config, key)
        config.value.append((_node(key), _node(value)))

    def _config(self) -> yaml.MappingNode:
        for key, value in self._root.value:
            if key.value == "config" and isinstance(value, yaml.MappingNode):
                return value
        self.put("config", {})
        return self._config()


def _node(value: Any) -> Any:
    return yaml.compose(yaml.safe_dump(value), Loader=yaml.SafeLoader)


def _drop(mapping: yaml.MappingNode, key: str) -> None:
    mapping.value = [(name, value) for name, value in mapping.value if name.value != key]
