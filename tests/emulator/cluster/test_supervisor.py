"""Start, watch and restart of a supervised process, and messages without a running cluster."""

import os
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

from emulator.cluster import ClusterError, lock, reset, start, status, stop
from emulator.cluster.child import Child
from emulator.cluster.controlplane import AZURE, ProcessSpec
from emulator.cluster.layout import Layout
from emulator.cluster.supervisor import Supervisor
from emulator.paths import Paths


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths.of(root=tmp_path, state=tmp_path / "state", cache=tmp_path / "cache")


def child(tmp_path: Path, *command: str, ready: bool = False) -> Child:
    return Child(ProcessSpec("p", command, lambda: ready), tmp_path / "p.log")


def run(found: Child, tmp_path: Path) -> None:
    found.start({"PATH": os.environ["PATH"]}, tmp_path, lambda: None)


def look_until_ended(found: Child) -> None:
    deadline = time.monotonic() + 5
    while found.process is not None and time.monotonic() < deadline:
        found.look(time.monotonic())
        time.sleep(0.01)


def test_a_process_is_running_once_it_is_ready(tmp_path: Path) -> None:
    found = child(tmp_path, "sleep", "60", ready=True)
    assert found.state == "waiting"
    run(found, tmp_path)
    assert found.state == "starting"
    found.look(time.monotonic())
    assert found.state == "running"
    assert found.process is not None
    found.process.kill()
    look_until_ended(found)
    assert (found.state, found.restarts, found.failures) == ("restarting", 1, 0)


def test_ending_before_being_ready_again_and_again_is_failure_with_growing_pauses(tmp_path: Path) -> None:
    found = child(tmp_path, "sh", "-c", "echo broken; exit 3")
    pauses = []
    for _ in range(3):
        run(found, tmp_path)
        look_until_ended(found)
        pauses.append(found.start_at - time.monotonic())
    assert found.state == "failed"
    assert pauses == sorted(pauses)
    assert found.log.read_text().count("broken") == 3


def test_a_program_that_cannot_be_started_says_so_in_its_log(tmp_path: Path) -> None:
    found = child(tmp_path, "/nonexistent/program")
    run(found, tmp_path)
    assert found.process is None
    assert "cannot start /nonexistent/program" in found.log.read_text()


def test_one_lock_at_a_time(tmp_path: Path) -> None:
    held = lock.take(tmp_path / "lock")
    assert held is not None
    assert lock.take(tmp_path / "lock") is None
    os.close(held)
    again = lock.take(tmp_path / "lock")
    assert again is not None
    os.close(again)


def test_old_files_do_not_make_a_stopped_process_run(paths: Paths) -> None:
    layout = Layout(paths)
    layout.make_folders()
    layout.socket("supervisor").touch()
    layout.lock.touch()
    found = status(paths)
    assert found.supervisor_pid is None
    assert not found.ready
    assert found.processes == ()


def test_stop_and_reset_have_no_effect_without_a_process(paths: Paths) -> None:
    stop(paths)
    reset(paths)
    assert not paths.state.exists()


def test_start_names_the_missing_binaries(paths: Paths) -> None:
    with pytest.raises(
        ClusterError, match=r"etcd, kube-apiserver, .*kwok, relay missing in .*\. Build the tools first"
    ):
        start(paths, lambda line: None)


def test_a_long_state_folder_gets_a_short_private_socket_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    deep = Path("/", *(["a-rather-long-folder-name"] * 6))
    layout = Layout(Paths(root=deep, state=deep, cache=deep))
    assert layout.sockets.parent == tmp_path
    assert Layout(Paths(root=Path("/a"), state=Path("/a"), cache=Path("/a"))).sockets == Path("/a/run")


def test_a_wipe_ends_processes_of_the_data_and_keeps_those_of_the_engine(tmp_path: Path) -> None:
    data = tmp_path / "etcd"
    data.mkdir()
    (data / "member").touch()
    children = [
        Child(ProcessSpec(name, ("sleep", "60"), lambda: True, after), tmp_path / f"{name}.log")
        for name, after in (("etcd", ()), ("kube-apiserver", ("etcd",)), (AZURE, ()))
    ]
    for found in children:
        run(found, tmp_path)
    supervisor = Supervisor(children, {}, tmp_path, {}, data=(data,))
    try:
        supervisor.wipe()
        assert [found.process is None for found in children] == [True, True, False]
        assert [found.restarts for found in children] == [0, 0, 0]
        assert not data.exists()
    finally:
        supervisor.stop()


def test_a_cluster_ends_with_the_process_that_it_was_started_for(tmp_path: Path) -> None:
    """Otherwise a killed test run would leave its cluster running."""
    found = child(tmp_path, "sleep", "60", ready=True)
    with subprocess.Popen(["sleep", "60"]) as owner, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        supervisor = Supervisor([found], {"PATH": os.environ["PATH"]}, tmp_path, {}, owner=os.pidfd_open(owner.pid))
        thread = threading.Thread(target=supervisor.run, args=(listener,), daemon=True)
        thread.start()
        while found.state != "running":
            assert thread.is_alive()
            time.sleep(0.01)
        process = found.process
        assert process is not None
        owner.kill()
        thread.join(30)
        assert not thread.is_alive()
        assert process.poll() is not None
