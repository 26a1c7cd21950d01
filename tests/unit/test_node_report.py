"""The verdicts of health checks: four states. Only a measurement can be a pass."""

from __future__ import annotations

import io
import json
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from components.azure.baselines import BASELINES, checks
from components.health import node_report
from components.health.node_report import FAIL, PASS, UNKNOWN, WARN, Verdict, change, judge_nccl

EXPECTED = ["check_gpu_count 8", "check_gpu_bw 48 335", "check_nccl_allreduce 460.0 1 16G $AZ_NHC_ROOT/topo.xml"]
SIZE = 16 << 30
FLOOR = {"warn": 470.0, "fail": 460.0}
NOW = "2026-01-02T03:04:05Z"


def log(*lines: str, checks: list[str] = EXPECTED) -> str:
    """Return Node Health Check's log of some checks, with further lines."""
    ran = [f'[{index}] - Running check:  "{check}"' for index, check in enumerate(checks)]
    return "\n".join([*ran, *lines])


def allreduce(
    *rows: tuple[int, float, float],
    ranks: int = 8,
    wrong: str = "0",
    bounds: str = "0 OK",
) -> str:
    """Return the output of all_reduce_perf: rows of size, and bus bandwidth out of place and in place."""
    lines = ["# nThread 1 nGpus 1 minBytes 17179869184 maxBytes 17179869184 step: 2(factor) warmup iters: 5"]
    lines += [
        f"#  Rank {rank:2} Group  0 Pid {4000 + rank} on node device {rank % 8:2} [0x0{rank % 8}] NVIDIA H100 80GB"
        for rank in range(ranks)
    ]
    lines += ["#       size         count      type   redop    root     time   algbw   busbw #wrong"]
    for size, apart, in_place in rows:
        half = f"62510.4  274.84  {apart}  {wrong}  62440.1  275.14  {in_place}  {wrong}"
        lines.append(f" {size}  {size // 4}  float  sum  -1  {half}")
    lines += [f"# Out of bounds values : {bounds}", "# Avg bus bandwidth    : 481.234", "#"]
    return "\n".join(lines)


def judge_checks(output: str, exit_code: int | None, expected: list[str]) -> Verdict:
    return node_report.judge_checks(output, exit_code, expected, "NHCNA")


class TestChecks:
    def test_all_ran_and_none_complained(self) -> None:
        verdict = judge_checks(log("SUCCESS:  nhc:  Health check passed:  check_gpu_bw"), 0, EXPECTED)
        assert (verdict.state, verdict.reason) == (PASS, "3 checks passed")

    @pytest.mark.parametrize(
        "line",
        [
            "check_gpu_xid: /azure-nhc/syslog not found. Skipping GPU Xid error test.",
            "check_ib_link_flapping: kernel log /azure-nhc/syslog not found. IB Link flapping test skipped.",
            "check_ib_link_flapping: No valid log files found. IB Link flapping test skipped.",
        ],
    )
    def test_what_was_skipped_is_not_passed(self, line: str) -> None:
        assert judge_checks(log(line), 0, EXPECTED).state == UNKNOWN

    def test_an_old_kernel_message_that_is_passed_over_is_no_skipped_check(self) -> None:
        line = "Xid older than 2 hours: 9 hours. Skipping this XID error: Nov  1 10:00:00 Xid 63."
        assert judge_checks(log(line), 0, EXPECTED).state == PASS

    def test_the_worst_finding_counts_and_unknown_is_worse_than_a_warning(self) -> None:
        fail = "ERROR:  nhc:  Health check failed:  link down. FaultCode: NHC2005"
        skipped = "check_gpu_xid: log not found. Skipping GPU Xid error test."
        warning = "WARNING:  nhc:  Nearing a failure threshold:  GPU 3"
        assert judge_checks(log(warning, skipped, fail), 1, EXPECTED).state == FAIL
        assert judge_checks(log(warning, skipped), 0, EXPECTED).state == UNKNOWN

    def test_the_checks_of_a_machine_type_are_recognised_in_the_log(self) -> None:
        own = checks(BASELINES["Standard_ND96isr_H100_v5"], kernel_log=True)
        assert judge_checks(log(checks=own), 0, own).state == PASS

    @pytest.mark.parametrize(
        ("lines", "code", "verdict"),
        [
            (["ERROR:  nhc:  Health check failed:  GPU 3 "], 1, Verdict(FAIL, "GPU 3")),
            (["ERROR:  nhc:  Health check failed:  NHCNA: no topology"], 1, Verdict(UNKNOWN, "NHCNA: no topology")),
            (["WARNING:  nhc:  Nearing a failure threshold:  GPU 3 "], 0, Verdict(WARN, "GPU 3")),
            (["  nvbandwidth not found. Skipping "], 0, Verdict(UNKNOWN, "nvbandwidth not found. Skipping")),
            ([], 7, Verdict(UNKNOWN, "the checks ended with 7 and named no failure")),
            (
                ["WARNING:  nhc:  Nearing a failure threshold:  GPU 3"],
                7,
                Verdict(UNKNOWN, "the checks ended with 7 and"),
            ),
            (["Health check failed:  GPU 3"] * 2 + ["Health check failed:  GPU 4"], 1, Verdict(FAIL, "GPU 3; GPU 4")),
        ],
    )
    def test_a_verdict_says_all_that_is_as_bad_once(self, lines: list[str], code: int, verdict: Verdict) -> None:
        found = judge_checks(log(*lines), code, EXPECTED)
        assert found.state == verdict.state
        assert found.reason.startswith(verdict.reason)
        assert judge_checks(log(checks=EXPECTED[:1]), 0, EXPECTED).reason == f"not run: {', '.join(EXPECTED[1:])}"
        assert judge_checks(log(), None, EXPECTED) == Verdict(UNKNOWN, "the checks did not run to their end")

    def test_a_reason_has_an_end(self) -> None:
        assert Verdict(FAIL, "a" * 1001).body() == {"state": "fail", "reason": "a" * 1000}
        assert Verdict(PASS, "fast", 481.5).body() == {"state": "pass", "reason": "fast", "busBandwidthGBs": 481.5}


class TestNccl:
    def judge(self, output: str, code: int | None = 0, **values: Any) -> node_report.Verdict:
        return judge_nccl(output, code, **{"ranks": 8, "size": SIZE, **FLOOR, **values})

    @pytest.mark.parametrize(
        ("apart", "in_place", "state"),
        [(481.0, 479.0, PASS), (470.0, 470.0, PASS), (469.0, 470.9, WARN), (460.0, 460.0, WARN), (459.0, 460.8, FAIL)],
    )
    def test_the_mean_of_both_rows_is_held_to_the_floors(self, apart: float, in_place: float, state: str) -> None:
        verdict = self.judge(allreduce((SIZE, apart, in_place)))
        assert verdict.state == state
        assert verdict.measured == pytest.approx((apart + in_place) / 2)

    def test_the_largest_messages_count(self) -> None:
        assert self.judge(allreduce((1024, 0.1, 0.1), (SIZE, 481.0, 480.0))).state == PASS

    def test_wrong_results_fail_however_fast_they_were(self) -> None:
        fast = (SIZE, 481.0, 480.0)
        assert self.judge(allreduce(fast, fast, wrong="3")) == Verdict(FAIL, "12 wrong results")
        assert self.judge(allreduce(fast, bounds="2 FAILED")) == Verdict(FAIL, "values out of bounds")

    @pytest.mark.parametrize(
        ("output", "code", "reason"),
        [
            ("", 0, "0 processes took part, 8 were to"),
            ("", None, "the test did not run to its end"),
            ("mpirun: command not found", 127, "the test ended with 127"),
            (allreduce(), 0, "the test printed no figures"),
            (allreduce((SIZE, 481.0, 480.0)), 1, "the test ended with 1"),
            (allreduce((SIZE, 481.0, 480.0)), None, "the test did not run to its end"),
            (allreduce((SIZE, 481.0, 480.0), ranks=7), 0, "7 processes took part, 8 were to"),
            (allreduce((SIZE, 481.0, 480.0), wrong="N/A"), 0, "the test did not check its results"),
            (
                allreduce((SIZE >> 1, 481.0, 480.0)),
                0,
                "the largest messages had 8589934592 bytes, 17179869184 were asked for",
            ),
            (allreduce((SIZE, float("nan"), 480.0)), 0, "nan GB/s is no measurement"),
            (allreduce((SIZE, float("inf"), 480.0)), 0, "inf GB/s is no measurement"),
            (allreduce((SIZE, 0.0, 0.0)), 0, "0.0 GB/s is no measurement"),
            (allreduce((SIZE, 481.0, 480.0)).replace("  481.0  ", "  fast  "), 0, "the test printed no figures"),
        ],
    )
    def test_what_was_not_measured_is_never_a_pass(self, output: str, code: int | None, reason: str) -> None:
        assert self.judge(output, code) == Verdict(UNKNOWN, reason)

    @pytest.mark.parametrize(
        ("bandwidth", "verdict"),
        [
            (481.5, Verdict(PASS, "481.50 GB/s of bus bandwidth at 17179869184 bytes", 481.5)),
            (469.0, Verdict(WARN, "469.00 GB/s of bus bandwidth at 17179869184 bytes, below 470", 469.0)),
            (45.25, Verdict(FAIL, "45.25 GB/s of bus bandwidth at 17179869184 bytes, below 460", 45.25)),
        ],
    )
    def test_a_verdict_says_what_was_measured_and_held_against_what(self, bandwidth: float, verdict: Verdict) -> None:
        assert self.judge(allreduce((SIZE, bandwidth, bandwidth))) == verdict


def settings(**values: Any) -> dict[str, Any]:
    return {
        "check": "node-check",
        "kind": "nhc",
        "output": "/results/output.txt",
        "exitCode": "/results/exit-code",
        "trigger": "monday",
        "write": True,
        "label": "mlbatch/node-check",
        "annotation": "mlbatch/node-check-report",
        "failLabels": ["mlbatch/node-check", "mlbatch/nccl-gate"],
        "taint": {"key": "aznhc", "value": "failed", "effect": "NoSchedule"},
        "queueLabel": {"key": "autopilot.ibm.com/gpuhealth", "value": "ERR"},
        "expected": EXPECTED,
        "notApplicable": "NHCNA",
        **values,
    }


def node(labels: dict[str, str] | None = None, taints: list[dict[str, str]] | None = None) -> dict[str, Any]:
    metadata = {"name": "gpu-0", "resourceVersion": "7", "labels": labels or {}}
    return {"metadata": metadata, "spec": {"taints": taints} if taints else {}}


GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
OWN_TAINT = {"key": "aznhc", "value": "failed", "effect": "NoSchedule"}


class TestChange:
    def test_a_failed_node_is_labelled_tainted_and_kept_out_of_the_queues(self) -> None:
        patch = change(node(taints=[GPU_TAINT]), node_report.Verdict(FAIL, "GPU 3"), settings(), NOW)
        assert patch["metadata"]["labels"] == {"mlbatch/node-check": "fail", "autopilot.ibm.com/gpuhealth": "ERR"}
        assert patch["spec"] == {"taints": [GPU_TAINT, OWN_TAINT]}
        assert patch["metadata"]["resourceVersion"] == "7", "somebody else's change must not be lost"
        assert json.loads(patch["metadata"]["annotations"]["mlbatch/node-check-report"]) == {
            "check": "node-check",
            "reason": "GPU 3",
            "state": "fail",
            "time": NOW,
            "trigger": "monday",
        }

    def test_a_node_that_failed_already_keeps_its_taint_as_it_is(self) -> None:
        before = [GPU_TAINT, {**OWN_TAINT, "timeAdded": NOW}]
        assert "spec" not in change(node(taints=before), node_report.Verdict(FAIL, "GPU 3"), settings(), NOW)

    def test_another_effect_takes_the_place_of_the_one_before(self) -> None:
        harder = settings(taint={**OWN_TAINT, "effect": "NoExecute"})
        patch = change(node(taints=[GPU_TAINT, OWN_TAINT]), node_report.Verdict(FAIL, "GPU 3"), harder, NOW)
        assert patch["spec"]["taints"] == [GPU_TAINT, {**OWN_TAINT, "effect": "NoExecute"}]

    @pytest.mark.parametrize("state", [PASS, WARN])
    def test_a_node_that_recovered_is_given_back(self, state: str) -> None:
        before = node({"mlbatch/node-check": "fail", "autopilot.ibm.com/gpuhealth": "ERR"}, [GPU_TAINT, OWN_TAINT])
        patch = change(before, node_report.Verdict(state, "well"), settings(), NOW)
        assert patch["metadata"]["labels"] == {"mlbatch/node-check": state, "autopilot.ibm.com/gpuhealth": None}
        assert patch["spec"] == {"taints": [GPU_TAINT]}

    def test_not_while_another_check_says_fail(self) -> None:
        before = node({"mlbatch/nccl-gate": "fail", "autopilot.ibm.com/gpuhealth": "ERR"}, [GPU_TAINT])
        patch = change(before, node_report.Verdict(PASS, "well"), settings(), NOW)
        assert patch["metadata"]["labels"] == {"mlbatch/node-check": "pass"}

    def test_what_autopilot_has_found_itself_stays(self) -> None:
        before = node({"autopilot.ibm.com/gpuhealth": "EVICT"})
        patch = change(before, node_report.Verdict(PASS, "well"), settings(), NOW)
        assert "autopilot.ibm.com/gpuhealth" not in patch["metadata"]["labels"]

    def test_an_unknown_node_keeps_what_it_has(self) -> None:
        before = node({"autopilot.ibm.com/gpuhealth": "ERR"}, [GPU_TAINT, OWN_TAINT])
        patch = change(before, node_report.Verdict(UNKNOWN, "no end"), settings(), NOW)
        assert patch["metadata"]["labels"] == {"mlbatch/node-check": "unknown"}
        assert "spec" not in patch

    def test_queues_are_left_alone_where_that_is_asked_for(self) -> None:
        patch = change(node(), node_report.Verdict(FAIL, "GPU 3"), settings(queueLabel=None), NOW)
        assert patch["metadata"]["labels"] == {"mlbatch/node-check": "fail"}


class TestMain:
    @pytest.mark.parametrize(
        ("output", "code", "exit_code"),
        [
            (log(), "0", 0),
            (log("WARNING:  nhc:  Nearing a failure threshold:  GPU 3"), "0", 0),
            (log("ERROR:  nhc:  Health check failed:  GPU 3"), "1", 1),
            (None, None, 2),
        ],
    )
    def test_without_a_gate_it_prints_the_verdict_and_asks_nobody(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        output: str | None,
        code: str | None,
        exit_code: int,
    ) -> None:
        own = settings(write=False, output=str(tmp_path / "output"), exitCode=str(tmp_path / "code"))
        if output is not None and code is not None:
            (tmp_path / "output").write_text(output)
            (tmp_path / "code").write_text(f"{code}\n")
        (tmp_path / "settings.json").write_text(json.dumps(own))
        (tmp_path / "termination").touch()
        monkeypatch.setattr(node_report, "TERMINATION", tmp_path / "termination")
        monkeypatch.setattr(node_report, "Api", None)  # asking the cluster would fail
        monkeypatch.setenv("NODE_NAME", "gpu-0")
        assert node_report.main(str(tmp_path / "settings.json"), "report") == exit_code
        said = json.loads((tmp_path / "termination").read_text())
        assert said["node"] == "gpu-0"
        assert said["state"] == {0: said["state"], 1: "fail", 2: "unknown"}[exit_code]
        printed = capsys.readouterr().out
        assert printed.startswith(output if output is not None and code is not None else "no output")
        assert json.dumps(said) in printed

    @pytest.mark.parametrize(
        ("output", "code", "state"),
        [
            (allreduce((SIZE, 481.0, 480.0)), " 0\n", "pass"),
            (allreduce((SIZE, 481.0, 480.0)), "-9", "unknown"),
            (allreduce((SIZE, 481.0, 480.0)), "killed", "unknown"),
            (None, "0", "unknown"),
        ],
    )
    def test_a_gate_writes_its_verdict_on_the_node_also_without_a_place_to_end_with(
        self, output: str | None, code: str, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        own = settings(kind="nccl", ranks=8, bytes=SIZE, **FLOOR)
        own |= {"output": str(tmp_path / "output"), "exitCode": str(tmp_path / "code")}
        if output is not None:
            (tmp_path / "output").write_text(output)
        (tmp_path / "code").write_text(code)
        (tmp_path / "settings.json").write_text(json.dumps(own))
        written: list[tuple[str, Verdict]] = []
        monkeypatch.setattr(node_report, "TERMINATION", tmp_path / "absent")
        monkeypatch.setattr(node_report, "write", lambda name, verdict, given: written.append((name, verdict)))
        monkeypatch.setenv("NODE_NAME", "gpu-0")
        expected = {"pass": 0, "unknown": 2}[state]
        assert node_report.main(str(tmp_path / "settings.json"), "report") == expected
        assert [(name, verdict.state) for name, verdict in written] == [("gpu-0", state)]
        assert not (tmp_path / "absent").exists()

    def test_a_mark_takes_an_older_verdict_away(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[tuple[Any, ...]] = []

        class Api:
            """A cluster with one node that records its requests."""

            @classmethod
            def in_cluster(cls, account: Path, seconds: float) -> Api:
                assert account == Path("/var/run/secrets/mlbatch")
                return cls()

            def get(self, path: str) -> dict[str, Any]:
                asked.append(("GET", path))
                return node({"mlbatch/node-check": "pass"})

            def patch(self, path: str, body: dict[str, Any]) -> None:
                asked.append(("PATCH", path, body))

        (tmp_path / "settings.json").write_text(json.dumps(settings()))
        monkeypatch.setattr(node_report, "Api", Api)
        monkeypatch.setenv("NODE_NAME", "gpu-0")
        assert node_report.main(str(tmp_path / "settings.json"), "mark") == 0
        assert [request[:2] for request in asked] == [("GET", "/api/v1/nodes/gpu-0"), ("PATCH", "/api/v1/nodes/gpu-0")]
        assert asked[1][2]["metadata"]["labels"] == {"mlbatch/node-check": "unknown"}

    @pytest.mark.parametrize(
        ("refusals", "patches", "fails"),
        [
            pytest.param([], 1, False, id="at once"),
            pytest.param([409], 2, False, id="somebody else was quicker"),
            pytest.param([409] * 4, 5, False, id="and again"),
            pytest.param([409] * 5, 5, True, id="all the time"),
            pytest.param([403], 1, True, id="not allowed, which asking again does not change"),
        ],
    )
    def test_a_change_of_somebody_else_in_between_is_read_and_kept(
        self, refusals: list[int], patches: int, fails: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[str] = []
        left = list(refusals)

        class Api:
            """A node that is another at each look, and changes that are refused as told."""

            @classmethod
            def in_cluster(cls, account: Path, seconds: float) -> Api:
                assert seconds == 30
                return cls()

            def get(self, path: str) -> dict[str, Any]:
                found = node()
                found["metadata"]["resourceVersion"] = str(len(asked))
                return found

            def patch(self, path: str, body: dict[str, Any]) -> None:
                asked.append(body["metadata"]["resourceVersion"])
                if left:
                    raise HTTPError(path, left.pop(0), "refused", Message(), io.BytesIO(b"the reason"))

        monkeypatch.setattr(node_report, "Api", Api)
        verdict = node_report.Verdict(PASS, "all is well")
        if fails:
            with pytest.raises(RuntimeError, match=f"the node was not changed: {refusals[-1]} the reason"):
                node_report.write("gpu-0", verdict, settings())
        else:
            node_report.write("gpu-0", verdict, settings())
        assert asked == [str(number) for number in range(patches)], "each time after what the node was by then"
