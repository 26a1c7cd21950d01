"""Errors that depend on facts of a cluster: configurations with these facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from stacks.config.cluster_facts import ClusterFacts, NodeFacts
from tests.unit import test_openshift, test_sakkara
from tests.unit.configurations import aks
from tests.unit.test_existing import NODES, UID, node
from tests.unit.test_existing import shipped as existing
from tests.unit.test_nvshare import config as sharing
from tests.unit.test_openshift import shipped as openshift
from tests.unit.test_openshift_ai import chosen
from tests.unit.test_openshift_workbench import wanted
from tests.unit.test_sakkara import RACKS, with_sakkara
from tests.unit.test_workbench_settings import MISTAKES as WORKBENCH

_THERE: Final = ClusterFacts(identifier=UID, version="1.34", nodes=NODES, storage_classes=frozenset({"nfs-client"}))
_OPENSHIFT: Final = replace(_THERE, nodes=test_openshift.NODES, openshift="4.21.3")
_CARD: Final = node("a", **{"nvidia.com/gpu": "1"})
_BARE: Final = NodeFacts(name="bare", labels={"pool": "gpu"}, allocatable={"cpu": "32", "memory": "128Gi"})
_NEARLY_ALL: Final = {"cpu": 279, "memory": "1Ti", "nvidia.com/gpu": 12}
_SCRATCH: Final = {"nvmeScratch": {"enabled": True, "diskModel": "Lab NVMe"}}
_BLUE: Final = {"name": "blue", "users": []}
_TUTORIAL: Final = {"cpu": "224", "memory": "2000G", "nvidia.com/gpu": "8", "pods": "100"}
_LAB: Final = {"enabled": True, "submission": {"team": "blue"}, "scratch": False}
_NCCL: Final = {"enabled": True, "tag": "1", "image": "example.org/nccl", "submission": {"team": "blue"}}
_VLLM: Final = {"enabled": True, "gpus": 2, "submission": {"team": "blue"}}

_Case = tuple[Mapping[str, Any], ClusterFacts]


def _pool(**values: Any) -> dict[str, Any]:
    raw = existing()
    raw["cluster"]["pool"] |= values
    return raw


def _cluster(**values: Any) -> dict[str, Any]:
    raw = existing()
    return {**raw, "cluster": {**raw["cluster"], **values}}


def _sharing(nodes: tuple[NodeFacts, ...], **sections: Any) -> _Case:
    return sharing(**sections), replace(_THERE, nodes=nodes)


def _nfs(**values: Any) -> _Case:
    return {**openshift(), "nfs": {"server": "lab", "path": "/e", **values}}, _OPENSHIFT


_EXISTING: Final[tuple[_Case, ...]] = (
    ({**existing(), "samples": {}}, replace(_THERE, nodes=())),
    ({**existing(), "samples": {}}, replace(_THERE, nodes=(*NODES, _BARE))),
    ({**existing(), "samples": {}}, replace(_THERE, nodes=tuple(replace(_BARE, name=f"b{n}") for n in range(7)))),
    (_pool(nodeSelector={}), _THERE),
    (_pool(nodeSelector={f"k{number}": "" for number in range(9)}), _THERE),
    (_pool(tolerations=[{"key": f"k{number}"} for number in range(9)]), _THERE),
    (_pool(minimum=3), _THERE),
    (_pool(minimum=3, count=2), _THERE),
    (_pool(gpusPerNode=4), _THERE),
    (_pool(gpusPerNode=16, cpu=180, memory="1800Gi"), _THERE),
    (_pool(gpusPerNode=8, cpu=500, memory="1800Gi"), _THERE),
    (_pool(instanceType="h100-sxm5-8x"), _THERE),
    (_pool(rdma={"perNode": 2}), _THERE),
    (_cluster(system={"tolerations": [{"key": "dedicated", "value": "infra"}]}), _THERE),
    (_cluster(storageClasses={"files": "gone"}), _THERE),
    *((_pool(nodeSelector=labels), _THERE) for labels in (None, ["pool"], {"pool": "gpu nodes!"}, {"a b/c": "x"})),
    (_pool(gpusPerNode=8, cpu=180, memory="9Ti"), _THERE),
    (_pool(instanceType="h100-sxm5-8x", cpu=180), _THERE),
    (_cluster(internalLoadBalancer=["a"]), _THERE),
    (_cluster(system={"nodeSelector": {"-bad-": "a"}}), _THERE),
    *((_cluster(registry=place), _THERE) for place in ("", "reg.example/ml/", "https://reg.example")),
    ({**existing(), "gpu": {"fabric": {"enabled": True}}}, _THERE),
    *(({**existing(), "workloads": {"namespace": name}}, _THERE) for name in ("kube-system", "monitoring", "")),
    ({**existing(), "teams": [{"name": "monitoring", "users": [], "share": 1}], "samples": {}}, _THERE),
    ({**existing(), "nodes": {"count": 3}}, _THERE),
    ({**existing(), "queueing": {"nodeReserve": {"cpu": 186}}}, _THERE),
    ({**existing(), "workloads": {"nccl": {"enabled": True, "tag": "1", "submission": {"team": "blue"}}}}, _THERE),
    (
        {
            **existing(),
            "health": {"ncclGate": {"enabled": True, "warnGbs": 300, "failGbs": 200}},
            "workloads": {"nccl": {"tag": "1"}},
        },
        _THERE,
    ),
    (_cluster(volumes=[{"name": "data", "namespace": "blue"}] * 2), _THERE),
    ({**existing(), "gpu": {"fabric": {"enabled": True, "devicePlugin": "shared"}}}, _THERE),
    ({**existing(), "gpu": {"nvmeScratch": {"enabled": True, "diskModel": ".*"}}}, _THERE),
    ({**existing(), "gpu": {"operator": True, "installDriver": False, "driverVersion": "580.126.20"}}, _THERE),
    ({**existing(), "scheduling": {"priorityClasses": False}}, _THERE),
    (
        {**existing(), "scheduling": {"priorityClasses": False}},
        replace(_THERE, priority_classes=frozenset({"low-priority", "high-priority"})),
    ),
    ({**existing(), "gpu": _SCRATCH}, replace(_THERE, version="1.29", has_admission_policies=False)),
    ({**existing(), "health": {"autopilot": {"enabled": True}}}, replace(_THERE, has_admission_policies=False)),
    (
        {**existing(), "teams": [], "samples": {}, "health": {"autopilot": {"enabled": True}}},
        replace(_THERE, has_admission_policies=False),
    ),
    ({**existing(), "monitoring": {"enabled": True, "storageClass": "gone"}}, _THERE),
    (
        {**existing(), "workloads": {"jupyterlab": {**_LAB, "exposure": "internal", "sourceRanges": ["10.0.0.0/8"]}}},
        _THERE,
    ),
    (
        {
            **_cluster(registry="registry.lab.example", system={"tolerations": [{"key": "CriticalAddonsOnly"}]}),
            "workloads": {
                "metaseq": {"enabled": True, "tag": "1", "submission": {"team": "blue"}, "useAim": True},
                "aim": {"enabled": True},
            },
        },
        _THERE,
    ),
    ({**existing(), "scheduling": {"packing": "topology", "topology": {"levels": ["pool", "rack"]}}}, _THERE),
    (
        {
            **existing(),
            "teams": [{"name": name, "users": [], "quota": _NEARLY_ALL} for name in ("blue", "red")],
            "queueing": {"slack": {"cpu": 0, "memory": 0, "nvidia.com/gpu": 0}},
            "samples": {},
        },
        _THERE,
    ),
    ({**existing(), "tenancy": {"enabled": False}}, _THERE),
    ({**existing(), "scheduling": {"schedulerVersion": "v0.29.7"}}, _THERE),
    (
        {
            **existing(),
            "queueing": {"countPods": False, "slack": {"cpu": 1, "memory": "1Gi", "nvidia.com/gpu": 0, "pods": 5}},
        },
        _THERE,
    ),
)
_SHARING: Final[tuple[_Case, ...]] = (
    _sharing(NODES),
    _sharing((replace(_CARD, allocatable={**_CARD.allocatable, "nvidia.com/mig-1g.10gb": "7"}),)),
    _sharing((replace(_CARD, labels={**_CARD.labels, "nvidia.com/gpu.sharing-strategy": "time-slicing"}),)),
    _sharing((_CARD,), workloads={"nccl": _NCCL}),
    _sharing((_CARD,), workloads={"vllm": _VLLM}),
    _sharing((_CARD,), samples={"gang": {"team": "blue", "pods": 1, "gpusPerPod": 2}}),
    _sharing((_CARD,), health={"autopilot": {"enabled": True, "deepCheckHours": 4}}),
    (aks(nvshare={"enabled": True}), _THERE),
)
_WORKERS: Final = test_sakkara.WORKERS
_TREES: Final[tuple[_Case, ...]] = tuple(
    (with_sakkara(**tree), replace(_OPENSHIFT, nodes=tuple(node(name) for name in _WORKERS)))
    for tree in (
        {},
        {"groups": RACKS},
        {"groups": [*RACKS, RACKS[0]]},
        {"groups": [{"name": "rack-0", "members": ["rack-0"]}]},
        {"groups": [{"name": "rack-0", "members": ["nobody"]}]},
        {"groups": [{"name": "rack-0", "members": []}]},
        {"groups": [*RACKS, {"name": "block", "members": ["rack-0"]}]},
        {"levels": ["node"]},
        {"levels": ["rack", "rack", "node"], "groups": RACKS},
        {"groups": [{"name": "rack", "members": [*_WORKERS, "pokprod-b93r44s1"]}]},
        {"groups": [RACKS[0], {"name": "rack-1", "members": [_WORKERS[2], _WORKERS[0]]}]},
        {"groups": [{"name": "rack", "members": [*_WORKERS, _WORKERS[0]]}]},
        {"groups": [*RACKS, {"name": "rack-0", "members": []}]},
        {"groups": [RACKS[0]]},
        {
            "levels": ["block", "rack", "node"],
            "groups": [{"name": "a", "members": ["b"]}, {"name": "b", "members": ["a"]}],
        },
        {"groups": [{"name": "a", "members": ["a"]}]},
        {"levels": ["block", "rack", "node"], "groups": RACKS[:1]},
        {"levels": ["node", "node"]},
        {"levels": ["a b", "node"]},
    )
)
_OF_OPENSHIFT: Final[tuple[_Case, ...]] = (
    (openshift(), replace(_OPENSHIFT, openshift=None)),
    (openshift(), replace(_OPENSHIFT, openshift="4.15.58")),
    (chosen(version="2.17"), _OPENSHIFT),
    (chosen(version=2.2), _OPENSHIFT),
    (chosen(version="2.16", channel="stable-2.19"), _OPENSHIFT),
    (chosen(version="2.16", openToAll=True), _OPENSHIFT),
    ({**chosen(), "target": "existing", "nfs": {}}, _OPENSHIFT),
    (chosen(version="2.21", channel="stable"), _OPENSHIFT),
    (chosen(catalog="Red Hat"), _OPENSHIFT),
    ({**openshift(), "openshift": {"operators": "rhoai"}}, _OPENSHIFT),
    ({**openshift(), "openshift": {"version": "2.16"}}, _OPENSHIFT),
    (chosen({"queueing": {"kuberay": {"enabled": True}}}), _OPENSHIFT),
    (chosen({"queueing": {"kueueVersion": "v0.18.4"}}), _OPENSHIFT),
    (
        chosen({"workloads": {"pretraining": {"enabled": True, "kind": "TrainJob", "submission": {"team": "blue"}}}}),
        _OPENSHIFT,
    ),
    (
        chosen({"queueing": {"enabled": False}, "tenancy": {"enabled": False}, "teams": [], "samples": {}}),
        _OPENSHIFT,
    ),
    (chosen({"recovery": {"recoveryTimeoutSeconds": 300}}, version="2.16"), _OPENSHIFT),
    (chosen({"scheduling": {"packing": "topology"}}, version="2.16"), _OPENSHIFT),
    (chosen({"monitoring": {"enabled": True}}), _OPENSHIFT),
    (chosen(version="2.16"), replace(_OPENSHIFT, openshift="4.12.3")),
    ({**openshift(), "workbench": {"enabled": True}}, _OPENSHIFT),
    (chosen({"workbench": {"enabled": True, "objectStore": {"kind": "minio"}}}), _OPENSHIFT),
    *(
        (chosen({"workbench": {"enabled": True, **values}}), _OPENSHIFT)
        for values in (
            {"objectStore": {"kind": "external"}},
            {"objectStore": {"kind": "external", "endpoint": "https://s3.example.org", "accessKey": "k"}},
            {"objectStore": {"kind": "external", "endpoint": "https://a:b@s3.example.org", "accessKey": "k"}},
            {"objectStore": {"kind": "external", "endpoint": "https://[s3", "accessKey": "k"}},
            {"rayClusters": ["tunecluster", "jobtest"]},
            *WORKBENCH,
            *({"namespace": name} for name in ("blue", "nfs-provisioner", "nvidia-gpu-operator", "openshift-ai")),
            {"storageClass": "fast"},
        )
    ),
    (wanted(queue={"gpus": 30}, sections={"teams": [], "samples": {}}), _OPENSHIFT),
    *(
        (wanted({"teams": [{"name": name, "users": [], "share": 1}], "samples": {}}), _OPENSHIFT)
        for name in ("sandbox", "seaweedfs", "minio", "nfs-provisioner")
    ),
    (wanted({"teams": [_BLUE | {"quota": {**_TUTORIAL, "nvidia.com/gpu": "12"}}], "samples": {}}), _OPENSHIFT),
    _nfs(server=None),
    _nfs(server="nfs://lab"),
    _nfs(path="/e/../f"),
    _nfs(provisionerName="a b"),
    _nfs(provisionerName="kubernetes.io/nfs"),
    _nfs(release="Pok"),
    _nfs(path=None),
    *(_nfs(server=server) for server in ("lab:/e", "10.0.0.256", "lab..example", ":::")),
    *(_nfs(path=path) for path in ("e", "/", "/e/")),
    *(
        (
            {**openshift(), "queueing": {"countPods": False, **queueing}, "teams": [_BLUE | team], "samples": {}},
            _OPENSHIFT,
        )
        for queueing, team in (({}, {"quota": _TUTORIAL}), ({}, {"share": 1, "borrowingLimit": {"pods": 1}}))
    ),
    ({**openshift(), "queueing": {"slack": {**_TUTORIAL, "nvidia.com/GPU": "8"}}}, _OPENSHIFT),
    *(
        ({**openshift(), **section, **nfs}, replace(_OPENSHIFT, storage_classes=frozenset({"gone"})))
        for section in (
            {"cluster": {"storageClasses": {"files": "nfs-client"}}},
            {"monitoring": {"enabled": True, "storageClass": "nfs-client"}},
        )
        for nfs in ({}, {"nfs": {}})
    ),
    ({**openshift(), "health": {"autopilot": {"enabled": True, "runtimeClass": "NVIDIA"}}}, _OPENSHIFT),
    (
        {**openshift(), "teams": [{"name": "sakkara-scheduler", "users": ["alice"], "share": 1}], "samples": {}},
        _OPENSHIFT,
    ),
    ({**openshift(), "monitoring": {"enabled": True, "nodeExporterPort": 10250}}, _OPENSHIFT),
    (
        openshift(),
        replace(
            _OPENSHIFT,
            nodes=(
                *test_openshift.NODES,
                test_openshift.worker("alone", {"nvidia.com/gpu.sharing-strategy": "none"}),
                test_openshift.worker(
                    "shared", {"nvidia.com/gpu.sharing-strategy": "time-slicing"}, **{"nvidia.com/gpu": "64"}
                ),
            ),
        ),
    ),
    ({**openshift(), "target": "existing", "openshift": None}, _OPENSHIFT),
    ({**openshift(), "gpu": {"featureDiscovery": True}}, _OPENSHIFT),
    _nfs(storageClass="NFS"),
    ({**openshift(), "volcano": {"enabled": True}}, _OPENSHIFT),
    ({**openshift(), "gpu": {"approve": False}}, _OPENSHIFT),
    ({**openshift(), "gpu": {"operator": True, "driverVersion": "580.126.20"}}, _OPENSHIFT),
    ({**openshift(), "gpu": {"operator": True, "featureDiscovery": True}}, _OPENSHIFT),
    ({**openshift(), "gpu": {"fabric": {"enabled": True}}}, _OPENSHIFT),
    ({**openshift(), "gpu": _SCRATCH}, _OPENSHIFT),
    ({**openshift(), "workloads": {"jupyterlab": {**_LAB, "user": 1000}}}, _OPENSHIFT),
    ({**openshift(), "workloads": {"nccl": _NCCL}}, _OPENSHIFT),
    ({**openshift(), "monitoring": {"enabled": True, "nodeExporterPort": 9100}}, _OPENSHIFT),
    ({**openshift(), "monitoring": {"enabled": True, "definitions": True}}, _OPENSHIFT),
    ({**openshift(), "monitoring": {"enabled": True, "gpuOperatorNamespace": "blue"}}, _OPENSHIFT),
    ({**openshift(), "teams": [{"name": "openshift", "users": ["alice"], "share": 1}]}, _OPENSHIFT),
    ({**openshift(), "scheduling": {"packing": "none"}, "tenancy": {"acceptUnenforced": ["quota-gates"]}}, _OPENSHIFT),
    ({**openshift(), "scheduling": {"packing": "coscheduling", "sakkara": {"groups": RACKS}}}, _OPENSHIFT),
    ({**openshift(), "scheduling": {"packing": "sakkara", "coscheduling": {"permitSeconds": 60}}}, _OPENSHIFT),
)
_MLOPS: Final[tuple[_Case, ...]] = tuple(
    ({**existing(), "mlops": {"enabled": True, **own}}, _THERE)
    for own in (
        {"revision": "studying"},
        {"revision": "7" * 40},
        {"repository": "git@github.com:someone/platform.git"},
        {"digest": "sha256:0"},
    )
)
OF_CLUSTERS: Final = (*_EXISTING, *_SHARING, *_TREES, *_OF_OPENSHIFT, *_MLOPS)
