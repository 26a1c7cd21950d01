"""The AKS stack in the emulated Azure: kill, finish, scale, manual changes, rejected changes, all features, destroy.

The tests of this module run in order on one stack. They have their own local cluster, which is the emulated managed
cluster. Deleting the managed cluster empties it.
"""

import base64
import copy
import re
from collections.abc import Iterator
from typing import Any

import pytest

from emulator import azure
from emulator import cluster as local_cluster
from emulator.azure.__main__ import main
from emulator.azure.errors import ArmError
from emulator.azure.local_cluster import subscription
from emulator.azure.services.authorization import RoleAssignment
from emulator.azure.services.base import CLUSTER, POOL
from emulator.azure.services.identity import UserAssignedIdentity
from emulator.azure.services.resources import REGISTRATION
from emulator.paths import Paths
from stacks.config import secrets
from stacks.config.inputs import interpret
from stacks.job_manifests import JOBS, wanted
from stacks.layers.jobs import documents
from tests.emulator.azure.subscription import KEY
from tests.local.environment import Cluster, Project, drift, eventually, local_environment, stack_settings
from tests.local.killed import Killed
from tests.local.member import as_member, dry_run

pytestmark = pytest.mark.emulated("Azure is emulated")

OLD, NEW = "1.34", "1.35"
"""Kubernetes versions before and after an upgrade."""
KUEUE = "kueue.x-k8s.io/v1beta2"
APPWRAPPER = "workload.codeflare.dev/v1beta2"
ADMISSION = "admissionregistration.k8s.io/v1"
WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
GPU, INFINIBAND = "nvidia.com/gpu", "nvidia.com/mlnxnics"
BUILT_IN = {"default", "kube-node-lease", "kube-public", "kube-system"}
TEAM = {"gang": "mlbatch", "team": "blue"}
SAS_TOKEN = "sv=2024-11-04&sp=rl&sig=bm90LWEtcmVhbC1zaWduYXR1cmU"
PRIVATE_KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n-----END OPENSSH PRIVATE KEY-----"


@pytest.fixture(scope="module")
def paths() -> Iterator[Paths]:
    """Yield an empty local cluster."""
    with local_environment() as paths:
        yield paths


@pytest.fixture(scope="module")
def project(paths: Paths, tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("aks"), paths, "aks")


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    """Return the shipped settings with the job that the guide enables last."""
    return changed(
        stack_settings("aks"),
        {"azure.kubernetesVersion": OLD, "workloads.nccl.enabled": True, "workloads.nccl.tag": "1"},
    )


@pytest.fixture(scope="module")
def installed(project: Project, settings: dict[str, Any]) -> None:
    """Install the stack, unless the test of a killed update has done it."""
    if not project.state_file.exists() or created(project) == []:
        project.configure(settings)
        project.up()


@pytest.fixture(scope="module")
def everything(project: Project, settings: dict[str, Any]) -> None:
    """Add all that the target offers to the stack."""
    secret = project.secret("blobSasToken", SAS_TOKEN)
    project.configure({**changed(settings, EVERYTHING), "blobSasToken": secret})
    project.up()


def scaled(settings: dict[str, Any], count: int) -> dict[str, Any]:
    return changed(settings, {"azure.gpuPool.count": count})


def changed(settings: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with other values at dotted paths."""
    result = copy.deepcopy(settings)
    for path, value in changes.items():
        *way, last = path.split(".")
        inner = result
        for part in way:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return result


def in_azure(paths: Paths, kind: str = "") -> dict[str, dict[str, Any]]:
    """Return the properties of the emulated subscription's resources by name."""
    records = subscription(paths).state().resources.values()
    return {record.name: record.properties for record in records if not kind or record.type == kind}


def created(project: Project) -> list[str]:
    """Return the types of the resources in the stack's state."""
    return [found["type"] for found in project.resources() if found["type"] != "pulumi:pulumi:Stack"]


def gone_by_hand(paths: Paths, *names: str) -> None:
    """Delete identities and the resources below them, like in Azure's portal."""
    with subscription(paths).edit() as state:
        identities = [each for each in state.of_type(UserAssignedIdentity.type) if each.name in names]
        assert len(identities) == len(names)
        for identity in identities:
            for each in [*state.below(identity.id), identity]:
                state.remove(each.id)


def enforce(cluster: Cluster) -> None:
    """Exclude AKS' own namespaces from every webhook, like AKS' admissions enforcer (Azure/AKS, issue 1771)."""
    keys = ("control-plane", "kubernetes.azure.com/managedby")
    selector = {"matchExpressions": [{"key": key, "operator": "DoesNotExist"} for key in keys]}
    for kind in WEBHOOKS:
        found = cluster.list(ADMISSION, kind)
        assert found
        for each in found:
            cluster.client.patch(
                cluster.kind(ADMISSION, kind),
                name=each["metadata"]["name"],
                body=[
                    {"op": "add", "path": f"/webhooks/{index}/namespaceSelector", "value": selector}
                    for index in range(len(each["webhooks"]))
                ],
                content_type="application/json-patch+json",
                field_manager="admissionsenforcer",
            )


def selectors(cluster: Cluster) -> list[dict[str, Any]]:
    """Return the namespace selector of each webhook."""
    found = [each for kind in WEBHOOKS for each in cluster.list(ADMISSION, kind)]
    return [webhook["namespaceSelector"] for each in found for webhook in each["webhooks"]]


def fault(paths: Paths, on: str, kind: str) -> None:
    assert main(["fault", "--state", str(paths.state), "--on", on, "--kind", kind]) == 0


def gpu_nodes(cluster: Cluster) -> list[dict[str, Any]]:
    """Return the ready GPU nodes."""
    nodes = [node for node in cluster.list("v1", "Node") if node["metadata"]["labels"].get("agentpool") == "ndv5"]
    return [node for node in nodes if {"Ready": "True"} in [{c["type"]: c["status"]} for c in conditions(node)]]


def conditions(node: dict[str, Any]) -> list[dict[str, Any]]:
    return list((node.get("status") or {}).get("conditions") or ())


def await_gpu_nodes(cluster: Cluster, count: int) -> None:
    eventually(f"{count} GPU nodes are ready", lambda: gpu_nodes(cluster), lambda nodes: len(nodes) == count)
    eventually(
        "they offer GPUs and InfiniBand ports",
        lambda: [
            (n["status"]["allocatable"].get(GPU), n["status"]["allocatable"].get(INFINIBAND))
            for n in gpu_nodes(cluster)
        ],
        lambda offered: offered == [("8", "8")] * count,
    )


def gpu_quotas(cluster: Cluster) -> dict[str, str]:
    """Return each queue's own GPU quota."""
    found = {}
    for queue in cluster.list(KUEUE, "ClusterQueue"):
        resources = queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
        amounts = {item["name"]: str(item["nominalQuota"]) for item in resources}
        assert amounts[GPU] == amounts[INFINIBAND]
        found[queue["metadata"]["name"].removesuffix("-cluster-queue")] = amounts[GPU]
    return found


def fails(project: Project, *expected: str) -> str:
    """Run an update that must fail with these messages; return its output."""
    done = project.run("up", "--yes", "--skip-preview")
    printed = done.stdout + done.stderr
    assert done.returncode != 0, printed
    for text in expected:
        assert text in printed, printed
    # When an update fails, the engine interrupts a running program at any point, like Ctrl-C.
    interrupted = (
        r"Exception ignored in:[^\n]*\n(?:[^\n]*\n){1,20}?[^\n]*KeyboardInterrupt: *\n"
        r"|^( *)Traceback \(most recent call last\):\n(?:\1 +[^\n]*\n)+\1KeyboardInterrupt *\n"
    )
    assert "Traceback" not in re.sub(interrupted, "", printed, flags=re.MULTILINE), printed
    return printed


BAD: dict[str, tuple[dict[str, Any], list[str]]] = {
    "azure": (
        {
            "azure.gpuPool.vmSize": "Standard_D4s_v5",
            "azure.gpuPool.count": -1,
            "azure.sshPublicKey": PRIVATE_KEY,
            "azure.registry.name": "my_registry",
        },
        [
            "mlbatch:azure.gpuPool.vmSize",
            "this VM size has no GPU",
            "mlbatch:azure.gpuPool.count",
            "mlbatch:azure.sshPublicKey",
            "this is a private key",
            "mlbatch:azure.registry.name",
        ],
    ),
    "place": (
        {"azure.location": "northeurope", "azure.kubernetesVersion": "1.29"},
        ["northeurope", "Standard_ND96isr_H100_v5", "mlbatch:azure.kubernetesVersion", "1.29"],
    ),
    "workloads": (
        {
            "workloads.metaseq": {"enabled": True, "tag": "1", "size": "2b", "submission": TEAM},
            "workloads.nccl.submission": {"gang": ["mlbatch", "volcano"]},
        },
        ["mlbatch:workloads.metaseq.size", "2.7b", "mlbatch:workloads.nccl.submission.gang", "two workloads"],
    ),
    "token": (
        {"blobSasToken": SAS_TOKEN},
        ["mlbatch:blobSasToken", "pulumi config set --secret mlbatch:blobSasToken"],
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_an_error_is_the_only_message_and_no_resource_is_created(
    case: str, project: Project, settings: dict[str, Any], paths: Paths, cluster: Cluster
) -> None:
    changes, expected = BAD[case]
    project.configure(changed(settings, changes))
    printed = fails(project, *expected)
    assert "b3BlbnNzaC1rZXktdjEAAAAA" not in printed
    assert SAS_TOKEN not in printed
    assert in_azure(paths) == {}
    assert {item["metadata"]["name"] for item in cluster.list("v1", "Namespace")} == BUILT_IN
    assert created(project) == []


@pytest.mark.soak("takes minutes; test_cpouta.py kills an update, too")
def test_azure_resources_of_a_killed_update_are_imported_as_documented(
    project: Project, settings: dict[str, Any], cluster: Cluster, paths: Paths
) -> None:
    """The state of a plain `pulumi up` has its pending creations. Azure completes them, and the provider then rejects
    them.

    Some creations outside the cluster may arrive only after the kill.
    """
    project.configure(settings)
    stack = Killed(project, cluster)
    fault(paths, CLUSTER, "stuck")
    stack.kill_when(lambda: in_azure(paths, CLUSTER))
    assert main(["clear", "--state", str(paths.state)]) == 0
    pending = {each["resource"]["urn"]: each["resource"] for each in project.engine.read_state()["pending_operations"]}
    assert any(each["type"].endswith(":ManagedCluster") for each in pending.values())
    stuck = stack.plain_up()
    assert stuck.returncode != 0
    begun, known = set(in_azure(paths)), {each["urn"] for each in project.resources()}
    there = {urn: found.id for urn, found in azure.orphans(paths).items() if urn not in known}
    refused = set(re.findall("cannot create already existing resource '([^']+)'", stuck.stdout))
    assert refused, stuck.stdout
    assert refused <= set(there.values()), "an update ends at the first"
    rights = {urn for urn in there if pending[urn]["type"] == RoleAssignment.token}
    for urn, identifier in there.items():
        each = pending[urn]
        if urn in rights:
            with subscription(paths).edit() as state:
                state.remove(identifier)
            continue
        imported = stack.shell(
            f"pulumi import '{each['type']}' '{urn.rpartition('::')[2]}' '{identifier}' --parent '{each['parent']}' "
            f"--provider '{each['provider'].rpartition('::')[0]}' --protect=false --generate-code=false --stack aks"
        )
        assert imported.returncode == 0, imported.stdout + imported.stderr
    assert stack.shell("pulumi refresh --clear-pending-creates --stack aks").returncode == 0
    planned = project.changes()
    assert planned["ndv5"] == "create"
    assert begun - {there[urn].rpartition("/")[2] for urn in rights} <= set(in_azure(paths))
    operations = {urn: planned.get(urn.rpartition("::")[2]) for urn in there}
    assert {operations[urn] for urn in rights} <= {"create"}
    assert {operations[urn] for urn in there.keys() - rights} <= {None, "update"}, "what an import does not read"


@pytest.mark.soak("three minutes; test_cpouta.py kills an update, too")
def test_an_engine_killed_while_it_fills_the_cluster_is_carried_on_with(
    project: Project, settings: dict[str, Any], cluster: Cluster
) -> None:
    project.configure(settings)

    def being_filled() -> bool:
        """Tell whether Kueue's kinds exist, which need its conversion webhook, while Kueue most likely does not run."""
        releases = cluster.list("v1", "Secret", label_selector="owner=helm")
        kinds = {
            item["metadata"]["name"] for item in cluster.list("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        }
        return len(releases) > 1 and "clusterqueues.kueue.x-k8s.io" in kinds

    Killed(project, cluster).kill_when(being_filled)
    project.up()


@pytest.mark.usefixtures("installed")
def test_the_nodes_the_queues_and_the_test_job_are_there(cluster: Cluster, paths: Paths) -> None:
    await_gpu_nodes(cluster, 2)
    assert gpu_quotas(cluster) == {"blue": "4", "red": "4", "slack": "8"}
    eventually(
        "the all-reduce test runs",
        lambda: cluster.list("v1", "Pod", "blue", label_selector="workload.codeflare.dev/appwrapper=nccl-allreduce"),
        lambda pods: [pod["status"]["phase"] for pod in pods] == ["Running"],
    )
    assert "ndv5" in azure.report(paths)


def maintained(paths: Paths) -> int:
    """Open the weekly maintenance window; return the exit code."""
    return main(["maintain", "--state", str(paths.state)])


def states(paths: Paths) -> dict[str, str]:
    """Return the provisioning states of the cluster and its pools."""
    found = in_azure(paths, CLUSTER) | in_azure(paths, POOL)
    return {name: each["provisioningState"] for name, each in found.items() if name != "system"}


FINE = {"mlbatch": "Succeeded", "ndv5": "Succeeded"}
FAILED = {"mlbatch": "Failed", "ndv5": "Failed"}


@pytest.mark.soak("four minutes; test_recovery.py moves gangs from cordoned nodes")
def test_a_maintenance_window_evicts_no_gang_and_fails_no_cluster(
    project: Project, settings: dict[str, Any], paths: Paths, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default. With automatic node images, a gang loses its pods, or its budget blocks the upgrade.

    With held queues, all jobs are suspended as a whole first.
    """

    def running() -> set[str]:
        pods = cluster.list("v1", "Pod", "blue", label_selector="workload.codeflare.dev/appwrapper=nccl-allreduce")
        return {pod["metadata"]["uid"] for pod in pods if pod["status"]["phase"] == "Running"}

    def updated_with(**changes: Any) -> None:
        wanted = {"workloads.nccl.nodes": 2, "recovery.healthSeconds": 5}  # drained nodes are lent again at once
        wanted |= {key.replace("__", "."): value for key, value in changes.items()}
        project.configure(changed(settings, wanted))
        project.up()

    updated_with()
    gang = eventually("the gang runs on both nodes", running, lambda found: len(found) == 2)
    assert maintained(paths) == 0
    assert states(paths) == FINE
    assert running() == gang

    updated_with(azure__upgrades__nodeOs="NodeImage")
    assert maintained(paths) == 0
    assert states(paths) == FINE
    gang = eventually("AppWrapper restarts it", running, lambda found: len(found) == 2 and not found & gang)

    budget = {"minAvailable": 2, "selector": {"matchLabels": {"app.kubernetes.io/name": "nccl-allreduce"}}}
    kept = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": budget}
    cluster.create({**kept, "metadata": {"name": "kept", "namespace": "blue"}})
    eventually(
        "Kubernetes counts its pods",
        lambda: (cluster.existing("policy/v1", kept["kind"], "kept", "blue").get("status") or {}).get("expectedPods"),
        lambda pods: pods == 2,
    )
    assert maintained(paths) == 1, "AKS refuses it before it drains a node"
    assert states(paths) == FINE
    azure_with_drain = subscription(paths)
    monkeypatch.setattr(azure_with_drain.link, "unsatisfiable_budgets", list)
    with pytest.raises(ArmError, match="Too Many Requests"):
        azure_with_drain.upgrade_images("ndv5")
    assert states(paths) == FAILED, "as if somebody created the budget during the upgrade"
    assert running() == gang
    cluster.delete("policy/v1", str(kept["kind"]), "kept", "blue")

    updated_with(queueing__stopPolicy="HoldAndDrain")
    eventually("the whole gang is suspended", running, lambda found: not found)
    assert main(["upgrade", "--state", str(paths.state), "--pool", "ndv5"]) == 0
    assert states(paths) == FINE
    updated_with()
    eventually("the whole gang runs again", running, lambda found: len(found) == 2)
    project.configure(settings)
    project.up()


def test_no_secret_is_in_clear_text_in_the_state(project: Project, cluster: Cluster, paths: Paths) -> None:
    secret = cluster.get("v1", "Secret", "grafana-admin", "monitoring")
    assert secret is not None
    encoded = secret["data"]["admin-password"]
    password = base64.b64decode(encoded).decode()
    assert len(password) == 32
    state = project.state_file.read_text()
    assert '"azure-native:containerservice:ManagedCluster"' in state
    for hidden in (password, encoded, str(local_cluster.status(paths).server), "get-token", "client-certificate-data"):
        assert hidden not in state


def test_more_nodes_are_one_update_of_the_pool_and_of_the_queues(
    project: Project, settings: dict[str, Any], paths: Paths, cluster: Cluster
) -> None:
    """No other resource changes. Azure throttles the update, which still succeeds."""
    project.configure(scaled(settings, 4))
    assert project.changes() == {"ndv5": "update", "blue-cluster-queue": "update", "red-cluster-queue": "update"}
    fault(paths, "*agentPools", "throttle")
    project.up()
    assert subscription(paths).state().faults == []
    await_gpu_nodes(cluster, 4)
    assert gpu_quotas(cluster) == {"blue": "12", "red": "12", "slack": "8"}


@pytest.mark.soak("a minute; the next test has a failed operation, and tests/emulator/azure the message of a conflict")
@pytest.mark.usefixtures("installed")
def test_a_conflict_is_named_and_changes_nothing(project: Project, settings: dict[str, Any], paths: Paths) -> None:
    before = in_azure(paths, POOL)["ndv5"]["count"]
    project.configure(scaled(settings, 1))
    fault(paths, "ndv5", "conflict")
    fails(project, "in progress", "agentPools/ndv5")
    assert in_azure(paths, POOL)["ndv5"]["count"] == before


def test_a_failed_operation_is_named_and_the_next_update_continues(
    project: Project, settings: dict[str, Any], paths: Paths, cluster: Cluster
) -> None:
    project.configure(scaled(settings, 1))
    fault(paths, "ndv5", "failed")
    fails(project, "InternalOperationError", "agentPools/ndv5")
    assert in_azure(paths, POOL)["ndv5"]["provisioningState"] == "Failed"
    project.up()
    assert in_azure(paths, POOL)["ndv5"]["provisioningState"] == "Succeeded"
    await_gpu_nodes(cluster, 1)
    assert gpu_quotas(cluster) == {"blue": "4", "red": "4", "slack": "0"}


def test_manual_changes_are_named_and_reverted(project: Project, paths: Paths, cluster: Cluster) -> None:
    assert main(["scale", "--state", str(paths.state), "--pool", "ndv5", "--count", "3"]) == 0
    change = {"spec": {"preemption": {"reclaimWithinCohort": "Never"}}}
    cluster.patch(KUEUE, "ClusterQueue", "red-cluster-queue", change)
    seen = project.drift()
    for name in ("agentPools/ndv5", "red-cluster-queue"):
        assert any(name in line and "id=" in line for line in seen.splitlines()), seen
    assert "count" in seen
    assert "reclaimWithinCohort" in seen
    project.up()
    await_gpu_nodes(cluster, 1)
    queue = cluster.get(KUEUE, "ClusterQueue", "red-cluster-queue")
    assert queue is not None
    assert queue["spec"]["preemption"]["reclaimWithinCohort"] == "Any"
    project.unchanged()


EVERYTHING: dict[str, Any] = {
    "azure.gpuPool.count": 8,
    "storage.volumes": [
        {"name": "data", "container": "data"},
        {"name": "corpus", "container": "corpus", "namespace": "blue", "access": "workloadIdentity"},
        {"name": "theirs", "container": "public", "account": "theirdatasets", "access": "sas"},
    ],
    "health.nodeCheck": {"enabled": True, "mode": "gate", "trigger": "1"},
    "health.ncclGate": {"enabled": True, "mode": "gate", "scope": "fabric"},
    "workloads.nccl": {"enabled": True, "nodes": 2, "tag": "1", "submission": {"gang": "volcano"}},
    "workloads.metaseq": {"enabled": True, "tag": "1", "useAim": True, "useTensorboard": True, "submission": TEAM},
    "workloads.olmo": {"enabled": True, "tag": "1", "data": "corpus", "submission": TEAM},
    "workloads.vllm": {"enabled": True, "submission": TEAM},
    "workloads.jupyterlab": {"enabled": True, "submission": {"gang": "none"}},
    "workloads.aim": {"enabled": True},
    "workloads.tensorboard": {"enabled": True},
}


@pytest.mark.usefixtures("everything")
def test_everything_at_once_is_created_and_then_unchanged(project: Project, cluster: Cluster) -> None:
    """Also after AKS has added its selector to every webhook, which is not drift."""
    enforce(cluster)
    project.unchanged()
    compared = drift(project)
    assert compared.returncode == 0, compared.stdout + compared.stderr
    wrappers = {item["metadata"]["name"] for item in cluster.list(APPWRAPPER, "AppWrapper", "blue")}
    assert wrappers == {"metaseq", "olmo", "batch-inference"}
    assert cluster.get("batch.volcano.sh/v1alpha1", "Job", "nccl-allreduce", "workloads") is not None
    for kind, name, namespace in (
        ("Deployment", "jupyterlab", "workloads"),
        ("Deployment", "aim", "blue"),
        ("Deployment", "tensorboard", "blue"),
    ):
        assert cluster.get("apps/v1", kind, name, namespace) is not None, name
    for name in ("node-check", "nccl-gate"):
        assert cluster.get("batch/v1", "Job", name, "mlbatch-health") is not None, name


OPERATORS = {"queueing.trainingOperator": {"enabled": True}}
"""Only for wrapped jobs: this target's local cluster has neither operators of jobs nor their kinds."""


@pytest.mark.parametrize("job", [job for job in JOBS if job != "finetuning"])
def test_a_member_may_submit_the_same_workloads(
    job: str, settings: dict[str, Any], project: Project, paths: Paths
) -> None:
    """Each as `mlbatch jobs` prints it, under a name of the member's own."""
    assert created(project), "the policies of the last test's stack are in force"
    raw = {**changed(settings, {**EVERYTHING, **OPERATORS}), "blobSasToken": secrets.Concealed.SECRET}
    own = {"vllm": {"cache": {"name": "my-weights"}}, "pretraining": {}}.get(job, {"tag": "1"})
    changes = {"name": f"my-{job}", **own}
    inputs = interpret(wanted(raw, job, changes, {"team": "blue", "user": None}), base=paths.root, environment={})
    (blue,) = [team for team in inputs.settings.teams if team.name == "blue"]
    member = as_member(paths, "ada@example.org", blue.groups[:1])
    found = documents(inputs, job)
    assert "AppWrapper" in [document["kind"] for document in found]
    for document in found:
        dry_run(member, document)


def test_the_token_is_where_the_driver_looks_and_nowhere_else(project: Project, cluster: Cluster) -> None:
    secret = cluster.get("v1", "Secret", "theirs-sas-token", "workloads")
    assert secret is not None
    encoded = base64.b64encode(SAS_TOKEN.encode()).decode()
    assert secret["data"]["azurestorageaccountsastoken"] == encoded
    assert "azurestorageaccountkey" not in secret["data"]
    (volume,) = [v for v in cluster.list("v1", "PersistentVolume") if "theirs" in v["metadata"]["name"]]
    assert volume["spec"]["csi"]["nodeStageSecretRef"] == {"name": "theirs-sas-token", "namespace": "workloads"}
    state = project.state_file.read_text()
    for hidden in (SAS_TOKEN, encoded, "bm90LWEtcmVhbC1zaWduYXR1cmU"):
        assert hidden not in state


def claimed_by_identity(cluster: Cluster) -> dict[str, tuple[str, str, str]]:
    """Return, by claim, the claim's uid and phase, and the client id of the volume's identity."""
    found = {}
    for volume in cluster.list("v1", "PersistentVolume"):
        attributes = volume["spec"].get("csi", {}).get("volumeAttributes", {})
        client = attributes.get("clientID") or attributes.get("AzureStorageIdentityClientID")
        if client:
            reference = volume["spec"]["claimRef"]
            claim = cluster.existing("v1", "PersistentVolumeClaim", reference["name"], reference["namespace"])
            found[reference["name"]] = (claim["metadata"]["uid"], claim["status"]["phase"], client)
    return found


@pytest.mark.soak("a minute and a half; tests/emulator/azure/test_operations.py recreates an identity, too")
@pytest.mark.usefixtures("everything")
def test_recreated_identities_recreate_their_volumes_and_claims(
    project: Project, paths: Paths, cluster: Cluster
) -> None:
    """A volume names its identity permanently, and a claim its volume. AKS' selectors survive the update."""
    before = claimed_by_identity(cluster)
    assert set(before) == {"data", "corpus"}
    enforce(cluster)
    gone_by_hand(paths, "mlbatch-nodes", "mlbatch-in-blue")
    enforced = selectors(cluster)
    name = "kueue-validating-webhook-configuration"
    cluster.patch(ADMISSION, WEBHOOKS[1], name, {"metadata": {"labels": {"app.kubernetes.io/name": "edited"}}})
    project.up()
    clients = {name: each["clientId"] for name, each in in_azure(paths, UserAssignedIdentity.type).items()}
    after = claimed_by_identity(cluster)
    assert {claim: (phase, client) for claim, (_, phase, client) in after.items()} == {
        "data": ("Bound", clients["mlbatch-nodes"]),
        "corpus": ("Bound", clients["mlbatch-in-blue"]),
    }
    for claim in before:
        assert before[claim][0] != after[claim][0]
        assert before[claim][2] != after[claim][2]
    assert cluster.existing(ADMISSION, WEBHOOKS[1], name)["metadata"]["labels"]["app.kubernetes.io/name"] == "kueue"
    assert selectors(cluster) == enforced
    project.unchanged()


def configured(project: Project, changes: dict[str, Any]) -> None:
    secret = project.secret("blobSasToken", SAS_TOKEN)
    project.configure({**changed(stack_settings("aks"), {**EVERYTHING, **changes}), "blobSasToken": secret})


def updated(project: Project, changes: dict[str, Any], *expected: str, **others: str) -> None:
    """Update the stack, which changes these resources in place and has only these other operations."""
    configured(project, changes)
    assert project.changes() == {**dict.fromkeys(expected, "update"), **others}
    project.up()
    project.unchanged()


KEPT = {"jupyterlab": "workloads", "metaseq": "blue", "olmo": "blue"}
"""Budgets that allow no disruption, with their namespaces."""


@pytest.mark.soak("six minutes; test_more_nodes_are_one_update_of_the_pool_and_of_the_queues changes the cluster, too")
@pytest.mark.usefixtures("everything")
def test_what_azure_changes_in_place_is_changed_in_place(project: Project, paths: Paths, cluster: Cluster) -> None:
    """On a cluster with a GPU pool, which each request must then list. The control plane is upgraded first.

    AKS refuses the upgrade while a budget allows no disruption. The update restores deleted budgets.
    """
    options: dict[str, Any] = {
        "azure.kubernetesVersion": OLD,
        "azure.apiServer.authorizedRanges": ["203.0.113.0/24"],
        "azure.tier": "Premium",
        "azure.support": "longTerm",
        "azure.upgrades.nodeOs": "SecurityPatch",
        "azure.upgrades.kubernetes": "patch",
        "azure.access.adminGroups": ["99999999-8888-4777-8666-555555555555"],
    }
    # A preview of a change of the cluster does not know its issuer, which this credential names.
    changes = ("mlbatch", "mlbatch-in-blue-default")
    windows = {"aksManagedAutoUpgradeSchedule": "create", "aksManagedNodeOSUpgradeSchedule": "create"}
    updated(project, options, *changes, **windows)
    assert in_azure(paths, CLUSTER)["mlbatch"]["sku"]["tier"] == "Premium"
    options |= {"azure.systemPool.count": 3}
    updated(project, options, "mlbatch-system")
    options |= {"azure.kubernetesVersion": NEW}
    configured(project, options)
    fails(project, "UnsatisfiablePDB", *(f"PDB {namespace}/{name} has" for name, namespace in KEPT.items()))
    for name, namespace in KEPT.items():
        cluster.delete("policy/v1", "PodDisruptionBudget", name, namespace)
    budgets = {f"{name}/PodDisruptionBudget": "create" for name in KEPT}
    updated(project, options, *changes, "mlbatch-system", "ndv5", **budgets)
    versions = {name: pool["currentOrchestratorVersion"] for name, pool in in_azure(paths, POOL).items()}
    assert {name: version.rpartition(".")[0] for name, version in versions.items()} == {"system": NEW, "ndv5": NEW}
    options |= {"azure.sshPublicKey": KEY}
    updated(project, options)
    assert "az aks update --resource-group mlbatch --name mlbatch --ssh-key-value" in project.run("preview").stdout


@pytest.mark.soak("two minutes; test_cpouta.py replaces the cluster, too")
@pytest.mark.usefixtures("everything")
def test_a_recreated_cluster_gets_its_objects_again(
    project: Project, settings: dict[str, Any], paths: Paths, cluster: Cluster
) -> None:
    """Queues have a finalizer of Kueue, which goes with the cluster. So the update does not delete them itself."""
    before = cluster.existing("v1", "Namespace", "blue")["metadata"]["uid"]
    secret = project.secret("blobSasToken", SAS_TOKEN)
    other = changed(settings, {**EVERYTHING, "azure.nodeResourceGroup": "other-nodes"})
    project.configure({**other, "blobSasToken": secret})
    project.up()
    assert in_azure(paths, CLUSTER)["mlbatch"]["nodeResourceGroup"] == "other-nodes"
    assert cluster.existing("v1", "Namespace", "blue")["metadata"]["uid"] != before
    assert set(gpu_quotas(cluster)) == {"blue", "red", "slack"}
    project.unchanged()


def test_destroy_leaves_only_the_subscriptions_feature(project: Project, paths: Paths, cluster: Cluster) -> None:
    project.destroy()
    assert created(project) == []
    assert set(in_azure(paths)) == set(in_azure(paths, REGISTRATION)) == {"AKSInfinibandSupport"}
    assert {item["metadata"]["name"] for item in cluster.list("v1", "Namespace")} == BUILT_IN
    assert [item["metadata"]["name"] for item in cluster.list("v1", "Node")] == ["local-controllers"]
    assert cluster.list("apiextensions.k8s.io/v1", "CustomResourceDefinition") == []
    for kind in WEBHOOKS:
        assert cluster.list(ADMISSION, kind) == []
