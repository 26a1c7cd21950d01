"""The package pulumi-mlbatch: what its wheel contains, and the example program with it."""

import ast
import json
import os
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.artifacts import Mirror
from tests.package import EXAMPLE, ROOT, built, installed

MOCKS = """
import json, runpy, sys, pulumi
found, schema = [], {}
class Mocks(pulumi.runtime.Mocks):
    def new_resource(self, args):
        found.append({"type": args.typ, "name": args.name, "inputs": args.inputs, "provider": args.provider})
        return args.name, args.inputs
    def call(self, args):
        return {}
def record(run):
    pulumi.runtime.set_mocks(Mocks(), project="queues")
    pulumi.runtime.test(run)()
    packages = sorted({name.partition(".")[0] for name in sys.modules})
    json.dump({"resources": found, "packages": packages, "schema": schema}, sys.stdout)
"""
"""Prints what a function registered, and the loaded packages."""
PROGRAM = """
def run():
    pulumi.runtime.set_all_config({"queues:kubeconfig": "{}", "queues:mirror": sys.argv[2]})
    runpy.run_path(sys.argv[1])
record(run)
"""
PLUGIN = """
from pulumi.provider.experimental.component import ComponentProvider
from pulumi_mlbatch.provider import COMPONENTS, NAME
def run():
    plugin = ComponentProvider(COMPONENTS, NAME)
    schema.update(json.loads(plugin.schema))
    for name, inputs in json.loads(sys.argv[1]).items():
        plugin.construct(name.lower(), f"mlbatch:index:{name}", inputs)
record(run)
"""
"""Creates the plugin's components as the engine does for a program in another language."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def ran(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, Any]]:
    """Return a function that runs a script with the package, outside of the checkout."""
    folder = tmp_path_factory.mktemp("installed")
    variables = {**os.environ, "PYTHONPATH": str(installed(wheel, folder))}

    def run(script: str, *arguments: str | Path) -> dict[str, Any]:
        command = [sys.executable, "-P", "-c", MOCKS + script, *arguments]
        done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    return run


@pytest.fixture(scope="module")
def example(ran: Callable[..., dict[str, Any]], mirror: Mirror) -> dict[str, Any]:
    return ran(PROGRAM, EXAMPLE / "__main__.py", json.dumps({"artifacts": mirror.artifacts, "verify": False}))


def test_the_wheel_has_every_file_of_the_components_and_no_other_package(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    tracked = subprocess.run(["git", "ls-files", "components"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = {file for file in tracked.stdout.split() if not file.endswith("ruff.toml")}
    assert names == {f"pulumi_mlbatch/{file}" for file in (*files, "__init__.py", "provider.py", "py.typed")}


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
    assert {"components", "stacks", "pulumi_azure_native"}.isdisjoint(example["packages"])
    kinds = {each["inputs"].get("kind") for each in example["resources"]}
    assert {"ClusterQueue", "LocalQueue", "Namespace", "RoleBinding", "ResourceFlavor"} <= kinds
    types = {each["type"] for each in example["resources"]}
    assert {"mlbatch:tenancy:Team", "mlbatch:tenancy:SlackQueue", "mlbatch:queueing:Kueue"} <= types


def test_the_objects_of_the_example_are_on_its_cluster(example: dict[str, Any]) -> None:
    objects = [each for each in example["resources"] if each["type"].startswith("kubernetes:")]
    assert objects
    assert all("pulumi:providers:kubernetes::cluster::" in each["provider"] for each in objects)


def test_the_plugin_offers_its_components_to_programs_in_other_languages(
    ran: Callable[..., dict[str, Any]], mirror: Mirror
) -> None:
    program = yaml.safe_load((ROOT / "examples" / "yaml" / "Pulumi.yaml").read_text())
    given = {
        each["type"].removeprefix("mlbatch:"): each.get("properties", {})
        for each in program["resources"].values()
        if each["type"].startswith("mlbatch:")
    }
    given["Queueing"] |= {"artifacts": mirror.artifacts, "unverified": True}
    given["Team"]["quota"] = dict(reversed(given["Team"]["quota"].items()))
    plugin = ran(PLUGIN, json.dumps(given))
    offered = {name.rpartition(":")[2]: each for name, each in plugin["schema"]["resources"].items()}
    assert offered.keys() == given.keys()
    for name, inputs in given.items():
        assert set(offered[name]["requiredInputs"]) <= inputs.keys() <= offered[name]["inputProperties"].keys()
    objects = {
        (each["inputs"].get("kind"), each["inputs"]["metadata"]["name"]): each["inputs"]
        for each in plugin["resources"]
        if "metadata" in each["inputs"]
    }
    assert {("ResourceFlavor", "default-flavor"), ("ClusterQueue", "slack-cluster-queue")} <= objects.keys()
    quota = objects["ClusterQueue", "blue-cluster-queue"]["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
    assert {each["name"]: each["nominalQuota"] for each in quota} == given["Team"]["quota"]
    assert [each["name"] for each in quota] == sorted(given["Team"]["quota"]), "the engine's order is random"
