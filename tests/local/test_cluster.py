"""The local cluster: it survives crashes, leaves no processes behind, and runs in parallel with another one."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any

import kubernetes
import pytest
import yaml
from kubernetes.dynamic.exceptions import NotFoundError, ResourceNotFoundError

from emulator import cluster as local_cluster
from emulator.cluster import processes
from emulator.cluster.api import is_ready
from emulator.cluster.layout import NODE_NAME, Layout
from emulator.cluster.relay import PROGRAM as RELAY
from emulator.paths import Paths
from tests.local.environment import ROOT, Cluster, eventually

pytestmark = pytest.mark.emulated("it is about the local cluster itself")


@pytest.fixture(scope="module")
def second(paths: Paths, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Paths]:
    """Yield the folders of another checkout's environment, next to the session's running one.

    Each test starts its cluster, which takes no time if the previous test left it running.
    """
    second = Paths.of(root=ROOT, state=tmp_path_factory.mktemp("second") / "state")
    second.state.mkdir()
    second.bin.symlink_to(paths.bin)
    try:
        yield second
    finally:
        local_cluster.kill(second)


def pid_of(paths: Paths, name: str) -> int:
    """Return the id of a supervised process, 0 while it does not run."""
    return next(process.pid or 0 for process in local_cluster.status(paths).processes if process.name == name)


def alive(paths: Paths) -> list[int]:
    return list(processes.find(Layout(paths)))


def test_only_the_user_can_read_the_clusters_files_with_any_umask(second: Paths) -> None:
    before = os.umask(0)
    try:
        local_cluster.start(second, print)
    finally:
        os.umask(before)
    layout = Layout(second)
    written = [second.state, second.kubeconfig, *(path for each in second.state.iterdir() for path in each.rglob("*"))]
    own = [path for path in written if not path.is_symlink() and second.bin not in path.parents]
    assert layout.secret("apiserver.key") in own
    assert [f"{path} {mode(path):o}" for path in own if mode(path) & 0o077] == []


def mode(path: Path) -> int:
    """Return a file's permissions, 0 if the running cluster has removed it."""
    try:
        return path.stat().st_mode & 0o777
    except FileNotFoundError:
        return 0


def test_two_environments_stand_side_by_side(paths: Paths, second: Paths) -> None:
    local_cluster.start(second, print)
    first_status, second_status = eventually(
        "both are ready",
        lambda: (local_cluster.status(paths), local_cluster.status(second)),
        lambda found: all(each.ready for each in found),
    )
    assert first_status.server != second_status.server
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "only-here", "namespace": "default"}}
    Cluster(second.kubeconfig).create(config)
    assert Cluster(paths.kubeconfig).get("v1", "ConfigMap", "only-here", "default") is None


def test_a_killed_supervisor_ends_all_processes_and_the_next_start_has_the_data(second: Paths) -> None:
    local_cluster.start(second, print)
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept", "namespace": "default"}}
    Cluster(second.kubeconfig).create(config)
    supervisor = local_cluster.status(second).supervisor_pid
    assert supervisor is not None
    os.kill(supervisor, signal.SIGKILL)
    eventually("no process of the cluster is left", lambda: alive(second), lambda pids: not pids)
    assert not local_cluster.status(second).ready
    local_cluster.start(second, print)
    assert Cluster(second.kubeconfig).get("v1", "ConfigMap", "kept", "default") is not None


def test_a_killed_api_server_restarts(second: Paths) -> None:
    local_cluster.start(second, print)
    server = pid_of(second, "kube-apiserver")
    os.kill(server, signal.SIGKILL)
    eventually("there is another", lambda: pid_of(second, "kube-apiserver"), lambda pid: pid not in (0, server))
    eventually("the API server runs again", lambda: local_cluster.status(second), lambda s: s.ready)


def test_a_simulated_pod_outlives_the_kubelet_and_is_deleted_at_once(second: Paths) -> None:
    local_cluster.start(second, print)
    cluster = Cluster(second.kubeconfig)
    with simulated(cluster) as name:
        before = settled(cluster, name)
        kubelet = pid_of(second, "kubelet")
        os.kill(kubelet, signal.SIGKILL)
        eventually("there is another kubelet", lambda: pid_of(second, "kubelet"), lambda pid: pid not in (0, kubelet))
        eventually("the kubelet is back", lambda: local_cluster.status(second), lambda s: s.ready)
        assert settled(cluster, name)["status"] == before["status"]
        container = before["status"]["containerStatuses"][0]
        assert (container["ready"], container["restartCount"]) == (True, 0)
        cluster.delete("v1", "Pod", name, "default")
        gone = "the pod is gone, within less than the seconds that a pod has to end"
        eventually(gone, lambda: cluster.get("v1", "Pod", name, "default"), lambda pod: pod is None, seconds=20)


def relay_of(paths: Paths) -> int:
    """Return the id of the process that relays the pods' connections, 0 while it does not run."""
    found = (pid for pid, command in processes.find(Layout(paths)).items() if command == str(paths.bin / RELAY))
    return next(found, 0)


def test_a_killed_relay_ends_the_kubelet_and_both_restart(second: Paths) -> None:
    local_cluster.start(second, print)
    kubelet, relay = pid_of(second, "kubelet"), relay_of(second)
    os.kill(relay, signal.SIGKILL)
    eventually("there is another kubelet", lambda: pid_of(second, "kubelet"), lambda pid: pid not in (0, kubelet))
    eventually("the kubelet is back", lambda: local_cluster.status(second), lambda s: s.ready)
    assert relay_of(second) not in (0, relay)


def test_a_cluster_without_a_seed_has_only_its_own_node(second: Paths) -> None:
    local_cluster.start(second, print, stack="none-of-ours")
    assert [node["metadata"]["name"] for node in Cluster(second.kubeconfig).list("v1", "Node")] == [NODE_NAME]


def test_a_seeded_cluster_has_its_nodes_first_and_keeps_their_changes(second: Paths) -> None:
    local_cluster.start(second, print, stack="existing")
    cluster = Cluster(second.kubeconfig)
    nodes = {node["metadata"]["name"]: node for node in cluster.list("v1", "Node")}
    assert sorted(nodes) == ["lab-cpu-0", "lab-gpu-0", "lab-gpu-1", "lab-gpu-2", NODE_NAME]
    assert {name: node["metadata"]["labels"]["pool"] for name, node in nodes.items()} == {
        "lab-gpu-0": "gpu",
        "lab-gpu-1": "gpu",
        "lab-gpu-2": "gpu",
        "lab-cpu-0": "system",
        NODE_NAME: "system",
    }
    for node in nodes.values():
        assert is_ready(node)
    # Kubernetes removes its own taint shortly after the node is ready.
    for name in ("lab-gpu-0", "lab-gpu-1", "lab-gpu-2"):
        eventually(
            f"{name} has no taint but the seed's",
            lambda name=name: cluster.existing("v1", "Node", name)["spec"]["taints"],
            lambda found: found == [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}],
        )
    gpu, cpu = nodes["lab-gpu-1"], nodes["lab-cpu-0"]
    assert gpu["status"]["allocatable"] == gpu["status"]["capacity"]
    assert (gpu["status"]["allocatable"]["nvidia.com/gpu"], gpu["status"]["allocatable"]["cpu"]) == ("8", "224")
    assert (cpu["status"]["allocatable"]["cpu"], cpu["status"]["allocatable"]["memory"]) == ("32", "128Gi")
    assert "nvidia.com/gpu" not in cpu["status"]["allocatable"]

    cluster.delete("v1", "Node", "lab-gpu-2")
    cluster.patch("v1", "Node", "lab-gpu-0", {"metadata": {"labels": {"pool": "reserve"}}, "spec": {"taints": None}})
    local_cluster.stop(second)
    local_cluster.start(second, print, stack="existing")
    cluster = Cluster(second.kubeconfig)
    assert cluster.get("v1", "Node", "lab-gpu-2") is None
    changed = cluster.get("v1", "Node", "lab-gpu-0")
    assert changed is not None
    assert changed["metadata"]["labels"]["pool"] == "reserve"
    assert not changed["spec"].get("taints")


def test_everything_listens_on_loopback_and_stop_leaves_no_process(second: Paths) -> None:
    local_cluster.start(second, print)
    pids = alive(second)
    assert len(pids) >= len(local_cluster.status(second).processes)
    listening = {address for pid in pids for address in listeners(pid)}
    assert listening
    assert [address for address in listening if not address.is_loopback] == []
    local_cluster.stop(second)
    assert alive(second) == []
    assert not local_cluster.status(second).ready


def test_the_log_of_a_running_pod_is_read_through_the_api_server(cluster: Cluster) -> None:
    command = ["python3", "-uc", "import time; print('first'); print('second'); time.sleep(600)"]
    container = {"name": "c", "image": "python:3", "command": command}
    metadata = {"name": "talks", "namespace": "default"}
    spec = {"nodeName": NODE_NAME, "containers": [container], "terminationGracePeriodSeconds": 0}
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    try:
        api = kubernetes.client.CoreV1Api(cluster.client.client)
        read = partial(api.read_namespaced_pod_log, "talks", "default")
        eventually(
            "the container runs",
            lambda: (cluster.get("v1", "Pod", "talks", "default") or {})["status"].get("phase"),
            lambda phase: phase == "Running",
        )
        eventually("it has said both", read, lambda log: log == "first\nsecond\n")
        assert read(tail_lines=1) == "second\n"
        assert read(limit_bytes=3) == "fir"
    finally:
        cluster.delete("v1", "Pod", "talks", "default")


def test_devices_are_offered_only_while_their_operators_run(paths: Paths, cluster: Cluster) -> None:
    def label() -> str | None:
        return shown()["metadata"]["labels"].get("nvidia.com/gpu.present")

    def shown() -> dict[str, Any]:
        return cluster.get("v1", "Node", "device-node") or {}

    def gpus() -> set[str | None]:
        return {shown()["status"][part].get("nvidia.com/gpu") for part in ("capacity", "allocatable")}

    for document in yaml.safe_load_all(DEVICES):
        eventually(f"{document['kind']} is taken", lambda made=document: made_of(cluster, made))
    try:
        eventually("the GPUs show", gpus, lambda found: found == {"8"})
        eventually("the label shows", label, lambda found: found == "true")
        assert shown()["metadata"]["labels"]["own"] == "kept"
        eventually(
            "the policy is ready",
            lambda: (cluster.get("nvidia.com/v1", "ClusterPolicy", "gpu") or {}).get("status"),
            lambda found: found == {"state": "ready"},
        )
        cluster.patch("v1", "Node", "device-node", {"metadata": {"labels": {"nvidia.com/gpu.present": None}}})
        eventually("a label that somebody removed is back", label, lambda found: found == "true")
        cluster.delete("v1", "Pod", "operator", "default")
        eventually("the GPUs are gone", gpus, lambda found: found == {None})
        eventually("the label is gone", label, lambda found: found is None)
        assert shown()["metadata"]["labels"]["own"] == "kept"
        assert shown()["status"]["capacity"]["cpu"] == "96"
    finally:
        for kind, name in (("Pod", "worker"), ("Pod", "operator"), ("Node", "device-node")):
            cluster.delete("v1", kind, name, "default" if kind == "Pod" else None)
        cluster.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", "clusterpolicies.nvidia.com")


@pytest.mark.parametrize(
    ("policy", "phase"), [("Never", "Succeeded"), ("OnFailure", "Succeeded"), ("Always", "Running")]
)
def test_a_pod_without_a_program_is_ready_and_completes_if_its_policy_allows(
    cluster: Cluster, policy: str, phase: str
) -> None:
    with simulated(cluster, restartPolicy=policy) as name:
        found = settled(cluster, name)
        assert found["status"]["podIP"]
        assert found["status"]["message"] == "this machine has no program for ghcr.io/x/operator:1"
        eventually(f"the pod is {phase}", lambda: settled(cluster, name)["status"]["phase"], lambda now: now == phase)
        if phase == "Running":
            time.sleep(2)  # twice the lifetime of a Job's pod
        last = settled(cluster, name)
        assert (last["status"]["phase"], last["status"]["reason"]) == (phase, "Simulated")
        assert conditions(last)["Ready"] == ("True" if phase == "Running" else "False")


def test_one_unknown_image_is_enough_also_of_an_init_container(cluster: Cluster) -> None:
    init = {"name": "i", "image": "busybox"}
    with simulated(cluster, image="registry.k8s.io/kueue/kueue:v1", initContainers=[init]) as name:
        assert settled(cluster, name)["status"]["message"] == "this machine has no program for busybox"


@contextlib.contextmanager
def simulated(cluster: Cluster, image: str = "ghcr.io/x/operator:1", **spec: Any) -> Iterator[str]:
    """Yield a pod on the local node that refers to missing objects, which are not checked."""
    name = f"simulated-{time.monotonic_ns()}"
    env = [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "absent", "key": "k"}}}]
    container = {"name": "c", "image": image, "env": env}
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"nodeName": NODE_NAME, "containers": [container], "hostNetwork": True, **spec},
        }
    )
    try:
        yield name
    finally:
        cluster.delete("v1", "Pod", name, "default")


def settled(cluster: Cluster, name: str) -> dict[str, Any]:
    """Return the pod, once it is simulated."""
    return eventually(
        "the pod is simulated",
        lambda: cluster.get("v1", "Pod", name, "default") or {},
        lambda pod: pod.get("status", {}).get("reason") == "Simulated",
    )


def conditions(found: dict[str, Any]) -> dict[str, str]:
    return {item["type"]: item["status"] for item in found["status"]["conditions"]}


def made_of(cluster: Cluster, document: dict[str, Any]) -> bool:
    """Create an object; return False if its kind is not served yet, although a client may have seen it before."""
    try:
        cluster.create(document)
    except (NotFoundError, ResourceNotFoundError):
        return False
    return True


DEVICES = """
apiVersion: v1
kind: Node
metadata:
  name: device-node
  labels: {own: kept, kubernetes.io/os: linux}
  annotations: {kwok.x-k8s.io/node: fake, hardware.emulator/gpus: "8"}
status:
  capacity: {cpu: "96", memory: 1Ti, pods: "110"}
  allocatable: {cpu: "96", memory: 1Ti, pods: "110"}
---
apiVersion: v1
kind: Pod
metadata:
  name: worker
  namespace: default
  labels: {app.kubernetes.io/name: node-feature-discovery, role: worker}
spec:
  nodeName: device-node
  containers: [{name: worker, image: nfd}]
---
apiVersion: v1
kind: Pod
metadata: {name: operator, namespace: default, labels: {app.kubernetes.io/name: gpu-operator}}
spec:
  nodeName: device-node
  containers: [{name: operator, image: gpu-operator}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clusterpolicies.nvidia.com}
spec:
  group: nvidia.com
  scope: Cluster
  names: {kind: ClusterPolicy, plural: clusterpolicies, singular: clusterpolicy}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: nvidia.com/v1
kind: ClusterPolicy
metadata: {name: gpu}
spec: {driver: {enabled: true}}
"""


def listeners(pid: int) -> set[IPv4Address | IPv6Address]:
    """Return the addresses that a process of this network namespace listens on, none if it has ended."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return _listeners(pid)
    return set()


def _listeners(pid: int) -> set[IPv4Address | IPv6Address]:
    inodes = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            inodes.add(os.readlink(descriptor))
        except FileNotFoundError:
            continue
    found: set[IPv4Address | IPv6Address] = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                words = bytes.fromhex(fields[1].split(":")[0])
                packed = b"".join(words[i : i + 4][::-1] for i in range(0, len(words), 4))
                address = ip_address(packed)
                found.add(getattr(address, "ipv4_mapped", None) or address)
    return found
