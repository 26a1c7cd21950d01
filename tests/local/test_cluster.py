"""The local cluster itself: it survives crashes, leaves nothing behind, and stands beside another one."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

import pytest

from emulator import cluster as local_cluster
from emulator.cluster import processes
from emulator.cluster.layout import Layout
from emulator.paths import Paths
from tests.local.environment import ROOT, Cluster, eventually


@pytest.fixture
def second(paths: Paths, tmp_path: Path) -> Iterator[Paths]:
    """The folders of another checkout's environment, beside the running one of the session."""
    second = Paths.of(root=ROOT, state=tmp_path / "state")
    second.state.mkdir()
    second.bin.symlink_to(paths.bin)
    try:
        yield second
    finally:
        local_cluster.stop(second)


def alive(paths: Paths) -> list[int]:
    return list(processes.find(Layout(paths)))


def test_two_environments_stand_side_by_side(paths: Paths, second: Paths) -> None:
    local_cluster.start(second, print)
    first_status, second_status = local_cluster.status(paths), local_cluster.status(second)
    assert first_status.ready
    assert second_status.ready
    assert first_status.server != second_status.server
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "only-here", "namespace": "default"}}
    Cluster(second.kubeconfig).create(config)
    assert Cluster(paths.kubeconfig).get("v1", "ConfigMap", "only-here", "default") is None


def test_a_killed_supervisor_takes_everything_with_it_and_the_next_start_has_the_data(second: Paths) -> None:
    local_cluster.start(second, print)
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept", "namespace": "default"}}
    Cluster(second.kubeconfig).create(config)
    supervisor = local_cluster.status(second).supervisor_pid
    assert supervisor is not None
    os.kill(supervisor, signal.SIGKILL)
    eventually("no process of the cluster is left", lambda: alive(second), lambda pids: not pids, seconds=10)
    assert not local_cluster.status(second).ready
    local_cluster.start(second, print)
    assert Cluster(second.kubeconfig).get("v1", "ConfigMap", "kept", "default") is not None


def test_a_killed_api_server_comes_back(second: Paths) -> None:
    local_cluster.start(second, print)
    before = {process.name: process.pid for process in local_cluster.status(second).processes}
    os.kill(before["kube-apiserver"] or 0, signal.SIGKILL)
    eventually("the API server runs again", lambda: local_cluster.status(second), lambda s: s.ready, seconds=30)
    after = {process.name: process.pid for process in local_cluster.status(second).processes}
    assert after["kube-apiserver"] != before["kube-apiserver"]


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


def listeners(pid: int) -> set[IPv4Address | IPv6Address]:
    """The addresses that a process of this network namespace listens on."""
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
