"""Runs an MPI program over the pods of an Indexed Job: the pod of index 0 launches it, the others offer ssh.

Runs in the job's containers; standard library only, and of the image mpirun, ssh-keygen, ssh and sshd. The pods share
no secret beforehand: index 0 makes a key pair that never leaves it and publishes the public half on a port of its own,
where the others, which know its name from the job's Service, fetch it. There they also learn how the program ended, so
that all pods end with its exit code. With a single pod there is neither ssh nor a port.

Usage: python mpi_index.py SETTINGS, where SETTINGS is a JSON file with `hosts`, in the order of the indices; `command`,
to which the host file's path is added after the word `--hostfile`; `slots` of each host; `output`, the file that gets
what the program prints, in every pod, or null; `port` of the notes and `sshPort`; `waitSeconds` for all pods to appear.
The index comes from $JOB_COMPLETION_INDEX.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

PAUSE = 1.0
"""Seconds between two looks."""
LINGER = 60.0
"""Seconds for which index 0 waits, at the end, for the others to hear of the result."""
LOST = 120.0
"""Seconds after which a pod that cannot reach index 0 any more gives up."""
HEARD = "/heard"
"""The page that a pod asks for last: index 0 may then go."""
UNREACHABLE = 70
"""Exit code when the pods did not find each other in time."""
WHOLE_NAMES = {"OMPI_MCA_orte_keep_fqdn_hostnames": "1", "PRTE_MCA_prte_keep_fqdn_hostnames": "1"}
"""Has Open MPI 4 and 5 leave the hosts' names whole, which they cut at the first dot otherwise. Sources: open-mpi/ompi
v4.1.5, orte/util/hostfile/hostfile.c; openpmix/prrte, src/util/hostfile/hostfile.c."""


@dataclass(frozen=True)
class Settings:
    """What the launcher works on; see the module's docstring."""

    hosts: list[str]
    command: list[str]
    slots: int
    output: str | None
    port: int
    ssh_port: int
    wait_seconds: float

    @classmethod
    def load(cls, text: str) -> Settings:
        """Read the settings file; raises KeyError or ValueError when it is not one."""
        raw = json.loads(text)
        return cls(
            hosts=raw["hosts"],
            command=raw["command"],
            slots=raw["slots"],
            output=raw["output"],
            port=raw["port"],
            ssh_port=raw["sshPort"],
            wait_seconds=raw["waitSeconds"],
        )


class Notes:
    """What index 0 publishes by path, and which of the other pods have heard all of it."""

    def __init__(self, port: int) -> None:
        self.pages: dict[str, bytes] = {HEARD: b""}
        self.readers: set[str] = set()
        notes = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path, _, reader = self.path.partition("?")
                page = notes.pages.get(path)
                self.send_response(404 if page is None else 200)
                self.send_header("Content-Length", str(len(page or b"")))
                self.end_headers()
                self.wfile.write(page or b"")
                if path == HEARD:
                    notes.readers.add(reader)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
                """Keep requests out of the job's log."""

        self.server = ThreadingHTTPServer(("", port), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def launch(settings: Settings, folder: Path) -> int:
    """Run the program from index 0; return its exit code."""
    if len(settings.hosts) == 1:
        return run(settings, folder)
    notes = Notes(settings.port)
    notes.pages["/key"] = new_key(settings, folder)
    sshd = start_sshd(settings, folder, notes.pages["/key"])
    missing = absent(settings)
    if missing:
        print(f"not within {settings.wait_seconds:g} s: {', '.join(missing)}", flush=True)
        code = UNREACHABLE
    else:
        code = run(settings, folder)
    if settings.output is not None and Path(settings.output).exists():
        notes.pages["/output"] = Path(settings.output).read_bytes()
    notes.pages["/result"] = str(code).encode()
    deadline = time.monotonic() + LINGER
    while len(notes.readers) < len(settings.hosts) - 1 - len(missing) and time.monotonic() < deadline:
        time.sleep(PAUSE)
    notes.server.shutdown()
    sshd.terminate()
    return code


def follow(settings: Settings, index: int, folder: Path) -> int:
    """Offer ssh to index 0 until the program has ended; return its exit code."""
    head = f"http://{settings.hosts[0]}:{settings.port}"
    key = until(f"{head}/key", settings.wait_seconds)
    if key is None:
        print(f"{settings.hosts[0]} did not answer within {settings.wait_seconds:g} s", flush=True)
        return UNREACHABLE
    sshd = start_sshd(settings, folder, key)
    last = time.monotonic()
    while time.monotonic() - last < LOST:
        answer, code = fetch(f"{head}/result")
        if code == 200:
            if settings.output is not None:
                output, _ = fetch(f"{head}/output")
                Path(settings.output).write_bytes(output)
            fetch(f"{head}{HEARD}?{index}")
            sshd.terminate()
            return int(answer)
        if code == 404:
            last = time.monotonic()
        time.sleep(PAUSE)
    print(f"{settings.hosts[0]} does not answer any more", flush=True)
    return UNREACHABLE


def run(settings: Settings, folder: Path) -> int:
    """Run the program, print what it prints and keep it in the output file; return its exit code."""
    hostfile = folder / "hosts"
    hostfile.write_text("".join(f"{host} slots={settings.slots}\n" for host in settings.hosts))
    command = with_hostfile(settings, str(hostfile))
    print(" ".join(command), flush=True)
    environment = {**os.environ, **WHOLE_NAMES}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    with open(settings.output or os.devnull, "wb") as output:
        for line in process.stdout or ():
            output.write(line)
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
    return process.wait()


def with_hostfile(settings: Settings, hostfile: str) -> list[str]:
    """Return the command with the host file behind `--hostfile`, which a single host does without."""
    command: list[str] = []
    for word in settings.command:
        if word != "--hostfile":
            command.append(word)
        elif len(settings.hosts) > 1:
            command += [word, hostfile]
    return command


def new_key(settings: Settings, folder: Path) -> bytes:
    """Make a key pair and have ssh use it; return the public half."""
    key = folder / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    config = Path.home() / ".ssh" / "config"
    config.parent.mkdir(mode=0o700, exist_ok=True)
    config.write_text(ssh_config(settings, key))
    config.chmod(0o600)
    return key.with_suffix(".pub").read_bytes()


def ssh_config(settings: Settings, key: Path) -> str:
    """Return ssh's configuration."""
    return (
        f"{short_names(settings.hosts)}Host *\n  Port {settings.ssh_port}\n  IdentityFile {key}\n  BatchMode yes\n"
        "  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n"
    )


def short_names(hosts: Sequence[str]) -> str:
    """Return the part of ssh's configuration that finds a host by its name up to the first dot.

    The cluster's DNS knows no pod by that, and an mpirun to which WHOLE_NAMES mean nothing says no more.
    """
    return "".join(f"Host {host.partition('.')[0]}\n  HostName {host}\n" for host in hosts if "." in host)


def start_sshd(settings: Settings, folder: Path, key: bytes) -> subprocess.Popen[bytes]:
    """Start a server that takes that key alone."""
    authorized, host_key = folder / "authorized_keys", folder / "host_key"
    authorized.write_bytes(key)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(host_key)], check=True)
    Path("/run/sshd").mkdir(exist_ok=True)
    options = {
        "HostKey": host_key,
        "AuthorizedKeysFile": authorized,
        "AuthenticationMethods": "publickey",
        "StrictModes": "no",
        "PasswordAuthentication": "no",
        "PermitRootLogin": "prohibit-password",
        "PidFile": "none",
    }
    server = shutil.which("sshd") or "/usr/sbin/sshd"
    given = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    return subprocess.Popen([server, "-D", "-e", "-p", str(settings.ssh_port), *given])


def absent(settings: Settings) -> list[str]:
    """Return the hosts that offered no ssh in time."""
    deadline = time.monotonic() + settings.wait_seconds
    missing = list(settings.hosts[1:])
    while missing and time.monotonic() < deadline:
        missing = [host for host in missing if not answers(host, settings.ssh_port)]
        if missing:
            time.sleep(PAUSE)
    return missing


def answers(host: str, port: int) -> bool:
    """Whether somebody listens there."""
    try:
        with socket.create_connection((host, port), timeout=5):
            return True
    except OSError:
        return False


def until(url: str, seconds: float) -> bytes | None:
    """Return a page as soon as it is there, None when it was not in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        page, code = fetch(url)
        if code == 200:
            return page
        time.sleep(PAUSE)
    return None


def fetch(url: str) -> tuple[bytes, int]:
    """Return a page and its status, 0 when nobody answered."""
    try:
        with urlopen(url, timeout=10) as answer:  # noqa: S310 - a page of the first pod
            return answer.read(), answer.status
    except HTTPError as error:
        return b"", error.code
    except (URLError, HTTPException, OSError):
        return b"", 0


def main(file: str, index: int, folder: Path) -> int:
    """Do this pod's part; return its exit code."""
    settings = Settings.load(Path(file).read_text())
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return launch(settings, folder) if index == 0 else follow(settings, index, folder)


if __name__ == "__main__":
    own = int(os.environ.get("JOB_COMPLETION_INDEX", "0"))
    sys.exit(main(sys.argv[1], own, Path(tempfile.gettempdir(), "mpi-index")))
