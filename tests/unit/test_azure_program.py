"""The Azure part of target `aks`, as the stack composes it: the emulated Azure accepts all of it."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import yaml

from components.azure.feature import FeatureError
from emulator.azure import functions
from stacks.config.inputs import interpret
from stacks.targets.aks import infrastructure
from tests.emulator.azure.subscription import Subscription
from tests.unit.configurations import ROOT
from tests.unit.harness import Record, Registered, build
from tests.unit.releases import FOLDER
from tests.unit.tables import table
from tests.unit.test_azure_settings import changed

FUNCTIONS = (
    "azure-native:features:getSubscriptionFeatureRegistration",
    "azure-native:containerservice:listManagedClusterUserCredentials",
    "azure-native:containerservice:listManagedClusterAdminCredentials",
)


class Run:
    """One run of the program on a subscription. created: id and outputs of each resource, by type and name."""

    def __init__(
        self,
        folder: Path,
        changes: dict[str, Any],
        *,
        prepared: bool = True,
        sections: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """prepared: the subscription's owner has registered the feature before. sections: besides `azure`."""
        any_version = {"gpu": {"fabric": {"enabled": False}}, "scheduling": {"packing": "none"}}
        files = {"artifacts": str(FOLDER), "verify": False}
        raw = {"target": "aks", "azure": changed(changes), "mirror": files, **any_version, **sections}
        self.settings = interpret(raw, base=ROOT, environment={}).settings
        self.azure = self.settings.azure
        self.subscription = Subscription(folder, prepared=prepared)
        self.created: dict[tuple[str, str], tuple[str, dict[str, Any]]] = {}
        self.kubeconfig = ""
        self.record: Record = build(self._program, calls=self._functions(), outputs=self._create)

    def one(self, kind: str) -> Registered:
        """Return the one resource of a type."""
        (found,) = [item for item in self.record.resources if item.type == f"azure-native:{kind}"]
        return found

    def drift(self) -> list[str]:
        """Return the types and properties that a refresh would report."""
        found = []
        for item in self.record.resources:
            if (key := (item.type, item.name)) in self.created:
                resource_id, outputs = self.created[key]
                inputs, _ = self.subscription.check(item.type, **_whole(item.inputs))
                now = self.subscription.lifecycle.read(item.type, resource_id, outputs, inputs)
                changes = self.subscription.lifecycle.diff(item.type, now.inputs, inputs, list(item.ignore_changes))
                found += [f"{item.type} {path}" for path in changes]
        return found

    def replaced_after_an_import(self) -> set[str]:
        """Return the types that the next update would replace after an import by id."""
        found = set()
        for item in self.record.resources:
            if (key := (item.type, item.name)) in self.created:
                inputs, _ = self.subscription.check(item.type, **_whole(item.inputs))
                imported = self.subscription.lifecycle.read(item.type, self.created[key][0], {}, {})
                changes = self.subscription.lifecycle.diff(
                    item.type, imported.inputs, inputs, list(item.ignore_changes)
                )
                if any(
                    each.replaces or path.partition(".")[0] in item.replace_on_changes for path, each in changes.items()
                ):
                    found.add(item.type)
        return found

    def _program(self) -> None:
        created = infrastructure.create(self.settings)
        created.kubeconfig.apply(lambda text: setattr(self, "kubeconfig", text))

    def _create(self, kind: str, name: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        if not kind.startswith("azure-native:"):
            return {}
        resource_id, outputs = self.subscription.create(kind, **_whole(inputs))
        self.created[kind, name] = resource_id, outputs
        return {**outputs, "id": resource_id}

    def _functions(self) -> Mapping[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]]:
        def function(token: str) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
            return lambda arguments: functions.answer(self.subscription.arm, token, dict(arguments))

        return {token: function(token) for token in FUNCTIONS}


def _whole(value: Any) -> Any:
    """Return a value with whole numbers as such: on the wire all numbers are floats."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: _whole(item) for key, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list | tuple) else value


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    """Runs the program with changed settings. Waits use the subscription's clock."""
    real = asyncio.sleep
    running: list[Subscription] = []

    async def sleep(seconds: float) -> None:
        for one in running:
            one.clock.sleep(seconds)
        await real(0)

    def subscribed(self: Subscription, folder: Path, start: Any = Subscription.__init__, **more: Any) -> None:
        start(self, folder, **more)
        running.append(self)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    monkeypatch.setattr(Subscription, "__init__", subscribed)
    return lambda **changes: Run(tmp_path, {key.replace("__", "."): value for key, value in changes.items()})


VARIANTS: dict[str, dict[str, Any]] = table("azure_program", "variants")


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
def test_azure_takes_it_all_and_reads_it_back_unchanged(run: Callable[..., Run], changes: dict[str, Any]) -> None:
    found = run(**changes)
    assert found.drift() == []
    pools = [name for name in found.subscription.node_names() if "-ndv5-" in name]
    assert len(pools) == found.azure.gpu_pool.count
    assert yaml.safe_load(found.kubeconfig)["kind"] == "Config"
    # What a killed update has made is imported, but rights, which are deleted (pulumi/pulumi-azure-native, issue 4812).
    assert found.replaced_after_an_import() == {"azure-native:authorization:RoleAssignment"}


def test_each_identity_has_rights_in_the_containers_that_are_mounted_as_it_and_in_no_other(
    run: Callable[..., Run], tmp_path: Path
) -> None:
    assert run  # waits use the subscription's clock
    volumes = [
        {"name": "data", "container": "data"},
        {"name": "corpus", "container": "corpus", "namespace": "blue", "access": "workloadIdentity"},
        {
            "name": "results",
            "container": "corpus",
            "namespace": "blue",
            "access": "workloadIdentity",
            "readOnly": False,
        },
        {"name": "shared", "container": "data", "namespace": "blue", "access": "workloadIdentity"},
        {"name": "theirs", "account": "others", "container": "data", "namespace": "red", "access": "workloadIdentity"},
    ]
    teams = [{"name": name, "users": ["a"], "share": 1} for name in ("blue", "red")]
    small = [{**volume, "capacity": "1Ti"} for volume in volumes]
    found = Run(tmp_path, {}, sections={"storage": {"volumes": small}, "teams": teams})
    assert found.drift() == []
    created = {name: outputs for (kind, name), (_, outputs) in found.created.items() if kind.endswith("Identity")}
    assert {name.removeprefix(f"{found.azure.cluster_name}-") for name in created} == {
        "cluster",
        "nodes",
        "in-blue",
        "in-red",
    }
    principals = {outputs["principalId"]: name for name, outputs in created.items()}
    blobs = {"2a2b9908-6ea1-4ae2-8e65-a410df84e7d1": "reads", "ba92f5b4-2d11-453d-a403-e96b0029c9fe": "writes"}
    rights = {
        (
            principals[item.inputs["principalId"]].removeprefix(f"{found.azure.cluster_name}-"),
            blobs[item.inputs["roleDefinitionId"].rpartition("/")[2]],
            item.inputs["scope"].partition("/storageAccounts/")[2],
        )
        for item in found.record.resources
        if item.type == "azure-native:authorization:RoleAssignment" and "/storageAccounts/" in item.inputs["scope"]
    }
    account = found.azure.storage.account
    assert rights == {
        ("nodes", "reads", f"{account}/blobServices/default/containers/data"),
        ("in-blue", "writes", f"{account}/blobServices/default/containers/corpus"),
        ("in-blue", "reads", f"{account}/blobServices/default/containers/data"),
    }
    trusted = {
        item.inputs["subject"]: item.inputs["issuer"]
        for item in found.record.resources
        if item.type.endswith(":FederatedIdentityCredential")
    }
    assert trusted.keys() == {"system:serviceaccount:blue:default", "system:serviceaccount:red:default"}
    cluster = found.created["azure-native:containerservice:ManagedCluster", found.azure.cluster_name][1]
    assert set(trusted.values()) == {cluster["oidcIssuerProfile"]["issuerURL"]}


def test_what_stands_on_what(run: Callable[..., Run]) -> None:
    found = run()
    pool, cluster = found.one("containerservice:AgentPool"), found.one("containerservice:ManagedCluster")
    group, feature = found.one("resources:ResourceGroup"), found.one("resources:DeploymentAtSubscriptionScope")
    before_cluster, before_pool = found.record.closure(cluster), found.record.closure(pool)
    assert {group.urn, feature.urn, found.one("network:Subnet").urn} <= before_cluster
    assert {cluster.urn, feature.urn} <= before_pool
    for item in found.record.resources:
        if item.type.startswith("azure-native:") and item not in (group, feature):
            assert group.urn in found.record.closure(item), item.type


def test_no_node_is_paid_for_before_aks_knows_of_a_feature_that_was_registered_just_now(
    run: Callable[..., Run], tmp_path: Path
) -> None:
    assert run  # waits use the subscription's clock
    with pytest.raises(FeatureError, match="az provider register"):
        Run(tmp_path, {}, prepared=False)
    stopped = Subscription(tmp_path)
    assert stopped.node_names() == []
    assert not stopped.arm.state().of_type("Microsoft.ContainerService/managedClusters")
    told = Subscription(tmp_path / "told")
    told.register()
    told.clock.sleep(60)
    told.propagate()
    again = Run(tmp_path / "told", {}, prepared=False)
    ports = [node.annotations.get("hardware.emulator/infiniband") for node in again.subscription.cluster.nodes]
    assert ports.count("8") == again.azure.gpu_pool.count


WINDOW = {
    "durationHours": 8,
    "schedule": {"weekly": {"dayOfWeek": "Sunday", "intervalWeeks": 1}},
    "startTime": "02:00",
    "utcOffset": "+00:00",
}


@pytest.mark.parametrize(
    ("upgrades", "names"),
    [
        ({}, set()),
        ({"nodeOs": "NodeImage"}, {"aksManagedNodeOSUpgradeSchedule"}),
        (
            {"nodeOs": "SecurityPatch", "kubernetes": "patch"},
            {"aksManagedNodeOSUpgradeSchedule", "aksManagedAutoUpgradeSchedule"},
        ),
        ({"nodeOs": "Unmanaged"}, set()),
    ],
    ids=lambda value: str(value)[:40],
)
def test_nodes_are_upgraded_in_a_window_alone(
    run: Callable[..., Run], upgrades: dict[str, Any], names: set[str]
) -> None:
    found = run(**{f"upgrades__{key}": value for key, value in upgrades.items()})
    windows = {
        item.inputs["configName"]: item.inputs["maintenanceWindow"]
        for item in found.record.resources
        if item.type == "azure-native:containerservice:MaintenanceConfiguration"
    }
    assert windows.keys() == names
    assert all(window == WINDOW for window in windows.values())
    assert found.drift() == []


def test_the_window_is_the_one_that_is_asked_for(run: Callable[..., Run]) -> None:
    window = {"day": "Wednesday", "start": "22:30", "hours": 4, "everyWeeks": 2, "utcOffset": "-08:00"}
    found = run(upgrades__nodeOs="NodeImage", upgrades__window=window)
    assert found.one("containerservice:MaintenanceConfiguration").inputs["maintenanceWindow"] == {
        "durationHours": 4,
        "schedule": {"weekly": {"dayOfWeek": "Wednesday", "intervalWeeks": 2}},
        "startTime": "22:30",
        "utcOffset": "-08:00",
    }


def test_a_replaced_cluster_gets_its_pool_and_its_window_anew(run: Callable[..., Run]) -> None:
    """They are named alike and look alike on the new one, and went with the old one."""
    found = run(upgrades__nodeOs="NodeImage")
    cluster = found.one("containerservice:ManagedCluster")
    by_urn = {item.urn: item for item in found.record.resources}
    for kind in ("AgentPool", "MaintenanceConfiguration"):
        item = found.one(f"containerservice:{kind}")
        assert item.replace_with == (cluster.urn,), kind
        assert cluster.urn in (item.deleted_with, by_urn[item.parent].deleted_with), kind


def test_sizes_without_infiniband_leave_the_subscription_alone(run: Callable[..., Run]) -> None:
    found = run(gpuPool__vmSize="Standard_NC40ads_H100_v5", gpuPool__count=0)
    assert not [item for item in found.record.resources if item.type.endswith(":DeploymentAtSubscriptionScope")]
