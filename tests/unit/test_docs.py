"""The targets of the documents exist: links, make targets, files, versions. Each decision has a status."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from components import catalogue
from components.tenancy.promises import Promise
from emulator.toolchain import OPENDATAHUB_KUEUE, PULUMI_VERSION, pinned_version
from stacks.targets.registry import TARGETS

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[!R]*.md"))
HISTORY = {"CHANGELOG.md"}
"""Documents that may name items that no longer exist."""


def text_of(document: Path) -> str:
    return document.read_text()


def prose_of(document: Path) -> str:
    """Return the text without its blocks of code, where a bracket is not a link."""
    return re.sub(r"^ *```.*?^ *```", "", text_of(document), flags=re.DOTALL | re.MULTILINE)


def anchors(document: Path) -> set[str]:
    """Return the anchors that GitHub generates for a document's headings."""
    headings = re.findall(r"^#+ (.*)$", prose_of(document), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def links(document: Path) -> Iterator[str]:
    for target in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", prose_of(document)):
        if not re.match(r"[a-z]+:", target):
            yield target


def dead(document: Path) -> list[str]:
    """Return the relative links to a missing file or heading."""
    found = []
    for target in links(document):
        name, _, anchor = target.partition("#")
        file = (document.parent / unquote(name)).resolve() if name else document
        if not file.exists() or (anchor and anchor not in anchors(file)):
            found.append(target)
    return found


def code(document: Path) -> Iterator[str]:
    """Yield the code: each block, and each piece of code in a sentence."""
    yield from re.findall(r"^ *```\w*\n(.*?)^ *```", text_of(document), re.DOTALL | re.MULTILINE)
    yield from re.findall(r"`([^`\n]+)`", prose_of(document))


def is_superseded(document: Path) -> bool:
    return "\n- Status: superseded by [" in text_of(document)


def current() -> list[Path]:
    return [document for document in DOCUMENTS if document.name not in HISTORY and not is_superseded(document)]


def identity(document: Path) -> str:
    return str(document.relative_to(ROOT))


@pytest.mark.parametrize("document", DOCUMENTS, ids=identity)
def test_relative_links_lead_somewhere(document: Path) -> None:
    assert dead(document) == []


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text("# A b\n[a](#a-b) [b](#b) [c](other.md) [d](https://example.org/x)\n```\n[e](e)\n```\n")
    assert dead(document) == ["#b", "other.md"]


@pytest.mark.parametrize("document", current(), ids=identity)
def test_make_targets_exist(document: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {name for text in code(document) for name in re.findall(r"(?:^|&& |\n)make (?:-s )?([a-z-]+)", text)}
    assert named <= targets


@pytest.mark.parametrize("document", current(), ids=identity)
def test_files_exist(document: Path) -> None:
    folders = "|".join(path.name for path in ROOT.iterdir() if path.is_dir() and path.name not in (".git", ".local"))
    for text in code(document):
        for name in re.findall(rf"(?:^|\s)((?:{folders})/[\w./-]+)(?=$|\s)", text):
            assert (ROOT / name).exists(), name


def versions(pattern: str) -> set[str]:
    """Return the document's texts about a version, by a pattern with one group."""
    return {found for document in current() for found in re.findall(pattern, text_of(document))}


def test_python_and_go_are_those_that_are_required() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    modules = [file.read_text() for file in ROOT.glob("emulator/tools/*/go.mod")]
    directives = [found for text in modules for found in re.findall(r"^go ([\d.]+)$", text, re.MULTILINE)]
    newest = max(directives, key=lambda version: [int(part) for part in version.split(".")])
    assert versions(r"Python ([\d.]+\d)") == {project["project"]["requires-python"].removeprefix(">=")}
    assert versions(r"\bGo ([\d.]+\d)") == {newest}


def test_pulumi_is_the_oldest_that_is_accepted() -> None:
    assert versions(r"(?:`pulumi`|Pulumi|/\)) ([\d.]+\d) or later") == {PULUMI_VERSION.rpartition(".")[0]}


def test_plugins_are_those_of_the_locked_packages() -> None:
    packages = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    locked = {package["name"]: package.get("version") for package in packages}
    named = {pair for document in current() for pair in re.findall(r"resource ([\w-]+) v([\d.]+\d)", text_of(document))}
    assert named
    for name, version in named:
        assert locked[f"pulumi-{name}"] == version


OPENDATAHUBS_KUEUE = pinned_version(OPENDATAHUB_KUEUE, "sigs.k8s.io/kueue")
OPENSHIFT_AIS_APPWRAPPER = pinned_version(OPENDATAHUB_KUEUE, "github.com/project-codeflare/appwrapper")


def test_upstream_versions_are_in_the_catalogue() -> None:
    brought = [release.kueue for release in catalogue.OPENSHIFT_AI]
    known = {catalogue.KUEUE: (*catalogue.versions(catalogue.KUEUE), *brought, OPENDATAHUBS_KUEUE)}
    known |= {catalogue.APPWRAPPER: (*catalogue.versions(catalogue.APPWRAPPER), OPENSHIFT_AIS_APPWRAPPER)}
    known |= {chart.name: catalogue.chart_versions(chart.name) for chart in catalogue.CHARTS}
    for name, entries in known.items():
        words = name.replace("-", "[- ]")
        for version in versions(rf"(?i)\b{words} v?(\d+(?:\.\d+)+)"):
            assert any(entry.removeprefix("v") == version for entry in entries), (name, version)


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda decision: str(decision.stem))
def test_a_decision_has_a_date_and_a_status(decision: Path) -> None:
    title, _, date, status, *_ = text_of(decision).splitlines()
    assert title.startswith("# ")
    assert date == f"- Date: {decision.name[:10]}"
    assert re.fullmatch(r"- Status: (accepted|superseded by \[[^\]]+\]\([\w.-]+\))", status)


def test_the_index_has_every_decision_with_its_title_and_status() -> None:
    index = text_of(ROOT / "docs" / "decisions" / "README.md")
    rows = dict(re.findall(r"^\| \[[^\]]+\]\(([\w.-]+)\) \| (\w+) \|$", index, re.MULTILINE))
    assert rows == {file.name: "superseded" if is_superseded(file) else "accepted" for file in DECISIONS}
    for file in DECISIONS:
        assert f"[{text_of(file).splitlines()[0].removeprefix('# ')}]({file.name})" in index


def test_each_promise_stands_in_the_table_of_promises() -> None:
    table = text_of(ROOT / "docs" / "promises.md")
    assert [promise for promise in Promise if f"**{promise}**" not in table and promise.policy not in table] == []


def test_each_target_has_a_guide_an_example_and_a_row_in_the_readme() -> None:
    rows = text_of(ROOT / "README.md")
    for name in TARGETS:
        assert (ROOT / "reference" / "examples" / f"{name}.yaml").is_file(), name
        assert f"| `{name}` |" in rows, name
        assert name == "simulated" or (ROOT / "docs" / f"{name}.md").is_file(), name
