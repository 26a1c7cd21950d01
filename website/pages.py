"""Hooks of MkDocs that turn the repository's documents, which GitHub renders, into pages of the site.

The pages of the site are the files of docs/ and the documents of `ROOT_PAGES`. A link to any other file of the
repository leads to the repository at the revision $SITE_REF (default: main).
"""

import os
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
ROOT_PAGES: Final[Mapping[str, str]] = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
    "changelog.md": "CHANGELOG.md",
}
"""Pages from outside docs/, with their documents."""
_PAGES: Final = {document: page for page, document in ROOT_PAGES.items()}
_LINK: Final = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)")
_ITEM: Final = re.compile(r" *(?:[-*+]|\d+\.) +(?=\S)")
_STEP: Final = 4
"""Spaces that Python-Markdown requires for each level of a list."""


def on_config(config: Any) -> Any:
    """Give headings GitHub's anchors, and draw blocks of Mermaid."""
    from pymdownx.slugs import slugify
    from pymdownx.superfences import fence_code_format

    config.mdx_configs["toc"]["slugify"] = slugify(case="lower")
    drawn = {"name": "mermaid", "class": "mermaid", "format": fence_code_format}
    config.mdx_configs["pymdownx.superfences"] = {"custom_fences": [drawn]}
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages from outside docs/."""
    from mkdocs.structure.files import File

    for page, document in ROOT_PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / document).read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Return a page's text for Python-Markdown, with links that work on the site."""
    return rendered(markdown, page.file.src_uri, config.repo_url)


def rendered(markdown: str, page: str, repository: str) -> str:
    """Return a document's text as Python-Markdown and the site need it. page: its path on the site."""
    home = f"{repository}/{{kind}}/{os.environ.get('SITE_REF', 'main')}/{{path}}"
    return "\n".join(_lines(markdown, lambda link: _leading(link[0], page, home)))


def _leading(target: str, page: str, home: str) -> str:
    """Return the target of a relative link on the site."""
    document = ROOT_PAGES.get(page, f"docs/{page}")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(document), target))
    if path in _PAGES or path.startswith("docs/"):
        return posixpath.relpath(_PAGES.get(path, path.removeprefix("docs/")), posixpath.dirname(page) or ".")
    if not (ROOT / path).exists():
        return target  # MkDocs reports it
    return home.format(kind="blob" if (ROOT / path).is_file() else "tree", path=path)


def _lines(markdown: str, lead: Callable[[re.Match[str]], str]) -> Iterator[str]:
    """Yield the lines with lists that Python-Markdown recognizes: four spaces for each level, a blank line before."""
    columns: list[int] = []  # of the text of each open list item
    is_code, shift, previous = False, 0, ""
    for line in markdown.splitlines():
        text = line.lstrip()
        is_fence = text.startswith("```")
        if text and not is_code:
            indent, in_list = len(line) - len(text), bool(columns)
            while columns and indent < columns[-1]:
                columns.pop()
            shift = _STEP * len(columns) - (columns[-1] if columns else 0)
            if (item := _ITEM.match(line)) is not None:
                columns.append(item.end())
                if not in_list and previous:
                    yield ""
        is_prose = not is_code and not is_fence
        yield f"{' ' * shift}{_LINK.sub(lead, line) if is_prose else line}" if text else ""
        is_code ^= is_fence
        previous = text
