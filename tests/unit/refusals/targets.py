"""Errors that only one target has, or that depend on two sections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.unit.configurations import aks
from tests.unit.test_azure_settings import SHORT
from tests.unit.test_cpouta_settings import shipped as cpouta
from tests.unit.test_existing import shipped as existing
from tests.unit.test_hub_revisions import MISTAKES as REVISIONS
from tests.unit.test_network import valid as network
from tests.unit.test_pools import MISTAKES as POOLS
from tests.unit.test_settings import QUOTA
from tests.unit.test_settings import changed as simulated_with
from tests.unit.test_settings import valid as simulated
from tests.unit.test_workload_settings import job
from tests.unit.test_workload_settings import valid as workloads
from tests.unit.test_workloads_everywhere import MISTAKES

_JOB: Final = {"enabled": True, "tag": "1", "submission": {"gang": "none"}}
_NC: Final = {"vmSize": "Standard_NC40ads_H100_v5", "count": 2}
_KEY: Final = "AAAAC3NzaC1lZDI1NTE5AAAAILRAB9KLBebIS3T6CQzFcLZeh0uyh1MafBbQmtzuICAV"
_BLUE: Final = {"name": "blue", "users": [], "share": 1}

_QUEUED: Final = {"enabled": True, "submission": {"team": "blue"}}
_VOLUME: Final = {"name": "data", "container": "olmo"}
_PORTS: Final = {"cpu": 90, "memory": "1000G", "nvidia.com/gpu": 8, "nvidia.com/mlnxnics": 8}
_OLD_GPU: Final = {"driver": "470", "cuda": "11.0", "toolkit": "1.0.0-1"}
_LAYERS: Final[Mapping[str, Any]] = {"queueing": {"enabled": True}, "tenancy": {"enabled": True}}
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
    """Teams that could never run a job: they may not borrow, or no queue lends."""
    raw = simulated()
    quotas = [{**team["quota"], "pods": 0} for team in raw["teams"] if "quota" in team]
    raw["teams"] = [{"name": name, "users": [], "quota": quotas[0], **values} for name in ("blue", "red")]
    return {**raw, "queueing": {"slack": _NOTHING}, "samples": {}}


def _team(index: int, **values: Any) -> dict[str, Any]:
    raw = simulated()
    raw["teams"][index] |= values
    return raw


def _without_slack(path: tuple[str | int, ...], value: object) -> dict[str, Any]:
    return {**simulated_with(path, value), "queueing": {}}


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
            {"deepCheckHours": -1},
            {"pcieGbs": 65},
            {"pcieGbs": 0},
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
    *(
        aks(monitoring=values)
        for values in (
            {"namespace": "autopilot"},
            {"namespace": "Prometheus"},
            {"gpuOperatorNamespace": "nvidia-GPU-operator"},
            {"nodeExporterPort": 80},
            {"nodeExporterPort": 10259},
            {"grafanaStorage": "20"},
            {"storage": "8Ei", "storageClass": "site-disks"},
            {"retentionDays": 0},
            {"retentionDays": 366},
            {"version": "70.0.3"},
            *({"runbooks": page} for page in ("docs/runbooks.md", "https://", "https://a/b.md#top", "https://a b/c")),
        )
    ),
    aks(teams=[{**_BLUE, "name": "prometheus"}], monitoring={"namespace": "prometheus"}),
    aks(teams=[{**_BLUE, "name": "autopilot"}]),
    # GPUs and their network
    *(
        aks(gpu=values)
        for values in (
            {"operatorVersion": "v26.3.2", "fabric": {"operatorVersion": "26.4.0"}},
            {"installDriver": False},
            {"installToolkit": False},
            {"fabric": {"operatorVersion": "26.4.0"}},
            *(
                {"fabric": {"driverVersion": version}}
                for version in (
                    *("latest", "26.1.0", "doca3.3.0-26.01-1.0.0.0-0-ubuntu22.04-amd64", "5.8"),
                    *("doca3.2.0-25.10-1.2.8.0-2", "doca3.3.0-26.01-1.0.0.0-0", "24.10-0.7.0.0-0"),
                )
            ),
            {"fabric": {"driverVersion": "doca3.2.0-25.10-1.2.8.0-2", "enabled": False}},
            {"operatorVersion": "v23.9.1"},
            {"fabric": {"operatorVersion": "24.7.0"}},
            {"fabric": {"devicePlugin": "hostdev"}},
            {"featureDiscoveryVersion": "0.16.0"},
            {"nvmeScratch": {"filesystem": "btrfs"}},
            *(
                {"nvmeScratch": {"folder": folder}}
                for folder in (
                    *("/", "/etc", "/var/lib/kubelet", "/mnt", "/pv-disks/", "/pv-disks/../etc", "/mnt//nvme"),
                    *("/mnt/nvme/", "nvme"),
                )
            ),
            *(
                {"driverVersion": version}
                for version in ("latest", "580", "580.126.20-ubuntu22.04", "v580.126.20", "58.1.1")
            ),
        )
    ),
    aks({"kubernetesVersion": "1.36", "osSku": "Ubuntu"}),
    *(
        aks(gpu={"fabric": fabric}, teams=[{"name": "blue", "users": [], "quota": _PORTS}])
        for fabric in ({"devicePlugin": "shared"}, {"enabled": False})
    ),
    # storage on AKS
    *(
        aks(storage=values)
        for values in (
            {"volumes": [_VOLUME], "blobDriver": {"version": "v1.24.1", "blobfuse": "2.5.0"}},
            *(
                {"volumes": [_VOLUME], "blobDriver": {"version": version, "blobfuse": "2.4.2"}}
                for version in ("v1.24.1", "1.27.9")
            ),
            {
                "volumes": [{**_VOLUME, "access": "workloadIdentity"}],
                "blobDriver": {"version": "v1.24.1", "blobfuse": None},
            },
            {"blobDriver": {"version": "1.24.1"}},
            {"files": {"reclaim": "Recycle"}},
            *(
                {"volumes": [{**_VOLUME, **change}]}
                for change in (
                    {"access": "key"},
                    {"account": "MLBatch"},
                    {"account": "ab"},
                    {"container": "a--b"},
                    {"container": "-abc"},
                    {"name": "OLMo data"},
                    {"blockKib": 2},
                    {"sasToken": "sv=1&sig=2"},
                )
            ),
        )
    ),
    aks(storage={"volumes": [_volume(namespace="bleu")]}, teams=[_BLUE]),
    aks(
        {"clusterName": "c" * 63},
        gpu={"fabric": {"enabled": False}},
        teams=[{**_BLUE, "name": "t" * 63}],
        storage={"volumes": [_volume(access="workloadIdentity", namespace="t" * 63)]},
    ),
    # more node pools
    *POOLS,
    # revisions
    *REVISIONS,
    # packing
    *(
        aks(scheduling={"packing": "topology", "topology": {"levels": levels}})
        for levels in (
            ["ib/torset", "ib/torset"],
            ["kubernetes.io/hostname"],
            ["not a label"],
            [f"level-{index}" for index in range(16)],
        )
    ),
    aks({"kubernetesVersion": "1.36", "osSku": "Ubuntu"}, scheduling={"packing": "coscheduling"}),
    _simulated(scheduling={"packing": "tetris"}),
    # sums, and dependencies
    _without_slack(("nodes", "count"), 2),
    _team(1, quota={**QUOTA, "cpu": 0}, borrowingLimit={"cpu": 0}),
    {**simulated_with(("nodes", "count"), 10), "samples": {"gang": {"team": "blue", "user": "alice", "pods": 4}}},
    {
        **_team(1, lendingLimit={"nvidia.com/gpu": 0}),
        "samples": {"gang": {"team": "blue", "user": "alice", "pods": 3}},
    },
    *(
        {**simulated(), "recovery": values}
        for values in (
            {"retryPauseSeconds": 120, "recoveryTimeoutSeconds": 120},
            {"recoveryTimeoutSeconds": 60},
            {"retryPauseSeconds": 0},
            {"recoveryTimeoutSeconds": 9},
            {"startTimeoutMinutes": 30},  # the platform's own jobs may warm up for that long
            {"healthSeconds": -1},
        )
    ),
    *(_simulated(queueing={"replicas": count}) for count in (0, 4)),
    # the workloads of two nodes
    *(
        {**workloads(), **sections}
        for sections in (
            {"workloads": {"metaseq": {"learningRate": "6e-4"}}},
            {"workloads": {"metaseq": {"learningRate": 0}}},
            {"volcano": {}, "workloads": {"nccl": job(submission={"gang": "volcano"})}},
            {"queueing": {"enabled": False}, "workloads": {"nccl": job()}},
            {
                "teams": [
                    {
                        "name": "blue",
                        "users": [],
                        "quota": {"cpu": 64, "memory": "1500G", "nvidia.com/gpu": 4, "nvidia.com/mlnxnics": 8},
                        "borrowingLimit": {"nvidia.com/gpu": 0},
                    }
                ],
                "workloads": {"nccl": job()},
            },
            *(
                {"gpu": {"nvmeScratch": {"enabled": False}}, "workloads": workload}
                for workload in ({"olmo": job(data="data")}, {"jupyterlab": {**_SHARED, "scratch": True}})
            ),
            {
                "azure": {**workloads()["azure"], "gpuPool": {"count": 0}},
                "health": {"nodeCheck": {"enabled": True}},
                "workloads": {"nccl": job()},
            },
            {
                "azure": {**workloads()["azure"], "gpuPool": {"count": 1}},
                "health": {"ncclGate": {"enabled": True, "scope": "fabric"}},
                "workloads": {"nccl": {"tag": "1"}},
            },
            {
                "teams": [{**_BLUE, "storage": {"size": "1Ti"}}],
                "workloads": {"vllm": {**_QUEUED, "cache": {"size": "2Ti"}}},
            },
            {"workloads": {"vllm": {**_QUEUED, "model": "owner/a.-b"}}},
            *(
                {"teams": [{"name": "blue", "users": [], **bounds}], "workloads": {"vllm": {**_QUEUED, **asked}}}
                for bounds, asked in (
                    (
                        {
                            "quota": {"cpu": 90, "memory": "1000Gi", "nvidia.com/gpu": 2},
                            "borrowingLimit": {"nvidia.com/gpu": 1},
                        },
                        {"gpus": 4},
                    ),
                    (
                        {
                            "quota": {"cpu": 90, "memory": "32Gi", "nvidia.com/gpu": 2},
                            "borrowingLimit": {"memory": "4Gi"},
                        },
                        {},
                    ),
                )
            ),
            {
                "queueing": {"trainingOperator": {"enabled": True}},
                "workloads": {
                    "pretraining": {**_QUEUED, "checkpoints": {"name": "granite-3.2-8b-instruct"}},
                    "vllm": _QUEUED,
                },
            },
            {"workloads": {"finetuning": _QUEUED}},
        )
    ),
    aks({"gpuPool": {"count": 0}}, teams=[_BLUE], samples={"gang": {"team": "blue", "pods": 1, "gpusPerPod": 8}}),
    *(aks(volcano={"enabled": True, "queue": queue}) for queue in ("default", "root")),
    *(
        raw
        for name in ("monitoring", "kube-system", "mlbatch-health", "calico-system", "gatekeeper-system")
        for raw in (aks(workloads={"namespace": name}), aks(teams=[{**_BLUE, "name": name}]))
    ),
    _lab(storageClass="made-by-hand"),
    # networks of teams
    network(rayOperators=["kuberay-system", "blue"]),
    network(egress={"internet": False, "denied": ["203.0.113.0/24"]}),
    network(enabled=False),
    {**network(enabled=False), "teams": []},
    # teams
    *(
        {**existing(), "teams": [{**_BLUE, **values}], "samples": {}}
        for values in (
            {"services": {"total": 5, "loadBalancers": 6}},
            {"services": {"total": 0}},
            {"storage": {"size": "much"}},
            {"storage": {"claims": 6000}},
            {"services": {"loadBalancers": -1}},
            {"services": {"nodePorts": 1}},
            {"services": {"externalIPs": True}},
            {"storage": {"disk": "10Mi"}},
        )
    ),
    {**existing(), "workloads": {"jupyterlab": {**_SHARED, "fsSize": 21}}},
    {**_storage(claims=0), "workloads": {"jupyterlab": _SHARED}},
    {
        **existing(),
        "workloads": {"jupyterlab": {**_SHARED, "exposure": "public", "sourceRanges": ["203.0.113.0/24"]}},
    },
    {
        **existing(),
        "queueing": {"kuberay": {"enabled": True}, "trainingOperator": {"enabled": True}},
        "workloads": {
            "pretraining": {**_QUEUED, "checkpoints": {"size": "12Ti"}},
            "finetuning": {**_QUEUED, "result": {"size": "9Ti"}},
        },
    },
    *({**existing(), "tenancy": {"longestGraceSeconds": seconds}} for seconds in (29, 3601)),
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
    *(aks(workloads={"jupyterlab": {name: "x"}}) for name in ("token", "password")),
    aks(storage={"volumes": [_volume(container="data?sv=2024&sig=c2VjcmV0")]}),
    aks(grafanaPassword="hunter2"),
    aks(kubernetes={"kubeconfig": 1.10}),
    aks(kubernetes={"context": "x"}),
    # jobs
    aks(teams=[_BLUE], workloads={"pretraining": {"enabled": True, "submission": {"team": "blue"}}}),
    aks(workloads={"nccl": {**_JOB, "submission": {"gang": "volcano"}}}),
    aks(teams=[_BLUE], workloads={"olmo": {"enabled": True, "tag": "1", "submission": {"team": "blue"}}}),
    aks(
        teams=[_BLUE],
        gpu={"nvmeScratch": {"enabled": False}},
        workloads={"jupyterlab": {"enabled": True, "submission": {"team": "blue"}}},
    ),
    *MISTAKES,
    # an existing cluster
    {"target": "existing", "cluster": {"volumes": [{"name": "A_b", "namespace": "x.y"}]}},
    {**existing(), "gpu": {"fabric": {"enabled": True}}},
    {**existing(), "gpu": {"operator": True, "nvmeScratch": {"enabled": True}}},
    {**existing(), "gpu": {"operator": False, "driverVersion": "580.126.20"}},
    {**existing(), "teams": [{**_BLUE, "users": ["a b"]}]},
    # cPouta
    cpouta(name="default"),
    cpouta(flavor="gpu.1.1.gpu"),
    cpouta(ports=[_opening("a", 1), _opening("a", 2)]),
    cpouta(ports=[_opening("ssh", 22, "203.0.113.7/32")]),
    cpouta(ports=[_opening("A", 443)]),
    cpouta(ports=[_opening("a", 443, "0.0.0.0/1"), _opening("b", 443, "128.0.0.0/1")]),
    cpouta(ports=[_opening("more", 22, "128.0.0.0/2"), _opening("m", 22, "192.0.0.0/2")]),
    *(
        cpouta(sshFrom={"me": source})
        for source in (
            *("0.0.0.0/0", "203.0.113.7/24", "203.0.113.7", "my house", "192.168.1.20/32", "127.0.0.1/32"),
            *("239.0.0.1/32", "fc00::/7", "100.64.0.1/32", "198.18.0.1/32"),
        )
    ),
    cpouta(sshFrom={f"q{number}": f"{number * 64}.0.0.0/2" for number in range(4)}),
    cpouta(sshFrom={"me": "198.51.100.9/32", "all": "::/0"}),
    cpouta(sshFrom={"n1": "1.0.0.0/9", "n3": "3.0.0.0/9", "n5": "5.0.0.0/32"}),
    cpouta(sshFrom={"me": "86.50.1.1/32", "a": "2001:1000::/32", "b": "2001:3000::/32"}),
    *(cpouta(sshPublicKey=f"ssh-ed25519 {_KEY} {remark}") for remark in ("x" * 3000, "\N{GRINNING FACE}" * 300)),
    *(
        cpouta(privateKeyFile=file)
        for file in (
            *('/home/me/a"b', "~/.ssh/${USER}.pem", "~/.ssh/a\tb"),
            *("$HOME/.ssh/key", "~alice/.ssh/key", r"C:\Users\me\key"),
        )
    ),
    *(cpouta(user=user) for user in ("daemon", "sshd", "nobody", "sudo", "systemd-network", "docker", "dhcpcd")),
    cpouta(volume={"size": 74}),
    cpouta(volume={"existing": "11111111-2222-3333-4444-555555555555", "type": "standard"}),
    *(cpouta(image=image) for image in ("Ubuntu-26.04", "AlmaLinux-9", "CentOS-22.04", "")),
    cpouta(flavor="gpu.1.1gpu", image="AlmaLinux-9"),
    cpouta(kind={"kubernetes": "1.29.0"}),
    cpouta(ports=[_opening("a", 8080), _opening("b", 8080)]),
    cpouta(ports=[_opening("a", 80, "0.0.0.0/0")]),
    cpouta(ports=[_opening("a", 22)]),
    cpouta(sshFrom={"me": "10.0.0.0/8"}),
    cpouta(sshFrom={}),
    cpouta(sshPublicKey="ssh-dss AAAAB3NzaC1kc3MAAACBAP me"),
    cpouta(sshPublicKey=SHORT),
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
    *(cpouta(kind={"apiPort": port}) for port in (5000, 5001, 5050, 6500, 6501, 8080, 8090, 9001, 22)),
    {**cpouta(), "mlops": {"enabled": True}, "queueing": {"enabled": True, "kuberay": {"enabled": True}}},
    cpouta(flavor="gpu.1.1gpu", gpu=_OLD_GPU),
    cpouta(flavor="gpu.1.1gpu", image="Ubuntu-24.04", gpu=_OLD_GPU),
    *(
        {**cpouta(flavor="gpu.1.1gpu"), "gpu": {"operator": True, "featureDiscovery": True, **values}}
        for values in ({"installDriver": True}, {"installToolkit": False}, {"operatorVersion": "v24.9.0"})
    ),
    {**cpouta(kind={"kubernetes": "1.24.0"}), **_LAYERS},
    # what is warned of on cPouta
    *(
        cpouta(sshFrom={"me": "86.50.1.1/32"}, kind={"kubernetes": version})
        for version in ("1.24.0", "1.31.12", "1.33.4")
    ),
    *(
        {**cpouta(flavor=flavor), **_LAYERS, "teams": [_BLUE], "gpu": gpu}
        for flavor, gpu in (
            ("gpu.1.1gpu", {}),
            ("gpu.1.1gpu", {"operator": True, "featureDiscovery": True}),
            ("standard.xxlarge", {}),
        )
    ),
    cpouta(sshFrom={"me": "86.50.1.1/32"}),
    {**cpouta(), "mlops": {"option": 99}},
    *({**cpouta(), "mlops": {"enabled": True, "option": option}} for option in (0, 5)),
    {**cpouta(), "mlops": {"enabled": True, "integration": False, "option": 7}},
    {**cpouta(), **_LAYERS, "mlops": {"enabled": True}, "teams": [{**_BLUE, "name": "kubeflow"}]},
    {**cpouta(), "mlops": {"option": 99, "integration": False}},
    {**cpouta(), "mlops": {"forwarder": True, "integration": False}},
    {**cpouta(), "mlops": {"commit": "0" * 40}},
    {**cpouta(flavor="gpu.1.1gpu"), "gpu": {"operator": False, "featureDiscovery": False}, "teams": [_BLUE]},
)
