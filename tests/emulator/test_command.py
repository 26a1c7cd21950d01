"""The command line: folders that it changes, access to them, and its calls to the local environment."""

import contextlib
import errno
import io
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

import pytest
from urllib3.exceptions import HTTPError

from emulator import __main__ as command
from emulator import cluster, mirror, pending, toolchain
from emulator.cluster import ClusterStatus, ProcessStatus
from emulator.environment import EMULATED, KUBERNETES, OPENSTACK, built_plugin, environment
from emulator.openstack.installation import Installation
from emulator.paths import Paths
from emulator.toolchain import Module, Need, Toolchain
from emulator.turn import alone
from runner import webhooks
from runner.engine import EngineError
from runner.environment import Environment

ROOT = Path(__file__).parents[2]


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Paths]:
    """Yield the folders of a checkout that the command line uses as its own."""
    found = Paths.of(root=tmp_path / "checkout", cache=tmp_path / "cache")
    found.root.mkdir()
    (found.root / "Pulumi.yaml").write_text("name: mlbatch\nruntime: python\n")
    monkeypatch.setattr(Paths, "of", lambda: found)
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "pulumi"))
    # The command line changes these variables and the umask permanently.
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "")
    former = os.umask(0)
    yield found
    os.umask(former)


def serving(monkeypatch: pytest.MonkeyPatch, azure: int | None = 2) -> None:
    """Make the local cluster appear to run. azure: port of the emulated Azure, None if it does not run."""
    running = ProcessStatus("etcd", 1, "running", 0, Path("etcd.log"))
    status = ClusterStatus(1, (running,), True, "https://127.0.0.1:1", {}, azure)
    monkeypatch.setattr(cluster, "status", lambda paths: status)


def test_the_environment_offers_the_emulated_providers_and_the_plugins_that_are_built(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    serving(monkeypatch, azure=4711)
    of_dev = paths.of_stack("dev")
    found = environment(of_dev)
    assert found.providers == {"azure-native": 4711, "random": 4711}
    assert found.providers.keys() == EMULATED
    assert found.plugins == (built_plugin(of_dev, KUBERNETES), built_plugin(of_dev, OPENSTACK))
    assert (found.kubeconfig, found.mirror) == (paths.state / "dev" / "kubeconfig", paths.state / "dev" / "mirror")
    assert [folder.name for folder in found.programs] == ["bin", "bin"]
    assert found.programs[0].parent.name == "azure", "what signs in to the emulated cluster comes first"


def test_the_kubernetes_provider_takes_over_fields_of_other_managers(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    serving(monkeypatch)
    assert environment(paths).variables == {"PULUMI_K8S_ENABLE_PATCH_FORCE": "true"}


def test_the_built_plugin_has_the_version_of_the_sdk_and_follows_the_built_program(paths: Paths) -> None:
    name = f"resource-kubernetes-v{version('pulumi-kubernetes')}"
    folder = paths.state / "plugins" / name
    folder.mkdir(parents=True)
    (folder / "pulumi-resource-kubernetes").symlink_to("a-former-build")
    for _ in range(2):
        assert built_plugin(paths, KUBERNETES) == folder
        (program,) = folder.iterdir()
        assert program.readlink() == paths.bin / "pulumi-resource-kubernetes"


def test_without_the_emulated_azure_its_providers_are_named(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    serving(monkeypatch, azure=None)
    with pytest.raises(EngineError, match="does not run the providers azure-native, random\\."):
        environment(paths)


def environment_of(folder: Path) -> Path:
    """Create the files of a local environment."""
    for name in ("run", "pulumi-state", "pulumi-home", "config", "logs", "bin", "mirror"):
        (folder / name).mkdir(parents=True)
        (folder / name / "file").touch()
    return folder


def test_clean_removes_only_local_stacks(paths: Paths, tmp_path: Path) -> None:
    local = environment_of(paths.state / "dev")
    lent = environment_of(paths.state / "aks" / "lent" / "some")
    real = environment_of(tmp_path / "real")
    (local / "content.json").touch()
    (paths.state / "linked").symlink_to(real)
    (paths.state / "stack").mkdir()
    (paths.state / "stack" / "run").symlink_to(real / "run")
    (local / "logs" / "theirs").symlink_to(real / "logs")
    in_checkout = paths.root / "pulumi-state"
    in_checkout.mkdir()
    assert command.main(["down", "--purge"]) == 0
    assert sorted(each.name for each in local.iterdir()) == ["bin", "run"]
    assert sorted(each.name for each in (local / "run").iterdir()) == ["file", "turn.lock"]
    assert not lent.exists()
    assert len(list(real.rglob("file"))) == 7
    assert in_checkout.is_dir()


def test_down_keeps_the_stacks(paths: Paths) -> None:
    local = environment_of(paths.state / "dev")
    assert command.main(["down"]) == 0
    assert (local / "pulumi-state" / "file").exists()


@pytest.mark.parametrize("arguments", [["down"], ["down", "--purge"]])
@pytest.mark.parametrize("of_make", [True, False])
def test_no_process_is_stopped_during_an_update(
    paths: Paths,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    of_make: bool,
) -> None:
    """Applies to updates of make and of plain `pulumi` after `make env`. Earlier environments are not stopped
    either.
    """
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
    assert "Wait for it, or stop it" in said
    assert (f"remove its lock below {locks}" in said) is not of_make
    assert (first / "pulumi-state" / "file").exists()
    assert (updated / "pulumi-state" / "file").exists()


def test_other_users_cannot_read_the_state(paths: Paths) -> None:
    local = environment_of(paths.state / "dev")
    local.chmod(0o755)
    assert command.main(["status", "--stack", "dev"]) == 1
    for each in (paths.state, local, *local.iterdir()):
        assert stat.S_IMODE(each.stat().st_mode) == 0o700, each


def test_the_command_uses_no_proxy_to_this_machine(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert "Start it with `make up STACK=aks`" in capsys.readouterr().err
    assert command.main([name, "--stack", "absent"]) == 1
    assert "Stacks of this checkout: aks." in capsys.readouterr().err


def make(*arguments: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run make as a top-level process; a nested make prints its folder."""
    alone = {name: value for name, value in environment.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    return subprocess.run(["make", *arguments], cwd=ROOT, env=alone, capture_output=True, text=True)


@pytest.mark.parametrize("target", ["up", "preview", "destroy", "down", "clean", "env", "status", "review"])
def test_make_rejects_a_kubeconfig(target: str) -> None:
    done = make("--dry-run", target, "KUBECONFIG=x", environment=os.environ)
    assert done.returncode != 0
    assert "make acts on the local environment only" in done.stderr
    assert "pulumi up --stack <name>" in done.stderr
    assert done.stdout == ""


def test_an_unusable_kubeconfig_is_reported_without_a_trace(tmp_path: Path) -> None:
    command_line = [ROOT / "mlbatch", "status", "--kubeconfig", str(tmp_path / "absent")]
    done = subprocess.run(command_line, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("error: the kubeconfig cannot be used")


def test_make_does_not_mind_a_kubeconfig_in_the_environment() -> None:
    done = make("--dry-run", "help", environment={**os.environ, "KUBECONFIG": "x"})
    assert done.returncode == 0, done.stderr


class FakeEngine:
    """An engine whose last update ended normally."""

    operations: tuple[str, ...] = ()
    was_killed_first = False
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
        queue = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue"}
        return {
            "resources": [
                {"urn": "urn::stack", "type": "pulumi:pulumi:Stack"},
                {"urn": "urn::queue", "type": "kubernetes:k:ClusterQueue", "outputs": queue},
            ],
            "pending_operations": [{"type": each, "resource": {"urn": "urn::vnet"}} for each in self.operations],
        }

    def variables(self) -> dict[str, str]:
        return {}

    def run(self, name: str, arguments: list[str]) -> int:
        print(f"pulumi {name}", file=sys.stderr)
        return self.code


class KilledEngine(FakeEngine):
    """An engine that was killed while it created a resource."""

    operations = ("creating",)


def unreachable(*_: object) -> NoReturn:
    raise HTTPError


class Commands:
    """Runs the command line with a fake engine, where the local cluster appears to run."""

    def __init__(self, paths: Paths, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.paths, self._monkeypatch, self._capsys = paths, monkeypatch, capsys
        for stack in ("dev", "aks"):
            (paths.root / f"Pulumi.{stack}.yaml").write_text("config: {}\n")
        serving(monkeypatch)
        self.set(command, install=None, connect=unreachable)
        self.set(mirror, fill=None)
        self.set(cluster, start=None)

    def set(self, module: Any, **functions: Any) -> None:
        """Replace functions of a module. Text: they print it. None: they have no effect."""
        for name, given in functions.items():
            text = given if isinstance(given, str) else None
            says = lambda *_, text=text, **__: text and print(text, file=sys.stderr)  # noqa: E731
            self._monkeypatch.setattr(module, name, given if callable(given) else says)

    def run(self, *arguments: str, engine: type = FakeEngine, **attributes: object) -> tuple[int, str]:
        """Return the exit code and the messages. attributes: of the engine."""
        self._monkeypatch.setattr(command, "Engine", type("Engine", (engine,), attributes))
        code = command.main([*arguments])
        return code, self._capsys.readouterr().err


@pytest.fixture
def commands(paths: Paths, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(paths, monkeypatch, capsys)


@pytest.mark.parametrize("name", ["preview", "refresh", "env", "destroy"])
def test_only_an_update_finishes_what_a_killed_one_left(commands: Commands, name: str) -> None:
    commands.set(pending, finish="finished")
    code, told = commands.run(name, engine=KilledEngine)
    before, _, after = told.partition(f"pulumi {name}\n")
    assert "mlbatch:token is encrypted for another backend" in before
    assert ("finished" in before) is (name == "destroy")
    assert (command.KILLED in before) is (name in ("preview", "refresh"))
    assert (code, after) == (0, "")


@pytest.mark.parametrize("name", ["preview", "refresh"])
@pytest.mark.parametrize("operations", [(), ("updating", "deleting")])
def test_an_update_without_a_pending_creation_does_not_count_as_killed(
    commands: Commands, name: str, operations: tuple[str, ...]
) -> None:
    code, told = commands.run(name, operations=operations)
    assert code == 0
    assert "was killed" not in told


@pytest.mark.parametrize("name", ["up", "preview", "destroy", "refresh"])
@pytest.mark.parametrize("is_gone", [True, False])
def test_a_cluster_that_an_update_deleted_is_not_asked(commands: Commands, name: str, is_gone: bool) -> None:
    """The next update continues a failed replacement. A refresh would fail at the first of hundreds of missing
    objects.
    """
    asked: list[str] = []

    class Replacing(FakeEngine):
        def read_state(self) -> dict[str, Any]:
            vm = {"urn": "urn::vm", "type": "mlbatch:RemoteCluster", "pendingReplacement": is_gone}
            provider = {"urn": "urn::cluster", "type": "pulumi:providers:kubernetes", "dependencies": ["urn::vm"]}
            return {"resources": [vm, provider]}

        def run(self, name: str, arguments: list[str]) -> int:
            asked.extend(arguments)
            return 0

    commands.set(command, environment_report="", await_settled=None)
    if name == "up":
        commands.set(command, connect=None)
    code, told = commands.run(name, engine=Replacing)
    expected = is_gone and name != "refresh"
    assert (code, "--refresh=false" in asked) == (0, expected)
    assert ("note: an update failed while it replaced the cluster" in told) is expected


def test_destroy_says_at_once_which_webhook_it_would_wait_for(commands: Commands) -> None:
    asked: list[object] = []

    def holding(client: object, kinds: set[tuple[str, str]]) -> dict[webhooks.Absent, list[str]]:
        asked.append(kinds)
        service = webhooks.Absent(namespace="mlbatch-system", service="kueue-webhook-service", resources=())
        return {service: ["ClusterQueue"]}

    commands.set(command, connect=None)
    commands.set(webhooks, holding=holding)
    code, told = commands.run("destroy", "--stack", "aks")
    assert (code, asked) == (1, [{("kueue.x-k8s.io/v1beta2", "ClusterQueue")}])
    assert (
        "error: no pod answers the webhooks of Service kueue-webhook-service in mlbatch-system, which the API server "
        "asks to delete ClusterQueue, so `pulumi destroy` would wait until its timeout. Start them with "
        "`make up STACK=aks`, then run `make destroy STACK=aks` again. "
    ) in told


@pytest.mark.parametrize(
    ("name", "ending", "said"),
    [
        ("up", {"code": -9}, "`pulumi up` was killed by signal 9. The next `make up` or `make destroy` finishes it"),
        ("up", {"code": 255, "cancelled": True}, "cancelled. Continue with `make up`"),
        ("destroy", {"code": -15}, "`pulumi destroy` was killed by signal 15. The next `make up` or `make destroy`"),
        ("refresh", {"code": 255, "cancelled": True}, "cancelled. Continue with `make refresh`"),
        ("refresh", {"code": -9}, "`pulumi refresh` was killed by signal 9. The next `make up` or `make destroy`"),
        ("preview", {"code": -9}, "by signal 9. Continue with `make preview`"),
    ],
)
def test_an_update_that_was_stopped_has_no_error_to_fix(
    commands: Commands, name: str, ending: dict[str, object], said: str
) -> None:
    code, told = commands.run(name, **ending)
    assert code == 1
    assert said in told
    assert "Fix them" not in told
    assert "already exists" not in told


def test_a_failed_update_keeps_what_it_completed_and_says_how_to_continue(commands: Commands) -> None:
    code, text = commands.run("up", "--stack", "aks", code=1, stack="aks")
    *_, told = text.splitlines()
    assert code == 1
    assert told.startswith("error: `pulumi up` ended with exit code 1; its errors are above. Fix them and run `make up")
    assert "completed changes are kept" in told
    assert "a resource exists already" in told
    assert "`make clean && make up STACK=aks`" in told


@pytest.mark.parametrize("was_killed", [True, False])
def test_a_killed_update_is_finished_in_a_separate_step(commands: Commands, was_killed: bool) -> None:
    commands.set(pending, finish="finished")
    _, told = commands.run("up", engine=KilledEngine if was_killed else FakeEngine, code=1)
    begun = [line for line in told.splitlines() if line.endswith(" ...") or line == "finished"]
    finishing = ["[4/5] finish the update that was killed ...", "finished", "[5/5] pulumi up --stack dev ..."]
    assert begun[2:] == [
        "[3/4] prepare the stack ...",
        *(finishing if was_killed else ["[4/4] pulumi up --stack dev ..."]),
    ]


def test_a_first_update_that_was_killed_starts_on_an_empty_cluster(commands: Commands) -> None:
    commands.set(cluster, start="started", reset="emptied")
    _, told = commands.run("up", was_killed_first=True, code=1)
    done = [line for line in told.splitlines() if line in ("started", "emptied") or line.startswith("[5/5] pulumi up")]
    assert done[:4] == ["started", "emptied", "started", "[5/5] pulumi up --stack dev ..."]
    code, told = commands.run("destroy", was_killed_first=True, code=1)
    assert code == 1
    assert "the first update of this stack was killed" in told


@pytest.mark.parametrize("name", ["up", "destroy"])
def test_no_resource_changes_while_a_killed_update_cannot_be_finished(commands: Commands, name: str) -> None:
    def fail(*_: object) -> NoReturn:
        raise EngineError("the killed update is not finished")

    commands.set(pending, finish=fail)
    code, told = commands.run(name, engine=KilledEngine)
    assert code == 1
    assert "error: the killed update is not finished" in told
    assert f"pulumi {name}\n" not in told


@pytest.mark.parametrize("name", ["preview", "refresh", "destroy", "drift"])
def test_an_api_server_that_does_not_answer_is_reported_once_before_the_engine_starts(
    commands: Commands, name: str
) -> None:
    running = ProcessStatus("kube-apiserver", 1, "running", 0, Path("log"))
    commands.set(cluster, status=lambda _: ClusterStatus(1, (running,), False, "https://127.0.0.1:4711", {}, 2))
    code, text = commands.run(name, __init__=lambda *_: pytest.fail("an engine was started"))
    (told,) = text.splitlines()
    assert code == 1
    assert told.startswith("error: the API server of stack dev, https://127.0.0.1:4711, does not answer")
    assert "`make down`, then `make up`, which keeps its data" in told


@pytest.mark.parametrize("of_make", [True, False])
def test_a_preview_while_an_update_runs_does_not_take_it_for_killed(commands: Commands, of_make: bool) -> None:
    """The state of a running update also has pending creations."""
    lock = None if of_make else "process 4711 of me on here since 2026-01-02 03:04:05 UTC"
    with alone(commands.paths.of_stack("dev"), "make up") if of_make else contextlib.nullcontext():
        code, said = commands.run("preview", engine=KilledEngine, changing=lock)
    assert code == 0
    who = (
        rf"`make up`, process {os.getpid()}, since 20\S+ \S+ UTC"
        if of_make
        else "process 4711 of me on here since 2026"
    )
    assert re.search(f"note: {who}.* is changing the stack", said)
    assert "was killed" not in said


@pytest.mark.parametrize("name", ["up", "refresh", "destroy"])
def test_a_second_command_is_refused_before_it_does_anything(commands: Commands, name: str) -> None:
    for module, what in ((cluster, "start"), (cluster, "status"), (command, "install"), (pending, "finish")):
        commands.set(module, **{what: lambda *given, **more: pytest.fail("something was done")})
    with alone(commands.paths.of_stack("dev"), "make up"):
        code, said = commands.run(name)
    assert code == 1
    assert said.startswith(f"error: `make up`, process {os.getpid()}, since ")
    assert "No change was made. Wait for it, or stop it" in said
    with alone(commands.paths.of_stack("dev"), "make up"):
        pass


@pytest.mark.parametrize("name", ["up", "destroy"])
def test_an_engine_that_make_did_not_start_is_not_a_killed_one(commands: Commands, name: str) -> None:
    """The state of a running plain `pulumi up` has pending creations, like that of a killed one."""

    class Held(KilledEngine):
        def unlock(self) -> None:
            raise EngineError("stack 'dev' is being changed by process 4711")

    commands.set(pending, finish=lambda *_: pytest.fail("a running update was taken for killed"))
    code, told = commands.run(name, engine=Held)
    assert code == 1
    assert "error: stack 'dev' is being changed by process 4711" in told


@pytest.mark.parametrize(("number", "is_told"), [(errno.ENOSPC, True), (errno.EDQUOT, True), (errno.EACCES, False)])
def test_a_full_disk_is_reported_without_a_trace(commands: Commands, number: int, is_told: bool) -> None:
    def full(*_: object) -> NoReturn:
        raise OSError(number, os.strerror(number), "some/file")

    commands.set(command, install=full)
    with contextlib.nullcontext() if is_told else pytest.raises(PermissionError):
        code, text = commands.run("up")
        (said,) = text.splitlines()
        assert code == 1
        error = f"error: [Errno {number}] {os.strerror(number)}: 'some/file'. Free space in {commands.paths.state}"
        assert said.startswith(error)
        assert said.endswith("completed changes are kept")


def test_help_lists_what_each_target_still_has_to_build(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Paths, "of", lambda: paths)
    monkeypatch.setattr(toolchain, "installed_pulumi", lambda _: None)
    assert command.main(["unbuilt"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told == [
        (
            "  still to build for up, review, bench, scenarios, gameday, test: core, kubernetes-1.34, kubernetes-1.36, "
            "kueue, language, relay"
        ),
        "  still to build for up STACK=cpouta, test: openstack",
        "  still to build for dashboards, test: alertmanager, kubernetes-1.36, prometheus",
        "  still to build for local-openshift-ai: kueue-0.18, olm, opendatahub, opendatahub-kueue",
    ]
    monkeypatch.setattr(Installation, "missing", lambda _: [])
    for module in (each for each in vars(toolchain).values() if isinstance(each, Module)):
        for tool in module.tools:
            folder = Toolchain(paths).folder(module)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / tool.name).touch()
    assert command.main(["unbuilt"]) == 0
    assert capsys.readouterr().out == "  All tools are built.\n"


def test_a_build_installs_what_the_tests_run(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    installed: list[object] = []

    def install(tools: Toolchain, needs: tuple[Need, ...], progress: object) -> None:
        installed.extend(need.module.folder for need in needs)

    monkeypatch.setattr(Toolchain, "install", install)
    monkeypatch.setattr(Installation, "install", lambda *_: installed.append("openstack"))
    monkeypatch.setattr(mirror, "fill", lambda *_, **parts: None)
    assert command.main(["build"]) == 0
    tested = [need.module.folder for need in toolchain.TESTED]
    assert installed == [*tested, "openstack"]
    installed.clear()
    assert command.main(["mirror"]) == 0
    assert command.main(["tools"]) == 0
    assert installed == ["core", *(need.module.folder for need in toolchain.CLUSTER)]


def test_a_lent_cluster_ends_with_the_process_that_lends_it(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, object] = {}
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.setattr(command, "install", lambda *_: None)
    monkeypatch.setattr(command, "environment", lambda each: Environment(kubeconfig=each.kubeconfig))
    monkeypatch.setattr(cluster, "start", lambda *_, **more: given.update(more))
    assert command.main(["lend"]) == 0
    assert given["owner"] == os.getpid()


@pytest.mark.parametrize("name", ["status", "env", "lend", "mirror", "tools", "build"])
def test_unused_arguments_are_refused(paths: Paths, name: str) -> None:
    with pytest.raises(SystemExit):
        command.main([name, "--", "--target"])
