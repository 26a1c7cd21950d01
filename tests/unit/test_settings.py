"""Every mistake in a stack's configuration gives a message with its key, its value, what is allowed and the fix."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from components import catalogue, names
from stacks.config import inputs
from stacks.config.cluster_facts import ClusterFacts
from stacks.config.errors import SettingsError, key
from stacks.config.kubeconfig import Kubeconfig
from stacks.derived.quotas import slack_quota
from stacks.settings.kubernetes import KubernetesSettings
from stacks.targets.registry import TARGETS
from tests.unit.configurations import errors_of, settings_of

ROOT = Path(__file__).resolve().parents[2]
GPU = '["nvidia.com/gpu"]'
QUOTA = {"cpu": 224, "memory": "2000G", "nvidia.com/gpu": 8, "pods": 100}


def valid() -> dict[str, Any]:
    """A configuration without a mistake: three 8-GPU nodes, shared out to the slack queue and two teams."""
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


def test_a_configuration_without_a_mistake_is_read() -> None:
    settings = settings_of(valid())
    assert settings.target == "simulated"
    assert settings.nodes.pool().count == 3
    assert [team.name for team in settings.teams] == ["blue", "red"]
    assert {name: str(amount) for name, amount in settings.teams[0].quota.amounts().items()} == {
        "cpu": "224",
        "memory": "2T",
        "nvidia.com/gpu": "8",
        "nvidia.com/roce_gdr": "0",
        "nvidia.com/mlnxnics": "0",
        "pods": "100",
    }


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


MISTAKES = [
    # keys
    (("taget",), "simulated", "mlbatch:taget", "no key 'taget'", "did you mean 'target'?"),
    (("zebra",), {}, "mlbatch:zebra", "no key 'zebra'", "remove the key"),
    (("nodes", "gpuPerNode"), 8, "mlbatch:nodes.gpuPerNode", "no key 'gpuPerNode'", "did you mean 'gpusPerNode'?"),
    (("nodes", "gpus_per_node"), 8, "mlbatch:nodes.gpus_per_node", "no key", "did you mean 'gpusPerNode'?"),
    (("teams", 0, "quotas"), {}, "mlbatch:teams[0].quotas", "no key 'quotas'", "did you mean 'quota'?"),
    (
        ("teams", 1, "quota", "nvidia.com/GPU"),
        8,
        'mlbatch:teams[1].quota["nvidia.com/GPU"]',
        "no key 'nvidia.com/GPU'",
        "did you mean 'nvidia.com/gpu'?",
    ),
    (
        ("teams", 1, "quota", "amd.com/gpu"),
        8,
        'mlbatch:teams[1].quota["amd.com/gpu"]',
        "no key 'amd.com/gpu'",
        "did you mean 'nvidia.com/gpu'?",
    ),
    (("queueing", "slack", "disk"), "1Ti", "mlbatch:queueing.slack.disk", "no key 'disk'", "remove the key"),
    (("samples", "gang", "Pods"), 2, "mlbatch:samples.gang.Pods", "no key 'Pods'", "did you mean 'pods'?"),
    # what has to be there
    (("target",), None, "mlbatch:target\n", "required", "pulumi config set mlbatch:target simulated"),
    (("teams", 0, "name"), None, "mlbatch:teams[0].name", "required", "add name"),
    (("teams", 0, "users"), None, "mlbatch:teams[0].users", "nothing says who is in the team", "[] for nobody"),
    (("teams", 1, "quota"), None, "mlbatch:teams[1]", "neither", "add share: 1, or a quota"),
    (("teams", 1, "share"), 1, "mlbatch:teams[1]", "this one has both", "remove one of the two"),
    (("teams", 1, "share"), 0, "mlbatch:teams[1].share = 0", "out of range", "from 1 to 1000"),
    (("queueing", "enabled"), False, "mlbatch:queueing.enabled = false", "through queues", "true, or no teams"),
    (("teams", 1, "quota", "cpu"), None, "mlbatch:teams[1].quota.cpu", "required", "add cpu, 0 for none"),
    (("teams", 1, "quota", "nvidia.com/gpu"), None, f"mlbatch:teams[1].quota{GPU}", "required", "0 for none"),
    # types
    (("target",), "moon", 'mlbatch:target = "moon"', "this target is not known", "allowed: simulated"),
    (("target",), "simulted", 'mlbatch:target = "simulted"', "not known", "did you mean simulated?"),
    (("nodes",), "three", 'mlbatch:nodes = "three"', "this is a text", "count, instanceType"),
    (("nodes",), [], "mlbatch:nodes = []", "this is a list", "write a mapping"),
    (("nodes", "count"), "3", 'mlbatch:nodes.count = "3"', "this is a text", "write a whole number without quotes"),
    (("nodes", "count"), True, "mlbatch:nodes.count = true", "this is true or false", "a whole number"),
    (("nodes", "count"), 2.5, "mlbatch:nodes.count = 2.5", "this is a number", "a whole number"),
    (("nodes", "instanceType"), 5, "mlbatch:nodes.instanceType", "not known", "h100-sxm5-8x, Standard_ND96isr"),
    (("teams",), {"blue": {}}, 'mlbatch:teams = {"blue": {}}', "this is a mapping", "a list of teams"),
    (("teams", 0), "blue", "mlbatch:teams[0]", "this is a text", "name, users, groups, quota"),
    (("teams", 0, "users"), "alice", 'mlbatch:teams[0].users = "alice"', "this is a text", "a list"),
    (("teams", 0, "users", 0), 7, "mlbatch:teams[0].users[0] = 7", "this is a number", "a text in quotes"),
    (("teams", 0, "name"), 7, "mlbatch:teams[0].name = 7", "this is a number", "a text in quotes"),
    (("samples", "gang", "enabled"), "yes", 'mlbatch:samples.gang.enabled = "yes"', "a text", "true or false"),
    (("samples", "gang", "priorityClass"), "urgent", "priorityClass", "not known", "low-priority, default-priority"),
    # ranges
    (("nodes", "count"), 0, "mlbatch:nodes.count = 0", "out of range", "a whole number from 1 to 1000"),
    (("nodes", "count"), 1001, "mlbatch:nodes.count = 1001", "out of range", "a whole number from 1 to 1000"),
    (("nodes", "gpusPerNode"), 17, "mlbatch:nodes.gpusPerNode = 17", "out of range", "from 1 to 16"),
    (("samples", "gang", "seconds"), 0, "mlbatch:samples.gang.seconds = 0", "out of range", "from 1 to 604800"),
    # versions
    (
        ("queueing", "kueueVersion"),
        "v0.10.2",
        "kueueVersion",
        "Kueue version is not known",
        catalogue.versions("kueue")[0],
    ),
    (("queueing", "kueueVersion"), 0.19, "kueueVersion = 0.19", "not known", catalogue.versions("kueue")[0]),
    (
        ("queueing", "appwrapperVersion"),
        "latest",
        "appwrapperVersion",
        "not known",
        catalogue.versions("appwrapper")[0],
    ),
    # quantities
    (("teams", 1, "quota", "cpu"), "-8", 'mlbatch:teams[1].quota.cpu = "-8"', "never negative", "write 0"),
    (("teams", 1, "quota", "cpu"), "lots", "mlbatch:teams[1].quota.cpu", "not a Kubernetes quantity", "suffix of m, k"),
    (
        ("teams", 1, "quota", "memory"),
        "2000GB",
        'memory = "2000GB"',
        "not a Kubernetes quantity",
        'did you mean "2000G"?',
    ),
    (("teams", 1, "quota", "memory"), "128gib", 'memory = "128gib"', "not a Kubernetes quantity", '"128Gi"?'),
    (("teams", 1, "quota", "memory"), True, "memory = true", "true or false", "a Kubernetes quantity"),
    (("teams", 1, "quota", "nvidia.com/gpu"), "500m", f"quota{GPU}", "whole pieces", "a Kubernetes quantity"),
    (("queueing", "slack", "pods"), 1.5, "mlbatch:queueing.slack.pods = 1.5", "whole pieces", "a Kubernetes quantity"),
    (("nodes", "memory"), "1.9.0Ti", "mlbatch:nodes.memory", "not a Kubernetes quantity", "suffix of m, k"),
    # names
    (
        ("teams", 1, "name"),
        "blue",
        'mlbatch:teams[1].name = "blue"',
        "mlbatch:teams[0].name is 'blue' too",
        "another name",
    ),
    (("teams", 1, "name"), "Red", 'mlbatch:teams[1].name = "Red"', "Kubernetes would reject", "for example 'red'"),
    (("teams", 1, "name"), "red_team", 'teams[1].name = "red_team"', "reject", "for example 'red-team'"),
    (("teams", 1, "name"), "r" * 64, "mlbatch:teams[1].name", "it has 64 characters", "at most 63"),
    (("teams", 1, "name"), "-red", "mlbatch:teams[1].name", "reject", "'red'"),
    (("teams", 1, "name"), "", "mlbatch:teams[1].name", "reject", "RFC 1123"),
    (("teams", 1, "name"), "kube-system", "mlbatch:teams[1].name", "belongs to the cluster", "another name"),
    (("teams", 1, "name"), "default", "mlbatch:teams[1].name", "belongs to the cluster", "another name"),
    (("teams", 1, "name"), "mlbatch-system", "mlbatch:teams[1].name", "belongs to the cluster", "another name"),
    (("teams", 1, "name"), "openshift-gpu", "mlbatch:teams[1].name", "belongs to the cluster", "another name"),
    (("teams", 1, "name"), "slack", "mlbatch:teams[1].name", "slack-cluster-queue", "mlbatch:queueing.slack"),
    (("queueing", "cohort"), "Default Cohort", "mlbatch:queueing.cohort", "reject this name", "'default-cohort'"),
    (("samples", "gang", "name"), "My_Job", "mlbatch:samples.gang.name", "reject", "'my-job'"),
    (("teams", 1, "users"), ["bob", "bob"], "mlbatch:teams[1].users[1]", "has this user already", "second entry"),
    (("teams", 1, "users"), [" "], "mlbatch:teams[1].users[0]", "not empty", "write the name"),
    (("teams", 1, "users"), ["system:admin"], "mlbatch:teams[1].users[0]", "belong to Kubernetes", "own name"),
    (("teams", 1, "users"), ["bob\n"], "mlbatch:teams[1].users[0]", "blanks around this name", "own name"),
    (("teams", 1, "users"), ["bo\u200bb"], "mlbatch:teams[1].users[0]", "cannot be seen", "own name"),
    (("teams", 1, "groups"), "gpu", "mlbatch:teams[1].groups", "this is a text", "a list"),
    (("teams", 1, "groups"), ["gpu", "gpu"], "mlbatch:teams[1].groups[1]", "has this group already", "second entry"),
    (("teams", 1, "groups"), [""], "mlbatch:teams[1].groups[0]", "not empty", "write the name"),
    (("teams", 1, "groups"), [" gpu"], "mlbatch:teams[1].groups[0]", "blanks around this name", "own name"),
    (("teams", 1, "groups"), ["a\x07"], "mlbatch:teams[1].groups[0]", "cannot be seen", "own name"),
    (("teams", 1, "groups"), ["system:authenticated"], "groups[0]", "open to all", "the group's own name"),
    (("teams", 1, "groups"), ["system:unauthenticated"], "groups[0]", "open to the world", "the group's own name"),
    (("teams", 1, "groups"), ["system:masters"], "groups[0]", "may do everything", "the group's own name"),
    (("teams", 1, "groups"), ["system:serviceaccounts"], "groups[0]", "every pod with a token", "own name"),
    (("teams", 1, "groups"), ["system:serviceaccounts:red"], "groups[0]", "pods of a namespace", "own name"),
    (("teams", 1, "groups"), ["system:nodes"], "groups[0]", "the kubelets", "own name"),
    (("teams", 1, "groups"), ["system:monitoring"], "groups[0]", "belong to Kubernetes", "own name"),
    # sums and limits
    (
        ("teams", 1, "quota", "nvidia.com/gpu"),
        16,
        "mlbatch:teams\n",
        "add up to 32, which is 8 more than the nodes have: slack 8, blue 8, red 16",
        "at most 24 together (3 nodes with 8 each)",
    ),
    (
        ("teams", 0, "quota", "memory"),
        "3T",
        "mlbatch:teams",
        "quotas of memory add up to 7T, which is 507600523264 more than the nodes have: slack 2T, blue 3T, red 2T",
        "lower quotas by 507600523264",
    ),
    (
        ("teams", 0, "quota", "nvidia.com/roce_gdr"),
        1,
        "mlbatch:teams",
        "1 more than the nodes have: blue 1",
        "at most 0",
    ),
    (
        ("teams", 0, "lendingLimit"),
        {"nvidia.com/gpu": 9},
        f"mlbatch:teams[0].lendingLimit{GPU}",
        "cannot lend more than its quota of 8",
        "from 0 to 8",
    ),
    (("teams", 0, "lendingLimit"), {"nvidia.com/GPU": 8}, "lendingLimit", "no key", "did you mean 'nvidia.com/gpu'?"),
    # the sample job
    (("samples", "gang", "team"), None, "mlbatch:samples.gang.team\n", "a team has to submit", "set it to blue"),
    (("samples", "gang", "team"), "bleu", 'gang.team = "bleu"', "no such team", "did you mean blue?"),
    (
        ("samples", "gang", "user"),
        "carol",
        'gang.user = "carol"',
        "this user is in no team",
        "add carol to the users of blue",
    ),
    (("samples", "gang", "user"), "bob", 'gang.user = "bob"', "in team red, not in blue", "alice"),
    (("samples", "gang", "pods"), 4, "mlbatch:samples.gang.pods = 4", "3 nodes hold 3 such pods", "at most 3 pods"),
    (
        ("samples", "gang", "gpusPerPod"),
        9,
        "mlbatch:samples.gang.gpusPerPod = 9",
        "a node has 8 nvidia.com/gpu",
        "ask for at most 8",
    ),
    (("samples", "gang", "cpuPerPod"), 300, "gang.cpuPerPod = 300", "a node has 224 cpu", "ask for at most 224"),
    (
        ("teams", 0, "borrowingLimit"),
        {"nvidia.com/gpu": 4},
        "mlbatch:samples.gang.pods",
        "needs 16 nvidia.com/gpu, and team blue can never have more than 12: 8 of its own and 4 that it may borrow",
        "raise the team's quota",
    ),
]


@pytest.mark.parametrize(("path", "value", "where", "wrong", "remedy"), MISTAKES)
def test_a_mistake_is_named_with_its_place_its_reason_and_its_remedy(
    path: tuple[str | int, ...], value: object, where: str, wrong: str, remedy: str
) -> None:
    found = [str(problem) for problem in errors_of(changed(path, value))]
    assert any(where in text and wrong in text and remedy in text for text in found), "\n".join(found)
    assert all(all(f"\n    {part}" in text for part in ("wrong:", "allowed:", "fix:")) for text in found)


def test_a_sum_with_the_default_slack_quota_says_where_it_comes_from() -> None:
    raw = changed(("nodes", "count"), 2)
    del raw["queueing"]["slack"]
    gpus = next(problem for problem in errors_of(raw) if "quotas of nvidia.com/gpu" in problem.message)
    assert "slack is one node's worth unless mlbatch:queueing.slack is set" in gpus.message
    assert "8 more than the nodes have" in gpus.message


def test_a_queue_that_has_nothing_and_may_borrow_nothing_is_named() -> None:
    raw = changed(("teams", 1, "quota", "cpu"), 0)
    assert errors_of(raw) == []
    raw["teams"][1]["borrowingLimit"] = {"cpu": 0}
    (problem,) = errors_of(raw)
    assert problem.path == ("teams", 1, "quota", "cpu")
    assert "none of its jobs could ever run" in str(problem)


def test_a_gang_larger_than_all_queues_together_is_named() -> None:
    raw = changed(("nodes", "count"), 10)
    raw["samples"]["gang"]["pods"] = 4
    (problem,) = errors_of(raw)
    assert "needs 32 nvidia.com/gpu, and team blue can never have more than 24" in problem.message


def test_what_others_do_not_lend_a_gang_cannot_borrow() -> None:
    raw = valid()
    raw["teams"][1]["lendingLimit"] = {"nvidia.com/gpu": 0}
    assert errors_of(raw) == []
    raw["samples"]["gang"]["pods"] = 3
    (problem,) = errors_of(raw)
    assert "never have more than 16: 8 of its own and 8" in problem.message


def test_a_disabled_sample_is_not_judged() -> None:
    assert errors_of(changed(("samples", "gang"), {"enabled": False, "team": "nobody", "pods": 900})) == []


def test_a_user_may_be_in_two_teams_and_a_team_may_be_empty() -> None:
    raw = valid()
    raw["teams"][1]["users"] = ["alice"]
    assert errors_of(raw) == []
    raw["teams"][1]["users"] = []
    assert errors_of(raw) == []


def test_limits_up_to_the_quota_are_allowed() -> None:
    raw = valid()
    raw["teams"][0]["lendingLimit"] = {"cpu": 224, "nvidia.com/gpu": 8}
    raw["teams"][1]["borrowingLimit"] = {"nvidia.com/gpu": 0}
    assert errors_of(raw) == []


def test_a_job_is_queued_again_after_appwrapper_has_tried_and_not_before() -> None:
    raw = valid()
    raw["recovery"] = {"retryPauseSeconds": 120, "recoveryTimeoutSeconds": 120}
    (problem,) = errors_of(raw)
    assert problem.path == ("recovery", "recoveryTimeoutSeconds")
    assert "before AppWrapper has made its pods anew, which takes 120 seconds" in problem.message
    assert problem.hint == "set it to 180 or more, or lower mlbatch:recovery.retryPauseSeconds"
    raw["recovery"]["recoveryTimeoutSeconds"] = 121
    assert errors_of(raw) == []
    raw["recovery"] = {"recoveryTimeoutSeconds": 60}
    assert errors_of(raw), "AppWrapper's own pause is 90 seconds"


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("recovery", "retryPauseSeconds", 0),
        ("recovery", "recoveryTimeoutSeconds", 9),
        ("recovery", "startTimeoutMinutes", 30),  # the platform's own jobs may warm up for that long
        ("recovery", "healthSeconds", -1),
        ("queueing", "replicas", 0),
        ("queueing", "replicas", 4),
    ],
)
def test_bounds_of_recovery(section: str, key: str, value: int) -> None:
    raw = valid()
    raw[section] = {**raw.get(section, {}), key: value}
    (problem,) = errors_of(raw)
    assert problem.path == (section, key)
    assert problem.value == value


def test_all_mistakes_are_reported_at_once() -> None:
    raw = changed(("teams", 1, "quota", "cpu"), "many")
    raw["nodes"]["count"] = "3"
    raw["teams"][0]["name"] = "Blue"
    raw["taget"] = "x"
    raw["samples"]["gang"]["user"] = 5
    del raw["target"]
    found = {key(problem.path) for problem in errors_of(raw)}
    assert found >= {
        "mlbatch:taget",
        "mlbatch:target",
        "mlbatch:nodes.count",
        "mlbatch:teams[0].name",
        "mlbatch:teams[1].quota.cpu",
        "mlbatch:samples.gang.user",
    }


def test_a_mistake_in_a_team_hides_no_mistake_in_its_name() -> None:
    raw = changed(("teams", 1), {"name": "Red", "users": [], "quota": {"cpu": 1, "nvidia.com/GPU": 8}})
    found = {key(error.path) for error in errors_of(raw)}
    assert found >= {"mlbatch:teams[1].name", 'mlbatch:teams[1].quota["nvidia.com/GPU"]'}


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

    def test_a_folder_that_does_not_exist_is_named(self, kubeconfig: Path, tmp_path: Path) -> None:
        text = self.report({"artifacts": "nowhere"}, kubeconfig, tmp_path)
        assert 'mlbatch:mirror.artifacts = "nowhere"' in text
        assert f"there is no folder {tmp_path / 'nowhere'}" in text

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

    def test_an_address_has_to_be_https(self, kubeconfig: Path, tmp_path: Path) -> None:
        text = self.report({"artifacts": "http://mirror.example.org"}, kubeconfig, tmp_path)
        assert "an address that starts with https://" in text

    @pytest.mark.parametrize("prefix", ["https://registry.example.org", "/", ""])
    def test_images_are_a_prefix_without_a_scheme(self, prefix: str, kubeconfig: Path, tmp_path: Path) -> None:
        text = self.report({"images": prefix}, kubeconfig, tmp_path)
        assert "mlbatch:mirror.images" in text
        assert "registry.example.org/mirror" in text

    def test_a_relative_folder_counts_from_the_project(self, kubeconfig: Path, tmp_path: Path) -> None:
        (tmp_path / "files").mkdir()
        for artifact in catalogue.ARTIFACTS:
            (tmp_path / "files" / artifact.file).write_text("")
        raw = {**valid(), "mirror": {"artifacts": "files/", "images": "registry.example.org/mirror/"}}
        stack = interpret(raw, kubeconfig, tmp_path)
        assert stack.mirror.artifacts == str(tmp_path / "files")
        assert stack.mirror.images == "registry.example.org/mirror"


def interpret(raw: Mapping[str, object], kubeconfig: Path, base: Path) -> inputs.StackInputs[Any]:
    def ask(kubeconfig: Kubeconfig, settings: KubernetesSettings, nodes: Mapping[str, str] | None) -> ClusterFacts:
        """Stand for a cluster that answers."""
        return ClusterFacts(identifier="lab", version="1.34")

    return inputs.interpret(raw, base=base, environment={"KUBECONFIG": str(kubeconfig)}, ask=ask)


def test_mistakes_inside_and_outside_of_the_configuration_come_together(tmp_path: Path) -> None:
    raw = {**changed(("nodes", "count"), 0), "mirror": {"artifacts": "nowhere"}}
    with pytest.raises(SettingsError) as error:
        interpret(raw, tmp_path / "absent", tmp_path)
    text = str(error.value)
    assert text.startswith("The stack's configuration has 3 problems. Nothing was created or changed.")
    assert all(f"{number}. mlbatch:" in text for number in (1, 2, 3))
