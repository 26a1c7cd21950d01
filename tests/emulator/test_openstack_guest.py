"""Access to a VM's cluster over a real SSH server: host key check, and automatic tunnel."""

import asyncio
import base64
import itertools
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import asyncssh
import kubernetes
import pytest
import urllib3
import yaml

from components.openstack import catalogue
from components.openstack.access import kubeconfig, remote_cluster
from components.openstack.access.first_boot import FirstBootError, wait
from components.openstack.access.host import Host
from components.openstack.access.kubeconfig import local_port, through_tunnel
from components.openstack.first_boot import FirstBootArgs, HostKey, KindArgs
from components.openstack.first_boot.user_data import cloud_config
from emulator.cluster import certificates
from emulator.openstack_guest import first_boot as played
from emulator.openstack_guest.first_boot import FirstBoot
from emulator.openstack_guest.server import Guest
from emulator.openstack_guest.user_data import UserData, UserDataError
from tests.unit.servers import Handler, serving

pytestmark = pytest.mark.skipif(shutil.which("ssh") is None, reason="no OpenSSH client on PATH")

TOKEN = "correct-horse-battery"
API_PORT = 6443
VERSION = dict.fromkeys(
    ("buildDate", "compiler", "gitCommit", "gitTreeState", "goVersion", "major", "minor", "platform"), ""
)
VERSION |= {"gitVersion": "v1.34.0"}
HOST_KEY, OTHER_HOST_KEY, KEY, OTHER_KEY = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(4))


def public(key: asyncssh.SSHKey) -> str:
    return key.export_public_key().decode().strip()


def user_data(**changes: Any) -> str:
    args = FirstBootArgs(
        user="ubuntu",
        authorized_key=public(KEY),
        host_key=HostKey(private_openssh=HOST_KEY.export_private_key().decode(), public=public(HOST_KEY)),
        volume_id="0123",
        kind=KindArgs(node_image=catalogue.KIND_RELEASES[0].node_images[0]),
    )
    args = replace(args, **changes)
    given = {"authorized_key": public(KEY), "private": args.host_key.private_openssh, "public": args.host_key.public}
    return "#cloud-config\n" + yaml.safe_dump(cloud_config(args, **given, volume_id="0123"))


class Guests:
    """SSH servers in their own event loop, and the API server that they forward to."""

    def __init__(self, folder: Path, api: int) -> None:
        self.folder, self.api = folder, api
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.served: list[tuple[Guest, asyncssh.SSHAcceptor]] = []
        (folder / "key").write_bytes(KEY.export_private_key())
        (folder / "other-key").write_bytes(OTHER_KEY.export_private_key())
        for name in ("key", "other-key"):
            (folder / name).chmod(0o600)
        certificates.ensure(folder)
        cluster = {
            "server": f"https://127.0.0.1:{api}",
            "certificate-authority-data": base64.b64encode((folder / "ca.crt").read_bytes()).decode(),
        }
        self.kubeconfig = yaml.safe_dump(
            {
                "current-context": "kind",
                "clusters": [{"name": "kind", "cluster": cluster}],
                "users": [{"name": "kind", "user": {"token": TOKEN}}],
                "contexts": [{"name": "kind", "context": {"cluster": "kind", "user": "kind"}}],
            }
        )

    def start(self, port: int = 0, **options: Any) -> Host:
        guest = Guest(FirstBoot(UserData.parse(user_data()), self.kubeconfig, **options))
        server = asyncio.run_coroutine_threadsafe(guest.listen("127.0.0.1", port), self.loop).result(10)
        self.served.append((guest, server))
        return self.host(server.get_port())

    def host(self, port: int) -> Host:
        return Host(
            address="127.0.0.1",
            user="ubuntu",
            private_key_file=str(self.folder / "key"),
            public_key=public(HOST_KEY),
            vm="vm-1",
            port=port,
        )

    def tunnel(self, host: Host) -> Path:
        """Return the socket of the tunnel to a VM."""
        return self.folder / "home" / ".ssh" / f"mlbatch-{local_port(host)}"

    def stop(self) -> None:
        """Close all connections and stop listening."""
        for guest, server in self.served:
            self.loop.call_soon_threadsafe(server.close)
            self.loop.call_soon_threadsafe(guest.drop)
            asyncio.run_coroutine_threadsafe(server.wait_closed(), self.loop).result(10)
        self.served.clear()


@pytest.fixture
def api(tmp_path: Path) -> Iterator[int]:
    """Yield the port of an API server that returns its version to clients with the token."""
    certificates.ensure(tmp_path)

    class Api(Handler):
        def respond(self) -> None:
            known = self.headers.get("Authorization") == f"Bearer {TOKEN}"
            self.answer(200 if known else 401, VERSION if known else {"kind": "Status"})

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "apiserver.crt", tmp_path / "apiserver.key")
    with serving(Api, context) as port:
        yield port


@pytest.fixture
def guests(tmp_path: Path, api: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Guests]:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MLBATCH_SSH_KEY", raising=False)
    made = Guests(tmp_path, api)
    yield made
    made.stop()
    for tunnel in (tmp_path / "home" / ".ssh").glob("mlbatch-*"):
        subprocess.run(["ssh", "-S", tunnel, "-O", "exit", "vm"], capture_output=True)


def version(kubeconfig: str) -> str:
    """Return the API server's version, like a user of the kubeconfig."""
    client = kubernetes.config.new_client_from_config_dict(yaml.safe_load(kubeconfig))
    return str(kubernetes.client.VersionApi(client).get_code().git_version)


def plugin(kubeconfig: str) -> subprocess.CompletedProcess[str]:
    """Run the credential plugin like a Kubernetes client."""
    told = yaml.safe_load(kubeconfig)["users"][0]["user"]["exec"]
    variables = {entry["name"]: entry["value"] for entry in told["env"]}
    command = [told["command"], *told["args"]]
    return subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=60)


def found(host: Host, seconds: float = 60.0) -> tuple[Any, list[str]]:
    said: list[str] = []
    return wait(host, seconds, said.append, pause=0.2), said


def test_it_waits_for_a_late_marker_and_reports_progress(guests: Guests, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock advances with each look, because a look can take any time."""
    clock = itertools.count()
    monkeypatch.setattr(played, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    steps = len(UserData.parse(user_data()).steps)
    first_boot, said = found(guests.start(seconds=float(steps), begun=0.0))
    assert [text for text in said if "answer" not in text][-1] == "ready, step 'registry'"
    assert "running, step 'volume'" in said
    assert first_boot.versions == {"docker": "29.9.0"}
    assert first_boot.checks == {"hello-world": "not run: this VM has no guest system"}
    assert yaml.safe_load(first_boot.kubeconfig)["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:6443"


def test_a_vm_that_is_not_up_yet_is_waited_for(guests: Guests) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    host = guests.host(port)
    said: list[str] = []

    def say(text: str) -> None:
        if not said:
            guests.start(port=port)
        said.append(text)

    first_boot = wait(host, 60.0, say, pause=0.2)
    assert said[0].startswith("it does not answer (")
    assert "Connection refused" in said[0]
    assert first_boot.kubeconfig is not None


def test_another_host_key_is_never_accepted(guests: Guests) -> None:
    host = replace(guests.start(), public_key=public(OTHER_HOST_KEY))
    with pytest.raises(FirstBootError, match="has not the VM's host key, so it is not the VM"):
        found(host)
    kubeconfig = through_tunnel(guests.kubeconfig, host, API_PORT)
    refused = plugin(kubeconfig)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "Host key verification failed." in refused.stderr
    assert "--refresh=false" not in refused.stderr, "another host is not a stopped VM"


def test_a_failed_first_boot_is_reported_with_step_and_log(guests: Guests) -> None:
    with pytest.raises(FirstBootError) as error:
        found(guests.start(fails="docker"))
    assert "failed in step 'docker': step 'docker' ended with 1" in str(error.value)
    assert "\n  docker: attempt 3 of 3\n  simulated failure\n" in str(error.value)


def test_the_wait_is_bounded_and_the_error_has_the_step(guests: Guests) -> None:
    with pytest.raises(FirstBootError, match="not done within 1 s; at the end: running, step 'packages'"):
        found(guests.start(seconds=600.0), seconds=1.0)


def test_only_the_stacks_key_signs_in(guests: Guests) -> None:
    host = replace(guests.start(), private_key_file=str(guests.folder / "other-key"))
    with pytest.raises(FirstBootError, match="Permission denied"):
        found(host, seconds=1.0)


def test_the_tunnel_opens_by_itself_and_again_when_it_was_dropped(guests: Guests) -> None:
    host = guests.start()
    first_boot, _ = found(host)
    kubeconfig = through_tunnel(first_boot.kubeconfig, host, API_PORT)
    assert version(kubeconfig) == "v1.34.0"
    socket_of_tunnel = guests.tunnel(host)
    assert socket_of_tunnel.is_socket()
    assert version(kubeconfig) == "v1.34.0"
    guests.stop()
    while socket_of_tunnel.exists():
        time.sleep(0.05)
    refused = plugin(kubeconfig)
    assert "Connection refused" in refused.stderr
    assert "goes on with `pulumi up --refresh=false`" in refused.stderr
    guests.start(port=host.port)
    assert version(kubeconfig) == "v1.34.0"


def test_a_replacement_vm_has_a_separate_tunnel(guests: Guests) -> None:
    """A tunnel to the old VM may hang; the new VM has the same address and host key."""
    before = guests.start()
    assert version(through_tunnel(guests.kubeconfig, before, API_PORT)) == "v1.34.0"
    after = replace(before, vm="vm-2")
    kubeconfig = through_tunnel(guests.kubeconfig, after, API_PORT)
    assert version(kubeconfig) == "v1.34.0"
    folder = guests.folder / "home" / ".ssh"
    assert {each.name for each in folder.iterdir()} == {f"mlbatch-{local_port(host)}" for host in (before, after)}
    assert local_port(before) != local_port(after)


def master(tunnel: Path) -> int | None:
    """Return the process of a tunnel, None if its socket has no listener."""
    done = subprocess.run(["ssh", "-S", tunnel, "-O", "check", "vm"], capture_output=True, text=True)
    found = re.search(r"pid=(\d+)", done.stderr)
    return int(found[1]) if found else None


def test_after_a_killed_run_exactly_one_tunnel_can_be_found_and_closed(guests: Guests) -> None:
    """ssh does not replace an existing socket, with or without a listener."""
    host = guests.start()
    kubeconfig = through_tunnel(guests.kubeconfig, host, API_PORT)
    assert version(kubeconfig) == "v1.34.0"
    tunnel = guests.tunnel(host)
    killed = master(tunnel)
    assert killed is not None
    os.kill(killed, signal.SIGKILL)
    while Path(f"/proc/{killed}").exists():
        time.sleep(0.05)
    assert tunnel.is_socket()
    assert version(kubeconfig) == "v1.34.0"
    anew = master(tunnel)
    assert anew is not None
    assert plugin(kubeconfig).returncode == 0
    assert master(tunnel) == anew


def test_the_tunnel_of_a_faster_run_is_not_changed(guests: Guests, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other run opens its tunnel between this run's check and its next step."""
    host = guests.start()
    kubeconfig = through_tunnel(guests.kubeconfig, host, API_PORT)
    tunnel = guests.tunnel(host)
    path, slow, once = os.environ["PATH"], guests.folder / "slow", guests.folder / "once"
    slow.mkdir()
    # Checks the tunnel, and returns the result only after the other run has opened its own.
    (slow / "ssh").write_text(
        "#!/bin/sh\n"
        f"PATH='{path}'\n"
        f"mkdir '{once}' 2>/dev/null || exec ssh \"$@\"\n"
        f"ssh \"$@\"; seen=$?; touch '{once}/looked'\n"
        f"while ! [ -S '{tunnel}' ]; do sleep 0.05; done\n"
        "exit $seen\n"
    )
    (slow / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow}:{path}")
    done: list[subprocess.CompletedProcess[str]] = []
    slower = threading.Thread(target=lambda: done.append(plugin(kubeconfig)))
    slower.start()
    while not (once / "looked").exists():
        time.sleep(0.05)
    assert plugin(kubeconfig).returncode == 0
    slower.join()
    assert [each.returncode for each in done] == [0]
    assert master(tunnel) is not None


def test_the_tunnel_that_stays_has_no_credential_of_the_cluster(guests: Guests) -> None:
    host = guests.start()
    assert TOKEN in plugin(through_tunnel(guests.kubeconfig, host, API_PORT)).stdout
    environment = Path(f"/proc/{master(guests.tunnel(host))}/environ")
    assert b"HOST_KEY=" in environment.read_bytes()
    assert TOKEN.encode() not in environment.read_bytes()


def test_another_engineer_has_a_key_elsewhere(guests: Guests, monkeypatch: pytest.MonkeyPatch) -> None:
    host = replace(guests.start(), private_key_file="~/.ssh/not-here.pem")
    kubeconfig = through_tunnel(guests.kubeconfig, host, API_PORT)
    missing = guests.folder / "home" / ".ssh" / "not-here.pem"
    refused = plugin(kubeconfig)
    assert refused.returncode == 1
    assert refused.stderr.startswith(
        f"no SSH tunnel to ubuntu@127.0.0.1 with the key {missing} (another one: $MLBATCH_SSH_KEY):\n"
    )
    monkeypatch.setenv("MLBATCH_SSH_KEY", str(guests.folder / "key"))
    assert version(kubeconfig) == "v1.34.0"


def test_a_home_that_cannot_be_written_needs_a_folder_of_the_session(
    guests: Guests, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubeconfig = through_tunnel(guests.kubeconfig, guests.start(), API_PORT)
    monkeypatch.setenv("HOME", "/proc")
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    refused = plugin(kubeconfig)
    said = "no place for the SSH tunnel's socket: neither /proc/.ssh nor $XDG_RUNTIME_DIR can be written\n"
    assert (refused.returncode, refused.stdout, refused.stderr) == (1, "", said)
    (guests.folder / "home" / ".ssh").mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(guests.folder / "home" / ".ssh"))
    assert version(kubeconfig) == "v1.34.0"


def test_two_users_of_one_machine_share_a_tunnel(guests: Guests, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both use the same local port, and only the first has the control socket."""
    kubeconfig = through_tunnel(guests.kubeconfig, guests.start(), API_PORT)
    assert version(kubeconfig) == "v1.34.0"
    (guests.folder / "second").mkdir()
    monkeypatch.setenv("HOME", str(guests.folder / "second"))
    assert version(kubeconfig) == "v1.34.0"
    assert list((guests.folder / "second" / ".ssh").iterdir()) == []


def test_the_kubeconfig_has_no_path_of_this_machine(guests: Guests) -> None:
    host = replace(guests.start(), private_key_file="~/.ssh/local-cpouta.pem")
    kubeconfig = through_tunnel(guests.kubeconfig, host, API_PORT)
    assert str(guests.folder) not in kubeconfig
    assert str(Path.cwd()) not in kubeconfig
    plugin = yaml.safe_load(kubeconfig)["users"][0]["user"]["exec"]
    assert (plugin["command"], plugin["interactiveMode"]) == ("sh", "Never")


def test_only_the_api_server_is_forwarded(guests: Guests) -> None:
    kubeconfig = through_tunnel(guests.kubeconfig, guests.start(), 22)
    assert plugin(kubeconfig).returncode == 0
    with pytest.raises(urllib3.exceptions.MaxRetryError):
        version(kubeconfig)


def test_a_certificate_is_handed_on_as_it_is(guests: Guests) -> None:
    kubeconfig = yaml.safe_load(guests.kubeconfig)
    pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    data = base64.b64encode(pem.encode()).decode()
    kubeconfig["users"][0]["user"] = {"client-certificate-data": data, "client-key-data": data}
    told = json.loads(plugin(through_tunnel(yaml.safe_dump(kubeconfig), guests.start(), API_PORT)).stdout)
    assert (told["apiVersion"], told["kind"]) == ("client.authentication.k8s.io/v1", "ExecCredential")
    assert set(told["status"]) == {"expirationTimestamp", "clientCertificateData", "clientKeyData"}
    assert told["status"]["clientCertificateData"] == told["status"]["clientKeyData"] == pem
    kubeconfig["users"][0]["user"] = {"exec": {"command": "aws"}}
    with pytest.raises(ValueError, match="has neither a token nor a certificate with its key"):
        through_tunnel(yaml.safe_dump(kubeconfig), guests.start(), API_PORT)


def test_user_data_that_cloud_init_ignores_is_refused() -> None:
    with pytest.raises(UserDataError, match="does not begin with the line #cloud-config"):
        UserData.parse("users: []")
    with pytest.raises(UserDataError, match="it lacks a field that the first boot needs: 'users'"):
        UserData.parse("#cloud-config\nwrite_files: []")


def test_the_resource_waits_only_in_create_and_another_vm_replaces_it(guests: Guests) -> None:
    host = guests.start()
    props = {
        "address": host.address,
        "user": host.user,
        "private_key_file": host.private_key_file,
        "host_key_public": host.public_key,
        "vm": "first",
        "timeout_seconds": 20.0,
        "api_port": 6443.0,
        "port": float(host.port),
        "plugin": kubeconfig.plugin_digest(),
    }
    provider = remote_cluster._Waiting()
    made = provider.create(props)
    assert made.id == "first"
    assert version(made.outs["kubeconfig"]) == "v1.34.0"
    guests.stop()
    assert provider.read("first", made.outs).outs == made.outs
    provider.delete("first", made.outs)
    assert provider.diff("first", made.outs, {**made.outs, **props}).changes is False
    replaced = provider.diff("first", made.outs, {**props, "vm": "second"})
    assert (replaced.changes, replaced.replaces) == (True, ["vm"])
    moved = {**props, "private_key_file": "~/.ssh/other"}
    found = provider.diff("first", made.outs, moved)
    assert (found.changes, found.replaces) == (True, [])
    updated = provider.update("first", made.outs, moved).outs
    assert updated == {**made.outs, **moved, "kubeconfig": updated["kubeconfig"]}
    assert "with the key " in (refused := plugin(updated["kubeconfig"]).stderr)
    assert "/home/.ssh/other (another one" in refused
    (older := yaml.safe_load(made.outs["kubeconfig"]))["users"][0]["user"]["exec"]["args"] = ["-c", "exit 1"]
    before = {**made.outs, "plugin": "of another version", "kubeconfig": yaml.safe_dump(older, sort_keys=False)}
    found = provider.diff("first", before, props)
    assert (found.changes, found.replaces) == (True, [])
    assert provider.update("first", before, props).outs["kubeconfig"] == made.outs["kubeconfig"]
