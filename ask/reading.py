"""Read YAML or JSON as kubectl does, so that a number here is a number there.

kubectl converts it with sigs.k8s.io/yaml v1.4. Its `goyaml.v2/resolve.go` decides the type of a plain text.
"""

import contextlib
import math
import re
from typing import Any, Final

import yaml

MOST_BYTES: Final = 3 << 19
"""The largest object that an API server accepts (etcd, `--max-request-bytes`: 1.5 MiB)."""
MOST_OF_A_FILE: Final = 2 * MOST_BYTES
"""An object is longer as YAML, because of comments and blanks."""
_DEEPEST: Final = 100
_MOST_MERGED: Final = 100_000
_TAG: Final = "tag:yaml.org,2002:"
_KEPT: Final = tuple(f"{_TAG}{name}" for name in ("bool", "merge", "null"))
_MERGE: Final = f"{_TAG}merge"
_OCTAL: Final = re.compile(r"[-+]?0[0-7]+")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NO_NUMBER: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_LEAST, _MOST = -(1 << 63), (1 << 64) - 1
_EXPONENT_FROM: Final = 1e21
"""Go writes numbers from this one on with an exponent (encoding/json)."""


class UnreadableError(ValueError):
    """A file cannot be sent to an API server. The message states the problem."""


def documents(text: str) -> list[Any]:
    """Return the documents of a file as JSON values, without empty ones. Raises UnreadableError."""
    if len(text) > MOST_OF_A_FILE:
        raise UnreadableError(f"the file has more than {MOST_OF_A_FILE >> 20} MiB, twice what an API server takes")
    reader = _Reader()
    try:
        _check_depth(text)
        return [reader.plain(item) for item in yaml.load_all(text, _Loader) if item is not None]
    except UnreadableError:
        raise
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UnreadableError(f"the file is not valid YAML: {' '.join(str(error).split())}") from error


def _check_depth(text: str) -> None:
    """Check how deep a file is nested before a function recurses into it. Raises UnreadableError."""
    depth = 0
    for event in yaml.parse(text, _Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise UnreadableError(_TOO_DEEP)


_TOO_DEEP: Final = f"the file is nested deeper than {_DEEPEST} levels, or within itself"


class _Loader(yaml.CSafeLoader):
    """Gives plain texts the type that kubectl gives them. Dates are texts."""

    yaml_implicit_resolvers = {  # noqa: RUF012, declared so by PyYAML
        first: [each for each in found if each[0] in _KEPT]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    bool_values = {**yaml.SafeLoader.bool_values, "y": True, "n": False}  # noqa: RUF012, likewise
    _merged = 0

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Fill in the fields that `<<` names. Raises UnreadableError if there may be a million of them."""
        for key, value in node.value:
            if key.tag == _MERGE:
                for each in value.value if isinstance(value, yaml.SequenceNode) else (value,):
                    self._merge(each)
        super().flatten_mapping(node)

    def _merge(self, node: yaml.Node) -> None:
        if isinstance(node, yaml.MappingNode):
            self.flatten_mapping(node)
            self._merged += len(node.value)
            if self._merged > _MOST_MERGED:
                raise UnreadableError(f"the file merges more than {_MOST_MERGED} fields by <<: write them out")

    def written(self, node: yaml.ScalarNode) -> str:
        """Return a text as written. `<<` is a text unless it is a key."""
        return str(self.construct_scalar(node))

    def number(self, node: yaml.ScalarNode) -> int | float | str:
        """Return the number that a text with a leading digit means, or the text."""
        text = self.written(node)
        if _NO_NUMBER.fullmatch(text):
            return float(text.replace(".", ""))
        plain = text.replace("_", "")
        with contextlib.suppress(ValueError):
            whole = int(plain, 8 if _OCTAL.fullmatch(plain) else 0)
            if _LEAST <= whole <= _MOST:
                return whole
        found = float(plain) if _FLOAT.fullmatch(plain) else math.inf
        if math.isinf(found):
            return text
        return int(found) if found.is_integer() and abs(found) < _EXPONENT_FROM else found


_Loader.add_implicit_resolver(f"{_TAG}float", re.compile(r"[-+.0-9][-+.\w]*\Z", re.ASCII), [*"-+.0123456789"])
_Loader.add_implicit_resolver(f"{_TAG}bool", re.compile(r"[yYnN]\Z"), [*"yYnN"])
_Loader.add_constructor(f"{_TAG}float", _Loader.number)
_Loader.add_constructor(_MERGE, _Loader.written)


class _Reader:
    """Converts the YAML of one file to JSON. Aliases can repeat one value a million times."""

    def __init__(self) -> None:
        self._left = MOST_BYTES

    def plain(self, value: Any, depth: int = 0) -> Any:
        """Return a value as JSON. Raises UnreadableError for a value without a JSON form, and for too much data."""
        self._left -= 1 + (len(value) if isinstance(value, str) else 0)
        if self._left < 0:
            raise UnreadableError("the file holds more than the 1.5 MiB that an API server takes")
        if depth > _DEEPEST:
            raise UnreadableError(_TOO_DEEP)
        if isinstance(value, dict):
            return {self._key(key): self.plain(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list):
            return [self.plain(item, depth + 1) for item in value]
        if value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
            return value
        raise UnreadableError(f"the file holds {value!r:.100}, which Kubernetes has no form for")

    def _key(self, key: Any) -> str:
        """Return a key as kubectl writes it."""
        if isinstance(key, str | int) and not isinstance(key, bool):
            return str(key)
        raise UnreadableError(f"the file has the key {key!r:.100}, which YAML takes for no text: write it in quotes")
