"""A stack's settings for the local environment."""

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from runner.stack_file import ConfigPath, StackFile

ARTIFACTS: Final = "artifacts"
"""The key in `mlbatch:mirror` for a folder of upstream's files."""

_NAMESPACE: Final = "mlbatch"
_OF_A_CLUSTER: Final = ("kubeconfig", "context", "identifier")
"""Keys in `mlbatch:kubernetes` that identify a cluster."""

_OF_A_DEFAULT_PROVIDER: Final = ("kubernetes:kubeconfig", "kubernetes:context", "kubernetes:cluster")

_OF_A_BACKEND: Final = ("secretsprovider", "encryptedkey", "encryptionsalt")
"""The stack's own encryption. A key in a cloud's vault would be fetched from there."""

_BY_PASSPHRASE: Final = "v1:"
"""Prefix of a value that a passphrase has encrypted (Pulumi SDK, `go/common/resource/config/crypt.go`)."""


def filled(text: str) -> str:
    """Return the text of a stack's file with local values for placeholders, which the program rejects elsewhere."""
    return re.sub("replace-me-?", "", text).replace("replaceme", "example")


def localise(file: StackFile, project: Mapping[str, Any], mirror: Path) -> None:
    """Remove settings that lead to other places from a stack's file, and use the mirror for upstream's files.

    project: of Pulumi.yaml, whose defaults apply if the stack has no value. mirror: a folder of rendered files, which
    do not have the published digests.
    """
    for key in _OF_A_BACKEND:
        file.drop(key)
    for key in _OF_A_DEFAULT_PROVIDER:
        file.drop_config(key)
    cluster = _section(file, project, "kubernetes")
    if isinstance(cluster, Mapping):
        kept = {} if "secure" in cluster else {key: cluster[key] for key in cluster if key not in _OF_A_CLUSTER}
        file.put_config(f"{_NAMESPACE}:kubernetes", kept)
    files = _section(file, project, "mirror")
    if files is None or (isinstance(files, Mapping) and "secure" not in files):
        file.put_config(f"{_NAMESPACE}:mirror", {**(files or {}), ARTIFACTS: str(mirror), "verify": False})


def sign_in_with(file: StackFile, project: Mapping[str, Any], key: Path) -> None:
    """Give access to VMs to a private key, whose public key is next to it (`.pub`).

    project: of Pulumi.yaml, as in `localise`.
    """
    openstack = _section(file, project, "openstack")
    if isinstance(openstack, Mapping) and openstack and "secure" not in openstack:
        public = key.with_suffix(".pub").read_text().strip()
        file.put_config(f"{_NAMESPACE}:openstack", {**openstack, "sshPublicKey": public, "privateKeyFile": str(key)})


def unprotect(file: StackFile, project: Mapping[str, Any]) -> None:
    """Remove the stack's protection from deletion. The program itself rejects values that are not booleans.

    project: of Pulumi.yaml, as in `localise`.
    """
    azure = _section(file, project, "azure")
    if isinstance(azure, Mapping) and azure:
        _unprotect(file, "azure", azure)
    tenancy = _section(file, project, "tenancy")
    if tenancy is None or isinstance(tenancy, Mapping):
        _unprotect(file, "tenancy", tenancy or {})


def _unprotect(file: StackFile, name: str, section: Mapping[str, Any]) -> None:
    if "secure" not in section and section.get("protect", True) is True:
        file.put_config(f"{_NAMESPACE}:{name}", {**section, "protect": False})


def foreign_secrets(file: StackFile, salt: str | None) -> Iterator[ConfigPath]:
    """Yield the paths of secrets that another backend has encrypted, so the local environment cannot read them.

    salt: of the local stack's own passphrase.
    """
    document = file.values
    provider = document.get("secretsprovider") or "passphrase"
    own = provider in ("passphrase", "default") and document.get("encryptionsalt") in (None, salt)
    for path, ciphertext in file.secrets.items():
        if not (own and ciphertext.startswith(_BY_PASSPHRASE)):
            yield path


def _section(file: StackFile, project: Mapping[str, Any], name: str) -> Any:
    """Return a section of the stack, otherwise of the project, None if neither has one.

    The engine also accepts an object as JSON text. The program itself rejects values that are not objects.
    """
    key = f"{_NAMESPACE}:{name}"
    config = file.config
    value = config.get(key)
    if key not in config:
        declared = project.get("config") or {}
        value = declared.get(name, declared.get(key))
        if isinstance(value, Mapping):
            value = value.get("value", value.get("default"))
    if isinstance(value, str) and value.lstrip().startswith("{"):
        with contextlib.suppress(ValueError):
            return json.loads(value)
    return value
