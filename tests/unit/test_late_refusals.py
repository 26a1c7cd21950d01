"""What the API server, Azure or the jobs themselves would refuse late is refused before anything is registered."""

from __future__ import annotations

from typing import Any

import pytest

from stacks.config.cluster_facts import ClusterFacts
from stacks.config.errors import ConfigError, key
from stacks.validation import rules
from tests.unit.configurations import aks, errors_of, partial_of
from tests.unit.test_existing import NODES, UID, shipped
from tests.unit.test_settings import changed

JOB = {"enabled": True, "tag": "1", "submission": {"gang": "none"}}
LAB = {"enabled": True, "submission": {"gang": "none"}}
LOGGED = {"metaseq": {**JOB, "useAim": True}, "aim": {"enabled": True}}
TEAM = {"name": "blue", "users": [], "share": 1}


def lab(**values: Any) -> dict[str, Any]:
    return aks(workloads={"jupyterlab": {**LAB, **values}})


def nccl(**values: Any) -> dict[str, Any]:
    return aks(workloads={"nccl": {**JOB, **values}})


def logs(**values: Any) -> dict[str, Any]:
    return aks(workloads={**LOGGED, "logs": values})


def opened(*ranges: str, exposure: str = "public") -> dict[str, Any]:
    return lab(exposure=exposure, sourceRanges=list(ranges))


def existing(**cluster: Any) -> dict[str, Any]:
    return {"target": "existing", "cluster": cluster}


def volume(**values: Any) -> dict[str, Any]:
    return aks(storage={"volumes": [{"name": "data", "container": "data", **values}]})


DIGEST = f"sha256:{'0' * 64}"

REFUSED: list[tuple[dict[str, Any], str, str]] = [
    # amounts
    (logs(size=0), "workloads.logs.size", "there has to be some of it"),
    (logs(size="1m"), "workloads.logs.size", "bytes come in whole pieces only"),
    (volume(capacity="1500m"), "storage.volumes[0].capacity", "bytes come in whole pieces only"),
    (volume(capacity=5), "storage.volumes[0].capacity", "these are 5 bytes, as no unit stands behind the number"),
    (aks(teams=[{**TEAM, "storage": {"size": "20"}}]), "teams[0].storage.size", "these are 20 bytes"),
    (aks(workloads={"cpu": 0}), "workloads.cpu", "there has to be some of it"),
    (nccl(memory="100m"), "workloads.nccl.memory", "bytes come in whole pieces only"),
    (changed(("samples", "gang", "cpuPerPod"), 0), "samples.gang.cpuPerPod", "there has to be some of it"),
    (changed(("teams", 0, "quota", "cpu"), "1u"), "teams[0].quota.cpu", "divides CPUs into 1m at the finest"),
    (changed(("teams", 0, "quota", "memory"), "1500m"), "teams[0].quota.memory", "bytes come in whole pieces only"),
    (changed(("nodes", "cpu"), "1" * 5000), "nodes.cpu", "these are more digits than any amount has"),
    (changed(("nodes", "cpu"), "1e" + "9" * 5000), "nodes.cpu", "more or finer than Kubernetes can hold"),
    # names
    (logs(name="Data"), "workloads.logs.name", "Kubernetes would reject this name"),
    (logs(storageClass="a b"), "workloads.logs.storageClass", "cannot be the name of a storage class"),
    (aks(monitoring={"storageClass": ""}), "monitoring.storageClass", "cannot be the name of a storage class"),
    (existing(storageClasses={"files": "A_B"}), "cluster.storageClasses.files", "cannot be the name of a storage"),
    (existing(pool={"tolerations": [{"key": ""}]}), "cluster.pool.tolerations[0].key", "reject this name"),
    (
        existing(pool={"tolerations": [{"key": "a", "operator": "Equal", "value": "x y"}]}),
        "cluster.pool.tolerations[0].value",
        "no taint can have this value",
    ),
    (existing(internalLoadBalancer={"a b": "c"}), 'cluster.internalLoadBalancer["a b"]', "reject this name"),
    # images
    (lab(image="https://nvcr.io/x:1"), "workloads.jupyterlab.image", "has no scheme"),
    (lab(image="nvcr.io/Upper:1"), "workloads.jupyterlab.image", "in lower case"),
    (lab(image="a b:1"), "workloads.jupyterlab.image", "there are blanks in this name"),
    (lab(image="a:1:2"), "workloads.jupyterlab.image", "this is no image's name"),
    (lab(image="nvcr.io/pytorch"), "workloads.jupyterlab.image", "nothing says which of its tags to run"),
    (lab(image="nvcr.io/pytorch:latest"), "workloads.jupyterlab.image", "moved from one image to the next"),
    (lab(image="robot:secret@nvcr.io/x:1"), "workloads.jupyterlab.image", "has no password"),
    (nccl(image="https://nvcr.io/x"), "workloads.nccl.image", "has no scheme"),
    (nccl(image=""), "workloads.nccl.image", "this is no image's name"),
    (nccl(image="robot:secret@nvcr.io/x"), "workloads.nccl.image", "has no password"),
    (existing(registry="registry.example.org/Up"), "cluster.registry", "in lower case"),
    (aks(workloads={"olmo": {"training": "a b; c"}}), "workloads.olmo.training", "cannot be the path of a file"),
    # who gets in
    (opened("64.0.0.0/2"), "workloads.jupyterlab.sourceRanges[0]", "next to every address"),
    (
        opened(*(f"{n}.0.0.0/8" for n in range(64))),
        "workloads.jupyterlab.sourceRanges",
        "together these are 0.0.0.0/2",
    ),
    (opened("203.0.113.0/255.255.255.0"), "workloads.jupyterlab.sourceRanges[0]", "this is no address range"),
    (opened("203.0.113.7"), "workloads.jupyterlab.sourceRanges[0]", "this is no address range"),
    (opened("127.0.0.1/32", exposure="internal"), "workloads.jupyterlab.sourceRanges[0]", "address for itself"),
    (opened("2001:db8::/32"), "workloads.jupyterlab.sourceRanges[0]", "the cluster's network has no IPv6"),
    (opened("10.0.0.0/8"), "workloads.jupyterlab.sourceRanges", "would let nobody in"),
    (
        aks({"apiServer": {"authorizedRanges": ["0.0.0.0/1", "128.0.0.0/1"]}}),
        "azure.apiServer.authorizedRanges",
        "together these are 0.0.0.0/0",
    ),
    (
        aks({"apiServer": {"authorizedRanges": ["198.51.100.0/24", "10.0.0.0/8"]}}),
        "azure.apiServer.authorizedRanges[1]",
        "nobody comes to the API server's public address",
    ),
    (
        aks({"access": {"adminGroups": ["00000000-0000-0000-0000-000000000000"]}}),
        "azure.access.adminGroups[0]",
        "this is nobody's id",
    ),
    # Azure
    (aks({"clusterName": "a" * 54}), "azure.clusterName", "may have 64 characters"),
    (aks({"resourceGroup": "a" * 77}), "azure.resourceGroup", "may have 80 characters"),
    (aks({"nodeResourceGroup": "a" * 81}), "azure.nodeResourceGroup", "may have 80 characters"),
    (aks({"resourceGroup": "x\u00b2"}), "azure.resourceGroup", "Azure refuses this name"),
    (aks({"adminUser": "user1"}), "azure.adminUser", "Azure refuses this name"),
    (aks({"systemPool": {"vmSize": "Standard_D\u0664s_v5"}}), "azure.systemPool.vmSize", "no name of a VM size"),
    (aks({"systemPool": {"vmSize": "Standard_D4_v5"}}), "azure.systemPool.vmSize", "cannot attach premium disks"),
    *(
        (aks({"systemPool": {"vmSize": f"Standard_{size}"}}), "azure.systemPool.vmSize", wrong)
        for size, wrong in (
            ("DS1_v2", "1 vCPUs are too few"),
            ("DS2_v2", "2 vCPUs are too few"),
            ("F2s", "2 vCPUs are too few"),
            ("A2_v2", "2 vCPUs are too few"),
            ("DS13-2_v2", "2 vCPUs are too few"),
            ("G2", "how many vCPUs this old VM size has"),
        )
    ),
    (aks({"tags": {"Microsoft-team": "x"}}), "azure.tags", "Azure keeps names like 'Microsoft-team' to itself"),
    (
        aks({"tags": {f"t{n}": "" for n in range(50)}, "gpuPool": {"skipGpuDriverInstallTag": True}}),
        "azure.tags",
        "these are 51 tags",
    ),
    (
        aks(
            {
                "location": "northcentralus",
                "gpuPool": {"anyRegion": True},
                "systemPool": {"zones": []},
                "storage": {"account": "abc", "sku": "Standard_ZRS"},
            }
        ),
        "azure.storage.sku",
        "region northcentralus has none",
    ),
    *(
        (aks({"network": {"podCidr": text}}), "azure.network.podCidr", "which Azure and AKS keep for themselves")
        for text in ("127.0.0.0/16", "169.254.0.0/16", "172.30.0.0/16", "224.0.0.0/16")
    ),
    (
        aks({"storage": {"account": "abc", "allowedRanges": ["127.0.0.1/32"]}}),
        "azure.storage.allowedRanges[0]",
        "public networks only",
    ),
    # volumes
    (lab(storageClass="managed-csi"), "workloads.jupyterlab.storageClass", "disks, which one node mounts"),
    (logs(storageClass="managed-csi-premium"), "workloads.logs.storageClass", "disks, which one node mounts"),
    (aks(monitoring={"storageClass": "azurefile-csi"}), "monitoring.storageClass", "on which Prometheus loses"),
    (lab(storageClass="azurefile-csi-premium"), "workloads.jupyterlab.storageClass", "key of a storage account"),
    (aks(monitoring={"storageClass": "mlbatch-files-nfs"}), "monitoring.storageClass", "on which Prometheus loses"),
    (aks(monitoring={"storage": "64Ti"}), "monitoring.storage", "Azure makes no disk of this size"),
    (
        aks(monitoring={"alertmanagerStorage": "32Ti"}),
        "monitoring.alertmanagerStorage",
        "Azure makes no disk of this size",
    ),
    (aks(monitoring={"grafanaStorage": "32Ti"}), "monitoring.grafanaStorage", "Azure makes no disk of this size"),
    # what nobody else brings
    (aks(gpu={"operator": False}), "gpu.operator", "the nodes come without a driver"),
    (aks(gpu={"operator": False, "fabric": {"enabled": False}}), "gpu.operator", "the nodes come without a driver"),
    (aks(gpu={"featureDiscovery": False}), "gpu.featureDiscovery", "nobody else would label any"),
    (
        aks(scheduling={"priorityClasses": False}),
        "scheduling.priorityClasses",
        "the cluster has no priority class low-priority, default-priority, high-priority",
    ),
    (volume(container="a-" * 36 + "b"), "storage.volumes[0].container", "Azure refuses this name of a container"),
    (volume(container="a--b"), "storage.volumes[0].container", "Azure refuses this name of a container"),
    # contradictions
    (volume(namespace="blu"), "storage.volumes[0].namespace", "the stack has no such namespace"),
    (volume(account="mlbatchexampledata"), "storage.volumes[0].account", "the stack's own account"),
    (
        aks({"kubernetesVersion": "1.35.1", "upgrades": {"kubernetes": "patch"}}),
        "azure.kubernetesVersion",
        "it names a patch",
    ),
    (aks({"upgrades": {"kubernetes": "stable"}}), "azure.upgrades.kubernetes", "this upgrade channel is not known"),
    (aks({"upgrades": {"kubernetes": "rapid"}}), "azure.upgrades.kubernetes", "this upgrade channel is not known"),
    (
        aks(
            {"upgrades": {"drainTimeoutMinutes": 1}},
            teams=[TEAM],
            tenancy={"longestGraceSeconds": 90},
        ),
        "azure.upgrades.drainTimeoutMinutes",
        "pods of teams may take 90 seconds to end",
    ),
    (
        aks(health={"ncclGate": {"enabled": True, "failGbs": 9000, "warnGbs": 9000}}),
        "health.ncclGate.failGbs",
        "so that every node would fail",
    ),
    (
        aks(
            tenancy={"network": {"egress": {"denied": ["8.8.8.0/24"]}}},
            teams=[{**TEAM, "network": {"egress": {"addresses": ["8.8.8.0/25"]}}}],
        ),
        "teams[0].network.egress.addresses[0]",
        "denies 8.8.8.0/24, which shares addresses with it",
    ),
    (
        aks(
            teams=[{**TEAM, "services": {"total": 1}}],
            workloads={name: {**JOB, "submission": {"team": "blue"}} for name in ("nccl", "metaseq")},
        ),
        "teams[0].services.total",
        "the stack has 2 Services of its own",
    ),
    (
        aks(
            {"gpuPool": {"count": 1}},
            teams=[{"name": "blue", "users": [], "quota": {"cpu": 0, "memory": "1Gi", "nvidia.com/gpu": 1}}],
            queueing={"slack": {"cpu": 0, "memory": 0, "nvidia.com/gpu": 0}},
        ),
        "teams[0].quota.cpu",
        "the team has no cpu and nobody lends any",
    ),
    (
        aks({"gpuPool": {"count": 2}}, workloads={"metaseq": {**JOB, "nodes": 2, "batch": 3000}}),
        "workloads.metaseq.batch",
        "8 groups of 2 GPUs take 2048 tokens each in one update, which are 16384",
    ),
    (
        aks(workloads={"metaseq": {**JOB, "layers": 1000, "embedding": 65536, "heads": 1024}}),
        "workloads.metaseq.layers",
        "1.3b with this layers and embedding take",
    ),
]


@pytest.mark.parametrize(("raw", "path", "wrong"), REFUSED, ids=[f"{item[1]}: {item[2][:40]}" for item in REFUSED])
def test_it_is_one_problem_at_its_key(raw: dict[str, Any], path: str, wrong: str) -> None:
    found = errors_of(raw)
    assert [key(error.path) for error in found] == [f"mlbatch:{path}"], "\n".join(map(str, found))
    assert all(wrong in error.message for error in found), found[0].message


@pytest.mark.parametrize(
    "raw",
    [
        lab(image="Nvcr.io:5000/nvidia/pytorch:25.03-py3"),
        volume(container="a" * 63),
        aks(monitoring={"storage": "32767Gi", "alertmanagerStorage": "32767Gi", "grafanaStorage": "32767Gi"}),
        aks(monitoring={"storage": "64Ti", "storageClass": "made-by-hand"}),
        lab(storageClass="mlbatch-files-nfs"),
        lab(image=f"nvcr.io/nvidia/pytorch:25.03-py3@{DIGEST}"),
        lab(image=f"nvcr.io/nvidia/pytorch@{DIGEST}"),
        nccl(image="localhost:5000/nccl__test"),
        opened("203.0.113.0/24", "10.0.0.0/8"),
        opened("10.0.0.0/8", exposure="internal"),
        aks({"clusterName": "a" * 53, "resourceGroup": "a" * 90, "nodeResourceGroup": "b" * 80}),
        aks({"systemPool": {"vmSize": "Standard_DS3_v2"}}),
        aks({"systemPool": {"vmSize": "Standard_D4_v5"}}, monitoring={"storageClass": "managed-csi"}),
        aks({"apiServer": {"authorizedRanges": ["0.0.0.0/32"]}}),
        aks({"tags": {f"t{n}": "" for n in range(50)}}),
        aks(teams=[{**TEAM, "storage": {"size": 0, "claims": 0}}]),
        changed(("teams", 0, "quota", "cpu"), "223500m"),
    ],
)
def test_the_unusual_is_allowed(raw: dict[str, Any]) -> None:
    assert [str(error) for error in errors_of(raw)] == []


def warned(raw: dict[str, Any], facts: ClusterFacts | None = None) -> str:
    partial = partial_of(raw)
    partial.facts = facts
    errors: list[ConfigError] = rules.check(partial)
    assert [str(error) for error in errors] == []
    return "\n".join(rules.warnings(partial))


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({**shipped(), "gpu": {"operator": False, "driverVersion": "580.126.20"}}, "mlbatch:gpu.operator is false"),
        (aks(monitoring={"enabled": False, "retentionDays": 3}), "these do nothing: retentionDays"),
        (lab(storageClass="made-by-hand"), "neither AKS nor the stack makes a storage class made-by-hand"),
        (
            aks(teams=[TEAM], recovery={"recoveryTimeoutSeconds": 200}),
            "mlbatch:recovery.recoveryTimeoutSeconds is 200: a job whose pods take 120 seconds to end",
        ),
    ],
)
def test_what_may_not_be_meant_is_warned_of(raw: dict[str, Any], said: str) -> None:
    assert said in warned(raw)


def test_what_is_switched_off_for_a_while_keeps_its_options() -> None:
    off = {"enabled": False}
    raw = aks(workloads={"nccl": {**off, "nodes": 1}}, health={"nodeCheck": {**off, "trigger": "2"}}, gpu={})
    assert "do nothing" not in warned(raw)


def test_quotas_that_take_what_nodes_keep_are_warned_of() -> None:
    quota = {"cpu": 279, "memory": "1Ti", "nvidia.com/gpu": 12}
    teams = [{"name": name, "users": [], "quota": quota} for name in ("blue", "red")]
    nothing = {"cpu": 0, "memory": 0, "nvidia.com/gpu": 0}
    raw = {**shipped(), "teams": teams, "queueing": {"slack": nothing}, "samples": {}}
    facts = ClusterFacts(identifier=UID, version="1.34", nodes=NODES)
    assert "the quotas of cpu add up to 558, and jobs have 552: each of 3 nodes keeps 2" in warned(raw, facts)
