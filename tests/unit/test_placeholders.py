"""The examples' own values are refused by an update, and replaced in the local environment."""

import re
from pathlib import Path

import pytest
import yaml

from runner.settings import filled
from stacks.config import placeholders
from stacks.config.errors import key
from tests.unit.test_inputs import problems_of

ROOT = Path(__file__).parents[2]
PLACEHOLDERS = {
    "aks": ["azure.registry.name", "azure.sshPublicKey", "azure.storage.account"],
    "cpouta": ["openstack.network", "openstack.sshPublicKey"],
    "dev": [],
    "existing": ["teams[0].users[0]", "teams[1].users[0]", "samples.gang.user"],
    "openshift": ["nfs.server", "teams[0].users[0]", "teams[1].users[0]", "samples.gang.user"],
}


def settings(text: str) -> dict[str, object]:
    return {name.removeprefix("mlbatch:"): value for name, value in yaml.safe_load(text)["config"].items()}


@pytest.mark.parametrize("file", sorted(ROOT.glob("Pulumi.*.yaml")), ids=lambda file: str(file.name))
def test_an_example_has_placeholders_only_where_the_site_has_its_own_values(file: Path) -> None:
    text = file.read_text()
    found = [key(error.path).removeprefix("mlbatch:") for error in placeholders.unreplaced(settings(text))]
    assert found == PLACEHOLDERS[file.name.split(".")[1]]
    assert all("# yours" in line for line in text.splitlines() if re.search("replace-?me", line))
    assert list(placeholders.unreplaced(settings(filled(text)))) == []


def test_an_update_with_a_placeholder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    teams = [{"name": "blue", "users": ["replace-me-alice"], "share": 1}]
    text = problems_of({"target": "simulated", "teams": teams}, tmp_path, monkeypatch, [])
    assert (
        'mlbatch:teams[0].users[0] = "replace-me-alice"\n    wrong:   this is the value of the example\n'
        '    fix:     set your own. The examples mark all values to replace with "yours"\n'
    ) in text
