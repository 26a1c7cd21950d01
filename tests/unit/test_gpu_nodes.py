"""The values of the operators on GPU nodes, and the programs of the agents there."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from components import catalogue, names
from components.artifacts import Mirror
from components.azure import aks
from components.azure.aks import LOCAL_DISKS
from components.azure.fabric import SRIOV, fabric
from components.azure.node_labeler import NodeLabeler, NodeLabelerArgs, node_labeler
from components.kubernetes.placement import Placement
from components.kubernetes.quantity import ZERO, Quantity
from components.nodes import gpu_operator, node_agent
from components.nodes.feature_discovery import OPERATOR_NAMESPACE
from components.nodes.gpu_operator import GpuOperatorArgs, HandOut, dcgm_metrics, gpu_operator_values
from components.nodes.network_operator import (
    DevicePlugin,
    NetworkOperatorArgs,
    nic_cluster_policy,
)
from components.nodes.nvme_scratch import FOLDER, POOL_LABEL, Filesystem, NvmeScratch, NvmeScratchArgs, scratch
from emulator.charts.schema import of_chart, problems
from emulator.charts.sources import stub, stubs
from stacks.targets.spec import RESERVED
from tests.unit.harness import Record, build

IMAGE = catalogue.PYTHON.reference
IMAGES = catalogue.entry(catalogue.NIC_SOFTWARE, operator="26.1.0")
PLACEMENT = Placement(system=aks.SYSTEM_NODES, gpus=aks.gpu_nodes(taint=True))


def network_args(**changes: Any) -> NetworkOperatorArgs:
    chart = Mirror().chart(catalogue.find_chart("network-operator"))
    return NetworkOperatorArgs(
        **{"chart": chart, "images": IMAGES, "namespace": OPERATOR_NAMESPACE, "placement": PLACEMENT, **changes}
    )


def gpu_args(**changes: Any) -> GpuOperatorArgs:
    chart = Mirror().chart(catalogue.find_chart("gpu-operator"))
    return GpuOperatorArgs(**{"chart": chart, "namespace": OPERATOR_NAMESPACE, "placement": PLACEMENT, **changes})


def scratch_args(**changes: Any) -> NvmeScratchArgs:
    nodes = replace(PLACEMENT.gpus, node_selector=POOL_LABEL)
    values = {"namespace": node_agent.NAMESPACE, "image": IMAGE, "nodes": nodes, "disk_model": LOCAL_DISKS}
    return NvmeScratchArgs(**{**values, **changes})


def plugin_config(policy: dict[str, Any], key: str) -> Any:
    return json.loads(policy["spec"][key]["config"])


class TestNetworkOperator:
    def test_shared_devices_are_the_alternative_and_never_there_as_well(self) -> None:
        policy = nic_cluster_policy(network_args(device_plugin=DevicePlugin.SHARED))
        assert plugin_config(policy, "rdmaSharedDevicePlugin") == {
            "configList": [
                {
                    "resourceName": "rdma_shared_device_a",
                    "rdmaHcaMax": 63,
                    "selectors": {"vendors": ["15b3"], "linkTypes": ["infiniband"]},
                }
            ]
        }
        assert fabric(8, SRIOV.topology, shared=True).resource == names.SHARED_INFINIBAND == "rdma/rdma_shared_device_a"
        assert "sriovDevicePlugin" not in policy["spec"]

    @pytest.mark.parametrize("plugin", DevicePlugin)
    def test_upstream_puts_the_configuration_between_single_quotes(self, plugin: DevicePlugin) -> None:
        assert "'" not in json.dumps(nic_cluster_policy(network_args(device_plugin=plugin))["spec"])

    def test_without_nodes_nothing_waits_for_it(self) -> None:
        assert "annotations" not in nic_cluster_policy(network_args(wait=False))["metadata"]

    def test_nodes_are_drained_for_a_driver_where_the_settings_say_so(self) -> None:
        policy = nic_cluster_policy(network_args(drain=True))["spec"]["ofedDriver"]["upgradePolicy"]
        assert (policy["autoUpgrade"], policy["drain"]["enable"], policy["maxParallelUpgrades"]) == (True, True, 1)


class TestGpuOperator:
    @pytest.mark.parametrize("version", [version for name, version in stubs() if name == "gpu-operator"])
    def test_upstreams_chart_knows_every_value(self, version: str) -> None:
        values = gpu_operator_values(gpu_args(driver_version="580.126.20", monitor_labels={"release": "monitoring"}))
        assert list(problems(values, of_chart(stub("gpu-operator", version)))) == []

    def test_nodes_that_come_with_driver_and_toolkit_keep_theirs(self) -> None:
        values = gpu_operator_values(gpu_args(brings_driver=False, brings_toolkit=False))
        assert values["driver"]["enabled"] is False
        assert values["toolkit"]["enabled"] is False
        assert values["cdi"] == {"enabled": True}

    @pytest.mark.parametrize("version", [version for name, version in stubs() if name == "gpu-operator"])
    def test_by_mounts_a_pod_gets_what_the_device_plugin_mounts_and_names_none_by_its_environment(
        self, version: str
    ) -> None:
        values = gpu_operator_values(gpu_args(hand_out=HandOut.MOUNTS))
        assert values["cdi"] == {"enabled": False}
        assert values["devicePlugin"] == {"env": [{"name": "DEVICE_LIST_STRATEGY", "value": "volume-mounts"}]}
        assert values["toolkit"]["env"] == [
            {"name": "ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED", "value": "false"},
            {"name": "ACCEPT_NVIDIA_VISIBLE_DEVICES_AS_VOLUME_MOUNTS", "value": "true"},
        ]
        assert list(problems(values, of_chart(stub("gpu-operator", version)))) == []

    def test_a_driver_can_be_chosen(self) -> None:
        assert gpu_operator_values(gpu_args(driver_version="580.173.02"))["driver"]["version"] == "580.173.02"

    def test_each_metric_is_a_line_of_three_fields(self) -> None:
        lines = dcgm_metrics().splitlines()
        assert "DCGM_FI_DEV_XID_ERRORS, gauge, The last XID error." in lines
        for line in lines:
            field, kind, _ = line.split(", ")
            assert field.startswith(("DCGM_FI_", "DCGM_EXP_"))
            assert kind in ("gauge", "counter", "label")

    def test_another_list_is_another_config_map(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Exporters mount it by subPath, so that those that run see no change of one that keeps its name."""
        before = gpu_operator_values(gpu_args())["dcgmExporter"]["config"]
        assert before == gpu_operator_values(gpu_args())["dcgmExporter"]["config"]
        monkeypatch.setattr(gpu_operator, "DCGM_FIELDS", gpu_operator.DCGM_FIELDS[1:])
        after = gpu_operator_values(gpu_args())["dcgmExporter"]["config"]
        assert after["data"] != before["data"]
        assert re.fullmatch("mlbatch-dcgm-metrics-[0-9a-f]{8}", before["name"])
        assert after["name"] != before["name"]


def agents() -> tuple[node_agent.Agent, node_agent.Agent]:
    labeler = node_labeler(NodeLabelerArgs(namespace=node_agent.NAMESPACE, image=IMAGE, nodes=PLACEMENT.gpus))
    disks = scratch(scratch_args())
    return labeler, disks


@pytest.fixture(scope="module")
def record() -> Record:
    def program() -> None:
        NodeLabeler("labeler", NodeLabelerArgs(namespace=node_agent.NAMESPACE, image=IMAGE, nodes=PLACEMENT.gpus))
        NvmeScratch("disks", scratch_args())

    return build(program)


class TestAgents:
    def test_the_file_system_can_be_chosen(self) -> None:
        args = scratch_args(filesystem=Filesystem.XFS)
        assert scratch(args).arguments == (FOLDER, "xfs", LOCAL_DISKS)

    def test_the_scratch_agent_gets_its_folder_and_the_uid_of_its_own_pod(self) -> None:
        pod = node_agent.daemon_set(scratch(scratch_args(folder="/mnt/nvme")))["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert container["command"][-3:-1] == ["/mnt/nvme", "ext4"]
        assert {"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}} in container["env"]

    def test_they_ask_for_little_of_what_quotas_leave_to_daemon_sets(self) -> None:
        requests = [
            node_agent.daemon_set(agent)["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]
            for agent in agents()
        ]
        for resource, reserved in RESERVED.items():
            asked = sum((Quantity.parse(each[resource]) for each in requests), start=ZERO)
            assert asked > ZERO
            assert asked * 10 <= reserved

    @pytest.mark.parametrize("index", [0, 1])
    def test_the_files_that_are_mounted_run_by_the_pods_command(self, index: int, tmp_path: Path) -> None:
        agent = agents()[index]
        pod = node_agent.daemon_set(agent)["spec"]["template"]["spec"]
        files = node_agent.program(agent).data()
        for item in pod["volumes"][0]["configMap"]["items"]:
            file = tmp_path / item["path"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(files[item["key"]])
        command = [sys.executable, *pod["containers"][0]["command"][1:]]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("KUBERNETES_")}
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={**environment, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        assert "KeyError: 'KUBERNETES_SERVICE_HOST'" in done.stderr

    def test_a_change_of_the_program_restarts_the_pods(self, record: Record) -> None:
        first, second = agents()
        digests = {
            agent.name: node_agent.daemon_set(agent)["spec"]["template"]["metadata"]["annotations"]
            for agent in (first, second)
        }
        assert digests["node-labeler"] != digests["local-nvme-scratch"]
        program = record.one("ConfigMap", "node-labeler")
        assert program.urn in record.closure(record.one("DaemonSet", "node-labeler"))
