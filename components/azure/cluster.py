"""The AKS cluster with its system pool."""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any, Final

import pulumi
from pulumi_azure_native import containerservice

from components.azure.identity import KubeletIdentity
from components.azure.scope import ResourceScope
from components.azure.system_pool import SystemPool
from components.layer import Layer

_KUBELET: Final = "kubeletidentity"
"""The only key of a cluster's identity profile."""

PRINCIPAL_TAG: Final = "mlbatch-control-plane-principal"
"""Tag with the object ID of the control plane's identity. A recreated identity has the same resource ID, which the
cluster refers to. Without the tag, no input would change, and AKS would continue with the old identity
(https://github.com/Azure/AKS/issues/4561). With it, the cluster is updated as by `az aks update --assign-identity`. The
kubelets' identity is given with its object ID."""


@dataclass(frozen=True, kw_only=True)
class PodNetwork:
    """Address ranges of pods and Services, and the engine that enforces NetworkPolicies: cilium, calico, or none."""

    pod_cidr: str
    service_cidr: str
    policy: str


@dataclass(frozen=True, kw_only=True)
class ApiServer:
    """The clients that can reach the API server.

    They are those in the given networks, those in the virtual network (private), or all (neither).
    run_command: `az aks command invoke` may run commands in the cluster, independent of the networks.
    """

    authorized_ranges: tuple[str, ...] = ()
    private: bool = False
    run_command: bool = False


@dataclass(frozen=True, kw_only=True)
class AksClusterArgs:
    """The arguments of a cluster.

    node_resource_group: group that AKS creates for the nodes. It must not exist.
    kubernetes_version: 1.35 for the newest patch release of AKS, or 1.35.7.
    support_plan: KubernetesOfficial or AKSLongTermSupport, which needs tier Premium.
    tier: Free, Standard or Premium.
    identity_id, identity_principal: resource ID and object ID of the control plane's identity. It needs the role
    Managed Identity Operator on the kubelets' identity.
    local_accounts: the cluster also issues a certificate with cluster-admin rights.
    admin_groups: object IDs of Entra groups that administer the cluster. Without any, Entra is not used.
    upgrade_channel, node_os_channel: automatic upgrades, with the names of AKS's API.
    """

    name: str
    scope: ResourceScope
    node_resource_group: str
    kubernetes_version: str
    support_plan: str
    tier: str
    admin_user: str
    ssh_public_key: str
    identity_id: pulumi.Input[str]
    identity_principal: pulumi.Input[str]
    kubelets: KubeletIdentity
    subnet_id: pulumi.Input[str]
    system_pool: SystemPool
    pod_network: PodNetwork
    api_server: ApiServer
    local_accounts: bool = False
    admin_groups: tuple[str, ...] = ()
    upgrade_channel: str
    node_os_channel: str


class AksCluster(Layer):
    """Create an AKS cluster: managed identity, Entra sign-in with Azure's roles, workload identity, overlay network.

    A cluster has a list of all its pools, and every pool adds itself. The program sets this list only at creation and
    ignores it afterwards: an update sends the pools as the last refresh found them. SystemPoolUpdates changes the
    system pool.

    The provider would replace the cluster for another SSH key (pulumi-azure-native, provider/pkg/gen/replacement.go:
    linuxProfile). The program ignores the key after creation, and warns with the command that changes it in place.
    """

    name: str
    id: pulumi.Output[str]
    pools: pulumi.Output[Sequence[Any] | None]
    """All pools as Azure reports them."""
    oidc_issuer: pulumi.Output[str]
    """Issuer of the service accounts' tokens. Federated credentials of workload identities name it."""

    def __init__(self, name: str, args: AksClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:azure:AksCluster", name, None, opts)
        cluster = containerservice.ManagedCluster(
            args.name,
            resource_name_=args.name,
            **{**args.scope.arguments(), "tags": {**args.scope.tags, PRINCIPAL_TAG: args.identity_principal}},
            node_resource_group=args.node_resource_group,
            dns_prefix=dns_prefix(args.name),
            kubernetes_version=args.kubernetes_version,
            support_plan=args.support_plan,
            sku=containerservice.ManagedClusterSKUArgs(
                name=containerservice.ManagedClusterSKUName.BASE, tier=args.tier
            ),
            identity=containerservice.ManagedClusterIdentityArgs(
                type=containerservice.ResourceIdentityType.USER_ASSIGNED, user_assigned_identities=[args.identity_id]
            ),
            identity_profile={
                _KUBELET: containerservice.UserAssignedIdentityArgs(
                    resource_id=args.kubelets.id, client_id=args.kubelets.client, object_id=args.kubelets.principal
                )
            },
            enable_rbac=True,
            disable_local_accounts=not args.local_accounts,
            aad_profile=_sign_in(args.admin_groups),
            api_server_access_profile=containerservice.ManagedClusterAPIServerAccessProfileArgs(
                authorized_ip_ranges=list(args.api_server.authorized_ranges) or None,
                enable_private_cluster=args.api_server.private,
                disable_run_command=not args.api_server.run_command,
            ),
            network_profile=_network(args.pod_network),
            oidc_issuer_profile=containerservice.ManagedClusterOIDCIssuerProfileArgs(enabled=True),
            security_profile=containerservice.ManagedClusterSecurityProfileArgs(
                workload_identity=containerservice.ManagedClusterSecurityProfileWorkloadIdentityArgs(enabled=True)
            ),
            auto_upgrade_profile=containerservice.ManagedClusterAutoUpgradeProfileArgs(
                upgrade_channel=args.upgrade_channel, node_os_upgrade_channel=args.node_os_channel
            ),
            agent_pool_profiles=[{"name": args.system_pool.name, **args.system_pool.properties(args.subnet_id)}],
            linux_profile=containerservice.ContainerServiceLinuxProfileArgs(
                admin_username=args.admin_user,
                ssh=containerservice.ContainerServiceSshConfigurationArgs(
                    public_keys=[containerservice.ContainerServiceSshPublicKeyArgs(key_data=args.ssh_public_key)]
                ),
            ),
            opts=pulumi.ResourceOptions(
                parent=self,
                ignore_changes=["agentPoolProfiles", "linuxProfile"],
            ),
        )
        cluster.linux_profile.apply(lambda profile: self._compare_key(args, profile))
        self.name = args.name
        self.id = cluster.id
        self.pools = cluster.agent_pool_profiles
        self.oidc_issuer = cluster.oidc_issuer_profile.apply(lambda profile: (profile and profile.issuer_url) or "")
        self.ready = [cluster]
        self.register_outputs({"id": self.id})

    def _compare_key(self, args: AksClusterArgs, profile: Any) -> None:
        keys = [key.key_data.split()[:2] for key in profile.ssh.public_keys] if profile else []
        if keys and args.ssh_public_key.split()[:2] not in keys:
            pulumi.log.warn(
                f"the nodes of {args.name} have another SSH key than mlbatch:azure.sshPublicKey. To change it in "
                f"place, write the key to a file and run `az aks update --resource-group "
                f"{args.scope.resource_group} --name {args.name} --ssh-key-value <file>`. Nodes get it with their "
                "next image",
                self,
            )


def dns_prefix(cluster: str) -> str:
    """Return the first part of the API server's address: at most 54 letters, digits and hyphens of the name."""
    return cluster.replace("_", "-")[:54].strip("-")


def dns_service_ip(service_cidr: str) -> str:
    """Return the address of the cluster's DNS server: the tenth address of the Services' network, AKS's default."""
    return str(IPv4Network(service_cidr)[10])


def _sign_in(groups: Sequence[str]) -> containerservice.ManagedClusterAADProfileArgs | None:
    if not groups:
        return None
    return containerservice.ManagedClusterAADProfileArgs(
        managed=True, enable_azure_rbac=True, admin_group_object_ids=list(groups)
    )


def _network(pods: PodNetwork) -> containerservice.ContainerServiceNetworkProfileArgs:
    """Return Azure CNI in overlay mode. AKS enforces cilium's policies only with cilium's data plane."""
    is_cilium = pods.policy == containerservice.NetworkPolicy.CILIUM
    return containerservice.ContainerServiceNetworkProfileArgs(
        network_plugin=containerservice.NetworkPlugin.AZURE,
        network_plugin_mode=containerservice.NetworkPluginMode.OVERLAY,
        network_dataplane=containerservice.NetworkDataplane.CILIUM
        if is_cilium
        else containerservice.NetworkDataplane.AZURE,
        network_policy=pods.policy,
        pod_cidr=pods.pod_cidr,
        service_cidr=pods.service_cidr,
        dns_service_ip=dns_service_ip(pods.service_cidr),
        load_balancer_sku=containerservice.LoadBalancerSku.STANDARD,
        outbound_type=containerservice.OutboundType.LOAD_BALANCER,
    )
