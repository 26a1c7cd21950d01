"""The repair of nodes: what signals do, what the controller writes, and the steps of an administrator."""

import json
import re
import shlex
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from kubernetes.client import ApiException
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError

from cli.app import main
from components.health import repair_controller
from components.health.nccl_gate import job_documents
from components.health.repair import SIGNALS, RepairControllerArgs, account, program
from components.health.repair_state import ACTIONS, KEY, Signal, decide, repair_of
from components.health.reporter import NCCL_GATE
from components.health.thresholds import Scope
from components.kubernetes import own_node
from components.kubernetes.in_cluster import Api
from components.observability.alerts import alerts
from tests.unit.servers import Handler, serving
from tests.unit.test_health import GateArgs, gate

NOW, LATER = "2026-11-27T10:00:00Z", "2026-11-27T11:00:00Z"
MACHINE = (
    "/subscriptions/44444444-5555-6666-7777-888888888888/resourceGroups/MC_mlbatch_mlbatch_eastus/providers/"
    "Microsoft.Compute/virtualMachineScaleSets/aks-ndv5-12345678-vmss/virtualMachines/3"
)
HOST = "BLZ23GPU0042"


def node(name: str = "n0", repair: dict[str, Any] | None = None, **conditions: str) -> dict[str, Any]:
    """A node of AKS. conditions: the message of those that are True."""
    annotations = {} if repair is None else {KEY: json.dumps(repair)}
    labels = {
        "kubernetes.io/hostname": name,
        "hyperv/PhysicalHostName": HOST,
        "agentpool": "ndv5",
        "node.kubernetes.io/instance-type": "Standard_ND96isr_H100_v5",
    }
    return {
        "metadata": {"name": name, "resourceVersion": "7", "labels": labels, "annotations": annotations},
        "spec": {"providerID": f"azure://{MACHINE}", "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]},
        "status": {
            "capacity": {"nvidia.com/gpu": "8"},
            "conditions": [{"type": kind, "status": "True", "message": said} for kind, said in conditions.items()],
        },
    }


def alert(name: str, at: str = "n0", **labels: str) -> dict[str, Any]:
    labels = {"alertname": name, "node": at, **labels}
    return {"labels": labels, "annotations": {"summary": f"{name} on {at}"}, "state": "firing"}


def decided(item: dict[str, Any], *found: dict[str, Any], has_room: bool = True) -> dict[str, Any] | None:
    return decide(item, SIGNALS, found, LATER, has_room=has_room, gate=NCCL_GATE.annotation)


def changed(item: dict[str, Any], patch: dict[str, Any] | None) -> dict[str, Any]:
    """Return a node after a merge patch of the controller."""
    assert patch is not None
    result = deepcopy(item)
    for name, text in patch["metadata"]["annotations"].items():
        result["metadata"]["annotations"] |= {name: text}
        if text is None:
            del result["metadata"]["annotations"][name]
    result["spec"] |= patch.get("spec", {})
    return result


def effect(item: dict[str, Any]) -> str | None:
    found = [taint["effect"] for taint in item["spec"]["taints"] if taint["key"] == KEY]
    assert {"key": "nvidia.com/gpu", "effect": "NoSchedule"} in item["spec"]["taints"]
    return found[0] if found else None


class TestSignals:
    def test_each_has_a_source_and_a_value_for_a_taint(self) -> None:
        known = {each.name for each in alerts()}
        for signal in SIGNALS:
            assert signal.alerts or signal.conditions
            assert set(signal.alerts) <= known
            assert signal.action in ACTIONS
            assert re.fullmatch(r"[a-z0-9-]{1,63}", signal.reason)
        assert len({signal.reason for signal in SIGNALS}) == len(SIGNALS)

    def test_each_xid_of_the_alert_has_an_effect(self) -> None:
        (expression,) = (each.expression for each in alerts() if each.name == "MLBatchGpuXidError")
        match = re.search(r'xid=~"([\d|]+)"', expression)
        assert match
        moved = {"48", "64", "74", "79", "95", "119", "120", "136", "140"}
        for xid in match[1].split("|"):
            after = changed(node(), decided(node(), alert("MLBatchGpuXidError", xid=xid)))
            assert effect(after) == ("NoExecute" if xid in moved else "NoSchedule"), xid

    @pytest.mark.parametrize(
        ("condition", "expected"),
        [
            ("XIDErrors", "NoSchedule"),
            ("GPUMissing", "NoSchedule"),
            ("SysLogsGPUFallenOff", "NoExecute"),
            ("IBLinkFlapping", None),
        ],
    )
    def test_conditions_of_detectors_have_an_effect(self, condition: str, expected: str | None) -> None:
        item = node(**{condition: "said"})
        after = changed(item, decided(item))
        assert effect(after) == expected
        repair = repair_of(after)
        assert repair is not None
        assert repair["detail"] == f"condition {condition}: said"
        assert repair["since"] == LATER


class TestDecisions:
    def test_what_is_well_stays_as_it_is(self) -> None:
        assert decided(node()) is None
        assert decided(node(Ready="fine"), alert("MLBatchGpuEccError", at="other")) is None

    def test_a_signal_that_ends_does_not_return_a_node(self) -> None:
        out = changed(node(), decided(node(), alert("MLBatchGpuEccError")))
        assert effect(out) == "NoSchedule"
        assert decided(out) is None

    def test_a_watched_node_is_forgotten_with_its_signal_or_taken_out_by_a_worse_one(self) -> None:
        flaps = alert("MLBatchInfiniBandLinkFlaps")
        watched = changed(node(), decided(node(), flaps))
        assert effect(watched) is None
        assert decided(watched, flaps) is None
        assert repair_of(changed(watched, decided(watched))) is None
        assert effect(changed(watched, decided(watched, flaps, alert("MLBatchGpuLost")))) == "NoSchedule"

    def test_a_worse_signal_moves_the_jobs_of_a_cordoned_node(self) -> None:
        out = changed(node(), decided(node(), alert("MLBatchGpuEccError")))
        worse = changed(out, decided(out, alert("MLBatchGpuXidError", xid="95")))
        assert effect(worse) == "NoExecute"
        assert decided(worse, alert("MLBatchGpuEccError")) is None

    def test_a_worse_signal_during_a_test_moves_the_jobs(self) -> None:
        out = changed(node(), decided(node(), alert("MLBatchGpuEccError")))
        out["metadata"]["annotations"][KEY] = json.dumps({**(repair_of(out) or {}), "state": "testing", "tested": NOW})
        worse = changed(out, decided(out, alert("MLBatchGpuXidError", xid="79")))
        assert effect(worse) == "NoExecute"
        assert (repair_of(worse) or {})["state"] == "testing"

    def test_beyond_the_bound_a_node_is_only_watched_until_there_is_room(self) -> None:
        found = alert("MLBatchGpuXidError", xid="79")
        watched = changed(node(), decided(node(), found, has_room=False))
        assert effect(watched) is None
        assert "too many nodes" in watched["metadata"]["annotations"][KEY]
        assert decided(watched, found, has_room=False) is None
        assert effect(changed(watched, decided(watched, found))) == "NoExecute"

    @pytest.mark.parametrize(
        ("report", "expected"),
        [
            ({"state": "pass", "time": LATER, "reason": "478 GB/s"}, None),
            ({"state": "warn", "time": LATER, "reason": "461 GB/s"}, None),
            ({"state": "fail", "time": LATER, "reason": "12 GB/s"}, "quarantined"),
            ({"state": "unknown", "time": LATER, "reason": "the check has begun"}, "testing"),
            ({"state": "pass", "time": "2026-11-27T09:59:59Z", "reason": "an earlier test"}, "testing"),
            (None, "testing"),
        ],
    )
    def test_the_gate_returns_a_node_that_passes_this_test(
        self, report: dict[str, str] | None, expected: str | None
    ) -> None:
        item = changed(node(), decided(node(), alert("MLBatchGpuEccError")))
        repair = {**(repair_of(item) or {}), "state": "testing", "tested": NOW}
        item["metadata"]["annotations"][KEY] = json.dumps(repair)
        if report is not None:
            item["metadata"]["annotations"][NCCL_GATE.annotation] = json.dumps(report)
        patch = decided(item)
        after = repair_of(item if patch is None else changed(item, patch))
        assert (after or {}).get("state") == expected
        if expected == "quarantined":
            assert after is not None
            assert after["detail"] == "the health gate failed: 12 GB/s"

    def test_an_annotation_of_somebody_else_is_not_a_repair(self) -> None:
        for text in ("not JSON", "[]", '{"action": "explode"}', '{"action": "move"}', '{"action": [], "state": {}}'):
            item = node()
            item["metadata"]["annotations"][KEY] = text
            assert repair_of(item) is None


class TestController:
    @pytest.fixture
    def cluster(self) -> dict[str, dict[str, Any]]:
        return {f"n{index}": node(f"n{index}") for index in range(8)}

    @pytest.fixture
    def api(self, cluster: dict[str, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
        """An API server with the nodes in pages of three, and a Prometheus with one alert that fires."""
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        (tmp_path / "token").write_text("token")

        class Server(Handler):
            def respond(self) -> None:
                if self.path.startswith("/api/v1/alerts"):
                    pending = {**alert("MLBatchGpuLost", at="n1"), "state": "pending"}
                    found = [alert("MLBatchGpuXidError", at="n0", xid="79"), pending]
                    self.answer(200, {"status": "success", "data": {"alerts": found}})
                elif self.command == "PATCH":
                    self.patched()
                else:
                    start = int((re.search(r"continue=(\d+)", self.path) or "00")[1])
                    rest = {"continue": str(start + 3)} if start + 3 < len(cluster) else {}
                    self.answer(200, {"items": list(cluster.values())[start : start + 3], "metadata": rest})

            def patched(self) -> None:
                name = self.path.partition("?")[0].rpartition("/")[2]
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if body["metadata"]["resourceVersion"] != cluster[name]["metadata"]["resourceVersion"]:
                    self.answer(409, {})
                    return
                cluster[name] = changed(cluster[name], body)
                self.answer(200, cluster[name])

            do_PATCH = respond  # noqa: N815 - name of the base class

        with serving(Server) as port:
            self.address = f"http://127.0.0.1:{port}"
            yield Api(self.address, tmp_path)

    def settings(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(program(RepairControllerArgs(image="python")).data()["settings.json"])
        return found

    def test_a_round_takes_out_no_more_than_its_share(self, api: Api, cluster: dict[str, dict[str, Any]]) -> None:
        found = repair_controller.firing(self.address)
        assert [each["labels"]["node"] for each in found] == ["n0"]
        for name in ("n3", "n4", "n7"):
            cluster[name]["status"]["conditions"] = [{"type": "GPUMissing", "status": "True", "message": "7 of 8"}]
        repair_controller.work(api, self.settings(), found)
        states = {name: (repair_of(item) or {}).get("state") for name, item in cluster.items()}
        assert {name: state for name, state in states.items() if state} == {
            "n0": "quarantined",
            "n3": "quarantined",
            "n4": "watched",
            "n7": "watched",
        }
        assert effect(cluster["n0"]) == "NoExecute"

    def test_a_node_that_changed_or_has_no_gpu_is_left_alone(
        self, api: Api, cluster: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        del cluster["n0"]["status"]["capacity"]["nvidia.com/gpu"]
        stale = {**node("n1", XIDErrors="79"), "status": deepcopy(node("n1", XIDErrors="79")["status"])}
        stale["metadata"]["resourceVersion"] = "6"
        monkeypatch.setattr(repair_controller, "listed", lambda _: [cluster["n0"], stale])
        repair_controller.work(api, self.settings(), [alert("MLBatchGpuEccError")])
        assert all(repair_of(item) is None for item in cluster.values())

    def test_it_may_change_nothing_but_its_taint_and_annotation_of_nodes(self) -> None:
        documents = {each["kind"]: each for each in own_node.documents(account())}
        rules = documents["ClusterRole"]["rules"]
        assert [(each["resources"], each["verbs"]) for each in rules] == [
            (["nodes"], ["get", "patch"]),
            (["nodes"], ["list"]),
        ]
        spec = documents["ValidatingAdmissionPolicy"]["spec"]
        said = {each["message"] for each in spec["validations"]}
        assert "the repair controller may not cordon a node or change what it belongs to" in said
        assert not any("runs on" in each for each in said)
        assert f"['{KEY}']" in json.dumps(spec)


class Nodes:
    """A client of a cluster with a node and, where it has one, the Job of the health gate."""

    def __init__(self, item: dict[str, Any], gate: dict[str, Any] | None = None) -> None:
        self.item, self.gate, self.created = item, gate, list[dict[str, Any]]()
        self.resources, self.kind, self.conflict = self, "", False

    def get(self, **options: Any) -> Any:
        if "kind" in options:
            self.kind = options["kind"]
            return self
        found = {"Node": self.item, "Job": self.gate}[self.kind]
        if found is None or (self.kind == "Node" and options["name"] != found["metadata"]["name"]):
            raise NotFoundError(ApiException(status=404, reason="Not Found"))
        return Nodes.Answer(found)

    def patch(self, **options: Any) -> None:
        if self.conflict:
            raise ConflictError(ApiException(status=409, reason="Conflict"))
        self.item = changed(self.item, options["body"])

    def create(self, body: dict[str, Any], namespace: str) -> Any:
        self.created.append(body)
        return Nodes.Answer({**body, "metadata": {**body["metadata"], "name": body["metadata"]["generateName"] + "x"}})

    class Answer:
        def __init__(self, content: dict[str, Any]) -> None:
            self.content = content
            metadata = {"creationTimestamp": "2026-11-27T10:00:00Z", **content["metadata"]}
            self.metadata = type("Metadata", (), metadata)

        def to_dict(self) -> dict[str, Any]:
            return self.content


OUT = {
    "state": "quarantined",
    "action": "move",
    "reason": "gpu-off-the-bus",
    "detail": "GPU 3 of n0 reported XID error 79; the driver's words",
    "category": "Unhealthy.XID79FallenOffBus",
    "since": NOW,
}


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Nodes:
    found = Nodes(node(repair=OUT))
    monkeypatch.setattr("cli.repair.connect", lambda *_: found)
    monkeypatch.setattr("cli.repair.objects", lambda *_: [found.item])
    return found


class TestAdministrator:
    def run(self, *arguments: str) -> int:
        return main(["repair", *arguments])

    def test_the_list_has_state_host_and_case(self, client: Nodes, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.run("report", "n0", "--case", "2611270040001234") == 0
        capsys.readouterr()
        assert self.run("list") == 0
        shown = capsys.readouterr().out
        assert re.search(rf"n0 +reported +gpu-off-the-bus +{NOW} +{HOST} +2611270040001234 +GPU 3", shown)
        assert self.run("list", "n0", "--output", "json") == 0
        (row,) = json.loads(capsys.readouterr().out)
        assert (row["node"], row["state"], row["host"]) == ("n0", "reported", HOST)
        assert self.run("return", "n0", "--untested") == 0
        capsys.readouterr()
        assert self.run("list") == 0
        assert capsys.readouterr().out == "No node is in repair.\n"

    def test_the_report_names_host_error_and_time_and_azures_request(
        self, client: Nodes, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.run("report", "n0") == 0
        text = capsys.readouterr().out
        for part in (HOST, MACHINE, "GPU 3 of n0 reported XID error 79", NOW, "Standard_ND96isr_H100_v5"):
            assert part in text
        words = shlex.split(text.partition("az rest ")[2])
        assert words[words.index("--url") + 1].endswith(
            "workloadImpacts/n0-20261127100000?api-version=2025-01-01-preview"
        )
        assert json.loads(words[words.index("--body") + 1])["properties"] == {
            "startDateTime": NOW,
            "impactCategory": "Resource.Hpc.Unhealthy.XID79FallenOffBus",
            "impactDescription": f"gpu-off-the-bus: {OUT['detail']}",
            "impactedResourceId": MACHINE,
            "additionalProperties": {"PhysicalHostName": HOST},
        }

    def test_without_azure_or_without_the_host_there_is_no_request(
        self, client: Nodes, capsys: pytest.CaptureFixture[str]
    ) -> None:
        del client.item["metadata"]["labels"]["hyperv/PhysicalHostName"]
        assert self.run("report", "n0") == 0
        assert "gpu.nodeLabels" in capsys.readouterr().out
        client.item["spec"]["providerID"] = "aws:///us-east-1a/i-0123"
        assert self.run("report", "n0") == 0
        text = capsys.readouterr().out
        assert "i-0123" in text
        assert "az rest" not in text

    def test_replacing_prints_the_commands_of_the_machine(
        self, client: Nodes, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.run("replace", "n0") == 0
        text = capsys.readouterr().out
        assert "--resource-group MC_mlbatch_mlbatch_eastus --name aks-ndv5-12345678-vmss --instance-ids 3" in text
        assert '--cluster-name "$CLUSTER_NAME" --name ndv5 --machine-names n0' in text
        client.item["spec"].pop("providerID")
        assert self.run("replace", "n0") == 0
        assert "kubectl delete node n0" in capsys.readouterr().out

    @pytest.mark.parametrize(("options", "expected"), [([], "NoSchedule"), (["--move"], "NoExecute")])
    def test_a_node_is_taken_out_by_hand(self, client: Nodes, options: list[str], expected: str) -> None:
        client.item = node()
        assert self.run("start", "n0", "--reason", "link flaps", *options) == 0
        assert effect(client.item) == expected
        assert (repair_of(client.item) or {})["detail"] == "link flaps"
        assert self.run("start", "n0", "--reason", "again") == 2

    def test_a_node_returns_by_a_test_on_that_node_alone(self, client: Nodes) -> None:
        client.item = node(repair=OUT)
        (client.gate,) = (each for each in job_documents(gate(gate=GateArgs())) if each["kind"] == "Job")
        assert self.run("return", "n0") == 0
        (job,) = client.created
        spec = job["spec"]["template"]["spec"]
        assert job["spec"]["completions"] == job["spec"]["parallelism"] == 1
        assert spec["nodeSelector"]["kubernetes.io/hostname"] == "n0"
        assert {"key": KEY, "operator": "Exists"} in spec["tolerations"]
        assert spec["initContainers"] == client.gate["spec"]["template"]["spec"]["initContainers"]
        assert (repair_of(client.item) or {})["state"] == "testing"

    def test_without_a_test_only_if_asked_to(self, client: Nodes, capsys: pytest.CaptureFixture[str]) -> None:
        client.item["spec"]["taints"].append({"key": KEY, "value": "gpu-off-the-bus", "effect": "NoExecute"})
        assert self.run("return", "n0") == 2
        assert "--untested" in capsys.readouterr().err
        for broken in (gate(), gate(Scope.FABRIC, gate=GateArgs())):
            (client.gate,) = (each for each in job_documents(broken) if each["kind"] == "Job")
            assert self.run("return", "n0") == 2
        (client.gate,) = (each for each in job_documents(gate(gate=GateArgs())) if each["kind"] == "Job")
        client.gate["spec"]["template"]["spec"]["nodeSelector"] = {"agentpool": "another"}
        assert self.run("return", "n0") == 2, "the gate is for the nodes of one pool"
        assert client.created == []
        assert effect(client.item) == "NoExecute"
        assert self.run("return", "n0", "--untested") == 0
        assert effect(client.item) is None
        assert repair_of(client.item) is None

    @pytest.mark.parametrize(
        "arguments", [("start", "n0"), ("return",), ("report", "nowhere"), ("start", "nowhere", "--reason", "x")]
    )
    def test_wrong_use_is_told(self, client: Nodes, arguments: tuple[str, ...]) -> None:
        assert self.run(*arguments) == 2

    def test_a_node_in_service_and_one_that_changes_are_told(
        self, client: Nodes, capsys: pytest.CaptureFixture[str]
    ) -> None:
        client.conflict = True
        assert self.run("return", "n0", "--untested") == 2
        assert "changed meanwhile" in capsys.readouterr().err
        client.item = node()
        assert self.run("report", "n0") == 2
        assert "is not in repair" in capsys.readouterr().err


def test_a_signal_without_alerts_and_conditions_says_nothing() -> None:
    signal = Signal(reason="none", action="move", category="")
    assert signal.detail(node(Ready="x"), [alert("MLBatchGpuLost")]) is None
