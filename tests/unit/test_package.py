"""The package pulumi-mlbatch: what its wheel contains, and the example program with it."""

import ast
import json
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from components.artifacts import Mirror
from tests.package import EXAMPLE, ROOT, built, installed

RUN = """
import json, runpy, sys, pulumi
found = []
class Mocks(pulumi.runtime.Mocks):
    def new_resource(self, args):
        found.append({"type": args.typ, "name": args.name, "inputs": args.inputs, "provider": args.provider})
        return args.name, args.inputs
    def call(self, args):
        return {}
@pulumi.runtime.test
def run():
    pulumi.runtime.set_all_config({"queues:kubeconfig": "{}", "queues:mirror": sys.argv[2]})
    runpy.run_path(sys.argv[1])
pulumi.runtime.set_mocks(Mocks(), project="queues")
run()
json.dump({"resources": found, "modules": sorted({name.partition(".")[0] for name in sys.modules})}, sys.stdout)
"""
"""Runs a program with mocks, and prints what it registered and the loaded packages."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory, mirror: Mirror) -> dict[str, Any]:
    """Return what the example registers, run outside of the checkout."""
    folder = tmp_path_factory.mktemp("installed")
    variables = {**os.environ, "PYTHONPATH": str(installed(folder))}
    command = [
        sys.executable,
        "-P",
        "-c",
        RUN,
        EXAMPLE / "__main__.py",
        json.dumps({"artifacts": mirror.artifacts, "verify": False}),
    ]
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_the_wheel_has_every_file_of_the_components_and_no_other_package(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    tracked = subprocess.run(["git", "ls-files", "components"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = {file for file in tracked.stdout.split() if not file.endswith("ruff.toml")}
    assert names == {f"pulumi_mlbatch/{file}" for file in (*files, "__init__.py", "py.typed")}


def test_the_wheel_imports_and_names_its_modules_by_its_own_name(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    for name in archive.namelist():
        for node in ast.walk(ast.parse(archive.read(name))) if name.endswith(".py") else ():
            match node:
                case ast.Import(names=names):
                    assert not [each.name for each in names if each.name.split(".")[0] == "components"], name
                case ast.ImportFrom(module=str(module)):
                    assert module.split(".")[0] != "components", name
                case ast.Constant(value=str(text)):
                    assert not text.startswith("components."), name


def test_the_wheels_bounds_are_those_of_the_program(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (metadata,) = (archive.read(name).decode() for name in archive.namelist() if name.endswith("METADATA"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"\nVersion: {project['version']}\n" in metadata
    assert "\nRequires-Dist: pulumi-kubernetes<5,>=4.34.2\n" in metadata
    assert "pulumi-kubernetes>=4.34.2,<5" in project["dependencies"]


def test_the_example_runs_without_the_checkout(example: dict[str, Any]) -> None:
    assert {"components", "stacks", "pulumi_azure_native"}.isdisjoint(example["modules"])
    kinds = {each["inputs"].get("kind") for each in example["resources"]}
    assert {"ClusterQueue", "LocalQueue", "Namespace", "RoleBinding", "ResourceFlavor"} <= kinds
    types = {each["type"] for each in example["resources"]}
    assert {"mlbatch:tenancy:Team", "mlbatch:tenancy:SlackQueue", "mlbatch:queueing:Kueue"} <= types


def test_the_objects_of_the_example_are_on_its_cluster(example: dict[str, Any]) -> None:
    objects = [each for each in example["resources"] if each["type"].startswith("kubernetes:")]
    assert objects
    assert all("pulumi:providers:kubernetes::cluster::" in each["provider"] for each in objects)
