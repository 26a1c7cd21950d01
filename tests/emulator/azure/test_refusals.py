"""Requests that Azure Resource Manager rejects, by error code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from emulator.azure.errors import ArmError
from emulator.plugin.errors import ProviderError
from tests.emulator.azure.subscription import (
    ACCOUNT,
    ASSIGNMENT,
    CLUSTER,
    CONTAINER,
    FEDERATION,
    GROUP,
    GROUP_DEPLOYMENT,
    H100,
    IDENTITY,
    NETWORK,
    PROXIMITY,
    REGISTRY,
    SECURITY_GROUP,
    SUBNET,
    Subscription,
    cluster_inputs,
    system_pool,
)

POOL_TYPE = "Microsoft.ContainerService/managedClusters/agentPools"
POOL_PATH = ("resourceGroupName", "resourceName", "agentPoolName")
ACR_PULL = "7f951dda-4ed3-4680-a7ca-43fe172d538d"


def code_of(call: Any) -> str:
    with pytest.raises(ArmError) as caught:
        call()
    assert f'Code="{caught.value.code}"' in str(caught.value)
    return caught.value.code


def network(azure: Subscription, *prefixes: str, endpoints: bool = False, guard: str = "") -> str:
    azure.create(
        NETWORK,
        resourceGroupName="rg",
        virtualNetworkName="vnet",
        location="eastus",
        addressSpace={"addressPrefixes": ["10.128.0.0/16"]},
    )
    services = [{"service": "Microsoft.Storage"}] if endpoints else None
    subnet_id = ""
    for index, prefix in enumerate(prefixes or ("10.128.4.0/22",)):
        subnet_id, _ = azure.create(
            SUBNET,
            resourceGroupName="rg",
            virtualNetworkName="vnet",
            subnetName=f"nodes{index}",
            addressPrefix=prefix,
            serviceEndpoints=services,
            networkSecurityGroup={"id": guard} if guard else None,
        )
    return subnet_id


def public_key(private: Any) -> str:
    return str(private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode())


def ssh(key: str) -> dict[str, Any]:
    return {"adminUsername": "a", "ssh": {"publicKeys": [{"keyData": key}]}}


def test_an_existing_resource_is_not_created_again(azure: Subscription) -> None:
    azure.group()
    with pytest.raises(ProviderError, match="cannot create already existing resource '/subscriptions/"):
        azure.group()


def test_a_resource_group_that_does_not_exist(azure: Subscription) -> None:
    call = lambda: azure.create(  # noqa: E731
        REGISTRY, resourceGroupName="nowhere", registryName="images", location="eastus", sku={"name": "Basic"}
    )
    assert code_of(call) == "ResourceGroupNotFound"


def test_a_region_that_does_not_exist(azure: Subscription) -> None:
    assert code_of(lambda: azure.group(location="mars")) == "LocationNotAvailableForResourceGroup"
    azure.group()
    call = lambda: azure.create(IDENTITY, resourceGroupName="rg", resourceName="nodes", location="mars")  # noqa: E731
    assert code_of(call) == "LocationNotAvailableForResourceType"


FEDERATION_NAMES = {"resourceGroupName": "rg", "resourceName": "team"}
TRUSTED = {
    "issuer": "https://eastus.oic.prod-aks.azure.com/lab/",
    "subject": "system:serviceaccount:blue:default",
    "audiences": ["api://AzureADTokenExchange"],
}


def trust(azure: Subscription, name: str, **changes: Any) -> Callable[[], object]:
    names = {**FEDERATION_NAMES, "federatedIdentityCredentialResourceName": name}
    return lambda: azure.create(FEDERATION, **names, **{**TRUSTED, **changes})


def test_an_identity_trusts_a_subject_of_an_issuer_once_and_twenty_at_most(azure: Subscription) -> None:
    azure.group()
    assert code_of(trust(azure, "first")) == "ParentResourceNotFound"
    azure.create(IDENTITY, resourceGroupName="rg", resourceName="team", location="eastus")
    trust(azure, "first")()
    assert code_of(trust(azure, "second")) == "Conflict"
    assert code_of(trust(azure, "third", subject="b", audiences=[])) == "BadRequest"
    assert code_of(trust(azure, "third", subject="b", issuer="http://issuer/")) == "BadRequest"
    assert code_of(trust(azure, "third", subject="b" * 601)) == "BadRequest"
    for number in range(19):
        trust(azure, f"more-{number}", subject=f"s{number}")()
    assert code_of(trust(azure, "last", subject="last")) == "BadRequest"


@pytest.mark.parametrize("name", ["h100acr", "H100ACR"])
def test_a_registry_name_that_is_taken(azure: Subscription, name: str) -> None:
    azure.group()
    call = lambda: azure.create(  # noqa: E731
        REGISTRY, resourceGroupName="rg", registryName=name, location="eastus", sku={"name": "Basic"}
    )
    assert code_of(call) == "AlreadyInUse"


def test_a_storage_account_name_that_is_taken(azure: Subscription) -> None:
    azure.group()
    call = lambda: azure.create(  # noqa: E731
        ACCOUNT,
        resourceGroupName="rg",
        accountName="contoso",
        location="eastus",
        kind="StorageV2",
        sku={"name": "Standard_LRS"},
    )
    assert code_of(call) == "StorageAccountAlreadyTaken"


def test_subnets_stay_inside_their_network_and_apart(azure: Subscription) -> None:
    azure.group()
    network(azure)
    subnet = {"resourceGroupName": "rg", "virtualNetworkName": "vnet", "subnetName": "more"}
    assert code_of(lambda: azure.create(SUBNET, **subnet, addressPrefix="10.1.0.0/24")) == "NetcfgInvalidSubnet"
    assert code_of(lambda: azure.create(SUBNET, **subnet, addressPrefix="10.128.5.0/24")) == "NetcfgSubnetRangesOverlap"
    assert (
        code_of(lambda: azure.create(SUBNET, **subnet, addressPrefix="10.128.5.1/24")) == "InvalidAddressPrefixFormat"
    )


def test_a_network_that_nodes_use_is_not_deleted(azure: Subscription) -> None:
    azure.group()
    guard, _ = azure.create(SECURITY_GROUP, resourceGroupName="rg", networkSecurityGroupName="guard", location="eastus")
    subnet = network(azure, guard=guard)
    azure.managed_cluster(agentPoolProfiles=[system_pool(vnetSubnetID=subnet)])
    vnet = subnet.rpartition("/subnets/")[0]
    assert code_of(lambda: azure.delete(SUBNET, subnet)) == "InUseSubnetCannotBeDeleted"
    assert code_of(lambda: azure.delete(NETWORK, vnet)) == "InUseSubnetCannotBeDeleted"
    assert code_of(lambda: azure.delete(SECURITY_GROUP, guard)) == "InUseNetworkSecurityGroupCannotBeDeleted"
    azure.delete(CLUSTER, azure.arm.state().of_type("Microsoft.ContainerService/managedClusters")[0].id)
    azure.delete(NETWORK, vnet)
    azure.delete(SECURITY_GROUP, guard)


def test_a_network_keeps_room_for_the_subnets_it_has(azure: Subscription) -> None:
    azure.group()
    vnet = network(azure).rpartition("/subnets/")[0]
    inputs = {"resourceGroupName": "rg", "virtualNetworkName": "vnet", "location": "eastus"}
    smaller = {"addressPrefixes": ["10.128.0.0/22"]}
    assert code_of(lambda: azure.update(NETWORK, vnet, **inputs, addressSpace=smaller)) == "NetcfgInvalidSubnet"
    larger = {"addressPrefixes": ["10.128.0.0/16", "10.129.0.0/16"]}
    assert azure.update(NETWORK, vnet, **inputs, addressSpace=larger)["subnets"][0]["name"] == "nodes0"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"dnsPrefix": None}, "InvalidParameter"),
        ({"identity": None}, "InvalidParameter"),
        ({"agentPoolProfiles": []}, "InvalidParameter"),
        ({"agentPoolProfiles": [system_pool(mode="User")]}, "InvalidParameter"),
        ({"agentPoolProfiles": [system_pool(count=0)]}, "InvalidParameter"),
        ({"agentPoolProfiles": [system_pool(vmSize="Standard_D4s_v9")]}, "InvalidParameter"),
        ({"agentPoolProfiles": [system_pool(), system_pool()]}, "InvalidParameter"),
        (
            {"agentPoolProfiles": [system_pool(vnetSubnetID="/subscriptions/x/subnets/none")]},
            "InvalidResourceReference",
        ),
        ({"agentPoolProfiles": [system_pool(availabilityZones=["4"])]}, "AvailabilityZoneNotSupported"),
        ({"identity": {"type": "UserAssigned"}}, "InvalidIdentityValues"),
        ({"identity": {"type": "UserAssigned", "userAssignedIdentities": ["/none"]}}, "ResourceNotFound"),
        ({"kubernetesVersion": "1.19"}, "K8sVersionNotSupported"),
        ({"kubernetesVersion": "1.32"}, "K8sVersionNotSupported"),
        ({"disableLocalAccounts": True}, "BadRequest"),
        ({"supportPlan": "AKSLongTermSupport"}, "BadRequest"),
        ({"apiServerAccessProfile": {"authorizedIPRanges": ["198.51.100.0/33"]}}, "InvalidParameter"),
        (
            {"apiServerAccessProfile": {"authorizedIPRanges": ["198.51.100.0/24"], "enablePrivateCluster": True}},
            "InvalidParameter",
        ),
        ({"networkProfile": {"dnsServiceIP": "10.1.0.10"}}, "DnsServiceIpOutOfServiceCidr"),
        ({"networkProfile": {"networkPolicy": "cilium"}}, "InvalidParameter"),
        ({"linuxProfile": ssh("ssh-rsa abc")}, "InvalidParameter"),
        ({"linuxProfile": ssh(public_key(ed25519.Ed25519PrivateKey.generate()))}, "InvalidParameter"),
        ({"linuxProfile": ssh(public_key(rsa.generate_private_key(65537, 1024)))}, "InvalidParameter"),
        ({"nodeResourceGroup": "other"}, "NodeResourceGroupAlreadyExists"),
    ],
)
def test_a_cluster_that_aks_refuses(azure: Subscription, changes: dict[str, Any], code: str) -> None:
    azure.group()
    azure.group("other")
    assert code_of(lambda: azure.managed_cluster(**changes)) == code
    assert azure.cluster.nodes == []


def test_a_service_range_over_the_nodes_subnet(azure: Subscription) -> None:
    azure.group()
    subnet = network(azure)
    changes = {
        "networkProfile": {"serviceCidr": "10.128.0.0/16", "dnsServiceIP": "10.128.0.10"},
        "agentPoolProfiles": [system_pool(vnetSubnetID=subnet)],
    }
    assert code_of(lambda: azure.managed_cluster(**changes)) == "ServiceCidrOverlapExistingSubnetsCidr"


def test_a_second_cluster_is_refused_because_one_local_cluster_exists(aks: Subscription) -> None:
    assert code_of(lambda: aks.managed_cluster(resourceName="another")) == "LocalClusterTaken"


def test_a_cluster_is_refused_if_the_local_cluster_has_another_use(azure: Subscription) -> None:
    azure.group()
    azure.cluster.taken = "the node gpu-node-0"
    assert code_of(azure.managed_cluster) == "LocalClusterInUse"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"count": 9}, "ErrCode_InsufficientVCPUQuota"),
        ({"vmSize": "Standard_NC24ads_A100_v4", "count": 5}, "ErrCode_InsufficientVCPUQuota"),
        ({"vmSize": "Standard_ND96isr_H100_v6"}, "InvalidParameter"),
        ({"vmSize": "Standard_NC40ads_H100_v5", "count": 1}, "ErrCode_InsufficientVCPUQuota"),
        ({"vmSize": "Standard_ND96asr_v4", "availabilityZones": ["7"]}, "AvailabilityZoneNotSupported"),
        ({"availabilityZones": ["2"]}, "AvailabilityZoneNotSupported"),
        ({"tags": {"SkipGPUDriverInstall": "true"}}, "SkipGPUDriverInstallNotSupported"),
        ({"tags": {"skipgpudriverinstall": "True"}, "gpuProfile": None}, "SkipGPUDriverInstallNotSupported"),
        ({"count": -1}, "InvalidParameter"),
        ({"minCount": 0, "maxCount": 2}, "InvalidParameter"),
        ({"enableAutoScaling": True}, "InvalidParameter"),
        ({"enableAutoScaling": True, "minCount": 3, "maxCount": 2}, "InvalidParameter"),
        ({"enableAutoScaling": True, "minCount": 3, "maxCount": 4, "count": 2}, "InvalidParameter"),
        ({"orchestratorVersion": "1.37"}, "NodePoolMcVersionIncompatible"),
        ({"orchestratorVersion": "1.20"}, "AgentPoolK8sVersionNotSupported"),
        ({"nodeTaints": ["gpu"]}, "InvalidParameter"),
        ({"scaleSetPriority": "Spot", "upgradeSettings": {"maxSurge": "1"}}, "InvalidParameter"),
        ({"nodeLabels": {"kubernetes.azure.com/x": "y"}}, "InvalidParameter"),
        ({"proximityPlacementGroupID": "/subscriptions/x/none"}, "ResourceNotFound"),
        ({"resourceName": "nothing"}, "ParentResourceNotFound"),
    ],
)
def test_a_pool_that_aks_refuses(aks: Subscription, changes: dict[str, Any], code: str) -> None:
    assert code_of(lambda: aks.pool(**changes)) == code
    assert len(aks.node_names()) == 2


def test_a_size_that_the_region_does_not_offer_names_those_that_do(azure: Subscription) -> None:
    azure.group()
    azure.managed_cluster(location="northeurope")
    with pytest.raises(ArmError, match=r"Offered in australiaeast, .*eastus") as caught:
        azure.pool()
    assert caught.value.code == "SkuNotAvailable"
    assert H100 in caught.value.message


def test_a_proximity_placement_group_needs_a_zone_that_the_region_has(azure: Subscription) -> None:
    azure.group(location="westus")
    inputs = {"resourceGroupName": "rg", "proximityPlacementGroupName": "near", "location": "westus", "zones": ["1"]}
    assert code_of(lambda: azure.create(PROXIMITY, **inputs, intent={"vmSizes": [H100]})) == "InvalidParameter"


def test_a_proximity_placement_group_allows_one_zone_at_most(aks: Subscription) -> None:
    group, _ = aks.create(PROXIMITY, resourceGroupName="rg", proximityPlacementGroupName="near", location="eastus")
    changes = {"proximityPlacementGroupID": group, "availabilityZones": ["1", "3"]}
    assert code_of(lambda: aks.pool(**changes)) == "InvalidParameter"
    aks.pool(proximityPlacementGroupID=group, availabilityZones=["1"])
    assert code_of(lambda: aks.delete(PROXIMITY, group)) == "OperationNotAllowed"


@pytest.mark.parametrize("changes", [{"osDiskSizeGB": 256}, {"gpuProfile": {"driver": "Install"}}, {"maxPods": 50}])
def test_a_fixed_property_of_a_pool_is_not_changed(aks: Subscription, changes: dict[str, Any]) -> None:
    from tests.emulator.azure.subscription import POOL, pool_inputs

    pool, _ = aks.pool()
    assert code_of(lambda: aks.update(POOL, pool, **pool_inputs(**changes))) == "PropertyChangeNotAllowed"


def test_a_control_plane_is_upgraded_one_minor_version_at_a_time(aks: Subscription) -> None:
    cluster = aks.arm.state().of_type("Microsoft.ContainerService/managedClusters")[0].id
    call = lambda version: aks.update(CLUSTER, cluster, **cluster_inputs(kubernetesVersion=version))  # noqa: E731
    assert code_of(lambda: call("1.37")) == "OperationNotAllowed"
    assert code_of(lambda: call("1.34")) == "OperationNotAllowed"
    assert call("1.36")["currentKubernetesVersion"] == "1.36.1"


LISTED: dict[str, tuple[list[dict[str, Any]], str]] = {
    "no version": ([{}, {}], ""),
    "all versions": ([{"orchestratorVersion": "1.35"}, {"orchestratorVersion": "1.35"}], ""),
    "one version": ([{}, {"orchestratorVersion": "1.35"}], "NotAllAgentPoolOrchestratorVersionSpecifiedAndUnchanged"),
    "another version": (
        [{"orchestratorVersion": "1.35"}, {"orchestratorVersion": "1.34"}],
        "NotAllAgentPoolOrchestratorVersionSpecifiedAndUnchanged",
    ),
    "a new pool": ([{}, {}, {"name": "more"}], "BadRequest"),
    "a pool less": ([{}], "BadRequest"),
}


@pytest.mark.parametrize("case", LISTED)
def test_an_update_of_a_cluster_lists_its_pools_as_they_are(aks: Subscription, case: str) -> None:
    from tests.emulator.azure.subscription import pool_inputs

    aks.pool(orchestratorVersion="1.35")
    pool = {key: value for key, value in pool_inputs(name="ndv5").items() if key not in POOL_PATH}
    changes, code = LISTED[case]
    cluster = aks.arm.state().of_type("Microsoft.ContainerService/managedClusters")[0].id
    listed = [{**profile, **change} for profile, change in zip([system_pool(), pool, pool], changes, strict=False)]
    call = lambda: aks.update(CLUSTER, cluster, **cluster_inputs(agentPoolProfiles=listed))  # noqa: E731
    if code:
        assert code_of(call) == code
    else:
        call()


def deployed(azure: Subscription, **changes: Any) -> dict[str, Any]:
    """Deploy a template with the system pool, changed, and return the pool."""
    properties = {key: value for key, value in system_pool(**changes).items() if key != "name"}
    resource = {"type": POOL_TYPE, "apiVersion": "2025-09-01", "name": "aks/system", "properties": properties}
    template = {"mode": "Incremental", "template": {"resources": [resource]}}
    made = azure.create(GROUP_DEPLOYMENT, resourceGroupName="rg", deploymentName="system", properties=template)
    pool = azure.arm.get(made[1]["properties"]["outputResources"][0]["id"])
    assert pool is not None
    return pool


def test_a_template_changes_an_existing_pool_in_place(aks: Subscription) -> None:
    assert len(aks.node_names()) == 2
    assert deployed(aks, count=3)["count"] == 3
    assert len(aks.node_names()) == 3


def test_a_template_does_not_change_the_fixed_properties_of_a_pool(aks: Subscription) -> None:
    assert code_of(lambda: deployed(aks, vmSize="Standard_D8s_v5")) == "PropertyChangeNotAllowed"


def test_the_last_system_pool_stays(aks: Subscription) -> None:
    from tests.emulator.azure.subscription import POOL

    pool = aks.arm.state().of_type("Microsoft.ContainerService/managedClusters/agentPools")[0].id
    assert code_of(lambda: aks.delete(POOL, pool)) == "OperationNotAllowed"


def assignment(azure: Subscription, **changes: Any) -> tuple[str, dict[str, Any]]:
    definition = (
        f"/subscriptions/{azure.facts.subscription_id}/providers/Microsoft.Authorization/roleDefinitions/{ACR_PULL}"
    )
    named = {"roleAssignmentName": "99999999-0000-4000-8000-000000000001"}
    inputs = {**named, "principalType": "ServicePrincipal", "roleDefinitionId": definition, **changes}
    return azure.create(ASSIGNMENT, **{key: value for key, value in inputs.items() if value is not None})


def test_a_role_is_given_to_a_principal_that_exists_once(aks: Subscription) -> None:
    scope, _ = aks.create(
        REGISTRY, resourceGroupName="rg", registryName="images1", location="eastus", sku={"name": "Basic"}
    )
    cluster = aks.arm.get(f"{aks.arm.state().of_type('Microsoft.ContainerService/managedClusters')[0].id}")
    assert cluster is not None
    kubelet = cluster["identityProfile"]["kubeletidentity"]["objectId"]
    stranger = "00000000-0000-4000-8000-000000000001"
    guid = "11111111-0000-4000-8000-000000000001"
    assert code_of(lambda: assignment(aks, scope=scope, principalId=stranger)) == "PrincipalNotFound"
    assert code_of(lambda: assignment(aks, scope=f"{scope}x", principalId=kubelet)) == "ResourceNotFound"
    call = lambda **changes: assignment(aks, scope=scope, principalId=kubelet, **changes)  # noqa: E731
    assert code_of(lambda: call(principalType="User")) == "UnmatchedPrincipalType"
    assert code_of(lambda: call(roleAssignmentName="pull")) == "InvalidRoleAssignmentId"
    assert code_of(lambda: call(roleDefinitionId="AcrPull")) == "RoleDefinitionDoesNotExist"
    call(roleAssignmentName=guid)
    assert code_of(lambda: call(roleAssignmentName=f"2{guid[1:]}")) == "RoleAssignmentExists"


def test_a_custom_kubelet_identity_needs_the_control_planes_right_to_assign_it(azure: Subscription) -> None:
    azure.group()
    created = {
        name: azure.create(IDENTITY, resourceGroupName="rg", resourceName=name, location="eastus")
        for name in ("control", "nodes")
    }
    control, nodes = created["control"], created["nodes"]
    kubelet = {"resourceId": nodes[0], "clientId": nodes[1]["clientId"], "objectId": nodes[1]["principalId"]}

    def call(**changes: Any) -> tuple[str, dict[str, Any]]:
        identity = {"type": "UserAssigned", "userAssignedIdentities": [control[0]]}
        return azure.managed_cluster(
            **{"identity": identity, "identityProfile": {"kubeletidentity": kubelet}, **changes}
        )

    assert code_of(call) == "CustomKubeletIdentityMissingPermissionError"
    definition = f"/subscriptions/{azure.facts.subscription_id}/providers/Microsoft.Authorization/roleDefinitions"
    assignment(
        azure,
        scope=nodes[0],
        principalId=control[1]["principalId"],
        roleAssignmentName="11111111-0000-4000-8000-000000000001",
        roleDefinitionId=f"{definition}/f1a07417-d97a-45cb-824c-7a7467783830",
    )
    own = {"type": "SystemAssigned"}
    assert code_of(lambda: call(identity=own)) == "CustomKubeletIdentityOnlySupportedOnUserAssignedMSICluster"
    other = {"kubeletidentity": {**kubelet, "clientId": control[1]["clientId"]}}
    assert code_of(lambda: call(identityProfile=other)) == "InvalidParameter"
    missing = {"kubeletidentity": {"resourceId": f"{nodes[0]}x"}}
    assert code_of(lambda: call(identityProfile=missing)) == "ResourceNotFound"
    assert call()[1]["identityProfile"] == {"kubeletidentity": kubelet}


def test_network_rules_need_a_service_endpoint_and_public_containers_the_accounts_leave(azure: Subscription) -> None:
    azure.group()
    subnet = network(azure)
    account = {
        "resourceGroupName": "rg",
        "accountName": "datasets1",
        "location": "eastus",
        "kind": "StorageV2",
        "sku": {"name": "Standard_LRS"},
    }
    rules = {"defaultAction": "Deny", "virtualNetworkRules": [{"virtualNetworkResourceId": subnet}]}
    assert code_of(lambda: azure.create(ACCOUNT, **account, networkRuleSet=rules)) == "NetworkAclsValidationFailure"
    azure.create(ACCOUNT, **account)
    container = {"resourceGroupName": "rg", "accountName": "datasets1", "containerName": "data"}
    assert code_of(lambda: azure.create(CONTAINER, **container, publicAccess="Blob")) == "PublicAccessNotPermitted"


def test_a_group_of_a_cluster_belongs_to_the_cluster(aks: Subscription) -> None:
    group = f"/subscriptions/{aks.facts.subscription_id}/resourceGroups/rg-nodes"
    assert code_of(lambda: aks.delete(GROUP, group)) == "ResourceGroupManaged"
