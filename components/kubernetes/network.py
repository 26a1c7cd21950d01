"""NetworkPolicies: whom the pods of a namespace speak with.

What no rule of a policy allows is denied, both ways. Answers to an allowed connection are allowed, and a pod's node
always reaches it: probes and port-forwards need no rule. An object alone does nothing; the cluster's network enforces
it. Sources: kubernetes.io, concepts/services-networking/network-policies; k8s.io/api, networking/v1/types.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pulumi

from components.kubernetes.manifests import Document, Manifest
from components.layer import Layer

NAME: Final = "network-boundary"
"""Of a namespace's policy."""
NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"
"""Every namespace carries its own name in it, and nobody can have another one there (NamespaceDefaultLabelName)."""

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
"""Where clouds tell a machine about itself: they hand the node's own credentials to whoever asks. As each of them
documents its own; most share the first."""

TRANSLATED: Final = ("::/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16")
"""IPv6 addresses that stand for IPv4 ones, those of metadata services among them: compatible and translated ones
(RFC 6052, RFC 8215), and 6to4."""

_ANYWHERE_4: Final = "0.0.0.0/0"
_ANYWHERE_6: Final = "::/0"
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
"""What is nobody's on the internet (IANA, iana-ipv4-special-registry and iana-ipv6-special-registry), and the metadata
address that is public by its number. Of IPv6 also what stands for IPv4 addresses, private ones among them. Mapped ones
(::ffff:0:0/96) travel as what they stand for, and the API server reads them so."""

_DNS_PORT: Final = 53


@dataclass(frozen=True, kw_only=True)
class Pods:
    """Pods of a namespace, all of them or those with labels."""

    namespace: str
    labels: Mapping[str, str] = field(default_factory=dict)

    def peer(self) -> Document:
        """Return them as the end of a connection."""
        own: Document = {"podSelector": {"matchLabels": dict(self.labels)}} if self.labels else {}
        return {"namespaceSelector": {"matchLabels": {NAMESPACE_LABEL: self.namespace}}, **own}


DNS_PODS: Final = (
    Pods(namespace="kube-system", labels={"k8s-app": "kube-dns"}),
    Pods(namespace="kube-system", labels={"k8s-app": "node-local-dns"}),
    Pods(namespace="openshift-dns", labels={"dns.operator.openshift.io/daemonset-dns": "default"}),
)
"""The cluster's DNS, and the caches in front of it where they are pods with an address of their own
(kubernetes/kubernetes, cluster/addons/dns); OpenShift's (openshift/cluster-dns-operator)."""
DNS_PORTS: Final = (_DNS_PORT, 5353, 8053)
"""On which those pods answer, for a policy sees a pod's own port, not its Service's: CoreDNS by itself, OpenShift's,
and Gardener's."""


@dataclass(frozen=True, kw_only=True)
class Peers:
    """Ends of connections.

    addresses: networks in CIDR notation, of what is outside of the cluster: whether they mean pods too depends on who
    enforces the policy.
    """

    pods: Sequence[Pods] = ()
    addresses: Sequence[str] = ()

    def body(self) -> list[Document]:
        """Return them as a rule has them."""
        return [*(pods.peer() for pods in self.pods), *(_block(address) for address in self.addresses)]


@dataclass(frozen=True, kw_only=True)
class Resolvers:
    """What answers DNS.

    pods: on these ports. addresses: networks in CIDR notation of what is outside of the cluster, on port 53 alone.
    """

    pods: Sequence[Pods] = DNS_PODS
    ports: Sequence[int] = DNS_PORTS
    addresses: Sequence[str] = ()

    def rules(self) -> list[Document]:
        """Return the rules of a policy; an empty list in a rule would mean everybody, or every port."""
        ends = ((Peers(pods=self.pods), self.ports), (Peers(addresses=self.addresses), (_DNS_PORT,)))
        return [
            {"to": peers.body(), "ports": [_port(port, protocol) for port in ports for protocol in ("UDP", "TCP")]}
            for peers, ports in ends
            if peers.body() and ports
        ]


@dataclass(frozen=True, kw_only=True)
class Network:
    """Whom the pods of a namespace speak with besides each other and DNS.

    callers: who may connect to them. callers_of: who else may, to one TCP port alone, by its number.
    called: whom they may connect to. internet: also every address of the internet, and none of a private network; but
    for `denied`, networks in CIDR notation.
    resolvers: what answers DNS.
    """

    callers: Peers = Peers()
    callers_of: Mapping[int, Peers] = field(default_factory=dict)
    called: Peers = Peers()
    internet: bool = True
    denied: Sequence[str] = ()
    resolvers: Resolvers = Resolvers()


@dataclass(frozen=True, kw_only=True)
class NetworkBoundaryArgs:
    """namespace: that it is put around."""

    namespace: pulumi.Input[str]
    network: Network


class NetworkBoundary(Layer):
    """Put a policy around a namespace, before anything runs there."""

    def __init__(self, name: str, args: NetworkBoundaryArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:kubernetes:NetworkBoundary", name, None, opts)
        document = boundary(args.namespace, args.network)
        self.ready = [Manifest(f"{name}/NetworkPolicy", document, pulumi.ResourceOptions(parent=self))]
        self.register_outputs({})


def boundary(namespace: pulumi.Input[str], network: Network) -> Document:
    """Return the policy of all pods of a namespace, both ways."""
    callers, called = network.callers.body(), network.called.body()
    return _policy(
        NAME,
        namespace,
        {
            "podSelector": {},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [
                {"from": [_own()]},
                *([{"from": callers}] if callers else []),
                *(
                    {"from": peers.body(), "ports": [_port(port, "TCP")]}
                    for port, peers in network.callers_of.items()
                    if peers.body()
                ),
            ],
            "egress": [
                {"to": [_own()]},
                *network.resolvers.rules(),
                *([{"to": called}] if called else []),
                *([{"to": _internet(network.denied)}] if network.internet else []),
            ],
        },
    )


def inward(namespace: pulumi.Input[str], metrics: Mapping[int, Sequence[Document]] | None = None) -> Document:
    """Return the policy that lets only a namespace's own pods connect to its pods; these connect to whom they like.

    metrics: ports that other peers reach, too, by number.
    """
    readers = [{"from": list(peers), "ports": [_port(port, "TCP")]} for port, peers in (metrics or {}).items() if peers]
    ingress = [{"from": [_own()]}, *readers]
    return _policy(NAME, namespace, {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": ingress})


def answering(
    namespace: pulumi.Input[str], calls: Sequence[int], metrics: Mapping[int, Sequence[Document]]
) -> Document:
    """Return the policy of controllers, which connect to whom they like: they need the API server's address.

    calls: ports that everybody reaches. The API server calls webhooks from an address that a cluster need not say,
    which no selector of pods finds. metrics: ports that peers alone reach, by number.
    """
    return _policy(
        NAME,
        namespace,
        {
            "podSelector": {},
            "policyTypes": ["Ingress"],
            "ingress": [
                {"ports": [_port(port, "TCP") for port in calls]},
                *({"from": list(peers), "ports": [_port(port, "TCP")]} for port, peers in metrics.items() if peers),
            ],
        },
    )


def opening(
    name: str, namespace: pulumi.Input[str], *, labels: Mapping[str, str], port: int, addresses: Sequence[str]
) -> Document:
    """Return the policy that also lets clients from these networks connect to a TCP port of pods with these labels."""
    ingress = [{"from": Peers(addresses=addresses).body(), "ports": [_port(port, "TCP")]}]
    return _policy(
        name,
        namespace,
        {"podSelector": {"matchLabels": dict(labels)}, "policyTypes": ["Ingress"], "ingress": ingress},
    )


def guard(name: str, namespace: pulumi.Input[str], *, pods: Document, callers: Sequence[Document]) -> Document:
    """Return the policy that lets callers alone connect to the pods of a selector; these connect to whom they like."""
    ingress = [{"from": list(callers)}]
    return _policy(name, namespace, {"podSelector": dict(pods), "policyTypes": ["Ingress"], "ingress": ingress})


def _policy(name: str, namespace: pulumi.Input[str], spec: Mapping[str, Any]) -> Document:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": namespace},
        "spec": dict(spec),
    }


def _own() -> Document:
    return {"podSelector": {}}


def _port(number: int, protocol: str) -> Document:
    return {"port": number, "protocol": protocol}


def _block(network: str, but: Sequence[str] = ()) -> Document:
    return {"ipBlock": {"cidr": network, **({"except": list(but)} if but else {})}}


def _internet(denied: Sequence[str]) -> list[Document]:
    """Return all of the internet; an exception has to lie in its block, so each goes to its own kind of address."""
    return [
        _block(_ANYWHERE_4, [*_NOT_INTERNET_4, *(item for item in denied if ":" not in item)]),
        _block(_ANYWHERE_6, [*_NOT_INTERNET_6, *(item for item in denied if ":" in item)]),
    ]
