"""The first process of a pod's sandbox: starts containers in the pod's namespaces and opens connections to them.

The kubelet runs it in new user, network, mount, process, host name and IPC namespaces (unshare(1)). It imports only the
standard library. It exchanges JSON over a SOCK_SEQPACKET socket. Sockets and log files travel as descriptors. A socket
keeps the network namespace where it was created, so this process copies no bytes of connections:

    kubelet -> sandbox   start {container}, with the log file | signal {name, signal} |
                         connect {port}, with a socket that receives the connection or the error
    sandbox -> kubelet   ready, with a listening socket for the API server's address | started {name} |
                         failed {name, error} | exited {name, code}

When the kubelet ends, its end of the socket closes, this process ends, and the kernel kills all other processes of the
sandbox's process namespace.
"""

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import select
import signal
import socket
import struct
import sys
import traceback
from typing import Any

# <linux/sched.h>, <linux/mount.h>, <bits/statvfs.h>
_CLONE_NEWNS = 0x00020000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 0x1, 0x2, 0x4, 0x8
_MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 0x20, 0x1000, 0x4000, 0x40000
_MNT_DETACH = 2
# statvfs flag -> mount flag, for those that the kernel locks in a user namespace; a remount must repeat them.
_LOCKED_FLAGS = {0x2: _MS_NOSUID, 0x4: _MS_NODEV, 0x8: _MS_NOEXEC, 1024: 1024, 2048: 2048, 4096: 1 << 21}

_SYSTEM_FOLDERS = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")
_SYSTEM_FILES = (
    "etc/ld.so.cache",
    "etc/localtime",
    "etc/nsswitch.conf",
    "etc/ssl",
    "etc/pki",
    "etc/ca-certificates",
    "etc/crypto-policies",
)
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")

MESSAGE_LIMIT = 128 * 1024
_LOOK_SECONDS = 0.1  # longest delay until an ended process is noticed

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    encoded = [None if text is None else text.encode() for text in (source, target, kind, data)]
    result = _libc.mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3])
    _check(result, f"mount {source} on {target}")


def _make_read_only(target: str) -> None:
    present = os.statvfs(target).f_flag
    kept = sum(mount for found, mount in _LOCKED_FLAGS.items() if present & found)
    _mount("none", target, None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | kept)


def _bind(source: str, target: str, *, read_only: bool) -> None:
    """Bind-mount a file or folder; creates the target."""
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "ab"):
            pass
    _mount(source, target, None, _MS_BIND | _MS_REC)
    if read_only:
        _make_read_only(target)


def _build_root(container: dict[str, Any]) -> None:
    """Create the container's root file system and enter it."""
    _check(_libc.unshare(_CLONE_NEWNS), "unshare the mounts")
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    root = container["root"]
    _mount("tmpfs", root, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=0755,size=1g")
    _bind_system(root)
    for path, content in container["etc"].items():
        with open(f"{root}/etc/{path}", "w") as file:
            file.write(content)
    for path, source in container["files"].items():
        _bind(source, root + path, read_only=True)
    for path, target in container["links"].items():
        os.makedirs(os.path.dirname(root + path), exist_ok=True)
        os.symlink(target, root + path)
    for mount in container["mounts"]:
        _bind(mount["source"], root + mount["target"], read_only=mount["read_only"])
    os.chdir(root)
    os.mkdir(".old")
    _check(_libc.pivot_root(b".", b".old"), "pivot_root")
    os.chdir("/")
    _check(_libc.umount2(b"/.old", _MNT_DETACH), "leave the old root")
    os.rmdir("/.old")
    os.makedirs(container["cwd"], exist_ok=True)
    if container["read_only_root"]:
        _make_read_only("/")
    os.chdir(container["cwd"])


def _bind_system(root: str) -> None:
    for folder in ("etc", "proc", "dev", "run", "var", "var/run", "tmp", "root"):
        os.mkdir(f"{root}/{folder}", 0o755)
    os.chmod(f"{root}/tmp", 0o1777)  # noqa: S103, S108 - as in every container
    for name in _SYSTEM_FOLDERS:
        if os.path.islink(f"/{name}"):
            os.symlink(os.readlink(f"/{name}"), f"{root}/{name}")
        elif os.path.isdir(f"/{name}"):
            _bind(f"/{name}", f"{root}/{name}", read_only=True)
    for name in _SYSTEM_FILES:
        if os.path.exists(f"/{name}"):
            _bind(os.path.realpath(f"/{name}"), f"{root}/{name}", read_only=True)
    for name in _DEVICES:
        _bind(f"/dev/{name}", f"{root}/dev/{name}", read_only=False)
    for name, target in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(f"/proc/self/{target}", f"{root}/dev/{name}")
    # If parts of this machine's /proc are masked (e.g. in a container), the kernel rejects a new one; then there is
    # none.
    with contextlib.suppress(OSError):
        _mount("proc", f"{root}/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)


def _run_container(container: dict[str, Any], log: int, errors: int) -> None:
    """Become the container's process in the forked child. Writes an error to `errors`. Never returns."""
    try:
        # Python ignores SIGPIPE and SIGXFSZ, and exec keeps ignored signals.
        for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(ignored, signal.SIG_DFL)
        os.setsid()
        os.umask(0o022)  # like container runtimes; the cluster's processes have a stricter one
        nothing = os.open("/dev/null", os.O_RDONLY)
        for number, descriptor in enumerate((nothing, log, log)):
            os.dup2(descriptor, number)
        _build_root(container)
        os.execvpe(container["command"][0], container["command"], container["environment"])  # noqa: S606 - no shell
    except BaseException as error:
        os.write(errors, str(error).encode()[:4000] or repr(error).encode())
    finally:
        os._exit(127)


class Sandbox:
    """The main loop of the first process."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._names: dict[int, str] = {}

    def run(self, api_port: int) -> None:
        """Serve the kubelet until its end of the socket closes."""
        _raise_loopback()
        with socket.create_server(("127.0.0.1", api_port), backlog=128) as listener:
            self._tell({"op": "ready"}, listener.fileno())
        while not select.select([self._control], [], [], _LOOK_SECONDS)[0] or self._serve():
            self._reap()

    def _serve(self) -> bool:
        data, descriptors, _, _ = socket.recv_fds(self._control, MESSAGE_LIMIT, 4)
        if not data:
            return False
        message = json.loads(data)
        try:
            if message["op"] == "start":
                self._start(message["container"], descriptors[0])
            elif message["op"] == "connect":
                self._connect(descriptors[0], message["port"])
            elif message["op"] == "signal":
                self._signal(message["name"], message["signal"])
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return True

    def _start(self, container: dict[str, Any], log: int) -> None:
        read, write = os.pipe()  # exec closes it, so an empty answer means that the program runs
        process = os.fork()
        if process == 0:
            _run_container(container, log, write)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            error = pipe.read().decode(errors="replace")
        if error:
            os.waitpid(process, 0)
            self._tell({"op": "failed", "name": container["name"], "error": error})
            return
        self._names[process] = container["name"]
        self._tell({"op": "started", "name": container["name"]})

    def _connect(self, answer: int, port: int) -> None:
        with socket.socket(fileno=os.dup(answer)) as asker:
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=1.0) as connection:
                    connection.settimeout(None)
                    socket.send_fds(asker, [b"connected"], [connection.fileno()])
            except OSError as error:
                asker.send((error.strerror or str(error)).encode())

    def _signal(self, name: str, number: int) -> None:
        for process, found in self._names.items():
            if found == name:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, number)

    def _reap(self) -> None:
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if process == 0:
                return
            name = self._names.pop(process, None)
            if name is not None:
                # Also kill what the container left running in its session.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process, signal.SIGKILL)
                self._tell({"op": "exited", "name": name, "code": os.waitstatus_to_exitcode(status)})

    def _tell(self, message: dict[str, Any], *descriptors: int) -> None:
        socket.send_fds(self._control, [json.dumps(message).encode()], list(descriptors))


def _raise_loopback() -> None:
    """Bring up `lo`, which is down in a new network namespace (netdevice(7))."""
    flags_get, flags_set, up = 0x8913, 0x8914, 0x1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sH14s", b"lo", 0, b"")
        flags = struct.unpack("16sH14s", fcntl.ioctl(control, flags_get, request))[1]
        fcntl.ioctl(control, flags_set, struct.pack("16sH14s", b"lo", flags | up, b""))


def main() -> int:
    """Run the sandbox. Arguments: descriptor of the control socket, host name, the API server's port for the pod."""
    descriptor, host_name, api_port = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    os.set_inheritable(descriptor, False)
    control = socket.socket(fileno=descriptor)
    socket.sethostname(host_name[:63])
    try:
        Sandbox(control).run(api_port)
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.ECONNRESET):
            traceback.print_exc()
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
