"""GPU hours are added up without a loss, and time without records is named."""

import json
import re
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlparse

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.client.exceptions import ApiException

from cli.app import main
from components import names
from components.observability import accounts, metrics, prometheus, usage
from runner.usage import prometheus as source
from runner.usage import records
from runner.usage.prometheus import Prometheus, UsageError
from runner.usage.records import Held, Period, Usage, month, read
from runner.usage.report import UNKNOWN, content, page, prices, report, sheet, text, warnings
from tests.unit.servers import Handler, kubeconfig_of, serving
from tests.unit.test_observability import args as monitoring

LACK = "lack records, and their GPU hours are not in the report"
NOVEMBER = Period(begin=datetime(2026, 11, 1, tzinfo=UTC), end=datetime(2026, 12, 1, tzinfo=UTC))
JOB = {"namespace": "blue", "job_kind": "AppWrapper", "flavor": "h100"}


@dataclass
class Recorded:
    """A Prometheus with sums of a period. down: seconds without records by day of the month."""

    held: list[tuple[dict[str, str], float]] = field(default_factory=list)
    quota: list[tuple[dict[str, str], float]] = field(default_factory=list)
    down: Mapping[int, float] = field(default_factory=dict)
    interval: int = 30

    def fetch(self, path: str) -> bytes:
        if "runtimeinfo" in path:
            return json.dumps({"status": "success", "data": {"storageRetention": "40d or 90GiB"}}).encode()
        asked = {name: value for name, (value,) in parse_qs(urlparse(path).query).items()}
        found = [
            {"metric": labels, "value": [float(asked["time"]), str(value)]}
            for labels, value in self._answer(asked["query"], float(asked["time"]))
        ]
        return json.dumps({"status": "success", "data": {"resultType": "vector", "result": found}}).encode()

    def _answer(self, query: str, at: float) -> list[tuple[dict[str, str], float]]:
        if records.HELD in query:
            return self.held
        if records.QUOTA in query:
            return self.quota
        if query.startswith("max_over_time"):
            return [({}, self.interval)]
        (length,) = map(int, re.findall(r"\[(\d+)ms\]", query))
        day = datetime.fromtimestamp(at - 1, UTC).day
        recorded = length / 1000 - self.down.get(day, 0.0)
        return [({}, recorded)] if recorded else []


def of(recorded: Recorded, period: Period = NOVEMBER) -> Usage:
    return read(Prometheus(recorded.fetch), period)


class TestMonth:
    def test_it_is_a_whole_month_or_ends_now(self) -> None:
        now = datetime(2026, 12, 2, 3, 4, tzinfo=UTC)
        assert month("2026-11", now) == NOVEMBER
        assert month("2024-02", now).end == datetime(2024, 3, 1, tzinfo=UTC)
        assert month("2025-12", now).end == datetime(2026, 1, 1, tzinfo=UTC)
        assert month(None, now) == month("2026-12", now) == Period(begin=NOVEMBER.end, end=now)

    @pytest.mark.parametrize("wrong", ["2026-13", "november", "2027-01", "0000-01", "2026-11-01", ""])
    def test_other_months_are_refused(self, wrong: str) -> None:
        with pytest.raises(UsageError, match=f"^'?{wrong}'? (is not|has not)"):
            month(wrong, datetime(2026, 12, 2, tzinfo=UTC))


class TestRecords:
    def test_samples_become_hours_by_the_recorded_interval(self) -> None:
        held = [({**JOB, "user": "alice", "job_name": "train"}, 8 * 240.0), ({**JOB, "job_name": "old"}, 120.0)]
        found = of(Recorded(held, [({"namespace": "blue", "flavor": "h100"}, 16 * 86_400.0)]))
        assert found.held == [
            Held(team="blue", user="", kind="AppWrapper", job="old", flavor="h100", hours=1),
            Held(team="blue", user="alice", kind="AppWrapper", job="train", flavor="h100", hours=16.0),
        ]
        assert found.given == {("blue", "h100"): 16 * 30 * 24}
        assert found.missing == {}
        assert of(Recorded(held, interval=60)).held[1].hours == 32

    def test_time_without_records_is_missing_on_its_day(self) -> None:
        found = of(Recorded(down={1: 86_400, 2: 86_400, 7: 5400, 8: 30}))
        assert found.missing == {date(2026, 11, 1): 24, date(2026, 11, 2): 24, date(2026, 11, 7): 1.5}

    def test_without_any_record_every_hour_is_missing(self) -> None:
        found = read(Prometheus(lambda _: b'{"status": "success", "data": {"result": []}}'), NOVEMBER)
        assert sum(found.missing.values()) == 30 * 24
        assert warnings(report(found, "team", {}))[1:] == ["  2026-11-01 to 2026-11-30: all 720.0 hours"]

    def test_the_last_day_ends_now(self) -> None:
        now = datetime(2026, 11, 2, 6, tzinfo=UTC)
        days = month("2026-11", now).days()
        assert [day.seconds / 3600 for day in days] == [24, 6]
        assert of(Recorded(down={2: 6 * 3600}), month("2026-11", now)).missing == {date(2026, 11, 2): 6}

    @pytest.mark.parametrize(
        ("answer", "said"),
        [
            ("", "as expected"),
            ("<html>", "but with: <html>"),
            ("[]", "as expected"),
            ('{"message": "forbidden"}', "but with: .*forbidden"),
            ('{"status": "success"}', "as expected"),
            ('{"status": "success", "data": []}', "as expected"),
            ('{"status": "success", "data": {"result": [{"value": [0, "1"]}]}}', "as expected"),
            ('{"status": "success", "data": {"result": [{"metric": {}, "value": [0, "NaN"]}]}}', "NaN"),
            ('{"status": "error", "error": "too many samples"}', "too many samples"),
            ('{"kind": "Status", "status": "Failure", "message": "services is forbidden"}', "services is forbidden"),
        ],
    )
    def test_what_is_no_answer_is_an_error(self, answer: str, said: str) -> None:
        with pytest.raises(UsageError, match=said):
            read(Prometheus(lambda _: answer.encode()), NOVEMBER)

    def test_a_source_that_does_not_tell_its_retention_has_a_report(self) -> None:
        assert Prometheus(lambda _: b"404 page not found").retention() == ""


NAMES = st.sampled_from(["a", "b", "c", ""])
HELD = st.builds(
    Held,
    team=st.sampled_from(["blue", "red"]),
    user=NAMES,
    kind=st.sampled_from(["AppWrapper", "RayJob"]),
    job=NAMES,
    flavor=st.sampled_from(["h100", "a100"]),
    hours=st.floats(0, 1e4),
)


class TestReport:
    @given(st.lists(HELD, max_size=30))
    def test_jobs_users_and_teams_have_the_same_sums(self, held: list[Held]) -> None:
        given = {("blue", "h100"): 0.0, ("blue", "a100"): 0.0}
        usage = Usage(period=NOVEMBER, held=held, given=given, missing={})
        priced = {"h100": 2.0, "": 1.0}
        found = [report(usage, by, priced) for by in ("team", "user", "job")]
        for team in ("blue", "red"):
            for value in ("used", "cost"):
                sums = [sum(getattr(row, value) for row in each.rows if row.team == team) for each in found]
                assert sums == pytest.approx([sums[0]] * 3)
        assert [each.total.used for each in found] == pytest.approx([sum(each.hours for each in held)] * 3)

    HELD: ClassVar = [
        Held(team="blue", user="alice", kind="AppWrapper", job="train", flavor="h100", hours=16.0),
        Held(team="blue", user="", kind="PyTorchJob", job="train", flavor="h100", hours=4.0),
        Held(team="red", user="bob", kind="AppWrapper", job="<b>", flavor="a100", hours=0.5),
    ]
    USAGE: ClassVar = Usage(
        period=NOVEMBER,
        held=HELD,
        given={("blue", "h100"): 5760.0, ("green", "h100"): 720.0},
        missing={date(2026, 11, 1): 24, date(2026, 11, 2): 24, date(2026, 11, 7): 1.5, date(2026, 11, 9): 0.5},
    )

    def test_teams_have_what_they_used_and_were_given(self) -> None:
        assert text(report(self.USAGE, "team", {"": 2.0}, "40d or 90GiB")).splitlines() == [
            "GPU hours from 2026-11-01 00:00 to 2026-12-01 00:00 (UTC)",
            "  TEAM   POOL  USED   GIVEN    COST",
            "  blue   h100  20.00  5760.00  40.00",
            "  green  h100  0.00   720.00   0.00",
            "  red    a100  0.50   0.00     1.00",
            "  total        20.50  6480.00  41.00",
            f"Incomplete: 50.0 of 720.0 hours {LACK}. Prometheus keeps 40d or 90GiB.",
            "  2026-11-01 to 2026-11-02: all 48.0 hours",
            "  2026-11-07: 1.5 hours",
            "  2026-11-09: 0.5 hours",
        ]

    def test_users_have_the_jobs_that_name_them(self) -> None:
        rows = report(self.USAGE, "user", {}).rows
        assert [(row.team, row.user, row.used) for row in rows] == [
            ("blue", UNKNOWN, 4),
            ("blue", "alice", 16),
            ("red", "bob", 0.5),
        ]

    def test_a_sheet_has_month_and_missing_hours_in_each_row(self) -> None:
        assert sheet(report(self.USAGE, "job", {"h100": 2.5, "a100": 1})) == (
            "month,team,user,job,pool,used,cost,missing_hours\n"
            "2026-11,blue,(unknown),PyTorchJob/train,h100,4.00,10.00,50.00\n"
            "2026-11,blue,alice,AppWrapper/train,h100,16.00,40.00,50.00\n"
            "2026-11,red,bob,AppWrapper/<b>,a100,0.50,0.50,50.00\n"
        )

    def test_json_has_sums_and_missing_days(self) -> None:
        found = json.loads(content(report(self.USAGE, "team", {})))
        assert found["total"] == {"used": 20.5, "given": 6480}
        assert found["rows"][0] == {"team": "blue", "pool": "h100", "used": 20, "given": 5760}
        assert found["missingHours"][2] == {"day": "2026-11-07", "hours": 1.5}

    def test_the_page_escapes_names_and_warns(self) -> None:
        shown = page(report(self.USAGE, "job", {}))
        assert "AppWrapper/&lt;b&gt;" in shown
        assert '<p class="warning">Incomplete: 50.0 of 720.0 hours' in shown

    def test_a_pool_without_a_price_is_an_error(self) -> None:
        with pytest.raises(UsageError, match=r"pool a100 has no price.+--price a100=AMOUNT"):
            report(self.USAGE, "team", {"h100": 2})

    @pytest.mark.parametrize("wrong", ["", "h100=", "-1", "h100=nan", "inf", "two", "2,50"])
    def test_what_is_not_a_price_is_refused(self, wrong: str) -> None:
        with pytest.raises(UsageError, match="is not a price"):
            prices([wrong])
        assert prices(["h100=2.5", "1"]) == {"h100": 2.5, "": 1}

    def test_a_price_of_a_pool_without_records_is_an_error(self) -> None:
        with pytest.raises(UsageError, match=r"pool h10 has a price, .* Pools with records: a100, h100\."):
            report(self.USAGE, "team", {"h10": 2.5, "": 1.0})
        assert report(Usage(period=NOVEMBER, held=[], given={}, missing={}), "team", {"h100": 2.5}).rows == []


class Answers(BaseHTTPRequestHandler):
    """Prometheus's API with the records of `recorded`."""

    recorded: ClassVar = Recorded([({**JOB, "user": "alice", "job_name": "train"}, 120.0)])
    account: ClassVar = ""

    def do_GET(self) -> None:
        is_known = self.headers.get("Authorization", "") == self.account
        body = self.recorded.fetch(self.path) if is_known else b"<html>"
        self.send_response(200 if is_known else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name http.server uses
        """Keep requests out of the output."""


@pytest.fixture
def port() -> Iterator[int]:
    with serving(Answers) as found:
        yield found


class TestCommand:
    def test_it_asks_a_prometheus_by_its_url(self, port: int, capsys: pytest.CaptureFixture[str]) -> None:
        asked = ["usage", "--month", "2026-10", "--by", "user", "--prometheus", f"http://127.0.0.1:{port}/"]
        assert main(asked) == 0
        assert "blue   alice  h100  1.00" in capsys.readouterr().out

    def test_missing_records_are_1_in_each_format(
        self, port: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Answers, "recorded", Recorded(down={3: 7200}))
        for output in ("text", "json", "csv", "html"):
            asked = ["usage", "--month", "2026-10", "--prometheus", f"http://127.0.0.1:{port}", "--output", output]
            assert main([*asked, "--file", str(tmp_path / output)]) == 1
        assert "Prometheus keeps 40d or 90GiB." in (tmp_path / "text").read_text()
        assert capsys.readouterr().err == ""

    @pytest.mark.parametrize(
        "url",
        [
            "localhost:9090",
            "file:///etc/passwd",
            "http://127.0.0.1:1",
            "http://me:hidden@127.0.0.1:1",
            "me:hidden@localhost:9090",
            "http://me:hidden/x@localhost:9090",
        ],
    )
    def test_a_url_that_does_not_answer_is_2(self, url: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["usage", "--prometheus", url]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("error: ")
        assert "hidden" not in line

    def test_a_password_of_the_url_is_sent_and_not_shown(
        self, port: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Answers, "account", "Basic bWU6YS9i")  # me:a/b
        assert main(["usage", "--month", "2026-10", "--prometheus", f"http://me:a%2Fb@127.0.0.1:{port}/"]) == 0
        assert main(["usage", "--month", "2026-10", "--prometheus", f"http://me:other@127.0.0.1:{port}/"]) == 2
        assert capsys.readouterr().err == "error: Prometheus does not answer: HTTP 401 Unauthorized\n"

    def test_a_missing_right_is_one_line(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        with serving(Forbidden) as port:
            kubeconfig = kubeconfig_of(f"http://127.0.0.1:{port}", tmp_path)
            assert main(["usage", "--kubeconfig", str(kubeconfig)]) == 2
        assert capsys.readouterr().err == "error: the cluster does not answer as expected: alice is forbidden\n"


class Forbidden(Handler):
    """An API server that refuses everything."""

    def respond(self) -> None:
        self.answer(403, {"kind": "Status", "message": "alice is forbidden"})


class Platform:
    """A client of a cluster with the records, and of its pods."""

    def __init__(self, rules: list[Any], pods: list[Any]) -> None:
        self.resources, self.client, self.asked = self, object(), dict[str, Any]()
        self._kinds = {"PrometheusRule": rules, "Pod": pods}

    def get(self, resource: Any = None, **options: Any) -> Any:
        if resource is None:
            return options["kind"]
        self.asked[resource] = options
        return {"items": self._kinds[resource]}


class TestForwardedPort:
    RULE: ClassVar = {"metadata": {"namespace": "prometheus"}}
    POD: ClassVar = {"metadata": {"name": "prometheus-0"}, "status": {"phase": "Running"}}

    def test_the_platforms_prometheus_is_in_the_namespace_of_its_records(
        self, port: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        client: Any = Platform([self.RULE], [self.POD])
        forwarded = []

        def forward(_: Any, pod: str, namespace: str, ports: str) -> Any:
            forwarded.append((pod, namespace, ports))
            return Forwarded(port)

        monkeypatch.setattr(source, "portforward", forward)
        found = read(source.of_cluster(client), Period(begin=NOVEMBER.begin, end=datetime(2026, 11, 2, tzinfo=UTC)))
        assert [each.hours for each in found.held] == [1]
        assert set(forwarded) == {("prometheus-0", "prometheus", "9090")}
        assert client.asked["Pod"]["namespace"] == "prometheus"

    def test_a_port_that_cannot_be_forwarded_is_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        client: Any = Platform([self.RULE], [self.POD])
        monkeypatch.setattr(source, "portforward", lambda *_, **__: Forwarded(None))
        with pytest.raises(UsageError, match="connection refused in the pod"):
            source.of_cluster(client).query("1", 0)

    def test_a_refused_forward_is_told_without_headers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: Any, **__: Any) -> Any:
            raise ApiException(status=0, reason="Handshake status 403 Forbidden -+-+- {'audit-id': '1'} -+-+- {}")

        client: Any = Platform([self.RULE], [self.POD])
        monkeypatch.setattr(source, "portforward", refuse)
        with pytest.raises(UsageError, match=r"prometheus-0 cannot be forwarded: Handshake status 403 Forbidden$"):
            source.of_cluster(client).query("1", 0)

    @pytest.mark.parametrize(
        ("rules", "pods", "problem"),
        [
            ([], [], "no PrometheusRule mlbatch-usage"),
            ([RULE], [], "does not run: see `kubectl get pods --namespace prometheus`"),
            ([RULE], [{**POD, "status": {"phase": "Pending"}}], "does not run"),
        ],
    )
    def test_without_records_or_prometheus_it_is_an_error(self, rules: Any, pods: Any, problem: str) -> None:
        client: Any = Platform(rules, pods)
        with pytest.raises(UsageError, match=problem):
            source.of_cluster(client)


class Forwarded:
    """A forwarded port. port: of this machine, None for a closed one."""

    def __init__(self, port: int | None) -> None:
        ours, theirs = socket.socketpair()
        theirs.close()
        self._socket = ours if port is None else socket.create_connection(("127.0.0.1", port))

    def socket(self, _: int) -> Any:
        return self._socket

    def error(self, _: int) -> str | None:
        return "connection refused in the pod"

    def close(self) -> None:
        self._socket.close()


def test_the_command_and_the_rules_have_the_same_names() -> None:
    assert [rule["record"] for rule in usage.group()["rules"]] == [records.HELD, records.QUOTA, records.INTERVAL]
    assert {records.HELD, records.QUOTA, records.INTERVAL} <= metrics.KNOWN
    assert source.RULES == usage.RULES_NAME
    assert source.PORT == prometheus.PORT
    assert source.POD.partition("=")[2] == f"{accounts.RELEASE}-prometheus"


def test_shared_gpus_are_counted_where_nodes_offer_them() -> None:
    (_, quota, _) = usage.group(names.SHARED_GPU)["rules"]
    assert f'resource="{names.SHARED_GPU}"' in quota["expr"]
    values = prometheus.monitoring_values(monitoring(gpu_resource=names.SHARED_GPU))
    assert names.SHARED_GPU in str(values["kube-state-metrics"])
    assert names.GPU not in str(values["kube-state-metrics"])
