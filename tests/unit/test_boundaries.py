"""The linter's rules for imports between folders, and that they find violations."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUFF = Path(sys.executable).with_name("ruff")
FILES = sorted(file for depth in ("", "*/", "*/*/") for file in ROOT.glob(f"[!.]*/{depth}ruff.toml"))
OUTSIDE = ("ask", "cli", "drift", "emulator", "member", "reference", "repair", "review", "runner", "lab", "tests")
"""Packages that the program must not import."""
AZURE = ("components.azure", "pulumi_azure_native")
OPENSTACK = ("components.openstack", "pulumi_openstack", "openstack")
FORBIDDEN = {
    "components": ("stacks", *OUTSIDE, *AZURE, *OPENSTACK),
    "components/queueing": ("stacks", *OUTSIDE, *AZURE, *OPENSTACK),
    "components/azure": ("stacks", *OUTSIDE, *OPENSTACK),
    "components/openstack": ("stacks", *OUTSIDE, *AZURE),
    "stacks": (*OUTSIDE, *AZURE, *OPENSTACK),
    "stacks/settings": (*OUTSIDE, *AZURE, *OPENSTACK),
    "stacks/targets": (*OUTSIDE, *AZURE, *OPENSTACK),
    "stacks/targets/aks": (*OUTSIDE, *OPENSTACK),
    "stacks/targets/cpouta": (*OUTSIDE, *AZURE),
    "stacks/targets/openshift": (*OUTSIDE, *AZURE, *OPENSTACK),
    "ask": ("cli", "stacks", "drift", "reference", "review", "lab", "tests"),
    "cli": ("components", "lab", "tests"),
    "drift": ("ask", "cli", "stacks", "emulator", "reference", "repair", "runner", "lab", "tests"),
    "emulator": ("ask", "cli", "components", "stacks", "drift", "reference", "review", "lab", "tests"),
    "emulator/azure": ("ask", "cli", "components", "stacks", "drift", "reference", "review", "lab", "tests"),
    "member": ("pulumi", "cli", "stacks", "drift", "emulator", "reference", "review", "lab", "tests"),
    "reference": ("ask", "cli", "drift", "emulator", "review", "runner", "lab", "tests", *AZURE),
    "repair": ("ask", "cli", "stacks", "drift", "emulator", "reference", "review", "lab", "tests", "components.azure"),
    "review": ("ask", "cli", "components", "stacks", "drift", "emulator", "reference", "lab", "tests"),
    "runner": ("ask", "cli", "components", "stacks", "drift", "emulator", "reference", "review", "lab", "tests"),
}
ALLOWED = {
    "ask": ("components.names", "emulator.cluster", "runner"),
    "components/azure": (*AZURE, "components.kubernetes"),
    "components/openstack": (*OPENSTACK, "components.kubernetes"),
    "stacks": ("components.kubernetes", "stacks.targets.aks"),
    "stacks/targets/aks": (*AZURE, "stacks.platform"),
    "stacks/targets/cpouta": (*OPENSTACK, "stacks.platform"),
    "cli": ("ask", "attack", "drift", "emulator", "member", "reference", "repair", "review", "runner", "stacks"),
    "member": ("ask", "components.names", "runner"),
    "repair": ("components.health", "runner"),
    "drift": ("components.ownership", "review"),
    "emulator": ("emulator.azure", "runner"),
    "reference": ("stacks.targets",),
    "review": ("runner",),
    "tests/unit": ("stacks", *OUTSIDE, *AZURE),
}


def banned(folder: str, text: str) -> set[int]:
    """Return the lines of a new module in the folder with forbidden imports."""
    options = ["--no-cache", "--output-format=json", "--stdin-filename", ROOT / folder / "new.py"]
    done = subprocess.run([RUFF, "check", *options, "-"], input=text, capture_output=True, text=True)
    return {finding["location"]["row"] for finding in json.loads(done.stdout) if finding["code"] == "TID251"}


def forms(module: str) -> str:
    """Return each way to import a module, one a line."""
    parent, _, name = module.rpartition(".")
    lines = [f"import {module}", f"import {module}.part", f"from {module} import part", f"from {module}.part import x"]
    if parent:
        lines.append(f"from {parent} import {name}")
    return "\n".join([*lines, f"def late():\n    import {module}", ""])


@pytest.mark.parametrize("folder", FORBIDDEN)
def test_a_module_that_crosses_a_boundary_is_refused(folder: str) -> None:
    text = "".join(map(forms, FORBIDDEN[folder]))
    imports = {row for row, line in enumerate(text.splitlines(), 1) if "import" in line}
    assert banned(folder, text) == imports


@pytest.mark.parametrize("folder", ALLOWED)
def test_other_imports_are_allowed(folder: str) -> None:
    assert banned(folder, "".join(map(forms, ALLOWED[folder]))) == set()


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.parent.relative_to(ROOT)))
def test_a_folder_keeps_the_rules_of_the_project(file: Path) -> None:
    own = tomllib.loads(file.read_text())
    assert (file.parent / own["extend"]).resolve() == ROOT / "pyproject.toml"
    assert set(own) == {"extend", "lint"}
    assert set(own["lint"]) == {"flake8-tidy-imports"}
