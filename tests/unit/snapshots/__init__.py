"""The identity of each resource of a stack and the fields that the program declares, as text for a review.

`make snapshots` writes the files. If a type, name or parent changes here, Pulumi recreates the resource in every
existing stack, unless it has an alias. A replacement option decides whether data survives.

What an earlier stack of `STACKS` has is not shown again:

- `<stack>.txt` has one line for each resource. If an earlier stack has the same component with the same children, the
  line names that stack, and the children have no lines.
- `<stack>.yaml` has the fields. An object that an earlier stack also declares is left out. An object that is similar to
  another one of its kind, such as that of another team, is shown by its differences from the nearest one. Each
  difference follows the path of its field.
- A program in a ConfigMap is shown as the path of its file.
"""

from __future__ import annotations

import difflib
import json
import re
from base64 import b64decode
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import yaml

from components.kubernetes.admission import SHALLOW
from tests.unit.harness import Record, Registered

FOLDER: Final = Path(__file__).parent
ROOT: Final = FOLDER.parents[2]
WHOLE: Final = (
    "existing-everything", "aks-everything", "openshift-everything", "openshift-upstream",
    "openshift-certified", "cpouta-everything", "dev", "openshift-demos", "openshift-tutorial",
    "openshift-ai-3",
)  # fmt: skip
STACKS: Final = (*WHOLE, "existing", "openshift", "aks", "cpouta")
FILES: Final = (*(f"{stack}.yaml" for stack in WHOLE), *(f"{stack}.txt" for stack in STACKS))
_ONE_LINE: Final = 100
"""A mapping or list of at most so many characters is on one line."""
_CLOUD_CONFIG: Final = "#cloud-config\n"


@dataclass(frozen=True)
class Identity:
    """A resource as one line, and its children."""

    line: str
    children: tuple[Identity, ...]

    def all(self) -> Iterator[Identity]:
        yield self
        for child in self.children:
            yield from child.all()


def identities(record: Record) -> Sequence[Identity]:
    """Return each resource below its parent, with its outputs and what decides how it is replaced and deleted.

    What stands at the top is shown with all others there that the engine makes before the last of its parts. The stack,
    which is every other resource's parent in the end, is left out: the engine makes it.
    """
    resources = [item for item in record.resources if item.type != "pulumi:pulumi:Stack"]
    children: dict[str, list[Registered]] = {}
    for item in resources:
        children.setdefault(item.parent, []).append(item)
    known = {item.urn for item in resources}
    roots = [item for parent, items in children.items() if parent not in known for item in items]
    waits = _waits(record, roots, children)

    def identity(item: Registered) -> Identity:
        # The line of a provider would hold the version of its plugin in the checkout.
        line = f"{item.type} {item.name}{_options(item, record.outputs.get(item.urn, ()), waits)}"
        return Identity(line, tuple(identity(child) for child in sorted(children.get(item.urn, []), key=_order)))

    return [identity(item) for item in sorted(roots, key=_order)]


def _order(item: Registered) -> tuple[str, str]:
    return item.type, item.name


def _waits(
    record: Record, roots: Sequence[Registered], children: Mapping[str, Sequence[Registered]]
) -> Mapping[str, Sequence[str]]:
    """Return the names of the roots that come before each root, by its URN."""
    root_of: dict[str, Registered] = {}

    def mark(item: Registered, root: Registered) -> None:
        root_of[item.urn] = root
        for child in children.get(item.urn, []):
            mark(child, root)

    for root in roots:
        mark(root, root)
    before: dict[str, set[str]] = {root.urn: set() for root in roots}
    for item in (item for item in record.resources if item.urn in root_of):
        own = root_of[item.urn]
        found = {root_of[urn].urn: root_of[urn].name for urn in record.closure(item) if urn in root_of}
        before[own.urn] |= {name for urn, name in found.items() if urn != own.urn}
    return {urn: sorted(names) for urn, names in before.items()}


def _options(item: Registered, outputs: Sequence[str], waits: Mapping[str, Sequence[str]]) -> str:
    options: Mapping[str, object] = {
        "protected": item.protect,
        "kept when deleted": item.retain_on_delete,
        "deleted before replaced": item.delete_before_replace,
        "replaced on": item.replace_on_changes,
        "ignores": item.ignore_changes,
        "replaced with": tuple(_name(urn) for urn in item.replace_with),
        "deleted with": _name(item.deleted_with),
        # The SDK of Azure adds each type that an older version of itself had.
        "was of type": tuple(old for old in item.former_types if not old.startswith("azure-native:")),
        "was named": item.former_names,
        "after": tuple(waits.get(item.urn, ())),
        "has": tuple(sorted(outputs)),
    }
    said = [name if value is True else f"{name} {_listed(value)}" for name, value in options.items() if value]
    return f"  [{'; '.join(said)}]" if said else ""


def _listed(value: object) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def _name(urn: str) -> str:
    return urn.rpartition("::")[2]


@dataclass(frozen=True, order=True)
class Declared:
    """The fields of a resource as YAML. kind: an object's API and kind, or the type of another resource."""

    kind: str
    name: str
    lines: tuple[str, ...]


def declared(record: Record) -> Sequence[Declared]:
    """Return what the program itself declares: each resource's fields, but for versions, and files as their texts.

    Of upstream's manifests the controllers alone, whose arguments and configuration are the program's.
    """
    upstreams = {item.urn for item in record.resources if item.type == "mlbatch:kubernetes:Manifests"}
    own = [item for item in record.resources if item.is_custom and not item.type.startswith("pulumi:")]
    shown = [item for item in own if item.parent not in upstreams or item.kind in ("Deployment", "ConfigMap")]
    return sorted(map(_declared, shown))


def _declared(item: Registered) -> Declared:
    kind, name, fields = item.type, item.name, _fields(item)
    if item.type.startswith("kubernetes:") and "metadata" in fields:
        kind = f"{fields.pop('apiVersion')} {fields.pop('kind')}"
        metadata = fields["metadata"]
        name = "/".join(metadata.pop(key) for key in ("namespace", "name") if key in metadata)
        if not metadata:
            del fields["metadata"]
    text = yaml.dump(fields, Dumper=_Dumper, width=120, allow_unicode=True) if fields else ""
    return Declared(kind, name, tuple(text.splitlines()))


def _fields(item: Registered) -> Any:
    if item.kind == "ConfigMap" and "data" in item.inputs:
        files = {name: _file(text) for name, text in item.inputs["data"].items()}
        return _plain({**item.inputs, "data": files})
    secret = {name: _secret(item.inputs[name]) for name in item.secrets}
    # How the SDK writes down the code of a dynamic resource is another with each version of Python.
    return _plain({name: value for name, value in {**item.inputs, **secret}.items() if name != "__provider"})


def _secret(value: Any) -> object:
    """Return the made-up values of a Secret by key, the input of a VM's first boot without its keys, and for other
    secrets only that they exist."""
    if isinstance(value, str) and value.startswith(_CLOUD_CONFIG):
        told = yaml.safe_load(value)
        files = [{**file, "content": _file(file["content"])} for file in told["write_files"]]
        return {**told, "ssh_keys": dict.fromkeys(told["ssh_keys"], "<secret>"), "write_files": files}
    if not isinstance(value, Mapping):
        return "<secret>"
    return {name: f"<secret> {b64decode(inner).decode()}" for name, inner in value.items()}


def _plain(value: Any) -> Any:
    """Return a value as YAML writes it: the mocks' whole numbers as such, images and charts without their versions, and
    a long expression of every policy as its meaning."""
    if isinstance(value, Mapping):
        left_out = ("version", "mlbatch/config-sha256")
        return {key: _SHORT.get(key, _plain)(inner) for key, inner in value.items() if key not in left_out}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, str):
        return value.replace(SHALLOW, "<at most 24 levels>")
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _image(image: Any) -> Any:
    name = image.partition("@")[0] if isinstance(image, str) else ""
    return name.rpartition(":")[0] if ":" in name.rpartition("/")[2] else _plain(image)


def _chart(chart: Any) -> Any:
    """Return a chart's name: the program is given the file that it is, wherever the checkout and its mirror are."""
    return re.sub(r"-v?[0-9][^/]*\.tgz$", "", Path(chart).name) if isinstance(chart, str) else _plain(chart)


_SHORT: Mapping[str, Callable[[Any], Any]] = MappingProxyType({"image": _image, "chart": _chart})


def _file(text: str) -> object:
    """Return a file's text. For a program, return its file in the checkout. For JSON, return its content."""
    sources = [
        file
        for kind in ("py", "sh")
        for file in (ROOT / "components").rglob(f"*.{kind}")
        if file.stat().st_size == len(text.encode())
    ]
    for source in sources:
        if source.read_text() == text:
            return f"<{source.relative_to(ROOT)}>"
    try:
        return {"json": json.loads(text)}
    except ValueError:
        return text


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as such, and short mappings and lists on one line."""

    def ignore_aliases(self, data: object) -> bool:
        return True

    def represent_data(self, data: object) -> yaml.Node:
        node = super().represent_data(data)
        if isinstance(node, yaml.CollectionNode):
            text = str(data)
            node.flow_style = len(text) <= _ONE_LINE and "\\n" not in text
        return node


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


@cache
def snapshots(registered: Callable[[str], Record]) -> Mapping[str, str]:
    """Return the text of each of `FILES`."""
    lines: dict[str, Sequence[str]] = {}
    identified: dict[Identity, str] = {}
    known: set[Declared] = set()
    models: dict[str, list[tuple[str, Declared]]] = defaultdict(list)
    for stack in STACKS:
        record = registered(stack)
        roots = identities(record)
        lines[f"{stack}.txt"] = list(_indented(roots, identified))
        identified = {part: stack for root in roots for part in root.all()} | identified
        if stack in WHOLE:
            new = [item for item in declared(record) if item not in known]
            lines[f"{stack}.yaml"] = [line for item in new for line in _shown(item, stack, models[item.kind])]
            known.update(new)
    return {name: "\n".join([*text, ""]) for name, text in lines.items()}


def _indented(items: Sequence[Identity], known: Mapping[Identity, str], indent: str = "") -> Iterator[str]:
    for item in items:
        if item.children and item in known:
            yield f"{indent}{item.line}  (children as in {known[item]})"
        else:
            yield f"{indent}{item.line}"
            yield from _indented(item.children, known, f"{indent}  ")


def _shown(item: Declared, stack: str, models: list[tuple[str, Declared]]) -> Sequence[str]:
    """Return an object's fields, or its differences from the nearest model if these are at most half as long.

    An object whose fields are shown becomes a model.
    """
    head = f"--- # {item.kind} {item.name}"
    if models:
        before, model = min(models, key=lambda known: len({*known[1].lines} ^ {*item.lines}))
        changes = list(_changes(model.lines, item.lines))
        if 2 * len(changes) <= len(item.lines):
            return [f"{head}, as {model.name} in {before}{' but for' if changes else ''}", *changes]
    models.append((stack, item))
    return [head, *item.lines]


def _changes(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """Yield the lines that differ, each group below the path of the field that contains it."""
    for what, start, end, new_start, new_end in difflib.SequenceMatcher(None, before, after).get_opcodes():
        if what != "equal":
            old, new = before[start:end], after[new_start:new_end]
            yield f"@@ {_path(before[:start], (*old, *new)[0])}".rstrip()
            yield from (f"-{line}" for line in old)
            yield from (f"+{line}" for line in new)


def _path(above: Sequence[str], line: str) -> str:
    """Return the path of the field that contains a line of YAML."""
    fields: list[str] = []
    column = _column(line)
    for other in reversed(above):
        field = other.lstrip(" -")
        if field.endswith(":") and len(other) - len(field) < column:
            fields.insert(0, field.removesuffix(":"))
            column = _column(other)
    return ".".join(fields)


def _column(line: str) -> int:
    """Return where a line starts. An item of a list belongs to the field that starts in its column."""
    text = line.lstrip()
    return len(line) - len(text) + text.startswith("- ")
