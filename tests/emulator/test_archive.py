"""A release's tools are used if they are reachable and match their pin, and built otherwise."""

import functools
import gzip
import http.server
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from emulator import archive, toolchain
from emulator.paths import Paths
from emulator.progress import Progress
from emulator.toolchain import Need, Toolchain
from tests.unit.servers import serving


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Do not print."""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """Yield a folder, and its address on loopback."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(Quiet, directory=str(folder))
    with serving(handler) as port:
        yield folder, f"http://127.0.0.1:{port}/tools.tar.gz"


@pytest.fixture
def pin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of pins. The archive has the tools of one module, and no other module is needed."""
    modules = tmp_path / "modules"
    source = toolchain._MODULES / "relay"
    (modules / "relay" / "relay").mkdir(parents=True)
    for name in ("go.mod", "go.sum"):
        (modules / "relay" / name).write_bytes((source / name).read_bytes())
    monkeypatch.setattr(toolchain, "_MODULES", modules)
    monkeypatch.setattr(toolchain, "RELEASED", (toolchain.RELAY.need(),))
    return modules / "archive.yaml"


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the modules that were built from source."""
    modules: list[str] = []

    def build(tools: Toolchain, need: Need) -> None:
        modules.append(need.module.folder)
        tools.folder(need.module).mkdir(parents=True)
        for tool in need.tools:
            (tools.folder(need.module) / tool.name).write_text("built")

    monkeypatch.setattr(Toolchain, "build", build)
    monkeypatch.setattr(Toolchain, "_check_go", lambda *_: None)
    return modules


def machine(folder: Path) -> Toolchain:
    """Return the toolchain of a machine without built tools."""
    return Toolchain(Paths.of(root=folder, state=folder / "state", cache=folder / "cache"))


def released(folder: Path, file: Path, url: str, pin: Path) -> None:
    """Pack the archive like a release, and pin it with the command's output."""
    said = machine(folder).pack(file, Progress(0))
    pin.write_text(said.replace("<address>", url))


def test_the_pinned_archive_replaces_a_build(
    tmp_path: Path, served: tuple[Path, str], pin: Path, built: list[str]
) -> None:
    folder, url = served
    released(tmp_path / "release", folder / "tools.tar.gz", url, pin)
    built.clear()
    tools = machine(tmp_path / "user")
    tools.install(toolchain.RELEASED, Progress(0))
    assert built == []
    (relay,) = tools.folder(toolchain.RELAY).iterdir()
    assert (relay.name, relay.read_text(), relay.stat().st_mode & 0o777) == ("relay", "built", 0o755)
    assert [file.name for file in (tmp_path / "user" / "cache" / "tools").iterdir()] == [relay.parent.name]
    (folder / "tools.tar.gz").unlink()
    tools.install(toolchain.RELEASED, Progress(0))
    assert built == []


def changed(file: Path) -> None:
    file.write_bytes(gzip.compress(gzip.decompress(file.read_bytes()).replace(b"built", b"spied")))


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def page(file: Path) -> None:
    file.write_text("<html>Sign in</html>")


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (changed, "differs from its pin"),
        (cut, "cannot be downloaded"),
        (page, "cannot be downloaded: Not a gzipped file"),
        (Path.unlink, "cannot be downloaded: HTTP Error 404"),
    ],
)
def test_an_archive_that_is_not_the_pinned_one_is_refused_and_its_tools_are_built(
    tmp_path: Path,
    served: tuple[Path, str],
    pin: Path,
    built: list[str],
    capsys: pytest.CaptureFixture[str],
    harm: object,
    said: str,
) -> None:
    folder, url = served
    released(tmp_path / "release", folder / "tools.tar.gz", url, pin)
    built.clear()
    assert callable(harm)
    harm(folder / "tools.tar.gz")
    tools = machine(tmp_path / "user")
    tools.install(toolchain.RELEASED, Progress(0))
    assert built == ["relay"]
    assert said in capsys.readouterr().err
    assert (tools.folder(toolchain.RELAY) / "relay").read_text() == "built"
    assert len(list((tmp_path / "user" / "cache" / "tools").iterdir())) == 1


@pytest.mark.parametrize("field", ["platform", "folders"])
def test_an_archive_of_another_platform_or_other_pins_is_not_asked_for(
    tmp_path: Path, pin: Path, built: list[str], capsys: pytest.CaptureFixture[str], field: str
) -> None:
    released(tmp_path / "release", tmp_path / "tools.tar.gz", "http://127.0.0.1:1/", pin)
    found = yaml.safe_load(pin.read_text())[archive.here()]
    other = {"plan9-mips": found} if field == "platform" else {archive.here(): {**found, "folders": ["relay-0"]}}
    pin.write_text(yaml.safe_dump(other))
    built.clear()
    machine(tmp_path / "user").install(toolchain.RELEASED, Progress(0))
    assert built == ["relay"]
    assert "downloading" not in capsys.readouterr().err


def test_the_same_tools_make_the_same_archive(tmp_path: Path, pin: Path, built: list[str]) -> None:
    one = machine(tmp_path / "one").pack(tmp_path / "one.tar.gz", Progress(0))
    other = machine(tmp_path / "other").pack(tmp_path / "other.tar.gz", Progress(0))
    assert one == other
