"""The whole program on target `aks`, from the stack file that the checkout ships, with mocks in place of providers."""

import base64
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

import pulumi
import pytest
import yaml

from components.artifacts import Mirror
from stacks.config.inputs import StackInputs, interpret
from tests.unit.configurations import changed, stack_settings
from tests.unit.conftest import ROOT
from tests.unit.harness import Record, Registered, build, strings
from tests.unit.test_stack import pairs

KUBECONFIG = yaml.safe_dump(
    {
        "apiVersion": "v1",
        "kind": "Config",
        "users": [{"name": "u", "user": {"exec": {"command": "kubelogin", "args": ["get-token", "--server-id", "s"]}}}],
    }
)
CALLS: Mapping[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {
    "azure-native:containerservice:listManagedClusterUserCredentials": lambda _: {
        "kubeconfigs": [{"name": "clusterUser", "value": base64.b64encode(KUBECONFIG.encode()).decode()}]
    },
    "azure-native:features:getSubscriptionFeatureRegistration": lambda _: {"properties": {"state": "Registered"}},
}
POOL = "azure-native:containerservice:AgentPool"
CLUSTER = "azure-native:containerservice:ManagedCluster"


def provided(kind: str, name: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Properties that Azure, and the generator of passwords, add to the inputs."""
    if kind == CLUSTER:
        return {
            "identity": {"type": "UserAssigned", "userAssignedIdentities": {}},
            "oidcIssuerProfile": {"issuerURL": "https://issuer.example"},
        }
    if kind.endswith("UserAssignedIdentity"):
        return {"principalId": f"{name}-principal", "clientId": f"{name}-client"}
    return {"result": "correct-horse-battery"} if kind.endswith("RandomPassword") else {}


def shipped() -> dict[str, Any]:
    return stack_settings("aks")


def settings(**changes: Any) -> dict[str, Any]:
    """Return the shipped settings with other values, by path with two underscores for a dot."""
    return changed(shipped(), {path.replace("__", "."): value for path, value in changes.items()})


def loaded(mirror: Mirror, raw: Mapping[str, Any]) -> StackInputs[Any]:
    files = {"artifacts": mirror.artifacts, "verify": False, **raw.get("mirror", {})}
    return interpret({**raw, "mirror": files}, base=ROOT, environment={})


def deployed(mirror: Mirror, raw: Mapping[str, Any], outputs: dict[str, Any] | None = None) -> Record:
    stack = loaded(mirror, raw)

    def program() -> None:
        from stacks.deploy import deploy

        found = deploy(stack)
        if outputs is not None:
            outputs.update(found)

    found = build(program, calls=CALLS, outputs=provided)
    found.resources[:] = [resource for resource in found.resources if resource.type != "pulumi:pulumi:Stack"]
    return found


@pytest.fixture(scope="module")
def record(whole: Callable[[str], Record]) -> Record:
    return whole("aks")


def only(record: Record, kind: str) -> Registered:
    found = [resource for resource in record.resources if resource.type == kind]
    assert len(found) == 1, [resource.name for resource in found]
    return found[0]


def test_the_shipped_settings_have_no_mistake(mirror: Mirror) -> None:
    stack = loaded(mirror, shipped())
    assert stack.resolved.pool.count == 2
    assert stack.warnings == ()


def test_the_shipped_stack_runs_nothing_whose_image_nobody_can_have_pushed_yet(record: Record) -> None:
    """The registry is made by the same update; and what is copied protects what it makes."""
    own = "mlbatchexample.azurecr.io"
    named = [item.name for item in record.objects() if any(own in text for text in strings(item.inputs))]
    assert named == []
    assert "protect" not in shipped()["azure"]


@pytest.mark.parametrize(
    ("members", "nobody"),
    [
        ({"users": ["ada@example.org", "44444444-5555-6666-7777-888888888888"]}, ""),
        ({"groups": ["44444444-5555-6666-7777-888888888888"]}, ""),
        ({"users": ["ada@example.org", "alice"]}, "users: Entra presents users by principal names"),
        ({"groups": ["ml-blue"]}, "groups: Entra presents groups by object IDs, so ml-blue will never match"),
    ],
)
def test_members_that_entra_presents_as_nobody_are_warned_of(
    mirror: Mirror, members: dict[str, list[str]], nobody: str
) -> None:
    raw = settings(teams=[{"name": "blue", "share": 1, **members}])
    found = loaded(mirror, raw).warnings
    assert bool(found) == bool(nobody)
    assert all(nobody in text and "Azure Kubernetes Service Cluster User Role" in text for text in found)
    local = {"localAccounts": True, "login": "local"}
    raw["azure"]["access"] = local
    assert loaded(mirror, raw).warnings == (), "certificates name whomever they name"


def test_every_kubernetes_object_names_its_provider_and_goes_with_the_cluster(record: Record) -> None:
    cluster = only(record, CLUSTER)
    (provider,) = [r for r in record.resources if r.type == "pulumi:providers:kubernetes"]
    assert provider.replace_with == (cluster.urn,)
    by_urn = {resource.urn: resource for resource in record.resources}

    def goes_with(resource: Registered) -> str:
        # The engine hands the option down from component to child.
        above = by_urn.get(resource.parent)
        return resource.deleted_with or (goes_with(above) if above else "")

    for resource in record.objects():
        assert resource.provider.rpartition("::")[0] == provider.urn, resource.name
        assert resource.replace_with == (cluster.urn,), resource.name
        assert goes_with(resource) == provider.urn, "of what is replaced, the engine deletes each object by itself"


def test_a_notebook_on_a_part_of_a_node_leaves_the_rest_and_its_token_is_a_secret_output(mirror: Mirror) -> None:
    lab = {"enabled": True, "gpus": 2, "submission": {"team": "red"}}
    outputs: dict[str, Any] = {}
    record = deployed(mirror, settings(workloads={"jupyterlab": lab, "cpu": 80, "memory": "1000Gi"}), outputs)
    (part,) = record.one("AppWrapper", "jupyterlab").inputs["spec"]["components"]
    (container,) = part["template"]["spec"]["template"]["spec"]["containers"]
    whole = {"cpu": "20", "memory": "250Gi", "nvidia.com/gpu": "2"}
    assert container["resources"] == {"requests": whole, "limits": whole}, "no devices of the network"
    assert "add" not in container["securityContext"]["capabilities"]
    access = outputs["jupyterlab"]
    assert access["address"] == "http://localhost:8888"
    assert isinstance(access["token"], pulumi.Output)


def everything(**changes: Any) -> dict[str, Any]:
    """The shipped settings with all that can be switched on, each job in another way where it has several."""
    common = {"enabled": True, "tag": "1", "submission": {"team": "blue"}}
    gate = {"enabled": True, "mode": "gate"}
    return settings(
        azure__gpuPool__count=4,
        storage={"volumes": [{"name": "data", "namespace": "blue", "container": "data"}]},
        health={"nodeCheck": gate, "ncclGate": {**gate, "scope": "fabric"}, "autopilot": {"enabled": True}},
        workloads={
            "nccl": {**common, "submission": {"gang": "none"}},
            "metaseq": {**common, "submission": {"gang": "volcano"}, "useAim": True, "useTensorboard": True},
            "olmo": {**common, "data": "data"},
            "vllm": {"enabled": True, "submission": {"team": "blue"}},
            "jupyterlab": {"enabled": True, "submission": {"team": "red"}},
            "aim": {"enabled": True},
            "tensorboard": {"enabled": True},
        },
        **changes,
    )


def test_every_image_comes_from_the_mirror_or_the_stacks_own_registry(mirror: Mirror) -> None:
    found = deployed(mirror, everything(mirror={"images": "registry.example.org/mirror"}))
    # A NicClusterPolicy names the registry beside the image.
    keys = {"NicClusterPolicy": "repository"}
    images = [
        value
        for item in found.objects()
        for key, value in pairs(item.inputs)
        if key == keys.get(item.kind, "image") and isinstance(value, str)
    ]
    known = ("registry.example.org/mirror/", "mlbatchexample.azurecr.io/")
    assert len(images) > 15
    assert [image for image in images if not image.startswith(known)] == []
    releases = [item for item in found.resources if item.type.endswith(":Release")]
    assert len(releases) >= 4
    for item in releases:
        assert any("registry.example.org/mirror" in text for text in strings(item.inputs["values"])), item.name


def test_every_azure_resource_names_its_provider(record: Record) -> None:
    azure = [r for r in record.resources if r.type.startswith("azure-native:")]
    assert len(azure) == 21
    assert {r.provider.rpartition("::")[0] for r in azure} == {only(record, "pulumi:providers:azure-native").urn}


def test_what_the_nodes_may_do_does_not_hang_on_the_clusters_outputs(mirror: Mirror) -> None:
    """Otherwise a preview of any change of the cluster would show roles and volumes replaced."""
    volume = {"name": "data", "namespace": "workloads", "container": "data"}
    found = deployed(mirror, settings(storage={"volumes": [volume]}, azure__storage={"account": "mlbatchdata"}))
    cluster = only(found, CLUSTER)
    for role in (r for r in found.resources if r.type.endswith(":RoleAssignment")):
        # The right to download the kubeconfig waits for the cluster, but uses none of its outputs.
        used = role.sources["scope"] if "-user-" in role.name else found.closure(role)
        assert cluster.urn not in used, role.name
    (volume_object,) = found.of("PersistentVolume")
    mounted = volume_object.inputs["spec"]["csi"]["volumeAttributes"]
    assert mounted["AzureStorageIdentityClientID"] == "mlbatch-nodes-client"


def test_nothing_runs_in_the_cluster_before_its_nodes_may_pull(record: Record) -> None:
    pull = next(r for r in record.resources if r.name == "mlbatchexample-pull")
    for resource in record.objects():
        if resource.type != "pulumi:providers:kubernetes":
            assert pull.urn in record.closure(resource), resource.name


def test_a_job_waits_for_gpus_queues_and_its_team(mirror: Mirror) -> None:
    record = deployed(mirror, settings(workloads__nccl__enabled=True, workloads__nccl__tag="1"))
    job = record.one("AppWrapper", "nccl-allreduce", "blue")
    closure = record.closure(job)
    for kind, name in (
        ("ClusterQueue", "blue-cluster-queue"),
        ("LocalQueue", "default-queue"),
        ("NicClusterPolicy", "nic-cluster-policy"),
    ):
        assert any(r.urn in closure for r in record.of(kind) if r.object_name == name), kind
    releases = {r.name for r in record.resources if r.type.endswith(":Release") and r.urn in closure}
    assert {"feature-discovery", "network-operator", "gpu-operator"} <= releases
    assert only(record, POOL).urn in closure


def test_no_object_comes_before_the_chart_that_defines_its_kind(record: Record) -> None:
    releases = {r.name: r.urn for r in record.resources if r.type.endswith(":Release")}
    for kind, release in (
        ("NicClusterPolicy", "network-operator"),
        ("PrometheusRule", "monitoring"),
        ("ServiceMonitor", "monitoring"),
        ("Queue", "volcano"),
    ):
        objects = record.of(kind)
        assert objects, kind
        for item in objects:
            assert releases[release] in record.closure(item), f"{kind} {item.object_name}"


@pytest.fixture(scope="module")
def scaled(mirror: Mirror) -> Record:
    return deployed(mirror, settings(azure__gpuPool__count=4))


def test_scaling_changes_the_pool_and_the_queues_and_nothing_else(record: Record, scaled: Record) -> None:
    before = {resource.urn: resource.inputs for resource in record.resources}
    after = {resource.urn: resource.inputs for resource in scaled.resources}
    assert before.keys() == after.keys()
    changed = {urn.rpartition("::")[2] for urn in after if before[urn] != after[urn]}
    assert changed == {"ndv5", "blue-cluster-queue", "red-cluster-queue"}


def test_secrets_are_secrets(record: Record) -> None:
    assert "kubeconfig" in only(record, "pulumi:providers:kubernetes").secrets
    grafana = record.one("Secret", "grafana-admin", "monitoring")
    assert "data" in grafana.secrets
    password = base64.b64encode(b"correct-horse-battery").decode()
    for resource in record.resources:
        plain = {key: value for key, value in resource.inputs.items() if key not in resource.secrets}
        for text in strings(plain):
            assert "correct-horse-battery" not in text, resource.name
            assert password not in text, resource.name


def test_what_holds_data_is_protected_unless_the_settings_say_otherwise(mirror: Mirror, record: Record) -> None:
    given_up = settings(azure__protect=False, tenancy={"protect": False})
    assert not [r.name for r in deployed(mirror, given_up).resources if r.protect]
    kept = {r.type.rpartition(":")[2] for r in record.resources if r.protect and r.is_custom}
    assert kept >= {"ResourceGroup", "Registry", "ManagedCluster", "StorageAccount", "BlobContainer", "Namespace"}


def test_without_queues_there_are_neither_teams_nor_their_operators(mirror: Mirror) -> None:
    raw = settings(queueing__enabled=False, teams=[], workloads={})
    found = deployed(mirror, raw)
    assert not found.of("ClusterQueue")
    assert not [r for r in found.of("Deployment") if r.inputs["metadata"].get("namespace") == "mlbatch-system"]
    assert found.of("NicClusterPolicy")


def test_outputs_tell_where_things_are(mirror: Mirror) -> None:
    outputs: dict[str, Any] = {}
    deployed(mirror, shipped(), outputs)
    assert outputs["target"] == "aks"
    assert outputs["nodes"] == {"count": 2, "instanceType": "Standard_ND96isr_H100_v5", "gpus": "16"}
    assert outputs["registry"] == "mlbatchexample.azurecr.io"
    assert isinstance(outputs["kubeconfig"], pulumi.Output)


def test_the_engine_asks_as_fast_as_the_settings_allow(mirror: Mirror) -> None:
    record = deployed(mirror, settings(kubernetes={"client": {"qps": 50}}))
    (provider,) = [item for item in record.resources if item.type == "pulumi:providers:kubernetes"]
    assert json.loads(provider.inputs["kubeClientSettings"]) == {"qps": 50, "burst": 2000}


def sdk_modules(program: str) -> set[str]:
    """Return the partial of Azure's SDK that a program has loaded at its end."""
    # The SDK puts a placeholder in place of each part, which loads it once somebody looks into it.
    show = (
        "import sys; print(*sorted(name.split('.')[1] for name, module in sys.modules.items() "
        "if name.startswith('pulumi_azure_native.') and type(module).__name__ != '_LazyModule'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\n{show}"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_other_targets_do_not_load_azures_sdk() -> None:
    assert sdk_modules("import stacks.config.inputs, stacks.targets.simulated") == set()


def test_the_target_loads_only_the_parts_of_azures_sdk_that_it_uses(mirror: Mirror) -> None:
    found = f"Mirror(artifacts={mirror.artifacts!r}, verify=False)"
    program = f"from tests.unit.test_aks import *\ndeployed({found}, shipped())\n"
    partial = {
        part for part in sdk_modules(program) if not part.startswith("_") and part not in ("provider", "outputs")
    }
    assert partial == {
        "authorization",
        "containerregistry",
        "containerservice",
        "features",
        "managedidentity",
        "monitor",
        "network",
        "operationalinsights",
        "resources",
        "storage",
    }
