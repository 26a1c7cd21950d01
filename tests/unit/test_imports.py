"""No module of the program imports itself through others, and only one target's deployment loads its cloud's SDK."""

import ast
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("ask", "attack", "components", "drift", "emulator", "reference", "repair", "review", "runner", "stacks")


def name_of(file: Path, root: Path) -> str:
    """Return the name of a module."""
    return ".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def imported(tree: ast.Module, package: Sequence[str], known: Collection[str]) -> Iterator[str]:
    """Yield the modules that any statement of a module imports: also those for types, and those in functions.

    `from package import module` counts as the module alone, not as the package whose other names it does not use.
    package: of the module, for relative imports.
    """
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                above = package[: len(package) - level + 1] if level else ()
                base = ".".join([*above, *([module] if module else [])])
                for alias in names:
                    yield inner if (inner := f"{base}.{alias.name}") in known else base
            case ast.Call(func=ast.Name(id="import_module"), args=[ast.Constant(value=str(name))]):
                yield name
            case ast.Call(func=ast.Name(id="import_module"), args=[ast.JoinedStr(values=values)]):
                parts = (re.escape(str(part.value)) if isinstance(part, ast.Constant) else r"\w+" for part in values)
                pattern = re.compile("".join(parts))
                yield from (name for name in known if pattern.fullmatch(name))


def graph(root: Path, folders: Sequence[str]) -> Mapping[str, set[str]]:
    """Return the modules that each module imports, of a program in a folder."""
    files = [*root.glob("*.py"), *(file for folder in folders for file in (root / folder).rglob("*.py"))]
    known = {name_of(file, root): file for file in files}
    found = {}
    for name, file in known.items():
        package = file.parent.relative_to(root).parts
        found[name] = {each for each in imported(ast.parse(file.read_text()), package, known) if each in known}
    return found


def circle(imports: Mapping[str, set[str]]) -> str:
    """Return a circle of imports as text, empty if none exists."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return "\nimports ".join(reversed(error.args[1]))
    return ""


def test_no_module_imports_itself_through_others() -> None:
    assert circle(graph(ROOT, FOLDERS)) == ""


@pytest.mark.parametrize(
    "statement",
    [
        "from package import last",
        "import package.last",
        "from package.last import name",
        "from . import last",
        "from .last import name",
        "if TYPE_CHECKING:\n    from package import last",
        "def late():\n    from package import last",
        "import_module('package.last')",
        "import_module(f'package.la{rest}')",
    ],
)
def test_every_kind_of_import_closes_a_circle(statement: str, tmp_path: Path) -> None:
    folder = tmp_path / "package"
    folder.mkdir()
    for name, text in (("first", statement), ("last", "from package.second import name"), ("__init__", "")):
        (folder / f"{name}.py").write_text(text)
    (folder / "second.py").write_text("")
    assert circle(graph(tmp_path, ["package"])) == ""
    (folder / "second.py").write_text("from package import first")
    found = circle(graph(tmp_path, ["package"]))
    assert set(found.split("\nimports ")) == {"package.first", "package.second", "package.last"}


def test_the_settings_and_rules_of_all_targets_load_no_clouds_sdk() -> None:
    sdks = ("openstack", "pulumi_azure_native", "pulumi_openstack")
    program = f"import sys, stacks.deploy; print([name for name in {sdks} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
