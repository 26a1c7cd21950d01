"""Runs the Pulumi command on a checkout's stacks in a local environment.

What differs from a plain `pulumi` is its environment and the copy of the stack's settings that it reads: which state
folder, which providers, which cluster, which files of upstream. The program is the same wherever it runs. Nothing here
can act on anything but the local environment: see `environment.INHERITED` and `settings.localised`.
"""

from __future__ import annotations

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
"""Has a command go by the stack's state, without a look at what has become of it."""

_REACHES_ALL: Final = 1.0
"""Seconds within which a signal that is sent to a whole group reaches all of it."""
_ONE_SIGNAL: Final = 3.0
"""Seconds within which further SIGTERMs are the same one: `make` passes on what its group has got, too."""


_WITHOUT_CHECKPOINTS: Final = {"PULUMI_EXPERIMENTAL": "true", "PULUMI_SKIP_CHECKPOINTS": "true"}


class EngineError(Exception):
    """The engine failed or its state needs a person; the message says what to do."""


class Engine:
    """One stack of a checkout under the real Pulumi command.

    root: the checkout. state: the folder for the engine's state, its copy of the settings, its passphrase.
    environment: what the engine finds around it.
    """

    def __init__(self, root: Path, state: Path, stack: str, environment: Environment) -> None:
        self.stack = stack
        self.environment = environment
        self._root = root
        self._state = state
        self.cancelled = False
        """Whether the last process was told to stop, by an interrupt or a SIGTERM."""

    @property
    def configuration(self) -> Path:
        """The copy of the stack's settings that the engine reads."""
        return self._state / "config" / f"Pulumi.{self.stack}.yaml"

    @property
    def state_file(self) -> Path:
        """The stack's state, as the engine's file backend keeps it."""
        return self._files.state

    @property
    def changing(self) -> str | None:
        """By whom the stack is being changed now, and since when, as its lock says; None where nobody changes it."""
        return self._files.held()

    @property
    def was_killed_first(self) -> bool:
        """Whether the stack's first update was killed: what that has created is not in the state."""
        return self._marker.exists() and not self._files.has_resources

    def variables(self) -> dict[str, str]:
        """Return the environment variables of the engine, without those that it inherits."""
        variables = {
            **self.environment.variables,
            "PATH": os.pathsep.join(self._search_path()),
            "KUBECONFIG": str(self.environment.kubeconfig),
            "PULUMI_BACKEND_URL": f"file://{self._backend}",
            "PULUMI_HOME": str(self._home),
            "PULUMI_CONFIG_PASSPHRASE_FILE": str(self._passphrase_file()),
            "PULUMI_FALLBACK_TO_STATE_SECRETS_MANAGER": "true",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            # A plugin that the local environment does not have could act on a real cluster or cloud.
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_IGNORE_AMBIENT_PLUGINS": "true",
            # Four for each processor by default; most operations here wait for a controller, not for a processor.
            "PULUMI_PARALLEL": "32",
            # Else the backend writes the whole state twice for each resource.
            "PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS": "true",
        }
        if self.environment.providers:
            attached = [f"{plugin}:{port}" for plugin, port in self.environment.providers.items()]
            variables["PULUMI_DEBUG_PROVIDERS"] = ",".join(attached)
        return variables

    def exports(self) -> str:
        """Return shell lines after which a plain `pulumi` does the same as the make targets, once `prepare` ran."""
        variables = {**self.variables(), **past_proxies(), "PULUMI_OPTION_CONFIG_FILE": str(self.configuration)}
        # One of the user's own beside those of a credential (OS_CLOUD) would lead to another cloud.
        families = ("PULUMI_", *{f"{name.partition('_')[0]}_" for name in self.environment.variables})
        others = sorted(name for name in os.environ if name.startswith(families) and name not in variables)
        lines = [f"unset {name}" for name in others]
        lines += [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
        return "".join(f"{line}\n" for line in lines)

    def prepare(self) -> tuple[str, ...]:
        """Make the stack usable: create it once, copy its settings.

        Returns the keys of secrets for which made-up values stand in, because the stack's own are encrypted for another
        backend. Raises EngineError when there is no Pulumi.<stack>.yaml, the state is not whole, or the engine fails.
        """
        require_stack(self._root, self.stack)
        for folder in (self._state, self._backend, self._home, self.configuration.parent):
            private_folder(folder)
        self._link_plugins()
        if self._files.is_torn:
            raise EngineError(
                f"the state {self.state_file} is not whole, as after a full disk. Make room, then start this local "
                f"environment again from nothing: make clean, then make up STACK={self.stack}"
            )
        # Of a stack that was made there are both files; only where one is missing the engine is asked.
        if not (self.configuration.exists() and self.state_file.exists()) and self.stack not in self._stacks():
            self._create()
        return self._configure()

    def unlock(self) -> None:
        """Free the stack from the locks of dead engines.

        Raises EngineError when the engine that holds it is alive, or of another host.
        """
        try:
            torn = self._files.unlock()
        except LockedError as holder:
            raise EngineError(
                f"stack {self.stack!r} is being changed {holder}; wait for it, or stop it, and run the command again. "
                "Only where that engine is gone for certain, as one of another host may be, take its lock away: "
                f"`pulumi cancel --stack {self.stack}` after `make env`"
            ) from None
        for file in torn:
            print(f"note: the lock {file} named no engine, as after a full disk; it is removed", file=sys.stderr)

    def run(self, command: str, arguments: Sequence[str] = ()) -> int:
        """Run `pulumi <command>` on the stack with the terminal attached; return its exit code."""
        return self.finish(self.start(command, arguments))

    def capture(self, command: str, arguments: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        """Run `pulumi <command>` on the stack and return what it printed and its exit code.

        Raises KeyboardInterrupt where it was told to stop, by an interrupt or a SIGTERM, once it has ended.
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
        """Start `pulumi <command>` on the stack; give its process to `finish`.

        The engine's file backend writes the whole state twice for each change: 122 s for the first update of the dev
        stack, 28 s without. What can be done again from nothing leaves that out: the first update, and a destroy.
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

        A terminal's interrupt reaches it too. A SIGTERM, as of a pipeline that is cancelled, is passed on where it has
        reached this process alone: the engine ends what it is doing and writes its state. It gives up, and loses the
        state of what it was doing, at a second one, which only somebody who repeats it sends.
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
        """Return the stack's deployment (resources, pending operations) as the engine keeps it.

        secrets: as plain text (`plaintext`, a JSON text), else encrypted.
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
        """PULUMI_HOME: workspaces and plugins stay out of the user's home folder."""
        return self._state / "pulumi-home"

    @property
    def _marker(self) -> Path:
        """The file that stays when a first update was killed."""
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
        """Create the stack; what the engine writes into its file is the salt of the local passphrase."""
        with tempfile.TemporaryDirectory(dir=self._state) as folder:
            project = Path(folder)
            shutil.copy(self._root / "Pulumi.yaml", project)
            self._pulumi(["stack", "init", self.stack, "--no-select"], folder=project)
            os.replace(project / self.configuration.name, self.configuration)

    def _configure(self) -> tuple[str, ...]:
        """Copy the stack's settings, for the local environment, with the salt that would else go into the checkout."""
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
            return StackFile(file.read_text())
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
        """Return texts as the stack's settings hold secrets. The engine encrypts what it is to write into a file."""
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
        """Let the engine see the official plugins of the environment, and no other."""
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
            # The engine takes no link for a plugin's folder (Pulumi SDK, go/common/workspace/plugins.go, tryPlugin).
            linked = private_folder(folder / name)
            for file in plugin.iterdir():
                link_to(linked / file.name, file)


def stacks(root: Path) -> tuple[str, ...]:
    """Return the names of a checkout's stacks."""
    return tuple(sorted(file.name.split(".")[1] for file in root.glob("Pulumi.*.yaml")))


def require_stack(root: Path, stack: str) -> None:
    """Raise EngineError when the checkout has no Pulumi.<stack>.yaml; the message names the stacks it has."""
    if not (root / f"Pulumi.{stack}.yaml").exists():
        raise EngineError(
            f"there is no stack {stack!r}: Pulumi.{stack}.yaml does not exist. "
            f"Stacks of this checkout: {', '.join(stacks(root))}. Choose one with STACK=<name>, or write that file."
        )


@contextlib.contextmanager
def _terminations(process: subprocess.Popen[Any]) -> Iterator[threading.Event]:
    """Have each SIGTERM of this process reach another once, for the length of the context; tell whether one came."""
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
    """Start a child that ends with a SIGTERM and does nothing: where all processes of a group get one, it does, too.

    So `timeout`, an init system and pipelines send it, and the engine has it already then. A terminal's interrupt is
    ignored, and the child ends with this process.
    """
    child = subprocess.Popen(["sh", "-c", "trap '' INT; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        yield child
    finally:
        child.communicate()
