"""The report says of a local OpenShift what is played."""

from __future__ import annotations

from emulator.openshift.report import report


def test_a_plain_cluster_is_not_spoken_of() -> None:
    assert report([], [], [], []) == ""


def test_what_is_played_is_said_and_counted() -> None:
    version = {"status": {"desired": {"version": "4.21.0"}}}
    volumes = [{"spec": {"nfs": {"server": "nfs"}}}, {"spec": {"csi": {}}}]
    title, *notes = report([version], [{}, {}], volumes, []).splitlines()
    assert title == "OpenShift 4.21.0"
    said = "\n".join(notes)
    assert "OpenShift's own admission plugin" in said
    assert "no router answers" in said
    assert "no folder is made" in said
    assert "not here: projects, users, groups, images, builds, Services' certificates; the GPU operator" in said
    assert "no OperatorHub" in said
    assert notes[-1] == "  played now: Routes 2, volumes 1"


def test_the_catalogs_of_operators_are_named_with_all_that_they_have() -> None:
    version = {"status": {"desired": {"version": "4.21.0"}}}
    catalogs = [{"metadata": {"name": name}} for name in ("certified-operators", "redhat-operators")]
    said = report([version], [], [], catalogs)
    assert "catalogs certified-operators, redhat-operators, which have OpenShift AI and the GPU operator alone" in said
    assert "no OperatorHub" not in said
