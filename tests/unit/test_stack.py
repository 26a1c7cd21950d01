"""The dev stack as a whole: its registrations, the order of creation and deletion, and forbidden contents."""

import ast
import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml

from components import ownership
from components.artifacts import Mirror
from components.kubernetes.provider import ClientLimits, kubernetes_provider
from components.tenancy import slack
from stacks.config import inputs
from stacks.config.cluster_facts import ClusterFacts
from stacks.config.inputs import StackInputs
from stacks.deploy import deploy
from tests.unit.harness import Record, Registered, build, strings

ROOT = Path(__file__).resolve().parents[2]
SECRET = "correct-horse-battery"
"""The token in the fixtures' kubeconfig."""
UID = "4b2f1a52-6c1a-4d0e-9a57-2f3f0d4c7a11"
QUANTITY_KEYS = {"nominalQuota", "borrowingLimit", "lendingLimit"}
QUANTITY_MAPS = {"requests", "limits", "capacity", "allocatable"}


def stack_of(raw: dict[str, Any], mirror: Mirror, kubeconfig: Path) -> StackInputs[Any]:
    return inputs.interpret(
        {**raw, "mirror": {"artifacts": mirror.artifacts, "verify": False, **raw.get("mirror", {})}},
        base=ROOT,
        environment={"KUBECONFIG": str(kubeconfig)},
        ask=lambda config, nodes: ClusterFacts(identifier=UID, version="1.34"),
    )


def dev() -> dict[str, Any]:
    config = yaml.safe_load((ROOT / "Pulumi.dev.yaml").read_text())["config"]
    return {name.removeprefix("mlbatch:"): value for name, value in config.items() if name != "mlbatch:mirror"}


@pytest.fixture(scope="module")
def stack(mirror: Mirror, same_kubeconfig: Path) -> StackInputs[Any]:
    return stack_of(dev(), mirror, same_kubeconfig)


@pytest.fixture(scope="module")
def record(whole: Callable[[str], Record]) -> Record:
    return whole("dev")


def test_outputs_say_what_stands(stack: StackInputs[Any]) -> None:
    result: dict[str, Any] = {}
    build(lambda: result.update(deploy(stack)))
    assert result["nodes"] == {"count": 3, "instanceType": "h100-sxm5-8x", "gpus": "24"}
    assert result["queues"]["blue-cluster-queue"] == {
        "cpu": "224",
        "memory": "2T",
        "nvidia.com/gpu": "8",
        "nvidia.com/roce_gdr": "0",
        "nvidia.com/mlnxnics": "0",
        "pods": "100",
    }
    assert set(result["queues"]) == {"slack-cluster-queue", "blue-cluster-queue", "red-cluster-queue"}
    assert result["teams"]["red"]["users"] == ["bob"]
    assert result["teams"]["red"]["groups"] == []
    assert result["unenforced"] == []
    assert result["sample"] == {"namespace": "blue", "name": "sample-gang"}
    assert json.loads(json.dumps(result)) == result


def test_the_provider_keeps_its_objects_and_takes_back_what_is_declared(record: Record) -> None:
    (provider,) = [item for item in record.resources if item.type == "pulumi:providers:kubernetes"]
    assert provider.inputs["clusterIdentifier"] == UID
    for flag in ("enableServerSideApply", "enableConfigMapMutable", "enableSecretMutable", "enablePatchForce"):
        assert provider.inputs[flag] in (True, "true")
    assert "upsertExistingObjects" not in provider.inputs


def test_an_update_can_be_told_to_take_over_what_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    """As docs/operations.md has it done after an update that was killed."""
    monkeypatch.setenv("PULUMI_K8S_UPSERT_EXISTING_OBJECTS", "true")
    (provider,) = build(
        lambda: kubernetes_provider("cluster", kubeconfig="{}", identifier=UID, limits=ClientLimits())
    ).resources
    assert provider.inputs["upsertExistingObjects"] in (True, "true")


def test_the_kubeconfig_is_secret_and_nowhere_else(record: Record) -> None:
    (provider,) = [item for item in record.resources if item.type == "pulumi:providers:kubernetes"]
    assert SECRET in provider.inputs["kubeconfig"]
    assert "kubeconfig" in provider.secrets
    for item in record.objects():
        assert not any(SECRET in text for text in strings(item.inputs))


def custom_resources(record: Record) -> Iterator[Registered]:
    groups = ("kueue.x-k8s.io/", "workload.codeflare.dev/")
    return (item for item in record.objects() if item.inputs["apiVersion"].startswith(groups))


def test_no_custom_resource_comes_before_its_definition_and_its_webhooks(record: Record) -> None:
    found = list(custom_resources(record))
    assert {item.kind for item in found} == {"ResourceFlavor", "ClusterQueue", "LocalQueue", "AppWrapper"}
    for item in found:
        before = record.closure(item)
        group = item.inputs["apiVersion"].split("/")[0]
        definition = next(
            other
            for other in record.of("CustomResourceDefinition")
            if other.inputs["spec"]["names"]["kind"] == item.kind and other.inputs["spec"]["group"] == group
        )
        assert definition.urn in before, f"{item.name} before its definition"
        for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
            for configuration in record.of(kind):
                guards = {
                    rule_group
                    for hook in configuration.inputs["webhooks"]
                    for rule in hook["rules"]
                    for rule_group in rule["apiGroups"]
                }
                if group in guards:
                    assert configuration.urn in before, f"{item.name} before {configuration.object_name}"


def test_kueue_starts_after_the_kind_that_it_is_to_watch_exists(record: Record) -> None:
    """Started before, Kueue notices AppWrappers only when it looks again, and the first job waits for that."""
    kueue = record.one("Deployment", "kueue-controller-manager")
    definition = record.one("CustomResourceDefinition", "appwrappers.workload.codeflare.dev")
    assert definition.urn in record.closure(kueue)


def test_taking_down_goes_from_jobs_to_queues_to_controllers_to_definitions_to_nodes(record: Record) -> None:
    """What depends on something is deleted before it; a controller has to outlive what carries its finalizers."""
    gang = record.closure(record.one("AppWrapper", "sample-gang"))
    assert record.one("LocalQueue", "default-queue", "blue").urn in gang
    assert record.one("Deployment", "appwrapper-controller-manager").urn in gang
    assert record.one("PriorityClass", "default-priority").urn in gang
    kueue = record.one("Deployment", "kueue-controller-manager")
    for item in (*record.of("ClusterQueue"), *record.of("LocalQueue"), *record.of("ResourceFlavor")):
        assert kueue.urn in record.closure(item)
    flavor = record.one("ResourceFlavor", "default-flavor").urn
    assert all(flavor in record.closure(queue) for queue in record.of("ClusterQueue"))
    below = record.closure(kueue)
    assert {item.urn for item in record.of("CustomResourceDefinition") if "kueue" in item.object_name} <= below
    assert record.one("Namespace", "mlbatch-system").urn in below
    nodes = {item.urn for item in record.of("Node")}
    for item in record.objects():
        assert item.kind == "Node" or nodes <= record.closure(item), f"{item.name} would outlive the nodes"


def quantities(value: object, key: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for name, item in value.items():
            if name in QUANTITY_KEYS:
                yield name, item
            elif name in QUANTITY_MAPS and isinstance(item, dict):
                yield from item.items()
            else:
                yield from quantities(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from quantities(item, key)


def test_fields_that_others_write_are_not_declared(record: Record) -> None:
    """Except where the table says that the first value is ours, and for a team's own lending limit."""
    for field in ownership.RUNTIME_FIELDS:
        for item in record.of(field.kind):
            values = list(at(item.inputs, field.path))
            if field.declared_once:
                assert field.path in item.ignore_changes
            elif field.kind != "ClusterQueue" or item.object_name == "slack-cluster-queue":
                assert values == [], f"{item.name} declares {field.path}, which belongs to {field.owner}"


def at(value: Any, path: str) -> Iterator[object]:
    head, _, rest = path.partition(".")
    name, each = head.removesuffix("[*]"), head.endswith("[*]")
    if not isinstance(value, dict) or name not in value:
        return
    for item in value[name] if each else [value[name]]:
        if rest:
            yield from at(item, rest)
        else:
            yield item


def pairs(value: object) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from value.items()
        for item in value.values():
            yield from pairs(item)
    elif isinstance(value, list):
        for item in value:
            yield from pairs(item)


def test_the_sample_is_left_out_when_it_is_not_wanted(mirror: Mirror, kubeconfig: Path) -> None:
    record = build(lambda: deploy(stack_of({**dev(), "samples": {}}, mirror, kubeconfig)))
    assert record.of("AppWrapper") == []
    assert len(record.of("ClusterQueue")) == 3


def test_a_team_more_changes_nothing_else(mirror: Mirror, kubeconfig: Path, record: Record) -> None:
    raw = dev()
    raw["nodes"] = {**raw["nodes"], "count": 3}
    raw["teams"] = [
        *raw["teams"],
        {"name": "green", "users": [], "quota": {"cpu": 0, "memory": 0, "nvidia.com/gpu": 0}},
    ]
    more = build(lambda: deploy(stack_of(raw, mirror, kubeconfig)))
    before = {item.urn: item.inputs for item in record.objects()}
    after = {item.urn: item.inputs for item in more.objects()}
    changed = {urn: inputs for urn, inputs in before.items() if after[urn] != inputs}
    # The permissions list the queues whose limits the slack controller may change. The policy of volumes names all
    # teams' namespaces, because a request does not contain the future owner of a volume.
    volumes, permissions = sorted(changed)
    assert volumes.endswith("::mlbatch-team-own-volumes")
    assert permissions.endswith("::slack-controller/ClusterRole")
    *others, own = before[permissions]["rules"]
    queues = [*own["resourceNames"], "green-cluster-queue"]
    assert after[permissions]["rules"] == [*others, {**own, "resourceNames": queues}]
    assert sorted(item.kind for item in more.objects() if item.urn not in before) == [
        "ClusterQueue",
        "LimitRange",
        "LocalQueue",
        "Namespace",
        "NetworkPolicy",
        *["ResourceQuota"] * 6,
    ]


def test_upstream_files_that_cannot_be_had_end_the_program_before_the_first_resource(
    stack: StackInputs[Any], tmp_path: Path
) -> None:
    broken = replace(stack, mirror=Mirror(artifacts=str(tmp_path)))
    registered: list[Record] = []
    with pytest.raises(pulumi.RunError, match=r"the mirror lacks kueue v\d"):
        registered.append(build(lambda: deploy(broken)))
    assert registered == []


class TestLayering:
    """Who may know whom."""

    def imports(self, file: Path) -> set[str]:
        found = set()
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module)
        return found

    def program(self) -> list[Path]:
        return [ROOT / "__main__.py", *(ROOT / "stacks").rglob("*.py"), *(ROOT / "components").rglob("*.py")]

    def test_the_program_never_imports_the_local_environment(self) -> None:
        """Also `__main__.py`, which no `ruff.toml` covers."""
        files = self.program()
        assert len(files) > 25
        assert not any(name.split(".")[0] == "emulator" for file in files for name in self.imports(file))

    def test_configuration_is_read_in_one_module(self) -> None:
        readers = [
            file.name for file in self.program() if re.search(r"pulumi\.(runtime\.)?[Cc]onfig", file.read_text())
        ]
        assert readers == ["inputs.py"]

    def test_the_slack_controller_needs_the_standard_library_alone(self) -> None:
        shared = {
            "components.kubernetes.followed",
            "components.kubernetes.in_cluster",
            "components.tenancy.ending_jobs",
            "components.tenancy.lending",
        }
        controller = slack.program(slack.SlackControllerArgs(queue="slack", teams=[], image="python", pools=[]))
        assert set(controller.shared) == shared
        files = [ROOT / f"{module.replace('.', '/')}.py" for module in (controller.module, *shared)]
        names = set[str]().union(*map(self.imports, files)) - shared
        assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names


@pytest.mark.parametrize("packing", ["coscheduling", "none"])
def test_teams_come_after_the_priorities_that_their_jobs_name(mirror: Mirror, kubeconfig: Path, packing: str) -> None:
    stack = stack_of({**dev(), "scheduling": {"packing": packing}}, mirror, kubeconfig)
    record = build(lambda: deploy(stack))
    priorities = {item.urn for item in record.of("PriorityClass")}
    assert len(priorities) == 3
    for queue in record.of("LocalQueue"):
        assert priorities <= record.closure(queue)
