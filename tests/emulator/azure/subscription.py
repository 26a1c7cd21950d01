"""A subscription for one test: the emulated Azure without an engine and a cluster, with a manual clock."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from emulator.azure import drain, faults
from emulator.azure.arm import Arm
from emulator.azure.errors import refused
from emulator.azure.facts import AzureFacts
from emulator.azure.lifecycle import Lifecycle
from emulator.azure.local_cluster import taken
from emulator.azure.nodes import Node
from emulator.azure.services import KINDS, resources
from emulator.azure.store import Store
from emulator.cluster.credentials import Account
from emulator.plugin.operation import Operation

GROUP = "azure-native:resources:ResourceGroup"
CLUSTER = "azure-native:containerservice:ManagedCluster"
POOL = "azure-native:containerservice:AgentPool"
REGISTRY = "azure-native:containerregistry:Registry"
NETWORK = "azure-native:network:VirtualNetwork"
SUBNET = "azure-native:network:Subnet"
ACCOUNT = "azure-native:storage:StorageAccount"
IDENTITY = "azure-native:managedidentity:UserAssignedIdentity"
FEDERATION = "azure-native:managedidentity:FederatedIdentityCredential"
ASSIGNMENT = "azure-native:authorization:RoleAssignment"
FEATURE = "azure-native:features:SubscriptionFeatureRegistration"
GROUP_DEPLOYMENT = "azure-native:resources:Deployment"
DEPLOYMENT = "azure-native:resources:DeploymentAtSubscriptionScope"

H100 = "Standard_ND96isr_H100_v5"
KEY = rsa.generate_private_key(65537, 2048).public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


class NoCluster:
    """Records calls instead of changing a cluster.

    taken: objects of another owner in the cluster.
    budgets: its PodDisruptionBudgets.
    drained: names of the nodes that were drained.
    blocked: the node that cannot be drained.
    """

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.emptied = 0
        self.taken = ""
        self.budgets: list[dict[str, Any]] = []
        self.drained: list[str] = []
        self.blocked = ""

    def require_free(self) -> None:
        if self.taken:
            raise taken(self.taken)

    def follow(self, nodes: Sequence[Node]) -> None:
        self.nodes = list(nodes)

    def unsatisfiable_budgets(self) -> list[str]:
        return drain.unsatisfiable(self.budgets)

    def drain(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if node.name == self.blocked:
                raise refused("TooManyRequestsForEviction", node=node.name, pod="blue/gang-0")
            self.drained.append(node.name)

    def empty(self) -> None:
        self.emptied += 1
        self.nodes = []

    def credentials(self) -> Account:
        return Account("https://127.0.0.1:6443", "-----BEGIN CERTIFICATE-----\n", "administrator-token")


class Clock:
    """A clock that advances only when a caller waits."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Messages:
    """The messages that the engine would show."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def show(self, urn: str, status: str) -> None:
        self.texts.append(status)


class Waiting(Operation):
    """A call of the engine with the test's clock."""

    def __init__(self, clock: Clock, messages: Messages, urn: str) -> None:
        super().__init__(urn, messages)
        self._clock = clock

    def sleep(self, seconds: float) -> None:
        super().sleep(0)
        self._clock.sleep(seconds)


class Subscription:
    """The provider on a subscription, with short forms of the engine's calls.

    prepared: its owner has registered features before, like in a local environment.
    """

    def __init__(self, folder: Path, *, prepared: bool = False) -> None:
        self._numbers = itertools.count()
        self.clock = Clock()
        self.cluster = NoCluster()
        self.messages = Messages()
        self.store = Store(folder)
        self.facts = AzureFacts.of(folder / "facts.yaml")
        if not prepared:
            self.facts = self.facts.model_copy(update={"prepared_features": {}})
        self.arm = Arm(self.store, self.facts, self.cluster, self.clock)
        self.lifecycle = Lifecycle(self.arm)

    def again(self, folder: Path) -> Subscription:
        """Return the same state as seen by another process."""
        other = Subscription(folder)
        other.clock = self.clock
        other.arm = Arm(other.store, other.facts, other.cluster, self.clock)
        other.lifecycle = Lifecycle(other.arm)
        return other

    @property
    def operation(self) -> Waiting:
        return self.operation_on(f"urn:pulumi:test::test::t::{next(self._numbers)}")

    def operation_on(self, urn: str) -> Waiting:
        """Return a call of the engine for one resource of its program."""
        return Waiting(self.clock, self.messages, urn)

    def check(
        self, token: str, before: dict[str, Any] | None = None, **inputs: Any
    ) -> tuple[dict[str, Any], list[str]]:
        """Return the checked inputs and the reasons of the failures."""
        checked, problems = self.lifecycle.check(token, inputs, before or {}, "")
        return checked, [reason for _, reason in problems]

    def create(self, token: str, **inputs: Any) -> tuple[str, dict[str, Any]]:
        """Check and create; return id and outputs."""
        checked, problems = self.check(token, **inputs)
        assert problems == [], problems
        return self.lifecycle.create(token, checked, self.operation)

    def update(self, token: str, resource_id: str, **inputs: Any) -> dict[str, Any]:
        checked, problems = self.check(token, **inputs)
        assert problems == [], problems
        return self.lifecycle.update(token, resource_id, checked, self.operation)

    def delete(self, token: str, resource_id: str) -> None:
        self.lifecycle.delete(token, resource_id, self.operation)

    def group(self, name: str = "rg", location: str = "eastus") -> str:
        return self.create(GROUP, resourceGroupName=name, location=location)[0]

    def register(self, feature: str = "AKSInfinibandSupport") -> str:
        """Register a feature by a template, because the official provider cannot create a registration."""
        resource = {
            "type": "Microsoft.Features/featureProviders/subscriptionFeatureRegistrations",
            "apiVersion": "2021-07-01",
            "name": f"Microsoft.ContainerService/{feature}",
            "properties": {},
        }
        template = {"mode": "Incremental", "template": {"resources": [resource]}}
        return self.create(DEPLOYMENT, deploymentName="feature", location="eastus", properties=template)[0]

    def propagate(self) -> None:
        """Make AKS use the registered features."""
        with self.arm.edit() as state:
            resources.propagate(state, "Microsoft.ContainerService")

    def fault(self, target: str, kind: str, times: int) -> None:
        """Make the next requests to a target fail."""
        with self.arm.edit() as state:
            faults.add(state, target, kind, times)

    def clear_faults(self) -> None:
        with self.arm.edit() as state:
            faults.clear(state)

    def managed_cluster(self, **changes: Any) -> tuple[str, dict[str, Any]]:
        return self.create(CLUSTER, **cluster_inputs(**changes))

    def pool(self, **changes: Any) -> tuple[str, dict[str, Any]]:
        return self.create(POOL, **pool_inputs(**changes))

    def node_names(self) -> list[str]:
        return [node.name for node in self.cluster.nodes]

    def node(self, name: str) -> Node:
        return next(node for node in self.cluster.nodes if node.name == name)


def system_pool(**changes: Any) -> dict[str, Any]:
    pool = {"name": "system", "mode": "System", "count": 2, "vmSize": "Standard_D4s_v5", "osSKU": "Ubuntu"}
    return _changed(pool, changes)


def cluster_inputs(**changes: Any) -> dict[str, Any]:
    inputs = {
        "resourceGroupName": "rg",
        "resourceName": "aks",
        "location": "eastus",
        "dnsPrefix": "aks",
        "identity": {"type": "SystemAssigned"},
        "nodeResourceGroup": "rg-nodes",
        "agentPoolProfiles": [system_pool()],
        "linuxProfile": {"adminUsername": "azureuser", "ssh": {"publicKeys": [{"keyData": KEY}]}},
    }
    return _changed(inputs, changes)


def pool_inputs(**changes: Any) -> dict[str, Any]:
    inputs = {
        "resourceGroupName": "rg",
        "resourceName": "aks",
        "agentPoolName": "ndv5",
        "count": 2,
        "vmSize": H100,
        "osDiskSizeGB": 128,
        "osSKU": "Ubuntu",
        "mode": "User",
        "gpuProfile": {"driver": "None"},
        "nodeTaints": ["nvidia.com/gpu=present:NoSchedule"],
    }
    return _changed(inputs, changes)


def _changed(inputs: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return the inputs with changes; None removes an input."""
    return {key: value for key, value in {**inputs, **changes}.items() if value is not None}


KNOWN = tuple(KINDS)
TOKENS: Mapping[str, str] = {token.rpartition(":")[2]: token for token in KINDS}
USUAL: Mapping[str, Mapping[str, Any]] = {
    **yaml.safe_load((Path(__file__).parent / "inputs.yaml").read_text()),
    "AgentPool": pool_inputs(),
    "ManagedCluster": cluster_inputs(),
}
"""The usual inputs of a resource, by the last part of its token."""


def changed(kind: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the usual inputs with changes. None removes an input. The pools of a cluster have the usual inputs too."""
    inputs = _changed({**USUAL[kind]}, {**changes})
    if "agentPoolProfiles" in inputs:
        inputs["agentPoolProfiles"] = [system_pool(**pool) for pool in inputs["agentPoolProfiles"]]
    return inputs
