"""Kubeconfigs of the managed cluster, in AKS's format."""

import base64
import json
from collections.abc import Mapping
from typing import Any

import yaml

from emulator.azure.errors import refused
from emulator.azure.facts import AzureFacts
from emulator.azure.store import Properties, Record
from emulator.cluster.credentials import Account

SERVER_ID = "6dae42f8-4368-4678-94ff-3960e28e3630"
"""The AKS server application of Microsoft Entra (https://azure.github.io/kubelogin/concepts/aks.html)."""

CLIENT_ID = "80faf920-1908-4b52-b5ef-a8e7bedfc67a"
"""The public client application of kubectl, from the same page."""


def user(facts: AzureFacts, cluster: Record, account: Account) -> Properties:
    """Return the user's credentials; without Microsoft Entra integration, those of the local administrator."""
    if not cluster.properties.get("aadProfile"):
        return _kubeconfig("clusterUser", cluster, account, cluster.name, {"token": account.token})
    arguments = ["get-token", "--environment", "AzurePublicCloud", "--server-id", SERVER_ID, "--client-id", CLIENT_ID]
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "args": [*arguments, "--tenant-id", facts.tenant_id, "--login", "devicecode"],
        "command": "kubelogin",
        "env": None,
        "installHint": "kubelogin is not installed: https://aka.ms/aks/kubelogin",
        "provideClusterInfo": False,
    }
    return _kubeconfig("clusterUser", cluster, account, cluster.name, {"exec": plugin})


def administrator(cluster: Record, account: Account) -> Properties:
    """Return the local administrator's credentials. Raises ArmError if local accounts are disabled."""
    if cluster.properties["disableLocalAccounts"]:
        raise refused("LocalAccountsDisabled")
    return _kubeconfig("clusterAdmin", cluster, account, f"{cluster.name}-admin", {"token": account.token})


def exec_credential(token: str) -> str:
    """Return the output of an exec plugin (client.authentication.k8s.io/v1beta1)."""
    return json.dumps(
        {
            "apiVersion": "client.authentication.k8s.io/v1beta1",
            "kind": "ExecCredential",
            "spec": {"interactive": False},
            "status": {"token": token},
        }
    )


def kubelogin(credential_file: str) -> str:
    """Return an emulation of the program kubelogin, which can only log in to the local cluster."""
    return f"""#!/bin/sh
# Emulates kubelogin (https://azure.github.io/kubelogin) for the emulated managed cluster.
if [ "$1" != get-token ]; then
  echo "the emulated kubelogin supports only get-token, not: $*" >&2
  exit 1
fi
case " $* " in
  *" --server-id {SERVER_ID} "*) exec cat "{credential_file}" ;;
esac
echo "the emulated kubelogin supports only the emulated managed cluster: --server-id {SERVER_ID}" >&2
exit 1
"""


def _kubeconfig(role: str, cluster: Record, account: Account, context: str, login: Mapping[str, Any]) -> Properties:
    if cluster.properties["provisioningState"] == "Creating":
        raise refused("ClusterBeingCreated", cluster=cluster.name)
    data = base64.b64encode(account.authority.encode()).decode()
    group = cluster.id.split("/")[4]
    user_name = f"{role}_{group}_{cluster.name}"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster.name, "cluster": {"server": account.server, "certificate-authority-data": data}}],
        "contexts": [{"name": context, "context": {"cluster": cluster.name, "user": user_name}}],
        "current-context": context,
        "users": [{"name": user_name, "user": dict(login)}],
    }
    text = yaml.safe_dump(document, sort_keys=False)
    return {"kubeconfigs": [{"name": role, "value": base64.b64encode(text.encode()).decode()}]}
