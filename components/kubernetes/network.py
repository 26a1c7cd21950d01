"""NetworkPolicies: the allowed connections of a namespace's pods.

A policy denies all connections that its rules do not allow, in both directions. It allows replies on allowed
connections. A pod's node always reaches the pod, so probes and port-forwards need no rule. The object has no effect by
itself, because the cluster's network enforces it. Sources: kubernetes.io,
concepts/services-networking/network-policies; k8s.io/api, networking/v1/types.go.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pulumi

from components.kubernetes.manifests import Document, Manifest
from components.layer import Layer

NAME: Final = "network-boundary"
"""Name of a namespace's policy."""
NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"
"""Label with the name of its namespace. Kubernetes enforces its value (NamespaceDefaultLabelName)."""

METADATA_ADDRESSES: Final = (
    "169.254.169.254/32",
    "169.254.170.2/32",
    "169.254.170.23/32",
    "168.63.129.16/32",
    "100.100.100.200/32",
    "192.0.0.192/32",
    "fd00:ec2::254/128",
    "fd00:ec2::23/128",
    "fd20:ce::254/128",
)
"""Metadata services of clouds, from each cloud's documentation. They give the node's credentials to every caller. Most
clouds share the first address."""

TRANSLATED: Final = ("::/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16")
"""IPv6 addresses that represent IPv4 ones, including those of metadata services: compatible and translated addresses
(RFC 6052, RFC 8215) and 6to4."""

_NOT_INTERNET_4: Final = (
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "168.63.129.16/32",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "224.0.0.0/4",
    "240.0.0.0/4",
)
_NOT_INTERNET_6: Final = (
    *TRANSLATED,
    "fc00::/7",
    "fe80::/10",
    "ff00::/8",
)
"""Networks that are not on the internet (IANA, iana-ipv4-special-registry and iana-ipv6-special-registry), and the
metadata address in a public range. For IPv6, this includes addresses that represent IPv4 ones, because some of these
are private. Mapped addresses (::ffff:0:0/96) are sent as IPv4, and the API server reads them as IPv4."""

_DNS_PORT: Final = 53
_OWN: Final[Document] = {"podSelector": {}}
"""All pods of the policy's namespace."""


@dataclass(frozen=True, kw_only=True)
class Pods:
    """All pods of a namespace, or those with labels."""

    namespace: str
    labels: Mapping[str, str] = field(default_factory=dict)

    def peer(self) -> Document:
        """Return them as a peer of a connection."""
        own: Document = {"podSelector": {"matchLabels": dict(self.labels)}} if self.labels else {}
        return {"namespaceSelector": {"matchLabels": {NAMESPACE_LABEL: self.namespace}}, **own}


DNS_PODS: Final = (
    Pods(namespace="kube-system", labels={"k8s-app": "kube-dns"}),
    Pods(namespace="kube-system", labels={"k8s-app": "node-local-dns"}),
    Pods(namespace="openshift-dns", labels={"dns.operator.openshift.io/daemonset-dns": "default"}),
)
"""The cluster's DNS, and its caches if they are pods with their own addresses (kubernetes/kubernetes,
cluster/addons/dns); OpenShift's (openshift/cluster-dns-operator)."""
DNS_PORTS: Final = (_DNS_PORT, 5353, 8053)
"""Ports of those pods: CoreDNS, OpenShift's and Gardener's. A policy sees a pod's port, not its Service's."""


@dataclass(frozen=True, kw_only=True)
class Peers:
    """Peers of connections.

    addresses: networks in CIDR notation outside the cluster. Whether they also match pods depends on the network
    plugin.
    """

    pods: Sequence[Pods] = ()
    addresses: Sequence[str] = ()

    def body(self) -> list[Document]:
        """Return them in the format of a rule."""
        return [*(pods.peer() for pods in self.pods), *(_block(address) for address in self.addresses)]


@dataclass(frozen=True, kw_only=True)
class Resolvers:
    """The DNS servers.

    pods: on `ports`.
    addresses: networks in CIDR notation outside the cluster, only on port 53.
    """

    pods: Sequence[Pods] = DNS_PODS
    ports: Sequence[int] = DNS_PORTS
    addresses: Sequence[str] = ()

    def rules(self) -> list[Document]:
        """Return the rules of a policy. Each has peers and ports, because an empty list in a rule would allow all."""
        ends = ((Peers(pods=self.pods), self.ports), (Peers(addresses=self.addresses), (_DNS_PORT,)))
        return [
            {"to": peers.body(), "ports": [_port(port, protocol) for port in ports for protocol in ("UDP", "TCP")]}
            for peers, ports in ends
            if peers.body() and ports
        ]


@dataclass(frozen=True, kw_only=True)
class Network:
    """The allowed connections of a namespace's pods, besides those between them and to DNS.

    callers: peers that may connect to the pods.
    callers_of: more peers by TCP port number. They may connect only to this port.
    called: peers that the pods may connect to.
    internet: the pods may also connect to all internet addresses, but not to private networks.
    denied: exceptions from `internet`, networks in CIDR notation.
    resolvers: the DNS servers.
    """

    callers: Peers = Peers()
    callers_of: Mapping[int, Peers] = field(default_factory=dict)
    called: Peers = Peers()
    internet: bool = True
    denied: Sequence[str] = ()
    resolvers: Resolvers = Resolvers()


@dataclass(frozen=True, kw_only=True)
class NetworkBoundaryArgs:
    """namespace: the namespace whose pods it applies to."""

    namespace: pulumi.Input[str]
    network: Network


class NetworkBoundary(Layer):
    """Create the NetworkPolicy of a namespace, before any pod runs there."""

    def __init__(self, name: str, args: NetworkBoundaryArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:kubernetes:NetworkBoundary", name, None, opts)
        document = boundary(args.namespace, args.network)
        self.ready = [Manifest(f"{name}/NetworkPolicy", document, pulumi.ResourceOptions(parent=self))]
        self.register_outputs({})


def boundary(namespace: pulumi.Input[str], network: Network) -> Document:
    """Return the policy for all pods of a namespace, in both directions."""
    callers, called = network.callers.body(), network.called.body()
    return _policy(
        NAME,
        namespace,
        {
            "podSelector": {},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [
                {"from": [_OWN]},
                *([{"from": callers}] if callers else []),
                *(
                    {"from": peers.body(), "ports": [_port(port, "TCP")]}
                    for port, peers in network.callers_of.items()
                    if peers.body()
                ),
            ],
            "egress": [
                {"to": [_OWN]},
                *network.resolvers.rules(),
                *([{"to": called}] if called else []),
                *([{"to": _internet(network.denied)}] if network.internet else []),
            ],
        },
    )


def inward(namespace: pulumi.Input[str], metrics: Mapping[int, Sequence[Document]] | None = None) -> Document:
    """Return the policy that allows connections to a namespace's pods only from its own pods.

    It does not restrict outgoing connections.
    metrics: more peers, by port number.
    """
    ingress = [{"from": [_OWN]}, *_readers(metrics or {})]
    return _policy(NAME, namespace, {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": ingress})


def answering(
    namespace: pulumi.Input[str], calls: Sequence[int], metrics: Mapping[int, Sequence[Document]]
) -> Document:
    """Return the policy for controllers. It does not restrict outgoing connections.

    Controllers connect to the API server, whose address may be unknown.
    calls: ports open to all. The API server calls webhooks from an address that the cluster may not publish and that no
    pod selector matches.
    metrics: ports open only to these peers, by number.
    """
    ingress = [{"ports": [_port(port, "TCP") for port in calls]}, *_readers(metrics)]
    return _policy(NAME, namespace, {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": ingress})


def opening(
    name: str, namespace: pulumi.Input[str], *, labels: Mapping[str, str], port: int, addresses: Sequence[str]
) -> Document:
    """Return the policy that also lets clients in these networks connect to a TCP port of pods with these labels."""
    clients = Peers(addresses=addresses).body()
    return guard(name, namespace, pods={"matchLabels": dict(labels)}, callers=clients, ports=[port])


def guard(
    name: str,
    namespace: pulumi.Input[str],
    *,
    pods: Document,
    callers: Sequence[Document] | None,
    ports: Sequence[int] = (),
    closed: bool = False,
) -> Document:
    """Return the policy that lets only these callers connect to the pods of a selector. None lets all connect.

    ports: TCP ports of the pods. Without any, callers can connect to all ports.
    closed: the pods may not connect to others. Otherwise, outgoing connections are not restricted.
    """
    ingress = [
        {
            **({"from": list(callers)} if callers is not None else {}),
            **({"ports": [_port(port, "TCP") for port in ports]} if ports else {}),
        }
    ]
    directions = ["Ingress", "Egress"] if closed else ["Ingress"]
    return _policy(name, namespace, {"podSelector": dict(pods), "policyTypes": directions, "ingress": ingress})


def _readers(metrics: Mapping[int, Sequence[Document]]) -> list[Document]:
    return [{"from": list(peers), "ports": [_port(port, "TCP")]} for port, peers in metrics.items() if peers]


def _policy(name: str, namespace: pulumi.Input[str], spec: Mapping[str, Any]) -> Document:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": namespace},
        "spec": dict(spec),
    }


def _port(number: int, protocol: str) -> Document:
    return {"port": number, "protocol": protocol}


def _block(network: str, but: Sequence[str] = ()) -> Document:
    return {"ipBlock": {"cidr": network, **({"except": list(but)} if but else {})}}


def _internet(denied: Sequence[str]) -> list[Document]:
    """Return all internet addresses. IPv4 and IPv6 are separate, because exceptions must be part of their block."""
    return [
        _block("0.0.0.0/0", [*_NOT_INTERNET_4, *(item for item in denied if ":" not in item)]),
        _block("::/0", [*_NOT_INTERNET_6, *(item for item in denied if ":" in item)]),
    ]
