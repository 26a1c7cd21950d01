"""The locked packages are those of pyproject.toml, by digest and from PyPI. The groups contain the imports."""

import ast
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
from uv import find_uv_bin

ROOT = Path(__file__).parents[2]
PROJECT: Mapping[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCK: Mapping[str, Any] = tomllib.loads((ROOT / "uv.lock").read_text())
LOCKED: Mapping[str, Mapping[str, Any]] = {package["name"]: package for package in LOCK["package"]}
PROGRAM = ("__main__.py", "cli", "components", "stacks", "runner")
LOCAL = ("emulator", "review")
NOT_IMPORTED = {"pip"}
"""Packages that the program needs without importing them."""
PACKAGES = {"google": "protobuf", "pydantic_core": "pydantic", "urllib3": "kubernetes"}
"""Whom a module belongs to where several packages share its name, or where it comes with the package that we name."""


def uv(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run([find_uv_bin(), *arguments, "--offline"], cwd=cwd, capture_output=True, text=True)


def name_of(requirement: str) -> str:
    found = re.match(r"[\w.-]+", requirement)
    assert found
    return normalized(found[0])


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(*groups: str) -> set[str]:
    """Return the names of the packages that the program and the groups ask for."""
    found = {name_of(text) for text in PROJECT["project"]["dependencies"]}
    for group in groups:
        found |= {name_of(entry) for entry in PROJECT["dependency-groups"][group] if isinstance(entry, str)}
    return found


def modules(folders: Iterable[str]) -> Iterator[str]:
    """Yield the top-level modules that the files import."""
    for folder in folders:
        path = ROOT / folder
        for file in [path] if path.is_file() else path.rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Import):
                    yield from (alias.name.split(".")[0] for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    yield node.module.split(".")[0]


def imported(folders: Iterable[str]) -> set[str]:
    """Return the names of the packages that the files import."""
    installed = {module: found[0] for module, found in packages_distributions().items()} | PACKAGES
    return {normalized(installed[module]) for module in modules(folders) if module in installed}


def test_the_lock_is_current() -> None:
    done = uv("lock", "--check")
    assert done.returncode == 0, f"run `make requirements`: {done.stderr}"


def test_a_package_that_is_not_locked_is_found(tmp_path: Path) -> None:
    shutil.copy(ROOT / "uv.lock", tmp_path)
    text = (ROOT / "pyproject.toml").read_text()
    (tmp_path / "pyproject.toml").write_text(text.replace("dependencies = [", 'dependencies = [\n    "left-pad",', 1))
    assert uv("lock", "--check", cwd=tmp_path).returncode != 0


@pytest.mark.parametrize(
    ("file", "options"), [("requirements.txt", ["--no-dev"]), ("requirements-uv.txt", ["--only-group", "setup"])]
)
def test_the_exported_file_is_current(file: str, options: list[str]) -> None:
    done = uv("export", "--quiet", "--frozen", "--no-header", *options)
    assert done.returncode == 0, done.stderr
    lines = (ROOT / file).read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == done.stdout.splitlines(), "run `make requirements`"


@pytest.mark.parametrize("name", sorted(set(LOCKED) - {PROJECT["project"]["name"]}))
def test_every_package_is_locked_by_digest_and_comes_from_pypi(name: str) -> None:
    package = LOCKED[name]
    assert package["source"] == {"registry": "https://pypi.org/simple"}
    files = [*package.get("wheels", ()), *([package["sdist"]] if "sdist" in package else [])]
    assert files
    for file in files:
        assert re.fullmatch(r"sha256:[0-9a-f]{64}", file["hash"])
        assert file["url"].startswith("https://files.pythonhosted.org/packages/")


def test_no_other_address_stands_in_what_is_installed_from() -> None:
    assert set(re.findall(r"https?://[^/\"\s]+", (ROOT / "uv.lock").read_text())) == {
        "https://pypi.org",
        "https://files.pythonhosted.org",
    }
    for file in ("requirements.txt", "requirements-uv.txt"):
        assert not re.search(r"://|^-", (ROOT / file).read_text(), re.MULTILINE)


@pytest.mark.parametrize("file", ["requirements.txt", "requirements-uv.txt"])
def test_every_exported_package_has_its_digests(file: str) -> None:
    entries = re.split(r"^(?=\w)", (ROOT / file).read_text(), flags=re.MULTILINE)[1:]
    assert entries
    for entry in entries:
        assert re.match(r"[\w.-]+==", entry), entry
        assert "--hash=sha256:" in entry, entry


def test_the_program_declares_what_it_imports_and_nothing_else() -> None:
    assert imported(PROGRAM) == declared() - NOT_IMPORTED, "pyproject.toml: dependencies"


def test_the_local_environment_declares_what_it_imports_and_nothing_else() -> None:
    assert imported(LOCAL) - declared() == declared("local") - declared(), "pyproject.toml: dependency group local"


def test_the_setup_file_has_nothing_but_uv() -> None:
    assert re.findall(r"^[\w-]+", (ROOT / "requirements-uv.txt").read_text(), re.MULTILINE) == ["uv"]
