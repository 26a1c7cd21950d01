"""What can be asked about, what is answered, and which mistakes are told at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ask import manifest, room
from ask.__main__ import ask, main
from ask.answer import Answer, Verdict
from ask.content import content
from ask.manifest import ManifestError, check_resources, read
from ask.room import Room, short
from ask.source import Source
from tests.local.environment import gang

GIB = 2**30 * 10**9
EIGHT_GPUS = {"nvidia.com/gpu": 8 * 10**9, "cpu": 224 * 10**9, "memory": 2000 * GIB, "pods": 110 * 10**9}
NODES = [Room(EIGHT_GPUS, {"kubernetes.io/hostname": f"gpu-node-{index}"}) for index in range(3)]


def text(change: dict[str, Any] | None = None, **metadata: Any) -> str:
    job = gang("job", "blue", pods=1, gpus=1, **metadata)
    return yaml.safe_dump({**job, **(change or {})})


def pod(**fields: Any) -> dict[str, Any]:
    resources = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "5"}
    return {"containers": [{"name": "main", "resources": {"requests": resources, "limits": resources}}], **fields}


BAD = {
    "no YAML": ("a: [1", "the file is not YAML: "),
    "a list": ("- 1", "the file holds list where an object with apiVersion and kind belongs"),
    "nothing": ("", "the file has 0 objects (none): ask about one job"),
    "two jobs": (text() + "---\n" + text(), "the file has 2 objects (AppWrapper job, AppWrapper job)"),
    "a pod": (
        text({"kind": "Pod", "apiVersion": "v1"}),
        "a Pod is no job that members submit: wrap it in an AppWrapper",
    ),
    "another version": (text({"apiVersion": "workload.codeflare.dev/v1"}), "write workload.codeflare.dev/v1beta2"),
    "no name": (text({"metadata": {}}), "the job has no metadata.name"),
    "no spec": (text({"spec": None}), "the job has no spec"),
    "another namespace": (
        text({"metadata": {"name": "job", "namespace": "red"}}),
        "for namespace red, and the question",
    ),
    "no queue": (
        text({"kind": "PyTorchJob", "apiVersion": "kubeflow.org/v1"}),
        "add the label kueue.x-k8s.io/queue-name: default-queue",
    ),
}


@pytest.mark.parametrize(("wrong", "said"), BAD.values(), ids=BAD)
def test_what_is_no_job_is_told_in_one_line(
    wrong: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(wrong)
    assert main([str(file), "--team", "blue"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert said in line


def test_a_file_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nothing.yaml", "--team", "blue"]) == 1
    assert "nothing.yaml" in capsys.readouterr().err


def test_a_resource_with_other_capitals_is_told_its_name() -> None:
    job = read(text().replace("nvidia.com/gpu", "nvidia.com/GPU"), "blue")
    with pytest.raises(ManifestError, match=r"asks for nvidia.com/GPU, which no node has: .* is nvidia.com/gpu"):
        check_resources(job, ["cpu", "nvidia.com/gpu"])
    check_resources(read(text(), "blue"), ["cpu", "nvidia.com/gpu"])


def named(kind: str, name: str, namespace: str | None = None, **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **fields.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **fields}


TEAM = named("Namespace", "blue", metadata={"labels": {"mlbatch-team-namespace": "true"}})


def test_teams_and_queues_that_are_not_there_are_told_those_that_are() -> None:
    source = Source({"Namespace": [TEAM], "LocalQueue": [named("LocalQueue", "default-queue", "blue")]})
    job = read(text(), "blue")
    with pytest.raises(ManifestError, match="there is no team green; there are blue"):
        ask(object(), source, job, "green")
    mine = read(text(labels={"kueue.x-k8s.io/queue-name": "mine"}), "blue")
    with pytest.raises(ManifestError, match="team blue has no queue mine; it has default-queue"):
        ask(object(), source, mine, "blue")
    with pytest.raises(ManifestError, match="has no member who could submit"):
        ask(object(), source, job, "blue")


def test_pods_that_nodes_never_hold_are_told_what_would_fit() -> None:
    assert short(pod(), 3, NODES) is None
    found = short(pod(), 4, NODES)
    assert found is not None
    assert found.reason == "the nodes hold 3 of its 4 pods at once, also when they are empty"
    assert found.change == "run 3 pods, in place of 4, or ask for less in each"
    large = pod()
    large["containers"] *= 2
    found = short(large, 1, NODES)
    assert found is not None
    assert (found.resource, found.change) == ("nvidia.com/gpu", "ask for 8 nvidia.com/gpu a pod, in place of 10")
    found = short(pod(nodeSelector={"zone": "a"}), 1, NODES)
    assert found is not None
    assert found.reason == "no node has the labels zone=a"


def test_what_others_than_teams_run_on_a_node_is_not_there_for_teams() -> None:
    assert room.asked(pod(initContainers=[{"name": "i", "resources": {"requests": {"cpu": "3"}}}]))["cpu"] == 3 * 10**9


def test_the_answer_has_a_stable_form_and_a_code() -> None:
    answer = Answer(verdict=Verdict.WAITS, job="blue/job", queue="default-queue", resource="8 nvidia.com/gpu more")
    assert json.loads(answer.json()) == {
        "form": 1,
        "verdict": "waits",
        "job": "blue/job",
        "queue": "default-queue",
        "nodes": {},
        "resource": "8 nvidia.com/gpu more",
        "behind": [],
        "preempts": [],
        "rule": None,
        "reason": "",
        "change": None,
    }
    codes = {verdict: Answer(verdict=verdict, job="", queue="").code for verdict in Verdict}
    assert codes == {
        Verdict.ADMITTED: 0,
        Verdict.PREEMPTS: 0,
        Verdict.WAITS: 3,
        Verdict.NEVER: 4,
        Verdict.REFUSED: 5,
    }


def test_the_text_says_what_there_is_to_say_and_no_more() -> None:
    answer = Answer(
        verdict=Verdict.PREEMPTS,
        job="red/own",
        queue="default-queue",
        nodes={"gpu-node-1": 2, "gpu-node-0": 1},
        preempts=["blue/loan"],
    )
    assert answer.text() == (
        "red/own would be admitted now, and others would give way\n"
        "  on gpu-node-0: 1 pod\n"
        "  on gpu-node-1: 2 pods\n"
        "  gives way to it: blue/loan"
    )


def test_a_replica_keeps_who_was_first_and_reads_no_secret() -> None:
    wrapper = named("AppWrapper", "job", "blue", metadata={"uid": "1", "creationTimestamp": "2026-01-01T00:00:00Z"})
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": "2"}
    gone = {**owner, "kind": "DaemonSet", "uid": "3"}
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    lost = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    found = content(
        Source(
            {
                "Namespace": [TEAM],
                "CustomResourceDefinition": [
                    named("CustomResourceDefinition", "x", spec={"names": {"kind": "AppWrapper"}})
                ],
                "AppWrapper": [wrapper],
                "Job": [named("Job", "job", "blue", metadata={"uid": "2"})],
                "Node": [named("Node", "well", **ready), named("Node", "lost", **lost)],
                "Pod": [
                    named("Pod", "mine", "blue", metadata={"ownerReferences": [owner]}, spec={"nodeName": "well"}),
                    named(
                        "Pod", "agent", "kube-system", metadata={"ownerReferences": [gone]}, spec={"nodeName": "well"}
                    ),
                    named("Pod", "elsewhere", "kube-system", spec={"nodeName": "control-plane"}),
                ],
            }
        )
    )
    exact = {item["metadata"]["name"]: item for item in found["exact"] if item["kind"] != "Job"}
    assert exact["job"] == wrapper
    assert exact.keys() == {"well", "lost", "job", "mine", "agent"}
    assert exact["well"]["metadata"]["annotations"] == {"kwok.x-k8s.io/node": "fake"}
    assert exact["lost"]["metadata"]["annotations"] == {}
    assert exact["mine"]["metadata"]["ownerReferences"] == [owner]
    assert "ownerReferences" not in exact["agent"]["metadata"]


SET_ANEW = {"uid": "1", "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 2, "managedFields": []}


def controller(name: str, image: str, **pod: Any) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": image}], **pod},
    }
    return named("Deployment", name, "queues", metadata=dict(SET_ANEW), spec={"replicas": 3, "template": template})


def hook(name: str) -> dict[str, Any]:
    client = {"caBundle": "QQ==", "service": {"name": "kueue-webhook", "namespace": "queues"}}
    webhooks = [{"name": name, "clientConfig": client}]
    return named("ValidatingWebhookConfiguration", name, metadata=dict(SET_ANEW), webhooks=webhooks)


def test_a_replica_runs_the_controllers_that_decide_about_jobs_and_what_they_need_alone() -> None:
    volumes = [{"name": "certificate", "secret": {"secretName": "kueue-certificate"}}, {"name": "tmp", "emptyDir": {}}]
    spread = {"affinity": {}, "topologySpreadConstraints": [], "imagePullSecrets": [{"name": "registry"}]}
    kueue = "registry.k8s.io/kueue/kueue:v0.15.2"
    addresses = {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ipFamilies": ["IPv4"], "ipFamilyPolicy": "x"}
    found = content(
        Source(
            {
                "Namespace": [{**TEAM, "status": {"phase": "Active"}}],
                "Deployment": [
                    controller("kueue", kueue, **spread, volumes=volumes, nodeSelector={"zone": "a"}),
                    controller("grafana", "docker.io/grafana/grafana:12"),
                    controller("kueue-of-others", "registry.example.org/kueue-of-others:1"),
                ],
                "Service": [
                    named("Service", "kueue-webhook", "queues", spec={"ports": [{"port": 443}], **addresses}),
                    named("Service", "elsewhere", "monitoring", spec={}),
                ],
                "ConfigMap": [named("ConfigMap", "kueue-config", "queues", data={"a": "b"})],
                "ServiceAccount": [named("ServiceAccount", "kueue", "queues")],
                "Secret": [named("Secret", "kueue-certificate", "queues", data={"tls.key": "QQ=="})],
                "ClusterRole": [
                    named("ClusterRole", name) for name in ("system:node", "admin", "view", "mlbatch-edit")
                ],
                "LimitRange": [named("LimitRange", "own", "blue"), named("LimitRange", "foreign", "default")],
                "ResourceQuota": [named("ResourceQuota", "own", "blue"), named("ResourceQuota", "foreign", "default")],
                "PriorityClass": [named("PriorityClass", "system-node-critical"), named("PriorityClass", "high")],
                "ValidatingAdmissionPolicy": [named("ValidatingAdmissionPolicy", "gate")],
                "ValidatingAdmissionPolicyBinding": [named("ValidatingAdmissionPolicyBinding", "gate")],
                "ValidatingWebhookConfiguration": [hook("kueue-validating"), hook("istio-validating")],
                "Node": [named("Node", "local-controllers")],
            }
        )
    )
    template = {
        "metadata": {"labels": {"app": "kueue"}},
        "spec": {
            "containers": [{"name": "main", "image": kueue}],
            "volumes": volumes,
            "nodeSelector": {"kubernetes.io/hostname": "local-controllers"},
            "tolerations": [{"operator": "Exists"}],
        },
    }
    service = {"name": "kueue-webhook", "namespace": "queues"}
    webhooks = [{"name": "kueue-validating", "clientConfig": {"service": service}}]
    assert found["last"] == [
        named("Secret", "kueue-certificate", "queues"),
        named("Deployment", "kueue", "queues", spec={"replicas": 1, "template": template}),
        named("ValidatingWebhookConfiguration", "kueue-validating", webhooks=webhooks),
    ]
    assert found["first"] == [
        TEAM,
        *(named("PriorityClass", name) for name in ("system-node-critical", "high")),
        named("ClusterRole", "mlbatch-edit"),
        named("ServiceAccount", "kueue", "queues"),
        named("Service", "kueue-webhook", "queues", spec={"ports": [{"port": 443}]}),
        named("ConfigMap", "kueue-config", "queues", data={"a": "b"}),
        named("LimitRange", "own", "blue"),
        named("ValidatingAdmissionPolicy", "gate"),
        named("ValidatingAdmissionPolicyBinding", "gate"),
    ]
    assert found["exact"] == [named("ResourceQuota", "own", "blue")]


def test_every_kind_that_can_be_asked_about_is_in_the_page() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "ask.md").read_text()
    assert [kind for kind in manifest.KINDS if kind not in page] == []
    assert [verdict for verdict in Verdict if f"`{verdict}`" not in page] == []
