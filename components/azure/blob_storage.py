"""Blob storage for data sets and checkpoints."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_azure_native import storage

from components.azure import roles
from components.azure.scope import ResourceScope
from components.layer import Layer


@dataclass(frozen=True, kw_only=True)
class Grant:
    """The rights of an identity in one container.

    name: of the identity, unique among the grants.
    principal: its object ID.
    writes: it may also write.
    """

    name: str
    container: str
    principal: pulumi.Input[str]
    writes: bool = False


@dataclass(frozen=True, kw_only=True)
class BlobStorageArgs:
    """The arguments of the storage account.

    account: name, unique in all of Azure.
    container: name in the account.
    sku: redundancy, such as Standard_LRS.
    more_containers: more containers. They remain with their data when they are removed from the settings.
    subnet_id: subnet of the nodes, which can reach the account.
    allowed_ranges: public networks that can reach it too.
    shared_key: accept requests signed with the account's key or with a SAS token made from it. The key grants all
    rights.
    grants: identities with rights in the containers above.
    """

    account: str
    container: str
    more_containers: Sequence[str] = ()
    scope: ResourceScope
    sku: str
    subnet_id: pulumi.Input[str]
    allowed_ranges: tuple[str, ...] = ()
    shared_key: bool = False
    grants: Sequence[Grant] = ()


class BlobStorage(Layer):
    """Create a storage account with containers: TLS 1.2, no anonymous access, closed except for the allowed networks.

    It has no hierarchical namespace, because blobfuse does not expect one unless it uses the Data Lake interface.
    """

    def __init__(self, name: str, args: BlobStorageArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:azure:BlobStorage", name, None, opts)
        options = pulumi.ResourceOptions(parent=self)
        account = storage.StorageAccount(
            args.account,
            account_name=args.account,
            **args.scope.arguments(),
            kind=storage.Kind.STORAGE_V2,
            sku=storage.SkuArgs(name=args.sku),
            access_tier=storage.AccessTier.HOT,
            is_hns_enabled=False,
            minimum_tls_version=storage.MinimumTlsVersion.TLS1_2,
            enable_https_traffic_only=True,
            allow_blob_public_access=False,
            allow_shared_key_access=args.shared_key,
            allow_cross_tenant_replication=False,
            public_network_access=storage.PublicNetworkAccess.ENABLED,
            network_rule_set=storage.NetworkRuleSetArgs(
                default_action=storage.DefaultAction.DENY,
                bypass=storage.Bypass.AZURE_SERVICES,
                virtual_network_rules=[storage.VirtualNetworkRuleArgs(virtual_network_resource_id=args.subnet_id)],
                # The account's firewall has a single address without a prefix length.
                ip_rules=[
                    storage.IPRuleArgs(i_p_address_or_range=each.removesuffix("/32")) for each in args.allowed_ranges
                ],
            ),
            opts=options,
        )
        own = pulumi.ResourceOptions(parent=self, depends_on=[account])
        kept = pulumi.ResourceOptions.merge(own, pulumi.ResourceOptions(protect=False, retain_on_delete=True))
        containers = {args.container: _container(args, args.container, own)}
        containers |= {name: _container(args, name, kept) for name in args.more_containers if name != args.container}
        given = [
            roles.assign(
                f"{args.account}-{grant.container}-{grant.name}",
                role=roles.BLOB_DATA_CONTRIBUTOR if grant.writes else roles.BLOB_DATA_READER,
                scope=containers[grant.container].id,
                principal=grant.principal,
                # It has no data. With protection, it could not be removed from the stack with its volume.
                opts=pulumi.ResourceOptions(parent=self, protect=False),
            )
            for grant in args.grants
        ]
        self.ready = [account, *containers.values(), *given]
        self.register_outputs({"id": account.id})


def _container(args: BlobStorageArgs, name: str, options: pulumi.ResourceOptions) -> storage.BlobContainer:
    return storage.BlobContainer(
        f"{args.account}-{name}",
        account_name=args.account,
        container_name=name,
        resource_group_name=args.scope.resource_group,
        public_access=storage.PublicAccess.NONE,
        opts=options,
    )
