"""Find words in docs and docstrings that "Write texts" in CONTRIBUTING.md excludes. `make lint` runs this."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RULES = {
    r"[Nn]obody|[Nn]othing|[Nn]o one": "name the actor, or write 'no <thing>'",
    r"([Ww]ho|[Ww]hat)ever": "name the actor, or write 'any'",
    r"anew": "again, recreate",
    r"([Bb]y|[Oo]f|[Tt]o|[Ww]ith|[Ff]or|[Ff]rom|[Ii]n|[Oo]n|[Aa]t) (which|whom)": "split the sentence",
    r"(is|are|was|were|be|being) told": "is reported, is logged, the error says",
    r"[Mm]istakes?": "error",
    r"(?<!there )(?<!There )(is|are) (no(?! longer)|none|not one)": "is not a, does not",
    r"[Ss]tands? (behind|beside|for|in)": "is, is in, represents",
    r"([Ss]ays|[Tt]ells) (of|whom)": "reports, shows, lists",
    r"put right|gone without|what is there|held to|[Ii]n the place of": "repair, existing, checked, instead of",
    r"[Bb]esides? (it|them|that)": "next to, and also",
    r"of (theirs|ours|its own)": "their, our, its",
}
"""Regular expressions of whole words, and what to write instead."""
STORED = (
    "components/**/agents/*.py",
    "components/health/node_report.py",
    "components/kubernetes/in_cluster.py",
    "components/olm/installer.py",
    "components/queueing/dashboard_proxy.py",
    "components/queueing/stored_versions.py",
    "components/tenancy/lending.py",
    "components/tenancy/slack_controller.py",
    "components/workloads/mpi_index.py",
    "components/workloads/training/*.py",
)
"""Programs in ConfigMaps. They are not checked, because any change of their text restarts pods on every cluster."""


def prose(document: str) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a Markdown document, without code."""
    is_code = False
    for number, line in enumerate(document.splitlines(), 1):
        is_fence = line.lstrip().startswith("```")
        if not is_code and not is_fence:
            yield number, re.sub(r"`[^`]*`", "", line)
        is_code ^= is_fence


def docstrings(program: str) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a program's docstrings, also of those after constants and fields."""
    for node in ast.walk(ast.parse(program)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield from enumerate(text.splitlines(), node.lineno)


def hits(file: str, text: str) -> Iterator[str]:
    """Yield a line for each excluded expression: its place, the expression, and what to write instead."""
    for number, line in prose(text) if file.endswith(".md") else docstrings(text):
        for pattern, advice in RULES.items():
            if found := re.search(rf"\b({pattern})\b", line):
                yield f"{file}:{number}: '{found[0]}': {advice}"


def main() -> int:
    """Print the hits in all tracked files. Return 1 if there are any."""
    tracked = subprocess.run(["git", "ls-files", "*.md", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    stored = {str(path.relative_to(ROOT)) for pattern in STORED for path in ROOT.glob(pattern)}
    files = [file for file in tracked.stdout.splitlines() if file not in stored and (ROOT / file).is_file()]
    found = [hit for file in files for hit in hits(file, (ROOT / file).read_text())]
    for hit in found:
        print(hit)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
