"""The platform on a cluster where somebody has installed Kueue by hand, with upstream's manifest as it is."""

from collections.abc import Iterator

import pytest
import yaml

from components import catalogue
from emulator.paths import Paths
from tests.local.environment import (
    DEFAULT_KUEUE,
    Cluster,
    Project,
    eventually,
    gang,
    local_environment,
    mirrored,
    stack_settings,
)
from tests.local.jobs import running
from tests.local.member import as_member, dry_run, refused

pytestmark = pytest.mark.emulated("another Kueue would run on the site's cluster")

NAMESPACE, NAME = "kueue-system", "kueue-controller-manager"


@pytest.fixture(scope="module")
def paths() -> Iterator[Paths]:
    """Yield a local cluster with the site's nodes, and with upstream's Kueue."""
    with local_environment(stack="existing") as paths:
        manifest = (paths.mirror / catalogue.find(catalogue.KUEUE, DEFAULT_KUEUE).file).read_text()
        cluster = Cluster(paths.kubeconfig)
        for document in yaml.load_all(manifest, Loader=yaml.CSafeLoader):
            cluster.create(document)
        eventually("Kueue is available", lambda: available(cluster))
        yield paths


def available(cluster: Cluster) -> bool:
    found = cluster.existing("apps/v1", "Deployment", NAME, NAMESPACE)
    return bool((found.get("status") or {}).get("availableReplicas"))


@pytest.fixture(scope="module")
def project(paths: Paths, tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("adopted"), paths, "existing")
    settings = stack_settings("existing")
    others = {"tenancy": {**settings.get("tenancy", {}), "protect": False}, **mirrored(project.mirror)}
    project.configure({**settings, **others})
    assert "set mlbatch:queueing.adopt to true to use this Kueue" in project.run("preview").stdout
    project.configure({**settings, **others, "queueing": {**settings.get("queueing", {}), "adopt": True}})
    project.up()
    return project


def test_a_team_gets_what_its_queue_of_this_kueue_admits(project: Project, cluster: Cluster) -> None:
    assert cluster.get("apps/v1", "Deployment", NAME, "mlbatch-system") is None
    running(cluster, "blue", "sample-gang", pods=2)
    (workload,) = cluster.list("kueue.x-k8s.io/v1beta2", "Workload", "blue")
    assert workload["status"]["admission"]["clusterQueue"] == "blue-cluster-queue"


def test_a_job_beyond_all_quotas_waits_and_its_member_cannot_start_it(
    project: Project, cluster: Cluster, paths: Paths
) -> None:
    queue = {"kueue.x-k8s.io/queue-name": "default-queue"}
    cluster.create(gang("too-large", "blue", pods=4, gpus=8, labels=queue))
    workloads = eventually(
        "its workload", lambda: cluster.list("kueue.x-k8s.io/v1beta2", "Workload", "blue"), lambda all_: len(all_) == 2
    )
    (waiting,) = [each for each in workloads if "too-large" in each["metadata"]["name"]]
    assert "admission" not in (waiting.get("status") or {})
    alice, wrapper = as_member(paths, "alice"), "workload.codeflare.dev/v1beta2"
    said = refused(alice.patch, wrapper, "AppWrapper", "too-large", {"spec": {"suspend": False}}, "blue")
    assert "by its queue alone" in said
    cluster.delete(wrapper, "AppWrapper", "too-large", "blue")


def test_a_member_cannot_use_a_queue_of_others(project: Project, paths: Paths) -> None:
    alice, label = as_member(paths, "alice"), "kueue.x-k8s.io/queue-name"
    dry_run(alice, gang("small", "blue", pods=1, gpus=1, labels={label: "default-queue"}))
    said = refused(dry_run, alice, gang("small", "blue", pods=1, gpus=1, labels={label: "default"}))
    assert "has the team's quota" in said


def test_a_second_preview_is_empty_and_destroy_leaves_kueue(project: Project, cluster: Cluster) -> None:
    project.unchanged()
    project.destroy()
    assert available(cluster)
