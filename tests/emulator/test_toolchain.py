"""Installed tools are used if they are recent enough. Built tools are not mistaken for installed ones."""

import shutil
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from emulator import toolchain
from emulator.paths import Paths
from emulator.progress import Progress
from emulator.toolchain import (
    Module,
    Need,
    Tool,
    Toolchain,
    ToolchainError,
    installed_kubectl,
    installed_pulumi,
    pinned_version,
)


def script(folder: Path, name: str, prints: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\necho '{prints}'\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH."""
    monkeypatch.setenv("PATH", str(tmp_path / "installed"))
    return tmp_path / "installed"


@pytest.mark.parametrize(("version", "used"), [("v3.230.0", True), ("v3.272.0", True), ("v3.229.9", False)])
def test_a_recent_pulumi_with_its_language_host_is_used_as_it_is(
    path: Path, tmp_path: Path, version: str, used: bool
) -> None:
    script(path, "pulumi", version)
    script(path, "pulumi-language-python", "")
    assert installed_pulumi(tmp_path / "cache") == (path / "pulumi" if used else None)


def test_a_pulumi_without_its_language_host_is_not_used(path: Path, tmp_path: Path) -> None:
    script(path, "pulumi", "v3.272.0")
    assert installed_pulumi(tmp_path / "cache") is None


def test_a_tool_that_was_built_is_not_an_installed_one(path: Path, tmp_path: Path) -> None:
    script(tmp_path / "cache", "kubectl", "Client Version: v1.34.2")
    path.mkdir()
    (path / "kubectl").symlink_to(tmp_path / "cache" / "kubectl")
    assert installed_kubectl(tmp_path / "cache") is None


def test_an_old_kubectl_is_not_used(path: Path, tmp_path: Path) -> None:
    script(path, "kubectl", "Client Version: v1.26.0")
    assert installed_kubectl(tmp_path / "cache") is None
    script(path, "kubectl", "Client Version: v1.27.1")
    assert installed_kubectl(tmp_path / "cache") == path / "kubectl"


def test_an_installed_kubectl_is_asked_for_its_version_without_a_cluster(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Google's dispatcher would connect to the user's cluster."""
    monkeypatch.setenv("KUBECONFIG", "/home/me/prod")
    script(path, "kubectl", "Client Version: v1.34.2")
    with (path / "kubectl").open("a") as file:
        file.write(f'echo "$KUBECONFIG" > {tmp_path}/asked\n')
    assert installed_kubectl(tmp_path / "cache") == path / "kubectl"
    asked = Path((tmp_path / "asked").read_text().strip())
    assert yaml.safe_load(asked.read_text())["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:1"


def test_without_go_the_message_names_the_version_to_install(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = Toolchain(Paths.of(root=tmp_path, state=tmp_path / "state", cache=tmp_path / "cache"))
    with pytest.raises(ToolchainError, match=r"Install Go 1\.26\.0 or later"):
        tools._check_go([toolchain.CORE])
    script(path, "go", "go version go1.24.1 linux/amd64")
    with pytest.raises(ToolchainError, match=r"Go 1\.26\.0 or later is needed .* found: go version go1\.24\.1"):
        tools._check_go([toolchain.CORE])


def test_a_changed_pin_builds_into_another_folder(tmp_path: Path) -> None:
    tools = Toolchain(Paths.of(root=tmp_path, state=tmp_path / "state", cache=tmp_path / "cache"))
    modules = (toolchain.CORE, toolchain.LANGUAGE_HOST, toolchain.RELAY, toolchain.KUBERNETES_1_34)
    folders = {tools.folder(module) for module in modules}
    assert len(folders) == 4
    changed = toolchain.Module("relay", (toolchain.Tool("relay", "./relay", ("a=b",)),))
    assert tools.folder(changed) not in folders


def test_the_engine_that_is_built_runs_providers_of_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release has two scripts next to the command: the language host's, and that of dynamic providers."""
    source = tmp_path / "sdk"
    script(source / "python" / "cmd", "pulumi-language-python-exec", "host")
    script(source / "python" / "dist", "pulumi-resource-pulumi-python", "provider")
    script(tmp_path / "built", "pulumi-language-python", "")
    monkeypatch.setattr(Toolchain, "module_folder", lambda *_: source)
    script(tmp_path / "beside", "pulumi", "")
    bundled = Toolchain(Paths.of())._bundled(tmp_path / "beside", tmp_path / "built" / "pulumi-language-python")
    assert "provider" in bundled["pulumi-resource-pulumi-python"].read_text()
    assert bundled["pulumi-resource-pulumi-python"].stat().st_mode & 0o777 == 0o755


def test_two_at_once_bundle_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = shutil.copyfile

    def slowly(source: Path, target: Path) -> None:
        copy(source, target)
        time.sleep(0.05)

    script(tmp_path / "sdk", "pulumi-language-python", "")
    script(tmp_path / "beside", "pulumi", "")
    monkeypatch.setattr(Toolchain, "_script", lambda *_: tmp_path / "sdk" / "pulumi-language-python")
    monkeypatch.setattr(shutil, "copyfile", slowly)
    with ThreadPoolExecutor(2) as pool:
        bundle = [
            pool.submit(
                Toolchain(Paths.of())._bundled, tmp_path / "beside", tmp_path / "sdk" / "pulumi-language-python"
            )
            for _ in range(2)
        ]
        assert bundle[0].result() == bundle[1].result()


def test_operators_of_jobs_are_had_without_an_openshift() -> None:
    more = {*toolchain.needs(job_operators=True)} - {*toolchain.CLUSTER}
    names = {tool.name for need in more for tool in need.tools}
    assert names == {"jobset", "kuberay-operator", "trainer", "training-operator"}


class Go:
    """Go, as the toolchain runs it: writes each package's executable into the folder of `-o`."""

    def __init__(self, executables: dict[str, str]) -> None:
        self.runs: list[list[str]] = []
        self._executables = executables

    def run(self, arguments: Sequence[str]) -> str:
        self.runs.append(list(arguments))
        folder = Path(arguments[arguments.index("-o") + 1])
        for package, executable in self._executables.items():
            if package in arguments:
                (folder / executable).write_text(package)
        return ""


BUILT = {
    "example.org/cmd": "cmd",
    "example.org/server/v3": "server",
    "example.org/cmd/operator.v1": "operator.v1",
    "./kubernetes": "kubernetes",
}
"""Packages, and Go's names for their executables (`go help build`, and `DefaultExecName` in cmd/go/internal/load)."""
SEVERAL = Module(
    "relay",
    (
        Tool("manager", "example.org/cmd", ("example.org/version.Version=v1", "example.org/version.Commit=abc")),
        Tool("etcd", "example.org/server/v3"),
        Tool("operator", "example.org/cmd/operator.v1"),
        Tool("pulumi-resource-kubernetes", "./kubernetes"),
    ),
    tags=("one", "two"),
)


@pytest.fixture
def go(monkeypatch: pytest.MonkeyPatch) -> Go:
    found = Go(BUILT)
    monkeypatch.setattr(Toolchain, "_go", lambda _, module, arguments: found.run(arguments))
    return found


@pytest.fixture
def tools(tmp_path: Path) -> Toolchain:
    return Toolchain(Paths.of(root=tmp_path, state=tmp_path / "state", cache=tmp_path / "cache"))


def test_the_tools_of_a_module_are_built_in_one_run_and_end_under_their_names(go: Go, tools: Toolchain) -> None:
    tools.build(Need(SEVERAL, SEVERAL.tools))
    (run,) = go.runs
    assert run[0] == "build"
    assert run[-4:] == list(BUILT)
    assert run[run.index("-tags") + 1] == "one,two"
    found = {file.name: file.read_text() for file in tools.folder(SEVERAL).iterdir() if file.name != ".lock"}
    assert found == {tool.name: tool.package for tool in SEVERAL.tools}


def test_linker_settings_reach_only_the_package_of_their_tool(go: Go, tools: Toolchain) -> None:
    """Go uses the last `-ldflags` whose pattern matches a package. One without a pattern matches all."""
    tools.build(Need(SEVERAL, SEVERAL.tools))
    (run,) = go.runs
    assert [each for each in run if each.startswith("-ldflags")] == [
        "-ldflags=-s -w",
        "-ldflags=example.org/cmd=-s -w -X example.org/version.Version=v1 -X example.org/version.Commit=abc",
    ]


def test_a_tool_that_is_built_is_not_built_again(go: Go, tools: Toolchain) -> None:
    manager, etcd, *_ = SEVERAL.tools
    tools.build(Need(SEVERAL, (etcd,)))
    tools.build(Need(SEVERAL, (manager, etcd)))
    tools.build(Need(SEVERAL, (manager, etcd)))
    assert [run[-1] for run in go.runs] == [etcd.package, manager.package]


def test_a_build_that_fails_leaves_no_tool_behind(go: Go, tools: Toolchain, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(tools: Toolchain, module: Module, arguments: Sequence[str]) -> str:
        go.run(arguments)
        raise ToolchainError("`go build` failed")

    monkeypatch.setattr(Toolchain, "_go", fail)
    with pytest.raises(ToolchainError):
        tools.build(Need(SEVERAL, SEVERAL.tools))
    assert [file.name for file in tools.folder(SEVERAL).iterdir()] == [".lock"]


def test_the_next_build_deletes_the_files_of_a_killed_one(go: Go, tools: Toolchain) -> None:
    (tools.folder(SEVERAL) / "tmp_1at1ynn").mkdir(parents=True)
    tools.build(SEVERAL.need("etcd"))
    assert {file.name for file in tools.folder(SEVERAL).iterdir()} == {".lock", "etcd"}


@pytest.mark.parametrize(
    ("said", "is_download"),
    [
        ("write /tmp/go-build1/b2/_pkg_.a: no space left on device", False),
        ('go: example.org@v1: Get "https://proxy.golang.org/x": dial tcp: no such host', True),
        ("go: example.org@v1: module lookup disabled by GOPROXY=off", True),
    ],
)
def test_the_module_proxy_is_named_where_it_may_be_the_cause(
    path: Path, tools: Toolchain, said: str, is_download: bool
) -> None:
    path.mkdir()
    (path / "go").write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    (path / "go").chmod(0o755)
    with pytest.raises(ToolchainError) as error:
        tools._go(toolchain.RELAY, ["build"])
    assert said in str(error.value)
    assert ("module proxy" in str(error.value)) is is_download


MODULES = [each for each in vars(toolchain).values() if isinstance(each, Module)]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.folder)
def test_no_two_tools_of_a_module_are_built_into_the_same_file(module: Module) -> None:
    executables = [toolchain._executable(tool.package) for tool in module.tools]
    assert len(set(executables)) == len(executables)


def test_the_mirror_needs_no_engine(path: Path, tools: Toolchain) -> None:
    assert tools.missing(toolchain.MIRROR) == [toolchain.CORE.need("kubectl")]


def test_an_installed_command_replaces_only_the_engine(path: Path, tools: Toolchain) -> None:
    script(path, "pulumi", "v3.272.0")
    script(path, "pulumi-language-python", "")
    script(path, "kubectl", "Client Version: v1.34.2")
    assert tools.missing(toolchain.MIRROR) == []
    core, *others = tools.missing(toolchain.CLUSTER)
    assert toolchain.LANGUAGE_HOST not in {need.module for need in others}
    assert {tool.name for tool in toolchain.CORE.tools} - {tool.name for tool in core.tools} == {"pulumi", "kubectl"}


def test_a_tool_that_is_built_is_not_missing(path: Path, tools: Toolchain) -> None:
    script(tools.folder(toolchain.CORE), "helm", "")
    names = {tool.name for tool in tools.missing(toolchain.CLUSTER)[0].tools}
    assert names == {tool.name for tool in toolchain.CORE.tools} - {"helm"}


def test_all_tools_of_a_module_are_one_step(
    path: Path, tools: Toolchain, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    built: list[Need] = []
    monkeypatch.setattr(Toolchain, "build", lambda _, need: built.append(need))
    monkeypatch.setattr(Toolchain, "_check_go", lambda *_: None)
    monkeypatch.setattr(Toolchain, "_bundled", lambda *_: {})
    tools.install(toolchain.CLUSTER, Progress(0))
    assert built == [*toolchain.CLUSTER]
    steps = [line for line in capsys.readouterr().err.splitlines() if line.startswith("[") and line.endswith("...")]
    assert [step.split()[0] for step in steps] == [f"[{n}/{n}]" for n in range(1, 1 + len(toolchain.CLUSTER))]
    assert all(tool.name in steps[0] for tool in toolchain.CORE.tools)


def test_the_links_of_a_mirror_are_added_to_those_of_the_engine(
    path: Path, tools: Toolchain, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Toolchain, "build", lambda *_: None)
    monkeypatch.setattr(Toolchain, "_check_go", lambda *_: None)
    monkeypatch.setattr(Toolchain, "_bundled", lambda *_: {})
    tools.install(toolchain.CLUSTER, Progress(0))
    tools.install(toolchain.MIRROR, Progress(0))
    links = {link.name for link in (tmp_path / "state" / "bin").iterdir()}
    assert links == {tool.name for need in toolchain.CLUSTER for tool in need.tools}
    script(path, "pulumi", "v3.272.0")
    script(path, "pulumi-language-python", "")
    tools.install(toolchain.CLUSTER, Progress(0))
    links -= {link.name for link in (tmp_path / "state" / "bin").iterdir()}
    assert links == {"pulumi", "pulumi-language-python"}


def test_the_versions_that_are_said_are_those_that_are_pinned() -> None:
    def said(tool: Tool) -> str:
        return tool.variables[0].partition("=")[2]

    core = {tool.name: tool for tool in toolchain.CORE.tools}
    assert said(core["helm"]) == pinned_version(toolchain.CORE, "helm.sh/helm/v3")
    assert said(core["pulumi"]) == pinned_version(toolchain.CORE, toolchain.PULUMI_SDK_MODULE)
    assert said(core["kubectl"]) == pinned_version(toolchain.CORE, "replace k8s.io/kubernetes => k8s.io/kubernetes")
    # Prometheus 3.7.3 is v0.307.3 as a module.
    major, minor, patch = map(int, said(toolchain.PROMETHEUS.tools[0]).split("."))
    pinned = pinned_version(toolchain.PROMETHEUS, "github.com/prometheus/prometheus")
    assert pinned == f"v0.{100 * major + minor}.{patch}"
    go = (toolchain._MODULES / "core" / "openstack" / "main.go").read_text()
    assert f'const version = "{version("pulumi-openstack")}"' in go
