"""Kubeconfigs, keys and tokens, and passwords."""

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from emulator.azure import credentials, random_password
from emulator.azure.errors import ArmError, NotEmulatedError
from emulator.azure.functions import answer
from emulator.plugin.errors import ProviderError
from tests.emulator.azure.subscription import Subscription

CREDENTIALS = "azure-native:containerservice:listManagedClusterUserCredentials"
WHERE = {"resourceGroupName": "rg", "resourceName": "aks"}


def kubeconfig(azure: Subscription, function: str) -> dict[str, Any]:
    found = answer(azure.arm, f"azure-native:containerservice:{function}", dict(WHERE))
    return dict(yaml.safe_load(base64.b64decode(found["kubeconfigs"][0]["value"])))


def signed_in(azure: Subscription, **changes: Any) -> None:
    azure.group()
    azure.managed_cluster(aadProfile={"managed": True, "enableAzureRBAC": True}, **changes)


def test_without_entra_the_user_is_the_local_administrator(aks: Subscription) -> None:
    document = kubeconfig(aks, "listManagedClusterUserCredentials")
    assert document["users"] == [{"name": "clusterUser_rg_aks", "user": {"token": "administrator-token"}}]
    assert document["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:6443"
    assert document["current-context"] == "aks"


def test_with_entra_the_user_signs_in_with_kubelogin_and_no_secret_is_in_the_file(azure: Subscription) -> None:
    signed_in(azure)
    document = kubeconfig(azure, "listManagedClusterUserCredentials")
    plugin = document["users"][0]["user"]["exec"]
    assert plugin["command"] == "kubelogin"
    assert plugin["args"][0] == "get-token"
    pairs = dict(zip(plugin["args"][1::2], plugin["args"][2::2], strict=True))
    assert pairs["--server-id"] == "6dae42f8-4368-4678-94ff-3960e28e3630"
    assert pairs["--tenant-id"] == azure.facts.tenant_id
    assert pairs["--login"] == "devicecode"
    assert "administrator-token" not in str(document)


def test_the_administrator_is_refused_where_local_accounts_are_disabled(azure: Subscription) -> None:
    signed_in(azure, disableLocalAccounts=True)
    with pytest.raises(ArmError, match="Getting static credential is not allowed"):
        kubeconfig(azure, "listManagedClusterAdminCredentials")


def test_the_administrator_has_a_token_if_local_accounts_are_enabled(azure: Subscription) -> None:
    signed_in(azure)
    document = kubeconfig(azure, "listManagedClusterAdminCredentials")
    assert document["users"][0] == {"name": "clusterAdmin_rg_aks", "user": {"token": "administrator-token"}}
    assert document["current-context"] == "aks-admin"


def kubelogin(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    secret = tmp_path / "exec-credential.json"
    secret.write_text(credentials.exec_credential("token"))
    program = tmp_path / "kubelogin"
    program.write_text(credentials.kubelogin(str(secret)))
    program.chmod(0o700)
    return subprocess.run([str(program), *arguments], capture_output=True, text=True)


@pytest.mark.parametrize("login", ["devicecode", "azurecli", "workloadidentity"])
def test_the_emulated_kubelogin_signs_in_any_way(tmp_path: Path, login: str) -> None:
    done = kubelogin(tmp_path, "get-token", "--login", login, "--server-id", credentials.SERVER_ID)
    assert json.loads(done.stdout)["status"] == {"token": "token"}


@pytest.mark.parametrize("arguments", [["convert-kubeconfig"], ["get-token", "--server-id", "another"]])
def test_the_emulated_kubelogin_supports_one_cluster_only(tmp_path: Path, arguments: list[str]) -> None:
    done = kubelogin(tmp_path, *arguments)
    assert done.returncode == 1
    assert done.stdout == ""


def test_a_get_function_returns_the_values_of_a_resource(aks: Subscription) -> None:
    found = answer(aks.arm, "azure-native:containerservice:getManagedCluster", dict(WHERE))
    assert found["fqdn"].endswith(".hcp.eastus.azmk8s.io")
    assert found["id"].endswith("/managedClusters/aks")
    with pytest.raises(ArmError, match="ResourceNotFound"):
        answer(aks.arm, "azure-native:containerservice:getManagedCluster", {**WHERE, "resourceName": "none"})


@pytest.mark.parametrize(
    ("token", "arguments", "error", "text"),
    [
        (
            "azure-native:compute:getVirtualMachine",
            {},
            NotEmulatedError,
            "does not emulate azure-native:compute:getVirtual",
        ),
        (CREDENTIALS, {"name": "x"}, ProviderError, "the argument name"),
        (CREDENTIALS, {"resourceName": "x"}, ProviderError, "needs resourceGroupName"),
        (CREDENTIALS, {**WHERE, "format": "azure"}, ProviderError, "the argument format"),
    ],
)
def test_functions_that_are_not_emulated_or_asked_wrongly(
    azure: Subscription, token: str, arguments: dict[str, str], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        answer(azure.arm, token, arguments)


def test_a_password_has_the_requested_characters() -> None:
    made = random_password.create({"length": 16, "special": False})
    assert len(made["result"]) == 16
    assert made["result"].isalnum()
    assert made["result"] != random_password.create({"length": 16})["result"]
    with pytest.raises(ProviderError, match="length is less than 1"):
        random_password.create({"length": 0})
    with pytest.raises(ProviderError, match="minUpper is not emulated"):
        random_password.create({"length": 16, "minUpper": 3})
