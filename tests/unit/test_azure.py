"""What target `aks` asks Azure for: exact properties, what waits for what, and what stays secret."""

import asyncio
import base64
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from itertools import chain, repeat
from typing import Any

import pulumi
import pytest
import yaml

from components import names
from components.azure import sizes, versions
from components.azure.blob_storage import BlobStorage, BlobStorageArgs
from components.azure.cluster import AksCluster, AksClusterArgs, ApiServer, PodNetwork, dns_prefix
from components.azure.credentials import Credentials, CredentialsArgs, signed_in
from components.azure.feature import FeatureError, InfinibandFeature, InfinibandFeatureArgs
from components.azure.gpu_pool import Autoscale, GpuPool, GpuPoolArgs
from components.azure.identity import ClusterIdentities, ClusterIdentitiesArgs, KubeletIdentity
from components.azure.network import Network, NetworkArgs
from components.azure.provider import azure_provider
from components.azure.registry import Registry, RegistryArgs, RegistryPull, RegistryPullArgs
from components.azure.resource_group import ResourceGroup, ResourceGroupArgs
from components.azure.roles import assignment_name
from components.azure.scope import ResourceScope
from components.azure.system_pool import SystemPool
from components.azure.workload_identity import WorkloadIdentity, WorkloadIdentityArgs
from emulator.azure.services.agent_pools import AgentPool
from tests.unit.harness import Record, Registered, build
from tests.unit.tables import table

SUBSCRIPTION = "/subscriptions/0b1f6471-1bf0-4dda-aec3-cb9272f09590"
GROUP = f"{SUBSCRIPTION}/resourceGroups/lab"
KUBELET = "11111111-2222-3333-4444-555555555555"
PRINCIPAL = "66666666-7777-8888-9999-aaaaaaaaaaaa"
KEY = "ssh-rsa AAAA lab"
IDENTITIES = f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities"
STATE = "azure-native:features:getSubscriptionFeatureRegistration"
USER_CREDENTIALS = "azure-native:containerservice:listManagedClusterUserCredentials"
ADMIN_CREDENTIALS = "azure-native:containerservice:listManagedClusterAdminCredentials"

SYSTEM_POOL = SystemPool(
    kubernetes_version="1.35", vm_size="Standard_D4s_v5", os_sku="Ubuntu2204", zones=("1", "2", "3")
)
SCOPE = ResourceScope(resource_group="lab", location="eastus")

SERVER = "6dae42f8-4368-4678-94ff-3960e28e3630"
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: lab
contexts:
- {name: lab, context: {cluster: lab, user: clusterUser_lab_lab}}
clusters:
- {name: lab, cluster: {server: "https://lab.hcp.eastus.azmk8s.io:443"}}
users:
- name: clusterUser_lab_lab
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1beta1
      command: kubelogin
      args: [get-token, --environment, AzurePublicCloud, --server-id, 6dae42f8-4368-4678-94ff-3960e28e3630,
             --client-id, 80faf920-1908-4b52-b5ef-a8e7bedfc67a, --tenant-id, tenant, --login, devicecode]
      provideClusterInfo: false
"""

ACCOUNTS = {
    "azure-native:network:Subnet": f"{GROUP}/providers/Microsoft.Network/virtualNetworks/lab/subnets/nodes",
    "azure-native:containerregistry:Registry": f"{GROUP}/providers/Microsoft.ContainerRegistry/registries/labimages",
    "azure-native:storage:StorageAccount": f"{GROUP}/providers/Microsoft.Storage/storageAccounts/labdata",
    "azure-native:containerservice:ManagedCluster": f"{GROUP}/providers/Microsoft.ContainerService/managedClusters/lab",
}


def outputs(kind: str, name: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the properties that Azure adds to a resource."""
    added: dict[str, Any] = {"id": ACCOUNTS[kind]} if kind in ACCOUNTS else {}
    if kind == "azure-native:storage:BlobContainer":
        account = ACCOUNTS["azure-native:storage:StorageAccount"]
        added["id"] = f"{account}/blobServices/default/containers/{inputs['containerName']}"
    if kind == "azure-native:managedidentity:UserAssignedIdentity":
        added["principalId"] = KUBELET if name.endswith("-nodes") else PRINCIPAL
        added["clientId"] = f"{name}-client"
        added["id"] = f"{IDENTITIES}/{name}"
    if kind == "azure-native:containerservice:ManagedCluster":
        # A list of ids on the way in is a map by id on the way out.
        identities = {identity: {"principalId": PRINCIPAL} for identity in inputs["identity"]["userAssignedIdentities"]}
        added["identity"] = {**inputs["identity"], "userAssignedIdentities": identities}
        added["oidcIssuerProfile"] = {"enabled": True, "issuerURL": "https://eastus.oic.prod-aks.azure.com/lab/"}
    return added


def credentials(text: str) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    found = {"kubeconfigs": [{"name": "clusterUser", "value": base64.b64encode(text.encode()).decode()}]}
    return lambda args: found


def run(program: Callable[[], object], **calls: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Record:
    return build(
        program, calls={STATE: registered, USER_CREDENTIALS: credentials(KUBECONFIG), **calls}, outputs=outputs
    )


def registered(args: Mapping[str, Any]) -> Mapping[str, Any]:
    assert args == {"providerNamespace": "Microsoft.ContainerService", "featureName": "AKSInfinibandSupport"}
    return {"properties": {"state": "Registered"}}


def only(record: Record, kind: str) -> Registered:
    """Return the one resource of an Azure type, such as containerservice:AgentPool."""
    found = [resource for resource in record.resources if resource.type == f"azure-native:{kind}"]
    assert len(found) == 1, [resource.type for resource in record.resources]
    return found[0]


def given(record: Record, name: str) -> Registered:
    """Return the role assignment of a name."""
    (found,) = (item for item in record.resources if item.name == name)
    assert found.type == "azure-native:authorization:RoleAssignment"
    return found


def cluster_args(**changes: Any) -> AksClusterArgs:
    return AksClusterArgs(
        **{
            "name": "lab_1",
            "scope": SCOPE,
            "node_resource_group": "lab-nrg",
            "kubernetes_version": "1.35",
            "support_plan": "KubernetesOfficial",
            "tier": "Standard",
            "admin_user": "azureuser",
            "ssh_public_key": KEY,
            "identity_id": "identity",
            "identity_principal": PRINCIPAL,
            "kubelets": KubeletIdentity(id="kubelet", client="kubelet-client", principal=KUBELET),
            "subnet_id": "subnet",
            "system_pool": SYSTEM_POOL,
            "pod_network": PodNetwork(pod_cidr="10.244.0.0/16", service_cidr="10.0.0.0/16", policy="cilium"),
            "api_server": ApiServer(authorized_ranges=("203.0.113.0/24",)),
            "admin_groups": ("group",),
            "upgrade_channel": "none",
            "node_os_channel": "NodeImage",
            **changes,
        }
    )


def cluster(**changes: Any) -> Registered:
    return only(run(lambda: AksCluster("lab", cluster_args(**changes))), "containerservice:ManagedCluster")


def pool_args(**changes: Any) -> GpuPoolArgs:
    return GpuPoolArgs(
        **{
            "name": "ndv5",
            "cluster": "lab",
            "scope": SCOPE,
            "kubernetes_version": "1.35",
            "vm_size": "Standard_ND96isr_H100_v5",
            "count": 2,
            "os_sku": "Ubuntu2204",
            "subnet_id": "subnet",
            **changes,
        }
    )


def pool(**changes: Any) -> Registered:
    return only(run(lambda: GpuPool("pool", pool_args(**changes))), "containerservice:AgentPool")


class TestCluster:
    def test_local_accounts_only_when_asked_for_and_no_entra_without_groups(self) -> None:
        inputs = cluster(local_accounts=True, admin_groups=()).inputs
        assert inputs["disableLocalAccounts"] is False
        assert "aadProfile" not in inputs

    @pytest.mark.parametrize(("policy", "dataplane"), [("calico", "azure"), ("none", "azure"), ("cilium", "cilium")])
    def test_each_policy_has_the_data_plane_that_enforces_it(self, policy: str, dataplane: str) -> None:
        found = cluster(pod_network=PodNetwork(pod_cidr="10.244.0.0/16", service_cidr="10.1.0.0/16", policy=policy))
        profile = found.inputs["networkProfile"]
        assert (profile["networkPolicy"], profile["networkDataplane"]) == (policy, dataplane)
        assert profile["dnsServiceIP"] == "10.1.0.10"

    def test_a_dns_prefix_keeps_to_azures_alphabet_and_length(self) -> None:
        assert dns_prefix("a_b" * 30) == ("a-b" * 18)
        assert dns_prefix("x" * 53 + "_y") == "x" * 53


class TestGpuPool:
    def test_what_aks_cannot_change_in_a_pool_replaces_it_and_the_old_one_goes_first(self) -> None:
        found = pool(zones=("1",), placement_id="group", reservation_id="group", spot=True)
        assert found.delete_before_replace
        # Azure's own list, but for what the platform never sets or what follows from the size.
        fixed = {path.partition(".")[0] for path in AgentPool.immutable} - {"type", "osType"}
        assert set(found.replace_on_changes) == fixed & set(found.inputs)
        assert not {"count", "nodeLabels", "nodeTaints", "orchestratorVersion", "tags"} & set(found.replace_on_changes)

    def test_the_autoscaler_gets_its_bounds_and_the_number_of_nodes_is_left_to_it(self) -> None:
        found = pool(autoscale=Autoscale(min=0, max=4))
        assert {key: found.inputs[key] for key in ("enableAutoScaling", "minCount", "maxCount", "count")} == {
            "enableAutoScaling": True,
            "minCount": 0,
            "maxCount": 4,
            "count": 2,
        }
        assert found.ignore_changes == ("count",)

    def test_the_retired_tag_comes_besides_the_switch_that_works(self) -> None:
        found = pool(retired_tag=True, scope=replace(SCOPE, tags={"team": "ml"})).inputs
        assert found["tags"] == {"team": "ml", "SkipGPUDriverInstall": "true"}
        assert found["gpuProfile"] == {"driver": "None"}


class TestRegistry:
    @staticmethod
    def program() -> None:
        registry = Registry("registry", RegistryArgs(name="labImages", scope=SCOPE, sku="Standard"))
        assert registry.server == "labimages.azurecr.io"
        RegistryPull("pull", RegistryPullArgs(name="labImages", registry_id=registry.id, puller=KUBELET))

    def test_an_assignments_name_is_the_same_each_time_and_another_for_another_principal(self) -> None:
        first = assignment_name("/subscriptions/A/x", "role", "One")
        assert first == assignment_name("/subscriptions/a/X", "role", "one")
        assert uuid.UUID(first).version == 5
        others = {assignment_name("/subscriptions/A/x", "role", "two"), assignment_name("/s", "role", "one")}
        assert len({first} | others) == 3


class TestNetwork:
    @staticmethod
    def record() -> Record:
        def program() -> None:
            place: dict[str, Any] = {"scope": SCOPE}
            net = Network("net", NetworkArgs(name="lab", cidr="10.128.0.0/20", node_cidr="10.128.4.0/22", **place))
            identities = ClusterIdentities(
                "identities",
                ClusterIdentitiesArgs(
                    control_plane="lab-control", kubelets="lab-nodes", subnet_id=net.subnet_id, **place
                ),
            )
            AksCluster(
                "cluster",
                cluster_args(
                    scope=replace(SCOPE, tags={"team": "ml"}),
                    subnet_id=net.subnet_id,
                    identity_id=identities.id,
                    identity_principal=identities.principal,
                    kubelets=identities.kubelets,
                ),
                pulumi.ResourceOptions(depends_on=list(identities.ready)),
            )

        return run(program)

    def test_the_control_plane_may_use_the_subnet_before_the_cluster_is_created(self) -> None:
        record = self.record()
        role = given(record, "lab-control-subnet")
        assert role.inputs["scope"] == ACCOUNTS["azure-native:network:Subnet"]
        assert role.urn in record.closure(only(record, "containerservice:ManagedCluster"))

    def test_a_cluster_is_sent_again_when_an_identity_of_it_is_made_anew_under_its_name(self) -> None:
        """The control plane's is named by its resource id alone, which stays the same."""
        found = only(self.record(), "containerservice:ManagedCluster").inputs
        assert found["tags"] == {"team": "ml", "mlbatch-control-plane-principal": PRINCIPAL}
        assert found["identityProfile"]["kubeletidentity"]["objectId"] == KUBELET

    def test_new_tags_do_not_change_identities_whose_ids_a_preview_would_then_not_know(self) -> None:
        identities = [each for each in self.record().resources if each.type.endswith(":UserAssignedIdentity")]
        assert [each.ignore_changes for each in identities] == [("tags",)] * 2

    def test_the_control_plane_may_give_the_nodes_their_identity_before_the_cluster_is_created(self) -> None:
        record = self.record()
        role, cluster = given(record, "lab-control-kubelets"), only(record, "containerservice:ManagedCluster")
        assert role.inputs["scope"] == f"{IDENTITIES}/lab-nodes"
        assert role.urn in record.closure(cluster)


class TestBlobStorage:
    @staticmethod
    def record() -> Record:
        args = BlobStorageArgs(account="labdata", container="data", scope=SCOPE, sku="Standard_LRS", subnet_id="subnet")
        return run(lambda: BlobStorage("storage", args))


class TestFeature:
    @pytest.fixture(autouse=True)
    def said(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Return the log. No call sleeps."""
        said: list[str] = []

        real = asyncio.sleep

        async def no_sleep(seconds: float) -> None:
            if seconds:
                said.append(f"slept {seconds:g}")
            await real(0)

        monkeypatch.setattr(asyncio, "sleep", no_sleep)
        monkeypatch.setattr(pulumi.log, "info", lambda text, *rest: said.append(text))
        monkeypatch.setattr(pulumi.log, "warn", lambda text, *rest: said.append(text))
        return said

    @staticmethod
    def states(*states: str | None) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
        """Return a function that answers with one state after the other, and then with the last for ever."""
        coming: Iterator[str | None] = chain(states, repeat(states[-1]))
        return lambda args: {"properties": {"state": next(coming)} if states != (None,) else None}

    @staticmethod
    def program() -> None:
        args = InfinibandFeatureArgs(
            deployment="lab-infiniband", location="eastus", timeout_seconds=60, poll_seconds=15
        )
        created = InfinibandFeature("feature", args)
        GpuPool("pool", pool_args(), pulumi.ResourceOptions(depends_on=[created.registered]))

    def test_the_pool_waits_for_a_template_that_registers_the_feature(self, said: list[str]) -> None:
        record = run(self.program)
        found = only(record, "resources:DeploymentAtSubscriptionScope")
        assert {name: found.inputs[name] for name in ("deploymentName", "location")} == {
            "deploymentName": "lab-infiniband",
            "location": "eastus",
        }
        assert found.inputs["properties"]["mode"] == "Incremental"
        assert found.inputs["properties"]["template"]["resources"] == [
            {
                "type": "Microsoft.Features/featureProviders/subscriptionFeatureRegistrations",
                "apiVersion": "2021-07-01",
                "name": "Microsoft.ContainerService/AKSInfinibandSupport",
                "properties": {},
            }
        ]
        assert found.urn in record.closure(only(record, "containerservice:AgentPool"))
        assert said == []

    def test_it_is_waited_for_and_nothing_is_created_before_aks_knows_of_it(self, said: list[str]) -> None:
        known = r"`az provider register --namespace Microsoft\.ContainerService`, then this update again"
        with pytest.raises(FeatureError, match=known):
            run(self.program, **{STATE: self.states("NotRegistered", "Registering", "Registered")})
        assert said[0] == "AKSInfinibandSupport is NotRegistered; waited 0 of at most 60 s"
        assert said[1] == "slept 15"
        assert said[2] == "AKSInfinibandSupport is Registering; waited 15 of at most 60 s"
        assert len(said) == 4
        only(run(self.program, **{STATE: self.states("Registered")}), "containerservice:AgentPool")

    def test_the_wait_ends(self, said: list[str]) -> None:
        with pytest.raises(
            FeatureError,
            match=r"still Registering after 60 s.*`az feature show --namespace Microsoft\.ContainerService "
            r"--name AKSInfinibandSupport --query properties\.state`",
        ):
            run(self.program, **{STATE: self.states("Registering")})
        assert said.count("slept 15") == 4

    @pytest.mark.parametrize("state", ["NotSpecified", "NotRegistered", "Pending", "Registering"])
    def test_a_state_on_the_way_is_waited_for(self, state: str, said: list[str]) -> None:
        with pytest.raises(FeatureError, match="az provider register"):
            run(self.program, **{STATE: self.states(state, "Registered")})
        assert said[0] == f"AKSInfinibandSupport is {state}; waited 0 of at most 60 s"

    @pytest.mark.parametrize("state", ["Unregistering", "Unregistered", "Strange", None])
    def test_a_state_that_leads_nowhere_is_an_error_with_the_command(self, state: str | None, said: list[str]) -> None:
        with pytest.raises(FeatureError, match=r"az feature register --namespace Microsoft\.ContainerService --name"):
            run(self.program, **{STATE: self.states(state)})
        assert said == []

    def test_a_preview_asks_nobody(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def ask(args: Mapping[str, Any]) -> Mapping[str, Any]:
            raise AssertionError("a preview waits for nothing")

        monkeypatch.setattr(pulumi.runtime, "is_dry_run", lambda: True)
        assert only(run(self.program, **{STATE: ask}), "containerservice:AgentPool")


class TestCredentials:
    @staticmethod
    def kubeconfig(login: str, calls: Mapping[str, Any]) -> tuple[str, Record]:
        seen: list[str] = []
        secret: list[bool] = []

        def program() -> None:
            created = AksCluster("lab", cluster_args())
            args = CredentialsArgs(cluster="lab_1", scope=SCOPE, login=login, after=created.ready)
            found = Credentials("credentials", args)
            found.kubeconfig.apply(seen.append)
            is_secret: pulumi.Output[bool] = pulumi.Output.from_input(found.kubeconfig.is_secret())
            is_secret.apply(secret.append)

        record = build(program, calls=calls, outputs=outputs)
        assert secret == [True]
        return seen[0], record

    def test_it_signs_in_through_entra_and_is_a_secret(self) -> None:
        asked: list[Mapping[str, Any]] = []

        def answer(args: Mapping[str, Any]) -> Mapping[str, Any]:
            asked.append(args)
            return credentials(KUBECONFIG)(args)

        text, _ = self.kubeconfig("azurecli", {USER_CREDENTIALS: answer})
        assert asked == [{"resourceGroupName": "lab", "resourceName": "lab_1", "format": "exec"}]
        call = yaml.safe_load(text)["users"][0]["user"]["exec"]
        assert call["command"] == "kubelogin"
        assert call["args"] == ["get-token", "--login", "azurecli", "--server-id", SERVER]
        assert yaml.safe_load(text)["clusters"] == yaml.safe_load(KUBECONFIG)["clusters"]

    def test_the_clusters_own_certificate_only_when_asked_for(self) -> None:
        text, _ = self.kubeconfig("local", {ADMIN_CREDENTIALS: credentials("kind: Config")})
        assert text == "kind: Config"

    @pytest.mark.parametrize("login", ["workloadidentity", "msi"])
    def test_logins_that_take_all_else_from_their_environment(self, login: str) -> None:
        call = yaml.safe_load(signed_in(KUBECONFIG, login))["users"][0]["user"]["exec"]
        assert call["args"] == ["get-token", "--login", login, "--server-id", SERVER]

    def test_a_service_principal_needs_the_tenant_too(self) -> None:
        call = yaml.safe_load(signed_in(KUBECONFIG, "spn"))["users"][0]["user"]["exec"]
        client = ["--client-id", "80faf920-1908-4b52-b5ef-a8e7bedfc67a", "--tenant-id", "tenant"]
        assert call["args"][3:] == ["--server-id", SERVER, *client, "--environment", "AzurePublicCloud"]

    def test_users_that_sign_in_otherwise_are_left_alone(self) -> None:
        plain = "users:\n- name: a\n  user:\n    token: t\n- name: b\n  user:\n    exec:\n      command: aws\n"
        assert signed_in(plain, "azurecli") == plain

    def test_a_sign_in_without_the_server_is_an_error(self) -> None:
        with pytest.raises(ValueError, match=r"^AKS' kubeconfig calls kubelogin without --server-id$"):
            signed_in(KUBECONFIG.replace("--server-id", "--server"), "azurecli")

    def test_no_kubeconfig_is_an_error(self) -> None:
        with pytest.raises(ValueError, match="no kubeconfig"):
            self.kubeconfig("azurecli", {USER_CREDENTIALS: lambda args: {"kubeconfigs": []}})


class TestTheRest:
    def test_what_lies_in_another_resource_comes_after_it(self) -> None:
        args = WorkloadIdentityArgs(name="lab-in-blue", scope=SCOPE, issuer="https://issuer/", namespace="blue")
        for record, outer, inner in (
            (TestNetwork.record(), "network:VirtualNetwork", "network:Subnet"),
            (TestBlobStorage.record(), "storage:StorageAccount", "storage:BlobContainer"),
            (run(TestRegistry.program), "containerregistry:Registry", "authorization:RoleAssignment"),
            (
                run(lambda: WorkloadIdentity("identity-blue", args)),
                "managedidentity:UserAssignedIdentity",
                "managedidentity:FederatedIdentityCredential",
            ),
        ):
            assert only(record, outer).urn in record.closure(only(record, inner))

    def test_protection_reaches_what_a_component_creates(self) -> None:
        args = ResourceGroupArgs(scope=SCOPE)
        options = pulumi.ResourceOptions(protect=True)
        assert only(run(lambda: ResourceGroup("group", args, options)), "resources:ResourceGroup").protect

    def test_one_provider_for_one_subscription(self) -> None:
        def program() -> None:
            provider = azure_provider("azure", subscription="0b1f", location="eastus")
            options = pulumi.ResourceOptions(providers=[provider])
            ResourceGroup("group", ResourceGroupArgs(scope=SCOPE), options)

        record = run(program)
        provider = next(item for item in record.resources if item.type == "pulumi:providers:azure-native")
        assert provider.inputs["subscriptionId"] == "0b1f"
        assert only(record, "resources:ResourceGroup").provider.startswith(provider.urn)


class TestSizes:
    @pytest.mark.parametrize(
        ("name", "offers"),
        table("azure", "offers"),
    )
    def test_each_size_offers_what_its_machine_has(self, name: str, offers: str) -> None:
        machine = sizes.GPU_SIZES[name].machine()
        assert f"{machine.cpu} {machine.memory} {machine.gpus} {machine.ports}" == offers
        assert len(sizes.GPU_SIZES) == 11

    def test_ports_are_no_resource_where_nothing_hands_them_out(self) -> None:
        shape = sizes.GPU_SIZES["Standard_ND96isr_H100_v5"].machine().shape(ports=0)
        assert shape.resources[names.INFINIBAND].nano == 0

    @pytest.mark.parametrize(
        ("cores", "kept"), [(1, 60), (2, 100), (4, 140), (8, 180), (16, 260), (32, 420), (64, 740)]
    )
    def test_reservations_are_those_of_aks_table(self, cores: int, kept: int) -> None:
        assert sizes._reserved_millicores(cores) == kept

    def test_the_table_is_consistent(self) -> None:
        for size in sizes.GPU_SIZES.values():
            assert sizes.is_vm_size(size.name)
            assert sizes.family_of(size.name).startswith("N")
            assert size.vcpus == sizes.vcpus_of(size.name)
            assert size.gpus > 0
            assert size.infiniband_ports in (0, size.gpus)
            assert size.regions is None or size.regions <= sizes.REGIONS
            assert size.source.startswith("https://")
            assert set(size.machine().shape().resources) == set(names.RESOURCES)
            if size.infiniband_feature:
                assert size.infiniband_ports
        assert {size.name for size in sizes.GPU_SIZES.values() if size.refuses_infiniband_feature} == {
            "Standard_ND128isr_NDR_GB200_v6",
            "Standard_ND128isr_GB300_v6",
        }

    @pytest.mark.parametrize(
        ("name", "vcpus"),
        table("azure", "vcpus"),
    )
    def test_vcpus_are_read_from_names_that_state_them(self, name: str, vcpus: int | None) -> None:
        assert sizes.vcpus_of(name) == vcpus


class TestVersions:
    def test_support_begins_and_ends(self) -> None:
        def minors(day: date, long_term: bool = False) -> list[str]:
            return [release.minor for release in versions.supported(day, long_term=long_term)]

        assert minors(date(2026, 11, 30)) == ["1.37", "1.36", "1.35", "1.34"]
        assert minors(date(2026, 12, 1)) == ["1.37", "1.36", "1.35"]
        assert minors(date(2026, 9, 30)) == ["1.36", "1.35", "1.34"]
        assert minors(date(2026, 12, 1), long_term=True) == ["1.37", "1.36", "1.35", "1.34", "1.33", "1.32"]

    def test_a_patch_belongs_to_its_minor_version(self) -> None:
        release = versions.release_of("1.35.7")
        assert release is not None
        assert release.minor == "1.35"
        assert versions.release_of("1.3") is None

    def test_the_default_is_known_and_older_releases_end_earlier(self) -> None:
        assert versions.release_of(versions.DEFAULT) is not None
        ends = [release.end for release in versions.RELEASES]
        assert ends == sorted(ends, reverse=True)
        assert all(release.available < release.end < release.long_term_end for release in versions.RELEASES)
