"""The kubelet's side of a pod's sandbox: its namespaces, containers and connections."""

import contextlib
import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from emulator.cluster import sandbox
from emulator.cluster.relay import RelayError

API_PORT = 443
"""Port on 127.0.0.1 where a pod reaches the API server."""

_log = logging.getLogger(__name__)
_START_SECONDS = 15.0
_CONNECT_SECONDS = 3.0


class SandboxError(Exception):
    """A sandbox cannot be created, or refused a connection."""


@dataclass(frozen=True)
class Mount:
    """A file or folder of this machine, mounted at a path of the container."""

    source: str
    target: str
    read_only: bool


@dataclass(frozen=True)
class ContainerRun:
    """What the sandbox needs to start a container.

    root:  an empty folder of this machine where the container's root file system is mounted, invisible to other
        processes.
    files: container path -> file or folder of this machine, read-only.
    links: container path -> target.
    etc:   name -> content of a small file in /etc.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    cwd: str
    root: str
    files: Mapping[str, str]
    links: Mapping[str, str]
    mounts: Sequence[Mount]
    etc: Mapping[str, str]
    read_only_root: bool


def isolation() -> tuple[str, ...]:
    """Return the unshare(1) command that creates sandboxes, after a test run.

    Raises SandboxError with the fix if the kernel does not allow namespaces.
    """
    unshare = shutil.which("unshare")
    if unshare is None:
        raise SandboxError("the program `unshare` is missing. Install util-linux")
    spaces = ("--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child=KILL")
    users = ("--user", "--map-root-user")
    problem = ""
    for command in ((unshare, *users, *spaces), (unshare, *spaces)):
        tried = subprocess.run([*command, "true"], capture_output=True, text=True, timeout=20, check=False)
        if tried.returncode == 0:
            return command
        problem = problem or tried.stderr.strip()
        if os.geteuid() != 0:
            break
    raise SandboxError(
        f"the kernel does not let this user create namespaces ({problem}). Allow it with "
        "`sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0` (Ubuntu 23.10 and later) or "
        "`sudo sysctl user.max_user_namespaces=15000`, or run as root"
    )


class PodSandbox:
    """One pod's namespaces, from construction to `close`.

    `event` is called from a thread of the sandbox with (container name, what, detail): ("started", ""), ("failed",
    reason), ("exited", exit code as text, negative for a signal), and with ("", "gone", "") when the sandbox itself has
    ended. `join` connects two sockets and takes them over; it may raise RelayError.
    """

    def __init__(
        self,
        command: Sequence[str],
        host_name: str,
        api_address: tuple[str, int],
        log: Path,
        event: Callable[[str, str, str], None],
        join: Callable[[socket.socket, socket.socket], None],
    ) -> None:
        self._event = event
        self._join = join
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        program = [os.path.realpath(sys.executable), "-I", "-S", sandbox.__file__]
        arguments = [str(theirs.fileno()), host_name, str(API_PORT)]
        with theirs, log.open("ab") as output:
            self._process = subprocess.Popen(
                [*command, *program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(theirs.fileno(),),
            )
        self._control.settimeout(_START_SECONDS)
        try:
            _, (listener,), _, _ = socket.recv_fds(self._control, sandbox.MESSAGE_LIMIT, 1)
        except (OSError, ValueError) as error:  # timeout, or it ended without a message
            self.close()
            raise SandboxError(f"the pod's namespaces cannot be created; see {log}") from error
        self._control.settimeout(None)
        self._listener = socket.socket(fileno=listener)
        threading.Thread(target=self._read, name=f"sandbox {host_name}", daemon=True).start()
        threading.Thread(target=self._serve_api, args=(api_address,), name="api connections", daemon=True).start()

    def start_container(self, container: ContainerRun, log: Path) -> None:
        """Start a container. An event reports the result. The container's output is appended to `log`."""
        descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._send({"op": "start", "container": asdict(container)}, descriptor)
        finally:
            os.close(descriptor)

    def signal(self, container: str, number: signal.Signals) -> None:
        """Send a signal to a container's first process."""
        self._send({"op": "signal", "name": container, "signal": int(number)})

    def connect(self, port: int) -> socket.socket:
        """Return a socket connected to 127.0.0.1:port in the pod's network.

        Raises SandboxError if no process listens there.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours:
            with theirs:
                self._send({"op": "connect", "port": port}, theirs.fileno())
            ours.settimeout(_CONNECT_SECONDS)
            try:
                answer, descriptors, _, _ = socket.recv_fds(ours, sandbox.MESSAGE_LIMIT, 1)
            except TimeoutError as error:
                raise SandboxError(f"no answer from the pod's sandbox in {_CONNECT_SECONDS:.0f} s") from error
        if not descriptors:
            raise SandboxError(answer.decode() or "the pod's sandbox has ended")
        return socket.socket(fileno=descriptors[0])

    def close(self) -> None:
        """End the sandbox and all its processes; returns after their end."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        try:
            self._process.wait(3.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _send(self, message: dict[str, Any], *descriptors: int) -> None:
        data = json.dumps(message).encode()
        if len(data) > sandbox.MESSAGE_LIMIT:
            raise SandboxError(f"command and environment take {len(data)} bytes, the limit is {sandbox.MESSAGE_LIMIT}")
        try:
            socket.send_fds(self._control, [data], list(descriptors))
        except OSError as error:
            raise SandboxError(f"the pod's sandbox has ended: {error}") from error

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while data := self._control.recv(sandbox.MESSAGE_LIMIT):
                message = json.loads(data)
                detail = str(message.get("error", message.get("code", "")))
                self._event(message["name"], message["op"], detail)
        # Wakes the thread in accept(); close() would not.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._event("", "gone", "")

    def _serve_api(self, address: tuple[str, int]) -> None:
        """Connect the pod's connections to the API server's address with the API server."""
        with self._listener:
            while True:
                try:
                    inside, _ = self._listener.accept()
                except OSError:
                    return
                try:
                    outside = socket.create_connection(address, timeout=2.0)
                except OSError as error:
                    _log.info("a pod's connection to the API server failed: %s", error)
                    inside.close()
                    continue
                for end in (inside, outside):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                try:
                    self._join(inside, outside)
                except RelayError as error:
                    _log.info("a pod's connection to the API server failed: %s", error)
