"""Builds the command line tools of the local environment from their Go modules, once, into the user's cache.

Each folder of `emulator/tools/` is a module that pins one set of tools in `go.mod` and `go.sum` (`modules.yaml`). Tools
with common libraries share a module, so that Go compiles each library once. The folder of a built tool is named after
the content of its module files, so only changed pins cause a build.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from emulator import archive
from emulator.archive import ArchiveError
from emulator.paths import Paths
from emulator.progress import Progress
from runner.files import link_to, locked, replacing

PULUMI_VERSION = "3.230.0"
"""The Pulumi command that is built if none is installed, and the oldest accepted installed one."""

KUBERNETES_VERSION = "1.35.4"
OPENSHIFT_KUBERNETES_VERSION = "1.34.2"

PULUMI_SDK_MODULE = "github.com/pulumi/pulumi/sdk/v3"

OLDEST_KUBECTL = (1, 27)
"""kubectl 1.27 is the first with kustomize 5, which renders the upstream manifests."""


class ToolchainError(Exception):
    """A tool cannot be built or found; the message contains the fix or the cause."""


@dataclass(frozen=True)
class Tool:
    """One executable: its file name, its Go package, and its linker settings (`-X` values)."""

    name: str
    package: str
    variables: tuple[str, ...] = ()


@dataclass(frozen=True)
class Module:
    """Tools that are built from one `emulator/tools/<folder>/go.mod`, with its build tags."""

    folder: str
    tools: tuple[Tool, ...]
    tags: tuple[str, ...] = ()

    def need(self, *names: str) -> Need:
        """Return the tools with these names, or all of them without names."""
        return Need(self, tuple(tool for tool in self.tools if not names or tool.name in names))


@dataclass(frozen=True)
class Need:
    """Tools and their module."""

    module: Module
    tools: tuple[Tool, ...]


def _module(folder: str, found: Mapping[str, Any]) -> Module:
    tools = tuple(_tool(name, each) for name, each in found.get("tools", {}).items())
    return Module(folder, tools, tuple(found.get("tags", ())))


def _tool(name: str, found: str | Mapping[str, Any]) -> Tool:
    if isinstance(found, str):
        return Tool(name, found)
    versions = {"pulumi": PULUMI_VERSION, "kubernetes": KUBERNETES_VERSION, "openshift": OPENSHIFT_KUBERNETES_VERSION}
    return Tool(name, found["package"], tuple(each.format(**versions) for each in found["variables"]))


_MODULES = Path(__file__).resolve().parent / "tools"
MODULES = {
    folder: _module(folder, found) for folder, found in yaml.safe_load((_MODULES / "modules.yaml").read_text()).items()
}
"""All modules, by folder."""
ALERTMANAGER = MODULES["alertmanager"]
BEFORE = MODULES["before"]
CHARTS = MODULES["charts"]
CORE = MODULES["core"]
DEFINITIONS = MODULES["definitions"]
KUBERNETES_1_34 = MODULES["kubernetes-1.34"]
KUBERNETES_1_36 = MODULES["kubernetes-1.36"]
KUEUE = MODULES["kueue"]
KUEUE_0_18 = MODULES["kueue-0.18"]
LANGUAGE_HOST = MODULES["language"]
OLM = MODULES["olm"]
OPENDATAHUB = MODULES["opendatahub"]
OPENDATAHUB_KUEUE = MODULES["opendatahub-kueue"]
PROMETHEUS = MODULES["prometheus"]
RELAY = MODULES["relay"]

MIRROR = (CORE.need("kubectl"),)
"""Renders the mirror of upstream's files."""
CLUSTER = (
    CORE.need(),
    KUBERNETES_1_36.need("kwok"),
    KUEUE.need(),
    KUBERNETES_1_34.need("scheduler-plugins-scheduler", "scheduler-plugins-controller"),
    LANGUAGE_HOST.need(),
    RELAY.need(),
)
"""The engine and a plain cluster."""
JOB_OPERATORS = (
    KUBERNETES_1_36.need("trainer", "jobset", "training-operator"),
    KUBERNETES_1_34.need("kuberay-operator"),
)
"""Operators that create the pods of PyTorch's and Ray's kinds."""
OPERATOR_HUB = (OLM.need(), OPENDATAHUB.need(), OPENDATAHUB_KUEUE.need(), KUEUE_0_18.need())
"""Operators of a local OpenShift with a catalog; built only for stacks that select it."""
MONITORING = (PROMETHEUS.need(), ALERTMANAGER.need(), KUBERNETES_1_36.need("kube-state-metrics"))
"""Tools that test alerts and dashboards. The cluster does not need them."""
RELEASED = (*CLUSTER, *JOB_OPERATORS, KUBERNETES_1_34.need())
"""The tools in a release's archive: all that `make up` needs for the shipped stacks."""
TESTED = (*RELEASED, *MONITORING)
"""The tools of `make test`, without OpenStack."""

EXEC_SCRIPT = "pulumi-language-python-exec"
"""Script that the Python language host needs next to itself, from the SDK module of the command's version."""
DYNAMIC_SCRIPT = "pulumi-resource-pulumi-python"
"""Script that the command needs for a program's dynamic providers, from the same module."""
_SCRIPTS = {EXEC_SCRIPT: "cmd", DYNAMIC_SCRIPT: "dist"}
"""Folders of the scripts in the module, below `python/`."""


def needs(*, openshift: bool = False, operator_hub: bool = False, job_operators: bool = False) -> tuple[Need, ...]:
    """Return the tools of a local cluster.

    openshift: the cluster is an OpenShift.
    operator_hub: it installs operators from a catalog.
    job_operators: it runs operators of jobs.
    """
    more = JOB_OPERATORS if openshift or job_operators else ()
    own = (KUBERNETES_1_34.need(),) if openshift else ()
    return (*CLUSTER, *more, *own, *(OPERATOR_HUB if operator_hub else ()))


class Toolchain:
    """Provides tools in `paths.bin`: installed ones that are recent enough, else ones built from source."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    def missing(self, needs: Iterable[Need]) -> list[Need]:
        """Return the tools that are not built yet, by module."""
        return self._unbuilt(_without(needs, self._installed()))

    def install(self, needs: Iterable[Need], progress: Progress) -> None:
        """Install missing tools, and link all tools into `paths.bin`.

        Uses the pinned archive of a release if it has missing tools. Builds the rest, with one progress step for each
        module. Raises ToolchainError if Go is missing or too old, or a build fails.
        """
        installed = self._installed()
        needs = _without(needs, installed)
        self._take(needs, progress)
        missing = self._unbuilt(needs)
        if missing:
            self._check_go({need.module for need in missing})
        for need in missing:
            names = ", ".join(tool.name for tool in need.tools)
            with progress.further_step(f"building {names} (once; kept in the cache)"):
                self.build(need)
        self._link(needs)
        for name in installed:
            (self._paths.bin / name).unlink(missing_ok=True)

    def module_folder(self, module: Module, path: str) -> Path:
        """Return Go's source folder of module `path`, in the version that `module` pins."""
        shown = self._go(module, ["list", "-m", "-f", "{{.Dir}}", path]).strip()
        if not shown:
            self._go(module, ["mod", "download", path])
            shown = self._go(module, ["list", "-m", "-f", "{{.Dir}}", path]).strip()
        return Path(shown)

    def _installed(self) -> list[str]:
        """Return the names of tools that are not built, because the user's own commands are used."""
        pulumi = ("pulumi", "pulumi-language-python", *_SCRIPTS) if installed_pulumi(self._paths.cache) else ()
        return [*pulumi, *(("kubectl",) if installed_kubectl(self._paths.cache) else ())]

    def _take(self, needs: Iterable[Need], progress: Progress) -> None:
        """Install the pinned archive if it has missing tools."""
        found = archive.pinned(_MODULES / "archive.yaml")
        missing = {self.folder(need.module).name for need in self._unbuilt(needs)}
        if found is not None and missing & {*found.folders}:
            with progress.further_step("downloading the release's tools"):
                try:
                    found.take(self._paths.cache / "tools")
                except ArchiveError as error:
                    progress.note(f"{error}; building the missing tools instead")

    def pack(self, file: Path, progress: Progress) -> str:
        """Build all tools of a release's archive, write the archive, and return its entry for `archive.yaml`.

        Raises ToolchainError if a build fails.
        """
        for need in self._unbuilt(RELEASED):
            with progress.further_step(f"building {need.module.folder}"):
                self.build(need)
        folders = {self.folder(need.module) for need in RELEASED}
        tools = {self.folder(need.module) / tool.name for need in RELEASED for tool in need.tools}
        with progress.further_step(f"packing {len(tools)} tools"):
            digest = archive.pack(tools, file)
        lines = [f"{archive.here()}:", "  url: <address>", f"  sha256: {digest}", "  folders:"]
        return "\n".join([*lines, *(f"    - {folder.name}" for folder in sorted(folders))])

    def _unbuilt(self, needs: Iterable[Need]) -> list[Need]:
        wanted: dict[Module, dict[str, Tool]] = {}
        for need in needs:
            wanted.setdefault(need.module, {}).update({tool.name: tool for tool in need.tools})
        built = {module: {file.name for file in self.folder(module).glob("*")} for module in wanted}
        whole = {module: Need(module, tuple(tools.values())) for module, tools in wanted.items()}
        return [left for module, names in built.items() for left in _without([whole[module]], names)]

    def folder(self, module: Module) -> Path:
        """Return the folder of the built tools of a module."""
        source = _MODULES / module.folder
        digest = hashlib.sha256()
        for file in sorted(file for pattern in ("go.mod", "go.sum", "*.go") for file in source.rglob(pattern)):
            digest.update(file.read_bytes())
        for part in (*module.tools, *module.tags):
            digest.update(repr(part).encode())
        return self._paths.cache / "tools" / f"{module.folder}-{digest.hexdigest()[:16]}"

    def build(self, need: Need) -> None:
        """Build tools of one module in one run of Go, so that common packages compile once. Raises ToolchainError."""
        folder = self.folder(need.module)
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / ".lock"):
            for left in folder.glob("tmp*"):  # from a killed build
                shutil.rmtree(left)
            tools = [tool for tool in need.tools if not (folder / tool.name).exists()]
            if not tools:
                return
            flags = ["-ldflags=-s -w"]
            for tool in tools:
                if tool.variables:
                    values = " ".join(f"-X {variable}" for variable in tool.variables)
                    flags.append(f"-ldflags={tool.package}=-s -w {values}")
            tags = ["-tags", ",".join(need.module.tags)] if need.module.tags else []
            packages = [tool.package for tool in tools]
            options = ["-trimpath", "-buildvcs=false", *tags, *flags]
            with tempfile.TemporaryDirectory(dir=folder) as unfinished:
                self._go(need.module, ["build", *options, "-o", f"{unfinished}/", *packages])
                for tool in tools:
                    os.replace(Path(unfinished) / _executable(tool.package), folder / tool.name)

    def _link(self, needs: Iterable[Need]) -> None:
        wanted = {tool.name: self.folder(need.module) / tool.name for need in needs for tool in need.tools}
        if "pulumi" in wanted:
            wanted |= self._bundled(wanted["pulumi"].parent, wanted["pulumi-language-python"])
        self._paths.bin.mkdir(parents=True, exist_ok=True)
        for name, target in wanted.items():
            link_to(self._paths.bin / name, target)

    def _bundled(self, folder: Path, language_host: Path) -> dict[str, Path]:
        """Put the Python language host and its scripts next to the command, like in a release."""
        bundled = {name: folder / name for name in (language_host.name, *_SCRIPTS)}
        with locked(folder / ".lock"):
            for name, target in bundled.items():
                if not target.exists():
                    source = language_host if name == language_host.name else self._script(name)
                    with replacing(target) as unfinished:
                        shutil.copyfile(source, unfinished)
                        unfinished.chmod(0o755)
        return bundled

    def _script(self, name: str) -> Path:
        return self.module_folder(CORE, PULUMI_SDK_MODULE) / "python" / _SCRIPTS[name] / name

    def _check_go(self, modules: Iterable[Module]) -> None:
        wanted = max(_go_directive(_MODULES / module.folder / "go.mod") for module in modules)
        text = ".".join(str(part) for part in wanted)
        go = shutil.which("go")
        if go is None:
            raise ToolchainError(
                f"Go is needed to build the local tools and is not on PATH. Install Go {text} or later"
            )
        shown = subprocess.run([go, "version"], capture_output=True, text=True, check=False).stdout
        found = _version(shown)
        if found is None or found < wanted:
            raise ToolchainError(f"Go {text} or later is needed to build the local tools; found: {shown.strip()}")

    def _go(self, module: Module, arguments: Sequence[str]) -> str:
        environment = {**os.environ, "GOFLAGS": "-mod=readonly", "GOWORK": "off", "CGO_ENABLED": "0"}
        if shutil.which("go") is None:
            self._check_go([module])
        command = ["go", *arguments]
        done = subprocess.run(
            command,
            cwd=_MODULES / module.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode != 0:
            tail = "\n".join(done.stderr.strip().splitlines()[-15:])
            is_download = "://" in tail or "GOPROXY" in tail
            hint = "Check that the Go module proxy can be reached (`go env GOPROXY`). " if is_download else ""
            raise ToolchainError(
                f"`{' '.join(command)}` failed in emulator/tools/{module.folder}:\n{tail}\n"
                f"{hint}After the fix, run the command again: built tools are kept."
            )
        return done.stdout


def _without(needs: Iterable[Need], names: Collection[str]) -> list[Need]:
    found = [Need(need.module, tuple(tool for tool in need.tools if tool.name not in names)) for need in needs]
    return [need for need in found if need.tools]


def _executable(package: str) -> str:
    """Return Go's file name for the executable of a package: its last element that is not a version."""
    *_, parent, last = package.split("/")
    return parent if re.fullmatch(r"v\d+", last) else last


def pinned_version(module: Module, path: str) -> str:
    """Return the version of the Go module `path` that `module` pins, such as `v0.15.2`."""
    found = re.search(rf"^\s*{re.escape(path)} (\S+)", (_MODULES / module.folder / "go.mod").read_text(), re.MULTILINE)
    if found is None:
        raise ToolchainError(f"emulator/tools/{module.folder}/go.mod does not pin {path}")
    return found[1]


def installed_pulumi(cache: Path) -> Path | None:
    """Return the user's own `pulumi` on PATH if it is recent and its Python language host is in its folder, else None.

    The engine is configured to ignore plugins in other folders of PATH.
    """
    command = _installed("pulumi", cache)
    if command is None or not (command.resolve().parent / "pulumi-language-python").exists():
        return None
    found = _version(_output([str(command), "version"]))
    wanted = tuple(int(part) for part in PULUMI_VERSION.split("."))
    return command if found is not None and found >= wanted else None


def installed_kubectl(cache: Path) -> Path | None:
    """Return the user's own `kubectl` on PATH if it is recent enough, else None."""
    command = _installed("kubectl", cache)
    if command is None:
        return None
    found = _version(_output([str(command), "version", "--client"]))
    return command if found is not None and found[:2] >= OLDEST_KUBECTL else None


def _installed(name: str, cache: Path) -> Path | None:
    """Return the first executable with this name on PATH, without those in the cache (`make env` puts them on PATH)."""
    for folder in os.get_exec_path():
        found = shutil.which(name, path=folder)
        if found is not None and not Path(found).resolve().is_relative_to(cache):
            return Path(found)
    return None


def without_cluster() -> dict[str, str]:
    """Return the environment for a tool that needs no cluster and must not connect to the user's cluster."""
    return {**os.environ, "KUBECONFIG": str(Path(__file__).with_name("nowhere.yaml"))}


def _output(command: Sequence[str]) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, env=without_cluster()
    )
    return done.stdout


def _version(text: str) -> tuple[int, ...] | None:
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", text)
    return tuple(int(part or 0) for part in found.groups()) if found else None


def _go_directive(go_mod: Path) -> tuple[int, ...]:
    found = re.search(r"^go (\S+)$", go_mod.read_text(), re.MULTILINE)
    version = _version(found.group(1)) if found else None
    if version is None:
        raise ToolchainError(f"{go_mod} has no `go` line")
    return version
