"""Compute allowed connections from NetworkPolicies, because this machine does not enforce them.

A connection needs both ends: the policies of the source and those of the target must allow it. A pod that no policy
selects for a direction is free in that direction. Rules add up. Source: k8s.io/api, networking/v1/types.go.
"""

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class End:
    """One end of a connection: a pod of a namespace, or only an address, such as that of a machine."""

    address: str
    namespace: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Reachability:
    """policies: NetworkPolicies as the API server holds them. namespaces: their labels by name."""

    policies: Sequence[Mapping[str, Any]]
    namespaces: Mapping[str, Mapping[str, str]]

    def allowed(self, source: End, target: End, port: int, protocol: str = "TCP") -> bool:
        """Whether a connection is allowed by every implementation of the policies."""
        return all(self._reaches(source, target, port, protocol, blocks_mean_pods=each) for each in (True, False))

    def denied(self, source: End, target: End, port: int, protocol: str = "TCP") -> bool:
        """Whether a connection is denied by every implementation of the policies."""
        return not any(self._reaches(source, target, port, protocol, blocks_mean_pods=each) for each in (True, False))

    def _reaches(self, source: End, target: End, port: int, protocol: str, *, blocks_mean_pods: bool) -> bool:
        """blocks_mean_pods: whether an ipBlock matches addresses of pods. The API does not define this."""
        return all(
            self._passes(direction, side, own, other, port, protocol, blocks_mean_pods)
            for direction, side, own, other in (("Egress", "to", source, target), ("Ingress", "from", target, source))
        )

    def _passes(
        self, direction: str, side: str, own: End, other: End, port: int, protocol: str, blocks_mean_pods: bool
    ) -> bool:
        bound = [policy for policy in self.policies if _selects(policy, own, direction)]
        rules = [rule for policy in bound for rule in policy["spec"].get(direction.lower()) or ()]
        return not bound or any(
            _has_port(rule, port, protocol)
            and (not rule.get(side) or any(self._is(peer, own, other, blocks_mean_pods) for peer in rule[side]))
            for rule in rules
        )

    def _is(self, peer: Mapping[str, Any], own: End, other: End, blocks_mean_pods: bool) -> bool:
        if "ipBlock" in peer:
            return (other.namespace is None or blocks_mean_pods) and _in_block(peer["ipBlock"], other.address)
        if other.namespace is None:
            return False
        if "namespaceSelector" in peer:
            near = matches(peer["namespaceSelector"], self.namespaces[other.namespace])
        else:
            near = other.namespace == own.namespace
        return near and matches(peer.get("podSelector") or {}, other.labels)


def matches(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a label selector takes these labels; the empty one takes all."""
    wanted = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _meets(item, labels) for item in selector.get("matchExpressions") or ()
    )


def _meets(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or ()
    met = {
        "In": value in values,
        "NotIn": value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }
    return met[expression["operator"]]


def _selects(policy: Mapping[str, Any], pod: End, direction: str) -> bool:
    spec = policy["spec"]
    types = spec.get("policyTypes") or ["Ingress", *(["Egress"] if spec.get("egress") else [])]
    return (
        pod.namespace == policy["metadata"]["namespace"]
        and direction in types
        and matches(spec.get("podSelector") or {}, pod.labels)
    )


def _has_port(rule: Mapping[str, Any], port: int, protocol: str) -> bool:
    return not rule.get("ports") or any(
        item.get("protocol", "TCP") == protocol
        and ("port" not in item or int(item["port"]) <= port <= int(item.get("endPort", item["port"])))
        for item in rule["ports"]
    )


def _in_block(block: Mapping[str, Any], address: str) -> bool:
    return _in(address, [block["cidr"]]) and not _in(address, block.get("except") or ())


def _in(address: str, networks: Iterable[str]) -> bool:
    return any(ipaddress.ip_address(address) in ipaddress.ip_network(network) for network in networks)
