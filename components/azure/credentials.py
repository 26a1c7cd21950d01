"""The kubeconfig of an AKS cluster."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import pulumi
import yaml
from pulumi_azure_native import containerservice

from components.azure.scope import ResourceScope

LOCAL: Final = "local"
LOGINS: Final = ("azurecli", "workloadidentity", "spn", "msi", LOCAL)
"""Ways to sign in: kubelogin's of that name, or the cluster's own certificate."""

_KEPT: Final[Mapping[str, tuple[str, ...]]] = {"spn": ("--client-id", "--tenant-id", "--environment")}
"""Arguments of kubelogin that stay besides the server's id, as `kubelogin convert-kubeconfig` keeps them. The others
sign in with what their environment says."""


@dataclass(frozen=True, kw_only=True)
class CredentialsArgs:
    """cluster: its name. login: one of LOGINS; `local` only works where the cluster has local accounts.

    after: what has to exist before the cluster is asked.
    """

    cluster: str
    scope: ResourceScope
    login: str
    after: Sequence[pulumi.Resource]


class Credentials(pulumi.ComponentResource):
    """Ask AKS for the cluster's kubeconfig.

    With Entra it holds no secret by itself: kubectl and Pulumi call `kubelogin`, which has to be on PATH. It is kept as
    a secret all the same, for a local one is cluster-admin to whoever reads it.
    """

    kubeconfig: pulumi.Output[str]

    def __init__(self, name: str, args: CredentialsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:azure:Credentials", name, None, opts)
        options = pulumi.InvokeOutputOptions(parent=self, depends_on=list(args.after))
        if args.login == LOCAL:
            admin = containerservice.list_managed_cluster_admin_credentials_output(
                resource_group_name=args.scope.resource_group, resource_name=args.cluster, opts=options
            )
            text = admin.apply(lambda found: _first(found.kubeconfigs))
        else:
            user = containerservice.list_managed_cluster_user_credentials_output(
                resource_group_name=args.scope.resource_group, resource_name=args.cluster, format="exec", opts=options
            )
            text = user.apply(lambda found: signed_in(_first(found.kubeconfigs), args.login))
        self.kubeconfig = pulumi.Output.secret(text)
        self.register_outputs({"kubeconfig": self.kubeconfig})


def signed_in(text: str, login: str) -> str:
    """Return a kubeconfig whose users sign in another way, as `kubelogin convert-kubeconfig --login` writes it.

    Users that do not call kubelogin are left alone (Azure/kubelogin, pkg/internal/converter/convert.go).
    """
    document = yaml.safe_load(text)
    for entry in document.get("users") or []:
        call = (entry.get("user") or {}).get("exec")
        if call is None or "kubelogin" not in str(call.get("command", "")).lower():
            continue
        given = _arguments(call.get("args") or [])
        if "--server-id" not in given:
            raise ValueError("AKS' kubeconfig calls kubelogin without --server-id")
        kept = {key: given[key] for key in ("--server-id", *_KEPT.get(login, ())) if key in given}
        pairs = [part for key, value in kept.items() for part in (key, value)]
        call["command"] = "kubelogin"
        call["args"] = ["get-token", "--login", login, *pairs]
    return yaml.safe_dump(document, sort_keys=False)


def _arguments(args: Sequence[str]) -> dict[str, str]:
    return {key: value for key, value in pairwise(args) if key.startswith("--")}


def _first(kubeconfigs: Sequence[Any] | None) -> str:
    if not kubeconfigs:
        raise ValueError("AKS hands out no kubeconfig for this cluster")
    return base64.b64decode(kubeconfigs[0].value).decode()
