"""The command line: whose folders it touches, whom it lets in, what it asks of the local environment."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from urllib3.exceptions import HTTPError

from emulator import __main__ as command
from emulator import azure, cluster, mirror
from emulator.cluster import ClusterStatus, ProcessStatus
from emulator.environment import EMULATED, built_plugin, environment, official_plugin
from emulator.paths import Paths
from emulator.toolchain import Toolchain
from emulator.turn import alone
from runner import webhooks
from runner.engine import EngineError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Paths]:
    """The folders of a checkout, which the command line takes for its own."""
    found = Paths.of(root=tmp_path / "checkout", cache=tmp_path / "cache")
    found.root.mkdir()
    (found.root / "Pulumi.yaml").write_text("name: mlbatch\nruntime: python\n")
    monkeypatch.setattr(Paths, "of", lambda: found)
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "pulumi"))
    # The command line changes both for good, and the umask.
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "")
    former = os.umask(0)
    yield found
    os.umask(former)


def serving(monkeypatch: pytest.MonkeyPatch, **ports: int) -> None:
    """Let the local cluster run with providers on these ports."""
    running = ProcessStatus("etcd", 1, "running", 0, Path("etcd.log"))
    status = ClusterStatus(1, (running,), True, "https://127.0.0.1:1", ports.get("kubernetes"), {}, ports.get("azure"))
    monkeypatch.setattr(cluster, "status", lambda paths: status)


def test_all_local_providers_have_to_be_there(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    serving(monkeypatch, kubernetes=1, azure=2)
    found = environment(paths.of_stack("dev"))
    assert found.providers.keys() == EMULATED
    assert (found.kubeconfig, found.mirror) == (paths.state / "dev" / "kubeconfig", paths.state / "dev" / "mirror")
    (plugin,) = found.plugins
    assert plugin.name == f"resource-openstack-v{version('pulumi-openstack')}"
    assert (
        plugin / "pulumi-resource-openstack"
    ).readlink() == paths.state / "dev" / "bin" / "pulumi-resource-openstack"
    assert [folder.name for folder in found.programs] == ["bin", "bin"]
    assert found.programs[0].parent.name == "azure", "what signs in to the emulated cluster comes first"


@pytest.mark.parametrize(
    ("ports", "missing"),
    [
        ({}, "azure-native, kubernetes, random"),
        ({"azure": 2}, "kubernetes"),
        ({"kubernetes": 1}, "azure-native, random"),
    ],
)
def test_a_missing_provider_is_named(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, ports: dict[str, int], missing: str
) -> None:
    serving(monkeypatch, **ports)
    with pytest.raises(EngineError, match=f"serves no provider for {missing};"):
        environment(paths)


def test_an_installed_official_plugin_takes_the_place_of_the_emulated_one(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    serving(monkeypatch, kubernetes=1, azure=2)
    plugins = tmp_path / "pulumi" / "plugins"
    (plugins / "resource-kubernetes-v1.2.3").mkdir(parents=True)
    assert official_plugin() is None, "the engine takes no other version than the SDK's"
    wanted = plugins / f"resource-kubernetes-v{version('pulumi-kubernetes')}"
    wanted.mkdir()
    (wanted / "pulumi-resource-kubernetes").write_bytes(b"\x7fELF")
    found = environment(paths)
    assert found.plugins == (built_plugin(paths, "openstack"), wanted)
    assert found.providers.keys() == EMULATED - {"kubernetes"}


def test_in_a_shell_of_make_env_plugins_are_where_they_were(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The home that it names is an engine's, which has links to each plugin's files, and makes them anew each time."""
    serving(monkeypatch, kubernetes=1, azure=2)
    name = f"resource-kubernetes-v{version('pulumi-kubernetes')}"
    official = tmp_path / "pulumi" / "plugins" / name
    official.mkdir(parents=True)
    (official / "pulumi-resource-kubernetes").write_bytes(b"\x7fELF")
    before = environment(paths)
    assert before.plugins[1] == official
    for plugin in before.plugins:
        linked = tmp_path / "engine" / "plugins" / plugin.name
        linked.mkdir(parents=True)
        for file in plugin.iterdir():
            (linked / file.name).symlink_to(file)
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "engine"))
    assert environment(paths).plugins == before.plugins


def environment_of(folder: Path) -> Path:
    """Make what a local environment leaves."""
    for name in ("run", "pulumi-state", "pulumi-home", "config", "logs", "bin", "mirror"):
        (folder / name).mkdir(parents=True)
        (folder / name / "file").touch()
    return folder


def test_clean_removes_local_stacks_and_nothing_else(paths: Paths, tmp_path: Path) -> None:
    local = environment_of(paths.state / "dev")
    lent = environment_of(paths.state / "aks" / "lent" / "some")
    real = environment_of(tmp_path / "real")
    for each in (local, real):
        (each / "run" / "dev.updating").touch()
    (local / "content.json").touch()
    (paths.state / "linked").symlink_to(real)
    (paths.state / "stack").mkdir()
    (paths.state / "stack" / "run").symlink_to(real / "run")
    (local / "logs" / "theirs").symlink_to(real / "logs")
    in_checkout = paths.root / "pulumi-state"
    in_checkout.mkdir()
    assert command.main(["down", "--purge"]) == 0
    assert sorted(each.name for each in local.iterdir()) == ["bin", "mirror", "run"]
    assert sorted(each.name for each in (local / "run").iterdir()) == ["file", "turn.lock"]
    assert not lent.exists()
    assert len(list(real.rglob("file"))) == 7
    assert (real / "run" / "dev.updating").exists()
    assert in_checkout.is_dir()


def test_down_keeps_the_stacks(paths: Paths) -> None:
    local = environment_of(paths.state / "dev")
    assert command.main(["down"]) == 0
    assert (local / "pulumi-state" / "file").exists()


@pytest.mark.parametrize("arguments", [["down"], ["down", "--purge"]])
@pytest.mark.parametrize("of_make", [True, False])
def test_nothing_is_stopped_below_an_update_that_runs(
    paths: Paths,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    of_make: bool,
) -> None:
    """Of make, or of a plain `pulumi` after `make env`: nor of the environments before it."""
    first, updated = environment_of(paths.state / "aks"), environment_of(paths.state / "dev")
    for way in ("stop", "reset"):
        monkeypatch.setattr(cluster, way, lambda each: pytest.fail(f"{each.state} was stopped"))
    locks = updated / "pulumi-state" / ".pulumi" / "locks"
    if not of_make:
        folder = locks / "organization" / "mlbatch" / "dev"
        folder.mkdir(parents=True)
        own = {"pid": os.getpid(), "username": "me", "hostname": socket.gethostname()}
        (folder / "1.json").write_text(json.dumps({**own, "timestamp": datetime.now(UTC).isoformat()}))
    with alone(paths.of_stack("dev"), "make up") if of_make else contextlib.nullcontext():
        assert command.main(arguments) == 1
    said = capsys.readouterr().err
    assert f"process {os.getpid()}" in said
    assert "wait for it, or stop it" in said
    assert (f"remove its lock, below {locks}" in said) is not of_make
    assert (first / "pulumi-state" / "file").exists()
    assert (updated / "pulumi-state" / "file").exists()


def test_nobody_else_can_look_into_the_state(paths: Paths) -> None:
    local = environment_of(paths.state / "dev")
    local.chmod(0o755)
    assert command.main(["status", "--stack", "dev"]) == 1
    for each in (paths.state, local, *local.iterdir()):
        assert stat.S_IMODE(each.stat().st_mode) == 0o700, each


def test_no_proxy_stands_between_the_command_and_this_machine(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "example.org")
    command.main(["down"])
    assert os.environ["NO_PROXY"] == "example.org,127.0.0.1,localhost"
    assert os.environ["no_proxy"] == "127.0.0.1,localhost"


@pytest.mark.parametrize("name", ["preview", "refresh", "destroy", "env"])
def test_without_a_running_cluster_a_command_says_how_to_start_it(
    paths: Paths, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (paths.root / "Pulumi.aks.yaml").write_text("config: {}\n")
    assert command.main([name, "--stack", "aks"]) == 1
    assert "`make up STACK=aks` starts it" in capsys.readouterr().err
    assert command.main([name, "--stack", "absent"]) == 1
    assert "Stacks of this checkout: aks." in capsys.readouterr().err


def make(*arguments: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run make as nobody's child: one that is a child says in which folder it works."""
    alone = {name: value for name, value in environment.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    return subprocess.run(["make", *arguments], cwd=ROOT, env=alone, capture_output=True, text=True)


@pytest.mark.parametrize("target", ["up", "preview", "destroy", "down", "clean", "env", "status", "review"])
def test_make_takes_no_kubeconfig(target: str) -> None:
    done = make("--dry-run", target, "KUBECONFIG=x", environment=os.environ)
    assert done.returncode != 0
    assert "make acts on the local environment alone" in done.stderr
    assert "pulumi up --stack <name>" in done.stderr
    assert done.stdout == ""


def test_a_kubeconfig_that_cannot_be_used_is_told_without_a_trace(tmp_path: Path) -> None:
    command_line = [sys.executable, "-m", "runner", "status", "--kubeconfig", str(tmp_path / "absent")]
    done = subprocess.run(command_line, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("error: the kubeconfig cannot be used")


def test_make_does_not_mind_a_kubeconfig_in_the_environment() -> None:
    done = make("--dry-run", "help", environment={**os.environ, "KUBECONFIG": "x"})
    assert done.returncode == 0, done.stderr


class FakeEngine:
    """An engine whose last update was killed."""

    killed: datetime | None = datetime.now(UTC)
    changing: str | None = None
    cancelled = False
    stack = "dev"
    code = 0

    def __init__(self, *arguments: object) -> None: ...

    def prepare(self) -> tuple[str, ...]:
        return ("mlbatch:token",)

    def unlock(self) -> None: ...

    def exports(self) -> str:
        return ""

    def read_state(self) -> dict[str, Any]:
        queue = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue"}
        return {
            "resources": [
                {"urn": "urn::stack", "type": "pulumi:pulumi:Stack"},
                {"urn": "urn::queue", "type": "kubernetes:k:ClusterQueue", "outputs": queue},
            ]
        }

    def variables(self) -> dict[str, str]:
        return {}

    def run(self, name: str, arguments: list[str]) -> int:
        print(f"pulumi {name}", file=sys.stderr)
        return self.code


def unreachable(*_: object) -> NoReturn:
    raise HTTPError


@pytest.mark.parametrize(
    ("name", "takes_over"), [("preview", False), ("refresh", False), ("env", False), ("destroy", True)]
)
def test_only_an_update_takes_over_what_a_killed_one_left(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, takes_over: bool
) -> None:
    serving(monkeypatch, kubernetes=1, azure=2)
    (paths.root / "Pulumi.dev.yaml").write_text("config: {}\n")
    recovered: list[object] = []
    monkeypatch.setattr(command, "recover", lambda engine, *what: recovered.append(engine))
    monkeypatch.setattr(command, "foreseen", lambda engine, *what: ["take over /vnets/mlbatch"])
    monkeypatch.setattr(command, "Engine", FakeEngine)
    monkeypatch.setattr(command, "connect", unreachable)
    assert command.main([name]) == 0
    assert bool(recovered) is takes_over
    said = capsys.readouterr().err
    assert ("the last `make up` was killed" in said) is (name in ("preview", "refresh"))
    assert "mlbatch:token is encrypted for another backend" in said
    after = said.partition(f"pulumi {name}\n")[2]
    assert after == (f"{command.KILLED}\n  it would take over /vnets/mlbatch\n" if name == "preview" else "")


@pytest.mark.parametrize("name", ["up", "preview", "destroy", "refresh"])
@pytest.mark.parametrize("is_gone", [True, False])
def test_nobody_is_asked_in_a_cluster_that_an_update_has_taken_away(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, is_gone: bool
) -> None:
    """A failed replacement goes on by itself; hundreds of objects cannot be read, and would end it before it begins."""
    serving(monkeypatch, kubernetes=1, azure=2)
    (paths.root / "Pulumi.dev.yaml").write_text("config: {}\n")
    without_a_cluster(monkeypatch)
    asked: list[str] = []

    class Replacing(FakeEngine):
        killed = None

        def read_state(self) -> dict[str, Any]:
            vm = {"urn": "urn::vm", "type": "mlbatch:RemoteCluster", "pendingReplacement": is_gone}
            provider = {"urn": "urn::cluster", "type": "pulumi:providers:kubernetes", "dependencies": ["urn::vm"]}
            return {"resources": [vm, provider]}

        def run(self, name: str, arguments: list[str]) -> int:
            asked.extend(arguments)
            return 0

    monkeypatch.setattr(command, "Engine", Replacing)
    monkeypatch.setattr(command, "connect", unreachable)
    monkeypatch.setattr(command, "environment_report", lambda paths: "")
    monkeypatch.setattr(command, "await_settled", lambda client: None)
    if name == "up":
        monkeypatch.setattr(command, "connect", lambda *_: None)
    assert command.main([name]) == 0
    expected = is_gone and name != "refresh"
    assert ("--refresh=false" in asked) is expected
    assert ("note: an update has failed as it replaced the cluster" in capsys.readouterr().err) is expected


def test_destroy_says_at_once_which_webhook_it_would_wait_for(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    serving(monkeypatch, kubernetes=1, azure=2)
    (paths.root / "Pulumi.aks.yaml").write_text("config: {}\n")
    asked: list[object] = []

    def holding(client: object, kinds: set[tuple[str, str]]) -> dict[webhooks.Absent, list[str]]:
        asked.append(kinds)
        service = webhooks.Absent(namespace="mlbatch-system", service="kueue-webhook-service", resources=())
        return {service: ["ClusterQueue"]}

    monkeypatch.setattr(command, "recover", lambda engine, *what: None)
    monkeypatch.setattr(command, "Engine", FakeEngine)
    monkeypatch.setattr(command, "connect", lambda *_: None)
    monkeypatch.setattr(webhooks, "holding", holding)
    assert command.main(["destroy", "--stack", "aks"]) == 1
    assert asked == [{("kueue.x-k8s.io/v1beta1", "ClusterQueue")}]
    assert (
        "error: nobody answers the webhooks of Service kueue-webhook-service in mlbatch-system, which the API server "
        "asks to delete ClusterQueue. `pulumi destroy` would wait for them until it gives up. Bring them back with "
        "`make up STACK=aks`, then run `make destroy STACK=aks` again; "
    ) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "ending", "said"),
    [
        ("up", {"code": -9}, "`pulumi up` was killed by signal 9; the next `make up` or `make destroy` finishes it"),
        ("up", {"code": 255, "cancelled": True, "killed": None}, "cancelled, and has stopped; `make up` carries on"),
        ("up", {"code": 255, "cancelled": True}, "cancelled; the next `make up` or `make destroy` finishes it"),
        ("up", {"code": 1, "killed": None}, "ended with exit code 1; what it said stands above. Put it right and run"),
        ("destroy", {"code": -15}, "`pulumi destroy` was killed by signal 15; the next `make up` or `make destroy`"),
        ("refresh", {"code": 255, "cancelled": True, "killed": None}, "has stopped; `make refresh` carries on"),
        ("preview", {"code": -9, "killed": None}, "by signal 9, and has stopped; `make preview` carries on"),
    ],
)
def test_an_update_that_did_not_get_to_its_end_is_not_to_be_put_right(
    paths: Paths,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    ending: dict[str, object],
    said: str,
) -> None:
    serving(monkeypatch, kubernetes=1, azure=2)
    (paths.root / "Pulumi.dev.yaml").write_text("config: {}\n")
    monkeypatch.setattr(command, "Engine", type("Ending", (FakeEngine,), ending))
    monkeypatch.setattr(command, "connect", unreachable)
    without_a_cluster(monkeypatch)
    assert command.main([name]) == 1
    told = capsys.readouterr().err
    assert said in told
    assert ("Put it right" in told) is ("Put it right" in said)


@pytest.mark.parametrize("was_killed", [True, False])
def test_an_update_that_was_killed_is_finished_in_a_step_of_its_own(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], was_killed: bool
) -> None:
    serving(monkeypatch, kubernetes=1, azure=2)
    (paths.root / "Pulumi.dev.yaml").write_text("config: {}\n")
    monkeypatch.setattr(command, "Engine", type("Failing", (FakeEngine,), {"code": 1}))
    monkeypatch.setattr(command, "connect", unreachable)
    without_a_cluster(monkeypatch)
    monkeypatch.setattr(command, "unfinished", lambda engine: object() if was_killed else None)
    command.main(["up"])
    begun = [line for line in capsys.readouterr().err.splitlines() if line.endswith(" ...")]
    finishing = ["[4/5] finish the update that was killed ...", "[5/5] pulumi up --stack dev ..."]
    assert begun[2:] == [
        "[3/4] prepare the stack ...",
        *(finishing if was_killed else ["[4/4] pulumi up --stack dev ..."]),
    ]


def without_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what comes before the engine, and a recovery, do nothing."""
    monkeypatch.setattr(Toolchain, "missing", lambda *what, **parts: [])
    monkeypatch.setattr(Toolchain, "install", lambda *what, **parts: None)
    monkeypatch.setattr(mirror, "fill", lambda *what, **parts: None)
    monkeypatch.setattr(cluster, "start", lambda *what, **parts: None)
    monkeypatch.setattr(command, "unfinished", lambda engine: None)
    monkeypatch.setattr(command, "recover", lambda engine, *what: None)


@pytest.mark.parametrize("name", ["preview", "refresh", "destroy", "drift"])
def test_an_api_server_that_does_not_answer_is_told_once_before_the_engine_starts(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (paths.root / "Pulumi.dev.yaml").write_text("config: {}\n")
    running = ProcessStatus("kube-apiserver", 1, "running", 0, Path("log"))
    status = ClusterStatus(1, (running,), False, "https://127.0.0.1:4711", 1, {}, 2)
    monkeypatch.setattr(cluster, "status", lambda paths: status)
    monkeypatch.setattr(command, "Engine", lambda *what: pytest.fail("an engine was started"))
    assert command.main([name]) == 1
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith("error: the API server of stack dev, https://127.0.0.1:4711, does not answer")
    assert "`make down` and `make up` start it anew, with its data" in told


def held_by(monkeypatch: pytest.MonkeyPatch, lock: str | None, killed: datetime | None) -> None:
    """Let a killed update have left its marker, or a live engine hold the stack's lock."""
    monkeypatch.setattr(command, "Engine", type("Held", (FakeEngine,), {"changing": lock, "killed": killed}))


@pytest.mark.parametrize("of_make", [True, False])
def test_a_preview_while_an_update_runs_says_so_and_offers_no_recovery(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], of_make: bool
) -> None:
    """The marker of an update stands while it runs, and stays when it is killed."""
    serving(monkeypatch, kubernetes=1, azure=2)
    (paths.root / "Pulumi.dev.yaml").write_text("config: {}\n")
    monkeypatch.setattr(command, "foreseen", lambda engine, *what: pytest.fail("a living update is to be recovered"))
    held_by(
        monkeypatch, None if of_make else "process 4711 of me on here since 2026-01-02 03:04:05 UTC", FakeEngine.killed
    )
    with alone(paths.of_stack("dev"), "make up") if of_make else contextlib.nullcontext():
        assert command.main(["preview"]) == 0
    said = capsys.readouterr().err
    who = (
        rf"`make up`, process {os.getpid()}, since 20\S+ \S+ UTC"
        if of_make
        else "process 4711 of me on here since 2026"
    )
    assert re.search(f"note: the stack is being changed by {who}", said)
    assert "was killed" not in said


@pytest.mark.parametrize("name", ["up", "refresh", "destroy"])
def test_a_second_command_is_refused_before_it_does_anything(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (paths.root / "Pulumi.dev.yaml").write_text("config: {}\n")
    for module, what in ((cluster, "start"), (cluster, "status"), (command, "Toolchain"), (command, "recover")):
        monkeypatch.setattr(module, what, lambda *given, **more: pytest.fail("something was done"))
    with alone(paths.of_stack("dev"), "make up"):
        assert command.main([name]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"error: `make up`, process {os.getpid()}, since ")
    assert "Nothing was changed: wait for it, or stop it" in said
    with alone(paths.of_stack("dev"), "make up"):
        pass


@pytest.mark.parametrize("name", ["up", "destroy"])
def test_an_engine_that_nobody_of_make_has_started_is_no_killed_one(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """A plain `pulumi up` has operations under way in its state, as a killed one has."""
    serving(monkeypatch, kubernetes=1, azure=2)
    (paths.root / "Pulumi.dev.yaml").write_text("config: {}\n")
    without_a_cluster(monkeypatch)
    monkeypatch.setattr(command, "unfinished", lambda engine: object())
    monkeypatch.setattr(command, "recover", lambda engine, *what: pytest.fail("a living update is to be recovered"))

    class Held(FakeEngine):
        def unlock(self) -> None:
            raise EngineError("stack 'dev' is being changed by process 4711")

    monkeypatch.setattr(command, "Engine", Held)
    assert command.main([name]) == 1
    assert "error: stack 'dev' is being changed by process 4711" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("died", "recorded", "reason"),
    [
        (True, "/pools/ndv5", "these ended while `pulumi up` ran: provider. What they were creating may be there"),
        (False, None, "created, and not in the stack's state, because the answer got lost: /pools/ndv5"),
        (False, "/pools/before", "created, and not in the stack's state, because the answer got lost: /pools/ndv5"),
        (False, "/pools/ndv5", None),
    ],
    ids=["a provider has died", "an answer got lost", "that about what takes another's place", "neither"],
)
def test_what_a_failed_update_has_created_and_not_recorded_is_looked_for_by_the_next_one(
    paths: Paths,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    died: bool,
    recorded: str | None,
    reason: str | None,
) -> None:
    """The engine lives on, forgets what was being created, and the next update ends with `already exists`."""
    (paths.root / "Pulumi.dev.yaml").write_text("config: {}\n")
    without_a_cluster(monkeypatch)
    doubted: list[datetime] = []
    process = [1]

    def status(paths: Paths) -> ClusterStatus:
        running = ProcessStatus("provider", process[0], "running", 0, Path("log"))
        return ClusterStatus(1, (running,), True, "https://127.0.0.1:1", 1, {}, 2)

    class Failing(FakeEngine):
        killed = None

        def run(self, name: str, arguments: list[str]) -> int:
            process[0] += died
            return 1

        def doubt(self, began: datetime) -> None:
            doubted.append(began)

        def read_state(self) -> dict[str, Any]:
            return {"resources": [{"urn": "urn::ndv5", "type": "azure", "id": recorded}] if recorded else []}

    monkeypatch.setattr(cluster, "status", status)
    monkeypatch.setattr(command, "Engine", Failing)
    monkeypatch.setattr(azure, "orphans", lambda _: {"urn::ndv5": SimpleNamespace(id="/pools/ndv5")})
    before = datetime.now(UTC)
    assert command.main(["up"]) == 1
    notes = [line for line in capsys.readouterr().err.splitlines() if line.startswith("note: ") and "token" not in line]
    assert len(notes) == len(doubted) == (reason is not None)
    assert all(note.startswith(f"note: {reason}") for note in notes)
    assert all(note.endswith("; the next `make up` or `make destroy` finishes it first") for note in notes)
    assert all(before <= began <= datetime.now(UTC) for began in doubted)


@pytest.mark.parametrize(("number", "is_told"), [(errno.ENOSPC, True), (errno.EDQUOT, True), (errno.EACCES, False)])
def test_a_full_disk_is_told_without_a_trace(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int, is_told: bool
) -> None:
    def full(*_: object) -> NoReturn:
        raise OSError(number, os.strerror(number), "some/file")

    (paths.root / "Pulumi.dev.yaml").write_text("config: {}\n")
    monkeypatch.setattr(command, "Toolchain", full)
    with contextlib.nullcontext() if is_told else pytest.raises(PermissionError):
        assert command.main(["up"]) == 1
        (said,) = capsys.readouterr().err.splitlines()
        assert said.startswith(
            f"error: [Errno {number}] {os.strerror(number)}: 'some/file'. Make room where {paths.state}"
        )
        assert said.endswith("a state that was not written whole is put back")
