"""The registrations of whole stacks: the shipped ones, and stacks with all components and options.

Each run of the tests builds them once. Tests of rules for all stacks use them.
"""

import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from components.artifacts import Mirror
from tests.unit import (
    test_aks,
    test_certified_gpu_operator,
    test_cpouta,
    test_existing,
    test_openshift,
    test_openshift_ai,
    test_openshift_workbench,
    test_sakkara,
    test_stack,
)
from tests.unit.conftest import write_kubeconfig
from tests.unit.harness import Record, build
from tests.unit.releases import FOLDER

ON = {"enabled": True}
QUEUED = {"enabled": True, "submission": {"team": "blue"}}


def _dev(mirror: Mirror, kubeconfig: Path) -> Record:
    from stacks.deploy import deploy

    stack = test_stack.stack_of(test_stack.dev(), mirror, kubeconfig)
    return build(lambda: deploy(stack))


def _existing(mirror: Mirror, kubeconfig: Path) -> Record:
    return test_existing.registered(test_existing.loaded(test_existing.shipped(), mirror, kubeconfig))


def _whole_existing(mirror: Mirror, kubeconfig: Path) -> Record:
    """All components that do not need a cloud."""
    raw = test_existing.shipped()
    raw["cluster"] |= {
        "registry": "registry.lab.example/ml",
        "storageClasses": {"block": "lab-block", "files": "lab-files", "logs": "lab-logs"},
        "volumes": [{"name": "data", "namespace": "blue"}],
        "internalLoadBalancer": {"lab.example/internal": "true"},
    }
    raw["cluster"]["pool"]["rdma"] = {"perNode": 2}
    raw["teams"][1]["services"] = {"loadBalancers": 1}
    common = {**QUEUED, "tag": "1"}
    scratch = {"enabled": True, "diskModel": "Amazon EC2 NVMe.*"}
    raw |= {
        "gpu": {"featureDiscovery": True, "operator": True, "nvmeScratch": scratch},
        "monitoring": ON,
        "volcano": ON,
        "recovery": {"repair": ON},
        "health": {
            "ncclGate": {"enabled": True, "mode": "gate", "warnGbs": 300, "failGbs": 200},
            "autopilot": {"enabled": True, "checks": ["pciebw", "dcgm", "pvc"], "pvcStorageClass": "shared"},
        },
        "workloads": {
            "nccl": {**common, "submission": {"gang": "none"}},
            "metaseq": {**common, "submission": {"gang": "volcano"}, "useAim": True, "useTensorboard": True},
            "olmo": {**common, "data": "data"},
            "vllm": QUEUED,
            "jupyterlab": {
                "enabled": True,
                "submission": {"team": "red"},
                "exposure": "internal",
                "sourceRanges": ["10.20.0.0/16"],
            },
            "aim": ON,
            "tensorboard": ON,
        },
    }
    nodes = tuple(test_existing.node(name, **{"nvidia.com/roce_gdr": "2"}) for name in "abcd")
    return test_existing.registered(test_existing.loaded(raw, mirror, kubeconfig, nodes=nodes))


def _openshift(mirror: Mirror, kubeconfig: Path) -> Record:
    return test_openshift.registered(test_openshift.loaded(test_openshift.shipped(), mirror, kubeconfig))


def _aks(mirror: Mirror, kubeconfig: Path) -> Record:
    return test_aks.deployed(mirror, test_aks.shipped())


def _whole_aks(mirror: Mirror, kubeconfig: Path) -> Record:
    """All components, nodes close to each other, a volume that a team may write to, and jobs of all operators."""
    near = {"azure__gpuPool__zones": ["2"], "azure__gpuPool__proximityPlacementGroup": True}
    raw = test_aks.everything(**near, scheduling={"packing": "topology"})
    raw["storage"]["volumes"].append(
        {"name": "results", "namespace": "red", "container": "results", "access": "workloadIdentity", "readOnly": False}
    )
    raw["workloads"] |= {"pretraining": QUEUED, "finetuning": QUEUED}
    raw["queueing"] = {**raw.get("queueing", {}), "trainingOperator": ON, "kuberay": ON, "jobSet": ON, "trainer": ON}
    raw["samples"] = {"synthetic": {"trace": "reference/examples/trace.csv"}}
    return test_aks.deployed(mirror, raw)


def _upstreams_openshift(mirror: Mirror, kubeconfig: Path) -> Record:
    """Upstream's operators, with the other scheduler and the cluster's own monitoring of GPUs."""
    raw = {**test_sakkara.with_sakkara(groups=test_sakkara.RACKS), "monitoring": ON}
    return test_openshift.registered(test_openshift.loaded(raw, mirror, kubeconfig))


def _certified_openshift(mirror: Mirror, kubeconfig: Path) -> Record:
    """NVIDIA's operator by OLM, on nodes whose GPUs no plugin offers yet."""
    nodes = (test_certified_gpu_operator.WORKER,) * 3
    raw = test_certified_gpu_operator.chosen()
    return test_openshift.registered(test_openshift.loaded(raw, mirror, kubeconfig, nodes=nodes))


def _whole_openshift(mirror: Mirror, kubeconfig: Path) -> Record:
    """OpenShift AI's operators and a workbench with an object store. Its Ray cluster runs the demos."""
    raw = test_openshift_workbench.wanted(rayClusters=["raytest"], editForGroup=True)
    return test_openshift.registered(test_openshift.loaded(raw, mirror, kubeconfig))


def _tutorial(mirror: Mirror, kubeconfig: Path) -> Record:
    """What MLBatch's tutorial grants and the defaults do not, its monitoring, and its batch inference."""
    volumes = {"storage": "50Gi", "alertmanagerStorage": "50Gi", "grafanaStorage": "20Gi"}
    images = {
        "image": "quay.io/tardieu/vllm-openai:v0.7.3",
        "generatorImage": "quay.io/tardieu/vllm-benchmarks:v0.7.3",
    }
    raw = test_openshift.shipped()
    raw["nfs"]["hostmountAnyuid"] = True
    raw |= {
        "monitoring": {**ON, "privilegedAccounts": True, **volumes},
        "queueing": {"openToAll": True, "countPods": False, "stopPolicy": "Hold"},
        "tenancy": {"readSecrets": True, "exec": True, "unwrappedRay": True},
        "workloads": {"vllm": {**QUEUED, **images, "bounded": False}},
    }
    return test_openshift.registered(test_openshift.loaded(raw, mirror, kubeconfig))


def _demos(mirror: Mirror, kubeconfig: Path) -> Record:
    """A later OpenShift AI, with the object store of its guide and the Ray clusters of all demos.

    The notebook's account creates the clusters.
    """
    raw = test_openshift_workbench.wanted(
        {"openshift": {"operators": "openshift-ai", "version": "2.25"}, "samples": {}},
        objectStore={"kind": "minio", "guideCredentials": True, "tls": False},
        queue={"openToAll": True, "cpu": 100, "memory": "200Gi", "gpus": 11},
        rayClusters=["raytest", "jobtest", "interactivetest", "tunecluster"],
    )
    return test_openshift.registered(test_openshift.loaded(raw, mirror, kubeconfig))


def _version_3(mirror: Mirror, kubeconfig: Path) -> Record:
    """OpenShift AI 3, with Red Hat build of Kueue and the platform's Trainer and monitoring."""
    raw = test_openshift_ai.chosen({"monitoring": ON, "queueing": {"trainer": ON}}, version="3.4")
    return test_openshift.registered(test_openshift.loaded(raw, mirror, kubeconfig))


def _cpouta(mirror: Mirror, kubeconfig: Path) -> Record:
    return test_cpouta.Run(sections=test_cpouta.LAYERS).record


def _whole_cpouta(mirror: Mirror, kubeconfig: Path) -> Record:
    """A VM with a GPU that ten pods share, a job on it, and all components between it and the network."""
    gpu = {"gpu": {"operator": True, "featureDiscovery": True}, "nvshare": {"enabled": True, "verification": ON}}
    job = {**QUEUED, "workers": 1, "cpu": 4, "memory": "32Gi"}
    gpu |= {"queueing": {**ON, "kuberay": ON}, "workloads": {"finetuning": job}}
    ports = [{"name": "https", "port": 443, "source": "192.0.2.0/28"}]
    return test_cpouta.Run(sections={**test_cpouta.LAYERS, **gpu}, flavor="gpu.1.1gpu", ports=ports).record


STACKS: Mapping[str, Callable[[Mirror, Path], Record]] = MappingProxyType(
    {
        "dev": _dev,
        "existing": _existing,
        "existing-everything": _whole_existing,
        "openshift": _openshift,
        "openshift-upstream": _upstreams_openshift,
        "openshift-certified": _certified_openshift,
        "openshift-everything": _whole_openshift,
        "openshift-demos": _demos,
        "openshift-tutorial": _tutorial,
        "openshift-ai-3": _version_3,
        "aks": _aks,
        "aks-everything": _whole_aks,
        "cpouta": _cpouta,
        "cpouta-everything": _whole_cpouta,
    }
)


@cache
def registered(stack: str) -> Record:
    """Return the registrations of a stack."""
    with tempfile.TemporaryDirectory() as folder:
        return STACKS[stack](Mirror(artifacts=str(FOLDER), verify=False), write_kubeconfig(Path(folder)))
