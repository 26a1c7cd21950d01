"""The report of Helm's releases, with simulated pods and stubs."""

from typing import Any

from emulator.charts import releases
from emulator.charts.releases import Release
from emulator.charts.report import is_simulated, report, rows
from tests.emulator.charts.secrets import release_secret

NO_PROCESS = {"phase": "Running", "reason": "Simulated", "containerStatuses": [{"imageID": ""}]}
REAL = {"phase": "Running", "containerStatuses": [{"imageID": "local/kueue"}]}
SIMULATED = {"phase": "Running", "containerStatuses": [{"imageID": ""}]}


def pod(namespace: str, instance: str, status: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"namespace": namespace, "labels": {"app.kubernetes.io/instance": instance}}, "status": status}


def test_a_release_secret_is_decoded() -> None:
    found = Release.of(release_secret(revision=3))
    assert (found.name, found.namespace, found.revision, found.status) == ("r", "ns", 3, "deployed")
    assert (found.chart, found.version) == ("chart", "1.2.3")


def test_the_newest_revision_counts_by_number() -> None:
    secrets = [release_secret(revision=number) for number in (2, 10, 9)]
    assert [release.revision for release in releases.newest(secrets)] == [10]


def test_only_pods_without_a_process_are_simulated() -> None:
    assert [is_simulated(pod("ns", "r", status)) for status in (NO_PROCESS, REAL, SIMULATED)] == [True, False, True]
    assert not is_simulated(pod("ns", "r", {"phase": "Pending", "reason": "Simulated"}))


def test_simulated_pods_are_counted_for_their_release() -> None:
    secrets = [release_secret("a", "one"), release_secret("b", "two", stub_of="https://x"), release_secret("c", "two")]
    pods = [
        pod("one", "", NO_PROCESS),  # the only release of its namespace
        pod("one", "other", SIMULATED),
        pod("two", "b", NO_PROCESS),
        pod("two", "", NO_PROCESS),  # of b or of c, so it is not counted
        pod("two", "c", REAL),
    ]
    assert [(row[0], row[5], row[6]) for row in rows(secrets, pods)] == [
        ("a", "rendered", "2"),
        ("b", "stub", "1"),
        ("c", "rendered", "0"),
    ]


def test_the_report_explains_stubs_only_if_a_release_is_one() -> None:
    assert "are copied from upstream" in report([release_secret(stub_of="https://x")], [])
    assert "are copied from upstream" not in report([release_secret()], [])
    assert report([], []) == ""
