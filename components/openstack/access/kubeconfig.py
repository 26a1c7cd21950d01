"""The kubeconfig of a cluster behind SSH: each client of it opens the tunnel that it needs."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib import resources
from typing import Any, Final

import yaml

from components.openstack.access.host import Host

_CREDENTIAL: Final = "CREDENTIAL"


def local_port(host: Host) -> int:
    """Return the port of the tunnel's near end: the same on every machine, another for another VM.

    One in another's place does without what is left of the tunnel to that one, which may hang for a minute, and has
    another kubeconfig: the engine goes on with a provider that it has set up before, and that has found nobody there,
    as long as its inputs are the same (pulumi/pulumi, pkg/resource/deploy/providers/registry.go, Same).

    From 20000 to 29999, below those that Linux and macOS hand out by themselves.
    """
    identity = f"{host.public_key} {host.vm}"
    return 20000 + int.from_bytes(hashlib.sha256(identity.encode()).digest()[:4], "big") % 10000


def through_tunnel(kubeconfig: str, host: Host, api_port: int) -> str:
    """Return a VM's kubeconfig as it works elsewhere: by a credential plugin that opens an SSH tunnel first.

    The plugin is text in the kubeconfig, for `sh` and OpenSSH: nothing has to be installed, and no path is that of one
    person's machine. Raises ValueError when the kubeconfig has no current context, or a user without a certificate or
    token. Source: kubernetes.io, reference/access-authn-authz/authentication, "client-go credential plugins".
    """
    found = yaml.safe_load(kubeconfig)
    context = _named(found, "contexts", found.get("current-context"))["context"]
    cluster = _named(found, "clusters", context["cluster"])["cluster"]
    user = _named(found, "users", context["user"])["user"]
    near = {**cluster, "server": _near_end(host)}
    name = str(found["current-context"])
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "contexts": [{"name": name, "context": {**context, "cluster": name, "user": name}}],
            "clusters": [{"name": name, "cluster": near}],
            "users": [{"name": name, "user": {"exec": _plugin(host, api_port, _credential(user))}}],
        },
        sort_keys=False,
    )


def anew(kubeconfig: str, host: Host, api_port: int) -> str:
    """Return a kubeconfig of `through_tunnel` with today's plugin, a host's key file and its own credential."""
    found = yaml.safe_load(kubeconfig)
    user = found["users"][0]["user"]
    credential = next(each["value"] for each in user["exec"]["env"] if each["name"] == _CREDENTIAL)
    user["exec"] = _plugin(host, api_port, credential)
    found["clusters"][0]["cluster"]["server"] = _near_end(host)
    return yaml.safe_dump(found, sort_keys=False)


def plugin_digest() -> str:
    """Return by what the program that opens the tunnel is told from another version of it."""
    return hashlib.sha256(_script().encode()).hexdigest()[:16]


def _near_end(host: Host) -> str:
    return f"https://127.0.0.1:{local_port(host)}"


def _script() -> str:
    return resources.files(__package__).joinpath("files", "tunnel.sh").read_text()


def _plugin(host: Host, api_port: int, credential: str) -> dict[str, Any]:
    """Return `users[].user.exec`. credential: members of an ExecCredential's status."""
    variables = {
        "ADDRESS": host.address,
        "PORT": str(host.port),
        "USER_NAME": host.user,
        "KEY_FILE": host.private_key_file,
        "HOST_KEY": host.public_key,
        "LOCAL_PORT": str(local_port(host)),
        "API_PORT": str(api_port),
        _CREDENTIAL: credential,
    }
    return {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "sh",
        "args": ["-c", _script(), "tunnel"],
        "env": [{"name": name, "value": value} for name, value in variables.items()],
        "interactiveMode": "Never",
        "installHint": "needs sh and OpenSSH's ssh on PATH",
    }


def _named(kubeconfig: dict[str, Any], kind: str, name: object) -> dict[str, Any]:
    for entry in kubeconfig.get(kind) or ():
        if entry["name"] == name:
            return dict(entry)
    raise ValueError(f"the VM's kubeconfig has no '{name}' among its {kind}")


def _credential(user: dict[str, Any]) -> str:
    """Return the members of an ExecCredential's status."""
    if "token" in user:
        status = {"token": user["token"]}
    elif "client-certificate-data" in user and "client-key-data" in user:
        status = {
            "clientCertificateData": _decoded(user["client-certificate-data"]),
            "clientKeyData": _decoded(user["client-key-data"]),
        }
    else:
        raise ValueError("the user of the VM's kubeconfig has neither a token nor a certificate with its key")
    return json.dumps(status)[1:-1]


def _decoded(data: str) -> str:
    return base64.b64decode(data).decode()
