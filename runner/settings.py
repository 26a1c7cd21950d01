"""A stack's settings as the local environment runs them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from runner.stack_file import ConfigPath, StackFile

ARTIFACTS: Final = "artifacts"
"""The key of `mlbatch:mirror` that names a folder of upstream's files."""

_NAMESPACE: Final = "mlbatch"
_OF_A_CLUSTER: Final = ("kubeconfig", "context", "identifier")
"""Keys of `mlbatch:kubernetes` that name a cluster."""

_OF_A_DEFAULT_PROVIDER: Final = ("kubernetes:kubeconfig", "kubernetes:context", "kubernetes:cluster")

_OF_A_BACKEND: Final = ("secretsprovider", "encryptedkey", "encryptionsalt")
"""How the stack's own backend encrypts; a key in a cloud's vault would be fetched from there."""

_BY_PASSPHRASE: Final = "v1:"
"""Begins what a passphrase has encrypted (Pulumi SDK, `go/common/resource/config/crypt.go`)."""


def localise(file: StackFile, project: Mapping[str, Any], mirror: Path) -> None:
    """Take out of a stack's file what leads elsewhere, and let upstream's files come from the mirror.

    project: of Pulumi.yaml, whose defaults count where the stack has no value. mirror: a folder of files that were
    rendered rather than copied, so that they do not have the published digests.
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
    """Have VMs let in who has this private key, whose public one is beside it (`.pub`).

    project: of Pulumi.yaml, as in `localise`.
    """
    openstack = _section(file, project, "openstack")
    if isinstance(openstack, Mapping) and openstack and "secure" not in openstack:
        public = key.with_suffix(".pub").read_text().strip()
        file.put_config(f"{_NAMESPACE}:openstack", {**openstack, "sshPublicKey": public, "privateKeyFile": str(key)})


def unprotect(file: StackFile, project: Mapping[str, Any]) -> None:
    """Let everything be deleted that the stack protects; what is no yes or no is the program's to refuse.

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
    """Yield where secrets stand that the local environment cannot read: another backend has encrypted them.

    salt: of the local stack's own passphrase.
    """
    document = file.values
    provider = document.get("secretsprovider") or "passphrase"
    own = provider in ("passphrase", "default") and document.get("encryptionsalt") in (None, salt)
    for path, ciphertext in file.secrets.items():
        if not (own and ciphertext.startswith(_BY_PASSPHRASE)):
            yield path


def _section(file: StackFile, project: Mapping[str, Any], name: str) -> Any:
    """Return a section as the stack has it, else as the project does, None where neither has one.

    The engine takes an object that is written as JSON, too. What is no object is the program's to refuse.
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
