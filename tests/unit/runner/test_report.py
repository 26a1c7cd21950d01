"""The report on a cluster that lacks some or all of the reported objects."""

import json
from pathlib import Path
from typing import Any

import pytest
from kubernetes.client import ApiException
from kubernetes.dynamic.exceptions import NotFoundError, ResourceNotFoundError

from cli.app import main
from runner.report import APPWRAPPER, KUEUE, platform_report
from tests.unit.servers import kubeconfig_of, silent

CORE: dict[str, list[dict[str, Any]]] = {
    "Node": [{"metadata": {"name": "new"}}],
    "Namespace": [{"metadata": {"name": "blue"}}],
    "RoleBinding": [],
    "Pod": [],
    "Job": [],
    "Deployment": [],
    "StatefulSet": [],
}


class Emptied:
    """A client of a cluster without the platform. remembered: kinds that another cluster had at this address."""

    def __init__(self, remembered: set[str]) -> None:
        self._remembered = remembered
        self.resources = self

    def get(self, resource: Any = None, **options: Any) -> Any:
        if resource is None:
            version, kind = options["api_version"], options["kind"]
            if version in (*KUEUE, APPWRAPPER) and version not in self._remembered:
                raise ResourceNotFoundError(f"{version}, {kind}")
            return version, kind
        if resource[0] in self._remembered:
            raise NotFoundError(ApiException(status=404, reason="Not Found"))
        return {"items": CORE[resource[1]]}


def test_promises_that_nothing_holds_are_named_with_the_team() -> None:
    client: Any = Emptied(set())
    assert "not enforced" not in platform_report(client)
    told = {"metadata": {"name": "blue", "annotations": {"mlbatch/unenforced": "quota-gate, job-bounds"}}}
    CORE["Namespace"], before = [told], CORE["Namespace"]
    try:
        text = platform_report(client)
    finally:
        CORE["Namespace"] = before
    assert "Promises that are not enforced\n  NAMESPACE  PROMISES\n  blue       quota-gate, job-bounds" in text


IN_REPAIR = {"state": "quarantined", "reason": "xid-error", "since": "2026-11-27T10:00:00Z", "detail": "XID 79"}


def test_nodes_in_repair_have_a_table_of_their_own_also_as_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    client: Any = Emptied(set())
    assert "in repair" not in platform_report(client)
    labels = {"hyperv/PhysicalHostName": "BLZ23GPU0042"}
    texts = {"n1": json.dumps(IN_REPAIR), "n0": "not JSON"}
    nodes = [
        {"metadata": {"name": name, "labels": labels, "annotations": {"mlbatch/repair": text}}}
        for name, text in texts.items()
    ]
    monkeypatch.setitem(CORE, "Node", nodes)
    (rows,) = [part for part in platform_report(client).split("\n\n") if part.startswith("Nodes in repair")]
    assert [row.split()[:3] for row in rows.splitlines()[2:]] == [
        ["n0", "unreadable", "BLZ23GPU0042"],
        ["n1", "quarantined", "xid-error"],
    ]
    monkeypatch.setattr("cli.status.connect", lambda *_: client)
    monkeypatch.setattr("runner.webhooks.report", lambda _: [])
    assert main(["status", "--output", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["Nodes in repair"][1] == {"node": "n1", "host": "BLZ23GPU0042", "case": "-", **IN_REPAIR}
    assert found["Teams"][0]["namespace"] == "blue"


def test_accounts_are_no_members_of_a_team(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenShift binds a role to all accounts of each namespace, system:image-puller."""
    named = [("Group", "system:serviceaccounts:blue"), ("User", "system:serviceaccount:blue:deployer")]
    named += [("Group", "ml"), ("User", "bob"), ("User", "alice"), ("ServiceAccount", "deployer")]
    subjects = [{"kind": kind, "name": name} for kind, name in named]
    monkeypatch.setitem(CORE, "RoleBinding", [{"subjects": subjects}, {"subjects": None}])
    client: Any = Emptied(set())
    assert "Teams\n  NAMESPACE  QUEUE  MEMBERS\n  blue       -      alice, bob, group ml\n" in platform_report(client)


def test_nodes_without_an_instance_type_are_told_apart_by_their_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Like OpenShift on a site's own machines."""
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    typed = {"node.kubernetes.io/instance-type": "p5.48xlarge", "nvidia.com/gpu.product": "H100"}
    nodes = [
        {"metadata": {"labels": {"node-role.kubernetes.io/master": ""}}, "status": ready},
        {
            "metadata": {"labels": {"nvidia.com/gpu.product": "H100"}},
            "status": {"allocatable": {"nvidia.com/gpu": "1k"}},  # as the API server writes a thousand
        },
        {"metadata": {"labels": typed}, "status": {**ready, "allocatable": {"nvidia.com/gpu": "8"}}},
    ]
    monkeypatch.setitem(CORE, "Node", nodes)
    client: Any = Emptied(set())
    rows = platform_report(client).partition("\n\n")[0].splitlines()[2:]
    assert [row.split() for row in rows] == [
        ["-", "1", "1", "0"],
        ["H100", "1", "0", "1000"],
        ["p5.48xlarge", "1", "1", "8"],
    ]


def test_the_trial_of_shared_gpus_says_nothing_of_pods_that_showed_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    client: Any = Emptied(set())
    assert "shared GPUs" not in platform_report(client)
    monkeypatch.setitem(CORE, "Job", [{"metadata": {"name": "nvshare-tf-matmul"}}])
    text = platform_report(client)
    assert "Test of shared GPUs\n  JOB                VERDICT  TOOK\n  nvshare-tf-matmul  unknown  -" in text


def test_the_mlops_platform_is_there_when_all_its_workloads_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def workload(name: str, status: dict[str, Any]) -> dict[str, Any]:
        return {"metadata": {"name": name, "namespace": "mlflow"}, "spec": {"replicas": 1}, "status": status}

    client: Any = Emptied(set())
    assert "MLOps" not in platform_report(client)
    deployments = [workload("mlflow", {"availableReplicas": 1}), workload("postgres", {"unavailableReplicas": 1})]
    monkeypatch.setitem(CORE, "Deployment", deployments)
    monkeypatch.setitem(CORE, "StatefulSet", [workload("minio", {"readyReplicas": 1})])
    text = platform_report(client)
    assert "OSS MLOps platform\n  NAMESPACE  AVAILABLE  NOT YET\n  mlflow     2 of 3     postgres" in text


def test_a_deployment_without_pods_names_the_webhook_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message about a simulated webhook, for example Istio's for sidecars, only says that it does not answer."""

    def deployment(name: str, kind: str, status: str, reason: str, message: str) -> dict[str, Any]:
        condition = {"type": kind, "status": status, "reason": reason, "message": message}
        return {"metadata": {"name": name, "namespace": "auth"}, "spec": {}, "status": {"conditions": [condition]}}

    post = 'Post "https://istiod.istio-system.svc:443/inject?timeout=10s": dial tcp 10.0.0.9:443: connect: refused'
    failed = 'failed calling webhook "namespace.sidecar-injector.istio.io"'
    quota = 'pods "b-1" is forbidden: exceeded quota: bounds,\nrequested: pods=1'
    client: Any = Emptied(set())
    assert "not taken" not in platform_report(client)
    found = [
        deployment("dex", "ReplicaFailure", "True", "FailedCreate", f"Internal error occurred: {failed}: {post}"),
        deployment("b", "ReplicaFailure", "True", "FailedCreate", quota),
        deployment("a", "ReplicaFailure", "True", "FailedCreate", f"{failed}: failed to call webhook: {post}"),
        deployment("well", "Available", "True", "MinimumReplicasAvailable", "x"),
        deployment("leaves", "ReplicaFailure", "True", "FailedDelete", "x"),
        deployment("again", "ReplicaFailure", "False", "FailedCreate", "x"),
    ]
    monkeypatch.setitem(CORE, "Deployment", found)
    (rows,) = [part for part in platform_report(client).split("\n\n") if part.startswith("Deployments whose")]
    unanswered = f"webhook namespace.sidecar-injector.istio.io does not answer: {post}"
    assert [row.split(maxsplit=2) for row in rows.splitlines()[2:]] == [
        ["auth", "a", unanswered],
        ["auth", "b", quota.replace("\n", " ")],
        ["auth", "dex", unanswered],
    ]


@pytest.mark.parametrize("remembered", [set(), {*KUEUE, APPWRAPPER}], ids=["unknown", "remembered"])
def test_what_is_missing_is_said_to_be_none(remembered: set[str]) -> None:
    """As after an update that has replaced the cluster behind the same address."""
    client: Any = Emptied(remembered)
    text = platform_report(client)
    assert "Queues\n  none" in text
    assert "Workloads\n  none" in text
    assert "-              1      0      0" in text
    assert "blue       -      -" in text


def test_a_cluster_that_says_nothing_is_given_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.report.SECONDS", 0.2)
    with silent() as address:
        assert main(["status", "--kubeconfig", str(kubeconfig_of(f"http://{address}", tmp_path))]) == 2
    assert "error: the cluster does not answer as expected: " in capsys.readouterr().err
