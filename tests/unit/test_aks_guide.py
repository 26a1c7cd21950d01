"""The AKS guides' commands can be copied: they parse, use no variable that is not set, and name settings that exist."""

import re
import subprocess
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Union, get_args, get_origin

import pytest
import yaml
from pydantic import BaseModel

from components.azure.baselines import THRESHOLDS
from components.health.thresholds import Scope
from stacks.config import secrets
from stacks.settings.monitoring import MonitoringSettings
from stacks.settings.recovery import RecoverySettings
from stacks.settings.scheduling import SchedulingSettings
from stacks.settings.tenancy import QueueingSettings, TenancySettings
from stacks.settings.volcano import VolcanoSettings
from stacks.settings.workloads import WorkloadsSettings
from stacks.targets.aks.settings import AksGpuSettings
from stacks.targets.aks.settings.azure import AzureSettings
from stacks.targets.aks.settings.health import AksHealthSettings
from stacks.targets.aks.settings.storage import StorageSettings
from stacks.targets.registry import TARGETS
from tests.unit.configurations import aks, changed, errors_of

ROOT = Path(__file__).parents[2]
TEXT = "".join((ROOT / "docs" / name).read_text() for name in ("aks.md", "aks-storage.md"))
BLOCKS = re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
SECTIONS: Mapping[str, type[BaseModel]] = {
    "azure": AzureSettings,
    "gpu": AksGpuSettings,
    "health": AksHealthSettings,
    "scheduling": SchedulingSettings,
    "storage": StorageSettings,
    "queueing": QueueingSettings,
    "monitoring": MonitoringSettings,
    "recovery": RecoverySettings,
    "tenancy": TenancySettings,
    "volcano": VolcanoSettings,
    "workloads": WorkloadsSettings,
}
KEYS = sorted({f"{section}.{rest}" for section, rest in re.findall(r"mlbatch:(\w+)\.([\w.]+)", TEXT)})


def model_of(annotation: Any) -> type[BaseModel] | None:
    """Return the section that a field holds, or a list of sections; None for a field with values."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (Union, types.UnionType, tuple):
        return next((found for found in map(model_of, get_args(annotation)) if found), None)
    return None


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: str(block).splitlines()[0][:40])
def test_commands_parse(block: str) -> None:
    done = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_variable_is_set_before_it_is_used() -> None:
    known: set[str] = set()
    for block in BLOCKS:
        for line in block.splitlines():
            used = set(re.findall(r"\$\{?([A-Za-z_]+)", line))
            known |= set(re.findall(r"(?:^|export |for | )([A-Za-z_]+)(?:=| in )", line))
            assert used <= known, (used - known, line)


def test_kubernetes_versions_of_the_guide_are_accepted_with_its_settings() -> None:
    section = TEXT.partition("### Before 1.36")[2].partition("```\n")[0]
    set_first = {key: yaml.safe_load(value) for key, value in re.findall(r"'mlbatch:(\S+)' (\S+)", section)}
    versions = re.findall(r"^\| (1\.\d+) ", TEXT, re.MULTILINE)
    assert versions[-1] == "1.36"
    for version in versions:
        settings = {"azure.kubernetesVersion": version, **(set_first if version == "1.36" else {})}
        assert errors_of(changed(aks(gpu={"fabric": {}}, volcano={"enabled": True}), settings)) == []
    assert errors_of(changed(aks(volcano={"enabled": True}), {"azure.kubernetesVersion": "1.36"})), "needs them"


IMAGES = next(block for block in BLOCKS if "docker build" in block)


@pytest.mark.parametrize("fails", ["", "metaseq"])
def test_images_are_built_and_pushed_until_the_first_that_fails(tmp_path: Path, fails: str) -> None:
    """Executed as if pasted into a shell, with programs that record their arguments."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("az", "docker", "pulumi"):
        note = f'echo {name} "$@" >> {tmp_path}/asked'
        (tools / name).write_text(f'#!/bin/sh\n{note}\ncase "{name} $*" in *{fails or "/none/"}*) exit 1;; esac\n')
        (tools / name).chmod(0o755)
    here = tmp_path / "here"
    here.mkdir()
    environment = {"PATH": f"{tools}:/usr/bin:/bin"}
    script = f"{IMAGES.replace('pulumi config', 'test $? = 0 && pulumi config')}pwd\n"
    ran = subprocess.run(["bash"], input=script, cwd=here, env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == str(here), "the reader stays where they were"
    asked = (tmp_path / "asked").read_text().splitlines()
    pushed = [line.rpartition("/")[2].partition(":")[0] for line in asked if line.startswith("docker push")]
    assert pushed == {"": ["nccltest", "metaseq", "olmo"], "metaseq": ["nccltest"]}[fails]
    assert any(line.startswith("pulumi config set") for line in asked) == (not fails)
    built = [line.rpartition(" ")[2] for line in asked if line.startswith("docker build")]
    assert built == [f"images/{name}" for name in ("nccltest", "metaseq", "olmo")[: len(built)]]


def test_jobs_come_after_their_images_and_those_after_the_registry() -> None:
    order = [TEXT.index(text) for text in ("pulumi up --stack aks", "docker push", "nccl.enabled' true")]
    assert order == sorted(order)


def test_keys_are_found() -> None:
    assert len(KEYS) > 12


@pytest.mark.parametrize("key", KEYS)
def test_settings_that_the_guide_names_exist(key: str) -> None:
    section, *names = key.rstrip(".").split(".")
    model: type[BaseModel] | None = SECTIONS[section]
    for name in names:
        assert model is not None, key
        fields = {field.alias or python: field for python, field in model.model_fields.items()}
        assert name in fields, f"{key}: {', '.join(fields)}"
        model = model_of(fields[name].annotation)


def test_secrets_are_set_as_secrets() -> None:
    """Those of alerts are in the page about monitoring, which this one links."""
    asked = set(secrets.of_target(TARGETS["aks"])) - set(secrets.ALERT_ADDRESSES.values())
    assert set(re.findall(r"pulumi config set --secret mlbatch:(\w+)", TEXT)) == asked


def test_the_expected_bandwidths_are_those_that_the_checks_judge_by() -> None:
    for scope, row in ((Scope.NODE, "| one node"), (Scope.FABRIC, "| two or more nodes")):
        floor = THRESHOLDS["Standard_ND96isr_H100_v5"][scope]
        line = next(line for line in TEXT.splitlines() if line.startswith(row))
        assert [cell.strip() for cell in line.split("|")[2:4]] == [f"{floor.expected:g}", f"{floor.fail:g}"]


def test_the_drift_check_reads_the_variables_that_the_guide_asks_for() -> None:
    workflow = (ROOT / ".github" / "workflows" / "drift.yml").read_text()
    assert yaml.safe_load(workflow)
    used = set(re.findall(r"(?:vars|secrets)\.([A-Z_]+)", workflow)) - {"DRIFT_STACK"}
    section = (ROOT / "docs" / "drift.md").read_text().split("## Check every night")[1].split("\n## ")[0]
    assert used == {name for name in used if f"`{name}`" in section}


@pytest.mark.parametrize(
    "message",
    ["already exists", "cannot create already existing resource", "cannot re-use a name that is still in use"],
)
def test_what_a_killed_update_leaves_leads_to_where_it_is_finished(message: str) -> None:
    """Another `pulumi up` ends with the same message."""
    (row,) = (line for line in TEXT.splitlines() if line.startswith("|") and f"`{message}`" in line)
    assert "](operations.md#an-update-that-was-killed)" in row
    finishing = (ROOT / "docs" / "operations.md").read_text().partition("## An update that was killed")[2]
    assert message in " ".join(finishing.partition("\n## ")[0].split())


def test_the_subscription_is_named_before_anything_is_made() -> None:
    """The current stack of a shell may change by the next day."""
    configure = next(block for block in BLOCKS if "pulumi stack select" in block)
    assert "'mlbatch:azure.subscriptionId' \"$SUBSCRIPTION\"" in configure
    assert re.search(r"^ +# subscriptionId: [\w-]{36} # yours", (ROOT / "Pulumi.aks.yaml").read_text(), re.MULTILINE)
