"""NVIDIA's GPU operator on target `openshift`, installed by the Operator Lifecycle Manager.

Seed: redhat-na-ssa/hobbyist-guide-to-rhoai, configs/02, its installation on the cluster of the seeds (the guide
below).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from components import catalogue
from components.artifacts import Mirror
from stacks.config.cluster_facts import GpuPolicy, NodeFacts
from tests.unit.conftest import write_kubeconfig
from tests.unit.harness import Record
from tests.unit.releases import FOLDER
from tests.unit.test_openshift import loaded, registered, shipped
from tests.unit.test_openshift_ai import unknown

NAMESPACE = "nvidia-gpu-operator"
DEFINED = yaml.safe_load((FOLDER / "gpu-operator-certified.yaml").read_text())
DISCOVERED = {"feature.node.kubernetes.io/pci-10de.present": "true"}
WORKER = NodeFacts(
    name="worker", labels=DISCOVERED, allocatable={"cpu": "224", "memory": "2113411288Ki", "pods": "250"}
)
"""After feature discovery, no plugin offers the GPUs yet."""
POOL = {"nodeSelector": DISCOVERED, "gpusPerNode": 8, "cpu": 224, "memory": "1900Gi"}


def chosen(sections: Mapping[str, Any] = {}, **gpu: Any) -> dict[str, Any]:
    return {**shipped(), "cluster": {"pool": POOL}, "gpu": {"operator": True, **gpu}, **sections}


@pytest.fixture(scope="module", params=[release.version for release in catalogue.CERTIFIED_GPU_OPERATORS])
def release(request: pytest.FixtureRequest) -> catalogue.CertifiedGpuOperator:
    return catalogue.entry(catalogue.CERTIFIED_GPU_OPERATORS, version=request.param)


@pytest.fixture(scope="module")
def record(release: catalogue.CertifiedGpuOperator, tmp_path_factory: pytest.TempPathFactory) -> Record:
    return made(tmp_path_factory.mktemp(release.version), operatorVersion=release.version)


def made(folder: Path, sections: Mapping[str, Any] = {}, **gpu: Any) -> Record:
    files = Mirror(artifacts=str(FOLDER), verify=False)
    return registered(loaded(chosen(sections, **gpu), files, write_kubeconfig(folder), nodes=(WORKER,) * 3))


def spec(record: Record) -> dict[str, Any]:
    (policy,) = record.of("ClusterPolicy")
    found: dict[str, Any] = policy.inputs["spec"]
    return found


class TestClusterPolicy:
    def test_no_field_is_unknown_to_the_versions_definition(
        self, record: Record, release: catalogue.CertifiedGpuOperator
    ) -> None:
        assert list(unknown(spec(record), DEFINED[release.policy_digest])) == []

    def test_the_platforms_own_prometheus_reads_it_by_its_namespace(self, tmp_path: Path) -> None:
        """OpenShift's Prometheus reads it by itself, and does not pass it on to another one."""
        read = made(tmp_path, {"monitoring": {"enabled": True}}).one(
            "ServiceMonitor", "nvidia-dcgm-exporter", "monitoring"
        )
        assert read.inputs["spec"]["namespaceSelector"] == {"matchNames": [NAMESPACE]}

    def test_settings_reach_it(self, tmp_path: Path) -> None:
        found = spec(made(tmp_path, installDriver=False, installToolkit=False, drainForDrivers=True))
        assert (found["driver"]["enabled"], found["toolkit"]["enabled"]) == (False, False)
        assert found["driver"]["upgradePolicy"] == {"autoUpgrade": True}


def test_autopilot_runs_in_the_operators_runtime(tmp_path: Path) -> None:
    record = made(tmp_path, {"health": {"autopilot": {"enabled": True}}})
    (agent,) = (each for each in record.of("DaemonSet") if each.inputs["metadata"]["namespace"] == "autopilot")
    assert agent.inputs["spec"]["template"]["spec"]["runtimeClassName"] == "nvidia"


def test_the_one_that_the_stack_has_made_is_no_reason_to_stop(mirror: Mirror, kubeconfig: Path) -> None:
    own = GpuPolicy(name="gpu-cluster-policy", by_variable=False)
    assert loaded(chosen(), mirror, kubeconfig, nodes=(WORKER,) * 3, gpu_policies=(own,)).warnings == ()
