"""The list of attacks: each differs from a valid object, and has its own name."""

from attack.attacks import attacks, pod, valid_jobs
from tests.unit.conftest import ROOT


def test_each_attack_has_its_own_name_and_differs_from_what_is_valid() -> None:
    found = attacks()
    assert len({each.name for each in found}) == len(found)
    valid = [pod({}), *valid_jobs()]
    for each in found:
        assert (each.pod is None) != (each.object is None), each.name
        assert (each.pod or each.object) not in valid, each.name
        assert each.refusal, each.name
        assert each.gains, each.name


def test_a_change_of_a_kind_is_tried_in_an_appwrapper_and_alone() -> None:
    found = {each.name: each.object or {} for each in attacks()}
    wrapped, alone = found["RayJob in SidecarMode, wrapped"], found["RayJob in SidecarMode, alone"]
    inner = wrapped["spec"]["components"][1]["template"]
    assert (wrapped["kind"], inner["kind"], alone["kind"]) == ("AppWrapper", "RayJob", "RayJob")
    assert inner["spec"]["submissionMode"] == alone["spec"]["submissionMode"] == "SidecarMode"
    assert alone["spec"]["suspend"] is True
    assert alone["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "default-queue"}


def test_lists_of_objects_are_changed_one_by_one_and_null_removes_a_field() -> None:
    found = {each.name: each.object or {} for each in attacks()}
    job = found["limit without a request"]["spec"]["components"][0]["template"]
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["name"] == "main"
    assert container["resources"] == {"limits": {"cpu": "1"}}
    (workers,) = found["RayCluster with workers beyond its replicas, alone"]["spec"]["workerGroupSpecs"]
    assert (workers["groupName"], workers["replicas"], workers["minReplicas"]) == ("workers", 1, 16)


def test_the_pages_say_how_many_there_are() -> None:
    assert f"0 of {len(attacks())} go through." in (ROOT / "docs" / "attack.md").read_text()
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert f"tries more than {(len(attacks()) - 1) // 10 * 10} attacks" in readme
