"""The platform on clusters without Azure: no object names a cloud, and each pod goes to the nodes of its group."""

import re

import pytest

from components import names
from tests.unit.conftest import ROOT
from tests.unit.harness import strings
from tests.unit.test_aks_safety import pods_of
from tests.unit.whole_stacks import STACKS, registered

CLOUD = re.compile(r"azure|\bAKS\b|\bNDv\d|Standard_N|hyper-?v|aznhc", re.IGNORECASE)
ON_GPU_NODES = {"autopilot", "local-nvme-scratch", "metaseq", "sample-gang"}
"""Run on GPU nodes, also in pods that request no GPU: agents, and the launcher of a job. The sample is a gang there."""


def test_no_module_of_the_platform_names_a_cloud() -> None:
    files = [ROOT / "stacks" / "platform.py", *(ROOT / "stacks" / "layers").glob("*.py")]
    files += [file for file in (ROOT / "components").rglob("*.py") if "azure" not in file.relative_to(ROOT).parts]
    assert len(files) > 50
    assert CLOUD.search("the nodes of an AKS cluster")
    found = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for file in files
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if CLOUD.search(line.replace("edwardsp/ai-on-aks", ""))
    ]
    assert found == []


@pytest.mark.parametrize("stack", [stack for stack in STACKS if not stack.startswith("aks")])
def test_nothing_that_is_registered_names_azure(stack: str) -> None:
    own = [item for item in registered(stack).resources if item.kind != "CustomResourceDefinition"]
    found = [text for item in own for text in (item.type, item.name, *strings(item.inputs)) if "azure" in text.lower()]
    assert found == []


def test_every_pod_goes_to_the_nodes_of_its_group() -> None:
    """A component that ignores the placement would run on any node."""
    pods = pods_of(registered("existing-everything"))
    assert len(pods) > 15
    for item, pod in pods:
        containers = [*pod.get("initContainers", []), *pod["containers"]]
        wants_gpus = any(names.GPU in each.get("resources", {}).get("requests", {}) for each in containers)
        group = "gpu" if wants_gpus or item.object_name in ON_GPU_NODES else "system"
        assert pod["nodeSelector"]["pool"] == group, item.name
