"""What cloud-init takes from user data, as far as it is looked at from outside of the VM."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

PLAN = "/etc/mlbatch/first-boot.json"
KIND_CONFIG = "/etc/mlbatch/kind.yaml"


class UserDataError(ValueError):
    """cloud-init would not make of the user data a VM that somebody can reach."""


@dataclass(frozen=True)
class UserData:
    """user, authorized_keys: who may sign in. host_key: private, in OpenSSH's format. steps: of the first boot.

    told: what the steps are told. api_port: where kind would have the API server on loopback; None without a cluster.
    """

    user: str
    authorized_keys: Sequence[str]
    host_key: str
    steps: Sequence[str]
    told: Mapping[str, str]
    api_port: int | None

    @classmethod
    def parse(cls, text: str) -> UserData:
        """Read user data. Raises UserDataError that says what is missing."""
        if not text.startswith("#cloud-config\n"):
            raise UserDataError("it does not begin with the line #cloud-config, and cloud-init ignores it")
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
            raise UserDataError(f"it lacks what the first boot needs: {error}") from None


def _api_port(files: Mapping[str, str]) -> int | None:
    if KIND_CONFIG not in files:
        return None
    return int(yaml.safe_load(files[KIND_CONFIG])["networking"]["apiServerPort"])
