"""What members' jobs can use on nodes: only their pool, and on local disks only one folder for each pod."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from emulator.paths import Paths
from tests.local.environment import Cluster, Project, eventually, existing_settings
from tests.local.member import as_member, dry_run, refused
from tests.local.standing import Standing
from tests.local.submission import submitted

APPWRAPPER = "workload.codeflare.dev/v1beta2"
KUEUE = "kueue.x-k8s.io/v1beta2"
NODE = "lab-gpu-0"
READY = "mlbatch/nvme-scratch"
UID = {"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}
OWN = {"name": "scratch", "mountPath": "/scratch", "subPathExpr": "$(POD_UID)"}
SPACE = {"name": "scratch", "hostPath": {"path": "/pv-disks/scratch", "type": "Directory"}}


@pytest.fixture(scope="module")
def project(standing: Standing, site_nodes: list[str], cluster: Cluster) -> Iterator[Project]:
    """A site whose GPU nodes have local disks, one of them mounted."""
    project = standing.up("existing", existing_settings)
    cluster.patch("v1", "Node", NODE, {"metadata": {"labels": {READY: "ready"}}})
    yield project
    cluster.patch("v1", "Node", NODE, {"metadata": {"labels": {READY: None}}})


@pytest.fixture
def alice(project: Project, paths: Paths) -> Cluster:
    """Return the cluster with the rights of a member of team blue."""
    return as_member(paths, "alice")


def container(**fields: Any) -> dict[str, Any]:
    requests = {"cpu": "1", "memory": "1Gi"}
    command = ["sleep", "3600"]
    resources = {"requests": requests, "limits": requests}
    return {
        "name": "main",
        "image": "docker.io/library/busybox:1.37.0",
        "command": command,
        "resources": resources,
    } | fields


def pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """Return a pod of team blue without GPUs."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "probe", "namespace": "blue"},
        "spec": {"restartPolicy": "Never", "containers": list(containers or [container()]), **spec},
    }


def with_scratch() -> dict[str, Any]:
    """Return a pod like in the guide to the scratch space."""
    return copy.deepcopy(pod(container(env=[UID], volumeMounts=[OWN]), volumes=[SPACE], nodeSelector={READY: "ready"}))


def wrapped(document: dict[str, Any], name: str, namespace: str) -> dict[str, Any]:
    inner = copy.deepcopy(document)
    inner["metadata"] = {"name": name}
    return {
        "apiVersion": APPWRAPPER,
        "kind": "AppWrapper",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"components": [{"template": inner}]},
    }


def running(cluster: Cluster, name: str, namespace: str) -> dict[str, Any]:
    """Return a pod once it runs."""

    def found() -> dict[str, Any] | None:
        return cluster.get("v1", "Pod", name, namespace)

    eventually(f"{name} runs", found, lambda pod: pod is not None and pod["status"].get("phase") == "Running")
    shown = found()
    assert shown is not None
    return shown


def test_a_job_without_gpus_runs_on_the_nodes_that_its_quota_counts(alice: Cluster, cluster: Cluster) -> None:
    with submitted(alice, wrapped(pod(), "cpus", "blue")):
        shown = running(cluster, "cpus", "blue")
        assert shown["spec"]["nodeSelector"] == {"pool": "gpu"}
        assert shown["spec"]["nodeName"] in {"lab-gpu-0", "lab-gpu-1", "lab-gpu-2"}


def test_a_job_that_selects_other_nodes_is_not_admitted_and_reports_why(alice: Cluster, cluster: Cluster) -> None:
    with submitted(alice, wrapped(pod(nodeSelector={"pool": "system"}), "elsewhere", "blue")):
        eventually(
            "its Workload says so",
            lambda: [
                condition["message"]
                for workload in alice.list(KUEUE, "Workload", "blue")
                for condition in (workload.get("status") or {}).get("conditions") or ()
            ],
            lambda found: any("flavor default-flavor doesn't match node affinity" in message for message in found),
        )
        assert cluster.get("v1", "Pod", "elsewhere", "blue") is None


def test_pods_of_two_teams_on_one_node_have_folders_of_their_own(
    alice: Cluster, cluster: Cluster, paths: Paths
) -> None:
    bob = as_member(paths, "bob")
    with (
        submitted(alice, wrapped(with_scratch(), "one", "blue")),
        submitted(bob, wrapped(with_scratch(), "other", "red")),
    ):
        pods = [running(cluster, "one", "blue"), running(cluster, "other", "red")]
        assert {each["spec"]["nodeName"] for each in pods} == {NODE}
        folders = set()
        for each in pods:
            (main,) = each["spec"]["containers"]
            (mount,) = [item for item in main["volumeMounts"] if item["name"] == "scratch"]
            (variable,) = [item for item in main["env"] if item["name"] == "POD_UID"]
            assert (mount["subPathExpr"], mount.get("subPath")) == ("$(POD_UID)", None)
            assert variable["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.uid"
            folders.add(each["metadata"]["uid"])
        assert len(folders) == 2


def changed(change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    document = with_scratch()
    change(document["spec"])
    return document


ATTACKS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "the whole space": (lambda spec: spec["containers"][0]["volumeMounts"][0].pop("subPathExpr"), "mounts its own"),
    "another's folder": (
        lambda spec: spec["containers"][0]["volumeMounts"].__setitem__(
            0, {"name": "scratch", "mountPath": "/scratch", "subPath": "11111111-1111-4111-8111-111111111111"}
        ),
        "mounts its own",
    ),
    "a folder by another name": (
        lambda spec: spec["containers"][0]["volumeMounts"][0].update(subPathExpr="x/$(POD_UID)"),
        "mounts its own",
    ),
    "the whole space beside its own folder": (
        lambda spec: spec["containers"][0]["volumeMounts"].append({"name": "scratch", "mountPath": "/all"}),
        "mounts its own",
    ),
    "the whole space in an init container": (
        lambda spec: spec.update(
            initContainers=[container(name="before", volumeMounts=[{"name": "scratch", "mountPath": "/all"}])]
        ),
        "mounts its own",
    ),
    "mounts that come and go": (
        lambda spec: spec["containers"][0]["volumeMounts"][0].update(mountPropagation="HostToContainer"),
        "no mountPropagation",
    ),
    "a uid of its choice": (
        lambda spec: spec["containers"][0].update(env=[{"name": "POD_UID", "value": "lost+found"}]),
        "by fieldRef metadata.uid",
    ),
    "a uid of its choice behind the true one": (
        lambda spec: spec["containers"][0]["env"].append({"name": "POD_UID", "value": "lost+found"}),
        "by fieldRef metadata.uid",
    ),
    "a field that it writes itself": (
        lambda spec: spec["containers"][0].update(
            env=[{"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['folder']"}}}]
        ),
        "by fieldRef metadata.uid",
    ),
    "a uid from a ConfigMap": (
        lambda spec: spec["containers"][0].update(env=[], envFrom=[{"configMapRef": {"name": "folders"}}]),
        "by fieldRef metadata.uid",
    ),
    "another folder of the node": (
        lambda spec: spec["volumes"][0]["hostPath"].update(path="/pv-disks"),
        "the only folder of a node",
    ),
    "a folder of the node by a detour": (
        lambda spec: spec["volumes"][0]["hostPath"].update(path="/pv-disks/scratch/"),
        "the only folder of a node",
    ),
    "a folder that is made where no disk is mounted": (
        lambda spec: spec["volumes"][0]["hostPath"].update(type="DirectoryOrCreate"),
        "the only folder of a node",
    ),
    "a second volume of the space": (
        lambda spec: (
            spec["volumes"].append({"name": "again", "hostPath": SPACE["hostPath"]}),
            spec["containers"][0]["volumeMounts"].append({"name": "again", "mountPath": "/all"}),
        ),
        "mounts its own",
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_pod_of_a_team_mounts_more_than_its_own_folder(attack: str, project: Project, cluster: Cluster) -> None:
    change, said = ATTACKS[attack]
    assert said in refused(dry_run, cluster, changed(change))


def test_a_pod_as_the_guide_has_it_passes(project: Project, cluster: Cluster) -> None:
    dry_run(cluster, with_scratch())


def test_a_container_that_is_added_to_a_pod_sees_no_folder(alice: Cluster, cluster: Cluster) -> None:
    with submitted(alice, wrapped(with_scratch(), "debugged", "blue")):
        running(cluster, "debugged", "blue")
        debugger = {"name": "debugger", "image": "busybox", "volumeMounts": [{"name": "scratch", "mountPath": "/all"}]}
        added = cluster.kind("v1", "Pod").subresources["ephemeralcontainers"]

        def attempt() -> None:
            cluster.client.patch(
                added,
                name="debugged",
                namespace="blue",
                body={"spec": {"ephemeralContainers": [debugger]}},
                content_type="application/strategic-merge-patch+json",
            )

        assert "a container that is added to a pod cannot mount /pv-disks/scratch" in refused(attempt)


def test_a_member_s_job_that_mounts_the_whole_space_gets_no_pod(alice: Cluster, cluster: Cluster) -> None:
    whole = changed(ATTACKS["the whole space"][0])
    with submitted(alice, wrapped(whole, "greedy", "blue")):
        eventually(
            "the job fails",
            lambda: (cluster.get(APPWRAPPER, "AppWrapper", "greedy", "blue") or {}).get("status", {}).get("phase"),
            lambda phase: phase in ("Failed", "Resetting"),
        )
        assert cluster.get("v1", "Pod", "greedy", "blue") is None


def test_a_second_preview_plans_no_change(project: Project) -> None:
    project.unchanged()
