"""Creates the initial databases of all environments, once for each set of releases.

This follows an administrator's installation of OpenStack: each service's own command creates its tables, the services
start, and their APIs create the content.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import sqlite3
import subprocess
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from emulator.openstack import configuration, seed
from emulator.openstack.errors import OpenStackError
from emulator.openstack.facts import facts
from emulator.openstack.folder import CATALOG, DATABASES, SERVICES, Folder, command, url
from runner.files import private_folder, write_private

_ROOT: Final = Path(__file__).resolve().parents[2]
_CREATED: Final = ("keystone", "nova", "neutron", "cinder", "glance")
_AT_ONCE: Final = 2
_START_SECONDS: Final = 300.0
_POLL_SECONDS: Final = 0.1
_LOG_LINES: Final = 15


def make(path: Path, python: Path) -> None:
    """Create the databases with the content of `facts.yaml` in a new folder.

    python: the interpreter of OpenStack's packages. Raises OpenStackError if a service fails.
    """
    folder = Folder(private_folder(path))
    names = ("admin", "service", "member")
    passwords = {name: secrets.token_urlsafe(24) for name in names} | {"volume_key": secrets.token_hex(32)}
    write_private(folder.secrets_file, json.dumps(passwords))
    write_private(folder.ports_file, json.dumps(dict(zip(SERVICES, _free_ports(len(SERVICES)), strict=True))))
    configuration.write(folder, python, folder.ports(), facts())
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for done in [pool.submit(_create, folder, python, service) for service in _CREATED]:
            done.result()
    for name in DATABASES:
        with contextlib.closing(sqlite3.connect(folder.database(name))) as database:
            database.execute("PRAGMA journal_mode=WAL")
    with _running(folder, python, ("keystone",)):
        seed.identity(folder)
        write_private(folder.secrets_file, json.dumps(passwords | seed.credential(folder)))
        with _running(folder, python, [service for service in SERVICES if service != "keystone"]):
            seed.content(folder)
    for name in DATABASES:
        with contextlib.closing(sqlite3.connect(folder.database(name))) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _create(folder: Folder, python: Path, service: str) -> None:
    bootstrap = {
        "OS_BOOTSTRAP_PASSWORD": folder.secrets()["admin"],
        "OS_BOOTSTRAP_REGION_ID": facts()["region"],
        "OS_BOOTSTRAP_PUBLIC_URL": url(folder.ports()["keystone"]) + CATALOG["keystone"][1],
    }
    create = [str(python), "-m", "emulator.openstack.inside.create", service, "--folder", str(folder.path)]
    done = subprocess.run(
        create,
        cwd=folder.path,
        env=_environment() | bootstrap,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode != 0:
        raise OpenStackError(f"the databases of {service} cannot be created:\n{_tail(done.stdout)}")


@contextlib.contextmanager
def _running(folder: Folder, python: Path, services: Sequence[str]) -> Iterator[None]:
    """Run services while databases are created. Their logs stay in the folder."""
    started: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for service in services:
            with _log(folder, service).open("wb") as log:
                line = command(python, folder, service, folder.ports()[service])
                started[service] = subprocess.Popen(
                    line, cwd=folder.path, env=_environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )
        for service, process in started.items():
            _await(folder, service, process)
        yield
    finally:
        for process in started.values():
            process.send_signal(signal.SIGTERM)
        for process in started.values():
            process.wait()


def _await(folder: Folder, service: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        with socket.socket() as connection:
            if connection.connect_ex(("127.0.0.1", folder.ports()[service])) == 0:
                return
        if process.poll() is not None or time.monotonic() > deadline:
            said = _tail(_log(folder, service).read_text(errors="replace"))
            raise OpenStackError(f"{service} does not start. The end of its log:\n{said}")
        time.sleep(_POLL_SECONDS)


def _log(folder: Folder, service: str) -> Path:
    return folder.path / f"{service}.log"


def _tail(text: str) -> str:
    return "\n".join(f"    {line[:300]}" for line in text.strip().splitlines()[-_LOG_LINES:])


def _environment() -> dict[str, str]:
    """Return the environment of OpenStack's processes, without proxies and the user's credentials."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR") if name in os.environ}
    return {**kept, "PYTHONPATH": str(_ROOT)}


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
