"""The kubeconfig of a cluster behind SSH. Each client opens the tunnel that it needs."""

import base64
import hashlib
import json
from importlib import resources
from typing import Any, Final

import yaml

from components.openstack.access.host import Host

_CREDENTIAL: Final = "CREDENTIAL"


def local_port(host: Host) -> int:
    """Return the local port of the tunnel. It is the same on every machine, and differs between VMs.

    A replacement VM therefore does not use an old tunnel, which may hang for a minute. It also gets another kubeconfig.
    Otherwise the engine would continue with a provider that it set up before the VM was reachable, because the
    provider's inputs are the same (pulumi/pulumi, pkg/resource/deploy/providers/registry.go, Same).

    The port is from 20000 to 29999, below the ephemeral ports of Linux and macOS.
    """
    identity = f"{host.public_key} {host.vm}"
    return 20000 + int.from_bytes(hashlib.sha256(identity.encode()).digest()[:4], "big") % 10000


def through_tunnel(kubeconfig: str, host: Host, api_port: int) -> str:
    """Return a VM's kubeconfig for use elsewhere: a credential plugin opens an SSH tunnel first.

    The plugin is text in the kubeconfig for `sh` and OpenSSH. It needs no installation, and the text has no paths of
    one machine. Raises ValueError if the kubeconfig has no current context, or a user without a certificate or token.
    Source: kubernetes.io, reference/access-authn-authz/authentication, "client-go credential plugins".
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
    """Return a kubeconfig of `through_tunnel` with the current plugin, a host's key file and its own credential."""
    found = yaml.safe_load(kubeconfig)
    user = found["users"][0]["user"]
    credential = next(each["value"] for each in user["exec"]["env"] if each["name"] == _CREDENTIAL)
    user["exec"] = _plugin(host, api_port, credential)
    found["clusters"][0]["cluster"]["server"] = _near_end(host)
    return yaml.safe_dump(found, sort_keys=False)


def plugin_digest() -> str:
    """Return a digest that identifies the version of the tunnel's program."""
    return hashlib.sha256(_script().encode()).hexdigest()[:16]


def _near_end(host: Host) -> str:
    return f"https://127.0.0.1:{local_port(host)}"


def _script() -> str:
    return resources.files(__package__).joinpath("files", "tunnel.sh").read_text()


def _plugin(host: Host, api_port: int, credential: str) -> dict[str, Any]:
    """Return `users[].user.exec`. credential: fields of an ExecCredential's status."""
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
    """Return the fields of an ExecCredential's status."""
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
