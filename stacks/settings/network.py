"""Connections from and to teams' pods."""

from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import Field

from components import names
from components.kubernetes.network import DNS_PODS, DNS_PORTS, METADATA_ADDRESSES, TRANSLATED
from stacks.config.errors import ConfigError, Path, key, listed
from stacks.settings.cidr import Addresses, Network, is_too_wide, overlapping, refused
from stacks.settings.model import SettingsModel
from stacks.settings.names import label_error, label_errors

_PORTS: Final = range(1, 65536)

RAY_DASHBOARD: Final = 8265
"""Port of a Ray cluster's head: KubeRay's operator asks there how a RayJob does (ray-project/kuberay, rayjob
controller), and Kueue takes the job for ready once it has had an answer (v0.19.2, pkg/controller/jobs/rayjob)."""
RAY_OPERATORS: Final = (names.SYSTEM_NAMESPACE,)
"""Where the platform's KubeRay runs, as MLBatch's does (`setup.k8s/kuberay`). No name is trusted whose namespace may be
absent: on OpenShift, people make projects of any name."""

LOCAL_RESOLVERS: Final = ("169.254.20.10/32", "169.254.25.10/32", "169.254.10.10/32", "169.254.10.11/32")
"""Where caches of DNS listen that run on the nodes themselves: NodeLocal DNSCache (kubernetes/kubernetes,
cluster/addons/dns/nodelocaldns), Kubespray's (kubernetes-sigs/kubespray, nodelocaldns_ip) and AKS LocalDNS
(learn.microsoft.com/azure/aks/localdns-custom)."""

_EVERYBODY: Final = ("this contains almost all addresses", "list the networks of the intended peers")
_METADATA_TOO: Final = (
    "this contains almost all addresses, including the nodes' metadata service",
    "set the key internet next to addresses to true for all internet addresses, and list private networks here",
)
_IPV4: Final = (
    "this IPv6 network maps to IPv4 addresses, including clouds' metadata services",
    "list the intended IPv4 networks",
)
_ALL_DENIED: Final = ("this contains all addresses", "set the key internet next to denied to false")
_NO_RESOLVER: Final = (
    "this lets teams' pods send data to all addresses in DNS queries",
    "list them, each with /32 or /128",
)


class PeerSettings(SettingsModel):
    """The other end of a connection."""

    addresses: tuple[Network, ...] = ()
    """Networks outside the cluster. Some network plugins also match pods and nodes in these ranges. Cilium does not."""
    namespaces: tuple[str, ...] = ()
    """Namespaces of the cluster. All their pods match."""

    def check(self, path: Path) -> Iterator[ConfigError]:
        for index, name in enumerate(self.namespaces):
            yield from label_error((*path, "namespaces", index), name)
        yield from refused((*path, "addresses"), self.addresses, self.refusal)

    def refusal(self, network: Addresses) -> tuple[str, str] | None:
        """Return why one of the addresses is rejected."""
        return _EVERYBODY if is_too_wide(network) else None


class IngressSettings(PeerSettings):
    """Who can connect to teams' pods, in addition to their own team and Prometheus."""


class EgressPeerSettings(PeerSettings):
    """Additional destinations of this team's pods."""

    def refusal(self, network: Addresses) -> tuple[str, str] | None:
        if is_too_wide(network):
            return _METADATA_TOO
        if (found := overlapping(network, METADATA_ADDRESSES)) is not None:
            return (
                f"it contains {found.split('/')[0]}, where a cloud gives the node's own credentials to any client",
                "list smaller networks that do not contain this address",
            )
        return _IPV4 if overlapping(network, TRANSLATED) is not None else None


class EgressSettings(EgressPeerSettings):
    """Where teams' pods can connect to, in addition to their own team and DNS."""

    internet: bool = True
    """Allow all internet addresses. Private networks, nodes and cloud metadata services are not among them."""
    denied: tuple[Network, ...] = ()
    """Exceptions from `internet`, such as public addresses of pods, nodes or the API server."""

    def check(self, path: Path) -> Iterator[ConfigError]:
        yield from super().check(path)
        yield from refused((*path, "denied"), self.denied, lambda network: None if network.prefixlen else _ALL_DENIED)
        if self.denied and not self.internet:
            yield ConfigError(
                (*path, "denied"),
                "internet is not true, so all its addresses are denied anyway",
                f"remove the key, or set {key((*path, 'internet'))} to true",
            )


class DnsPodsSettings(SettingsModel):
    """Pods that answer DNS."""

    namespace: str
    """Namespace of the pods."""
    labels: Mapping[str, str] = Field(default_factory=dict)
    """Labels that all these pods have. Default: none, which selects all pods of the namespace."""

    def check(self, path: Path) -> Iterator[ConfigError]:
        yield from label_error((*path, "namespace"), self.namespace)
        yield from label_errors((*path, "labels"), self.labels)


class DnsSettings(SettingsModel):
    """DNS servers that teams' pods can use. Each list replaces its default."""

    pods: tuple[DnsPodsSettings, ...] = tuple(
        DnsPodsSettings(namespace=item.namespace, labels=dict(item.labels)) for item in DNS_PODS
    )
    """DNS pods in the cluster. Default: kube-dns and CoreDNS, their caches, and OpenShift's DNS."""
    ports: tuple[int, ...] = DNS_PORTS
    """Container ports of these pods, not the ports of their Service."""
    addresses: tuple[Network, ...] = LOCAL_RESOLVERS
    """Resolvers outside of pods, such as caches on the nodes. Only port 53 is opened. For Cloud DNS on GKE:
    169.254.169.254/32. Cilium ignores the addresses of nodes.
    """

    def check(self, path: Path) -> Iterator[ConfigError]:
        for index, port in enumerate(self.ports):
            if port not in _PORTS:
                yield ConfigError(
                    (*path, "ports", index),
                    "this is not a port",
                    "use the container port of your DNS pods",
                    expected=f"a number from {_PORTS[0]} to {_PORTS[-1]}",
                )
        yield from refused(
            (*path, "addresses"), self.addresses, lambda network: _NO_RESOLVER if is_too_wide(network) else None
        )
        if not self.addresses and not self.pods:
            yield ConfigError(
                path,
                "teams' pods would have no DNS server",
                f"remove {key((*path, 'pods'))} and {key((*path, 'addresses'))}, or list your own resolvers",
            )
        elif self.pods and not self.ports:
            yield ConfigError(
                (*path, "ports"),
                "teams' pods could not reach these DNS pods",
                f"remove the key; the default is {listed(DNS_PORTS)}",
            )


class TenancyNetworkSettings(SettingsModel):
    """NetworkPolicies for the namespaces of teams and of mlbatch:workloads.

    The cluster's network plugin must enforce them.
    """

    enabled: bool = True
    """Create them, and one for the namespace of monitoring. Without them, each pod can connect to the pods of all teams
    and to the nodes' metadata service.
    """
    dns: DnsSettings = DnsSettings()
    ray_operators: tuple[str, ...] = RAY_OPERATORS
    """Namespaces of KubeRay's operator, which reads the status of each RayJob from its dashboard (port 8265). Without
    access, a RayJob counts neither as started nor as ended. A team's namespace is refused. The default also contains
    redhat-ods-applications if the stack installs OpenShift AI. List a KubeRay that the stack does not install only if
    teams trust each other: a team's dashboard can redirect it to another team's. KubeRay of OpenShift AI has the same
    limit.
    """
    egress: EgressSettings = EgressSettings()
    ingress: IngressSettings = IngressSettings()

    def check(self, path: Path) -> Iterator[ConfigError]:
        for index, name in enumerate(self.ray_operators):
            yield from label_error((*path, "rayOperators", index), name)


class TeamNetworkSettings(SettingsModel):
    """Additional connections of this team's pods, beyond mlbatch:tenancy.network."""

    egress: EgressPeerSettings = EgressPeerSettings()
    ingress: IngressSettings = IngressSettings()
