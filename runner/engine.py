"""Run the Pulumi command on a checkout's stacks in a local environment.

Two things differ from a plain `pulumi`: its environment and its copy of the stack's settings. They set the state
folder, the providers, the cluster and the upstream files. The program is the same everywhere. This module can change
only the local environment: see `environment.INHERITED` and `settings.localise`.
"""

import contextlib
import json
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from runner import settings
from runner.environment import Environment, inherited, past_proxies
from runner.file_backend import FileBackend, LockedError
from runner.files import UMASK, link_to, private_folder, write_private
from runner.placeholders import placeholder
from runner.stack_file import ConfigPath, StackFile, spelled

UPDATES: Final = ("up", "destroy", "refresh")
"""Commands that write the stack's state."""

WITHOUT_LOOKING: Final = "--refresh=false"
"""The option that makes a command use the stack's state without a refresh."""

_REACHES_ALL: Final = 1.0
"""Seconds that a signal to a process group needs to reach all of its processes."""
_ONE_SIGNAL: Final = 3.0
"""Seconds during which further SIGTERMs count as the same one, because `make` passes on its group's signals."""


_WITHOUT_CHECKPOINTS: Final = {"PULUMI_EXPERIMENTAL": "true", "PULUMI_SKIP_CHECKPOINTS": "true"}


class EngineError(Exception):
    """The engine failed, or a person must repair its state. The message gives the fix."""


class Engine:
    """One stack of a checkout under the real Pulumi command.

    root: the checkout. state: the folder for the engine's state, copy of the settings and passphrase.
    environment: the engine's environment.
    """

    def __init__(self, root: Path, state: Path, stack: str, environment: Environment) -> None:
        self.stack = stack
        self.environment = environment
        self._root = root
        self._state = state
        self.cancelled = False
        """Whether an interrupt or a SIGTERM stopped the last process."""

    @property
    def configuration(self) -> Path:
        """The copy of the stack's settings that the engine reads."""
        return self._state / "config" / f"Pulumi.{self.stack}.yaml"

    @property
    def state_file(self) -> Path:
        """The stack's state in the engine's file backend."""
        return self._files.state

    @property
    def changing(self) -> str | None:
        """The engine that changes the stack now, and its start, from its lock. None if no engine does."""
        return self._files.held()

    @property
    def was_killed_first(self) -> bool:
        """Whether the stack's first update was killed. The state does not have the resources that it created."""
        return self._marker.exists() and not self._files.has_resources

    def variables(self) -> dict[str, str]:
        """Return the engine's own environment variables, without the inherited ones."""
        variables = {
            **self.environment.variables,
            "PATH": os.pathsep.join(self._search_path()),
            "KUBECONFIG": str(self.environment.kubeconfig),
            "PULUMI_BACKEND_URL": FileBackend.url(self._backend),
            "PULUMI_HOME": str(self._home),
            "PULUMI_CONFIG_PASSPHRASE_FILE": str(self._passphrase_file()),
            "PULUMI_FALLBACK_TO_STATE_SECRETS_MANAGER": "true",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            # Plugins from outside the local environment could change a real cluster or cloud.
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_IGNORE_AMBIENT_PLUGINS": "true",
            # The default is four per processor. Most operations here wait for a controller, not for a processor.
            "PULUMI_PARALLEL": "32",
            # Otherwise the backend writes the whole state twice for each resource.
            "PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS": "true",
        }
        if self.environment.providers:
            attached = [f"{plugin}:{port}" for plugin, port in self.environment.providers.items()]
            variables["PULUMI_DEBUG_PROVIDERS"] = ",".join(attached)
        return variables

    def exports(self) -> str:
        """Return shell lines that make a plain `pulumi` work like the make targets, after `prepare`."""
        variables = {**self.variables(), **past_proxies(), "PULUMI_OPTION_CONFIG_FILE": str(self.configuration)}
        # A variable of the user in addition to a credential (OS_CLOUD) would select another cloud.
        families = ("PULUMI_", *{f"{name.partition('_')[0]}_" for name in self.environment.variables})
        others = sorted(name for name in os.environ if name.startswith(families) and name not in variables)
        lines = [f"unset {name}" for name in others]
        lines += [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
        return "".join(f"{line}\n" for line in lines)

    def prepare(self) -> tuple[str, ...]:
        """Create the stack if it does not exist, and copy its settings.

        Returns the keys of secrets that get made-up values, because another backend encrypted the stack's own. Raises
        EngineError if Pulumi.<stack>.yaml does not exist, the state is not complete, or the engine fails.
        """
        require_stack(self._root, self.stack)
        for folder in (self._state, self._backend, self._home, self.configuration.parent):
            private_folder(folder)
        self._link_plugins()
        if self._files.is_torn:
            raise EngineError(
                f"the state {self.state_file} is incomplete (was the disk full?). Free disk space, then create "
                f"this local environment again: make clean, then make up STACK={self.stack}"
            )
        # A stack that exists has both files. Ask the engine only if one is missing.
        if not (self.configuration.exists() and self.state_file.exists()) and self.stack not in self._stacks():
            self._create()
        return self._configure()

    def unlock(self) -> None:
        """Remove the locks of dead engines from the stack.

        Raises EngineError if the engine that holds a lock is alive, or on another host.
        """
        try:
            torn = self._files.unlock()
        except LockedError as holder:
            raise EngineError(
                f"stack {self.stack!r} is being changed {holder}; wait for it, or stop it, and run the command again. "
                "If you are sure that the engine no longer runs, for example on another host, remove its lock: "
                f"`pulumi cancel --stack {self.stack}` after `make env`"
            ) from None
        for file in torn:
            print(f"note: the lock {file} named no engine (was the disk full?); it is removed", file=sys.stderr)

    def run(self, command: str, arguments: Sequence[str] = ()) -> int:
        """Run `pulumi <command>` on the stack with the terminal attached; return its exit code."""
        return self.finish(self.start(command, arguments))

    def capture(self, command: str, arguments: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        """Run `pulumi <command>` on the stack. Return its output and exit code.

        Raises KeyboardInterrupt after the command has ended, if an interrupt or a SIGTERM stopped it.
        """
        with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as errors:
            process = self.start(command, arguments, stdin=subprocess.DEVNULL, stdout=printed, stderr=errors)
            code = self.finish(process)
            if self.cancelled:
                raise KeyboardInterrupt
            printed.seek(0)
            errors.seek(0)
            return subprocess.CompletedProcess(process.args, code, printed.read(), errors.read())

    def start(
        self, command: str, arguments: Sequence[str] = (), variables: Mapping[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[Any]:
        """Start `pulumi <command>` on the stack. Pass its process to `finish`.

        The engine's file backend writes the whole state twice for each change: 122 s for the first update of the dev
        stack, 28 s without. Runs that can be repeated from an empty state do not write it: the first update, and a
        destroy.
        """
        environment = {**self._environment(), **(variables or {})}
        if command in UPDATES:
            self.unlock()
            self._files.prune()
            first = command == "up" and not self._files.has_resources
            if first:
                private_folder(self._marker.parent)
                self._marker.touch()
            if first or command != "up":
                environment |= _WITHOUT_CHECKPOINTS
        line = [self._executable(), command, "--stack", self.stack, "--config-file", str(self.configuration)]
        return subprocess.Popen([*line, *arguments], cwd=self._root, env=environment, umask=UMASK, **options)

    def finish(self, process: subprocess.Popen[Any]) -> int:
        """Wait for a process of `start` and return its exit code.

        A terminal's interrupt reaches it too. A SIGTERM, for example of a cancelled pipeline, is passed on if only this
        process received it: the engine ends its current operation and writes its state. A second SIGTERM makes it stop
        at once and lose the state of that operation, so only a repeated signal sends it.
        """
        self.cancelled = False
        with _terminations(process) as passed_on:
            while True:
                try:
                    code = process.wait()
                    break
                except KeyboardInterrupt:
                    self.cancelled = True
        self.cancelled = self.cancelled or passed_on.is_set()
        if code >= 0:
            self._marker.unlink(missing_ok=True)
        return code

    def read_state(self, *, secrets: bool = False) -> dict[str, Any]:
        """Return the stack's deployment (resources, pending operations) from the engine's state.

        secrets: return them as plain text (`plaintext`, a JSON text), else encrypted.
        """
        shown = ["--show-secrets"] if secrets else []
        done = self._pulumi(["stack", "export", "--stack", self.stack, *shown])
        return dict(json.loads(done.stdout)["deployment"] or {})

    @property
    def _files(self) -> FileBackend:
        return FileBackend(self._backend, str(self._project()["name"]), self.stack)

    @property
    def _backend(self) -> Path:
        return self._state / "pulumi-state"

    @property
    def _home(self) -> Path:
        """PULUMI_HOME: workspaces and plugins are outside the user's home folder."""
        return self._state / "pulumi-home"

    @property
    def _marker(self) -> Path:
        """The file that remains after a killed first update."""
        return self._state / "run" / f"{self.stack}.creating"

    def _search_path(self) -> list[str]:
        first = [str(folder) for folder in (self._root / ".venv" / "bin", *self.environment.programs)]
        return [*first, *(folder for folder in os.get_exec_path() if folder not in first)]

    def _environment(self) -> dict[str, str]:
        return {**inherited(), **self.variables()}

    def _executable(self) -> str:
        found = shutil.which("pulumi", path=self.variables()["PATH"])
        if found is None:
            raise EngineError("no `pulumi` command is installed or built yet; run `make up` first")
        return found

    def _pulumi(self, arguments: Sequence[str], folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [self._executable(), *arguments],
            cwd=folder or self._root,
            env=self._environment(),
            umask=UMASK,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode != 0:
            raise EngineError(f"`pulumi {' '.join(arguments[:2])}` failed:\n{(done.stderr or done.stdout).strip()}")
        return done

    def _project(self) -> dict[str, Any]:
        return dict(yaml.safe_load((self._root / "Pulumi.yaml").read_text()))

    def _stacks(self) -> set[str]:
        listed = json.loads(self._pulumi(["stack", "ls", "--json"]).stdout)
        return {str(entry["name"]).split("/")[-1] for entry in listed}

    def _create(self) -> None:
        """Create the stack. The engine writes only the salt of the local passphrase into its file."""
        with tempfile.TemporaryDirectory(dir=self._state) as folder:
            project = Path(folder)
            shutil.copy(self._root / "Pulumi.yaml", project)
            self._pulumi(["stack", "init", self.stack, "--no-select"], folder=project)
            os.replace(project / self.configuration.name, self.configuration)

    def _configure(self) -> tuple[str, ...]:
        """Copy the stack's settings for the local environment, with the salt, which must not get into the checkout."""
        file = self._stack_file()
        before = StackFile(self.configuration.read_text() if self.configuration.exists() else "")
        salt = before.values.get("encryptionsalt")
        foreign: set[ConfigPath] = set()
        if self.environment.mirror is not None:
            foreign = set(settings.foreign_secrets(file, salt) if self.environment.reads_secrets else file.secrets)
            settings.localise(file, self._project(), self.environment.mirror)
            if self.environment.ssh_key is not None:
                settings.sign_in_with(file, self._project(), self.environment.ssh_key)
            if self.environment.disposable:
                settings.unprotect(file, self._project())
        absent = [path for path in file.secrets if path in foreign]
        if salt is not None and "encryptionsalt" not in file.values:
            file.put("encryptionsalt", salt)
        for path, ciphertext in self._stand_ins(absent, before.secrets, salt).items():
            file.put_secret(path, ciphertext)
        write_private(self.configuration, file.text())
        return tuple(map(spelled, absent))

    def _stack_file(self) -> StackFile:
        """Return the checkout's settings of the stack."""
        file = self._root / f"Pulumi.{self.stack}.yaml"
        try:
            text = file.read_text()
            return StackFile(text if self.environment.mirror is None else settings.filled(text))
        except ValueError as error:
            raise EngineError(f"{file}: {error}") from None

    def _stand_ins(
        self, paths: Sequence[ConfigPath], known: Mapping[ConfigPath, str], salt: str | None
    ) -> Mapping[ConfigPath, str]:
        """Return a ciphertext of the local passphrase for each path: the known one, else one of a placeholder."""
        new = [path for path in paths if path not in known]
        found = dict(zip(new, self._encrypted(list(map(placeholder, new)), salt), strict=True))
        return {path: known.get(path) or found[path] for path in paths}

    def _encrypted(self, texts: Sequence[str], salt: str | None) -> list[str]:
        """Return texts in the encrypted form of the stack's settings. The engine encrypts them into a file."""
        if not texts:
            return []
        with tempfile.TemporaryDirectory(dir=self._state) as folder:
            file = Path(folder) / self.configuration.name
            write_private(file, yaml.safe_dump({"encryptionsalt": salt}))
            pairs = [f"--secret=text:{index}={text}" for index, text in enumerate(texts)]
            self._pulumi(["config", "set-all", "--stack", self.stack, "--config-file", str(file), *pairs])
            written = StackFile(file.read_text()).secrets
        return [written[f"text:{index}",] for index in range(len(texts))]

    def _passphrase_file(self) -> Path:
        file = self._state / "passphrase"
        if not file.exists():
            private_folder(file.parent)
            write_private(file, secrets.token_urlsafe(32))
        return file

    def _link_plugins(self) -> None:
        """Link the environment's official plugins for the engine, and no other plugins."""
        folder = self._home / "plugins"
        if folder.is_symlink():
            folder.unlink()
        private_folder(folder)
        plugins = {plugin.name: plugin for plugin in self.environment.plugins}
        for each in folder.iterdir():
            if each.is_symlink():
                each.unlink()
            elif each.name not in plugins and each.is_dir() and all(file.is_symlink() for file in each.iterdir()):
                shutil.rmtree(each)
        for name, plugin in plugins.items():
            # The engine rejects a link as a plugin's folder (Pulumi SDK, go/common/workspace/plugins.go, tryPlugin).
            linked = private_folder(folder / name)
            for file in plugin.iterdir():
                link_to(linked / file.name, file)


def stacks(root: Path) -> tuple[str, ...]:
    """Return the names of a checkout's stacks."""
    return tuple(sorted(file.name.split(".")[1] for file in root.glob("Pulumi.*.yaml")))


def require_stack(root: Path, stack: str) -> None:
    """Raise EngineError if the checkout has no Pulumi.<stack>.yaml. The message names its stacks."""
    if not (root / f"Pulumi.{stack}.yaml").exists():
        raise EngineError(
            f"stack {stack!r} does not exist: Pulumi.{stack}.yaml is missing. "
            f"Stacks of this checkout: {', '.join(stacks(root))}. Choose one with STACK=<name>, or create that file."
        )


@contextlib.contextmanager
def _terminations(process: subprocess.Popen[Any]) -> Iterator[threading.Event]:
    """Pass each SIGTERM of this process on once, for the length of the context. Yields whether one came."""
    came = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield came  # Python lets no other thread handle signals
        return
    with contextlib.ExitStack() as witnesses:
        witness, ignored_until = witnesses.enter_context(_witness()), 0.0

        def pass_on(number: int, frame: object) -> None:
            nonlocal witness, ignored_until
            if time.monotonic() < ignored_until:
                return
            ignored_until = time.monotonic() + _ONE_SIGNAL
            came.set()
            with contextlib.suppress(subprocess.TimeoutExpired):
                witness.wait(_REACHES_ALL)
            if witness.returncode != -signal.SIGTERM:
                process.send_signal(signal.SIGTERM)
            witness = witnesses.enter_context(_witness())

        before = signal.signal(signal.SIGTERM, pass_on)
        try:
            yield came
        finally:
            signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _witness() -> Iterator[subprocess.Popen[bytes]]:
    """Start a child that ends at a SIGTERM, to detect whether all processes of the group receive one.

    `timeout`, init systems and pipelines signal the whole group, so the engine has the signal already. The child
    ignores a terminal's interrupt and ends with this process.
    """
    child = subprocess.Popen(["sh", "-c", "trap '' INT; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        yield child
    finally:
        child.communicate()
