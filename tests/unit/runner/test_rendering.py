"""Templates escape every text and cannot disable the escaping."""

import re
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from components.observability.dashboards import Dashboard, Panel
from lab.dashboards.drawing import Drawn
from lab.dashboards.drawing import page as dashboards
from runner.picture.charts import classes
from runner.picture.page import page
from runner.picture.rendering import render
from runner.picture.state import Job, Node, Snapshot
from tests.unit.runner.test_picture import HOSTILE, NOW, Read

ROOT = Path(__file__).parents[3]
TEMPLATES = sorted(ROOT.glob("[!.]*/**/*.j2"))


def test_there_are_templates() -> None:
    assert len(TEMPLATES) >= 6


@pytest.mark.parametrize("file", TEMPLATES, ids=lambda file: file.name)
def test_no_template_switches_escaping_off(file: Path) -> None:
    text = file.read_text()
    assert not re.search(r"\bsafe\b|\bautoescape\b|\bxmlattr\b", text)
    assert not re.search(r"=\s*{{", re.sub(r"{%.*?%}", "", text)), "without quotes a text adds attributes"


def test_a_value_that_is_missing_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="'title' is undefined"):
        render("runner/picture/document.html.j2")


def test_no_text_of_a_dashboard_is_markup() -> None:
    dashboard = Dashboard(uid="x", title=HOSTILE, panels=[], variables={})
    panel = Panel(title=HOSTILE, queries={}, unit=HOSTILE, description=HOSTILE)
    lines = [(f"{HOSTILE} {number}", [(0.0, 1.0), (1.0, 2500.0)]) for number in range(8)]
    text = dashboards([(dashboard, [Drawn(panel=panel, lines=lines), Drawn(panel=panel, error=HOSTILE)])], HOSTILE)
    found = Read(text)
    assert {tag for tag, _ in found.tags} == {
        *("html", "head", "meta", "title", "style", "body", "h1", "p", "section", "h2", "div", "figure", "figcaption"),
        *("svg", "path", "text", "polyline", "ul", "li"),
    }
    seen = re.sub("[\x00\u202e]", "\ufffd", HOSTILE)
    assert f" {seen} 0: 2.5 k" in found.texts
    assert "and 2 more" in found.texts
    assert not re.search("[\x00\u202e]", text)


def test_every_team_has_a_pattern() -> None:
    teams = [f"team-{number}" for number in range(9)]
    jobs = [Job(namespace=team, name="job", gpus=1, created=NOW, queued=NOW) for team in teams]
    node = Node(name="n0", gpus=9, usable=9, state="ready", held=dict.fromkeys(teams, 1))
    text = page(Snapshot(name="mine", taken=NOW, nodes=[node], jobs=jobs))
    drawn = {kind.removeprefix("team ") for kind in classes(teams).values()}
    assert len(drawn) == 8
    for kind in drawn:
        assert f'<pattern id="{kind}"' in text
        assert f"rect.{kind} {{ fill: url(#{kind}) }}" in text
        assert text.count(f"--{kind}: #") == 2, "light and dark"
