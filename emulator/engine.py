"""Runs the Pulumi command on this checkout's stacks, with the environment that the local parts need.

What is set here is only environment: which state folder, which provider the engine attaches to, which cluster the
kubeconfig names. The program is the same wherever it runs.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import kubernetes
import yaml

from emulator import azure, recovery
from emulator.paths import Paths

KUBERNETES = "kubernetes"
"""The name under which the engine looks for the Kubernetes provider's plugin."""
PROVIDER_PLUGIN = f"pulumi-resource-{KUBERNETES}"

UPDATES = ("up", "destroy", "refresh")
WITHOUT_CHECKPOINTS = {"PULUMI_EXPERIMENTAL": "true", "PULUMI_SKIP_CHECKPOINTS": "true"}


class EngineError(Exception):
    """The engine failed or its state needs a person; the message says what to do."""


class Engine:
    """One stack of this checkout under the real Pulumi command.

    kubeconfig:    the file that the program's Kubernetes provider is to read.
    providers:     loopback ports of the stand-in providers, by plugin; the engine finds other plugins itself.
    """

    def __init__(self, paths: Paths, stack: str, kubeconfig: Path, providers: Mapping[str, int]) -> None:
        self._paths = paths
        self._stack = stack
        self._kubeconfig = kubeconfig
        self._providers = dict(providers)
        self._updates: set[int] = set()

    def variables(self) -> dict[str, str]:
        """Return the environment variables under which a plain `pulumi` does the same as the make targets."""
        variables = {
            "PATH": os.pathsep.join(self._search_path()),
            "KUBECONFIG": str(self._kubeconfig),
            "PULUMI_BACKEND_URL": f"file://{self._paths.pulumi_state}",
            "PULUMI_HOME": str(self._paths.pulumi_home),
            "PULUMI_CONFIG_PASSPHRASE_FILE": str(self._passphrase_file()),
            "PULUMI_FALLBACK_TO_STATE_SECRETS_MANAGER": "true",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            # Four for each processor by default; most operations here wait for a controller, not for a processor.
            "PULUMI_PARALLEL": "32",
        }
        if self._providers:
            attached = [f"{plugin}:{port}" for plugin, port in self._providers.items()]
            variables["PULUMI_DEBUG_PROVIDERS"] = ",".join(attached)
            variables["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] = "true"
        return variables

    def exports(self) -> str:
        """Return the variables as shell `export` lines."""
        return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in self.variables().items())

    def prepare(self) -> None:
        """Make the stack usable: create it once, free it from a dead engine's lock, recover what that had created.

        Raises EngineError when the stack has no Pulumi.<stack>.yaml, or another engine is at work on it.
        """
        require_stack(self._paths, self._stack)
        for folder in (self._paths.pulumi_state, self._paths.pulumi_home, self._configuration_file().parent):
            folder.mkdir(parents=True, exist_ok=True)
        self._link_installed_plugins()
        if self._stack not in self._stacks():
            self._create()
        self._write_configuration()
        self._free_stale_lock()
        self._recover()

    def run(self, command: str, arguments: Sequence[str] = ()) -> int:
        """Run `pulumi <command>` on the stack with the terminal attached; return its exit code."""
        return self.finish(self.start(command, arguments))

    def capture(self, command: str, arguments: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        """Run `pulumi <command>` on the stack and return what it printed and its exit code."""
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = self.start(command, arguments, **pipes)
        printed, errors = process.communicate()
        return subprocess.CompletedProcess(process.args, self.finish(process), printed, errors)

    def start(self, command: str, arguments: Sequence[str] = (), **options: Any) -> subprocess.Popen[Any]:
        """Start `pulumi <command>` on the stack; `finish` has to be told its process.

        The engine's file backend writes the whole state twice for each resource it creates, so that time grows with
        the square of their number. Updates therefore leave the checkpoints out and write the state at the end; should
        the engine be killed before that, `prepare` finds what it had created.
        """
        environment = self._environment()
        if command in UPDATES:
            environment |= WITHOUT_CHECKPOINTS
            self._marker().parent.mkdir(parents=True, exist_ok=True)
            self._marker().touch()
        process = subprocess.Popen(self._command(command, arguments), cwd=self._paths.root, env=environment, **options)
        if command in UPDATES:
            self._updates.add(process.pid)
        return process

    def finish(self, process: subprocess.Popen[Any]) -> int:
        """Wait for a process of `start`, through interrupts, which it gets too; return its exit code."""
        while True:
            try:
                code = process.wait()
                break
            except KeyboardInterrupt:
                continue
        if code >= 0 and process.pid in self._updates:
            self._marker().unlink(missing_ok=True)
        self._updates.discard(process.pid)
        return code

    def export(self) -> dict[str, Any]:
        """Return the stack's deployment (resources, pending operations) as the engine keeps it."""
        done = self._pulumi(["stack", "export", "--stack", self._stack])
        return dict(json.loads(done.stdout)["deployment"] or {})

    def _search_path(self) -> list[str]:
        first = [str(self._paths.root / ".venv" / "bin"), str(self._paths.bin)]
        return [*first, *(folder for folder in os.get_exec_path() if folder not in first)]

    def _command(self, command: str, arguments: Sequence[str]) -> list[str]:
        configuration = ["--config-file", str(self._configuration_file())]
        return [self._executable(), command, "--stack", self._stack, *configuration, *arguments]

    def _environment(self) -> dict[str, str]:
        return {**os.environ, **self.variables()}

    def _executable(self) -> str:
        found = shutil.which("pulumi", path=self.variables()["PATH"])
        if found is None:
            raise EngineError("no `pulumi` command is installed or built yet; run `make up` first")
        return found

    def _pulumi(self, arguments: Sequence[str], folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [self._executable(), *arguments],
            cwd=folder or self._paths.root,
            env=self._environment(),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode != 0:
            raise EngineError(f"`pulumi {' '.join(arguments)}` failed:\n{(done.stderr or done.stdout).strip()}")
        return done

    def _tracked_configuration(self) -> Path:
        return self._paths.root / f"Pulumi.{self._stack}.yaml"

    def _configuration_file(self) -> Path:
        return self._paths.state / "config" / f"Pulumi.{self._stack}.yaml"

    def _write_configuration(self) -> None:
        """Copy the stack's settings beside the state, with the salt that would else be written into the checkout."""
        text = self._tracked_configuration().read_text()
        copy = self._configuration_file()
        salt = _encryption_salt(copy.read_text()) if copy.exists() else None
        if salt is not None and _encryption_salt(text) is None:
            text = f"{text.rstrip()}\nencryptionsalt: {salt}\n"
        document = yaml.safe_load(text) or {}
        config = document.setdefault("config", {})
        files = {"artifacts": str(self._paths.mirror), "verify": False}
        config["mlbatch:mirror"] = {**files, **(config.get("mlbatch:mirror") or {})}
        copy.write_text(yaml.safe_dump(document, sort_keys=False))

    def _stacks(self) -> set[str]:
        listed = json.loads(self._pulumi(["stack", "ls", "--json"]).stdout)
        return {str(entry["name"]).split("/")[-1] for entry in listed}

    def _create(self) -> None:
        with tempfile.TemporaryDirectory(dir=self._configuration_file().parent) as folder:
            project = Path(folder)
            shutil.copy(self._paths.root / "Pulumi.yaml", project)
            shutil.copy(self._tracked_configuration(), project)
            self._pulumi(["stack", "init", self._stack, "--no-select"], folder=project)
            os.replace(project / self._tracked_configuration().name, self._configuration_file())

    def _passphrase_file(self) -> Path:
        file = self._paths.state / "passphrase"
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            # Made whole under another name first; NamedTemporaryFile gives it mode 0600.
            with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False) as stream:
                stream.write(secrets.token_urlsafe(32))
            os.replace(stream.name, file)
        return file

    def _link_installed_plugins(self) -> None:
        """Let the engine see the plugins that the user has installed, though its home folder is another one."""
        installed = _user_plugins()
        link = self._paths.pulumi_home / "plugins"
        if installed.is_dir() and not link.exists():
            link.symlink_to(installed)

    def _free_stale_lock(self) -> None:
        """Remove a lock whose engine, on this host, is dead; a live engine's lock is an error."""
        for file in (self._paths.pulumi_state / ".pulumi" / "locks").glob(f"**/{self._stack}/*.json"):
            lock = json.loads(file.read_text())
            if lock.get("hostname") != socket.gethostname() or _alive(int(lock["pid"])):
                raise EngineError(
                    f"stack {self._stack!r} is being changed by process {lock['pid']} of {lock['username']} on "
                    f"{lock['hostname']} since {lock['timestamp']}; wait for it, or stop it, and run the command again"
                )
            file.unlink()

    def _recover(self) -> None:
        """Take over what a killed engine had created; see `emulator.recovery`."""
        deployment = self.export()
        pending = {operation["resource"]["urn"] for operation in deployment.get("pending_operations") or ()}
        if not self._marker().exists() and not pending:
            return
        planned = self._planned_creations()
        in_azure = recovery.handed_back(planned, azure.orphans(self._paths))
        kubeconfig = self._kubeconfig.read_text()
        if in_azure:
            self._import(recovery.adopted(deployment, planned, in_azure, kubeconfig))
            planned = self._planned_creations()
        found = recovery.lost(planned, recovery.Objects(self._client()), since=self._update_began(), pending=pending)
        self._import(recovery.adopted(self.export(), planned, found, kubeconfig))
        self._marker().unlink(missing_ok=True)

    def _planned_creations(self) -> list[recovery.State]:
        shown = self.capture("preview", ["--json", "--refresh=false", "--non-interactive"])
        if shown.returncode != 0:
            raise EngineError(f"cannot preview the stack to recover it:\n{_diagnostics(shown)}")
        return recovery.creations(json.loads(shown.stdout)["steps"])

    def _update_began(self) -> datetime | None:
        """Return when the update began whose marker stands, None where none does."""
        if not self._marker().exists():
            return None
        return datetime.fromtimestamp(self._marker().stat().st_mtime, UTC)

    def _import(self, deployment: Mapping[str, Any]) -> None:
        with tempfile.NamedTemporaryFile("w", dir=self._paths.state, suffix=".json") as file:
            json.dump({"version": 3, "deployment": deployment}, file)
            file.flush()
            self._pulumi(["stack", "import", "--stack", self._stack, "--file", file.name])

    def _marker(self) -> Path:
        """The file that stands while an update runs, and stays when it was killed."""
        return self._paths.state / "run" / f"{self._stack}.updating"

    def _client(self) -> kubernetes.dynamic.DynamicClient:
        configuration = kubernetes.config.new_client_from_config(str(self._kubeconfig))
        return kubernetes.dynamic.DynamicClient(configuration)


@contextmanager
def stand_in_provider(paths: Paths, kubeconfig: Path) -> Iterator[Mapping[str, int]]:
    """Serve the stand-in Kubernetes provider for as long as the context lasts; yields its port by plugin.

    kubeconfig: of the one cluster that it serves.
    For a cluster that the user brings; beside the local cluster the supervisor serves the provider.
    """
    port = _free_port()
    configuration = kubernetes.client.Configuration()
    kubernetes.config.load_kube_config(str(kubeconfig), client_configuration=configuration)
    command = [str(paths.root / ".venv" / "bin" / "python"), "-m", "emulator.provider", "--port", str(port)]
    command += ["--api-server", configuration.host]
    paths.logs.mkdir(parents=True, exist_ok=True)
    with open(paths.logs / "provider.log", "ab") as log:
        process = subprocess.Popen(command, cwd=paths.root, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        _await_port(port, process)
        yield {KUBERNETES: port}
    finally:
        process.terminate()
        process.wait()


def official_provider_installed() -> bool:
    """Return whether the engine can find the official Kubernetes provider plugin by itself."""
    cached = any(_user_plugins().glob("resource-kubernetes-v*"))
    return cached or shutil.which(PROVIDER_PLUGIN) is not None


def require_stack(paths: Paths, stack: str) -> None:
    """Raise EngineError when the checkout has no Pulumi.<stack>.yaml; the message names the stacks it has."""
    if not (paths.root / f"Pulumi.{stack}.yaml").exists():
        known = sorted(file.name.split(".")[1] for file in paths.root.glob("Pulumi.*.yaml"))
        raise EngineError(
            f"there is no stack {stack!r}: Pulumi.{stack}.yaml does not exist. "
            f"Stacks of this checkout: {', '.join(known)}. Choose one with STACK=<name>, or write that file."
        )


def stack_kubeconfig(paths: Paths, stack: str) -> Path | None:
    """Return the kubeconfig that the stack's own settings name, or None when they name none."""
    file = paths.root / f"Pulumi.{stack}.yaml"
    if not file.exists():
        return None
    settings = (yaml.safe_load(file.read_text()) or {}).get("config") or {}
    section = settings.get("mlbatch:kubernetes") or {}
    named = section.get("kubeconfig") if isinstance(section, Mapping) else None
    return (paths.root / Path(named).expanduser()).resolve() if isinstance(named, str) else None


def _user_plugins() -> Path:
    return Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi") / "plugins"


def _encryption_salt(text: str) -> str | None:
    salt = (yaml.safe_load(text) or {}).get("encryptionsalt")
    return str(salt) if salt else None


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _diagnostics(done: subprocess.CompletedProcess[str]) -> str:
    try:
        messages = [item["message"] for item in json.loads(done.stdout).get("diagnostics") or ()]
    except ValueError:
        messages = [done.stdout]
    return "\n".join(part.strip() for part in [*messages, done.stderr] if part.strip())


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _await_port(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        if process.poll() is not None:
            raise EngineError("the stand-in Kubernetes provider did not start; see provider.log in the state folder")
        with socket.socket() as probe:
            probe.settimeout(0.1)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    process.terminate()
    raise EngineError(f"the stand-in Kubernetes provider does not listen on port {port} after 20 s")
