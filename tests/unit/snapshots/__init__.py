"""What identifies each resource of a stack, and what its pods run, as texts that a review can read.

`make snapshots` writes them anew. A type, a name or a parent that changes here makes Pulumi create a resource anew in
every stack that somebody has, unless an alias says what it was; a replacement option decides whether data survives.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from tests.unit.harness import Record, Registered

FOLDER: Final = Path(__file__).parent
ROOT: Final = FOLDER.parents[2]


def identities(record: Record) -> str:
    """Return each resource below its parent, with the options that decide how it is replaced and deleted."""
    children: dict[str, list[Registered]] = {}
    for item in record.resources:
        children.setdefault(item.parent, []).append(item)
    known = {item.urn for item in record.resources}
    roots = [item for parent, items in children.items() if parent not in known for item in items]
    lines: list[str] = []

    def write(item: Registered, depth: int) -> None:
        # The line of a provider would hold the version of its plugin in the checkout.
        lines.append(f"{'  ' * depth}{item.type} {item.name}{_options(item)}")
        for child in sorted(children.get(item.urn, []), key=_order):
            write(child, depth + 1)

    for item in sorted(roots, key=_order):
        write(item, 0)
    return "\n".join([*lines, ""])


def _order(item: Registered) -> tuple[str, str]:
    return item.type, item.name


def _options(item: Registered) -> str:
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
    }
    said = [name if value is True else f"{name} {_listed(value)}" for name, value in options.items() if value]
    return f"  [{'; '.join(said)}]" if said else ""


def _listed(value: object) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def _name(urn: str) -> str:
    return urn.rpartition("::")[2]


def programs(record: Record) -> str:
    """Return what each pod runs and may do, and the files that it is given; images without their versions."""
    shown = [(item, _pod(spec)) for item in _objects(record) for spec in _pods(item.inputs)]
    shown += [
        (item, {name: _file(text) for name, text in item.inputs["data"].items()})
        for item in _objects(record)
        if item.kind == "ConfigMap" and item.inputs.get("data") and not _is_dashboard(item)
    ]
    texts = [
        f"# {item.kind} {_full_name(item)}\n{yaml.dump(what, Dumper=_Dumper, width=120, allow_unicode=True)}"
        for item, what in shown
    ]
    return "---\n".join(sorted(texts))


def _is_dashboard(item: Registered) -> bool:
    return "grafana_dashboard" in item.inputs["metadata"].get("labels", {})


def _objects(record: Record) -> list[Registered]:
    return [item for item in record.objects() if item.kind and item.kind != "CustomResourceDefinition"]


def _full_name(item: Registered) -> str:
    namespace = item.inputs["metadata"].get("namespace")
    return f"{namespace}/{item.object_name}" if namespace else item.object_name


def _pods(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        if isinstance(value.get("containers"), list):
            yield value
        else:
            for inner in value.values():
                yield from _pods(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _pods(inner)


def _pod(spec: Mapping[str, Any]) -> dict[str, Any]:
    containers = {
        kind: [_container(one) for one in spec[kind]] for kind in ("initContainers", "containers") if kind in spec
    }
    return _plain({**spec, **containers})


def _container(container: Mapping[str, Any]) -> dict[str, Any]:
    image = str(container.get("image", "")).partition("@")[0]
    return {**container, "image": image.rpartition(":")[0] if ":" in image.rpartition("/")[2] else image}


def _plain(value: Any) -> Any:
    """Return a value as YAML writes it, the mocks' whole numbers as such."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _file(text: str) -> object:
    """Return a file's text; of a program the module of the checkout that it is, of JSON what it says."""
    sources = [file for file in (ROOT / "components").rglob("*.py") if file.stat().st_size == len(text.encode())]
    for source in sources:
        if source.read_text() == text:
            return f"<{source.relative_to(ROOT)}>"
    try:
        return {"json": json.loads(text)}
    except ValueError:
        return text


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as such."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def snapshots(stack: str, record: Record) -> Mapping[Path, str]:
    """Return the text of each file that shows a stack. What pods run is shown where all is switched on."""
    files = {FOLDER / f"{stack}.txt": identities(record)}
    if stack.endswith("everything"):
        files[FOLDER / f"{stack}.pods.yaml"] = programs(record)
    return files
