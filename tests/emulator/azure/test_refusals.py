"""Requests that Azure Resource Manager rejects, by error code."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from emulator.azure.errors import ArmError
from emulator.plugin.errors import ProviderError
from tests.emulator.azure.subscription import FEDERATION, H100, IDENTITY, TOKENS, USUAL, Subscription, changed

CASES = yaml.safe_load((Path(__file__).parent / "refusals.yaml").read_text())


def public_key(private: Any) -> str:
    return str(private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode())


class Requests:
    """Sends the requests of a case. made: id and outputs by the names that later requests use."""

    def __init__(self, azure: Subscription) -> None:
        self.azure = azure
        roles = f"/subscriptions/{azure.facts.subscription_id}/providers/Microsoft.Authorization/roleDefinitions"
        self.made: dict[str, tuple[str, Mapping[str, Any]]] = {
            "subscription": (azure.facts.subscription_id, {}),
            "roles": (roles, {}),
            "ed25519": (public_key(ed25519.Ed25519PrivateKey.generate()), {}),
            "short": (public_key(rsa.generate_private_key(65537, 1024)), {}),
        }

    def send(self, step: Mapping[str, Any]) -> None:
        """Send a request. It is rejected if its step has a code."""
        way = next(name for name in ("create", "update", "delete") if name in step)
        kind = step[way]
        if way == "delete":
            self.azure.delete(TOKENS[kind], self.filled(step.get("id", f"${kind}")))
            return
        inputs = self.filled(changed(kind, step.get("with", {})))
        if way == "create":
            identifier, outputs = self.azure.create(TOKENS[kind], **inputs)
        else:
            identifier = self.made[kind][0]
            outputs = self.azure.update(TOKENS[kind], identifier, **inputs)
        self.made[step.get("as", kind)] = identifier, outputs
        assert self.filled(step.get("outputs", {})).items() <= outputs.items()

    def filled(self, value: Any) -> Any:
        """Return a value with its references replaced."""
        if isinstance(value, Mapping):
            return {key: self.filled(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.filled(inner) for inner in value]
        return re.sub(r"\$(\w+)((?:\.\w+)*)", self._made, value) if isinstance(value, str) else value

    def _made(self, found: re.Match[str]) -> str:
        identifier, outputs = self.made[found[1]]
        value: Any = outputs if found[2] else identifier
        for key in found[2].split(".")[1:]:
            value = value[key]
        return str(value)


@pytest.mark.parametrize("case", CASES)
def test_a_request_that_azure_rejects(azure: Subscription, case: str) -> None:
    azure.group()
    requests = Requests(azure)
    for step in CASES[case]:
        if "code" not in step:
            requests.send(step)
            continue
        nodes = azure.node_names()
        with pytest.raises(ArmError) as caught:
            requests.send(step)
        assert (caught.value.code, f'Code="{step["code"]}"' in str(caught.value)) == (step["code"], True), step
        assert azure.node_names() == nodes


def test_an_existing_resource_is_not_created_again(azure: Subscription) -> None:
    azure.group()
    with pytest.raises(ProviderError, match="cannot create already existing resource '/subscriptions/"):
        azure.group()


def test_an_identity_trusts_twenty_subjects_at_most(azure: Subscription) -> None:
    azure.group()
    azure.create(IDENTITY, **USUAL["UserAssignedIdentity"])

    def trust(subject: str) -> None:
        inputs = {**USUAL["FederatedIdentityCredential"], "subject": subject}
        azure.create(FEDERATION, **{**inputs, "federatedIdentityCredentialResourceName": subject[:9]})

    for number in range(20):
        trust(f"subject{number}")
    for subject in ("last", "b" * 601):
        with pytest.raises(ArmError, match='Code="BadRequest"'):
            trust(subject)


def test_a_cluster_is_refused_if_the_local_cluster_has_another_use(azure: Subscription) -> None:
    azure.group()
    azure.cluster.taken = "the node gpu-node-0"
    with pytest.raises(ArmError, match='Code="LocalClusterInUse"'):
        azure.managed_cluster()


def test_a_size_that_the_region_does_not_offer_names_those_that_do(azure: Subscription) -> None:
    azure.group()
    azure.managed_cluster(location="northeurope")
    with pytest.raises(ArmError, match=r"Offered in australiaeast, .*eastus") as caught:
        azure.pool()
    assert caught.value.code == "SkuNotAvailable"
    assert H100 in caught.value.message
