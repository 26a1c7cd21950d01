"""The addresses of a managed cluster's pods and Services: Azure CNI in overlay mode."""

import ipaddress
from collections.abc import Mapping
from typing import Any

from emulator.azure.errors import invalid, refused
from emulator.azure.services.base import Request, merged
from emulator.azure.services.network import network
from emulator.azure.store import Properties

_DEFAULTS: Mapping[str, Any] = {
    "dnsServiceIP": "10.0.0.10",
    "loadBalancerSku": "standard",
    "networkDataplane": "azure",
    "networkPlugin": "azure",
    "networkPluginMode": "overlay",
    "networkPolicy": "none",
    "outboundType": "loadBalancer",
    "podCidr": "10.244.0.0/16",
    "serviceCidr": "10.0.0.0/16",
}
_MOST_RANGES = 200


def network_profile(request: Request) -> Properties:
    """Return the network profile with AKS's defaults. Raises ArmError if AKS would reject it."""
    profile = merged(_DEFAULTS, request.body.get("networkProfile") or {})
    service = network(profile["serviceCidr"], "networkProfile.serviceCidr")
    pods = network(profile["podCidr"], "networkProfile.podCidr")
    if not network(profile["dnsServiceIP"], "networkProfile.dnsServiceIP").subnet_of(service):
        raise refused("DnsServiceIpOutOfServiceCidr", address=profile["dnsServiceIP"], service=service)
    if (profile["networkPolicy"] == "cilium") != (profile["networkDataplane"] == "cilium"):
        # The dataplane enforces its own policies only (https://learn.microsoft.com/azure/aks/azure-cni-powered-by-cilium).
        raise invalid(
            f"networkPolicy {profile['networkPolicy']} does not go with networkDataplane "
            f"{profile['networkDataplane']}: either both are cilium, or none is."
        )
    for pool in request.body.get("agentPoolProfiles") or []:
        subnet = request.state.get(str(pool.get("vnetSubnetID", "")))
        if subnet is None:
            continue
        taken = network(subnet.properties["addressPrefix"], subnet.id)
        if taken.overlaps(service):
            raise refused("ServiceCidrOverlapExistingSubnetsCidr", service=service, subnet=taken)
        if taken.overlaps(pods):
            raise refused("NetworkProfileCIDROverlapVNET", pods=pods, subnet=taken)
    return profile


def check_access(profile: Mapping[str, Any]) -> None:
    """Raise ArmError if AKS would not open the API server to these networks."""
    ranges = profile.get("authorizedIPRanges") or []
    if ranges and profile.get("enablePrivateCluster"):
        raise invalid("authorizedIPRanges cannot be used with a private cluster (enablePrivateCluster).")
    if len(ranges) > _MOST_RANGES:
        raise invalid(f"There are {len(ranges)} authorizedIPRanges; {_MOST_RANGES} are the most.")
    for each in ranges:
        try:
            ipaddress.IPv4Network(each)
        except ValueError as error:
            raise invalid(
                f"The value {each} of apiServerAccessProfile.authorizedIPRanges is invalid ({error}).",
                "Give an IPv4 address or range, e.g. 203.0.113.0/24.",
            ) from None
