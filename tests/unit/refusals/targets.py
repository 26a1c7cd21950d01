"""Mistakes that a target has of its own, or that stand at the edge of two sections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.unit.configurations import aks
from tests.unit.test_cpouta_settings import shipped as cpouta
from tests.unit.test_existing import shipped as existing
from tests.unit.test_settings import valid as simulated
from tests.unit.test_workloads_everywhere import MISTAKES

_JOB: Final = {"enabled": True, "tag": "1", "submission": {"gang": "none"}}
_NC: Final = {"vmSize": "Standard_NC40ads_H100_v5", "count": 2}
_KEY: Final = "AAAAC3NzaC1lZDI1NTE5AAAAILRAB9KLBebIS3T6CQzFcLZeh0uyh1MafBbQmtzuICAV"
_BLUE: Final = {"name": "blue", "users": [], "share": 1}

_SHARED: Final = {"enabled": True, "submission": {"team": "blue"}, "scratch": False}
_NOTHING: Final = {"cpu": 0, "memory": 0, "nvidia.com/gpu": 0}
_QUOTA: Final[Mapping[str, Any]] = {
    "name": "blue",
    "users": [],
    "quota": {"cpu": 64, "memory": "500G", "nvidia.com/gpu": 8},
}


def _volume(**values: Any) -> dict[str, Any]:
    return {"name": "data", "container": "data", "namespace": "blue", **values}


def _without_pods(**values: Any) -> dict[str, Any]:
    """Teams that could never run a job: they may borrow none, or nobody lends any."""
    raw = simulated()
    quotas = [{**team["quota"], "pods": 0} for team in raw["teams"] if "quota" in team]
    raw["teams"] = [{"name": name, "users": [], "quota": quotas[0], **values} for name in ("blue", "red")]
    return {**raw, "queueing": {"slack": _NOTHING}, "samples": {}}


def _storage(**values: Any) -> dict[str, Any]:
    raw = existing()
    raw["teams"] = [{**team, "storage": values} for team in raw["teams"]]
    return raw


def _gate(**values: Any) -> dict[str, Any]:
    return {"ncclGate": {"enabled": True, **values}}


def _lab(**values: Any) -> dict[str, Any]:
    return aks(workloads={"jupyterlab": {"enabled": True, "submission": {"gang": "none"}, **values}})


def _opening(name: str, port: int, source: str = "192.0.2.0/24") -> dict[str, Any]:
    return {"name": name, "port": port, "source": source}


def _metaseq(nodes: int = 4, **values: Any) -> dict[str, Any]:
    return aks({"gpuPool": {"count": nodes}}, workloads={"metaseq": {**_JOB, "nodes": nodes, **values}})


def _simulated(**sections: Any) -> dict[str, Any]:
    return {"target": "simulated", **sections}


def _openshift(**sections: Any) -> dict[str, Any]:
    return {"target": "openshift", **sections}


OF_TARGETS: Final[tuple[Mapping[str, Any], ...]] = (
    # health checks
    {**existing(), "health": _gate()},
    {**existing(), "health": _gate(scope="fabric")},
    aks({"gpuPool": _NC}, health=_gate(scope="fabric", warnGbs=2, failGbs=1)),
    aks({"gpuPool": _NC}, health=_gate()),
    aks({"gpuPool": _NC}, health={"nodeCheck": {"enabled": True}}),
    aks({"gpuPool": {"count": 1}}, health=_gate(scope="fabric")),
    aks(health=_gate(warnGbs=490, failGbs=300)),
    aks(health=_gate(warnGbs=481, failGbs=300)),
    aks(health=_gate(failGbs=481)),
    aks(health=_gate(warnGbs=450)),
    aks(health=_gate(nodes=3)),
    _simulated(health=_gate()),
    _openshift(health=_gate(), gpu={"nvmeScratch": {"enabled": True, "diskModel": "Any"}}, volcano={"enabled": True}),
    # jobs and their queues
    aks(samples={"gang": {"team": "blue", "pods": 1}}, tenancy={"enabled": False}, queueing={"enabled": False}),
    _simulated(samples={"gang": {"team": "blue", "pods": 1}}, tenancy={"enabled": False}),
    aks({"gpuPool": {"count": 0}}, teams=[_BLUE], workloads={"nccl": {"enabled": True, "tag": "1"}}),
    aks({"gpuPool": None}, teams=[_BLUE], workloads={"nccl": {"enabled": True, "tag": "1"}}),
    {**existing(), "workloads": {"nccl": {"enabled": True, "tag": "1"}}},
    _metaseq(size="66b", modelParallel=16),
    _metaseq(size="1.3b", batch=4096),
    _metaseq(nodes=1, size="175b"),
    _metaseq(nodes=1, size="66b", layers=60),
    aks(scheduling={"priorityClasses": False}),
    aks({"gpuPool": {"count": 4, "autoscale": {"min": 1, "max": 4}}}, scheduling={"packing": "topology"}),
    aks({"kubernetesVersion": "1.36"}, scheduling={"schedulerVersion": "v0.31.8"}),
    aks(teams=[{**_BLUE, "name": "workloads"}]),
    aks(teams=[_BLUE], workloads={"namespace": "blue"}),
    # workloads
    aks(workloads={"metaseq": {**_JOB, "useAim": True}, "aim": {"enabled": True, "image": "a.example/b"}}),
    aks(workloads={"aim": {"enabled": True}, "tensorboard": {"enabled": True}}),
    _lab(exposure="internal", sourceRanges=["127.0.0.0/8"]),
    _lab(exposure="internal", sourceRanges=["0.0.0.0/1"]),
    _lab(exposure="internal", sourceRanges=["hello"]),
    _lab(exposure="internal", sourceRanges=["10.0.0.1/8"]),
    _lab(exposure="public", sourceRanges=["10.0.0.0/8"]),
    _lab(exposure="public", sourceRanges=["0.0.0.0/2", "64.0.0.0/2", "128.0.0.0/1"]),
    _lab(exposure="public"),
    _lab(sourceRanges=["203.0.113.0/24"]),
    # AKS
    aks(gpu={"operator": False}),
    aks(gpu={"installDriver": False, "installToolkit": False}),
    aks(gpu={"featureDiscovery": False}),
    aks({"network": {"policy": "none"}}, teams=[_BLUE]),
    aks(teams=[{"name": "blue", "users": ["ada", "ada@example.org"], "groups": ["us"], "share": 1}]),
    aks(monitoring={"storageClass": "made-by-hand"}),
    aks(storage={"volumes": [{"name": "data", "container": "data", "access": "sas"}]}),
    aks(monitoring={"enabled": False, "retentionDays": 3}),
    aks(teams=[_BLUE], recovery={"recoveryTimeoutSeconds": 200}),
    aks(storage={"files": {"reclaim": "Keep"}}),
    aks(teams=[_BLUE], tenancy={"acceptUnenforced": ["quota-gates"]}),
    aks({"clusterName": "m" * 60}, teams=[_BLUE], storage={"volumes": [_volume(access="workloadIdentity")]}),
    aks({"storage": None}, storage={"volumes": [_volume()]}),
    aks(storage={"volumes": [_volume(), _volume(container="other")]}),
    aks({"network": {"serviceCidr": "10.0.0.0/30"}}),
    aks({"network": {"serviceCidr": "169.254.0.0/16"}}),
    aks(
        health={"nodeCheck": {"enabled": True, "queue": True}}, queueing={"enabled": False}, tenancy={"enabled": False}
    ),
    aks({"gpuPool": {"count": 0}}, health=_gate()),
    # Autopilot
    *(
        aks(health={"autopilot": {"enabled": True, **values}})
        for values in (
            {"checks": ["pciebw", "iperf"]},
            {"checks": []},
            {"checks": ["dcgm", "dcgm"]},
            {"checks": ["pvc"]},
            {"pvcStorageClass": "nfs"},
            {"pvcStorageClass": "No Class", "checks": ["pvc"]},
            {"intervalHours": 0},
            {"deepCheckHours": 169},
            {"pcieGbs": 65},
        )
    ),
    {
        **existing(),
        "cluster": {"pool": {"count": 2, "gpusPerNode": 4, "cpu": 32, "memory": "256Gi"}},
        "health": {"autopilot": {"enabled": True}},
    },
    # monitoring
    *(
        aks(monitoring=values)
        for values in (
            {"storage": "5Gi"},
            {"alertmanagerStorage": "500Mi"},
            {"nodeExporterPort": 10250},
            {"gpuOperatorNamespace": "nvidia-gpu-operator"},
            {"receivers": [{"kind": "slack"}]},
            {"receivers": [{"kind": "pager"}]},
            {"receivers": [{"kind": "slack"}, {"kind": "slack"}]},
            {"publishedDashboards": True},
            {"namespace": "kube-system"},
        )
    ),
    aks(teams=[{**_BLUE, "name": "gpu-metrics"}], monitoring={"gpuOperatorNamespace": "gpu-metrics"}),
    # teams
    *(
        {**existing(), "teams": [{**_BLUE, **values}], "samples": {}}
        for values in (
            {"services": {"total": 5, "loadBalancers": 6}},
            {"services": {"total": 0}},
            {"storage": {"size": "much"}},
            {"storage": {"claims": 6000}},
        )
    ),
    {**existing(), "workloads": {"jupyterlab": {**_SHARED, "fsSize": 21}}},
    {**_storage(claims=0), "workloads": {"jupyterlab": _SHARED}},
    {
        **existing(),
        "workloads": {"jupyterlab": {**_SHARED, "exposure": "public", "sourceRanges": ["203.0.113.0/24"]}},
    },
    {**existing(), "tenancy": {"longestGraceSeconds": 29}},
    {**existing(), "tenancy": {"longestGraceSeconds": 30}, "recovery": {"recoveryTimeoutSeconds": 30}},
    {**existing(), "tenancy": {"podLogs": "1Mi"}},
    {**existing(), "queueing": {"countPods": False}, "teams": [{**_BLUE, "borrowingLimit": {"pods": 1}}]},
    {**existing(), "recovery": {"podsReadyTimeoutMinutes": 1}},
    {**existing(), "volcano": {"enabled": True, "queue": "default"}},
    _without_pods(borrowingLimit={"pods": 0}),
    _simulated(teams=[{**_QUOTA, "lendingLimit": {"nvidia.com/gpu": 9}}]),
    _simulated(teams=[_QUOTA], queueing={"slack": {**_NOTHING, "nvidia.com/gpu": 99}}),
    _simulated(tenancy={"network": {"egress": {"internet": False, "denied": ["203.0.113.0/24"]}}}),
    # secrets
    aks(workloads={"jupyterlab": {"token": "x"}}),
    aks(storage={"volumes": [_volume(container="data?sv=2024&sig=c2VjcmV0")]}),
    aks(grafanaPassword="hunter2"),
    aks(kubernetes={"kubeconfig": 1.10}),
    # jobs
    aks(teams=[_BLUE], workloads={"pretraining": {"enabled": True, "submission": {"team": "blue"}}}),
    aks(workloads={"nccl": {**_JOB, "submission": {"gang": "volcano"}}}),
    aks(teams=[_BLUE], workloads={"olmo": {"enabled": True, "tag": "1", "submission": {"team": "blue"}}}),
    aks(
        teams=[_BLUE],
        gpu={"nvmeScratch": {"enabled": False}},
        workloads={"jupyterlab": {"enabled": True, "submission": {"team": "blue"}}},
    ),
    *(raw for _, raw, *_ in MISTAKES),
    # an existing cluster
    {"target": "existing", "cluster": {"volumes": [{"name": "A_b", "namespace": "x.y"}]}},
    {**existing(), "gpu": {"fabric": {"enabled": True}}},
    {**existing(), "gpu": {"operator": True, "nvmeScratch": {"enabled": True}}},
    {**existing(), "gpu": {"operator": False, "driverVersion": "580.126.20"}},
    {**existing(), "teams": [{**_BLUE, "users": ["a b"]}]},
    # cPouta
    cpouta(ports=[_opening("a", 1), _opening("a", 2)]),
    cpouta(ports=[_opening("a", 8080), _opening("b", 8080)]),
    cpouta(ports=[_opening("a", 80, "0.0.0.0/0")]),
    cpouta(ports=[_opening("a", 22)]),
    cpouta(sshFrom={"me": "10.0.0.0/8"}),
    cpouta(sshFrom={}),
    cpouta(sshPublicKey="ssh-dss AAAAB3NzaC1kc3MAAACBAP me"),
    cpouta(privateKeyFile="key.pem"),
    cpouta(flavor="gpu.1.2gpu", volume={"size": 50}),
    cpouta(flavor="standard.tiny"),
    cpouta(flavor="standart.xxlarge"),
    cpouta(image="Ubuntu-20.04"),
    cpouta(volume={"type": "capacity"}),
    cpouta(volume={"existing": "data"}),
    cpouta(user="root"),
    cpouta(name="a b"),
    cpouta(kind={"kubernetes": "1.20.0"}),
    cpouta(privateKeyFile="~/.ssh/%h"),
    cpouta(otherPublicKeys=[f"ssh-ed25519 {_KEY} colleague"] * 150),
    {**cpouta(kind={"kubernetes": "1.24.0"}), "monitoring": {"enabled": True}},
    cpouta(sshFrom={"me": "2a02:2770::7/128"}),
    cpouta(sshFrom={"lower": "0.0.0.0/1", "upper": "128.0.0.0/1"}),
    cpouta(sshFrom={"me": "203.0.113.7/32", "i": "203.0.113.7/32"}),
    cpouta(sshFrom={"My House": "203.0.113.7/32"}),
    cpouta(privateKeyFile="~/.ssh/key.pub"),
    cpouta(volume={"existing": "11111111-2222-3333-4444-555555555555", "size": 100}),
    cpouta(ubuntu="24.04"),
    cpouta(image="our-ubuntu"),
    cpouta(flavor="gpu.1.1gpu", bootVolume=39),
    cpouta(flavor="gpu.1.1gpu", gpu={"driver": "470"}),
    cpouta(flavor="gpu.1.1gpu", image="Ubuntu-24.04"),
    cpouta(flavor="gpu.1.1gpu", image="our-ubuntu", ubuntu="24.04"),
    cpouta(gpu={}),
    {**cpouta(), "gpu": {"operator": True, "featureDiscovery": True}},
    {**cpouta(flavor="gpu.1.1gpu"), "gpu": {"installDriver": True}},
    {**cpouta(flavor="gpu.1.1gpu"), "gpu": {"installToolkit": True}},
    {**cpouta(flavor="gpu.1.1gpu"), "nvshare": {"enabled": True}},
    {**cpouta(), "nvshare": {"enabled": True}},
    {**cpouta(), "mlops": {"enabled": True, "option": 1}},
    {**cpouta(), "mlops": {"enabled": True, "ray": True}, "queueing": {"enabled": True, "kuberay": {"enabled": True}}},
    {
        **cpouta(flavor="hpc.6.14core"),
        "mlops": {"enabled": True, "option": 1},
        "queueing": {"enabled": True, "trainingOperator": {"enabled": True}},
    },
    {**cpouta(), "mlops": {"enabled": True}, "tenancy": {"enabled": True}, "workloads": {"namespace": "kubeflow"}},
    {**cpouta(), "teams": [_BLUE]},
    *(cpouta(kind={"apiPort": port}) for port in (5001, 8080, 22)),
    {**cpouta(), "mlops": {"option": 99}},
    {**cpouta(), "mlops": {"option": 99, "integration": False}},
    {**cpouta(), "mlops": {"forwarder": True, "integration": False}},
    {**cpouta(), "mlops": {"commit": "0" * 40}},
    {**cpouta(flavor="gpu.1.1gpu"), "gpu": {"operator": False, "featureDiscovery": False}, "teams": [_BLUE]},
)
