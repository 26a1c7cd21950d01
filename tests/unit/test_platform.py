"""The platform function on a cluster without a cloud: every layer, and no word that only one cloud understands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from components.artifacts import Mirror
from stacks.config.inputs import StackInputs
from tests.unit.conftest import ROOT
from tests.unit.harness import strings
from tests.unit.test_existing import loaded, node, registered, shipped


def test_no_module_of_the_platform_function_names_a_cloud() -> None:
    files = [ROOT / "stacks" / "platform.py", *(ROOT / "stacks" / "layers").glob("*.py")]
    files += [file for file in (ROOT / "components").rglob("*.py") if "azure" not in file.relative_to(ROOT).parts]
    assert len(files) > 50
    assert [str(file) for file in files if re.search("azure", file.read_text(), re.IGNORECASE)] == []


def everything(mirror: Mirror, kubeconfig: Path) -> StackInputs[Any]:
    """The shipped settings with every layer that is not a cloud's own."""
    raw = shipped()
    raw["cluster"] |= {
        "registry": "registry.lab.example/ml",
        "storageClasses": {"block": "lab-block", "files": "lab-files", "logs": "lab-logs"},
        "volumes": [{"name": "data", "namespace": "blue"}],
        "internalLoadBalancer": {"lab.example/internal": "true"},
    }
    raw["cluster"]["pool"]["rdma"] = {"perNode": 2}
    raw["teams"][1]["services"] = {"loadBalancers": 1}
    common = {"enabled": True, "tag": "1", "submission": {"team": "blue"}}
    raw |= {
        "gpu": {
            "featureDiscovery": True,
            "operator": True,
            "nvmeScratch": {"enabled": True, "diskModel": "Amazon EC2 NVMe.*"},
        },
        "monitoring": {"enabled": True},
        "volcano": {"enabled": True},
        "health": {
            "ncclGate": {"enabled": True, "mode": "gate", "warnGbs": 300, "failGbs": 200},
            "autopilot": {"enabled": True, "checks": ["pciebw", "dcgm", "pvc"], "pvcStorageClass": "shared"},
        },
        "workloads": {
            "nccl": {**common, "submission": {"gang": "none"}},
            "metaseq": {**common, "submission": {"gang": "volcano"}, "useAim": True, "useTensorboard": True},
            "olmo": {**common, "data": "data"},
            "vllm": {"enabled": True, "submission": {"team": "blue"}},
            "jupyterlab": {
                "enabled": True,
                "submission": {"team": "red"},
                "exposure": "internal",
                "sourceRanges": ["10.20.0.0/16"],
            },
            "aim": {"enabled": True},
            "tensorboard": {"enabled": True},
        },
    }
    nodes = tuple(node(name, **{"nvidia.com/roce_gdr": "2"}) for name in "abcd")
    return loaded(raw, mirror, kubeconfig, nodes=nodes)


def test_the_whole_platform_stands_on_a_cluster_that_is_not_azures(mirror: Mirror, kubeconfig: Path) -> None:
    """No string that only one cloud would understand, with every layer that is not a cloud's own."""
    record = registered(everything(mirror, kubeconfig))
    own = [item for item in record.resources if item.kind != "CustomResourceDefinition"]
    found = [(item.name, text) for item in own for text in strings(item.inputs) if "azure" in text.lower()]
    assert found == []
