"""Microsoft.ContainerService: managed clusters and their agent pools.

An agent pool given inline in a cluster and one that is a resource of its own are the same thing, as in Azure: the
cluster's `agentPoolProfiles` reads back every pool.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import Any

from emulator.azure.errors import ArmError
from emulator.azure.facts import AzureFacts, Size
from emulator.azure.services.base import (
    Kind,
    NameRule,
    Request,
    at,
    changed,
    etag,
    group_id,
    merged,
    require,
    same,
    stable_digits,
    stable_uuid,
    user_identities,
)
from emulator.azure.services.network import Subnet, network, prefixes_of
from emulator.azure.services.resources import ResourceGroup, registered
from emulator.azure.store import Operation, Properties, Record, State

CLUSTER = "Microsoft.ContainerService/managedClusters"
POOL = "Microsoft.ContainerService/managedClusters/agentPools"
NODE_IMAGE = "AKSUbuntu-2204gen2containerd-202610.27.0"
"""Form and age of a node image's name (https://github.com/Azure/AKS/releases)."""

_CLUSTER_PATH = (
    "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}/providers/Microsoft.ContainerService"
    "/managedClusters/{resourceName}"
)
_MOST_NODES = 1000
_OLDEST_SKEW = (
    3  # minor versions that a pool may be behind (https://learn.microsoft.com/azure/aks/supported-kubernetes-versions)
)
_RETIRED_TAG = "skipgpudriverinstall"
_KEY_TYPES = ("ssh-rsa", "ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521")
_RESERVED_LABELS = ("kubernetes.azure.com/", "kubernetes.io/")
_TAINT = re.compile(r"[A-Za-z0-9./_-]+(?:=[A-Za-z0-9._-]*)?:(?:NoSchedule|PreferNoSchedule|NoExecute)")
_MOST_RANGES = 200
_KUBELET = "identityProfile.kubeletidentity"
_ROLE_ASSIGNMENTS = "Microsoft.Authorization/roleAssignments"
_MANAGED_IDENTITY_OPERATOR = "f1a07417-d97a-45cb-824c-7a7467783830"


class AgentPool(Kind):
    """A pool of like nodes of a cluster."""

    token = "azure-native:containerservice:AgentPool"
    type = POOL
    path = f"{_CLUSTER_PATH}/agentPools/{{agentPoolName}}"
    rule = NameRule(r"[a-z][a-z0-9]{0,11}", "1-12 lower-case letters and digits, a letter at the start")
    # pulumi-azure-native, provider/pkg/gen/replacement.go.
    replaces = frozenset({"gpuInstanceProfile", "vmSize", "networkProfile.nodePublicIPTags"})
    duration = "agentPool"
    autoname = "copy"
    # Updates that the service refuses although the provider would not plan a replacement for them.
    immutable = (
        "vmSize",
        "availabilityZones",
        "enableNodePublicIP",
        "enableUltraSSD",
        "gpuInstanceProfile",
        "gpuProfile.driver",
        "hostGroupID",
        "kubeletConfig",
        "kubeletDiskType",
        "linuxOSConfig",
        "maxPods",
        "osDiskSizeGB",
        "osDiskType",
        "osType",
        "podSubnetID",
        "proximityPlacementGroupID",
        "scaleSetPriority",
        "type",
        "vnetSubnetID",
    )

    def check(self, request: Request) -> None:
        cluster = _cluster_of(request)
        check_pool(request, cluster.properties, request.names["agentPoolName"])

    def complete(self, request: Request) -> Properties:
        return complete_pool(request, _cluster_of(request).properties, request.names["agentPoolName"])

    def on_started(self, request: Request, record: Record) -> None:
        _note_fabric(request.facts, request.state, record)

    def operation(self, state: State, record: Record) -> Operation | None:
        cluster = state.get(record.id.rpartition("/agentPools/")[0])
        return record.operation or (cluster.operation if cluster else None)

    def on_finished(self, facts: AzureFacts, state: State, record: Record) -> None:
        settle_instances(record)

    def check_delete(self, request: Request) -> None:
        pools = request.state.of_type(POOL, request.id.rpartition("/agentPools/")[0])
        others = [each for each in pools if each.id.lower() != request.id.lower()]
        if not any(each.properties["mode"] == "System" for each in others):
            raise ArmError(
                "OperationNotAllowed",
                "The last system pool cannot be deleted: there has to be at least one pool of mode System.",
                hint="Delete the cluster, or add another system pool first.",
            )


class ManagedCluster(Kind):
    """A managed Kubernetes cluster. The emulated one is the local cluster, so there is one at a time."""

    token = "azure-native:containerservice:ManagedCluster"
    type = CLUSTER
    path = _CLUSTER_PATH
    rule = NameRule(
        r"[A-Za-z0-9](?:[\w-]{0,61}[A-Za-z0-9])?",
        "1-63 letters, digits, underscores and hyphens, a letter or digit at both ends",
    )
    # pulumi-azure-native, provider/pkg/gen/replacement.go.
    replaces = frozenset(
        {"diskEncryptionSetID", "dnsPrefix", "fqdnSubdomain", "location", "nodeResourceGroup"}
        | {f"linuxProfile.{each}" for each in ("adminUsername", "ssh")}
        | {"linuxProfile", "windowsProfile"}
        | {
            f"networkProfile.{each}"
            for each in (
                "dnsServiceIP",
                "networkDataplane",
                "networkMode",
                "networkPlugin",
                "networkPluginMode",
                "networkPolicy",
                "outboundType",
                "podCidr",
                "serviceCidr",
                "serviceCidrs",
            )
        }
    )
    duration = "managedCluster"
    tracked = True
    immutable = ("dnsPrefix", "nodeResourceGroup", "networkProfile.serviceCidr", "networkProfile.dnsServiceIP")

    def check(self, request: Request) -> None:
        others = [each for each in request.state.of_type(CLUSTER) if each.id.lower() != request.id.lower()]
        if others:
            raise ArmError(
                "LocalClusterTaken",
                f"The emulated Azure has one managed cluster, the local one, and that is {others[0].id}.",
                status=409,
                hint="Destroy the stack that owns it first.",
            )
        self._check_profile(request)
        version = _version(request)
        before = request.before.properties["currentKubernetesVersion"] if request.before else None
        if before is not None and before != version:
            _check_upgrade(before, version)
        properties = self._without_pools(request, version)
        profiles = list(request.body.get("agentPoolProfiles") or [])
        if request.creates and not profiles:
            raise ArmError("InvalidParameter", "Required parameter agentPoolProfiles is missing (null).")
        for inner in self._pools(request, properties):
            check_common_name(inner)
            check_pool(inner, properties, inner.names["agentPoolName"])
        _check_total(request, profiles)
        if request.creates and not any(each.get("mode") == "System" for each in profiles):
            raise ArmError("InvalidParameter", "A managed cluster needs at least one agent pool of mode System.")

    def complete(self, request: Request) -> Properties:
        return self._without_pools(request, _version(request))

    def on_started(self, request: Request, record: Record) -> None:
        for inner in self._pools(request, record.properties):
            name = inner.names["agentPoolName"]
            properties = complete_pool(inner, record.properties, name)
            properties["provisioningState"] = record.properties["provisioningState"]
            hidden = inner.before.hidden if inner.before else {}
            pool = Record(inner.id, AgentPool.token, POOL, properties, hidden)
            request.state.put(pool)
            _note_fabric(request.facts, request.state, pool)
        name = record.properties["nodeResourceGroup"]
        group = group_id(request.facts, name)
        if request.state.get(group) is None:
            properties = {
                "location": record.properties["location"],
                "managedBy": record.id,
                "name": name,
                "properties": {"provisioningState": "Succeeded"},
                "type": ResourceGroup.type,
            }
            request.state.put(Record(group, ResourceGroup.token, ResourceGroup.type, properties))

    def operation(self, state: State, record: Record) -> Operation | None:
        pools = state.of_type(POOL, record.id)
        return record.operation or next((each.operation for each in pools if each.operation), None)

    def on_finished(self, facts: AzureFacts, state: State, record: Record) -> None:
        for pool in state.of_type(POOL, record.id):
            if pool.operation is None:
                pool.properties["provisioningState"] = "Succeeded"
                settle_instances(pool)

    def on_failed(self, state: State, record: Record) -> None:
        for pool in state.of_type(POOL, record.id):
            if pool.operation is None:
                pool.properties["provisioningState"] = "Failed"

    def to_response(self, facts: AzureFacts, state: State, record: Record) -> Properties:
        pools = state.of_type(POOL, record.id)
        # In the order in which they came: what is declared inline stays in front.
        pools.sort(key=lambda each: each.hidden.get("order", 0))
        return {**record.properties, "agentPoolProfiles": [dict(each.properties) for each in pools]}

    def on_deleted(self, facts: AzureFacts, state: State, record: Record) -> None:
        state.remove(group_id(facts, record.properties["nodeResourceGroup"]))

    def _pools(self, request: Request, properties: Properties) -> list[Request]:
        """Return the requests for the inline pools."""
        kind, found = AgentPool(), []
        for each in request.body.get("agentPoolProfiles") or []:
            names = {**request.names, "agentPoolName": str(each.get("name", ""))}
            pool_id = kind.id(request.facts, names)
            body = {key: value for key, value in each.items() if key != "name"}
            found.append(Request(request.facts, request.state, pool_id, names, body, request.state.get(pool_id)))
        return found

    def _check_profile(self, request: Request) -> None:
        body = request.body
        if not request.kept("dnsPrefix") and not request.kept("fqdnSubdomain"):
            raise ArmError("InvalidParameter", "Required parameter dnsPrefix is missing (null).", hint="Set dnsPrefix.")
        prefix = str(request.kept("dnsPrefix", "x"))
        if not re.fullmatch(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,52}[A-Za-z0-9])?", prefix):
            raise ArmError(
                "InvalidParameter",
                f"Provided dnsPrefix {prefix} is invalid: 1-54 letters, digits and hyphens, a letter or digit at both "
                "ends.",
            )
        if not request.kept("identity") and not request.kept("servicePrincipalProfile"):
            raise ArmError(
                "InvalidParameter",
                "Neither identity nor servicePrincipalProfile is given: a cluster needs one of them.",
                hint="Set identity.type to SystemAssigned or UserAssigned.",
            )
        if request.kept("disableLocalAccounts") and not request.kept("aadProfile"):
            raise ArmError(
                "BadRequest",
                "Local accounts can be disabled on clusters with Microsoft Entra integration only.",
                hint="Set aadProfile.managed, or leave disableLocalAccounts out.",
            )
        group = request.state.get(group_id(request.facts, str(request.kept("nodeResourceGroup", ""))))
        if group is not None and str(group.properties.get("managedBy", "")).lower() != request.id.lower():
            raise ArmError(
                "NodeResourceGroupAlreadyExists",
                f"The node resource group '{group.name}' exists already: AKS creates and owns it.",
                status=409,
                hint="Set nodeResourceGroup to a name that nothing has.",
            )
        keys = (at(body, "linuxProfile.ssh.publicKeys") or []) if body.get("linuxProfile") else None
        if keys is not None:
            _check_ssh_keys(keys)
        _check_access(body.get("apiServerAccessProfile") or {})
        _check_kubelet_identity(request)
        _check_network(request)
        if body.get("supportPlan") == "AKSLongTermSupport" and at(body, "sku.tier") != "Premium":
            raise ArmError(
                "BadRequest", "The support plan AKSLongTermSupport needs the tier Premium.", hint="Set sku.tier."
            )

    def _without_pools(self, request: Request, version: str) -> Properties:
        facts, body, name = request.facts, request.body, request.names["resourceName"]
        before = request.before.properties if request.before else {}
        prefix = request.kept("dnsPrefix") or request.kept("fqdnSubdomain")
        host = f"{prefix}-{stable_uuid(request.id)[:8]}"
        location = request.location
        private = bool(at(body, "apiServerAccessProfile.enablePrivateCluster"))
        group = request.names["resourceGroupName"]
        node_group = request.kept("nodeResourceGroup", f"MC_{group}_{name}_{location}"[:80])
        identity = user_identities(request)
        given = {key: value for key, value in body.items() if key != "agentPoolProfiles"}
        result = merged(
            {
                "autoUpgradeProfile": {"nodeOSUpgradeChannel": "NodeImage"},
                "bootstrapProfile": {"artifactSource": "Direct"},
                "disableLocalAccounts": False,
                "enableRBAC": True,
                "metricsProfile": {"costAnalysis": {"enabled": False}},
                "oidcIssuerProfile": {"enabled": False},
                "securityProfile": {},
                "servicePrincipalProfile": {"clientId": "msi"},
                "sku": {"name": "Base", "tier": "Free"},
                "storageProfile": {
                    "diskCSIDriver": {"enabled": True},
                    "fileCSIDriver": {"enabled": True},
                    "snapshotController": {"enabled": True},
                },
                "supportPlan": "KubernetesOfficial",
                "workloadAutoScalerProfile": {},
            },
            given,
        )
        result |= {
            "azurePortalFQDN": f"{host}.portal.hcp.{location}.azmk8s.io",
            "currentKubernetesVersion": version,
            "dnsPrefix": request.kept("dnsPrefix"),
            "eTag": etag(),
            "identityProfile": {"kubeletidentity": _kubelet_identity(request, node_group)},
            "kubernetesVersion": request.kept("kubernetesVersion", version),
            "location": location,
            "maxAgentPools": 100,
            "name": name,
            "networkProfile": merged(
                _network_defaults(given.get("networkProfile") or {}), given.get("networkProfile") or {}
            ),
            "nodeResourceGroup": node_group,
            "powerState": {"code": "Running"},
            "provisioningState": "Succeeded",
            "resourceUID": before.get("resourceUID", stable_uuid(request.id, "uid").replace("-", "")[:24]),
            "type": self.type,
        }
        result["privateFQDN" if private else "fqdn"] = f"{host}.hcp.{location}.azmk8s.io"
        if result["dnsPrefix"] is None:
            del result["dnsPrefix"]
        if identity:
            result["identity"] = identity
        if result["oidcIssuerProfile"].get("enabled"):
            issuer = f"https://{location}.oic.prod-aks.azure.com/{facts.tenant}/{stable_uuid(request.id, 'issuer')}/"
            result["oidcIssuerProfile"] = {**result["oidcIssuerProfile"], "issuerURL": issuer}
        if result.get("aadProfile"):
            result["aadProfile"] = {"tenantID": facts.tenant, **result["aadProfile"]}
        return result


def check_common_name(request: Request) -> None:
    """Raise ArmError when an inline pool has a bad name."""
    rule = AgentPool.rule
    name = request.names["agentPoolName"]
    if not re.fullmatch(rule.pattern, name):
        raise ArmError(
            "InvalidParameter",
            f"The agent pool name '{name}' is invalid: it may have {rule.allowed}.",
            hint="Change agentPoolProfiles[].name.",
        )


def check_pool(request: Request, cluster: Mapping[str, Any], name: str) -> None:
    """Raise ArmError when AKS would refuse a pool of a cluster."""
    body, location = request.body, str(cluster["location"])
    size = _size(request, location)
    if request.before is not None:
        for path in AgentPool.immutable:
            had, wanted = at(request.before.properties, path), at(body, path)
            if had is not None and wanted is not None and not same(had, wanted):
                raise changed(path)
    _check_count(request, name)
    _check_zones(request, size, location)
    _check_version(request, cluster, name)
    _check_labels(body)
    for path in ("vnetSubnetID", "podSubnetID"):
        if body.get(path):
            subnet = require(request.state, str(body[path]), f"the pool {name} ({path})")
            if subnet.type != Subnet.type:
                raise ArmError("InvalidParameter", f"{path} of the pool {name} is no subnet: {body[path]}")
    _check_proximity(request, name, location)
    tags = {str(key).lower(): str(value).lower() for key, value in (body.get("tags") or {}).items()}
    if request.creates and size.gpus and tags.get(_RETIRED_TAG) == "true":
        # https://github.com/Azure/AKS/issues/4925; that creation is refused: https://github.com/Azure/azure-cli/pull/32531.
        raise ArmError(
            "SkipGPUDriverInstallNotSupported",
            f"The tag SkipGPUDriverInstall of the agent pool {name} is retired: no pool is created with it any more.",
            hint="Remove the tag and set gpuProfile.driver to None.",
        )
    if size.gpus and str(body.get("osType", "Linux")) == "Windows" and body.get("mode") == "System":
        raise ArmError("InvalidParameter", f"The system pool {name} has to run Linux.")
    if body.get("mode") == "System" and (size.vcpus < 2 or size.memory < 4):
        raise ArmError(
            "InvalidParameter", f"The size {size.name} of the system pool {name} is too small: 2 vCPUs, 4 GB at least."
        )
    _check_quota(request, size, location)


def complete_pool(request: Request, cluster: Mapping[str, Any], name: str) -> Properties:
    """Return a pool's properties as they read back."""
    body, facts = request.body, request.facts
    before = request.before.properties if request.before else {}
    wanted = request.body.get("orchestratorVersion") or before.get("orchestratorVersion")
    long_term = cluster.get("supportPlan") == "AKSLongTermSupport"
    current = facts.patch(str(wanted), long_term=long_term) if wanted else cluster["currentKubernetesVersion"]
    size = facts.size(str(request.kept("vmSize")))
    network_profile = cluster.get("networkProfile") or {}
    defaults = {
        "count": before.get("count", 1),
        "enableAutoScaling": False,
        "enableEncryptionAtHost": False,
        "enableFIPS": False,
        "enableNodePublicIP": False,
        "enableUltraSSD": False,
        "kubeletDiskType": "OS",
        "maxPods": before.get("maxPods", _default_pods(network_profile)),
        "mode": "User",
        "orchestratorVersion": current,
        "osDiskSizeGB": before.get("osDiskSizeGB", _default_disk(size)),
        "osDiskType": before.get("osDiskType", "Managed"),
        "osSKU": "Ubuntu",
        "osType": "Linux",
        "powerState": {"code": "Running"},
        "scaleDownMode": "Delete",
        "securityProfile": {"enableSecureBoot": False, "enableVTPM": False},
        "type": "VirtualMachineScaleSets",
        "upgradeSettings": {"maxSurge": "10%", "maxUnavailable": "0"},
        "workloadRuntime": "OCIContainer",
    }
    if size is not None and size.gpus:
        defaults["gpuProfile"] = before.get("gpuProfile", {"driver": "Install"})
    for key in AgentPool.immutable:
        # A PUT that leaves out what cannot change does not change it.
        if "." not in key and key in before:
            defaults[key] = before[key]
    return merged(
        defaults,
        {
            **body,
            "currentOrchestratorVersion": current,
            "eTag": etag(),
            "name": name,
            "nodeImageVersion": NODE_IMAGE,
            "provisioningState": "Succeeded",
        },
    )


def settle_instances(pool: Record) -> None:
    """Bring the instances of a pool's scale set to its count: new ones get the next ids, the highest ids go first."""
    stopped = at(pool.properties, "powerState.code") == "Stopped"
    count = 0 if stopped else int(pool.properties["count"])
    instances = sorted(pool.hidden.get("instances", []))[:count]
    following = int(pool.hidden.get("next", 0))
    while len(instances) < count:
        instances.append(following)
        following += 1
    pool.hidden |= {"instances": instances, "next": following}


def _note_fabric(facts: AzureFacts, state: State, pool: Record) -> None:
    """Remember, at a pool's creation, what holds for all of its life: its place and whether it has InfiniBand."""
    if "order" not in pool.hidden:
        siblings = state.of_type(POOL, pool.id.rpartition("/agentPools/")[0])
        pool.hidden["order"] = max((each.hidden.get("order", 0) for each in siblings), default=0) + 1
    if "infiniband" not in pool.hidden:
        pool.hidden["infiniband"] = registered(facts, state, "Microsoft.ContainerService", "AKSInfinibandSupport")


def _cluster_of(request: Request) -> Record:
    parent = request.id.rpartition("/agentPools/")[0]
    found = request.state.get(parent)
    if found is None:
        raise ArmError(
            "ParentResourceNotFound",
            "Failed to perform 'write' on resource(s) of type 'managedClusters/agentPools', because the parent "
            f"resource '{parent}' could not be found.",
            status=404,
        )
    return found


def _size(request: Request, location: str) -> Size:
    name = request.kept("vmSize")
    if not name:
        raise ArmError("InvalidParameter", "Required parameter agentPoolProfile.vmSize is missing (null).")
    size = request.facts.size(str(name))
    if size is None:
        nearest = request.facts.nearest_size(str(name))
        raise ArmError(
            "InvalidParameter",
            f"The VM size of {name} does not exist.",
            hint=f"Did you mean {nearest}?" if nearest else "",
        )
    if request.facts.zones(size, location) is None:
        offering = ", ".join(request.facts.offering(size)) or "no region of this subscription"
        raise ArmError(
            "SkuNotAvailable",
            f"The requested VM size '{size.name}' is currently not available in location '{location}'. Please try "
            "another size or deploy to a different location or different zone. See https://aka.ms/azureskunotavailable "
            "for details.",
            status=409,
            hint=f"Offered in {offering}.",
        )
    return size


def _check_count(request: Request, name: str) -> None:
    system = request.kept("mode", "User") == "System"
    count = request.kept("count", 1)
    least = 1 if system else 0
    if not least <= count <= _MOST_NODES:
        raise ArmError(
            "InvalidParameter",
            f"The value of parameter agentPoolProfile.count is invalid: {count}. A {'system' if system else 'user'} "
            f"pool ({name}) has {least} to {_MOST_NODES} nodes.",
        )
    lowest, highest = request.body.get("minCount"), request.body.get("maxCount")
    if not request.body.get("enableAutoScaling"):
        if lowest is not None or highest is not None:
            raise ArmError(
                "InvalidParameter",
                f"minCount and maxCount of the agent pool {name} are given, but enableAutoScaling is not true.",
                hint="Set enableAutoScaling, or leave minCount and maxCount out.",
            )
        return
    if lowest is None or highest is None:
        raise ArmError(
            "InvalidParameter",
            f"The agent pool {name} has enableAutoScaling, but minCount or maxCount is missing.",
            hint="Set both.",
        )
    if not least <= lowest <= highest <= _MOST_NODES:
        raise ArmError(
            "InvalidParameter",
            f"minCount {lowest} and maxCount {highest} of the agent pool {name} are invalid: {least} <= minCount <= "
            f"maxCount <= {_MOST_NODES}.",
        )
    if not lowest <= count <= highest:
        raise ArmError(
            "InvalidParameter",
            f"count {count} of the agent pool {name} is not between minCount {lowest} and maxCount {highest}.",
        )


def _check_zones(request: Request, size: Size, location: str) -> None:
    offered = request.facts.zones(size, location) or ()
    wrong = [zone for zone in request.body.get("availabilityZones") or [] if zone not in offered]
    if wrong:
        shown = ", ".join(offered) or "none"
        raise ArmError(
            "AvailabilityZoneNotSupported",
            f"The zone(s) '{', '.join(wrong)}' for resource '{request.id.rpartition('/')[2]}' is not supported for the "
            f"size {size.name}. The supported zones for location '{location}' are '{shown}'.",
        )


def _check_version(request: Request, cluster: Mapping[str, Any], name: str) -> None:
    wanted = request.body.get("orchestratorVersion")
    if not wanted:
        return
    long_term = cluster.get("supportPlan") == "AKSLongTermSupport"
    before = request.before.properties.get("currentOrchestratorVersion") if request.before else None
    full = str(wanted) if wanted == before else request.facts.patch(str(wanted), long_term=long_term)
    if full is None:
        raise _version_not_offered("AgentPoolK8sVersionNotSupported", f"Version {wanted}", request.facts)
    control_plane = str(cluster["currentKubernetesVersion"])
    if _numbers(full) > _numbers(control_plane) or _minor(full) < _minor(control_plane) - _OLDEST_SKEW:
        raise ArmError(
            "NodePoolMcVersionIncompatible",
            f"Node pool version {full} and control plane version {control_plane} are incompatible ({name}). The "
            f"version of a node pool cannot be newer than the control plane's, nor more than {_OLDEST_SKEW} minor "
            "versions older.",
            hint="Upgrade the cluster first.",
        )


def _check_labels(body: Mapping[str, Any]) -> None:
    for key in body.get("nodeLabels") or {}:
        if key.startswith(_RESERVED_LABELS):
            raise ArmError(
                "InvalidParameter",
                f"The node label {key} is invalid: the prefixes {' and '.join(_RESERVED_LABELS)} are reserved.",
            )
    for taint in body.get("nodeTaints") or []:
        if not _TAINT.fullmatch(taint):
            raise ArmError(
                "InvalidParameter", f"The node taint '{taint}' is invalid: key=value:NoSchedule is expected."
            )


def _check_proximity(request: Request, name: str, location: str) -> None:
    group = request.body.get("proximityPlacementGroupID")
    if not group:
        return
    found = require(request.state, str(group), f"the pool {name} (proximityPlacementGroupID)")
    if request.facts.region(found.properties["location"]) != request.facts.region(location):
        raise ArmError(
            "InvalidParameter", f"The proximity placement group {found.name} is not in {location}, unlike the cluster."
        )
    if len(request.body.get("availabilityZones") or []) > 1:
        raise ArmError(
            "InvalidParameter",
            f"The pool {name} has a proximity placement group and several zones: with one it has one zone at most.",
        )


def _check_quota(request: Request, size: Size, location: str) -> None:
    """Raise ArmError when the vCPUs of all pools in the region, with this one as asked for, exceed a quota."""
    wanted = int(request.kept("count", 1)) * size.vcpus
    used_family = used = 0
    for pool in request.state.of_type(POOL):
        other = request.facts.size(str(pool.properties["vmSize"]))
        cluster = request.state.get(pool.id.rpartition("/agentPools/")[0])
        here = cluster is not None and request.facts.region(cluster.properties["location"]) == request.facts.region(
            location
        )
        if pool.id.lower() == request.id.lower() or other is None or not here:
            continue
        cores = int(pool.properties["count"]) * other.vcpus
        used += cores
        used_family += cores if other.family == size.family else 0
    _compare_quota(wanted, used_family, request.facts.quota(size.family, location), f"family {size.family} ", location)
    _compare_quota(wanted, used, request.facts.total_quota(location), "", location)


def _compare_quota(wanted: int, used: int, limit: int, what: str, location: str) -> None:
    if wanted + used > limit:
        raise ArmError(
            "ErrCode_InsufficientVCPUQuota",
            f"Insufficient vcpu quota requested {wanted}, remaining {max(limit - used, 0)} for {what}in region "
            f"{location}.",
            hint="Ask for more in the portal (Quotas), choose another region or a smaller count.",
        )


def _check_total(request: Request, profiles: Sequence[Mapping[str, Any]]) -> None:
    names = [str(each.get("name")) for each in profiles]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ArmError("InvalidParameter", f"agentPoolProfiles has the name {', '.join(sorted(twice))} twice.")


def _version(request: Request) -> str:
    """Return the full version of the control plane. Raises ArmError for one that is not offered."""
    long_term = request.kept("supportPlan") == "AKSLongTermSupport"
    before = request.before.properties if request.before else {}
    wanted = str(
        request.body.get("kubernetesVersion") or before.get("kubernetesVersion") or request.facts.default_version
    )
    if before and wanted in (before["kubernetesVersion"], before["currentKubernetesVersion"]):
        return str(before["currentKubernetesVersion"])
    full = request.facts.patch(wanted, long_term=long_term)
    if full is None:
        what = f"Managed cluster {request.names['resourceName']} is on version {wanted}, which"
        raise _version_not_offered("K8sVersionNotSupported", what, request.facts)
    return full


def _version_not_offered(code: str, what: str, facts: AzureFacts) -> ArmError:
    return ArmError(
        code,
        f"{what} is not supported in this region. Please use [az aks get-versions] command to get the supported "
        "version list in this region. For more information, please check https://aka.ms/supported-version-list",
        hint=f"Offered are {', '.join(facts.versions(long_term=False))}; older ones with long-term support.",
    )


def _check_upgrade(before: str, wanted: str) -> None:
    if _numbers(wanted) < _numbers(before) or _minor(wanted) > _minor(before) + 1:
        raise ArmError(
            "OperationNotAllowed",
            f"Upgrading Kubernetes version {before} to {wanted} is not allowed: a control plane goes up by one minor "
            "version at a time, never down.",
            hint="Upgrade step by step.",
        )


def _check_ssh_keys(keys: Sequence[Mapping[str, Any]]) -> None:
    for key in keys:
        kind, _, rest = str(key.get("keyData", "")).strip().partition(" ")
        try:
            data = base64.b64decode(rest.split(" ")[0], validate=True)
        except (binascii.Error, ValueError):
            data = b""
        # RFC 4253, section 6.6: the data begins with the length and the name of the key's type.
        if kind not in _KEY_TYPES or data[4 : 4 + len(kind)] != kind.encode():
            raise ArmError(
                "InvalidParameter",
                "The value of parameter linuxProfile.ssh.publicKeys.keyData is invalid: no OpenSSH public key.",
                hint="Give the content of a file such as ~/.ssh/id_rsa.pub.",
            )


def _check_access(profile: Mapping[str, Any]) -> None:
    ranges = profile.get("authorizedIPRanges") or []
    if ranges and profile.get("enablePrivateCluster"):
        raise ArmError(
            "InvalidParameter", "authorizedIPRanges cannot be used with a private cluster (enablePrivateCluster)."
        )
    if len(ranges) > _MOST_RANGES:
        raise ArmError("InvalidParameter", f"There are {len(ranges)} authorizedIPRanges; {_MOST_RANGES} are the most.")
    for each in ranges:
        try:
            ipaddress.IPv4Network(each)
        except ValueError as error:
            raise ArmError(
                "InvalidParameter",
                f"The value {each} of apiServerAccessProfile.authorizedIPRanges is invalid ({error}).",
                hint="Give an IPv4 address or range, e.g. 203.0.113.0/24.",
            ) from None


def _check_network(request: Request) -> None:
    given = request.kept("networkProfile") or {}
    profile = merged(_network_defaults(given), given)
    service = network(profile["serviceCidr"], "networkProfile.serviceCidr")
    try:
        inside = ipaddress.ip_address(profile["dnsServiceIP"]) in service
    except ValueError:
        inside = False
    if not inside:
        raise ArmError(
            "DnsServiceIpOutOfServiceCidr",
            f"The DNS service IP {profile['dnsServiceIP']} is not in the service CIDR {service}.",
            hint="Set networkProfile.dnsServiceIP to an address in it, e.g. the tenth.",
        )
    if (profile["networkPolicy"] == "cilium") != (profile["networkDataplane"] == "cilium"):
        # The dataplane enforces its own policies only (https://learn.microsoft.com/azure/aks/azure-cni-powered-by-cilium).
        raise ArmError(
            "InvalidParameter",
            f"networkPolicy {profile['networkPolicy']} does not go with networkDataplane "
            f"{profile['networkDataplane']}: either both are cilium, or none is.",
        )
    pods = network(profile["podCidr"], "networkProfile.podCidr") if profile.get("podCidr") else None
    for pool in request.body.get("agentPoolProfiles") or []:
        subnet = request.state.get(str(pool.get("vnetSubnetID", "")))
        for each in prefixes_of(subnet.properties) if subnet else []:
            taken = network(each, str(subnet and subnet.id))
            if taken.version == service.version and taken.overlaps(service):
                raise ArmError(
                    "ServiceCidrOverlapExistingSubnetsCidr",
                    f"The specified service CIDR {service} is conflicted with an existing subnet CIDR {taken}",
                    hint="Set networkProfile.serviceCidr to a range outside the virtual network.",
                )
            if pods is not None and taken.version == pods.version and taken.overlaps(pods):
                raise ArmError(
                    "NetworkProfileCIDROverlapVNET",
                    f"NetworkProfile CIDR {pods} overlaps with reserved VNET CIDR {taken}",
                    hint="Set networkProfile.podCidr to a range outside the virtual network.",
                )


def _network_defaults(given: Mapping[str, Any]) -> Properties:
    plugin = given.get("networkPlugin", "azure")
    overlay = plugin == "azure" and given.get("networkPluginMode", None if "networkPlugin" in given else "overlay")
    service = given.get("serviceCidr", "10.0.0.0/16")
    result: Properties = {
        "dnsServiceIP": given.get("dnsServiceIP", "10.0.0.10" if service == "10.0.0.0/16" else None),
        "ipFamilies": ["IPv4"],
        "loadBalancerSku": "standard",
        "networkDataplane": "azure",
        "networkPlugin": plugin,
        "networkPolicy": "none",
        "outboundType": "loadBalancer",
        "serviceCidr": service,
        "serviceCidrs": [service],
    }
    if result["dnsServiceIP"] is None:
        result["dnsServiceIP"] = _tenth(service)
    if overlay == "overlay":
        result["networkPluginMode"] = "overlay"
    if overlay == "overlay" or plugin == "kubenet":
        result["podCidr"] = given.get("podCidr", "10.244.0.0/16")
        result["podCidrs"] = [result["podCidr"]]
    if given.get("outboundType", "loadBalancer") == "loadBalancer":
        result["loadBalancerProfile"] = {
            "backendPoolType": "NodeIPConfiguration",
            "managedOutboundIPs": {"count": 1},
        }
    return result


def _tenth(service: Any) -> str:
    return str(network(service, "networkProfile.serviceCidr")[10])


def _default_pods(profile: Mapping[str, Any]) -> int:
    """The most pods of a node (https://learn.microsoft.com/azure/aks/concepts-network-cni-overview)."""
    if profile.get("networkPlugin") == "kubenet":
        return 110
    return 250 if profile.get("networkPluginMode") == "overlay" else 30


def _default_disk(size: Size | None) -> int:
    """The OS disk's GiB (https://learn.microsoft.com/azure/aks/concepts-storage, default OS disk sizing)."""
    vcpus = size.vcpus if size else 0
    return next(disk for limit, disk in ((7, 128), (15, 256), (63, 512), (10**6, 1024)) if vcpus <= limit)


def _check_kubelet_identity(request: Request) -> None:
    """Raise ArmError when AKS would refuse an identity of the kubelets' own.

    https://learn.microsoft.com/azure/aks/pre-created-kubelet-managed-identity.
    """
    given = at(request.body, _KUBELET)
    if not given:
        return
    resource_id = str(given.get("resourceId", ""))
    kubelet = require(request.state, resource_id, f"the kubelet identity of {request.id}").properties
    for key, known in (("clientId", "clientId"), ("objectId", "principalId")):
        if given.get(key) not in (None, kubelet[known]):
            raise ArmError(
                "InvalidParameter",
                f"{key} {given[key]} of the kubelet identity is not the one of {resource_id}, {kubelet[known]}.",
                hint=f"Leave identityProfile.kubeletidentity.{key} out.",
            )
    control_plane = (user_identities(request) or {}).get("userAssignedIdentities") or {}
    if not control_plane:
        raise ArmError(
            "CustomKubeletIdentityOnlySupportedOnUserAssignedMSICluster",
            "A kubelet identity of one's own needs a control plane with a user assigned identity.",
            hint="Set identity.type to UserAssigned.",
        )
    principals = {each["principalId"] for each in control_plane.values()}
    for role in request.state.of_type(_ROLE_ASSIGNMENTS):
        is_above = resource_id.lower().startswith(role.properties["scope"].lower())
        is_operator = role.properties["roleDefinitionId"].endswith(_MANAGED_IDENTITY_OPERATOR)
        if is_above and is_operator and role.properties["principalId"] in principals:
            return
    raise ArmError(
        "CustomKubeletIdentityMissingPermissionError",
        "The cluster user assigned identity must be given permission to assign kubelet identity "
        f"{resource_id}. Check access result not allowed for action "
        "Microsoft.ManagedIdentity/userAssignedIdentities/assign/action.",
        hint="Give the control plane's identity the role Managed Identity Operator on it.",
    )


def _kubelet_identity(request: Request, node_group: str) -> Properties:
    given = at(request.body, _KUBELET)
    if given:
        identity = require(request.state, str(given["resourceId"]), request.id).properties
        return {**given, "clientId": identity["clientId"], "objectId": identity["principalId"]}
    name = f"{request.names['resourceName']}-agentpool"
    resource_id = (
        f"{group_id(request.facts, node_group)}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{name}"
    )
    return {
        "clientId": stable_uuid(resource_id, "client"),
        "objectId": stable_uuid(resource_id, "principal"),
        "resourceId": resource_id,
    }


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _minor(version: str) -> int:
    return _numbers(version)[1]


def node_suffix(cluster_id: str) -> str:
    """Return the eight digits that AKS puts into the names of a cluster's scale sets."""
    return stable_digits(cluster_id, 8)
