"""Contents of a pod's volumes, and atomic updates of their folders."""

import base64
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emulator.cluster.api import Object
from emulator.cluster.downward import field_value
from emulator.cluster.errors import MissingError, UnsupportedError
from runner.files import link_to

Lookup = Callable[[str, str], Object | None]
"""(ConfigMap or Secret, name) -> the object of the pod's namespace, or None."""

Token = Callable[[str, int], str]
"""(audience or "", lifetime in seconds) -> a token of the pod's service account."""

_DATA = "..data"
_DEFAULT_MODE = 0o644
_DEFAULT_TOKEN_SECONDS = 3600  # ServiceAccountTokenProjection.expirationSeconds, k8s.io/api/core/v1


@dataclass(frozen=True)
class File:
    """Content and permission bits of one file of a volume."""

    content: bytes
    mode: int


def content(volume: Object, pod: Object, lookup: Lookup, token: Token) -> dict[str, File] | None:
    """Return the files of a volume by their relative path, or None for an emptyDir.

    Raises MissingError if a required ConfigMap, Secret or key is missing, UnsupportedError for other volume types.
    """
    if "emptyDir" in volume:
        return None
    if "projected" in volume:
        projected = volume["projected"]
        mode = projected.get("defaultMode", _DEFAULT_MODE)
        files: dict[str, File] = {}
        for source in projected.get("sources") or []:
            files |= _source(source, mode, pod, lookup, token)
        return files
    for kind in ("configMap", "secret", "downwardAPI"):
        if kind in volume:
            source = dict(volume[kind])
            if kind == "secret":
                source["name"] = source.get("secretName")
            return _source({kind: source}, source.get("defaultMode", _DEFAULT_MODE), pod, lookup, token)
    kinds = ", ".join(key for key in volume if key != "name")
    raise UnsupportedError(f"volume {volume['name']}: the local kubelet has no {kinds} volumes")


def _source(source: Object, mode: int, pod: Object, lookup: Lookup, token: Token) -> dict[str, File]:
    if "serviceAccountToken" in source:
        wanted = source["serviceAccountToken"]
        text = token(wanted.get("audience") or "", wanted.get("expirationSeconds") or _DEFAULT_TOKEN_SECONDS)
        return {wanted["path"]: File(text.encode(), mode)}
    if "downwardAPI" in source:
        items = source["downwardAPI"].get("items") or []
        return {item["path"]: File(_downward(item, pod).encode(), item.get("mode") or mode) for item in items}
    for field, kind in (("configMap", "ConfigMap"), ("secret", "Secret")):
        if field in source:
            return _keys(kind, source[field], mode, lookup)
    raise UnsupportedError(f"the local kubelet cannot project {', '.join(source)}")


def _downward(item: Object, pod: Object) -> str:
    if "fieldRef" not in item:
        raise UnsupportedError(f"downward API file {item['path']}: the local kubelet supports only fieldRef")
    return field_value(item["fieldRef"]["fieldPath"], pod)


def _keys(kind: str, source: Object, mode: int, lookup: Lookup) -> dict[str, File]:
    optional = bool(source.get("optional"))
    found = lookup(kind, source["name"])
    if found is None:
        if optional:
            return {}
        raise MissingError(f'{kind.lower()} "{source["name"]}" not found')
    data = data_of(found)
    if not source.get("items"):
        return {key: File(value, mode) for key, value in data.items()}
    files = {}
    for item in source["items"]:
        if item["key"] in data:
            files[item["path"]] = File(data[item["key"]], item.get("mode") or mode)
        elif not optional:
            raise MissingError(f'{kind.lower()} "{source["name"]}" has no key {item["key"]}')
    return files


def data_of(found: Object) -> dict[str, bytes]:
    """Return the keys of a ConfigMap or a Secret as bytes."""
    encoded: Mapping[str, Any] = found.get("binaryData") or {}
    plain: Mapping[str, Any] = found.get("data") or {}
    if found.get("kind") == "Secret":
        encoded, plain = plain, {}
    return {key: base64.b64decode(value) for key, value in encoded.items()} | {
        key: value.encode() for key, value in plain.items()
    }


def write(folder: Path, files: Mapping[str, File]) -> bool:
    """Make the content of `folder` exactly `files`; tell whether it changed.

    Like in a kubelet, the files are in a subfolder. `..data` links to it, and each top-level name links into `..data`.
    An update replaces `..data` in one step (pkg/volume/util/atomic_writer.go). Raises ValueError if a path leaves the
    folder.
    """
    for path in files:
        parts = Path(path).parts
        if not parts or Path(path).is_absolute() or ".." in parts or parts[0].startswith(".."):
            raise ValueError(f"{path!r} is not a path inside a volume")
    folder.mkdir(parents=True, exist_ok=True, mode=0o755)
    current = folder / _DATA
    if current.is_dir() and _read(current) == dict(files):
        return False
    fresh = Path(tempfile.mkdtemp(dir=folder, prefix="..data_"))
    fresh.chmod(0o755)
    for path, file in files.items():
        target = fresh / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(file.mode)
    old = current.resolve() if current.is_symlink() else None
    link_to(current, Path(fresh.name))
    names = {Path(path).parts[0] for path in files}
    for name in names:
        link_to(folder / name, Path(_DATA, name))
    for entry in folder.iterdir():
        if entry.is_symlink() and entry.name != _DATA and entry.name not in names:
            entry.unlink()
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)
    return True


def _read(folder: Path) -> dict[str, File]:
    return {
        str(path.relative_to(folder)): File(path.read_bytes(), path.stat().st_mode & 0o7777)
        for path in folder.rglob("*")
        if path.is_file()
    }
