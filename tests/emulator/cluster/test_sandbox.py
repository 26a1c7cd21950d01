"""Isolation of a pod's sandbox: containers see only their files, and all processes end together."""

import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.cluster.images import resolve
from emulator.cluster.pod_sandbox import API_PORT, ContainerRun, Mount, PodSandbox, SandboxError, isolation
from emulator.cluster.relay import Relay

Event = tuple[str, str, str]


@pytest.fixture(scope="module")
def command() -> tuple[str, ...]:
    return isolation()


@pytest.fixture
def api() -> Iterator[tuple[str, int]]:
    """Yield the address of a server that answers each connection with one line."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(b"from the API server")

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()


class Pod:
    """A sandbox with one container that runs a Python program."""

    def __init__(self, folder: Path, command: tuple[str, ...], api: tuple[str, int], relay: Relay) -> None:
        self.folder = folder
        self.log = folder / "c.log"
        self.events: queue.Queue[Event] = queue.Queue()
        self.sandbox = PodSandbox(
            command, "pod-0", api, folder / "sandbox.log", lambda *event: self.events.put(event), relay.join
        )

    def run(self, program: str, *, read_only_root: bool = False) -> None:
        image = resolve("python", self.folder)
        volume, root = self.folder / "volume", self.folder / "root"
        volume.mkdir()
        root.mkdir()
        (volume / "file").write_text("mounted")
        container = ContainerRun(
            name="c",
            command=["python3", "-c", program],
            environment={"PATH": image.path, "WHO": "me"},
            cwd="/work",
            root=str(root),
            files=image.files,
            links=image.links,
            mounts=[Mount(str(volume), "/volume", read_only=True)],
            etc={"hosts": "127.0.0.1 localhost\n"},
            read_only_root=read_only_root,
        )
        self.sandbox.start_container(container, self.log)

    def next_event(self) -> Event:
        return self.events.get(timeout=10)


@pytest.fixture
def pod(tmp_path: Path, command: tuple[str, ...], api: tuple[str, int], relay: Relay) -> Iterator[Pod]:
    found = Pod(tmp_path, command, api, relay)
    yield found
    found.sandbox.close()


def test_a_container_has_its_own_root_host_name_and_volume(pod: Pod) -> None:
    pod.run(
        "import os, socket\n"
        "print(os.environ['WHO'], os.getcwd(), socket.gethostname(), open('/volume/file').read())\n"
        "print(os.path.exists('/home'), os.path.exists('/etc/shadow'))\n"
        "open('/tmp/x', 'w')\n"
        "for path in ('/volume/x', '/usr/x'):\n"
        "    try: open(path, 'w')\n"
        "    except OSError as error: print(error.strerror)\n"
    )
    assert [pod.next_event(), pod.next_event()] == [("c", "started", ""), ("c", "exited", "0")]
    assert pod.log.read_text().splitlines() == [
        "me /work pod-0 mounted",
        "False False",
        "Read-only file system",
        "Read-only file system",
    ]


def test_a_read_only_root_is_honoured(pod: Pod) -> None:
    pod.run("open('/tmp/x', 'w')", read_only_root=True)
    assert [pod.next_event(), pod.next_event()] == [("c", "started", ""), ("c", "exited", "1")]
    assert "Read-only file system" in pod.log.read_text()


def test_a_container_reaches_only_the_api_server(pod: Pod) -> None:
    pod.run(
        "import socket\n"
        f"print(socket.create_connection(('127.0.0.1', {API_PORT})).recv(100).decode())\n"
        "try: socket.create_connection(('192.0.2.1', 80), timeout=2)\n"
        "except OSError as error: print(error.strerror)\n"
    )
    assert [pod.next_event(), pod.next_event()] == [("c", "started", ""), ("c", "exited", "0")]
    assert pod.log.read_text().splitlines() == ["from the API server", "Network is unreachable"]


def test_a_port_of_the_pod_can_be_connected_to(pod: Pod) -> None:
    pod.run(
        "import socket\n"
        "server = socket.create_server(('', 8443))\n"
        "print('up', flush=True)\n"
        "while True: server.accept()[0].sendall(b'hello')\n"
    )
    assert pod.next_event() == ("c", "started", "")
    with pytest.raises(SandboxError, match="Connection refused"):
        pod.sandbox.connect(8444)
    deadline = time.monotonic() + 10
    while not pod.log.read_text() and time.monotonic() < deadline:
        time.sleep(0.01)
    with pod.sandbox.connect(8443) as connection:
        assert connection.recv(100) == b"hello"


def test_a_signal_ends_a_container_and_is_reported(pod: Pod) -> None:
    pod.run("import time; time.sleep(60)")
    assert pod.next_event() == ("c", "started", "")
    pod.sandbox.signal("c", signal.SIGTERM)
    assert pod.next_event() == ("c", "exited", str(-signal.SIGTERM))


def test_a_container_that_cannot_start_says_why(pod: Pod) -> None:
    image = resolve("python", pod.folder)
    root = pod.folder / "root"
    root.mkdir()
    run = ContainerRun("c", ["/absent"], {}, "/", str(root), image.files, image.links, [], {}, False)
    pod.sandbox.start_container(run, pod.log)
    name, what, reason = pod.next_event()
    assert (name, what) == ("c", "failed")
    assert "No such file or directory" in reason


def test_everything_ends_with_the_sandbox(pod: Pod) -> None:
    pod.run("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(60)")
    assert pod.next_event() == ("c", "started", "")
    pod.sandbox.close()
    assert pod.next_event() == ("", "gone", "")
    with pytest.raises(SandboxError):
        pod.sandbox.connect(80)


def test_the_sandbox_needs_only_the_standard_library() -> None:
    source = Path(sys.modules["emulator.cluster.sandbox"].__file__ or "").read_text()
    imported = {
        line.split()[1].partition(".")[0] for line in source.splitlines() if line.startswith(("import", "from"))
    }
    assert imported <= sys.stdlib_module_names
