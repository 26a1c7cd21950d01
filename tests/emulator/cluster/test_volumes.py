"""Contents of volumes, and updates of their folders."""

import base64
import os
from pathlib import Path
from typing import Any

import pytest

from emulator.cluster.errors import MissingError, UnsupportedError
from emulator.cluster.volumes import File, content, write

POD: dict[str, Any] = {"metadata": {"name": "manager", "namespace": "blue", "uid": "1", "labels": {"app": "x"}}}
OBJECTS = {
    ("ConfigMap", "settings"): {"kind": "ConfigMap", "data": {"a.yaml": "a: 1", "b.yaml": "b: 2"}},
    ("Secret", "cert"): {"kind": "Secret", "data": {"tls.crt": base64.b64encode(b"\x00pem").decode()}},
}


def files(volume: dict[str, Any]) -> dict[str, File] | None:
    return content(
        volume, POD, lambda kind, name: OBJECTS.get((kind, name)), lambda audience, seconds: f"{audience}-{seconds}"
    )


def test_configmap_gives_a_file_for_each_key() -> None:
    found = files({"name": "v", "configMap": {"name": "settings", "defaultMode": 0o400}})
    assert found == {"a.yaml": File(b"a: 1", 0o400), "b.yaml": File(b"b: 2", 0o400)}


def test_items_choose_keys_paths_and_modes() -> None:
    found = files(
        {"name": "v", "configMap": {"name": "settings", "items": [{"key": "a.yaml", "path": "x/y", "mode": 0o600}]}}
    )
    assert found == {"x/y": File(b"a: 1", 0o600)}


def test_secret_is_decoded() -> None:
    assert files({"name": "v", "secret": {"secretName": "cert"}}) == {"tls.crt": File(b"\x00pem", 0o644)}


def test_projected_service_account_as_the_api_server_injects_it() -> None:
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "settings", "items": [{"key": "a.yaml", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
    ]
    found = files({"name": "v", "projected": {"defaultMode": 0o644, "sources": sources}})
    assert found is not None
    assert {path: file.content for path, file in found.items()} == {
        "token": b"-3607",
        "ca.crt": b"a: 1",
        "namespace": b"blue",
    }


@pytest.mark.parametrize(
    ("volume", "message"),
    [
        ({"configMap": {"name": "absent"}}, 'configmap "absent" not found'),
        ({"secret": {"secretName": "absent"}}, 'secret "absent" not found'),
        ({"configMap": {"name": "settings", "items": [{"key": "c", "path": "c"}]}}, "has no key c"),
    ],
)
def test_an_absent_volume_is_named(volume: dict[str, Any], message: str) -> None:
    with pytest.raises(MissingError, match=message):
        files({"name": "v", **volume})


def test_optional_sources_may_be_absent() -> None:
    assert files({"name": "v", "configMap": {"name": "absent", "optional": True}}) == {}


def test_empty_dir_starts_without_files() -> None:
    assert files({"name": "v", "emptyDir": {}}) is None


def test_other_volume_types_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="volume data: the local kubelet has no hostPath volumes"):
        files({"name": "data", "hostPath": {"path": "/"}})


def test_an_update_shows_new_files_and_drops_old_ones(tmp_path: Path) -> None:
    assert write(tmp_path, {"a": File(b"1", 0o644), "d/b": File(b"2", 0o600)})
    assert not write(tmp_path, {"a": File(b"1", 0o644), "d/b": File(b"2", 0o600)})
    assert (tmp_path / "d/b").stat().st_mode & 0o777 == 0o600
    assert write(tmp_path, {"a": File(b"3", 0o644)})
    assert (tmp_path / "a").read_bytes() == b"3"
    assert sorted(entry.name for entry in tmp_path.iterdir() if not entry.name.startswith("..")) == ["a"]
    assert len([entry for entry in tmp_path.iterdir() if entry.is_dir() and not entry.is_symlink()]) == 1


def test_an_open_folder_stays_whole_during_an_update(tmp_path: Path) -> None:
    write(tmp_path, {"cert": File(b"old", 0o644), "key": File(b"old", 0o644)})
    before = os.readlink(tmp_path / "..data")
    write(tmp_path, {"cert": File(b"new", 0o644), "key": File(b"new", 0o644)})
    assert os.readlink(tmp_path / "cert") == "..data/cert"
    assert os.readlink(tmp_path / "..data") != before


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "..data", ""])
def test_paths_cannot_leave_the_volume(tmp_path: Path, path: str) -> None:
    with pytest.raises(ValueError, match="not a path inside a volume"):
        write(tmp_path, {path: File(b"", 0o644)})
