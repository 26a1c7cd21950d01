"""The site has every document, and its hooks turn what GitHub renders into pages."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from website.pages import ROOT_PAGES, rendered

ROOT = Path(__file__).parents[2]
SITE = yaml.safe_load((ROOT / "website" / "mkdocs.yml").read_text())
HOME = SITE["repo_url"]


def pages(nav: Any) -> Iterator[str]:
    match nav:
        case str():
            yield nav
        case list():
            for each in nav:
                yield from pages(each)
        case dict():
            yield from pages(list(nav.values()))


def test_the_navigation_has_every_document() -> None:
    documents = {str(file.relative_to(ROOT / "docs")) for file in (ROOT / "docs").rglob("*.md")}
    decisions = {name for name in documents if re.match(r"decisions/2", name)}
    assert set(pages(SITE["nav"])) == documents - decisions | set(ROOT_PAGES)


def test_links_lead_to_pages_or_to_the_repository() -> None:
    text = "[a](../SECURITY.md) [b](ask.md#accuracy) [c](../Pulumi.aks.yaml) [d](../local) [e](#f) [g](https://h)"
    assert rendered(text, "aks.md", HOME) == (
        f"[a](security.md) [b](ask.md#accuracy) [c]({HOME}/blob/main/Pulumi.aks.yaml) [d]({HOME}/tree/main/local) "
        "[e](#f) [g](https://h)"
    )
    assert rendered("[a](docs/aks.md) ![b](docs/pictures/status.png)", "index.md", HOME) == (
        "[a](aks.md) ![b](pictures/status.png)"
    )
    assert rendered("[a](../no.py)", "aks.md", HOME) == "[a](../no.py)", "MkDocs reports it"
    assert rendered("[a](../../README.md#b)", "workloads/README.md", HOME) == "[a](../index.md#b)"


def test_code_is_unchanged() -> None:
    text = "```sh\n[a](../SECURITY.md)\n  - b\n```"
    assert rendered(text, "aks.md", HOME) == text


def test_lists_have_the_indentation_that_the_site_needs() -> None:
    text = "Steps:\n1. a\n\n   ```sh\n   b\n     c\n   ```\n\n   - d\n     e\n2. f\n\ng"
    wanted = "Steps:\n\n1. a\n\n    ```sh\n    b\n      c\n    ```\n\n    - d\n        e\n2. f\n\ng"
    assert rendered(text, "aks.md", HOME) == wanted


def test_the_repository_has_one_address() -> None:
    documents = [*ROOT.glob("*.md"), *ROOT.glob("*.yaml"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob(".github/**/*.*")]
    named = {
        found for file in documents for found in re.findall(r"https://github\.com/example/[\w-]+", file.read_text())
    }
    assert named == {HOME}
