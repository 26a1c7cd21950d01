"""Changes to the text of a `Pulumi.<stack>.yaml`."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

ConfigPath = tuple[str | int, ...]
"""Keys and indices of the path to a value below `config`."""

_SECURE: Final = "secure"
_TEXT: Final = "tag:yaml.org,2002:str"


class StackFile:
    """A stack's file as a tree of YAML nodes. Raises ValueError if the text is not YAML.

    Unchanged values keep their spelling. The engine and PyYAML read some plain words and numbers differently (`no`,
    `1:30`), so these must not be converted to Python values.
    """

    def __init__(self, text: str) -> None:
        try:
            root = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.YAMLError as error:
            # The whole message quotes the line, which can contain a secret.
            mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
            where = f"line {mark.line + 1}, column {mark.column + 1}" if mark is not None else "this"
            raise ValueError(f"{where} is not valid YAML: {problem or 'it has invalid characters'}") from None
        self._root = root if isinstance(root, yaml.MappingNode) else _node({})

    @property
    def values(self) -> dict[str, Any]:
        """The whole file as Python values."""
        return dict(yaml.safe_load(self.text()) or {})

    @property
    def config(self) -> Mapping[str, Any]:
        """The values under `config`."""
        found = self.values.get("config")
        return found if isinstance(found, Mapping) else {}

    @property
    def secrets(self) -> Mapping[ConfigPath, str]:
        """The ciphertexts under `config`, by path."""
        return {path: node.value[0][1].value for path, node in _secrets(self._config())}

    def text(self) -> str:
        return str(yaml.serialize(self._root, Dumper=yaml.SafeDumper))

    def drop(self, key: str) -> None:
        _drop(self._root, key)

    def put(self, key: str, value: Any) -> None:
        _drop(self._root, key)
        self._root.value.append((_node(key), _node(value)))

    def drop_config(self, key: str) -> None:
        _drop(self._config(), key)

    def put_config(self, key: str, value: Any) -> None:
        config = self._config()
        _drop(config, key)
        config.value.append((_node(key), _node(value)))

    def put_secret(self, path: ConfigPath, ciphertext: str) -> None:
        """Replace the ciphertext of one of `secrets`. Raises KeyError if it does not exist."""
        dict(_secrets(self._config()))[path].value = _node({_SECURE: ciphertext}).value

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


def _secrets(node: yaml.Node, path: ConfigPath = ()) -> Iterator[tuple[ConfigPath, yaml.MappingNode]]:
    """Yield the engine's secrets (Pulumi SDK, `go/common/resource/config/object.go`, isSecureValue)."""
    if isinstance(node, yaml.MappingNode):
        if [(name.value, value.tag) for name, value in node.value] == [(_SECURE, _TEXT)]:
            yield path, node
            return
        for name, value in node.value:
            yield from _secrets(value, (*path, name.value))
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _secrets(item, (*path, index))


def spelled(path: ConfigPath) -> str:
    """Return a path in the engine's syntax: `mlbatch:teams[0].name`, `mlbatch:labels["a.b/c"]`."""
    text = str(path[0])
    for part in path[1:]:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if re.fullmatch(r"[^.\"\[\]]+", part) else f"[{json.dumps(part, ensure_ascii=False)}]"
    return text
