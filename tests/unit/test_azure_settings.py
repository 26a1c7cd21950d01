"""Every mistake in section azure gives a message with its key, its value, what is allowed and the fix."""

from __future__ import annotations

import re
from copy import deepcopy
from datetime import date
from enum import Enum
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from pulumi_azure_native import containerregistry, containerservice, storage

from components import names
from stacks.config.errors import ConfigError, key
from stacks.targets.aks.settings import options as settings
from stacks.targets.aks.settings import support
from stacks.targets.aks.settings.azure import AzureSettings
from stacks.validation import rules
from tests.unit.configurations import errors_of, partial_of

GROUP = "6f1c1b0e-3f0a-4f5e-9a57-2f3f0d4c7a11"


def _public(private: Any) -> str:
    encoding, form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    return str(private.public_key().public_bytes(encoding, form).decode())


def _private(private: Any) -> str:
    form, nothing = serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    return str(private.private_bytes(serialization.Encoding.PEM, form, nothing).decode())


RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PUBLIC, PRIVATE = _public(RSA), _private(RSA)
SHORT = _public(rsa.generate_private_key(public_exponent=65537, key_size=1024))
ED25519 = _public(ed25519.Ed25519PrivateKey.generate())
ECDSA = _public(ec.generate_private_key(ec.SECP256R1()))


def valid() -> dict[str, Any]:
    """A section without a mistake."""
    return {
        "location": "eastus",
        "sshPublicKey": f"{PUBLIC} somebody@example.com",
        "registry": {"name": "labimages"},
        "apiServer": {"authorizedRanges": ["203.0.113.0/24"]},
        "access": {"adminGroups": [GROUP]},
        "storage": {"account": "labdata"},
    }


def changed(changes: dict[str, Any]) -> dict[str, Any]:
    """Return the valid section with values set, by path with dots; None removes one."""
    raw = deepcopy(valid())
    for path, value in changes.items():
        *parents, last = path.split(".")
        place = raw
        for part in parents:
            place = place.setdefault(part, {})
        if value is None:
            del place[last]
        else:
            place[last] = value
    return raw


def problems(section: dict[str, Any]) -> list[ConfigError]:
    """Return what is wrong with the section, whatever else does not go with it."""
    return [error for error in errors_of({"target": "aks", "azure": section}) if error.path[0] == "azure"]


def read(section: dict[str, Any]) -> AzureSettings:
    assert [str(error) for error in problems(section)] == []
    azure = partial_of({"target": "aks", "azure": section}).section(AzureSettings)
    assert azure is not None
    return azure


def test_a_section_without_a_mistake_has_safe_defaults() -> None:
    azure = read(valid())
    assert azure.kubernetes_version == "1.35"
    assert (azure.support_plan, azure.tier, azure.os_sku) == ("KubernetesOfficial", "Standard", "Ubuntu2204")
    assert (azure.resource_group, azure.nodes_group, azure.cluster_name) == ("mlbatch", "mlbatch-nrg", "mlbatch")
    assert (azure.registry.admin_user, azure.access.local_accounts, azure.api_server.public) == (False, False, False)
    assert (azure.system_pool.name, azure.system_pool.count, azure.system_pool.vm_size) == (
        "system",
        2,
        "Standard_D4s_v5",
    )
    pool = azure.gpu_pool
    assert (pool.name, pool.vm_size, pool.count, pool.os_disk_gib) == ("ndv5", "Standard_ND96isr_H100_v5", 1, 128)
    assert (pool.taint, pool.skip_gpu_driver_install_tag, pool.autoscale) == (True, False, None)
    assert azure.storage is not None
    assert (azure.storage.container, azure.storage.shared_key) == ("data", False)
    assert azure.network.policy == "cilium"
    assert azure.protect
    assert azure.ssh_public_key == f"{PUBLIC} somebody@example.com"


def test_the_pool_is_what_the_layers_see() -> None:
    pool = read(changed({"gpuPool.count": 2})).pools()[0]
    assert pool.count == 2
    assert {name: str(amount) for name, amount in pool.resources.items()} == {
        "cpu": "189880m",
        "memory": "3790Gi",
        "nvidia.com/gpu": "16",
        "nvidia.com/roce_gdr": "0",
        "nvidia.com/mlnxnics": "16",
        "pods": "500",
    }
    assert read(valid()).pools(infiniband=False)[0].resources[names.INFINIBAND].nano == 0


def test_a_pool_whose_pods_ask_for_no_ports_can_be_filled_from_nothing() -> None:
    section = changed({"gpuPool.autoscale": {"min": 0, "max": 4}, "gpuPool.count": 0})
    assert errors_of({"target": "aks", "azure": section, "gpu": {"fabric": {"enabled": False}}}) == []
    assert read(changed({"gpuPool.vmSize": "Standard_NC40ads_H100_v5", "gpuPool.autoscale": {"min": 0, "max": 4}}))


def test_with_the_autoscaler_the_pool_is_as_large_as_it_may_become() -> None:
    azure = read(changed({"gpuPool.autoscale": {"min": 1, "max": 4}}))
    assert (azure.pools()[0].count, azure.pools()[0].least) == (4, 1)
    assert read(changed({})).pools()[0].minimum is None
    assert azure.gpu_pool.count == 1
    assert azure.pools()[0].count == 4


def test_only_sizes_that_need_the_feature_register_it() -> None:
    assert read(valid()).registers_feature
    assert not read(changed({"feature.assumeRegistered": True})).registers_feature
    assert not read(changed({"gpuPool.vmSize": "Standard_ND128isr_NDR_GB200_v6", "osSku": "Ubuntu"})).registers_feature
    assert not read(changed({"gpuPool.vmSize": "Standard_NC40ads_H100_v5"})).registers_feature


@pytest.mark.parametrize(
    ("choices", "enumeration"),
    [
        (settings.TIERS, containerservice.ManagedClusterSKUTier),
        (settings.OS_SKUS, containerservice.OSSKU),
        (settings.SUPPORT_PLANS.values(), containerservice.KubernetesSupportPlan),
        (settings.NETWORK_POLICIES, containerservice.NetworkPolicy),
        (settings.KUBERNETES_CHANNELS, containerservice.UpgradeChannel),
        (settings.NODE_OS_CHANNELS, containerservice.NodeOSUpgradeChannel),
        (settings.REGISTRY_SKUS, containerregistry.SkuName),
        (settings.STORAGE_SKUS, storage.SkuName),
    ],
    ids=["tier", "OS", "support", "policy", "channel", "node OS", "registry", "storage"],
)
def test_choices_are_ones_that_azures_api_has(choices: Any, enumeration: type[Enum]) -> None:
    assert set(choices) <= {member.value for member in enumeration}


def test_no_storage_account_unless_one_is_named() -> None:
    assert read(changed({"storage": None})).storage is None


def test_blanks_around_the_key_are_taken_off() -> None:
    assert read(changed({"sshPublicKey": f"  {PUBLIC}\n"})).ssh_public_key == PUBLIC


ALLOWED: list[dict[str, Any]] = [
    {"apiServer": {"private": True}},
    {"apiServer": {"public": True}},
    {"apiServer": {"authorizedRanges": ["0.0.0.0/32"]}},
    {"apiServer": {"authorizedRanges": ["203.0.113.7"]}},
    {"access": {"localAccounts": True, "login": "local"}},
    {"access": {"localAccounts": True, "adminGroups": [GROUP]}},
    {"gpuPool.count": 0},
    {"gpuPool.count": 4, "gpuPool.autoscale": {"min": 1, "max": 4}},
    {"gpuPool.zones": ["2"], "gpuPool.proximityPlacementGroup": True},
    {"gpuPool.vmSize": "Standard_ND96isr_H200_v5", "location": "eastus2"},
    {"location": "westeurope"},
    {"location": "westus", "systemPool.zones": []},
    {"location": "brazilsouth", "gpuPool.anyRegion": True},
    {"kubernetesVersion": "1.35.7"},
    {"kubernetesVersion": "1.37", "osSku": "Ubuntu"},
    {"kubernetesVersion": "1.33", "support": "longTerm", "tier": "Premium"},
    {"gpuPool.vmSize": "Standard_ND128isr_NDR_GB200_v6", "osSku": "Ubuntu"},
    {"systemPool.vmSize": "Standard_DS3_v2"},
    {"storage.allowedRanges": ["198.51.100.7", "203.0.113.0/24"]},
    {"tags": {"team": "ml", "cost centre": ""}},
    {"tags": {f"tag{index}": "" for index in range(50)}},
    {"tags": {f"tag{index}": "" for index in range(49)}, "gpuPool.skipGpuDriverInstallTag": True},
    {"subscriptionId": GROUP.upper()},
]


@pytest.mark.parametrize("changes", ALLOWED, ids=str)
def test_what_looks_odd_and_is_right(changes: dict[str, Any]) -> None:
    read(changed(changes))


MISTAKES: list[tuple[dict[str, Any], str, str, str, str]] = [
    # sizes
    (
        {"gpuPool.vmSize": "Standard_ND96isr_H100v5"},
        'mlbatch:azure.gpuPool.vmSize = "Standard_ND96isr_H100v5"',
        "knows no such VM size",
        "Standard_ND96isr_H100_v5",
        "did you mean Standard_ND96isr_H100_v5?",
    ),
    (
        {"gpuPool.vmSize": "Standard_D96s_v5"},
        'mlbatch:azure.gpuPool.vmSize = "Standard_D96s_v5"',
        "has no GPU",
        "Standard_ND96isr_H100_v5, Standard_ND96isr_H200_v5",
        "take one of those",
    ),
    (
        {"systemPool.vmSize": "Standard_D2s_v3"},
        'mlbatch:azure.systemPool.vmSize = "Standard_D2s_v3"',
        "2 vCPUs are too few",
        "at least 4 vCPUs",
        "Standard_D4s_v5",
    ),
    (
        {"systemPool.vmSize": "Standard_B4ms"},
        'mlbatch:azure.systemPool.vmSize = "Standard_B4ms"',
        "burstable",
        "at least 4 vCPUs",
        "Standard_D4s_v5",
    ),
    (
        {"systemPool.vmSize": "Standard_NC24ads_A100_v4"},
        'mlbatch:azure.systemPool.vmSize = "Standard_NC24ads_A100_v4"',
        "has GPUs",
        "neither GPUs",
        "Standard_D4s_v5",
    ),
    (
        {"systemPool.vmSize": "m5.xlarge"},
        'mlbatch:azure.systemPool.vmSize = "m5.xlarge"',
        "no name of a VM size",
        "at least 4 vCPUs",
        "Standard_D4s_v5",
    ),
    # counts
    (
        {"gpuPool.count": -1},
        "mlbatch:azure.gpuPool.count = -1",
        "out of range",
        "a whole number from 0 to 1000",
        "set mlbatch:azure.gpuPool.count to a number in that range",
    ),
    (
        {"gpuPool.count": 5, "gpuPool.autoscale": {"min": 1, "max": 4}},
        "mlbatch:azure.gpuPool.count = 5",
        "above the autoscaler's maximum",
        "a whole number from 1 to 4",
        "change mlbatch:azure.gpuPool.autoscale",
    ),
    (
        {"gpuPool.count": 0, "gpuPool.autoscale": {"min": 1, "max": 4}},
        "mlbatch:azure.gpuPool.count = 0",
        "below the autoscaler's minimum",
        "a whole number from 1 to 4",
        "change mlbatch:azure.gpuPool.autoscale",
    ),
    (
        {"gpuPool.autoscale": {"min": 5, "max": 4}},
        "mlbatch:azure.gpuPool.autoscale.min = 5",
        "more than max, which is 4",
        "from 0 to 4",
        "lower min, or raise max",
    ),
    (
        {"gpuPool.autoscale": {"min": 0, "max": 4}},
        "mlbatch:azure.gpuPool.autoscale.min = 0",
        "does not know that one would have nvidia.com/mlnxnics",
        "1 or more",
        "set it to 1, or mlbatch:gpu.fabric.enabled to false",
    ),
    # the window of upgrades
    (
        {"upgrades.window": {"start": "2:00"}},
        'mlbatch:azure.upgrades.window.start = "2:00"',
        "no time of day",
        "00:00 to 23:59",
        "in quotes",
    ),
    (
        {"upgrades.window": {"start": 120}},
        "mlbatch:azure.upgrades.window.start = 120",
        "",
        "",
        "",
    ),
    (
        {"upgrades.window": {"day": "sunday"}},
        'mlbatch:azure.upgrades.window.day = "sunday"',
        "",
        "Sunday",
        "Sunday",
    ),
    (
        {"upgrades.window": {"hours": 3}},
        "mlbatch:azure.upgrades.window.hours = 3",
        "out of range",
        "from 4 to 24",
        "in that range",
    ),
    (
        {"upgrades.window": {"utcOffset": "CET"}},
        'mlbatch:azure.upgrades.window.utcOffset = "CET"',
        "no offset",
        "a sign, hours and minutes",
        "+01:00",
    ),
    (
        {"systemPool.count": 1},
        "mlbatch:azure.systemPool.count = 1",
        "out of range",
        "a whole number from 2 to 1000",
        "set mlbatch:azure.systemPool.count",
    ),
    # keys
    (
        {"sshPublicKey": SHORT},
        'mlbatch:azure.sshPublicKey = "ssh-rsa',
        "this key has 1024 bits",
        "at least 2048 bits",
        "ssh-keygen -t rsa -b 4096",
    ),
    (
        {"sshPublicKey": ED25519},
        'mlbatch:azure.sshPublicKey = "ssh-ed25519',
        "AKS takes no keys of type ssh-ed25519",
        "a public RSA key",
        "ssh-keygen -t rsa -b 4096",
    ),
    (
        {"sshPublicKey": ECDSA},
        'mlbatch:azure.sshPublicKey = "ecdsa',
        "AKS takes no keys of type ecdsa-sha2-nistp256",
        "a public RSA key",
        "ssh-keygen -t rsa -b 4096",
    ),
    # region
    (
        {"location": "East US"},
        'mlbatch:azure.location = "East US"',
        "this region is not known",
        "eastus",
        "did you mean eastus?",
    ),
    (
        {"location": "brazilsouth"},
        'mlbatch:azure.location = "brazilsouth"',
        "does not offer Standard_ND96isr_H100_v5, as of 2026-06-18",
        "eastus, eastus2",
        "anyRegion",
    ),
    (
        {"location": "westus"},
        'mlbatch:azure.systemPool.zones = ["1", "2", "3"]',
        "has no availability zones",
        "[]",
        "set it to []",
    ),
    (
        {"gpuPool.zones": ["4"]},
        'mlbatch:azure.gpuPool.zones = ["4"]',
        'there is no zone "4"',
        '"1", "2" and "3"',
        'for example ["1"]',
    ),
    (
        {"gpuPool.zones": ["1", "1"]},
        'mlbatch:azure.gpuPool.zones = ["1", "1"]',
        "twice",
        '"1", "2" and "3"',
        'for example ["1"]',
    ),
    (
        {"gpuPool.zones": [1]},
        "mlbatch:azure.gpuPool.zones[0] = 1",
        "this is a number",
        "a text",
        "write a text in quotes",
    ),
    (
        {"gpuPool.zones": ["1", "2"], "gpuPool.proximityPlacementGroup": True},
        "mlbatch:azure.gpuPool.proximityPlacementGroup = true",
        "in 2 zones",
        "one zone or none",
        "name one zone",
    ),
    # names
    (
        {"registry.name": "my-registry"},
        'mlbatch:azure.registry.name = "my-registry"',
        "Azure refuses this name of a registry",
        "5 to 50 letters and digits",
        "for example 'myregistry'",
    ),
    (
        {"registry.name": "abc"},
        'mlbatch:azure.registry.name = "abc"',
        "Azure refuses this name of a registry",
        "5 to 50 letters and digits",
        "for example 'abc00'",
    ),
    (
        {"storage.account": "Lab_Data"},
        'mlbatch:azure.storage.account = "Lab_Data"',
        "name of a storage account",
        "3 to 24 lower-case letters and digits",
        "for example 'labdata'",
    ),
    (
        {"storage.container": "my--data"},
        'mlbatch:azure.storage.container = "my--data"',
        "name of a container",
        "single hyphens",
        "for example 'my-data'",
    ),
    (
        {"resourceGroup": "my group."},
        'mlbatch:azure.resourceGroup = "my group."',
        "name of a resource group",
        "1 to 90",
        "for example 'my-group'",
    ),
    (
        {"clusterName": "-lab"},
        'mlbatch:azure.clusterName = "-lab"',
        "name of a cluster",
        "1 to 63",
        "for example 'lab'",
    ),
    (
        {"gpuPool.name": "GPU-pool-of-the-lab"},
        'mlbatch:azure.gpuPool.name = "GPU-pool-of-the-lab"',
        "name of a node pool",
        "1 to 12 lower-case",
        "for example 'gpupoolofthe'",
    ),
    (
        {"gpuPool.name": "system"},
        'mlbatch:azure.gpuPool.name = "system"',
        "the system pool has this name too",
        "no other pool",
        "another name",
    ),
    (
        {"adminUser": "root"},
        'mlbatch:azure.adminUser = "root"',
        "name of a nodes' administrator",
        "such as root",
        "for example 'azureuser'",
    ),
    (
        {"nodeResourceGroup": "MLBatch"},
        'mlbatch:azure.nodeResourceGroup = "MLBatch"',
        "AKS creates this group itself",
        "no group has",
        "another name",
    ),
    # version
    (
        {"kubernetesVersion": "1.28.5"},
        'mlbatch:azure.kubernetesVersion = "1.28.5"',
        "no such version",
        "1.37, 1.36, 1.35, 1.34",
        'set it to "1.35"',
    ),
    (
        {"kubernetesVersion": "1.33"},
        'mlbatch:azure.kubernetesVersion = "1.33"',
        "AKS supports this version until 2026-07-31 only",
        "1.37, 1.36, 1.35, 1.34, each alone or with a patch (AKS' calendar of 2026-08-05)",
        'set it to "1.35", or support to longTerm and tier to Premium, which lasts until 2027-07-31',
    ),
    (
        {"kubernetesVersion": "v1.35"},
        'mlbatch:azure.kubernetesVersion = "v1.35"',
        "no version of Kubernetes",
        "1.35.7",
        'for example "1.35"',
    ),
    (
        {"support": "longTerm"},
        'mlbatch:azure.support = "longTerm"',
        "part of tier Premium",
        "longTerm with tier Premium",
        "set mlbatch:azure.tier to Premium",
    ),
    (
        {"kubernetesVersion": "1.37"},
        'mlbatch:azure.osSku = "Ubuntu2204"',
        "1.25 to 1.36, not for 1.37",
        "Ubuntu",
        "take Ubuntu",
    ),
    # API server and access
    (
        {"apiServer": None},
        "mlbatch:azure.apiServer.authorizedRanges",
        "would be everybody",
        "exactly one of authorizedRanges, private: true and public: true",
        "name your networks",
    ),
    (
        {"apiServer.authorizedRanges": ["0.0.0.0/0"]},
        'mlbatch:azure.apiServer.authorizedRanges[0] = "0.0.0.0/0"',
        "open to everybody",
        "exactly one of",
        "public: true",
    ),
    (
        {"apiServer.private": True},
        "mlbatch:azure.apiServer",
        "authorizedRanges and private exclude each other",
        "exactly one of",
        "keep the one that is meant",
    ),
    (
        {"apiServer": {"private": True, "public": True}},
        "mlbatch:azure.apiServer",
        "private and public exclude each other",
        "exactly one of",
        "keep the one that is meant",
    ),
    (
        {"apiServer.authorizedRanges": ["203.0.113.0/24", "0.0.0.0/32"]},
        'mlbatch:azure.apiServer.authorizedRanges[1] = "0.0.0.0/32"',
        "nobody but the nodes",
        "0.0.0.0/32 alone",
        "remove it",
    ),
    (
        {"apiServer.authorizedRanges": [f"203.0.{index}.0/24" for index in range(201)]},
        "mlbatch:azure.apiServer.authorizedRanges = [",
        "these are 201 networks",
        "at most 200",
        "put neighbouring networks together",
    ),
    (
        {"apiServer.authorizedRanges": ["203.0.113.7/24"]},
        'mlbatch:azure.apiServer.authorizedRanges[0] = "203.0.113.7/24"',
        "the address of a machine",
        "an IPv4 network",
        "did you mean 203.0.113.0/24?",
    ),
    (
        {"access": None},
        "mlbatch:azure.access.adminGroups",
        "nobody could sign in",
        "object ids of Entra groups",
        "az ad group show",
    ),
    (
        {"access.adminGroups": ["ml-admins"]},
        'mlbatch:azure.access.adminGroups[0] = "ml-admins"',
        "no id as Azure and Entra write them",
        "a GUID",
        "az ad group show",
    ),
    (
        {"access.login": "local"},
        'mlbatch:azure.access.login = "local"',
        "local accounts are off",
        "local only with localAccounts: true",
        "take azurecli",
    ),
    (
        {"access": {"localAccounts": True}},
        'mlbatch:azure.access.login = "azurecli"',
        "no group administers the cluster",
        "local, or another login",
        "set it to local",
    ),
    (
        {"access.login": "devicecode"},
        "mlbatch:azure.access.login",
        "this login is not known",
        "azurecli, workloadidentity, spn, msi, local",
        "take one of those",
    ),
    # networks
    (
        {"network.podCidr": "pods"},
        'mlbatch:azure.network.podCidr = "pods"',
        "this is no network",
        "an IPv4 network",
        "a slash and the prefix length",
    ),
    (
        {"network.podCidr": "fd00::/48"},
        'mlbatch:azure.network.podCidr = "fd00::/48"',
        "an IPv6 network",
        "an IPv4 network",
        "write an IPv4 network",
    ),
    (
        {"network.serviceCidr": "10.244.0.0/18"},
        'mlbatch:azure.network.serviceCidr = "10.244.0.0/18"',
        "overlaps with podCidr, 10.244.0.0/16",
        "shares no address with 10.244.0.0/16",
        "another network",
    ),
    (
        {"network.podCidr": "10.128.0.0/16"},
        'mlbatch:azure.network.podCidr = "10.128.0.0/16"',
        "overlaps with vnetCidr, 10.128.0.0/20",
        "shares no address",
        "another network",
    ),
    (
        {"network.nodeCidr": "10.129.0.0/22"},
        'mlbatch:azure.network.nodeCidr = "10.129.0.0/22"',
        "not in the virtual network",
        "a network in 10.128.0.0/20",
        "take a part of it",
    ),
    (
        {"network.serviceCidr": "11.0.0.0/12"},
        'mlbatch:azure.network.serviceCidr = "11.0.0.0/12"',
        "no network of this size",
        "from 13 to 28",
        "take a /16",
    ),
    (
        {"network.podCidr": "10.244.0.0/22", "gpuPool.count": 2},
        'mlbatch:azure.network.podCidr = "10.244.0.0/22"',
        "room for 4 nodes (a /24 each), and there can be 4, and one more in an upgrade",
        "a network for 5 nodes",
        "take a /21 or larger",
    ),
    (
        {"network.nodeCidr": "10.128.4.0/29", "gpuPool.autoscale": {"max": 8}},
        'mlbatch:azure.network.nodeCidr = "10.128.4.0/29"',
        "room for 3 nodes",
        "a network for 11 nodes",
        "take a /28 or larger",
    ),
    (
        {"storage.allowedRanges": ["10.0.0.0/24"]},
        'mlbatch:azure.storage.allowedRanges[0] = "10.0.0.0/24"',
        "public networks only",
        "the nodes' subnet is let in anyway",
        "remove it",
    ),
    (
        {"storage.allowedRanges": ["0.0.0.0/0"]},
        'mlbatch:azure.storage.allowedRanges[0] = "0.0.0.0/0"',
        "every address",
        "a prefix length from 1 to 30",
        "name your own networks",
    ),
    *(
        (
            {"location": region, "storage.sku": sku, "gpuPool.anyRegion": True},
            f'mlbatch:azure.storage.sku = "{sku}"',
            f"copies in the region's pair, and region {region} has none",
            "Standard_LRS, Standard_ZRS",
            "take one of those",
        )
        for region, sku in (("polandcentral", "Standard_GRS"), ("italynorth", "Standard_GZRS"))
    ),
    # GB200
    (
        {
            "gpuPool.vmSize": "Standard_ND128isr_NDR_GB200_v6",
            "osSku": "Ubuntu",
            "feature.assumeRegistered": True,
        },
        "mlbatch:azure.feature.assumeRegistered = true",
        "works only while the subscription does not have AKSInfinibandSupport",
        "false with this VM size",
        "az feature unregister",
    ),
    (
        {"gpuPool.vmSize": "Standard_ND128isr_NDR_GB200_v6"},
        'mlbatch:azure.osSku = "Ubuntu2204"',
        "needs Ubuntu 24.04",
        "Ubuntu with Kubernetes 1.35 or later",
        "set osSku to Ubuntu",
    ),
    # tags
    (
        {"tags": {f"tag{index}": "" for index in range(51)}},
        "mlbatch:azure.tags = {",
        "these are 51 tags",
        "at most 50 tags",
        "remove 1 of them",
    ),
    (
        {"tags": {"a/b": "c"}},
        'mlbatch:azure.tags = {"a/b": "..."}',
        "Azure refuses the tag name 'a/b'",
        "other than <>%&",
        "another name",
    ),
    (
        {"tags": {"a": "x" * 257}},
        "mlbatch:azure.tags = {",
        "has 257 characters",
        "at most 256 characters",
        "shorten it",
    ),
    (
        {"tags": {"Team": "a", "team": "b"}},
        "mlbatch:azure.tags = {",
        "does not tell cases apart",
        "at most 50 tags",
        "remove one",
    ),
    # keys that are missing or mean nothing
    ({"location": None}, "mlbatch:azure.location", "required", "a text", "add location"),
    ({"sshPublicKey": None}, "mlbatch:azure.sshPublicKey", "required", "a text", "add sshPublicKey"),
    ({"gpuPool.size": "big"}, "mlbatch:azure.gpuPool.size", "no key 'size'", "vmSize", ""),
]


@pytest.mark.parametrize(
    ("changes", "where", "wrong", "allowed", "fix"), MISTAKES, ids=[str(item[0])[:60] for item in MISTAKES]
)
def test_a_mistake_is_told_once_and_in_full(
    changes: dict[str, Any], where: str, wrong: str, allowed: str, fix: str
) -> None:
    found = problems(changed(changes))
    assert len(found) == 1, [str(problem) for problem in found]
    (problem,) = found
    assert str(problem).startswith(where)
    assert wrong in problem.message
    assert allowed in problem.expected
    assert fix in problem.hint


@pytest.mark.parametrize("network", ["10.0.0.0/13", "10.220.0.0/28"])
def test_the_largest_and_the_smallest_network_of_services_that_aks_takes(network: str) -> None:
    assert [str(problem) for problem in problems(changed({"network.serviceCidr": network}))] == []


LATER: list[tuple[date, dict[str, Any], str]] = [
    (date(2027, 3, 1), {}, ""),
    (date(2027, 3, 2), {}, 'which AKS supports until 2027-03-31 only.* set it to "1.36", or support to longTerm'),
    (date(2027, 4, 1), {}, 'which AKS supports until 2027-03-31 only.* set it to "1.36", or support to longTerm'),
    (date(2027, 4, 1), {"kubernetesVersion": "1.36"}, ""),
    (date(2026, 12, 1), {"kubernetesVersion": "1.34.3", "osSku": "Ubuntu"}, 'is 1.34.3, which .* set it to "1.35"'),
    (date(2028, 4, 1), {"support": "longTerm", "tier": "Premium"}, 'until 2028-03-31 only.* set it to "1.36"$'),
    (date(2030, 1, 1), {}, "until 2027-03-31 only.* take a later release of this program"),
    (date(2030, 1, 1), {"kubernetesVersion": "1.37", "osSku": "Ubuntu"}, "take a later release of this program"),
]


@pytest.mark.parametrize(("day", "changes", "wanted"), LATER, ids=[f"{day} {changes}" for day, changes, _ in LATER])
def test_no_date_takes_the_updates_from_a_cluster_that_runs(
    monkeypatch: pytest.MonkeyPatch, day: date, changes: dict[str, Any], wanted: str
) -> None:
    """AKS updates and scales clusters of any version, and creates none of an old one: the program sees no cluster."""
    monkeypatch.setattr(support, "today", lambda: day)
    raw = {"target": "aks", "azure": changed(changes)}
    assert [str(problem) for problem in problems(changed(changes))] == []
    found = [text for text in rules.warnings(partial_of(raw)) if "kubernetesVersion" in text and "AKS" in text]
    assert len(found) == bool(wanted), found
    assert all(re.search(wanted, text) for text in found), found


@pytest.mark.parametrize(
    ("secret", "wrong"),
    [
        (PRIVATE, "this is a private key"),
        (PRIVATE.replace("\n", " "), "this is a private key"),
        (f"{PUBLIC}x$ somebody", "no public key as OpenSSH writes them"),
        ("MIIEpAIBAAKCAQEA7", "no public key as OpenSSH writes them"),
        (f"{PUBLIC}\n{PUBLIC}", "these are several lines"),
    ],
    ids=["private", "private in one line", "malformed", "something else", "several"],
)
def test_a_key_that_might_be_secret_is_never_shown(secret: str, wrong: str) -> None:
    (problem,) = problems(changed({"sshPublicKey": secret}))
    assert key(problem.path) == "mlbatch:azure.sshPublicKey"
    assert wrong in problem.message
    assert "ssh-keygen" in problem.hint or ".pub" in problem.hint
    assert not [piece for piece in secret.split() if len(piece) > 16 and piece[:16] in str(problem)]


def test_all_mistakes_are_told_at_once() -> None:
    found = problems(changed({"registry.name": "a-b", "gpuPool.count": -1, "location": "nowhere", "tags": {"a/b": ""}}))
    assert {key(problem.path) for problem in found} == {
        "mlbatch:azure.registry.name",
        "mlbatch:azure.gpuPool.count",
        "mlbatch:azure.location",
        "mlbatch:azure.tags",
    }
    found = problems(changed({"apiServer": None, "access": None, "kubernetesVersion": "1.32"}))
    assert {key(problem.path) for problem in found} == {
        "mlbatch:azure.apiServer.authorizedRanges",
        "mlbatch:azure.access.adminGroups",
        "mlbatch:azure.kubernetesVersion",
    }


def test_the_rules_say_nothing_about_a_section_that_could_not_be_read() -> None:
    found = problems(changed({"location": "nowhere", "apiServer": None}))
    assert [key(problem.path) for problem in found] == ["mlbatch:azure.location"]
