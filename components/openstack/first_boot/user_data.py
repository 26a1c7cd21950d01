"""The cloud-init user data of a VM: its users, its host key and the programs of the first boot."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from typing import Any, Final

import pulumi
import yaml

from components.openstack.first_boot.arguments import FirstBootArgs
from components.openstack.first_boot.plan import kind_config, plan, steps

FOLDER: Final = "/usr/local/lib/mlbatch/first-boot"
"""Folder of the programs in the VM."""
PLAN: Final = "/etc/mlbatch/first-boot.json"
KIND_CONFIG: Final = "/etc/mlbatch/kind.yaml"
UNIT: Final = "mlbatch-first-boot.service"
LARGEST: Final = 65535
"""Nova's limit for user data, in bytes of base64 (nova/api/validation, "user_data")."""
_SHARED: Final = ("lib.sh", "guard-metadata.sh")


def user_data(args: FirstBootArgs) -> pulumi.Output[str]:
    """Return the user data, a secret, because it contains the VM's private host key.

    Raises ValueError if it exceeds Nova's limit, or if no release of kind has the node image.
    """
    given = pulumi.Output.all(
        authorized_key=args.authorized_key,
        private=args.host_key.private_openssh,
        public=args.host_key.public,
        volume_id=args.volume_id,
    )
    return pulumi.Output.secret(given.apply(lambda values: _render(args, values)))


def revision(args: FirstBootArgs) -> str:
    """Return a digest of the first boot's programs and versions, without the requested values."""
    kind = replace(args.kind, recreate=False) if args.kind is not None else None
    files = _files(replace(args, kind=kind), "")
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()[:16]


def _render(args: FirstBootArgs, given: Mapping[str, Any]) -> str:
    text = "#cloud-config\n" + yaml.dump(cloud_config(args, **given), Dumper=_Dumper, sort_keys=False)
    size = len(base64.b64encode(text.encode()))
    if size > LARGEST:
        raise ValueError(f"the user data is {size} bytes in base64, and Nova takes {LARGEST}")
    return text


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, so that the programs are readable."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def cloud_config(
    args: FirstBootArgs, *, authorized_key: str, private: str, public: str, volume_id: str
) -> dict[str, Any]:
    """Return cloud-init's configuration (cloudinit.readthedocs.io/en/latest/reference/modules.html)."""
    user = {
        "name": args.user,
        "groups": ["adm", "sudo"],
        "shell": "/bin/bash",
        "sudo": "ALL=(ALL) NOPASSWD:ALL",
        "lock_passwd": True,
        "ssh_authorized_keys": [authorized_key, *args.other_keys],
    }
    return {
        "users": [user],
        "disable_root": True,
        "ssh_pwauth": False,
        # Only this key, because the client expects it.
        "ssh_deletekeys": True,
        "ssh_keys": {"ed25519_private": private, "ed25519_public": public},
        "write_files": _files(args, volume_id),
        # Started in the background: it reboots, which cloud-init would take as the end of its run.
        "runcmd": [
            ["systemctl", "daemon-reload"],
            ["systemctl", "enable", UNIT],
            ["systemctl", "start", "--no-block", UNIT],
        ],
    }


def _files(args: FirstBootArgs, volume_id: str) -> Sequence[Mapping[str, str]]:
    programs = {f"{step.name}.sh" for step in steps(args)} | set(_SHARED)
    files = [
        _file(f"{FOLDER}/{name}", resources.files(__package__).joinpath("files", name).read_text(), "0755")
        for name in sorted(programs)
    ]
    runner = resources.files(__package__).joinpath("runner.py").read_text()
    files += [
        _file(f"{FOLDER}/runner.py", runner, "0755"),
        _file(PLAN, json.dumps(plan(args, volume_id), indent=1), "0644"),
        _file(f"/etc/systemd/system/{UNIT}", _UNIT, "0644"),
    ]
    if args.kind is not None:
        files.append(_file(KIND_CONFIG, yaml.safe_dump(kind_config(args.kind), sort_keys=False), "0644"))
    return files


def _file(path: str, content: str, permissions: str) -> Mapping[str, str]:
    return {"path": path, "permissions": permissions, "content": content}


_UNIT: Final = f"""\
[Unit]
Description=Steps of the first boot that are not done yet
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
ExecStart=/usr/bin/python3 {FOLDER}/runner.py
StandardOutput=journal+console

[Install]
WantedBy=multi-user.target
"""
