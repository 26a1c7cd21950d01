"""Members of a team, and network access of its pods, on a cluster with every layer that pods could connect to.

This machine does not enforce NetworkPolicies. The tests evaluate the policies in the API server by their API's rules.
"""

from dataclasses import replace
from typing import Any

import pytest

from components.kubernetes.network import METADATA_ADDRESSES
from emulator.paths import Paths
from runner.report import platform_report
from tests.local.environment import Cluster, Project, eventually, gang, mirrored, stack_settings
from tests.local.jobs import pods_of, running
from tests.local.member import as_member, refused
from tests.local.standing import Standing
from tests.local.submission import submitted
from tests.reachability import End, Reachability

APPWRAPPER = "workload.codeflare.dev/v1beta2"
NETWORKING = "networking.k8s.io/v1"

DNS = End(namespace="kube-system", address="10.244.9.2", labels={"k8s-app": "kube-dns"})
API_SERVER = End(address="10.0.0.1")
SITE = End(address="10.20.3.4")
INTERNET = End(address="140.82.112.3")
CLIENT = End(address="203.0.113.9")
PROMETHEUS = End(namespace="monitoring", address="10.244.9.3", labels={"app.kubernetes.io/name": "prometheus"})
GRAFANA = End(namespace="monitoring", address="10.244.9.4", labels={"app.kubernetes.io/name": "grafana"})
KUEUE = End(namespace="mlbatch-system", address="10.244.9.5", labels={"app.kubernetes.io/name": "kueue"})
STRANGER = End(namespace="default", address="10.244.9.6")


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    plain = {"gang": "none"}
    blue, red = stack_settings("existing")["teams"]
    return {
        **stack_settings("existing"),
        "monitoring": {"enabled": True},
        "samples": {},
        "teams": [
            {**blue, "groups": ["trainers"], "network": {"egress": {"addresses": ["10.20.0.0/16"]}}},
            {**red, "users": [], "groups": ["bob"]},
        ],
        "workloads": {
            "metaseq": {
                "enabled": True,
                "image": "registry.example.org/metaseq",
                "tag": "1",
                "useAim": True,
                "useTensorboard": True,
                "submission": plain,
            },
            "aim": {"enabled": True},
            "tensorboard": {"enabled": True},
            "jupyterlab": {
                "enabled": True,
                "image": "registry.example.org/jupyter:1",
                "scratch": False,
                "exposure": "public",
                "sourceRanges": ["203.0.113.0/24"],
                "submission": plain,
            },
        },
    }


@pytest.fixture(scope="module", autouse=True)
def project(standing: Standing, site_nodes: list[str], settings: dict[str, Any]) -> Project:
    return standing.up("existing", lambda project: {**settings, **mirrored(project.mirror)})


def judged(cluster: Cluster) -> Reachability:
    namespaces = {item["metadata"]["name"]: item["metadata"]["labels"] for item in cluster.list("v1", "Namespace")}
    return Reachability(policies=cluster.list(NETWORKING, "NetworkPolicy"), namespaces=namespaces)


def phase(cluster: Cluster, name: str, namespace: str) -> object:
    return ((cluster.get(APPWRAPPER, "AppWrapper", name, namespace) or {}).get("status") or {}).get("phase")


def pod_of(cluster: Cluster, namespace: str) -> End:
    """Return a pod of a team's job as an end of a connection; the job has run."""
    with submitted(cluster, gang("net", namespace, pods=1, gpus=1)):
        running(cluster, namespace, "net", pods=1)
        (pod,) = pods_of(cluster, namespace, "net")
    return End(namespace=namespace, address="10.244.1.1", labels=pod["metadata"]["labels"])


def workload(cluster: Cluster, kind: str, name: str) -> End:
    """Return a pod of a workload that does not belong to a team."""
    found = cluster.get({"Job": "batch/v1"}.get(kind, "apps/v1"), kind, name, "workloads")
    assert found is not None
    return End(
        namespace="workloads", address="10.244.2.1", labels=found["spec"]["template"]["metadata"].get("labels") or {}
    )


@pytest.fixture(scope="module")
def blue(cluster: Cluster) -> End:
    return pod_of(cluster, "blue")


@pytest.fixture(scope="module")
def red(cluster: Cluster) -> End:
    return replace(pod_of(cluster, "red"), address="10.244.1.2")


@pytest.mark.soak("a minute; test_aks.py previews these workloads twice, too")
def test_a_second_preview_plans_no_change(project: Project) -> None:
    project.unchanged()


class TestNetwork:
    def test_pods_of_one_team_speak_with_each_other_and_with_no_others(
        self, cluster: Cluster, blue: End, red: End
    ) -> None:
        net = judged(cluster)
        for port in (22, 2022, 8022, 29500):
            assert net.allowed(blue, replace(blue, address="10.244.1.9"), port)
            assert net.denied(blue, red, port)
            assert net.denied(red, blue, port)
            assert net.denied(STRANGER, blue, port)

    def test_they_find_names_and_the_internet(self, cluster: Cluster, blue: End) -> None:
        net = judged(cluster)
        assert net.allowed(blue, DNS, 53, "UDP")
        assert net.allowed(blue, DNS, 53)
        assert net.denied(blue, DNS, 9153)
        assert net.allowed(blue, INTERNET, 443)

    @pytest.mark.parametrize("address", METADATA_ADDRESSES)
    def test_they_get_no_credentials_of_their_node(self, cluster: Cluster, blue: End, red: End, address: str) -> None:
        for pod in (blue, red, workload(cluster, "Deployment", "jupyterlab")):
            assert judged(cluster).denied(pod, End(address=address.split("/")[0]), 80)

    def test_the_platform_and_private_networks_are_out_of_reach(self, cluster: Cluster, blue: End, red: End) -> None:
        net = judged(cluster)
        for target, port in ((KUEUE, 8443), (PROMETHEUS, 9090), (GRAFANA, 3000), (API_SERVER, 443)):
            assert net.denied(blue, target, port)
        assert net.denied(red, SITE, 2049)
        assert net.allowed(blue, SITE, 2049), "its settings allow it"

    def test_only_prometheus_reads_a_teams_metrics(self, cluster: Cluster, blue: End) -> None:
        net = judged(cluster)
        assert net.allowed(PROMETHEUS, blue, 8000)
        assert net.denied(GRAFANA, blue, 8000)
        assert net.denied(KUEUE, blue, 8000)

    def test_monitoring_answers_only_its_own_namespace(self, cluster: Cluster, blue: End) -> None:
        net = judged(cluster)
        assert net.allowed(GRAFANA, PROMETHEUS, 9090)
        assert net.allowed(PROMETHEUS, KUEUE, 8443)
        for target, port in ((PROMETHEUS, 9090), (GRAFANA, 3000)):
            assert net.denied(STRANGER, target, port)
            assert net.denied(workload(cluster, "Deployment", "jupyterlab"), target, port)

    def test_viewers_and_host_files_answer_only_their_own_namespace(self, cluster: Cluster, blue: End) -> None:
        net, training = judged(cluster), workload(cluster, "Job", "metaseq")
        for target, port in (
            (workload(cluster, "Deployment", "aim"), 43800),
            (workload(cluster, "Deployment", "tensorboard"), 6018),
            (training, 8022),
        ):
            assert net.allowed(training, target, port)
            for other in (blue, STRANGER, GRAFANA, CLIENT, INTERNET):
                assert net.denied(other, target, port)

    def test_a_notebook_answers_the_clients_of_its_load_balancer(self, cluster: Cluster, blue: End) -> None:
        net, lab = judged(cluster), workload(cluster, "Deployment", "jupyterlab")
        assert net.allowed(CLIENT, lab, 8888)
        assert net.denied(CLIENT, lab, 22)
        assert net.denied(INTERNET, lab, 8888)
        assert net.denied(blue, lab, 8888)
        service = cluster.get("v1", "Service", "jupyterlab", "workloads")
        assert service is not None
        assert service["spec"]["externalTrafficPolicy"] == "Local", "the client's address is what the policy judges"

    def test_a_member_cannot_change_it(self, paths: Paths) -> None:
        alice = as_member(paths, "alice")
        policy = {
            "apiVersion": NETWORKING,
            "kind": "NetworkPolicy",
            "metadata": {"name": "open", "namespace": "blue"},
            "spec": {"podSelector": {}, "egress": [{}], "policyTypes": ["Egress"]},
        }
        assert "cannot create resource" in refused(alice.create, policy)
        wrapper = gang("wrapped", "blue", pods=1, gpus=1)
        wrapper["spec"]["components"].append({"template": policy})
        assert "may not contain networking.k8s.io/v1/NetworkPolicy" in refused(alice.create, wrapper)
        open_to_all = {"spec": {"egress": [{}]}}
        assert "cannot patch resource" in refused(
            alice.patch, NETWORKING, "NetworkPolicy", "network-boundary", open_to_all, "blue"
        )
        assert "cannot delete resource" in refused(
            alice.delete, NETWORKING, "NetworkPolicy", "network-boundary", "blue"
        )


class TestGroups:
    def test_a_member_of_a_teams_group_runs_jobs_only_there(self, cluster: Cluster, paths: Paths) -> None:
        carol = as_member(paths, "carol", ["trainers"])
        carol.create(gang("carols", "blue", pods=1, gpus=1))
        try:
            eventually("her job runs", lambda: phase(cluster, "carols", "blue"), lambda found: found == "Running")
        finally:
            carol.delete(APPWRAPPER, "AppWrapper", "carols", "blue")
        assert 'cannot create resource "appwrappers"' in refused(carol.create, gang("carols", "red", pods=1, gpus=1))

    def test_a_user_outside_the_group_runs_no_jobs(self, paths: Paths) -> None:
        for user, groups in (("dave", []), ("dave", ["others"]), ("trainers", [])):
            dave = as_member(paths, user, groups)
            assert "cannot create resource" in refused(dave.create, gang("daves", "blue", pods=1, gpus=1))

    def test_a_user_with_the_name_of_a_group_has_no_rights(self, paths: Paths) -> None:
        assert "cannot create resource" in refused(as_member(paths, "bob").create, gang("bobs", "red", pods=1, gpus=1))
        as_member(paths, "erin", ["bob"]).list(APPWRAPPER, "AppWrapper", "red")

    def test_the_report_names_both_kinds_of_members(self, cluster: Cluster) -> None:
        lines = [" ".join(line.split()) for line in platform_report(cluster.client).splitlines()]
        assert "blue blue-cluster-queue alice, group trainers" in lines
        assert "red red-cluster-queue group bob" in lines
