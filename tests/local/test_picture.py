"""A cluster's picture in a real headless browser without a network."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from runner.picture.page import page
from runner.picture.state import Node, Snapshot
from tests.local.browser import Browser

HOSTILE = "</title></svg><script>document.body.id='struck'</script><img src=x onerror=\"document.body.id='struck'\">"
NOW = datetime(2026, 11, 22, tzinfo=UTC)


def drawn(file: Path, **held: int) -> Path:
    node = Node(name=HOSTILE, gpus=8, usable=8, state="ready", held=held)
    file.write_text(page(Snapshot(name="mine", taken=NOW, nodes=[node])))
    return file


def test_no_name_becomes_a_script(browser: Browser, tmp_path: Path) -> None:
    with browser.opened(drawn(tmp_path / "status.html", **{HOSTILE: 3, "red": 2})) as shown:
        assert "struck" in shown.evaluate("document.body.innerText")
        assert shown.evaluate("document.body.id") == ""
        assert shown.evaluate("document.images.length") == 0
        assert shown.evaluate("document.querySelectorAll('.team-0:not(pattern)').length") == 3 + 1


def test_it_loads_no_files_and_logs_no_errors(browser: Browser, tmp_path: Path) -> None:
    file = drawn(tmp_path / "status.html", blue=8)
    with browser.opened(file) as shown:
        assert shown.asked == [file.as_uri()]
        assert shown.said == []


def test_the_browser_reports_requests_logs_and_scripts(browser: Browser, tmp_path: Path) -> None:
    """This browser does run scripts and reports them. Otherwise the tests above would not be a proof."""
    file = tmp_path / "struck.html"
    file.write_text(f"<body>{HOSTILE}<script>console.error('one'); console.log('no'); none()</script>")
    with browser.opened(file) as shown:
        assert shown.evaluate("document.body.id") == "struck"
        assert shown.asked == [file.as_uri(), file.with_name("x").as_uri()]
        assert {"one", "Uncaught"} < set(shown.said)
        assert "no" not in shown.said


def test_it_is_drawn_light_and_dark(browser: Browser, tmp_path: Path) -> None:
    with browser.opened(drawn(tmp_path / "status.html", blue=8)) as shown:
        background = "getComputedStyle(document.body).backgroundColor"
        light, is_light = shown.picture("light"), shown.evaluate(background)
        dark, is_dark = shown.picture("dark"), shown.evaluate(background)
    assert (is_light, is_dark) == ("rgb(255, 255, 255)", "rgb(22, 22, 22)")
    assert light != dark
    assert min(len(light), len(dark)) > 10_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_teams_are_distinguishable_without_colour(browser: Browser, tmp_path: Path, scheme: str) -> None:
    """With a single colour, a GPU of the second team still looks different from one of the first."""
    node = Node(name="n0", gpus=8, usable=8, state="ready", held={"blue": 4, "red": 4})
    text = page(Snapshot(name="mine", taken=NOW, nodes=[node]))
    one_colour = "".join(f"--team-{number}: #777 !important;" for number in range(2))
    grey = text.replace("</style>", f":root {{ {one_colour} }}</style>", 1)
    assert grey != text
    pictures = []
    for name, shown in (("two", grey), ("one", grey.replace('class="team team-1"', 'class="team team-0"'))):
        file = tmp_path / f"{name}.html"
        file.write_text(shown)
        with browser.opened(file) as opened:
            pictures.append(opened.picture(scheme))
    assert pictures[0] != pictures[1]
