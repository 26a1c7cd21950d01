"""Health checks as objects: what measures, what may change a node, and the configuration."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from components.azure import catalogue as azure_catalogue
from components.azure import node_check
from components.azure.baselines import BASELINES, THRESHOLDS, checks
from components.azure.fabric import SRIOV
from components.azure.node_check import NCCL_PROGRAM, NODE_CHECK, NodeCheck, NodeCheckArgs
from components.health import node_report
from components.health.check_job import CheckArgs, GateArgs
from components.health.nccl_gate import NcclGateArgs, job_documents, size_bytes
from components.health.reporter import NCCL_GATE, Reporter, ReporterArgs
from components.health.thresholds import Scope
from components.kubernetes.node_pool import GPU_TOLERATION
from components.kubernetes.placement import NodeGroup
from components.queueing.appwrapper import AUTOPILOT_TAINTS
from components.workloads import nccl
from components.workloads.pods import NodePods
from tests.unit.harness import Record, on_cluster

NDV5 = "Standard_ND96isr_H100_v5"
BASELINE = BASELINES[NDV5]
CHECKS = (NODE_CHECK, NCCL_GATE)


def check(nodes: int = 3, gate: GateArgs | None = None, trigger: str = "monday") -> CheckArgs:
    pods = NodePods(
        placement=NodeGroup(tolerations=[GPU_TOLERATION]),
        image=azure_catalogue.NODE_HEALTH_CHECKS.reference,
        nodes=nodes,
        gpus=8,
        cpu="64",
        memory="1000Gi",
        fabric=SRIOV,
        shared_memory="128Gi",
        deadline_seconds=3600,
    )
    image = "registry.example.org/python:3"
    return CheckArgs(pods=pods, trigger=trigger, gate=gate, checks=CHECKS, python_image=image)


def node_checks(**values: Any) -> Record:
    kernel_log = values.pop("kernel_log", True)
    args = NodeCheckArgs(check=check(**values), baseline=BASELINE, kernel_log=kernel_log)
    return on_cluster(lambda opts: NodeCheck("node-check", args, opts))


def gate(scope: Scope = Scope.NODE, **values: Any) -> NcclGateArgs:
    program = NCCL_PROGRAM if scope is Scope.NODE else nccl.PROGRAM
    return NcclGateArgs(check=check(**values), scope=scope, threshold=THRESHOLDS[NDV5][scope], program=program)


def settings(built: Record, name: str = "node-check") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(built.one("ConfigMap", f"{name}-files").inputs["data"]["report.json"])
    return found


class TestBaselines:
    def test_without_the_kernels_log_what_reads_it_is_left_out_rather_than_skipped(self) -> None:
        every, fewer = checks(BASELINE, kernel_log=True), checks(BASELINE, kernel_log=False)
        assert set(every) - set(fewer) == {"check_gpu_xid", "check_ib_link_flapping"}

    @pytest.mark.parametrize("scope", Scope)
    def test_a_floor_warns_before_it_fails_and_says_where_it_is_from(self, scope: Scope) -> None:
        floor = THRESHOLDS[NDV5][scope]
        assert floor.fail < floor.warn < floor.expected
        assert "Azure/" in floor.source

    def test_a_floor_for_single_nodes_is_that_of_the_node_check(self) -> None:
        assert THRESHOLDS[NDV5][Scope.NODE].fail == BASELINE.nccl_gbs


class TestNodeCheck:
    def test_an_empty_list_would_never_be_in_the_cluster_and_replace_the_job_with_every_update(self) -> None:
        (measure,) = node_checks().one("Job", "node-check").inputs["spec"]["template"]["spec"]["initContainers"]
        assert "ports" not in measure
        assert [name for name, value in measure.items() if value in ([], {}, None)] == []

    def test_without_a_gate_nothing_can_reach_the_cluster(self) -> None:
        built = node_checks()
        pod = built.one("Job", "node-check").inputs["spec"]["template"]["spec"]
        assert "serviceAccountName" not in pod
        assert pod["automountServiceAccountToken"] is False
        assert not [item for item in pod["volumes"] if "projected" in item]
        assert [item["name"] for item in pod["initContainers"]] == ["check"]
        assert settings(built)["write"] is False
        assert settings(built)["taint"] is None
        assert settings(built)["queueLabel"] is None

    def test_a_failed_node_is_kept_free_and_queues_are_told(self) -> None:
        found = settings(node_checks(gate=GateArgs()))
        assert found["taint"] == {"key": "aznhc", "value": "failed", "effect": "NoSchedule"}
        assert found["queueLabel"] == {"key": "autopilot.ibm.com/gpuhealth", "value": "ERR"}
        assert found["label"] == "mlbatch/node-check"
        assert found["expected"] == checks(BASELINE, kernel_log=True)
        assert settings(node_checks(gate=GateArgs(report_to_queues=False)))["queueLabel"] is None

    def test_no_execute_moves_jobs_away_as_well(self) -> None:
        found = settings(node_checks(gate=GateArgs(effect="NoExecute")))
        assert found["taint"]["effect"] == "NoExecute"
        assert found["queueLabel"]["value"] == "EVICT"

    @pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
    def test_the_queues_label_is_one_that_app_wrapper_acts_on(self, effect: str) -> None:
        label = settings(node_checks(gate=GateArgs(effect=effect)))["queueLabel"]
        taints = [taint for items in AUTOPILOT_TAINTS.values() for taint in items]
        assert [taint["effect"] for taint in taints if (taint["key"], taint["value"]) == tuple(label.values())] == [
            effect
        ]

    def test_another_trigger_runs_it_anew(self) -> None:
        def annotations(trigger: str) -> Any:
            job = node_checks(trigger=trigger).one("Job", "node-check")
            assert set(job.replace_on_changes) == {"metadata", "spec"}
            return job.inputs["spec"]["template"]["metadata"]["annotations"]

        assert annotations("monday") != annotations("tuesday")
        assert annotations("monday") == annotations("monday")

    def run(self, tmp_path: Path, order: str, code: int) -> tuple[int, dict[str, str]]:
        """Execute the measuring container's script against a stand-in for nhc; return its results by name."""
        (tmp_path / "nhc").write_text(
            f'#!/bin/bash\nfor word in "$@"; do case $word in LOGFILE=*) log=${{word#LOGFILE=}};; esac; done\n'
            f'echo "ran $*" > "$log"\nexit {code}\n'
        )
        (tmp_path / "nhc").chmod(0o755)
        scripts = tmp_path / "scripts"
        scripts.mkdir()
        (scripts / "azure_nccl_allreduce.nhc").write_text(order)
        (tmp_path / "results").mkdir()
        script = node_check.script().replace("/etc/nhc/scripts", str(scripts))
        script = script.replace("/results", str(tmp_path / "results")).replace("/azure-nhc", str(tmp_path / "root"))
        path = f"{tmp_path}:{os.environ['PATH']}"
        ran = subprocess.run(["/bin/bash", "-c", script], env={"PATH": path}, timeout=20)
        return ran.returncode, {file.name: file.read_text() for file in (tmp_path / "results").iterdir()}

    @pytest.mark.parametrize("code", [0, 1])
    def test_the_script_runs_all_checks_and_leaves_the_verdict_to_others(self, tmp_path: Path, code: int) -> None:
        returned, results = self.run(tmp_path, "   MESSAGE_SIZE=$3\n   TOPOFILE=$4\n", code)
        assert returned == 0
        assert results["exit-code"] == f"{code}\n"
        assert "ran -a -v DETACHED_MODE=0 CONFFILE=/etc/mlbatch/aznhc.conf" in results["output.txt"]

    def test_an_image_with_the_arguments_in_another_order_is_not_measured_with(self, tmp_path: Path) -> None:
        returned, results = self.run(tmp_path, "   TOPOFILE=$3\n   MESSAGE_SIZE=$4\n", 0)
        assert returned == 0
        assert "another order" in results["output.txt"]
        assert "exit-code" not in results
        verdict = node_report.judge_checks(results["output.txt"], None, checks(BASELINE, kernel_log=True), "NHCNA")
        assert verdict.state == "unknown"


class TestNcclGate:
    def test_one_node_has_no_fabric(self) -> None:
        with pytest.raises(ValueError, match="no fabric"):
            job_documents(gate(Scope.FABRIC, nodes=1))

    @pytest.mark.parametrize(("size", "count"), [("16G", 17179869184), ("1K", 1024), ("512", 512)])
    def test_sizes_are_nccl_tests(self, size: str, count: int) -> None:
        assert size_bytes(size) == count

    def test_the_script_leaves_output_and_exit_code_behind(self, tmp_path: Path) -> None:
        document = job_documents(gate())[-1]
        script = document["spec"]["template"]["spec"]["initContainers"][0]["command"][2]
        (tmp_path / "mpirun").write_text('#!/bin/sh\necho "$@"\nexit 3\n')
        (tmp_path / "mpirun").chmod(0o755)
        script = script.replace("/results", str(tmp_path))
        env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        assert subprocess.run(["/bin/bash", "-c", script], env=env, timeout=20).returncode == 0
        assert (tmp_path / "exit-code").read_text() == "3\n"
        assert "-np 8 --map-by ppr:8:node -x LD_LIBRARY_PATH" in (tmp_path / "output.txt").read_text()


class TestReporter:
    def test_without_gates_there_is_no_account(self) -> None:
        built = on_cluster(lambda opts: Reporter("reporter", ReporterArgs(checks=CHECKS, writes=False), opts))
        assert [item.kind for item in built.objects()] == ["Namespace"]
