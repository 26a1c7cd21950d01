"""The connections of pods that the components' policies allow, and settings that are rejected."""

import ipaddress
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.artifacts import Mirror
from components.kubernetes.network import (
    METADATA_ADDRESSES,
    Network,
    Peers,
    Pods,
    Resolvers,
    boundary,
    inward,
    opening,
)
from components.observability.prometheus import scrapers
from components.queueing import network as operators
from components.queueing.network import OperatorsNetworkArgs
from tests.reachability import End, Reachability
from tests.unit.configurations import settings_of
from tests.unit.releases import FOLDER
from tests.unit.test_existing import loaded, registered, shipped

NAMESPACES = {
    name: {"kubernetes.io/metadata.name": name}
    for name in ("blue", "red", "kube-system", "openshift-dns", "monitoring", "minio")
}
BLUE = End(namespace="blue", address="10.244.0.5", labels={"app": "trainer"})
BLUE_TOO = End(namespace="blue", address="10.244.1.5")
RED = End(namespace="red", address="10.244.1.6")
DNS = End(namespace="kube-system", address="10.244.2.2", labels={"k8s-app": "kube-dns"})
CACHE = End(address="169.254.20.10")
OTHER_SYSTEM = End(namespace="kube-system", address="10.244.2.3", labels={"k8s-app": "metrics-server"})
PROMETHEUS = End(
    namespace="monitoring", address="10.244.2.4", labels={"app.kubernetes.io/name": "prometheus", "prometheus": "main"}
)
GRAFANA = End(namespace="monitoring", address="10.244.2.5", labels={"app.kubernetes.io/name": "grafana"})
MINIO = End(namespace="minio", address="10.244.2.6")
INTERNET = End(address="140.82.112.3")
INTERNET_6 = End(address="2606:50c0:8000::153")
SITE = End(address="10.20.3.4")
"""A machine of the site's own network."""


def around(**network: Any) -> Reachability:
    """The cluster whose namespaces blue and red have a policy each."""
    policies = [boundary(name, Network(**network)) for name in ("blue", "red")]
    return Reachability(policies=policies, namespaces=NAMESPACES)


class TestBoundary:
    def test_the_namespace_speaks_with_itself_on_every_port(self) -> None:
        net = around(internet=False)
        for port in (22, 2022, 8022, 29500, 43210):
            assert net.allowed(BLUE, BLUE_TOO, port)
        assert net.allowed(BLUE_TOO, BLUE, 5353, "UDP")

    def test_other_namespaces_do_not_get_in_nor_does_it_get_out(self) -> None:
        net = around()
        for other in (RED, GRAFANA, MINIO, OTHER_SYSTEM, PROMETHEUS):
            assert net.denied(other, BLUE, 8022)
            assert net.denied(BLUE, other, 443)

    def test_dns_answers_on_its_port_alone(self) -> None:
        net = around(internet=False, resolvers=Resolvers(addresses=["169.254.20.10/32"]))
        for resolver in (DNS, CACHE):
            assert net.allowed(BLUE, resolver, 53, "UDP")
            assert net.allowed(BLUE, resolver, 53, "TCP")
            assert net.denied(BLUE, resolver, 9153)

    @pytest.mark.parametrize(
        ("pod", "port"),
        [
            pytest.param(DNS, 8053, id="Gardener's CoreDNS behind port 53 of its Service"),
            pytest.param(
                End(
                    namespace="openshift-dns",
                    address="10.244.2.7",
                    labels={"dns.operator.openshift.io/daemonset-dns": "default"},
                ),
                5353,
                id="OpenShift's",
            ),
        ],
    )
    def test_pods_that_answer_dns_on_a_port_of_their_own_are_reached(self, pod: End, port: int) -> None:
        net = around(internet=False, resolvers=Resolvers(addresses=["169.254.169.254/32"]))
        assert net.allowed(BLUE, pod, port, "UDP")
        assert net.allowed(BLUE, pod, port, "TCP")
        assert net.denied(BLUE, End(address="169.254.169.254"), port)
        assert net.denied(BLUE, OTHER_SYSTEM, port)

    def test_without_resolvers_of_one_sort_nobody_takes_their_place(self) -> None:
        for resolvers in (Resolvers(pods=()), Resolvers(ports=())):
            net = around(internet=False, resolvers=resolvers)
            assert net.denied(BLUE, DNS, 53)
            assert net.denied(BLUE, INTERNET, 53)

    @pytest.mark.parametrize(
        "address",
        [
            "1.1.1.1",
            "9.255.255.255",
            "100.63.255.255",
            "172.15.255.255",
            "172.32.0.1",
            "192.167.1.1",
            "2606:50c0:8000::1",
        ],
    )
    def test_every_public_address_is_of_the_internet(self, address: str) -> None:
        assert around().allowed(BLUE, End(address=address), 443)

    @pytest.mark.parametrize(
        "network",
        [
            *("10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"),
            *("192.0.0.0/24", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4", "fc00::/7", "fe80::/10", "ff00::/8"),
            *("::/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16"),
        ],
    )
    def test_no_other_address_is(self, network: str) -> None:
        found = ipaddress.ip_network(network)
        for edge in (found.network_address, found.broadcast_address):
            assert around().denied(BLUE, End(address=str(edge)), 443)

    @pytest.mark.parametrize("address", METADATA_ADDRESSES)
    def test_no_metadata_service_is_reached(self, address: str) -> None:
        assert around().denied(BLUE, End(address=address.split("/")[0]), 80)

    def test_without_the_internet_nothing_outside_is_reached(self) -> None:
        net = around(internet=False)
        assert net.denied(BLUE, INTERNET, 443)
        assert net.denied(BLUE, INTERNET_6, 443)

    def test_a_denied_network_is_no_part_of_the_internet(self) -> None:
        net = around(denied=["140.82.112.0/24", "2606:50c0::/32"])
        assert net.denied(BLUE, INTERNET, 443)
        assert net.denied(BLUE, INTERNET_6, 443)
        assert net.allowed(BLUE, End(address="1.1.1.1"), 443)

    def test_what_is_allowed_is_allowed_in_its_direction(self) -> None:
        net = around(called=Peers(pods=[Pods(namespace="minio")], addresses=["10.20.0.0/16"]))
        assert net.allowed(BLUE, SITE, 2049)
        assert net.allowed(BLUE, MINIO, 9000)
        assert net.denied(SITE, BLUE, 8022)
        assert net.denied(MINIO, BLUE, 8022)

    def test_prometheus_gets_in_and_nobody_else_of_its_namespace(self) -> None:
        net = around(callers=Peers(pods=[scrapers()]))
        assert net.allowed(PROMETHEUS, BLUE, 8000)
        assert net.denied(GRAFANA, BLUE, 8000)
        assert net.denied(BLUE, PROMETHEUS, 9090)


def test_a_closed_namespace_lets_its_own_pods_in_and_everybody_out() -> None:
    net = Reachability(policies=[inward("monitoring")], namespaces=NAMESPACES)
    assert net.allowed(PROMETHEUS, GRAFANA, 3000)
    assert net.allowed(PROMETHEUS, BLUE, 8000)
    assert net.denied(BLUE, GRAFANA, 3000)


class TestOperators:
    """The policy around the operators that the API server calls."""

    OPERATOR = End(namespace="mlbatch-system", address="10.244.3.2", labels={"control-plane": "controller-manager"})
    SITES_OWN = End(namespace="observability", address="10.244.3.3")
    API_SERVER = End(address="172.18.0.2")
    TUNNEL = End(namespace="kube-system", address="10.244.2.9", labels={"app": "konnectivity-agent"})

    def around(self) -> Reachability:
        document = operators.policy(OperatorsNetworkArgs(namespace="mlbatch-system", scrapers=[scrapers()]))
        own = {"observability": {"kubernetes.io/metadata.name": "observability", "metrics": "enabled"}}
        system = {"mlbatch-system": {"kubernetes.io/metadata.name": "mlbatch-system"}}
        return Reachability(policies=[document], namespaces={**NAMESPACES, **system, **own})

    def test_the_api_server_calls_webhooks_and_kueues_own_api_from_wherever_it_is(self) -> None:
        for caller in (self.API_SERVER, self.TUNNEL):
            for port in (9443, 8082):
                assert self.around().allowed(caller, self.OPERATOR, port)

    def test_metrics_are_for_those_who_read_them(self) -> None:
        for port in (8443, 8080):
            for reader in (PROMETHEUS, self.SITES_OWN):
                assert self.around().allowed(reader, self.OPERATOR, port)
            for other in (BLUE, GRAFANA, INTERNET, self.API_SERVER):
                assert self.around().denied(other, self.OPERATOR, port)

    def test_nothing_else_is_reached_and_operators_reach_the_api_server(self) -> None:
        for caller in (BLUE, PROMETHEUS, self.API_SERVER):
            assert self.around().denied(caller, self.OPERATOR, 8081)
        assert self.around().allowed(self.OPERATOR, self.API_SERVER, 6443)

    @pytest.mark.parametrize("release", sorted(FOLDER.glob("*.yaml")), ids=lambda release: release.stem)
    def test_the_ports_are_those_of_upstreams_containers(self, release: Path) -> None:
        documents = [
            item for item in yaml.safe_load_all(release.read_text()) if item and item.get("kind") == "Deployment"
        ]
        ports = {
            port["name"]: port["containerPort"]
            for item in documents
            if item["metadata"]["namespace"] in ("kueue-system", "appwrapper-system")
            for container in item["spec"]["template"]["spec"]["containers"]
            for port in container.get("ports", [])
        }
        expected = {"webhook-server": 9443, "visibility": 8082, "metrics": 8443}
        assert ports.items() <= expected.items()

    def test_it_stands_unless_policies_are_switched_off(self, kubeconfig: Path, mirror: Mirror) -> None:
        for wanted in (True, False):
            built = registered(loaded({**shipped(), "tenancy": {"network": {"enabled": wanted}}}, mirror, kubeconfig))
            found = [
                item for item in built.of("NetworkPolicy") if item.inputs["metadata"]["namespace"] == "mlbatch-system"
            ]
            assert len(found) == wanted


def test_an_opening_lets_named_clients_to_one_port_of_one_workload() -> None:
    labels = {"app.kubernetes.io/name": "lab"}
    through = opening("lab", "blue", labels=labels, port=8888, addresses=["203.0.113.0/24"])
    net = Reachability(policies=[boundary("blue", Network()), through], namespaces=NAMESPACES)
    client = End(address="203.0.113.9")
    lab = End(namespace="blue", address="10.244.0.9", labels=labels)
    assert net.allowed(client, lab, 8888)
    assert net.denied(client, lab, 22)
    assert net.denied(client, BLUE, 8888)
    assert net.denied(INTERNET, lab, 8888)
    assert net.allowed(BLUE, lab, 8888)


class TestReachability:
    """The tests' own judge, against what the API's documentation says."""

    def one(self, **spec: Any) -> Reachability:
        policy = {"metadata": {"name": "it", "namespace": "blue"}, "spec": spec}
        return Reachability(policies=[policy], namespaces=NAMESPACES)

    def test_without_a_policy_everything_is_allowed(self) -> None:
        assert Reachability(policies=[], namespaces=NAMESPACES).allowed(RED, BLUE, 1)

    def test_a_policy_binds_the_pods_that_it_selects_in_its_direction(self) -> None:
        net = self.one(podSelector={"matchLabels": {"app": "trainer"}}, policyTypes=["Ingress"])
        assert net.denied(RED, BLUE, 1)
        assert net.allowed(RED, BLUE_TOO, 1)
        assert net.allowed(BLUE, RED, 1)

    def test_a_missing_type_follows_the_rules(self) -> None:
        assert self.one(podSelector={}, egress=[{}]).denied(RED, BLUE, 1)
        assert self.one(podSelector={}, egress=[{"to": []}]).allowed(BLUE, RED, 1)
        assert self.one(podSelector={}).allowed(BLUE, RED, 1)

    def test_two_selectors_in_one_peer_both_have_to_match(self) -> None:
        both = {
            "namespaceSelector": {"matchLabels": NAMESPACES["monitoring"]},
            "podSelector": {"matchLabels": {"a": "b"}},
        }
        assert self.one(podSelector={}, ingress=[{"from": [both]}]).denied(GRAFANA, BLUE, 1)
        either = [{key: value} for key, value in both.items()]
        assert self.one(podSelector={}, ingress=[{"from": either}]).allowed(GRAFANA, BLUE, 1)

    def test_a_block_of_addresses_may_or_may_not_mean_pods(self) -> None:
        net = self.one(podSelector={}, ingress=[{"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}])
        assert not net.allowed(RED, BLUE, 1)
        assert not net.denied(RED, BLUE, 1)
        assert net.allowed(SITE, BLUE, 1)


def valid(**network: Any) -> dict[str, Any]:
    quota = {"cpu": "224", "memory": "2000G", "nvidia.com/gpu": 8}
    return {
        "target": "simulated",
        "nodes": {"count": 3, "instanceType": "h100-sxm5-8x", "gpusPerNode": 8},
        "tenancy": {"network": network},
        "teams": [{"name": "blue", "users": ["alice"], "quota": quota}],
    }


def test_networks_are_read_as_one_writes_them() -> None:
    egress = {"addresses": ["10.20.0.0/16", "2001:DB8::/48"], "namespaces": ["minio"], "denied": ["203.0.113.0/24"]}
    network = settings_of(valid(egress=egress, ingress={"addresses": ["192.0.2.0/24"]})).tenancy.network
    assert network.egress.addresses == ("10.20.0.0/16", "2001:db8::/48")
    assert network.egress.internet
    assert network.ingress.addresses == ("192.0.2.0/24",)
