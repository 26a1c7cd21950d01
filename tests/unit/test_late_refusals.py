"""Settings that the API server, Azure or the jobs would reject late are rejected before any registration."""

from __future__ import annotations

from typing import Any

import pytest

from stacks.config.cluster_facts import ClusterFacts
from stacks.config.errors import ConfigError
from stacks.validation import rules
from tests.unit.configurations import aks, errors_of, partial_of
from tests.unit.test_existing import shipped
from tests.unit.test_settings import changed

JOB = {"enabled": True, "tag": "1", "submission": {"gang": "none"}}
LAB = {"enabled": True, "submission": {"gang": "none"}}
LOGGED = {"metaseq": {**JOB, "useAim": True}, "aim": {"enabled": True}}
QUEUED = {"enabled": True, "submission": {"team": "blue"}, "scratch": False}
EXPOSED = {**QUEUED, "exposure": "public", "sourceRanges": ["203.0.113.0/24"]}
OLMO = {"name": "data", "container": "olmo"}
MINE = {"name": "mine"}
OTHER = {"packing": "none"}
PORTS = {"cpu": 90, "memory": "1000G", "nvidia.com/gpu": 8, "nvidia.com/mlnxnics": 8}
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

REFUSED: list[dict[str, Any]] = [
    # amounts
    logs(size=0),
    logs(size="1m"),
    volume(capacity="1500m"),
    volume(capacity=5),
    aks(teams=[{**TEAM, "storage": {"size": "20"}}]),
    aks(workloads={"cpu": 0}),
    nccl(memory="100m"),
    changed(("samples", "gang", "cpuPerPod"), 0),
    changed(("teams", 0, "quota", "cpu"), "1u"),
    changed(("teams", 0, "quota", "memory"), "1500m"),
    changed(("nodes", "cpu"), "1" * 5000),
    changed(("nodes", "cpu"), "1e" + "9" * 5000),
    # names
    logs(name="Data"),
    logs(storageClass="a b"),
    aks(monitoring={"storageClass": ""}),
    existing(storageClasses={"files": "A_B"}),
    existing(pool={"tolerations": [{"key": ""}]}),
    existing(pool={"tolerations": [{"key": "a", "operator": "Equal", "value": "x y"}]}),
    existing(internalLoadBalancer={"a b": "c"}),
    # images
    lab(image="https://nvcr.io/x:1"),
    lab(image="nvcr.io/Upper:1"),
    lab(image="a b:1"),
    lab(image="a:1:2"),
    lab(image="nvcr.io/pytorch"),
    lab(image="nvcr.io/pytorch:latest"),
    lab(image="robot:secret@nvcr.io/x:1"),
    nccl(image="https://nvcr.io/x"),
    nccl(image=""),
    nccl(image="robot:secret@nvcr.io/x"),
    existing(registry="registry.example.org/Up"),
    aks(workloads={"olmo": {"training": "a b; c"}}),
    # who gets in
    opened("64.0.0.0/2"),
    opened(*(f"{n}.0.0.0/8" for n in range(64))),
    opened("203.0.113.0/255.255.255.0"),
    opened("203.0.113.7"),
    opened("127.0.0.1/32", exposure="internal"),
    opened("2001:db8::/32"),
    opened("10.0.0.0/8"),
    aks({"apiServer": {"authorizedRanges": ["0.0.0.0/1", "128.0.0.0/1"]}}),
    aks({"apiServer": {"authorizedRanges": ["198.51.100.0/24", "10.0.0.0/8"]}}),
    aks({"access": {"adminGroups": ["00000000-0000-0000-0000-000000000000"]}}),
    # Azure
    aks({"clusterName": "a" * 54}),
    aks({"resourceGroup": "a" * 77}),
    aks({"nodeResourceGroup": "a" * 81}),
    aks({"resourceGroup": "x\u00b2"}),
    aks({"adminUser": "user1"}),
    aks({"systemPool": {"vmSize": "Standard_D\u0664s_v5"}}),
    aks({"systemPool": {"vmSize": "Standard_D4_v5"}}),
    *(
        aks({"systemPool": {"vmSize": f"Standard_{size}"}})
        for size in ("DS1_v2", "DS2_v2", "F2s", "A2_v2", "DS13-2_v2", "G2")
    ),
    aks({"tags": {"Microsoft-team": "x"}}),
    aks({"tags": {f"t{n}": "" for n in range(50)}, "gpuPool": {"skipGpuDriverInstallTag": True}}),
    aks(
        {
            "location": "northcentralus",
            "gpuPool": {"anyRegion": True},
            "systemPool": {"zones": []},
            "storage": {"account": "abc", "sku": "Standard_ZRS"},
        }
    ),
    *(
        aks({"network": {"podCidr": text}})
        for text in ("127.0.0.0/16", "169.254.0.0/16", "172.30.0.0/16", "224.0.0.0/16")
    ),
    aks({"storage": {"account": "abc", "allowedRanges": ["127.0.0.1/32"]}}),
    # volumes
    lab(storageClass="managed-csi"),
    logs(storageClass="managed-csi-premium"),
    aks(monitoring={"storageClass": "azurefile-csi"}),
    lab(storageClass="azurefile-csi-premium"),
    aks(monitoring={"storageClass": "mlbatch-files-nfs"}),
    aks(monitoring={"storage": "64Ti"}),
    aks(monitoring={"alertmanagerStorage": "32Ti"}),
    aks(monitoring={"grafanaStorage": "32Ti"}),
    # kinds that no other component brings
    aks(gpu={"operator": False}),
    aks(gpu={"operator": False, "fabric": {"enabled": False}}),
    aks(gpu={"featureDiscovery": False}),
    aks(scheduling={"priorityClasses": False}),
    volume(container="a-" * 36 + "b"),
    volume(container="a--b"),
    # contradictions
    volume(namespace="blu"),
    volume(account="mlbatchexampledata"),
    aks({"kubernetesVersion": "1.35.1", "upgrades": {"kubernetes": "patch"}}),
    aks({"upgrades": {"kubernetes": "stable"}}),
    aks({"upgrades": {"kubernetes": "rapid"}}),
    aks(
        {"upgrades": {"drainTimeoutMinutes": 1}},
        teams=[TEAM],
        tenancy={"longestGraceSeconds": 90},
    ),
    aks(health={"ncclGate": {"enabled": True, "failGbs": 9000, "warnGbs": 9000}}),
    aks(
        tenancy={"network": {"egress": {"denied": ["8.8.8.0/24"]}}},
        teams=[{**TEAM, "network": {"egress": {"addresses": ["8.8.8.0/25"]}}}],
    ),
    aks(
        teams=[{**TEAM, "services": {"total": 1}}],
        workloads={name: {**JOB, "submission": {"team": "blue"}} for name in ("nccl", "metaseq")},
    ),
    aks(
        {"gpuPool": {"count": 1}},
        teams=[{"name": "blue", "users": [], "quota": {"cpu": 0, "memory": "1Gi", "nvidia.com/gpu": 1}}],
        queueing={"slack": {"cpu": 0, "memory": 0, "nvidia.com/gpu": 0}},
    ),
    aks({"gpuPool": {"count": 2}}, workloads={"metaseq": {**JOB, "nodes": 2, "batch": 3000}}),
    aks(workloads={"metaseq": {**JOB, "layers": 1000, "embedding": 65536, "heads": 1024}}),
]
"""`tests/unit/refusals` has the text of each."""


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
        # simulated nodes
        changed(("teams", 1, "quota", "cpu"), 0),
        changed(("teams", 1, "lendingLimit"), {"nvidia.com/gpu": 0}),
        changed(("samples", "gang"), {"enabled": False, "team": "nobody", "pods": 900}),
        changed(("teams", 1, "users"), ["alice"]),
        changed(("teams", 1, "users"), []),
        changed(("teams", 0, "lendingLimit"), {"cpu": 224, "nvidia.com/gpu": 8}),
        changed(("teams", 1, "borrowingLimit"), {"nvidia.com/gpu": 0}),
        changed(("recovery",), {"retryPauseSeconds": 120, "recoveryTimeoutSeconds": 121}),
        # AKS
        aks({"kubernetesVersion": "1.36", "osSku": "Ubuntu"}, gpu={"fabric": {"enabled": False}}, scheduling=OTHER),
        aks(gpu={"fabric": {"driverVersion": "doca3.1.0-25.07-0.9.7.0-0"}}),
        aks(teams=[{"name": "blue", "users": [], "quota": PORTS}]),
        *(aks(storage={"volumes": [{**OLMO, **values}]}, teams=[TEAM]) for values in ({}, {"namespace": "blue"})),
        aks({"storage": None}, storage={"volumes": [{**OLMO, "account": "mlbatchdata"}]}),
        aks(storage={"volumes": [OLMO, {**OLMO, "name": "more"}]}),
        aks(storage={"volumes": [{**OLMO, "access": "workloadIdentity"}]}),
        aks(storage={"volumes": [OLMO], "blobDriver": {"version": "v1.24.1", "blobfuse": None}}),
        aks(monitoring={"storage": "5Gi", "enabled": False}),
        *(aks(monitoring={"nodeExporterPort": port}) for port in (9100, 9110, 10247, 10251, 10258, 10260)),
        {**shipped(), "monitoring": {"enabled": True, "gpuOperatorNamespace": "nvidia-gpu-operator"}},
        aks(monitoring={"runbooks": "https://git.example.org/platform/docs/runbooks.md"}),
        aks(teams=[{**TEAM, "name": "prometheus"}]),
        aks(health={"autopilot": {"enabled": True}}),
        aks(
            health={
                "autopilot": {
                    "enabled": True,
                    "checks": ["pciebw", "remapped", "dcgm", "ping", "gpupower", "pvc"],
                    "pvcStorageClass": "nfs-client-pokprod",
                }
            }
        ),
        aks({"network": {"policy": "none"}}),
        aks({"network": {"policy": "none"}}, teams=[TEAM], tenancy={"network": {"enabled": False}}),
        aks({"network": {"policy": "calico"}}, teams=[TEAM]),
        aks(workloads={"vllm": {"enabled": False, "submission": {"team": "blue"}, "gpus": 16}}),
        aks(
            teams=[TEAM],
            workloads={"vllm": {"enabled": True, "submission": {"team": "blue"}, "model": "a/a.-b", "cache": MINE}},
        ),
        aks(
            teams=[TEAM],
            gpu={"fabric": {"devicePlugin": "shared"}},
            workloads={"nccl": {**JOB, "submission": {"team": "blue"}}},
        ),
        aks(teams=[{**TEAM, "name": "workloads"}], workloads={"namespace": "jobs"}),
        # an existing cluster
        {
            **existing(pool={"count": 2, "gpusPerNode": 4, "cpu": 32, "memory": "256Gi"}),
            "health": {"autopilot": {"enabled": True, "deepCheckHours": 0}},
        },
        {
            **shipped(),
            "teams": [{**TEAM, "services": {"loadBalancers": 1}}],
            "samples": {},
            "workloads": {"jupyterlab": EXPOSED},
        },
        {
            **shipped(),
            "teams": [{**TEAM, "storage": {"size": "30Ti"}}],
            "samples": {},
            "workloads": {"jupyterlab": {**QUEUED, "fsSize": 21}},
        },
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


def test_what_is_switched_off_for_a_while_keeps_its_options() -> None:
    off = {"enabled": False}
    raw = aks(workloads={"nccl": {**off, "nodes": 1}}, health={"nodeCheck": {**off, "trigger": "2"}}, gpu={})
    assert "have no effect" not in warned(raw)
