"""What a review of a change shows: operations, losses, quotas, costs, and no secrets."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from review import quotas
from review.compare import Operation, PropertyChange, compare
from review.losses import losses
from review.markdown import LIMIT, MARKER, Review, StackReview, render
from review.plan import SECRET, UNKNOWN, Plan, PlanError, hidden, read
from runner import properties
from runner.placeholders import MARK

STACK = "urn:pulumi:dev::mlbatch::pulumi:pulumi:Stack::mlbatch-dev"
PROVIDER = "urn:pulumi:dev::mlbatch::pulumi:providers:kubernetes::cluster"

State = dict[str, Any]


def state(token: str, name: str, inputs: Mapping[str, Any] | None = None, **more: Any) -> State:
    """Return a resource as `pulumi preview --json` prints it."""
    custom = not token.startswith("mlbatch:")
    found: State = {"urn": f"urn:pulumi:dev::mlbatch::{token}::{name}", "type": token, "custom": custom}
    return {**found, "parent": STACK, "inputs": dict(inputs or {}), **more}


def manifest(kind: str, name: str, body: Mapping[str, Any] | None = None, **more: Any) -> State:
    """Return a Kubernetes object as the engine prints it; kind with its group and version, as in a type token."""
    module, _, short = kind.rpartition(":")
    version = module.removeprefix("core/")
    metadata = {"name": name, **more.pop("metadata", {})}
    inputs = {"apiVersion": version, "kind": short, "metadata": metadata, **(body or {})}
    return state(f"kubernetes:{kind}", name, inputs, provider=f"{PROVIDER}::{properties.UNKNOWN}", **more)


def printed(*states: State, **more: Any) -> str:
    """Return the preview's output for a stack with these resources."""
    stack = {"urn": STACK, "type": "pulumi:pulumi:Stack", "custom": False}
    steps = [{"op": "create", "urn": each["urn"], "newState": each} for each in (stack, *states)]
    return json.dumps({"steps": steps, **more})


def plan(*states: State) -> Plan:
    return read(printed(*states))


def provider(**inputs: str) -> State:
    shown = {"clusterIdentifier": "mlbatch", "enableConfigMapMutable": "true", "kubeconfig": SECRET, **inputs}
    return state("pulumi:providers:kubernetes", "cluster", shown)


def queue(name: str, gpus: int, **more: Any) -> State:
    resources = [{"name": "cpu", "nominalQuota": "96"}, {"name": "nvidia.com/gpu", "nominalQuota": str(gpus)}]
    spec = {"resourceGroups": [{"flavors": [{"name": "default-flavor", "resources": resources}]}]}
    return manifest("kueue.x-k8s.io/v1beta2:ClusterQueue", name, {"spec": spec}, **more)


def pool(**inputs: Any) -> State:
    default = {"agentPoolName": "ndv5", "resourceName": "aks", "vmSize": "Standard_ND96isr_H100_v5", "count": 2}
    return state("azure-native:containerservice:AgentPool", "ndv5", {**default, **inputs})


def cluster(**inputs: Any) -> State:
    default = {"location": "eastus", "resourceName": "aks", "sku": {"name": "Base", "tier": "Standard"}}
    return state("azure-native:containerservice:ManagedCluster", "aks", {**default, **inputs})


def shown(before: Plan | None, after: Plan | None, limit: int = LIMIT) -> str:
    return render(
        Review(base="main", head="work", stacks=(StackReview(stack="aks", before=before, after=after),)), limit
    )


ACCOUNT = "azure-native:storage:StorageAccount"
CONFIG = "core/v1:ConfigMap"

OPERATIONS: tuple[tuple[str, State | None, State | None, Operation | None], ...] = (
    ("nothing", pool(), pool(), None),
    ("a new resource", None, pool(), Operation.CREATE),
    ("one less", pool(), None, Operation.DELETE),
    ("a pool resized", pool(), pool(count=4), Operation.CHANGE),
    ("a pool of other machines", pool(), pool(vmSize="Standard_ND96isr_H200_v5"), Operation.REPLACE),
    ("a pool of another name", pool(), pool(agentPoolName="other"), Operation.REPLACE),
    ("a cluster elsewhere", cluster(), cluster(location="westus"), Operation.REPLACE),
    ("a cluster's tier", cluster(), cluster(sku={"name": "Base", "tier": "Free"}), Operation.CHANGE),
    (
        "a cluster's network plugin",
        cluster(networkProfile={"networkPlugin": "azure", "loadBalancerSku": "standard"}),
        cluster(networkProfile={"networkPlugin": "none", "loadBalancerSku": "standard"}),
        Operation.REPLACE,
    ),
    (
        "a cluster that gets a network profile",
        cluster(),
        cluster(networkProfile={"networkPlugin": "azure"}),
        Operation.REPLACE,
    ),
    (
        "a cluster's load balancer",
        cluster(networkProfile={"networkPlugin": "azure", "loadBalancerSku": "basic"}),
        cluster(networkProfile={"networkPlugin": "azure", "loadBalancerSku": "standard"}),
        Operation.CHANGE,
    ),
    (
        "an older API version's type",
        state("azure-native:storage/v20230101:StorageAccount", "data", {"isHnsEnabled": False}),
        state("azure-native:storage/v20230101:StorageAccount", "data", {"isHnsEnabled": True}),
        Operation.REPLACE,
    ),
    ("an object renamed", manifest(CONFIG, "a"), {**manifest(CONFIG, "a", metadata={"name": "b"})}, Operation.REPLACE),
    (
        "a map that may change",
        manifest(CONFIG, "a", {"data": {"k": "1"}}),
        manifest(CONFIG, "a", {"data": {"k": "2"}}),
        Operation.CHANGE,
    ),
    (
        "a map that may not",
        manifest(CONFIG, "a", {"data": {"k": "1"}, "immutable": True}),
        manifest(CONFIG, "a", {"data": {"k": "2"}, "immutable": True}),
        Operation.REPLACE,
    ),
    (
        "what the program says forces it",
        manifest("core/v1:Node", "n", {"status": {"capacity": {"cpu": "1"}}}, replaceOnChanges=["status"]),
        manifest("core/v1:Node", "n", {"status": {"capacity": {"cpu": "2"}}}, replaceOnChanges=["status"]),
        Operation.REPLACE,
    ),
    (
        "what the program says is not its own",
        manifest("core/v1:Node", "n", {"spec": {"taints": []}}, ignoreChanges=["spec.taints"]),
        manifest("core/v1:Node", "n", {"spec": {"taints": [{"key": "x"}]}}, ignoreChanges=["spec.taints"]),
        None,
    ),
    ("a password that may go", state("random:index:RandomPassword", "p", {"length": 16}) | {"protect": True},
     state("random:index:RandomPassword", "p", {"length": 16}), Operation.CHANGE),
    ("a password's length", state("random:index:RandomPassword", "p", {"length": 16}),
     state("random:index:RandomPassword", "p", {"length": 20}), Operation.REPLACE),
    ("a chart's version", state("kubernetes:helm.sh/v3:Release", "r", {"name": "r", "version": "1"}),
     state("kubernetes:helm.sh/v3:Release", "r", {"name": "r", "version": "2"}), Operation.CHANGE),
    ("a chart's namespace", state("kubernetes:helm.sh/v3:Release", "r", {"name": "r", "namespace": "a"}),
     state("kubernetes:helm.sh/v3:Release", "r", {"name": "r", "namespace": "b"}), Operation.REPLACE),
)  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "wanted"), [case[1:] for case in OPERATIONS], ids=[c[0] for c in OPERATIONS]
)
def test_operation(before: State | None, after: State | None, wanted: Operation | None) -> None:
    sides = [plan(provider(), *([each] if each else [])) for each in (before, after)]
    if before and after:
        assert before["urn"] == after["urn"]
    found = [change.operation for change in compare(*sides).changes]
    assert found == ([wanted] if wanted else [])


def test_a_replaced_provider_replaces_all_that_it_made() -> None:
    before = plan(provider(), manifest(CONFIG, "a"))
    after = plan(provider(clusterIdentifier="another"), manifest(CONFIG, "a"))
    changes = {change.resource.name: change for change in compare(before, after).changes}
    assert {name: change.operation for name, change in changes.items()} == dict.fromkeys(("cluster", "a"), "replace")
    assert changes["a"].because == "kubernetes cluster is replaced"


def test_a_replaced_cluster_replaces_its_pools_but_not_what_only_reads_from_it() -> None:
    urn = cluster()["urn"]
    linked = pool(propertyDependencies={"resourceName": [urn], "count": []})["inputs"]
    pools = state(
        "azure-native:containerservice:AgentPool", "ndv5", linked, propertyDependencies={"resourceName": [urn]}
    )
    reader = state(ACCOUNT, "data", {"tags": {"for": "aks"}}, propertyDependencies={"tags": [urn]})
    changes = compare(plan(cluster(), pools, reader), plan(cluster(location="westus"), pools, reader)).changes
    assert {change.resource.name: change.because for change in changes} == {
        "aks": "",
        "ndv5": "ManagedCluster aks is replaced",
    }


def test_a_renamed_resource_with_an_alias_is_the_same_one() -> None:
    old, new = manifest(CONFIG, "a"), {**manifest(CONFIG, "b", metadata={"name": "a"}), "aliases": []}
    new["aliases"] = [old["urn"]]
    assert not compare(plan(old), plan(new)).changes


def test_components_are_groups_and_not_counted() -> None:
    team = state("mlbatch:tenancy:Team", "blue")
    assert [change.resource.kind for change in compare(None, plan(team, queue("q", 8))).changes] == ["ClusterQueue"]


def test_changes_are_grouped_by_layer_and_team_in_a_stable_order() -> None:
    team = state("mlbatch:tenancy:Team", "blue")
    nested = state("mlbatch:kubernetes:Manifests", "files", parent=team["urn"])
    states = [
        team,
        nested,
        queue("blue-cluster-queue", 8, parent=team["urn"]),
        manifest(CONFIG, "inner", parent=nested["urn"]),
        manifest(CONFIG, "alone"),
        pool(),
    ]
    forwards, backwards = (compare(None, plan(*order)).changes for order in (states, [*states[:2], *states[:1:-1]]))
    assert [(c.layer, c.team, c.resource.title) for c in forwards] == [
        ("azure", None, "AgentPool ndv5"),
        ("tenancy", "blue", "ClusterQueue blue-cluster-queue"),
        ("tenancy", "blue", "ConfigMap inner"),
        ("stack", None, "ConfigMap alone"),
    ]
    assert forwards == backwards


def test_items_of_lists_go_by_their_names() -> None:
    change = compare(plan(queue("q", 8)), plan(queue("q", 16))).changes[0]
    path = "spec.resourceGroups[0].flavors[default-flavor].resources[nvidia.com/gpu].nominalQuota"
    assert change.properties == (PropertyChange(path=path, before="8", after="16"),)


LOSSES: tuple[tuple[str, State, State | None, str], ...] = (
    ("account", state(ACCOUNT, "d", {"location": "a"}), state(ACCOUNT, "d", {"location": "b"}), "location cannot be"),
    ("container", state("azure-native:storage:BlobContainer", "c"), None, "does not declare it"),
    ("registry", state("azure-native:containerregistry:Registry", "r"), None, "does not declare it"),
    ("cluster", cluster(), None, "does not declare it"),
    ("pool", pool(), None, "does not declare it"),
    ("smaller pool", pool(count=4), pool(count=1), "count 4 → 1"),
    ("group", state("azure-native:resources:ResourceGroup", "g"), None, "does not declare it"),
    ("namespace", manifest("core/v1:Namespace", "blue"), None, "does not declare it"),
    ("claim", manifest("core/v1:PersistentVolumeClaim", "c", {"spec": {"storageClassName": "a"}}),
     manifest("core/v1:PersistentVolumeClaim", "c", {"spec": {"storageClassName": "b"}}), "spec.storageClassName"),
    ("volume", manifest("core/v1:PersistentVolume", "v"), None, "does not declare it"),
    ("definition", manifest("apiextensions.k8s.io/v1:CustomResourceDefinition", "d"), None, "does not declare it"),
    ("chart", state("kubernetes:helm.sh/v3:Release", "r"), None, "does not declare it"),
)  # fmt: skip


@pytest.mark.parametrize(("before", "after", "reason"), [case[1:] for case in LOSSES], ids=[case[0] for case in LOSSES])
def test_what_holds_data_stands_in_bold_at_the_top(before: State, after: State | None, reason: str) -> None:
    old, new = plan(before), plan(*([after] if after else []))
    found = list(losses(compare(old, new)))
    assert len(found) == 1
    assert reason in found[0].reason
    text = shown(old, new)
    title = f"`{found[0].change.resource.title}`**"
    assert title in text.split("###")[0]
    assert found[0].lost in text.split("###")[0]


@pytest.mark.parametrize(
    ("before", "after"), [(pool(count=1), pool(count=4)), (None, cluster()), (queue("q", 8), None)]
)
def test_no_warning_where_nothing_is_lost(before: State | None, after: State | None) -> None:
    assert "CAUTION" not in shown(plan(*([before] if before else [])), plan(*([after] if after else [])))


SECRETS: tuple[tuple[str, Any, Any], ...] = (
    ("marked by the engine", {"x": {"4dabf18193072939515e22adb298388d": "1b47", "ciphertext": "AAAB"}}, {"x": SECRET}),
    ("a Kubernetes Secret", {"apiVersion": "v1", "kind": "Secret", "data": {"key": "czNjcjN0"}},
     {"apiVersion": "v1", "kind": "Secret", "data": {"key": SECRET}}),
    ("a Secret's text", {"apiVersion": "v1", "kind": "Secret", "stringData": {"key": "s3cr3t"}},
     {"apiVersion": "v1", "kind": "Secret", "stringData": {"key": SECRET}}),
    ("a password", {"values": {"adminPassword": "s3cr3t"}}, {"values": {"adminPassword": SECRET}}),
    ("an environment variable", {"env": [{"name": "JUPYTER_TOKEN", "value": "s3cr3t"}]},
     {"env": [{"name": "JUPYTER_TOKEN", "value": SECRET}]}),
    ("a key of an account", {"primaryAccountKey": "s3cr3t"}, {"primaryAccountKey": SECRET}),
    ("several tokens", {"tokens": ["a"], "sasToken": ["s3cr3t"]}, {"tokens": ["a"], "sasToken": [SECRET]}),
    ("a secret's name is none", {"secretName": "tls", "secretRef": {"name": "x"}},
     {"secretName": "tls", "secretRef": {"name": "x"}}),
    ("a switch is none", {"automountServiceAccountToken": False}, {"automountServiceAccountToken": False}),
    ("unknown", {"id": properties.UNKNOWN}, {"id": UNKNOWN}),
    ("a placeholder that lost its mark", {"args": [f"--pin={MARK}-abc"], "a": "x"}, {"args": [SECRET], "a": "x"}),
)  # fmt: skip


@pytest.mark.parametrize(("value", "wanted"), [case[1:] for case in SECRETS], ids=[case[0] for case in SECRETS])
def test_secrets_are_hidden(value: Any, wanted: Any) -> None:
    assert hidden(value) == wanted


def test_what_is_protected_is_said_to_stop_the_update() -> None:
    found = losses(compare(plan(cluster() | {"protect": True}), plan()))
    assert next(found).reason == "the new revision does not declare it; it is protected, so the update fails"


def test_no_secret_reaches_the_review() -> None:
    def secret(text: str) -> State:
        return manifest(
            "core/v1:Secret", "s", {"stringData": {"token": text}, "metadata": {"name": "s", "labels": {text[0]: "x"}}}
        )

    text = shown(plan(secret("abcsecret")), plan(secret("xyzsecret")))
    assert "Secret s" in text
    assert "abcsecret" not in text
    assert "xyzsecret" not in text


def test_quotas_before_and_after_with_their_sum() -> None:
    before, after = plan(queue("blue", 8), queue("red", 8), queue("same", 8)), plan(queue("blue", 12), queue("same", 8))
    table = quotas.table(before, after)
    assert table.rows["blue"]["nvidia.com/gpu"] == ("8", "12")
    assert table.rows["red"]["nvidia.com/gpu"] == ("8", None)
    assert table.total["nvidia.com/gpu"] == ("24", "20")
    assert table.unchanged == 1
    text = shown(before, after)
    assert "| `blue` | 96 | 8 → **12** |" in text
    assert "| `red` | 96 → **none** | 8 → **none** |" in text
    assert "| all queues | 288 → **192** | 24 → **20** |" in text
    assert "1 other queue unchanged." in text


def test_an_unchanged_queue_is_no_table() -> None:
    assert "Quotas" not in shown(plan(queue("blue", 8)), plan(queue("blue", 8), pool()))


def test_cost_before_and_after_with_what_is_unknown() -> None:
    registry = state("azure-native:containerregistry:Registry", "mlbatch", {"location": "eastus"})
    text = shown(plan(cluster(), pool(count=1)), plan(cluster(), pool(count=4), registry))
    assert "98.42 → **393.38 and what is unknown**" in text
    assert (
        "`Standard_ND96isr_H100_v5` in eastus: 98.32 (2026-09-16, `https://prices.azure.com/api/retail/prices" in text
    )
    assert "unknown, and not in the sum: `Registry mlbatch (by use or tier)`" in text


def test_cost_of_an_autoscaled_pool_is_a_range() -> None:
    text = shown(None, plan(cluster(sku={"tier": "Free"}), pool(enableAutoScaling=True, minCount=0, maxCount=2)))
    assert "0.00 → **0.00 to 196.64**" in text


def test_a_size_without_a_price_is_said_to_be_unknown() -> None:
    assert "`Standard_ND96isr_H200_v5 in eastus`" in shown(
        None, plan(cluster(), pool(vmSize="Standard_ND96isr_H200_v5"))
    )


def test_nothing_changed() -> None:
    text = shown(plan(queue("blue", 8)), plan(queue("blue", 8)))
    assert text.startswith(MARKER)
    assert "**No stack changes.**" in text
    assert "###" not in text


def test_new_and_removed_stacks_are_called_that() -> None:
    assert "`aks` (new) | 1 |" in shown(None, plan(pool()))
    assert "`aks` (removed) | 0 | 0 | 0 | **1** |" in shown(plan(pool()), None)


def test_a_failed_preview_is_shown_with_its_message_and_compared_with_nothing() -> None:
    stack = StackReview(stack="aks", before=plan(pool()), after_error="mlbatch:teams[0].quota: `8` is bad\n```\nescape")
    text = render(Review(base="main", head="work", stacks=(stack,)))
    assert "| `aks` | cannot be previewed |" in text
    assert "**The head revision cannot be previewed:**\n\n````text\nmlbatch:teams[0].quota" in text
    assert "deleted**" not in text


def test_long_tables_are_folded_and_the_whole_is_bounded() -> None:
    many = plan(*(manifest(CONFIG, f"map-{index}", {"data": {"key": "x" * 500}}) for index in range(1000)))
    stacks = tuple(StackReview(stack=name, before=plan(), after=many) for name in ("a", "b", "c"))
    text = render(Review(base="main", head="work", stacks=stacks))
    assert len(text) <= LIMIT
    assert text.count("<details>") == text.count("</details>") == 3
    assert all(f"### Stack `{name}`" in text for name in ("a", "b", "c"))
    assert text.count("does not fit into a comment") == 3
    assert len(text) < 60_000
    assert "| `c` | 1000 | 0 | 0 | 0 |" in text


@pytest.mark.parametrize("limit", [1500, 3000, 8000])
def test_the_limit_holds_whatever_it_is(limit: int) -> None:
    before = plan(*(pool(count=9) | {"urn": f"{pool()['urn']}-{index}"} for index in range(200)))
    assert len(shown(before, plan(), limit)) <= limit


def test_values_cannot_break_the_markdown() -> None:
    nasty = "`</details>` | <!-- @everyone\n\n# big"
    before, after = (plan(provider(), manifest(CONFIG, "a", {"data": data})) for data in ({}, {"k": nasty}))
    text = shown(before, after)
    line = next(line for line in text.splitlines() if "data.k" in line)
    assert line.endswith('`` "`</details>` | <!-- @everyone\\n\\n# big" ``')
    assert "\n# big" not in text


def test_pipes_do_not_split_a_cell() -> None:
    row = next(line for line in shown(None, plan(manifest(CONFIG, "a|b"))).splitlines() if "ConfigMap" in line)
    assert row == "| stack |  | created | `ConfigMap a\\|b` |"


def test_errors_of_the_preview_are_raised_without_the_engines_own() -> None:
    said = [
        {"severity": "warning", "message": "never mind"},
        {"severity": "error", "message": "error: one problem\n"},
        {
            "severity": "error",
            "message": "error: an unhandled error occurred: program exited with non-zero exit code: 1\n",
        },
    ]
    with pytest.raises(PlanError) as raised:
        read(printed(diagnostics=said))
    assert str(raised.value) == "one problem"


@pytest.mark.parametrize("text", ["", "error: no such stack"])
def test_what_is_no_preview_is_an_error(text: str) -> None:
    with pytest.raises(PlanError, match=r"no text|no such stack"):
        read(text)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("spec.containers[0].image", ("spec", "containers", 0, "image")),
        ('metadata.annotations["a.b/c"]', ("metadata", "annotations", "a.b/c")),
        ('["a.b"].c', ("a.b", "c")),
        ('x["say \\"it\\""]', ("x", 'say "it"')),
        ("spec.x[*].y", ("spec", "x", "*", "y")),
        ("spec.*.y", ("spec", "*", "y")),
    ],
)
def test_property_paths_are_read_as_the_engine_writes_them(text: str, path: properties.Path) -> None:
    assert properties.parse(text) == path
    assert "*" in path or properties.render(path) == text


@pytest.mark.parametrize("text", ["a..b", "a[x]", 'a["b', "a[1", "a.b.", "[0]x"])
def test_what_is_no_property_path_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="not a property path"):
        properties.parse(text)
