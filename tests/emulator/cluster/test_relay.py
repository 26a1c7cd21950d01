"""The relay copies all bytes in both directions, and ends with its parent."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from emulator.cluster.relay import Relay, RelayError

_SECONDS = 20.0


@pytest.fixture(params=["two of TCP", "one of TCP, one of Unix"])
def ends(relay: Relay, request: pytest.FixtureRequest) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Yield two ends that the relay joins: bytes sent into one come out of the other."""
    with ExitStack() as stack:
        ours, theirs = tcp() if request.param == "two of TCP" else socket.socketpair()
        far, near = tcp()
        relay.join(theirs, near)
        ours.settimeout(_SECONDS)
        stack.enter_context(ours)
        stack.enter_context(far)
        yield ours, far


def tcp() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        client.settimeout(_SECONDS)
        return client, server.accept()[0]


def send_on_and_on(end: socket.socket) -> None:
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        end.sendall(b"anybody?")
        time.sleep(0.01)


def received(end: socket.socket) -> bytes:
    """Read until the other side closes."""
    found = bytearray()
    while chunk := end.recv(1 << 16):
        found += chunk
    return bytes(found)


def test_bytes_go_both_ways_and_an_end_is_passed_on(ends: tuple[socket.socket, socket.socket]) -> None:
    left, right = ends
    question, answer = os.urandom(5_000_000), os.urandom(3_000_000)

    def ask() -> None:
        left.sendall(question)
        left.shutdown(socket.SHUT_WR)

    asking = threading.Thread(target=ask)
    asking.start()
    assert received(right) == question
    right.sendall(answer)  # the other direction is still open
    right.shutdown(socket.SHUT_WR)
    assert received(left) == answer
    asking.join()


def test_if_one_side_closes_the_other_side_closes(ends: tuple[socket.socket, socket.socket]) -> None:
    left, right = ends
    left.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset, if the socket is TCP
    left.close()
    assert received(right) == b""
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        send_on_and_on(right)


def test_sockets_are_no_longer_open_here(relay: Relay) -> None:
    (ours, theirs), (far, near) = tcp(), tcp()
    with ours, far:
        relay.join(theirs, near)
        assert (theirs.fileno(), near.fileno()) == (-1, -1)


def test_a_connection_takes_two_descriptors_and_gives_them_back(
    relay: Relay, ends: tuple[socket.socket, socket.socket]
) -> None:
    """Linux limits the memory of a user's pipes and shrinks further ones, so the relay must not use pipes."""
    ask_each_other(*ends)
    at_first = descriptors(relay)
    (ours, theirs), (far, near) = tcp(), tcp()
    relay.join(theirs, near)
    with ours, far:
        ask_each_other(ours, far)
        assert descriptors(relay) == at_first + Counter(socket=2)
    deadline = time.monotonic() + _SECONDS
    while descriptors(relay) != at_first and time.monotonic() < deadline:
        time.sleep(0.01)
    assert descriptors(relay) == at_first
    assert not descriptors(relay)["pipe"]


def ask_each_other(left: socket.socket, right: socket.socket) -> None:
    for sender, reader in ((left, right), (right, left)):
        sender.sendall(b"anybody?")
        assert reader.recv(10) == b"anybody?"


def descriptors(relay: Relay) -> Counter[str]:
    """Return the relay's open descriptors without its output, by kind."""
    found: Counter[str] = Counter()
    for each in Path(f"/proc/{relay._process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed in the meantime
            if each.name not in ("1", "2"):
                found[os.readlink(each).partition(":")[0]] += 1
    return found


def test_a_relay_that_has_ended_is_reported(relay: Relay) -> None:
    relay._process.kill()
    relay._process.wait(_SECONDS)
    assert relay.ended
    (ours, theirs), (far, near) = tcp(), tcp()
    with ours, far, pytest.raises(RelayError, match="no longer relayed"):
        relay.join(theirs, near)
    assert theirs.fileno() == -1


def test_a_missing_program_is_reported(tmp_path: Path) -> None:
    """This happens if a checkout is updated under a running cluster without `make up`."""
    with pytest.raises(
        RelayError, match=r"/relay does not start \(No such file or directory\)\. Build it with `make up`"
    ):
        Relay(tmp_path / "relay")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_kubelets_group_ends_no_connection(relay: Relay, number: signal.Signals) -> None:
    (ours, theirs), (far, near) = tcp(), tcp()
    relay.join(theirs, near)
    with ours, far:
        ours.sendall(b"before")  # it runs and handles signals
        assert far.recv(10) == b"before"
        os.kill(relay._process.pid, number)
        time.sleep(0.2)
        ours.sendall(b"after")
        assert far.recv(10) == b"after"


def test_it_ends_with_its_parent_process(relay_program: Path) -> None:
    text = f"""
import sys
from pathlib import Path
from emulator.cluster.relay import Relay
relay = Relay(Path({str(relay_program)!r}))
print(relay._process.pid, flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as starter:
        assert starter.stdout
        process = int(starter.stdout.readline())
        assert runs(process)
        starter.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + _SECONDS
    while runs(process) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not runs(process)


def runs(process: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except FileNotFoundError:
        return False
