"""The make targets that run the tests against clusters in parallel run each test exactly once."""

import shlex
import subprocess
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = [f"tests/local/{file.name}" for file in (ROOT / "tests" / "local").glob("test_*.py")]
OF_SOAK = ("local-mlops", "local-openshift-ai")


def commands(*targets: str) -> list[list[str]]:
    """Return the words of each pytest that make would run."""
    recipe = ["make", "--dry-run", "--old-file=.venv/.installed", "--old-file=build", *targets]
    said = subprocess.run(recipe, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [shlex.split(line) for line in said.replace("\\\n", " ").splitlines() if " -m pytest " in line]


def files_of(words: list[str]) -> Iterator[str]:
    """Yield the files of tests/local that a pytest with these words runs."""
    ignored = [words[index + 1] for index, word in enumerate(words) if word in ("--ignore", "--ignore-glob")]
    given = [word for word in words if word not in ignored]
    for file in FILES:
        if {file, "tests/local"} & set(given) or any(fnmatch(file, word) for word in given):
            yield from [] if any(fnmatch(file, each) for each in ignored) else [file]


def test_every_test_against_a_cluster_is_run_once_by_make_test_or_by_a_target_of_make_soak() -> None:
    run = Counter(file for words in commands("test", *OF_SOAK) for file in files_of(words))
    assert run == dict.fromkeys(FILES, 1)
