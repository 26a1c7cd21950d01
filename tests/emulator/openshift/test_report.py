"""The report of a local OpenShift lists what is simulated."""

from emulator.openshift.report import report


def test_a_plain_cluster_is_not_spoken_of() -> None:
    assert report([], [], [], []) == ""


def test_simulated_parts_are_listed_and_counted() -> None:
    version = {"status": {"desired": {"version": "4.21.0"}}}
    volumes = [{"spec": {"nfs": {"server": "nfs"}}}, {"spec": {"csi": {}}}]
    title, *notes = report([version], [{}, {}], volumes, []).splitlines()
    assert title == "OpenShift 4.21.0"
    said = "\n".join(notes)
    assert "OpenShift's own admission plugin" in said
    assert "without a router" in said
    assert "without folders" in said
    assert "missing: projects, users, groups, images, builds, Services' certificates; the GPU operator" in said
    assert "no OperatorHub" in said
    assert notes[-1] == "  simulated now: Routes 2, volumes 1"


def test_the_catalogs_of_operators_are_named_with_all_that_they_have() -> None:
    version = {"status": {"desired": {"version": "4.21.0"}}}
    catalogs = [{"metadata": {"name": name}} for name in ("certified-operators", "redhat-operators")]
    said = report([version], [], [], catalogs)
    assert "catalogs certified-operators, redhat-operators, which have only OpenShift AI and the GPU operator" in said
    assert "The three operators of OpenShift AI 3 are stubs" in said
    assert "no OperatorHub" not in said
