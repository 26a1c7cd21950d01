"""Which jobs `ask` supports, its answers, and the errors that it reports at once."""

import contextlib
import io
import json
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from kubernetes.client.exceptions import ApiException

from ask import manifest, room
from ask.answer import Answer, Verdict
from ask.asking import _member, ask
from ask.content import content, runs
from ask.manifest import ManifestError, check_resources, read
from ask.replica import Replica, ReplicaError
from ask.room import Room, short
from ask.source import ADMISSION, DECIDING, GROUPS, RBAC, Source, SourceError
from ask.source import read as read_cluster
from cli.app import main
from cli.ask import run, stop
from components import names
from emulator.cluster import memory
from emulator.cluster.layout import Layout
from emulator.paths import Paths
from tests.local.environment import ROOT, gang
from tests.unit.servers import kubeconfig_of, silent

KINDS = (*DECIDING, ("apiextensions.k8s.io/v1", "CustomResourceDefinition"))
GIB = 2**30 * 10**9
EIGHT_GPUS = {"nvidia.com/gpu": 8 * 10**9, "cpu": 224 * 10**9, "memory": 2000 * GIB, "pods": 110 * 10**9}
NODES = [Room(EIGHT_GPUS, {"kubernetes.io/hostname": f"gpu-node-{index}"}) for index in range(3)]


def text(change: dict[str, Any] | None = None, **metadata: Any) -> str:
    job = gang("job", "blue", pods=1, gpus=1, **metadata)
    return yaml.safe_dump({**job, **(change or {})})


def pod(**fields: Any) -> dict[str, Any]:
    resources = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "5"}
    return {"containers": [{"name": "main", "resources": {"requests": resources, "limits": resources}}], **fields}


LISTED = yaml.safe_load(Path(__file__).with_name("ask_files.yaml").read_text())
NESTED = "the file is nested deeper than 100 levels, or within itself"
REJECTED = {
    **{str(each): (each.get("file", text(each.get("job"))), each["said"]) for each in LISTED},
    "two jobs": (text() + "---\n" + text(), "the file has 2 objects (AppWrapper job, AppWrapper job)"),
    "two, one of them odd": ("metadata: [1]\n---\n" + text(), "the file has 2 objects (None None, AppWrapper job)"),
    "a job with its PodGroup": (
        "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: tune}\n---\n" + text(),
        "in its AppWrapper, or create them in the cluster first",
    ),
    "brackets without end": ("[" * 3000, NESTED),
    "brackets that end": ("[" * 200_000 + "]" * 200_000, NESTED),
    "fields that are merged without end": (
        "a: &a {x: 1, y: 2}\n"
        + "".join(f"{b}: &{b} {{<<: [{','.join(['*' + a] * 10)}]}}\n" for a, b in pairwise("abcdefghij")),
        "the file merges more than 100000 fields by <<: write them out",
    ),
    "a file that is too large": (
        "#" * (3 << 20) + "\n",
        "the file has more than 3 MiB, twice what an API server takes",
    ),
    "aliases of a file that is too large": (
        "a: &a [1,1,1,1,1,1,1,1]\n"
        + "".join(f"{b}: &{b} [{','.join(['*' + a] * 8)}]\n" for a, b in pairwise("abcdefgh")),
        "the file holds more than the 1.5 MiB that an API server takes",
    ),
}


@pytest.mark.parametrize(("wrong", "said"), REJECTED.values(), ids=REJECTED)
def test_a_file_that_is_not_a_job_is_an_error_in_one_line(
    wrong: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(wrong)
    assert main(["ask", str(file), "--team", "blue"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert said in line


def test_what_kubectl_reads_is_read_as_kubectl_does() -> None:
    job = read(text({"metadata": {"name": "j", "namespace": None}, "spec": {"from": "x", 1: 2}}), "blue")
    assert job.document["metadata"]["namespace"] == "blue"
    assert job.document["spec"] == {"from": "x", "1": 2}
    merged = read("base: &b {p: 1, q: 2}\n" + text().replace("spec:\n", "spec:\n  <<: *b\n  q: 3\n", 1), "blue")
    assert {key: merged.document["spec"][key] for key in "pq"} == {"p": 1, "q": 3}
    tabbed = json.dumps(gang("job", "blue", pods=1, gpus=1), indent="\t")
    assert read(tabbed, "blue").document == gang("job", "blue", pods=1, gpus=1)
    dated = read(text({"spec": {"from": "DATE"}}).replace("DATE", "2026-11-21"), "blue")
    assert dated.document["spec"]["from"] == "2026-11-21"


SCALARS = {
    "1e-4": 0.0001,
    "1E5": 100000,
    "1.": 1,
    "08": 8,
    "0777": 511,
    "0o17": 15,
    "0x1F": 31,
    "0b11": 3,
    "1_000": 1000,
    "99999999999999999999": 100000000000000000000,
    "22:22": "22:22",
    "190:20:30": "190:20:30",
    "1e400": "1e400",
    "0.1.2": "0.1.2",
    "0xfffffffffffffffff": "0xfffffffffffffffff",
    "y": True,
    "NO": False,
    "=": "=",
    "<<": "<<",
    "+1": 1,
    "-.5": -0.5,
}
"""The output of `kubectl patch --local --output json` (v1.32.4) for these files."""


@pytest.mark.parametrize(("written", "meant"), SCALARS.items())
def test_a_text_without_quotes_is_what_kubectl_takes_it_for(written: str, meant: object) -> None:
    """`args: [--lr, 1e-4]` is refused by the API server, which wants texts; `22:22` is one."""
    value = read(text({"spec": {"v": "VALUE"}}).replace("VALUE", written), "blue").document["spec"]["v"]
    assert json.dumps(value) == json.dumps(meant)


@pytest.mark.parametrize("options", [["--team", "blue"], ["job.yaml"]])
def test_what_is_left_out_is_asked_for(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.yaml").write_text(text())
    assert main(["ask", *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: name the ")


def test_a_standard_input_that_is_no_text_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe")))
    assert main(["ask", "-", "--team", "blue"]) == 2
    assert "error: - is not a text file: " in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"a: [", b"\xff\xfe", b"[]", b"hello", b"contexts: 5", b""])
def test_a_kubeconfig_that_is_none_is_told_in_one_line(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job, kubeconfig = tmp_path / "job.yaml", tmp_path / "config"
    job.write_text(text())
    kubeconfig.write_bytes(content)
    assert main(["ask", str(job), "--team", "blue", "--kubeconfig", str(kubeconfig)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: the kubeconfig cannot be used: ")


def test_a_cluster_that_says_nothing_is_given_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.report.SECONDS", 0.2)
    job = tmp_path / "job.yaml"
    job.write_text(text())
    with silent() as address:
        kubeconfig = kubeconfig_of(f"http://{address}", tmp_path)
        assert main(["ask", str(job), "--team", "blue", "--kubeconfig", str(kubeconfig)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: the cluster does not answer: ")


def test_a_file_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ask", "nothing.yaml", "--team", "blue"]) == 2
    assert "nothing.yaml" in capsys.readouterr().err


def test_a_resource_with_other_capitals_is_told_its_name() -> None:
    job = read(text().replace("nvidia.com/gpu", "nvidia.com/GPU"), "blue")
    with pytest.raises(ManifestError, match=r"asks for nvidia.com/GPU, which no node has: .* is nvidia.com/gpu"):
        check_resources(job, ["cpu", "nvidia.com/gpu"])
    check_resources(read(text(), "blue"), ["cpu", "nvidia.com/gpu"])


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        ("16GB", "the job asks for memory: '16GB', and this is not a Kubernetes quantity: write a number with one of"),
        ("64gi", "this is not a Kubernetes quantity"),
        ("", "this is not a Kubernetes quantity"),
        ("-1", "a quantity of a resource is never negative"),
        ("9" * 20, "this is more than Kubernetes can hold"),
        (True, "asks for memory: True, and "),
        ([1], "asks for memory: [1], and "),
    ],
)
def test_an_amount_that_is_none_is_told_with_its_resource(amount: Any, said: str) -> None:
    document = gang("job", "blue", pods=1, gpus=1)
    container = document["spec"]["components"][0]["template"]["spec"]["template"]["spec"]["containers"][0]
    container["resources"]["limits"]["memory"] = amount
    with pytest.raises(ManifestError) as error:
        check_resources(read(yaml.safe_dump(document), "blue"), [])
    assert said in str(error.value)
    for taken in ("64Gi", " 1 ", 1, 0.5, 0.0625, 1e-5, None):
        container["resources"]["limits"]["memory"] = taken
        check_resources(read(yaml.safe_dump(document), "blue"), [])


@pytest.mark.parametrize(
    ("key", "operator", "values", "fits"),
    [
        ("kubernetes.io/hostname", "In", ["gpu-node-2", "moon"], True),
        ("kubernetes.io/hostname", "In", ["moon"], False),
        ("kubernetes.io/hostname", "NotIn", ["gpu-node-0", "gpu-node-1", "gpu-node-2"], False),
        ("kubernetes.io/hostname", "Exists", None, True),
        ("zone", "NotIn", ["a"], True),
        ("zone", "Exists", None, False),
        ("zone", "DoesNotExist", None, True),
        ("zone", "Gt", ["1"], False),
        ("generation", "Gt", ["8"], True),
        ("generation", "Lt", ["9"], False),
    ],
)
def test_nodes_that_a_pods_affinity_requires_are_there_or_it_never_runs(
    key: str, operator: str, values: list[str] | None, fits: bool
) -> None:
    nodes = [Room(node.amounts, {**node.labels, "generation": "9"}) for node in NODES]
    requirement = {"key": key, "operator": operator, **({"values": values} if values else {})}

    def requiring(*terms: dict[str, Any]) -> dict[str, Any]:
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
        return pod(affinity={"nodeAffinity": required})

    found = short([(requiring({"matchExpressions": [requirement]}), 1)], nodes)
    assert (found is None) is fits
    assert found is None or found.reason == "no node meets the pod's nodeAffinity"
    assert short([(requiring({"matchExpressions": [requirement]}, {"matchExpressions": []}), 1)], nodes) == found


def test_a_node_is_named_by_its_field_too() -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["one"]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [field]}]}}
    mine = pod(affinity={"nodeAffinity": required})
    assert short([(mine, 1)], [Room(EIGHT_GPUS, {}, "one"), Room(EIGHT_GPUS, {}, "two")]) is None
    found = short([(mine, 2)], [Room(EIGHT_GPUS, {}, "one"), Room(EIGHT_GPUS, {}, "two")])
    assert found is not None
    assert found.change == "run 1 pods, in place of 2, or ask for less in each"


def test_what_a_pod_as_a_whole_asks_for_stands_above_its_containers() -> None:
    whole = {"requests": {"cpu": "300"}, "limits": {"memory": "1Gi"}}
    assert room.asked(pod(resources=whole))["cpu"] == 300 * 10**9
    found = short([(pod(resources=whole), 1)], NODES)
    assert found is not None
    assert found.change == "ask for 224 cpu a pod, in place of 300"


def named(kind: str, name: str, namespace: str | None = None, **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **fields.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **fields}


TEAM = named("Namespace", "blue", metadata={"labels": {"mlbatch-team-namespace": "true"}})


def test_a_job_is_not_submitted_in_the_name_of_a_teams_accounts() -> None:
    """OpenShift binds the group of a namespace's accounts in a separate RoleBinding in that namespace."""
    subjects = [[{"kind": "Group", "name": name}] for name in ("system:serviceaccounts:blue", "vision")]
    bindings = [named("RoleBinding", f"b{number}", "blue", subjects=each) for number, each in enumerate(subjects)]
    assert Source({"RoleBinding": bindings}).members("blue", "Group") == ["vision"]


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
    with pytest.raises(ManifestError, match="cannot be a user or a group"):
        ask(object(), source, job, "blue", "eve\nImpersonate-Group: system:masters")
    with pytest.raises(ManifestError, match="the cluster does not serve AppWrapper"):
        ask(object(), source, job, "blue", "alice")


@pytest.mark.parametrize(("queue", "user"), [("default-queue", "bob"), ("user-alice", "alice")])
def test_a_job_is_asked_about_in_the_name_of_who_may_use_its_queue(queue: str, user: str) -> None:
    team = named(
        "Namespace", "blue", metadata={"annotations": {names.USER_QUEUES: "user-alice=alice\nuser-carol=carol"}}
    )
    people = [{"kind": "User", "name": name} for name in ("alice", "bob", "carol")]
    source = Source({"Namespace": [team], "RoleBinding": [named("RoleBinding", "members", "blue", subjects=people)]})
    assert _member(source, "blue", queue, None, None) == (user, None)


def test_pods_that_nodes_never_hold_are_told_what_would_fit() -> None:
    assert short([(pod(), 3)], NODES) is None
    found = short([(pod(), 4)], NODES)
    assert found is not None
    assert found.reason == "the nodes hold 3 of its 4 pods at once, also when they are empty"
    assert found.change == "run 3 pods, in place of 4, or ask for less in each"
    large = pod()
    large["containers"] *= 2
    found = short([(large, 1)], NODES)
    assert found is not None
    assert (found.resource, found.change) == ("nvidia.com/gpu", "ask for 8 nvidia.com/gpu a pod, in place of 10")
    found = short([(pod(nodeSelector={"zone": "a"}), 1)], NODES)
    assert found is not None
    assert found.reason == "no node has the labels zone=a"


def test_a_master_and_workers_that_fit_one_by_one_and_not_together_never_run() -> None:
    assert short([(pod(), 1), (pod(), 2)], NODES) is None
    found = short([(pod(), 1), (pod(), 3)], NODES)
    assert found is not None
    assert found.reason == "the nodes hold 3 of its 4 pods at once, also when they are empty"
    head = {"containers": [{"name": "head"}]}
    assert short([(head, 1), (pod(), 3)], NODES) is None, "the head asks for nothing"


def test_a_pod_that_asks_for_nothing_takes_a_place_of_a_node() -> None:
    nothing = {"containers": [{"name": "main"}]}
    assert short([(nothing, 330)], NODES) is None
    found = short([(nothing, 331)], NODES)
    assert found is not None
    assert found.change == "run 330 pods, in place of 331, or ask for less in each"


def wanting(name: str, amount: str) -> dict[str, Any]:
    return {"containers": [{"name": "main", "resources": {"requests": {name: amount}}}]}


def test_a_resource_that_no_node_has_is_told_apart_from_too_much_of_one() -> None:
    for name, change in {
        "nvidia.com/gpus": "did you mean nvidia.com/gpu? Else leave nvidia.com/gpus out of the job's requests and "
        "limits",
        "example.com/fpga": "leave example.com/fpga out of the job's requests and limits",
    }.items():
        found = short([(wanting(name, "1"), 1)], NODES)
        assert found is not None
        assert (found.reason, found.change) == (f"a pod asks for {name}, and no node has it", change)
    found = short([(wanting("memory", "4Ti"), 1)], NODES)
    assert found is not None
    assert found.change == "ask for 2000Gi memory a pod, in place of 4Ti"
    found = short([(pod(), 1)], [])
    assert found is not None
    assert found.reason == "the cluster has no node for teams"


def test_what_others_than_teams_run_on_a_node_is_not_there_for_teams() -> None:
    first = [{"name": "i", "resources": {"requests": {"cpu": "3"}}}]
    assert room.asked(pod(initContainers=first))["cpu"] == 3 * 10**9
    beside = [{**first[0], "restartPolicy": "Always"}]
    assert room.asked(pod(initContainers=beside))["cpu"] == 4 * 10**9, "it runs as long as the others"


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
        "differences": [],
    }
    running = {verdict for verdict in Verdict if Answer(verdict=verdict, job="", queue="").runs}
    assert running == {Verdict.ADMITTED, Verdict.PREEMPTS}


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


def test_what_somebody_else_wrote_cannot_act_in_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Escape sequences clear a screen, and a line of the job could look like a line of the answer."""
    hostile = "a\x1b[2J\x1b]0;x\x07\u202e\nblue/job would be admitted now"
    harmless = "a\\x1b[2J\\x1b]0;x\\x07\\u202e blue/job would be admitted now"
    file = tmp_path / "job.yaml"
    file.write_text(text({"kind": hostile}))
    assert main(["ask", str(file), "--team", "blue"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: a {harmless} is not a job")
    answer = Answer(verdict=Verdict.REFUSED, job=f"blue/{hostile}", queue=hostile, rule=hostile, reason=hostile)
    assert answer.text().splitlines() == [
        f"blue/{harmless} would be refused",
        f"  rule: {harmless}",
        f"  because: {harmless}",
    ]


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


def test_a_claim_has_a_volume_on_the_replica_which_leads_nowhere() -> None:
    """A scheduler does not place a pod whose claim has no volume. The volume's location and secret are not copied."""

    def claim(name: str, namespace: str = "blue", **spec: Any) -> dict[str, Any]:
        wanted = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
        uid = {"uid": f"uid-{name}", "creationTimestamp": "2026-01-01T00:00:00Z"}
        return named("PersistentVolumeClaim", name, namespace, metadata=uid, spec=wanted, status={"phase": "Pending"})

    zone = {"required": {"nodeSelectorTerms": [{"matchExpressions": []}]}}
    csi = {"csi": {"driver": "d", "volumeHandle": "h", "nodeStageSecretRef": {"name": "key"}}}
    own = {"claimRef": {"namespace": "blue", "name": "kept", "uid": "uid-kept"}}
    disk = named("PersistentVolume", "disk", spec={"capacity": {"storage": "2Gi"}, "nodeAffinity": zone, **csi, **own})
    claims = [claim("kept", volumeName="disk"), claim("new", storageClassName="late"), claim("other", "default")]
    found = content(Source({"Namespace": [TEAM], "PersistentVolume": [disk], "PersistentVolumeClaim": claims}))
    kept, new = [item for item in found["exact"] if item["kind"] == "PersistentVolumeClaim"]
    volumes = {item["metadata"]["name"]: item for item in found["exact"] if item["kind"] == "PersistentVolume"}
    assert volumes.keys() == {"disk", "replica-uid-new"}
    for item in (kept, new):
        assert item["status"]["phase"] == "Bound"
        assert item["metadata"]["annotations"] == {"pv.kubernetes.io/bind-completed": "yes"}
        volume = volumes[item["spec"]["volumeName"]]
        assert volume["spec"]["claimRef"]["uid"] == item["metadata"]["uid"]
        assert (volume["spec"]["hostPath"], volume["spec"]["persistentVolumeReclaimPolicy"]) == (
            {"path": "/nowhere"},
            "Retain",
        )
        assert "csi" not in volume["spec"]
    assert volumes["disk"]["spec"]["nodeAffinity"] == zone
    assert volumes["disk"]["spec"]["capacity"] == {"storage": "2Gi"}
    assert volumes["replica-uid-new"]["spec"]["storageClassName"] == "late"
    assert volumes["replica-uid-new"]["spec"]["capacity"] == {"storage": "1Gi"}


@pytest.mark.parametrize("reference", [None, {"namespace": "blue", "name": "first", "uid": "uid-of-a-former-one"}])
def test_claims_that_name_a_volume_of_somebody_else_have_none_on_the_replica_either(
    reference: dict[str, Any] | None,
) -> None:
    """Who may make claims may name the same volume in two: their volume would be written twice, which etcd refuses."""
    disk = named("PersistentVolume", "disk", spec={"claimRef": reference})
    claims = [
        named("PersistentVolumeClaim", name, "blue", metadata={"uid": f"uid-{name}"}, spec={"volumeName": volume})
        for name, volume in (("first", "disk"), ("second", "disk"), ("lost", "gone"))
    ]
    found = content(Source({"Namespace": [TEAM], "PersistentVolume": [disk], "PersistentVolumeClaim": claims}))
    assert found["exact"] == claims


def test_all_volumes_are_looked_through_once_however_many_claims_there_are() -> None:
    looked = []

    class Volumes(list[dict[str, Any]]):
        def __iter__(self) -> Iterator[dict[str, Any]]:
            looked.append(len(self))
            return super().__iter__()

    claims = [
        named("PersistentVolumeClaim", name, "blue", metadata={"uid": f"uid-{name}"}, spec={"volumeName": "gone"})
        for name in ("first", "second", "third")
    ]
    volumes = Volumes([named("PersistentVolume", f"disk-{number}", spec={}) for number in range(3)])
    content(Source({"Namespace": [TEAM], "PersistentVolume": volumes, "PersistentVolumeClaim": claims}))
    assert looked == [3]


def test_names_that_are_taken_in_a_teams_namespace_are_taken_on_the_replica() -> None:
    """An AppWrapper fails for good over a Service or ConfigMap that it wraps and somebody else has, owned or not."""
    owned = {"ownerReferences": [{"kind": "RayCluster", "name": "ray", "uid": "1"}]}
    here = {
        "clusterIP": "10.0.0.7",
        "clusterIPs": ["10.0.0.7"],
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
    }
    services = [
        named("Service", "by-hand", "blue", spec={"type": "NodePort", **here}),
        named("Service", "head", "blue", metadata=owned),
    ]
    noted = {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "x" * 99}}
    files = [
        named("ConfigMap", "by-hand", "blue", metadata=noted, data={"large": "x" * 99}, binaryData={"a": "QQ=="}),
        named("ConfigMap", "of-a-job", "blue", metadata=owned),
    ]
    elsewhere = [named(kind, "elsewhere", "default") for kind in ("Service", "ConfigMap")]
    found = content(
        Source({"Namespace": [TEAM], "Service": [*services, elsewhere[0]], "ConfigMap": [*files, elsewhere[1]]})
    )
    none = {"clusterIP": "None", "clusterIPs": ["None"]}
    assert found["exact"] == [
        named("Service", "by-hand", "blue", spec={"type": "NodePort", **none}),
        named("Service", "head", "blue", metadata=owned, spec=none),
        named("ConfigMap", "by-hand", "blue"),
        files[1],
    ]


def test_a_member_keeps_the_rights_whatever_the_name() -> None:
    """A team's binding has its member's name: `edith` is not the API server's role `edit`."""
    found = content(
        Source(
            {
                "Namespace": [TEAM],
                "ClusterRole": [named("ClusterRole", name) for name in ("edit", "editors-of-blue")],
                "RoleBinding": [
                    named("RoleBinding", name, "blue") for name in ("edith", "admin", "viewer@x", "system:x")
                ],
            }
        )
    )
    assert [item["metadata"]["name"] for item in found["first"]] == [
        "local-controllers",
        "blue",
        "editors-of-blue",
        "edith",
        "admin",
        "viewer@x",
    ]


SET_ANEW = {"uid": "1", "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 2, "managedFields": []}


def controller(name: str, image: str, **pod: Any) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": image}], "serviceAccountName": name, **pod},
    }
    return named("Deployment", name, "queues", metadata=dict(SET_ANEW), spec={"replicas": 3, "template": template})


def entitled(*names: str, namespace: str = "queues") -> dict[str, Any]:
    """Return what gives service accounts rights in the whole cluster."""
    subjects = [{"kind": "ServiceAccount", "name": name, "namespace": namespace} for name in names]
    return named("ClusterRoleBinding", "system:managers", subjects=subjects)


OWN_NODE = named(
    "Node",
    "local-controllers",
    metadata={"annotations": {"kwok.x-k8s.io/node": "fake"}},
    spec={"taints": [{"key": "mlbatch/replica", "effect": "NoSchedule"}]},
)


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
                "ClusterRoleBinding": [entitled("kueue", "grafana", "kueue-of-others")],
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
            "serviceAccountName": "kueue",
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
        OWN_NODE,
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


def test_a_replica_runs_no_program_of_whoever_has_a_namespace() -> None:
    """Anybody may call an image so, and give it a command: a controller has rights in the whole cluster."""
    kueue = "registry.example.org/kueue/kueue:v0.15.2"
    own = controller("kueue", kueue)
    with_the_name = {**own, "metadata": {**own["metadata"], "namespace": "my-project"}}
    without_account = {**own, "metadata": {**own["metadata"], "namespace": "default"}}
    del without_account["spec"]["template"]["spec"]["serviceAccountName"]
    found = content(Source({"Deployment": [with_the_name, without_account], "ClusterRoleBinding": [entitled("kueue")]}))
    assert found["last"] == []
    assert not runs(Source({"Deployment": [with_the_name]}), ("kueue",))


def test_what_nobody_decides_about_is_no_answer() -> None:
    """Without Kueue, or AppWrapper, on the replica a job would only be seen to wait."""
    defined = [named("CustomResourceDefinition", "x", spec={"names": {"kind": "AppWrapper"}})]
    kinds: dict[str, list[dict[str, Any]]] = {
        "Namespace": [TEAM],
        "LocalQueue": [named("LocalQueue", "default-queue", "blue")],
        "CustomResourceDefinition": defined,
        "Deployment": [controller("kueue", "registry.example.org/other/queues:1")],
        "ClusterRoleBinding": [entitled("kueue", "codeflare")],
    }
    with pytest.raises(ReplicaError, match="the cluster runs Kueue from an unknown image"):
        ask(object(), Source(kinds), read(text(), "blue"), "blue", "alice")
    kinds["Deployment"] = [controller("kueue", "registry.k8s.io/kueue/kueue:v0.15.2")]
    with pytest.raises(ReplicaError, match="the cluster runs AppWrapper from an unknown image"):
        ask(object(), Source(kinds), read(text(), "blue"), "blue", "alice")
    kinds["Deployment"].append(controller("codeflare", "registry.redhat.io/rhoai/odh-codeflare-operator-rhel8:v2"))
    assert [item["metadata"]["name"] for item in content(Source(kinds))["last"]] == ["kueue", "codeflare"]


class Standing:
    """An existing replica that records its requests."""

    def __init__(self) -> None:
        self.done: list[str] = []

    @contextlib.contextmanager
    def turn(self, report: object) -> Iterator[None]:
        self.done.append("turn")
        yield
        self.done.append("over")

    def stand(self, source: Source, report: object) -> None:
        self.done.append("stand")

    def keep(self) -> None:
        self.done.append("keep")


@pytest.mark.parametrize(
    ("who", "asked"),
    [
        ({}, ("alice", None)),
        ({"user": "bob"}, ("bob", None)),
        ({"group": "readers"}, ("somebody", "readers")),
        ({"user": "bob", "group": "readers"}, ("bob", "readers")),
    ],
)
def test_a_group_has_no_rights_but_its_own(
    who: dict[str, str], asked: tuple[str, str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    standing, made = asked_with(monkeypatch, who, Answer(verdict=Verdict.ADMITTED, job="", queue=""))
    assert made == [("blue", *asked)]
    assert standing.done == ["turn", "stand", "keep", "over"]


def test_a_replica_is_kept_only_where_the_question_came_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeyboardInterrupt):
        asked_with(monkeypatch, {}, KeyboardInterrupt())
    assert STANDING[-1].done == ["turn", "stand"]


STANDING: list[Standing] = []


def asked_with(
    monkeypatch: pytest.MonkeyPatch, who: dict[str, str], outcome: Answer | BaseException
) -> tuple[Standing, list[Any]]:
    """Ask a replica that gives one answer. Return the answer and the users who asked."""
    STANDING.append(Standing())
    made = []

    class Question:
        changed = False

        def __init__(self, client: object, job: object, *rest: str | None) -> None:
            made.append(rest)

        def ask(self) -> Answer:
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

    monkeypatch.setattr("ask.asking.Question", Question)
    subjects = [{"kind": "User", "name": "alice"}]
    source = Source(
        {
            "Namespace": [TEAM],
            "LocalQueue": [named("LocalQueue", "default-queue", "blue")],
            "RoleBinding": [named("RoleBinding", "alice", "blue", subjects=subjects)],
            "CustomResourceDefinition": [
                named("CustomResourceDefinition", "x", spec={"names": {"kind": "AppWrapper"}})
            ],
            "Deployment": [controller("k", "kueue/kueue:v0.15.2"), controller("a", "ibm/appwrapper:v1.1.2")],
            "ClusterRoleBinding": [entitled("k", "a")],
        }
    )
    standing: Any = STANDING[-1]
    ask(standing, source, read(text(), "blue"), "blue", **who)
    return standing, made


def test_a_mistake_costs_no_replica(tmp_path: Path) -> None:
    """Invalid jobs are reported before the cluster or the replica is used."""
    paths = Paths.of(root=tmp_path, state=tmp_path / "state")
    paths.state.mkdir()
    mark = paths.state / "asked.json"
    mark.write_text("as it was")
    (tmp_path / "job.yaml").write_text("a: [1")
    assert run(str(tmp_path / "job.yaml"), "blue", None, None, None, None, "text", paths) == 2
    assert mark.read_text() == "as it was"


def without_cluster(monkeypatch: pytest.MonkeyPatch, *, ready: bool, told: list[str]) -> None:
    """Have a replica only tell when its cluster is emptied, and when it is started. ready: whether one runs before."""
    here = SimpleNamespace(
        status=lambda paths: SimpleNamespace(ready=ready),
        reset=lambda paths: told.append("reset"),
        start=lambda *_, **options: told.append("start"),
    )
    monkeypatch.setattr("ask.replica.cluster", here)
    for name in ("_install", "_await_controllers", "save", "connect"):
        monkeypatch.setattr(f"ask.replica.{name}", lambda *_: None)


def test_a_question_that_is_killed_leaves_no_replica_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have left its job there. What was asked to the end is stood for once."""
    filled: list[str] = []
    without_cluster(monkeypatch, ready=True, told=filled)
    paths = Paths.of(root=tmp_path, state=tmp_path / "state")
    paths.state.mkdir()

    def question(source: Source) -> Replica:
        replica = Replica(paths)
        replica.stand(source, lambda line: None)
        return replica

    one, other = Source({"Namespace": [TEAM]}), Source({})
    question(one).keep()
    question(one).keep()
    assert filled.count("start") == 1
    question(one)  # and it is killed
    question(one).keep()
    assert filled.count("start") == 2
    question(other)
    assert filled.count("start") == 3, "of another cluster"


def test_a_replica_is_another_one_for_what_has_changed_and_not_for_a_sign_of_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    without_cluster(monkeypatch, ready=True, told=started)
    paths = Paths.of(root=tmp_path, state=tmp_path / "state")
    paths.state.mkdir()

    def ask_of(heartbeat: str, pressure: str, fields: str) -> int:
        """Return how many replicas have been started by then."""
        alive = {"lastHeartbeatTime": heartbeat, "lastProbeTime": heartbeat}
        condition = {"type": "DiskPressure", "status": pressure, **alive}
        node = named("Node", "a", metadata={"managedFields": [{"time": fields}]}, status={"conditions": [condition]})
        replica = Replica(paths)
        replica.stand(Source({"Node": [node]}), lambda line: None)
        replica.keep()
        return started.count("start")

    assert [ask_of("1", "True", "1"), ask_of("2", "True", "1"), ask_of("2", "True", "2")] == [1, 1, 1]
    assert ask_of("2", "False", "2") == 2


def test_a_replica_that_does_not_fit_the_memory_is_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the replica of the last question takes is free then. Who is over, or no job of a team, takes less."""
    done: list[str] = []
    without_cluster(monkeypatch, ready=False, told=done)
    over = {"status": {"conditions": [{"type": "Finished", "status": "True"}]}}
    kinds = {
        "CustomResourceDefinition": [named("CustomResourceDefinition", "w", spec={"names": {"kind": "Workload"}})],
        "Node": [named("Node", f"node-{number}", status={}) for number in range(200)],
        "Workload": [
            named("Workload", f"w-{number}", "blue", **(over if number < 100 else {})) for number in range(400)
        ],
        "Pod": [named("Pod", f"p-{number}", "agents", spec={"nodeName": "node-0"}) for number in range(900)],
    }
    free = memory.BASE + 200 * memory.NODE + 300 * memory.JOB + 1000 * memory.POD
    replica = Replica(Paths.of(root=tmp_path, state=tmp_path / "state"))
    monkeypatch.setattr("ask.replica.memory.free_memory", lambda: free - 1)
    with pytest.raises(ReplicaError) as error:
        replica.stand(Source(kinds), lambda line: None)
    assert str(error.value) == (
        "a replica of 200 nodes, 300 jobs and 1000 pods or jobs that are over takes up to 3.6 GiB of memory, and "
        "3.6 GiB are free here: end something else on this machine (`make down` stops local clusters), or ask on one "
        "with more"
    )
    assert done == ["reset"]
    monkeypatch.setattr("ask.replica.memory.free_memory", lambda: free)
    replica.stand(Source(kinds), lambda line: None)
    assert done == ["reset", "reset", "start"]


def test_two_questions_take_turns(tmp_path: Path) -> None:
    paths, order, told = Paths.of(root=tmp_path, state=tmp_path / "state"), [], threading.Event()

    def second() -> None:
        with Replica(paths).turn(lambda line: told.set()):
            order.append("second")

    thread = threading.Thread(target=second)
    with Replica(paths).turn(lambda line: None):
        thread.start()
        assert told.wait(10)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]


def test_the_role_of_the_page_lists_all_that_is_read_and_no_secret() -> None:
    page = (ROOT / "docs" / "ask.md").read_text()
    role = yaml.safe_load(page.partition("```yaml\n")[2].partition("```")[0])
    listed = {(group, item) for rule in role["rules"] for group in rule["apiGroups"] for item in rule["resources"]}
    assert all(rule["verbs"] == ["list"] for rule in role["rules"])
    read = {
        (version.rpartition("/")[0], f"{kind.lower()}{'es' if kind.endswith('s') else 's'}") for version, kind in KINDS
    }
    plurals = {item for item in read if (item[0], "*") not in listed}
    assert (
        plurals | {(group, "*") for group in {*GROUPS, RBAC.partition("/")[0], ADMISSION.partition("/")[0]}} == listed
    )


@pytest.mark.parametrize(
    ("status", "reason", "body"),
    [
        (401, "Unauthorized", b'{"message":"Unauthorized"}'),
        (403, "Forbidden", b'{"message":"nodes is forbidden: User \\"system:anonymous\\" cannot list resource"}'),
    ],
)
def test_who_has_to_sign_in_is_not_sent_for_rights(
    status: int, reason: str, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        error = ApiException(status, reason)
        error.body = body
        raise error

    monkeypatch.setattr("ask.source.connect", refused)
    with pytest.raises(SourceError, match=rf"rejects the user \({status} {reason}\): sign in again"):
        read_cluster(None, None)


def test_what_may_not_be_listed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(client: object, version: str, kind: str) -> list[Any]:
        if kind == "LimitRange":
            raise ApiException(403, "Forbidden")
        return [{"metadata": {"name": "x"}, "spec": {"group": "kueue.x-k8s.io"}}]

    monkeypatch.setattr("ask.source.connect", lambda *_: None)
    monkeypatch.setattr("ask.source.objects", refused)
    with pytest.raises(
        SourceError, match=r"cannot list LimitRanges of the cluster \(403 Forbidden\): .* ClusterRole in docs/ask.md"
    ):
        read_cluster(None, None)


def test_nothing_of_the_cluster_is_left_when_the_replica_is_stopped(tmp_path: Path) -> None:
    paths = Paths.of(root=tmp_path, state=tmp_path / "state").of_stack("ask")
    layout = Layout(paths)
    layout.make_folders()
    for file in (layout.content, layout.etcd_data / "member", paths.kubeconfig):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    assert stop(paths) == 0
    assert not any(file.exists() for file in (layout.content, layout.etcd_data, paths.kubeconfig))


def test_every_kind_that_can_be_asked_about_is_in_the_page() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "ask.md").read_text()
    assert [kind for kind in manifest.KINDS if kind not in page] == []
    assert [verdict for verdict in Verdict if f"`{verdict}`" not in page] == []
