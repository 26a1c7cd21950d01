"""The engine's environment, its copy of the settings and its files, with a script in place of the Pulumi command."""

import json
import os
import re
import shlex
import signal
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from runner.engine import Engine, EngineError
from runner.environment import Environment
from runner.placeholders import MARK
from stacks.config.secrets import looks_like_sas

SALT = "v1:local"
STATE = '{"version": 3, "checkpoint": {}}'
PULUMI = f"""#!/bin/sh
umask > "$RECORDS/umask"
env > "$RECORDS/env"
echo "$@" >> "$RECORDS/calls"
case "$1 $2" in
  "stack ls") if [ -e "$RECORDS/created" ]; then echo '[{{"name": "dev"}}]'; else echo '[]'; fi ;;
  "stack init") touch "$RECORDS/created"; echo 'encryptionsalt: {SALT}' > Pulumi.dev.yaml ;;
  "stack export") echo '{{"deployment": {{"resources": []}}}}' ;;
  "config set-all")
    while [ "$1" != --config-file ]; do shift; done
    file=$2; shift 2
    echo "config:" >> "$file"
    for pair in "$@"; do
      pair=${{pair#--secret=}}
      echo "  ${{pair%%=*}}: {{secure: 'encrypted ${{pair#*=}}'}}" >> "$file"
    done ;;
  "preview --stack")
    echo planned; echo warned >&2
    if [ -e "$RECORDS/wait" ]; then touch "$RECORDS/waiting"; fi
    while [ -e "$RECORDS/wait" ]; do sleep 0.05; done ;;
  "up --stack")
    if [ -e "$RECORDS/wait" ]; then
      trap 'echo TERM >> "$RECORDS/signals"' TERM
      touch "$RECORDS/waiting"
    fi
    while [ -e "$RECORDS/wait" ]; do sleep 0.05; done
    state="${{PULUMI_BACKEND_URL#file://}}"
    state="${{state%\\?*}}/.pulumi/stacks/mlbatch"
    mkdir -p "$state"
    echo '{STATE}' > "$state/.dev"; mv "$state/.dev" "$state/dev.json"
    test ! -e "$RECORDS/fail"; exit ;;
esac
"""


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files that the script writes about its runs, and reads."""
    folder = tmp_path / "records"
    folder.mkdir()
    monkeypatch.setattr("runner.environment.INHERITED", frozenset({"HOME", "RECORDS"}))
    monkeypatch.setenv("RECORDS", str(folder))
    return folder


@pytest.fixture
def engine(tmp_path: Path, records: Path) -> Engine:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "pulumi").write_text(PULUMI)
    (programs / "pulumi").chmod(0o755)
    root = tmp_path / "checkout"
    root.mkdir()
    (root / "Pulumi.yaml").write_text("name: mlbatch\nruntime: python\n")
    environment = Environment(
        kubeconfig=tmp_path / "kubeconfig",
        mirror=tmp_path / "mirror",
        providers={"kubernetes": 4711, "random": 4712},
        programs=(programs,),
    )
    write(root, {"mlbatch:target": "simulated"})
    return Engine(root, tmp_path / "state", "dev", environment)


def write(root: Path, config: Mapping[str, Any], **more: Any) -> None:
    (root / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": dict(config), **more}))


def calls(records: Path) -> list[str]:
    return (records / "calls").read_text().splitlines()


def told(records: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in (records / "env").read_text().splitlines() if "=" in line)


def test_the_engine_finds_the_local_environment_and_nothing_else(
    engine: Engine, tmp_path: Path, records: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KUBECONFIG", "PULUMI_BACKEND_URL", "PULUMI_HOME", "PULUMI_DEBUG_PROVIDERS", "PULUMI_ACCESS_TOKEN"):
        monkeypatch.setenv(name, "elsewhere")
    monkeypatch.setenv("HTTPS_PROXY", "elsewhere")
    engine.prepare()
    engine.capture("preview")
    found = told(records)
    assert "elsewhere" not in found.values()
    assert found["KUBECONFIG"] == str(tmp_path / "kubeconfig")
    assert found["PULUMI_BACKEND_URL"] == f"file://{tmp_path}/state/pulumi-state?metadata=skip"
    assert found["PULUMI_HOME"] == f"{tmp_path}/state/pulumi-home"
    assert found["PULUMI_DEBUG_PROVIDERS"] == "kubernetes:4711,random:4712"
    assert found["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] == "true"
    assert found["PULUMI_IGNORE_AMBIENT_PLUGINS"] == "true"
    assert found["PATH"].startswith(f"{tmp_path}/checkout/.venv/bin:{tmp_path}/bin:")


def test_plugins_are_never_downloaded_even_without_local_providers(engine: Engine, tmp_path: Path) -> None:
    bare = Engine(tmp_path / "checkout", tmp_path / "state", "dev", replace(engine.environment, providers={}))
    assert bare.variables()["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] == "true"
    assert bare.variables()["PULUMI_IGNORE_AMBIENT_PLUGINS"] == "true"
    assert "PULUMI_DEBUG_PROVIDERS" not in bare.variables()


def test_the_engine_writes_its_state_for_each_resource_without_backup_copies(engine: Engine) -> None:
    """A killed update can be finished only if the state contains the resources that it was creating."""
    variables = engine.variables()
    assert "PULUMI_SKIP_CHECKPOINTS" not in variables
    assert variables["PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS"] == "true"


@pytest.mark.parametrize(
    ("command", "resources", "without"),
    [("up", [], True), ("up", [{"urn": "u"}], False), ("destroy", [{"urn": "u"}], True), ("preview", [], False)],
)
def test_only_what_can_be_done_again_from_nothing_leaves_checkpoints_out(
    engine: Engine, records: Path, command: str, resources: list[Any], without: bool
) -> None:
    engine.prepare()
    engine.state_file.parent.mkdir(parents=True, exist_ok=True)
    engine.state_file.write_text(json.dumps({"version": 3, "checkpoint": {"latest": {"resources": resources}}}))
    engine.run(command)
    assert ("PULUMI_SKIP_CHECKPOINTS" in told(records)) is without
    assert not engine.was_killed_first, "it has ended by itself"


def test_a_first_update_that_was_killed_is_remembered_until_another_ends(engine: Engine, records: Path) -> None:
    engine.prepare()
    (records / "wait").touch()
    process = engine.start("up")
    process.kill()
    assert engine.finish(process) < 0
    (records / "wait").unlink()
    assert engine.was_killed_first
    engine.run("up")
    assert not engine.was_killed_first


def test_only_the_plugins_of_the_environment_are_found(engine: Engine, tmp_path: Path) -> None:
    users = tmp_path / "users" / "plugins"
    for name in ("resource-kubernetes-v1", "resource-openstack-v1"):
        (users / name).mkdir(parents=True)
        (users / name / "program").touch()
    home = tmp_path / "state" / "pulumi-home"
    home.mkdir(parents=True)
    (home / "plugins").symlink_to(users)
    mine = replace(engine.environment, plugins=(users / "resource-kubernetes-v1",))
    for environment, found in ((mine, ["resource-kubernetes-v1"]), (engine.environment, [])):
        Engine(tmp_path / "checkout", tmp_path / "state", "dev", environment).prepare()
        folders = list((home / "plugins").iterdir())
        assert [folder.name for folder in folders] == found
        for folder in folders:
            assert not folder.is_symlink(), "the engine takes no link for a plugin's folder"
            assert (folder / "program").resolve() == users / folder.name / "program"
    assert len(list(users.glob("*/program"))) == 2


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_nobody_else_can_look_into_the_state(engine: Engine, tmp_path: Path, records: Path, mask: int) -> None:
    former = os.umask(mask)
    try:
        engine.prepare()
        engine.run("up")
    finally:
        os.umask(former)
    assert (records / "umask").read_text().strip().lstrip("0") == "77"
    state = tmp_path / "state"
    for each in [state, *state.rglob("*")]:
        wanted = 0o700 if each.is_dir() else 0o600
        assert stat.S_IMODE(each.stat().st_mode) == wanted, each


def test_the_copy_has_the_local_salt_and_the_checkout_is_left_alone(engine: Engine, tmp_path: Path) -> None:
    engine.prepare()
    engine.prepare()
    copy = yaml.safe_load(engine.configuration.read_text())
    assert copy["encryptionsalt"] == SALT
    assert copy["config"]["mlbatch:target"] == "simulated"
    assert copy["config"]["mlbatch:mirror"]["verify"] is False
    assert sorted(file.name for file in (tmp_path / "checkout").iterdir()) == ["Pulumi.dev.yaml", "Pulumi.yaml"]


def test_settings_can_be_run_as_they_are_written(engine: Engine, tmp_path: Path) -> None:
    write(tmp_path / "checkout", {"mlbatch:kubernetes": {"kubeconfig": "absent.yaml"}})
    plain = replace(engine.environment, mirror=None)
    found = Engine(tmp_path / "checkout", tmp_path / "state", "dev", plain)
    found.prepare()
    copy = yaml.safe_load(found.configuration.read_text())
    assert copy == {"config": {"mlbatch:kubernetes": {"kubeconfig": "absent.yaml"}}, "encryptionsalt": SALT}


SECRET = {"secure": "AAABAMhtJ9Y="}
CLOUD = {"secretsprovider": "azurekeyvault://v", "encryptedkey": "k"}


def test_a_made_up_value_stands_in_for_a_secret_of_another_backend_wherever_it_stands(
    engine: Engine, tmp_path: Path, records: Path
) -> None:
    config = {
        "mlbatch:token": SECRET,
        "mlbatch:lab": {"size": 3, "a.b": {"token": dict(SECRET)}},
        "mlbatch:teams": ["x", dict(SECRET)],
    }
    write(tmp_path / "checkout", config, **CLOUD)
    assert sorted(engine.prepare()) == ['mlbatch:lab["a.b"].token', "mlbatch:teams[1]", "mlbatch:token"]
    copy = yaml.safe_load(engine.configuration.read_text())
    found = copy["config"]
    values = [found["mlbatch:token"], found["mlbatch:lab"]["a.b"]["token"], found["mlbatch:teams"][1]]
    assert all(re.fullmatch(f"encrypted {MARK}-[\\w-]{{32}}", value["secure"]) for value in values), values
    assert len({value["secure"] for value in values}) == 3
    assert (found["mlbatch:lab"]["size"], found["mlbatch:teams"][0]) == (3, "x")
    assert not {"secretsprovider", "encryptedkey"} & copy.keys()
    assert "AAABAMhtJ9Y=" not in (records / "calls").read_text() + engine.configuration.read_text()


def test_a_made_up_value_is_made_up_once(engine: Engine, tmp_path: Path, records: Path) -> None:
    write(tmp_path / "checkout", {"mlbatch:token": SECRET}, **CLOUD)
    engine.prepare()
    before = engine.configuration.read_text()
    assert engine.prepare() == ("mlbatch:token",)
    assert engine.configuration.read_text() == before
    assert len([call for call in calls(records) if call.startswith("config")]) == 1


def test_a_made_up_signature_has_the_form_of_one(engine: Engine, tmp_path: Path) -> None:
    write(tmp_path / "checkout", {"mlbatch:blobSasToken": SECRET}, **CLOUD)
    engine.prepare()
    value = yaml.safe_load(engine.configuration.read_text())["config"]["mlbatch:blobSasToken"]["secure"]
    assert looks_like_sas(value.removeprefix("encrypted "))
    assert MARK in value


def test_a_cluster_that_is_taken_out_leaves_no_secret_behind(engine: Engine, tmp_path: Path) -> None:
    write(tmp_path / "checkout", {"mlbatch:kubernetes": {"kubeconfig": SECRET}}, **CLOUD)
    assert engine.prepare() == ()
    assert yaml.safe_load(engine.configuration.read_text())["config"]["mlbatch:kubernetes"] == {}


def test_an_environment_that_reads_no_secrets_needs_no_passphrase(engine: Engine, tmp_path: Path) -> None:
    write(tmp_path / "checkout", {"mlbatch:token": {"secure": "v1:a:b"}})
    blind = Engine(tmp_path / "checkout", tmp_path / "state", "dev", replace(engine.environment, reads_secrets=False))
    assert blind.prepare() == ("mlbatch:token",)
    assert MARK in yaml.safe_load(blind.configuration.read_text())["config"]["mlbatch:token"]["secure"]


def test_settings_that_are_no_yaml_are_named(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "checkout" / "Pulumi.dev.yaml").write_text("config: {")
    with pytest.raises(EngineError, match=r"Pulumi\.dev\.yaml: line 1, column \d+ is not valid YAML"):
        engine.prepare()


def test_a_local_secret_stays(engine: Engine, tmp_path: Path, records: Path) -> None:
    write(tmp_path / "checkout", {"mlbatch:token": {"secure": "v1:a:b"}})
    assert engine.prepare() == ()
    assert yaml.safe_load(engine.configuration.read_text())["config"]["mlbatch:token"] == {"secure": "v1:a:b"}
    assert not [line for line in calls(records) if line.startswith("config")]


def make_wait(records: Path, engine: Engine, command: str = "up") -> subprocess.Popen[Any]:
    """Start a command that records the signals that it gets, and waits for a signal to end."""
    (records / "wait").touch()
    process = engine.start(command)
    while not (records / "waiting").exists():
        assert process.poll() is None
        time.sleep(0.01)
    return process


def awaited(is_so: Callable[[], object], seconds: float = 30) -> None:
    """Wait until a condition holds. If it never does, the test fails at its own assertion."""
    deadline = time.monotonic() + seconds
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.01)


def catches(process: int) -> bool:
    """Whether a process has its own answer to SIGTERM, which else ends it (proc(5), SigCgt)."""
    found = re.search(r"^SigCgt:\s*(\w+)$", Path(f"/proc/{process}/status").read_text(), re.MULTILINE)
    assert found is not None
    return bool(int(found[1], 16) >> (signal.SIGTERM - 1) & 1)


def heard(records: Path) -> int:
    """Return how many SIGTERMs the update has noted."""
    file = records / "signals"
    return len(file.read_text().splitlines()) if file.exists() else 0


def terminating(
    records: Path, *kills: Callable[[], None], process: int | None = None, times: int = 1
) -> threading.Thread:
    """Send SIGTERM in these ways, one after the other, and let the update fail once it has heard as many as it is to.

    process: who is to take them, this one by default. It is given time for a SIGTERM that it is not to pass on.
    """

    def terminate() -> None:
        awaited(lambda: catches(process or os.getpid()))
        for kill in kills:
            kill()
            time.sleep(0.5)
        awaited(lambda: heard(records) >= times)
        (records / "fail").touch()
        (records / "wait").unlink()

    thread = threading.Thread(target=terminate)
    thread.start()
    return thread


def alone() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def test_a_termination_is_passed_on_once_and_waits_until_the_engine_has_written_its_state(
    engine: Engine, records: Path
) -> None:
    engine.prepare()
    process = make_wait(records, engine)
    before = signal.getsignal(signal.SIGTERM)
    thread = terminating(records, alone, alone)
    assert engine.finish(process) == 1
    thread.join()
    assert engine.state_file.exists()
    assert engine.cancelled
    assert (records / "signals").read_text() == "TERM\n", (
        "make passes on what it gets, and so does who has started make"
    )
    assert signal.getsignal(signal.SIGTERM) == before
    (records / "fail").unlink()
    assert engine.run("up") == 0
    assert not engine.cancelled


def test_a_termination_of_the_whole_group_reaches_the_engine_once(
    engine: Engine, records: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a second one it would stop at once and lose the state of its current operation."""
    engine.prepare()
    ready, wait = os.pipe()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        process = make_wait(records, engine)
        # The script, a shell, would take two that come at once for one.
        monkeypatch.setattr(process, "send_signal", lambda number: (records / "passed on").touch())
        os.write(wait, b".")
        os._exit(10 + engine.finish(process) + engine.cancelled)
    os.read(ready, 1)
    kills = (lambda: os.killpg(child, signal.SIGTERM), lambda: os.kill(child, signal.SIGTERM))
    thread = terminating(records, *kills, process=child)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 12
    thread.join()
    assert (records / "signals").read_text() == "TERM\n"
    assert not (records / "passed on").exists()


def test_a_termination_that_is_repeated_is_a_second_one(
    engine: Engine, records: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.engine._ONE_SIGNAL", 0.0)
    monkeypatch.setattr("runner.engine._REACHES_ALL", 0.1)
    engine.prepare()
    process = make_wait(records, engine)
    # The script, a shell, would take two that come at once for one.
    thread = terminating(records, alone, lambda: awaited(lambda: heard(records)), alone, times=2)
    engine.finish(process)
    thread.join()
    assert (records / "signals").read_text() == "TERM\nTERM\n"


def test_a_termination_while_something_is_looked_up_reaches_the_engine_and_ends_the_command(
    engine: Engine, records: Path
) -> None:
    """No process of the command keeps running, and the command does not continue with an incomplete answer."""
    engine.prepare()
    (records / "wait").touch()

    def terminate() -> None:
        awaited(lambda: (records / "waiting").exists() and catches(os.getpid()))
        alone()

    thread = threading.Thread(target=terminate)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        engine.capture("preview")
    thread.join()
    assert engine.cancelled
    (records / "wait").unlink()
    assert engine.capture("preview").returncode == 0


def test_what_a_command_has_printed_is_returned(engine: Engine) -> None:
    engine.prepare()
    done = engine.capture("preview")
    assert (done.returncode, done.stdout, done.stderr) == (0, "planned\n", "warned\n")


def test_who_changes_the_stack_is_told_from_the_lock_and_nothing_is_removed(engine: Engine, tmp_path: Path) -> None:
    engine.prepare()
    assert engine.changing is None
    since = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
    dead = lock(tmp_path, 2**22 + 1, socket.gethostname())
    assert engine.changing is None
    dead.rename(dead.with_name("0.json"))
    lock(tmp_path, 4711, "another-host", since)
    assert engine.changing == "process 4711 of me on another-host since 2026-02-03 04:05:06 UTC"
    lock(tmp_path, os.getpid(), socket.gethostname())
    assert str(engine.changing).startswith(f"process {os.getpid()} of me on {socket.gethostname()} since 20")
    assert len(list(dead.parent.iterdir())) == 2


@pytest.mark.parametrize("left", ["", '{"version": 3, "checkpoint": {', "[]", "{}", '{"checkpoint": null}'])
def test_a_torn_state_is_an_error_that_names_make_clean(engine: Engine, records: Path, left: str) -> None:
    engine.state_file.parent.mkdir(parents=True)
    engine.state_file.write_text(left)
    with pytest.raises(EngineError, match=rf"{engine.state_file} is incomplete.*: make clean, then make up STACK=dev$"):
        engine.prepare()
    assert engine.state_file.read_text() == left
    assert not (records / "calls").exists(), "the engine cannot read such a state either"


def test_the_history_keeps_the_last_updates_and_only_an_update_removes_the_others(
    engine: Engine, tmp_path: Path
) -> None:
    engine.prepare()
    history = tmp_path / "state" / "pulumi-state" / ".pulumi" / "history" / "mlbatch" / "dev"
    history.mkdir(parents=True)
    for number in range(1, 6):
        for kind in ("history.json", "checkpoint.json", "history.json.attrs", "checkpoint.json.attrs"):
            (history / f"dev-{number}.{kind}").touch()
    engine.run("preview")
    assert len(list(history.iterdir())) == 20
    engine.run("up")
    assert {file.name.split(".")[0] for file in history.iterdir()} == {"dev-3", "dev-4", "dev-5"}
    assert len(list(history.iterdir())) == 12


def lock(tmp_path: Path, pid: int, host: str, since: datetime | None = None) -> Path:
    since = since or datetime.now(UTC)
    return lock_file(
        tmp_path,
        "1.json",
        json.dumps({"pid": pid, "hostname": host, "username": "me", "timestamp": since.isoformat()}),
    )


def lock_file(tmp_path: Path, name: str, text: str) -> Path:
    file = tmp_path / "state" / "pulumi-state" / ".pulumi" / "locks" / "organization" / "mlbatch" / "dev" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_a_dead_engines_lock_is_removed_before_an_update_and_not_before_a_look(engine: Engine, tmp_path: Path) -> None:
    engine.prepare()
    file = lock(tmp_path, 2**22 + 1, socket.gethostname())
    engine.run("preview")
    assert file.exists()
    engine.run("up")
    assert not file.exists()


@pytest.mark.parametrize(("pid", "host"), [(os.getpid(), socket.gethostname()), (1, "another-host")])
def test_a_live_engines_lock_is_an_error(engine: Engine, tmp_path: Path, pid: int, host: str) -> None:
    engine.prepare()
    lock(tmp_path, pid, host)
    with pytest.raises(EngineError, match=f"is being changed by process {pid} of me on {host}"):
        engine.run("up")


def test_a_lock_whose_process_number_belongs_to_a_later_process_is_dead(engine: Engine, tmp_path: Path) -> None:
    engine.prepare()
    file = lock(tmp_path, os.getpid(), socket.gethostname(), datetime.now(UTC) - timedelta(days=30))
    assert engine.run("up") == 0
    assert not file.exists()


TORN_LOCKS = [("1.json.0a1b.tmp", ""), ("1.json", ""), ("1.json", '{"pid": 1'), ("1.json", "{}")]


@pytest.mark.parametrize(("name", "text"), TORN_LOCKS)
def test_a_lock_that_names_nobody_is_removed_and_told(
    engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str
) -> None:
    engine.prepare()
    file = lock_file(tmp_path, name, text)
    assert engine.run("up") == 0
    assert not file.exists()
    assert f"note: the lock {file} named no engine" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "text"), TORN_LOCKS)
def test_a_lock_that_names_nobody_stays_while_an_engine_works(
    engine: Engine, tmp_path: Path, records: Path, name: str, text: str
) -> None:
    engine.prepare()
    file = lock_file(tmp_path, name, text)
    running = make_wait(records, engine, "preview")
    try:
        with pytest.raises(EngineError, match=rf"{file} is incomplete, perhaps process {running.pid}; wait for it"):
            engine.run("up")
        assert file.exists()
    finally:
        (records / "wait").unlink()
        engine.finish(running)


def test_an_absent_stack_is_named_with_those_that_exist(engine: Engine, tmp_path: Path) -> None:
    absent = Engine(tmp_path / "checkout", tmp_path / "state", "prod", engine.environment)
    with pytest.raises(EngineError, match=r"stack 'prod' does not exist.* Stacks of this checkout: dev\."):
        absent.prepare()


def test_the_exports_make_a_plain_pulumi_do_the_same(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "theirs")
    lines = engine.exports().splitlines()
    assert "unset PULUMI_CONFIG_PASSPHRASE" in lines
    assert f"export PULUMI_OPTION_CONFIG_FILE={engine.configuration}" in lines
    for name, value in engine.variables().items():
        assert f"export {name}={shlex.quote(value)}" in lines


def test_the_exports_leave_no_credential_of_the_users_beside_the_environments(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OS_CLOUD", "theirs")
    assert "unset OS_CLOUD" not in engine.exports().splitlines()
    environment = replace(engine.environment, variables={"OS_AUTH_TYPE": "v3applicationcredential"})
    lines = Engine(engine.configuration.parent, engine.configuration.parent, "dev", environment).exports().splitlines()
    assert "unset OS_CLOUD" in lines
    assert "export OS_AUTH_TYPE=v3applicationcredential" in lines
