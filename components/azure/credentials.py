"""The kubeconfig of an AKS cluster."""

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
"""Ways to sign in: the methods of kubelogin, or the cluster's certificate (local)."""

_KEPT: Final[Mapping[str, tuple[str, ...]]] = {"spn": ("--client-id", "--tenant-id", "--environment")}
"""Arguments of kubelogin that remain besides the server's ID, as in `kubelogin convert-kubeconfig`. Other methods read
their environment."""


@dataclass(frozen=True, kw_only=True)
class CredentialsArgs:
    """The arguments of the kubeconfig.

    login: one of LOGINS. `local` works only if the cluster has local accounts.
    after: resources that must exist before the request.
    """

    cluster: str
    scope: ResourceScope
    login: str
    after: Sequence[pulumi.Resource]


class Credentials(pulumi.ComponentResource):
    """Read the cluster's kubeconfig from AKS.

    With Entra it contains no secret: kubectl and Pulumi call `kubelogin`, which must be on PATH. It is stored as a
    secret in all cases, because a local kubeconfig grants cluster-admin rights.
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
    """Return a kubeconfig with another login method, as `kubelogin convert-kubeconfig --login` writes it.

    Users that do not call kubelogin stay the same (Azure/kubelogin, pkg/internal/converter/convert.go).
    """
    document = yaml.safe_load(text)
    for entry in document.get("users") or []:
        call = (entry.get("user") or {}).get("exec")
        if call is None or "kubelogin" not in str(call.get("command", "")).lower():
            continue
        given = {key: value for key, value in pairwise(call.get("args") or ()) if key.startswith("--")}
        if "--server-id" not in given:
            raise ValueError("AKS' kubeconfig calls kubelogin without --server-id")
        kept = {key: given[key] for key in ("--server-id", *_KEPT.get(login, ())) if key in given}
        pairs = [part for key, value in kept.items() for part in (key, value)]
        call["command"] = "kubelogin"
        call["args"] = ["get-token", "--login", login, *pairs]
    return yaml.safe_dump(document, sort_keys=False)


def _first(kubeconfigs: Sequence[Any] | None) -> str:
    if not kubeconfigs:
        raise ValueError("AKS hands out no kubeconfig for this cluster")
    return base64.b64decode(kubeconfigs[0].value).decode()
