"""NVshare: exact objects, its effects on a cluster, settings that prevent it, and the result of its test."""

import copy
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from components.artifacts import Mirror
from components.kubernetes.placement import ANYWHERE
from components.nodes import nvshare_verification
from components.nodes.nvshare_verification import NvshareVerificationArgs, job_body
from runner import nvshare as ended
from runner.nvshare import Verdict
from stacks.config.inputs import StackInputs
from stacks.settings.tenancy import LimitSettings
from tests.unit.harness import Record
from tests.unit.test_existing import loaded, node, refused, registered, shipped

CARD = {"nvidia.com/gpu": "1"}
NODES = (node("a", **CARD), node("b", **CARD))
ON = {"enabled": True, "verification": {"enabled": True}}


def config(**sections: Any) -> dict[str, Any]:
    gang = {"team": "blue", "pods": 2, "gpusPerPod": 1}
    return {**shipped(), "nvshare": ON, "samples": {"gang": gang}, **sections}


@pytest.fixture(scope="module")
def stack(mirror: Mirror, same_kubeconfig: Path) -> StackInputs[Any]:
    return loaded(config(), mirror, same_kubeconfig, NODES)


@pytest.fixture(scope="module")
def record(stack: StackInputs[Any]) -> Record:
    return registered(stack)


class TestObjects:
    def test_the_scheduler_stands_before_anybody_is_given_a_share(self, record: Record) -> None:
        scheduler = record.one("DaemonSet", "nvshare-scheduler")
        plugin = record.one("DaemonSet", "nvshare-device-plugin")
        assert scheduler.urn in record.closure(plugin)
        assert record.one("ResourceQuota", "critical-pods", "nvshare-system").urn in record.closure(scheduler)


class TestPlatform:
    def test_a_card_is_ten_to_quotas_which_name_what_nodes_offer(self, stack: StackInputs[Any], record: Record) -> None:
        assert str(stack.resolved.pool.shape.resources["nvidia.com/gpu"]) == "10"
        for queue in record.of("ClusterQueue"):
            (group,) = queue.inputs["spec"]["resourceGroups"]
            amounts = {each["name"]: each["nominalQuota"] for each in group["flavors"][0]["resources"]}
            assert list(amounts) == group["coveredResources"]
            assert "nvidia.com/gpu" not in amounts
            expected = {"slack-cluster-queue": "10", "blue-cluster-queue": "5", "red-cluster-queue": "5"}
            assert amounts["nvshare.com/gpu"] == expected[queue.object_name]

    def test_the_sample_asks_for_shares(self, record: Record) -> None:
        wrapper = record.one("AppWrapper", "sample-gang").inputs["spec"]["components"]
        container = wrapper[-1]["template"]["spec"]["template"]["spec"]["containers"][0]
        assert container["resources"]["limits"]["nvshare.com/gpu"] == "1"
        assert "nvidia.com/gpu" not in container["resources"]["limits"]

    def test_the_operator_hands_the_card_on_by_mounts_which_the_plugin_understands(
        self, mirror: Mirror, kubeconfig: Path
    ) -> None:
        raw = config(
            gpu={"featureDiscovery": True, "operator": True, "operatorVersion": "v24.9.0", "installDriver": False},
            scheduling={"packing": "topology"},
        )
        record = registered(loaded(raw, mirror, kubeconfig, NODES, version="1.31"))
        (release,) = [item for item in record.resources if item.inputs.get("name") == "gpu-operator"]
        values = release.inputs["values"]
        assert release.inputs["version"] == "v24.9.0"
        assert values["devicePlugin"] == {"env": [{"name": "DEVICE_LIST_STRATEGY", "value": "volume-mounts"}]}
        assert values["driver"]["enabled"] is False
        assert release.urn in record.closure(record.one("DaemonSet", "nvshare-scheduler"))


def test_teams_that_share_a_gpu_are_told_that_nothing_keeps_them_apart(mirror: Mirror, kubeconfig: Path) -> None:
    def said(**sections: Any) -> list[str]:
        warnings = loaded(config(**sections), mirror, kubeconfig, NODES).warnings
        return [text for text in warnings if "NVshare is for pods that trust each other" in text]

    teams = shipped()["teams"]
    assert len(teams) == 2
    (warning,) = said()
    assert warning.startswith("mlbatch:nvshare.enabled is true, and 2 teams share GPUs")
    assert said(teams=[team for team in teams if team["name"] == "blue"]) == []
    assert said(nvshare={}) == []


class TestRefusals:
    def test_amounts_of_what_is_not_offered(self, mirror: Mirror, kubeconfig: Path) -> None:
        quota = {"cpu": 8, "memory": "8Gi", "nvidia.com/gpu": 0, "nvshare.com/gpu": 5, "pods": 50}
        raw = config()
        raw["teams"] = [{**copy.deepcopy(team), "quota": quota} for team in raw["teams"]]
        for team in raw["teams"]:
            del team["share"]
        assert str(loaded(raw, mirror, kubeconfig, NODES).resolved.divisions[0].quotas["blue"]["nvidia.com/gpu"]) == "5"
        raw["teams"][0]["quota"] = {**quota, "nvidia.com/gpu": 5, "nvshare.com/gpu": 0}
        said = refused(raw, mirror, kubeconfig, NODES)
        assert "mlbatch:teams[0].quota" in said
        assert "pods request nvshare.com/gpu on these nodes: mlbatch:nvshare.enabled is true" in said
        raw["nvshare"] = {"enabled": False}
        raw["teams"][0]["quota"] = {**quota, "nvshare.com/gpu": 0}
        raw["teams"][1]["quota"] = {**quota, "nvidia.com/gpu": 0, "nvshare.com/gpu": 1}
        said = refused(raw, mirror, kubeconfig, NODES)
        assert "pods request nvidia.com/gpu on these nodes: mlbatch:nvshare.enabled is false" in said

    def test_a_limit_of_no_shares_leaves_the_limit_of_gpus(self) -> None:
        limit = LimitSettings.model_validate({"nvidia.com/gpu": 4, "nvshare.com/gpu": 0})
        assert str(limit.amounts()["nvidia.com/gpu"]) == "4"


def ended_pod(code: int | None, message: str = "", image: str = "sha256:1") -> dict[str, Any]:
    state = {"running": {}} if code is None else {"terminated": {"exitCode": code, "message": message}}
    return {"status": {"containerStatuses": [{"imageID": image, "state": state}]}}


PASS = "PASS\n--- 238.66402554512024 seconds ---\n"


class TestVerdict:
    def test_it_looks_for_the_job_that_the_program_makes(self) -> None:
        assert ended.JOB == nvshare_verification.NAME
        assert ended.PODS == nvshare_verification.PODS

    @pytest.mark.parametrize(
        ("pods", "expected"),
        [
            ([ended_pod(0, PASS), ended_pod(0, PASS)], Verdict.PASSED),
            ([ended_pod(0, PASS), ended_pod(1, "Traceback\nout of memory")], Verdict.FAILED),
            ([ended_pod(1), ended_pod(124)], Verdict.FAILED),
            ([ended_pod(1)], Verdict.FAILED),
            ([ended_pod(0, PASS), ended_pod(124, "10%\n20%")], Verdict.TIMED_OUT),
            ([ended_pod(0, PASS), ended_pod(None)], Verdict.UNKNOWN),
            ([ended_pod(0, PASS)], Verdict.UNKNOWN),
            ([ended_pod(0, PASS), ended_pod(0, "nothing of it")], Verdict.UNKNOWN),
            ([ended_pod(0, PASS), ended_pod(0, PASS, image="")], Verdict.UNKNOWN),
            ([ended_pod(0, "", image=""), ended_pod(0, "", image="")], Verdict.UNKNOWN),
            ([{"status": {"phase": "Pending"}}, {"status": {"phase": "Pending"}}], Verdict.UNKNOWN),
            ([], Verdict.UNKNOWN),
        ],
    )
    def test_passed_is_what_both_pods_have_said_and_nothing_else(
        self, pods: list[dict[str, Any]], expected: Verdict
    ) -> None:
        assert ended.verdict(pods) is expected

    def test_the_seconds_are_shown(self) -> None:
        assert (
            ended.seconds([ended_pod(0, PASS), ended_pod(0, "PASS\n--- 218.99518394470215 seconds ---")])
            == "238.7 s, 219.0 s"
        )
        assert ended.seconds([ended_pod(124)]) == "-"

    @pytest.mark.parametrize(
        ("program", "code", "message", "expected"),
        [
            ("print('...'); print('PASS'); print('--- 1.5 seconds ---')", 0, PASS[:4], Verdict.PASSED),
            ("1/0", 1, "ZeroDivisionError", Verdict.FAILED),
            ("import time; time.sleep(600)", 124, "", Verdict.TIMED_OUT),
        ],
    )
    def test_the_command_leaves_its_last_lines_and_its_exit_code_behind(
        self, tmp_path: Path, program: str, code: int, message: str, expected: Verdict
    ) -> None:
        bound = 1 if expected is Verdict.TIMED_OUT else 600
        args = NvshareVerificationArgs(
            namespace="nvshare-system", image="matmul", nodes=ANYWHERE, timeout_seconds=bound
        )
        (container,) = job_body(args)["spec"]["template"]["spec"]["containers"]
        moved = container["command"][2].replace("/tmp/", f"{tmp_path}/")
        moved = moved.replace("/tf-matmul.py", f"{tmp_path}/tf-matmul.py").replace(
            "/dev/termination", f"{tmp_path}/end"
        )
        (tmp_path / "tf-matmul.py").write_text(program)
        (tmp_path / "python").symlink_to(sys.executable)
        environment = {each["name"]: each["value"] for each in container["env"]}
        environment["PATH"] = f"{tmp_path}:{os.environ['PATH']}"
        done = subprocess.run(["/bin/sh", "-c", moved], env=environment, capture_output=True, check=False)
        left = (tmp_path / "end-log").read_text()
        assert done.returncode == code
        assert message in left
        assert ended.verdict([ended_pod(code, left), ended_pod(0, PASS)]) is expected
