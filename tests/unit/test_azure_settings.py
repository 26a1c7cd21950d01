"""Every error in section azure gives a message with its key, its value, the allowed values and the fix."""

import re
from datetime import date
from enum import Enum
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from pulumi_azure_native import containerregistry, containerservice, storage

from components import names
from stacks.config.errors import ConfigError
from stacks.settings import support_end
from stacks.targets.aks.settings import options as settings
from stacks.targets.aks.settings.azure import AzureSettings
from stacks.validation import rules
from tests.unit import configurations
from tests.unit.configurations import ABSENT, errors_of, partial_of

GROUP = "6f1c1b0e-3f0a-4f5e-9a57-2f3f0d4c7a11"


def _public(private: Any) -> str:
    encoding, form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    return str(private.public_key().public_bytes(encoding, form).decode())


RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PUBLIC = _public(RSA)
SHORT = _public(rsa.generate_private_key(public_exponent=65537, key_size=1024))
ED25519 = _public(ed25519.Ed25519PrivateKey.generate())
ECDSA = _public(ec.generate_private_key(ec.SECP256R1()))


def valid() -> dict[str, Any]:
    """A section without errors."""
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
    return configurations.changed(valid(), {key: ABSENT if value is None else value for key, value in changes.items()})


def problems(section: dict[str, Any]) -> list[ConfigError]:
    """Return the errors of the section, without those that depend on other sections."""
    return [error for error in errors_of({"target": "aks", "azure": section}) if error.path[0] == "azure"]


def read(section: dict[str, Any]) -> AzureSettings:
    assert [str(error) for error in problems(section)] == []
    azure = partial_of({"target": "aks", "azure": section}).section(AzureSettings)
    assert azure is not None
    return azure


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


LATER: list[tuple[date, dict[str, Any], str]] = [
    (date(2027, 1, 30), {}, ""),
    (date(2027, 1, 31), {}, 'which AKS supports until 2027-03-31.* set it to "1.36", or support to longTerm'),
    (date(2027, 4, 1), {}, 'which AKS supports until 2027-03-31.* set it to "1.36", or support to longTerm'),
    (date(2027, 4, 1), {"kubernetesVersion": "1.36"}, ""),
    (date(2026, 12, 1), {"kubernetesVersion": "1.34.3", "osSku": "Ubuntu"}, 'is 1.34.3, which .* set it to "1.35"'),
    (date(2028, 4, 1), {"support": "longTerm", "tier": "Premium"}, 'until 2028-03-31.* set it to "1.36"$'),
    (date(2030, 1, 1), {}, "until 2027-03-31.* use a later release of this program"),
    (date(2030, 1, 1), {"kubernetesVersion": "1.37", "osSku": "Ubuntu"}, "use a later release of this program"),
]


@pytest.mark.parametrize(("day", "changes", "wanted"), LATER, ids=[f"{day} {changes}" for day, changes, _ in LATER])
def test_no_date_takes_the_updates_from_a_cluster_that_runs(
    monkeypatch: pytest.MonkeyPatch, day: date, changes: dict[str, Any], wanted: str
) -> None:
    """AKS updates and scales clusters of any version, but creates none of an old one. The program sees no cluster."""
    monkeypatch.setattr(support_end, "today", lambda: day)
    raw = {"target": "aks", "azure": changed(changes)}
    assert [str(problem) for problem in problems(changed(changes))] == []
    found = [text for text in rules.warnings(partial_of(raw)) if "kubernetesVersion" in text and "AKS" in text]
    assert len(found) == bool(wanted), found
    assert all(re.search(wanted, text) for text in found), found
