"""The part of cloud-init's user data that is visible from outside the VM."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

PLAN = "/etc/mlbatch/first-boot.json"
KIND_CONFIG = "/etc/mlbatch/kind.yaml"


class UserDataError(ValueError):
    """cloud-init would not create a reachable VM from the user data."""


@dataclass(frozen=True)
class UserData:
    """User data of a VM.

    user, authorized_keys: the user and their keys.
    host_key: private, in OpenSSH's format.
    steps: of the first boot.
    told: environment variables of the steps.
    api_port: port of kind's API server on loopback; None without a cluster.
    """

    user: str
    authorized_keys: Sequence[str]
    host_key: str
    steps: Sequence[str]
    told: Mapping[str, str]
    api_port: int | None

    @classmethod
    def parse(cls, text: str) -> UserData:
        """Return the parsed user data. Raises UserDataError if something is missing."""
        if not text.startswith("#cloud-config\n"):
            raise UserDataError("it does not begin with the line #cloud-config, so cloud-init ignores it")
        config = yaml.safe_load(text)
        files = {file["path"]: file["content"] for file in config.get("write_files", ())}
        try:
            (user,) = config["users"]
            plan: dict[str, Any] = json.loads(files[PLAN])
            return cls(
                user=user["name"],
                authorized_keys=user["ssh_authorized_keys"],
                host_key=config["ssh_keys"]["ed25519_private"],
                steps=[step["name"] for step in plan["steps"]],
                told=plan["environment"],
                api_port=_api_port(files),
            )
        except (KeyError, ValueError) as error:
            raise UserDataError(f"it lacks a field that the first boot needs: {error}") from None


def _api_port(files: Mapping[str, str]) -> int | None:
    if KIND_CONFIG not in files:
        return None
    return int(yaml.safe_load(files[KIND_CONFIG])["networking"]["apiServerPort"])
