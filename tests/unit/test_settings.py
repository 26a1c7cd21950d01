"""Every error in a stack's configuration gives a message with its key, its value, the allowed values and the fix."""

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from components import catalogue, names
from stacks.config import inputs
from stacks.config.cluster_facts import ClusterFacts
from stacks.config.errors import SettingsError
from stacks.config.kubeconfig import Kubeconfig
from stacks.derived.quotas import slack_quota
from stacks.targets.registry import TARGETS
from tests.unit.configurations import errors_of, settings_of

ROOT = Path(__file__).resolve().parents[2]
GPU = '["nvidia.com/gpu"]'
QUOTA = {"cpu": 224, "memory": "2000G", "nvidia.com/gpu": 8, "pods": 100}


def valid() -> dict[str, Any]:
    """A configuration without errors: three 8-GPU nodes for the slack queue and two teams."""
    return {
        "target": "simulated",
        "nodes": {"count": 3, "instanceType": "h100-sxm5-8x", "gpusPerNode": 8},
        "queueing": {"slack": dict(QUOTA)},
        "teams": [
            {"name": "blue", "users": ["alice"], "quota": dict(QUOTA)},
            {"name": "red", "users": ["bob"], "quota": dict(QUOTA)},
        ],
        "samples": {"gang": {"team": "blue", "user": "alice"}},
    }


def changed(path: tuple[str | int, ...], value: object) -> dict[str, Any]:
    """Return the valid configuration with one value set; None removes it."""
    raw: dict[str, Any] = deepcopy(valid())
    place: Any = raw
    for part in path[:-1]:
        place = place.setdefault(part, {}) if isinstance(part, str) else place[part]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return raw


def test_groups_stand_beside_users_or_in_their_place() -> None:
    raw = changed(("teams", 1, "groups"), ["GPU Users", "11111111-2222-3333-4444-555555555555"])
    del raw["teams"][1]["users"]
    team = settings_of(raw).teams[1]
    assert team.users == ()
    assert team.groups == ("GPU Users", "11111111-2222-3333-4444-555555555555")


def test_who_is_in_a_group_is_not_the_settings_to_say() -> None:
    raw = changed(("samples", "gang", "user"), "carol")
    raw["teams"][0]["groups"] = ["gpu"]
    assert settings_of(raw).samples.gang.user == "carol"


def test_the_target_alone_is_enough() -> None:
    settings = settings_of({"target": "simulated"})
    pool = settings.nodes.pool()
    assert {name: str(amount) for name, amount in pool.resources.items()} == {
        "cpu": "672",
        "memory": "6340233864Ki",
        "nvidia.com/gpu": "24",
        "nvidia.com/roce_gdr": "0",
        "nvidia.com/mlnxnics": "0",
        "pods": "750",
    }
    assert settings.teams == ()
    assert settings.queueing.cohort == "default-cohort"
    assert settings.queueing.kueue_version == catalogue.versions(catalogue.KUEUE)[0]
    assert settings.samples.gang is None
    assert settings.mirror.artifacts is None


def test_empty_sections_mean_their_defaults() -> None:
    assert settings_of({"target": "simulated", "nodes": None, "teams": None, "mirror": {}}) == settings_of(
        {"target": "simulated"}
    )


def test_the_slack_queue_defaults_to_one_node_and_to_nothing_on_a_single_node() -> None:
    several, single = settings_of({"target": "simulated"}), settings_of({"target": "simulated", "nodes": {"count": 1}})
    assert slack_quota(several.queueing.slack, several.nodes.pool())[names.GPU].nano == 8 * 10**9
    assert {amount.nano for amount in slack_quota(single.queueing.slack, single.nodes.pool()).values()} == {0}


def test_an_instance_type_brings_its_numbers_and_settings_override_them() -> None:
    azure = settings_of({"target": "simulated", "nodes": {"count": 2, "instanceType": "Standard_ND96isr_H100_v5"}})
    assert {name: str(amount) for name, amount in azure.nodes.pool().shape.resources.items()} == {
        "cpu": "94940m",
        "memory": "1895Gi",
        "nvidia.com/gpu": "8",
        "nvidia.com/roce_gdr": "0",
        "nvidia.com/mlnxnics": "8",
        "pods": "250",
    }
    own = settings_of(
        {"target": "simulated", "nodes": {"gpusPerNode": 4, "cpu": "64000m", "memory": "1024Gi", "rocePerNode": 2}}
    )
    assert {name: str(amount) for name, amount in own.nodes.pool().shape.resources.items()} == {
        "cpu": "64",
        "memory": "1Ti",
        "nvidia.com/gpu": "4",
        "nvidia.com/roce_gdr": "2",
        "nvidia.com/mlnxnics": "0",
        "pods": "250",
    }


def test_nothing_but_a_mapping_and_plain_values_ends_in_an_unexpected_error() -> None:
    odd: list[object] = ["", "x", 0, -1, 1.5, True, [], [1], {}, {"a": 1}, [[]], [{}], {"x": {"y": []}}, float("inf")]
    for target in TARGETS.values():
        for section in target.sections:
            for value in odd:
                errors_of({"target": target.name, section: value})


@pytest.mark.parametrize("file", sorted(ROOT.glob("Pulumi.*.yaml")), ids=lambda file: file.name)
def test_every_stack_of_the_repository_is_valid(file: Path) -> None:
    config = yaml.safe_load(file.read_text())["config"]
    raw = {name.removeprefix("mlbatch:"): value for name, value in config.items()}
    assert [str(error) for error in errors_of(raw)] == []


def test_the_project_declares_each_section_and_no_other() -> None:
    declared = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())["config"]
    assert set(declared) == {"target"}.union(*(target.sections for target in TARGETS.values()))
    assert "default" not in declared["target"]
    assert all(not declared[name]["default"] for name in declared if name != "target"), "defaults stand in the models"


class TestMirror:
    """The mirror's files are looked for before anything is registered."""

    def report(self, mirror: object, kubeconfig: Path, tmp_path: Path) -> str:
        with pytest.raises(SettingsError) as error:
            interpret({**valid(), "mirror": mirror}, kubeconfig, tmp_path)
        return str(error.value)

    def test_each_file_that_a_folder_lacks_is_named(self, kubeconfig: Path, tmp_path: Path) -> None:
        folder = tmp_path / "mirror"
        folder.mkdir()
        text = self.report({"artifacts": str(folder)}, kubeconfig, tmp_path)
        wanted = {catalogue.KUEUE, catalogue.APPWRAPPER, catalogue.SCHEDULER_PLUGINS, catalogue.ELASTIC_QUOTAS}
        for name in wanted:
            artifact = catalogue.find(name, catalogue.versions(name)[0])
            assert f"the folder {folder} lacks {artifact.file}" in text
            assert f"put {artifact.url} there" in text
        assert text.count(" lacks ") == len(wanted), "what is not installed is not looked for"

    def test_a_relative_folder_counts_from_the_project(self, kubeconfig: Path, tmp_path: Path) -> None:
        (tmp_path / "files").mkdir()
        for artifact in catalogue.ARTIFACTS:
            (tmp_path / "files" / artifact.file).write_text("")
        raw = {**valid(), "mirror": {"artifacts": "files/", "images": "registry.example.org/mirror/"}}
        stack = interpret(raw, kubeconfig, tmp_path)
        assert stack.mirror.artifacts == str(tmp_path / "files")
        assert stack.mirror.images == "registry.example.org/mirror"


def interpret(raw: Mapping[str, object], kubeconfig: Path, base: Path) -> inputs.StackInputs[Any]:
    def ask(kubeconfig: Kubeconfig, nodes: Mapping[str, str] | None) -> ClusterFacts:
        """Simulate a cluster that answers."""
        return ClusterFacts(identifier="lab", version="1.34")

    return inputs.interpret(raw, base=base, environment={"KUBECONFIG": str(kubeconfig)}, ask=ask)


def test_mistakes_inside_and_outside_of_the_configuration_come_together(tmp_path: Path) -> None:
    raw = {**changed(("nodes", "count"), 0), "mirror": {"artifacts": "nowhere"}}
    with pytest.raises(SettingsError) as error:
        interpret(raw, tmp_path / "absent", tmp_path)
    text = str(error.value)
    assert text.startswith("The stack's configuration has 3 problems. Nothing was created or changed.")
    assert all(f"{number}. mlbatch:" in text for number in (1, 2, 3))
