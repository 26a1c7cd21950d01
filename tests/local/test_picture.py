"""A cluster's picture in a real browser, without a window and without a network."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from runner.picture.page import page
from runner.picture.state import Node, Snapshot
from tests.local import debian

HOSTILE = "</title></svg><script>document.body.id='struck'</script><img src=x onerror=\"document.body.id='struck'\">"


@pytest.fixture(scope="module")
def browser() -> list[str | Path]:
    """Debian's Chromium without windows, and the arguments that it always gets; root has no sandbox of its own."""
    folder = debian.unpacked("chromium-headless-shell")
    program = folder / "usr" / "lib" / "chromium" / "chromium-headless-shell"
    return [program, "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    node = Node(name=HOSTILE, gpus=8, usable=8, state="ready", held={HOSTILE: 3, "red": 2})
    found = tmp_path / "status.html"
    found.write_text(page(Snapshot(name="mine", taken=datetime(2026, 11, 22, tzinfo=UTC), nodes=[node])))
    return found


def run(browser: list[str | Path], *arguments: str) -> str:
    folder = Path(browser[0]).parents[3]
    libraries = {str(found.parent) for found in folder.rglob("*.so*")}
    environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(sorted(libraries))}
    done = subprocess.run(
        [*browser, *arguments], env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout


def test_no_name_becomes_a_script(browser: list[str | Path], file: Path) -> None:
    shown = run(browser, "--dump-dom", file.as_uri())
    assert "struck" in shown
    assert 'id="struck"' not in shown
    assert "<img" not in shown
    assert shown.count('class="team team-0"') == 3 + 1
    struck = file.with_name("struck.html")
    struck.write_text(f"<body>{HOSTILE}</body>")
    assert 'id="struck"' in run(browser, "--dump-dom", struck.as_uri())


def test_it_is_drawn_light_and_dark(browser: list[str | Path], file: Path) -> None:
    pictures = []
    for scheme in ("1", "0"):
        target = file.with_name(f"{scheme}.png")
        run(browser, f"--blink-settings=preferredColorScheme={scheme}", f"--screenshot={target}", file.as_uri())
        pictures.append(target.read_bytes())
    assert pictures[0] != pictures[1]
    assert min(len(picture) for picture in pictures) > 10_000


def test_teams_are_told_apart_without_colour(browser: list[str | Path], tmp_path: Path) -> None:
    """With one colour for all, a GPU of the second team still looks other than one of the first."""
    node = Node(name="n0", gpus=8, usable=8, state="ready", held={"blue": 4, "red": 4})
    text = page(Snapshot(name="mine", taken=datetime(2026, 11, 22, tzinfo=UTC), nodes=[node]))
    black = "".join(f"--team-{number}: #000 !important;" for number in range(2))
    grey = text.replace("</style>", f":root {{ {black} }}</style>", 1)
    assert grey != text
    drawn = []
    for name, shown in (("two", grey), ("one", grey.replace('class="team team-1"', 'class="team team-0"'))):
        file = tmp_path / f"{name}.html"
        file.write_text(shown)
        run(browser, f"--screenshot={file.with_suffix('.png')}", file.as_uri())
        drawn.append(file.with_suffix(".png").read_bytes())
    assert drawn[0] != drawn[1]
