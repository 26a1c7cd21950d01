"""A kind cluster on a VM as a resource. Its creation waits for the VM's first boot."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pulumi
from pulumi import dynamic

from components.openstack.access.first_boot import FirstBootError, wait
from components.openstack.access.host import Host
from components.openstack.access.kubeconfig import anew, plugin_digest, through_tunnel

REPLACING: Final = ("address", "user", "host_key_public", "vm", "api_port", "port")
"""Inputs that identify the cluster."""
_UPDATING: Final = ("private_key_file", "timeout_seconds", "plugin")


@dataclass(frozen=True, kw_only=True)
class RemoteClusterArgs:
    """How to reach the VM.

    private_key_file: of the user who runs the update. It may begin with `~`, so that the text is the same for a whole
    team.
    host_key_public: the VM's host key, `ssh-ed25519 AAAA...`.
    vm: its ID, because another VM at the same address has another cluster.
    timeout_seconds: limit for the first boot, from the creation of this resource.
    """

    address: pulumi.Input[str]
    user: str
    private_key_file: str
    host_key_public: pulumi.Input[str]
    vm: pulumi.Input[str]
    timeout_seconds: int = 3600
    api_port: int = 6443
    port: int = 22


class _Waiting(dynamic.ResourceProvider):
    """Waits only in `create`. Previews, refreshes and deletions open no connection."""

    serialize_as_secret_always = False

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        try:
            found = wait(_host(props), float(props["timeout_seconds"]), _say)
        except FirstBootError:
            # The SDK would print the call stack, which hides the failed step.
            sys.tracebacklimit = 0
            raise
        if found.kubeconfig is None:
            raise ValueError(f"{props['address']} has no kubeconfig: its first boot was told of no cluster")
        kubeconfig = through_tunnel(found.kubeconfig, _host(props), int(props["api_port"]))
        outs = {**props, "kubeconfig": kubeconfig, "versions": dict(found.versions), "checks": dict(found.checks)}
        return dynamic.CreateResult(str(props["vm"]), outs)

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> dynamic.DiffResult:
        replaces = [name for name in REPLACING if _olds.get(name) != _news.get(name)]
        others = [name for name in _UPDATING if _olds.get(name) != _news.get(name)]
        return dynamic.DiffResult(changes=bool(replaces or others), replaces=replaces)

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> dynamic.UpdateResult:
        kubeconfig = anew(_olds["kubeconfig"], _host(_news), int(_news["api_port"]))
        return dynamic.UpdateResult({**_olds, **_news, "kubeconfig": kubeconfig})


class RemoteCluster(dynamic.Resource, name="RemoteCluster", module="mlbatch"):
    """The kind cluster of a VM.

    kubeconfig: a secret. Its clients open the SSH tunnel. Its credential is the VM's at the creation of this resource.
    To get a newer one, replace this resource, which does not change the VM.
    versions, checks: recorded by the first boot.
    """

    kubeconfig: pulumi.Output[str]
    versions: pulumi.Output[Mapping[str, str]]
    checks: pulumi.Output[Mapping[str, str]]

    def __init__(self, name: str, args: RemoteClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        inputs = {**vars(args), "plugin": plugin_digest(), "kubeconfig": None, "versions": None, "checks": None}
        secret = pulumi.ResourceOptions(additional_secret_outputs=["kubeconfig"])
        super().__init__(_Waiting(), name, inputs, pulumi.ResourceOptions.merge(opts, secret))


def _host(props: Mapping[str, Any]) -> Host:
    return Host(
        address=props["address"],
        user=props["user"],
        private_key_file=props["private_key_file"],
        public_key=props["host_key_public"],
        vm=str(props["vm"]),
        port=int(props["port"]),
    )


def _say(text: str) -> None:
    # The engine shows a plugin's output next to the resource.
    print(f"first boot: {text}", file=sys.stderr, flush=True)
