"""One update moves a stack from before Kueue 0.19 to this program while its jobs run, and one moves it a version back.

The first update runs the program of that time, with its Kueue and AppWrapper.
"""

import subprocess
import tarfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from components import names
from emulator import mirror
from emulator.paths import Paths
from emulator.progress import Progress
from emulator.toolchain import BEFORE, KUEUE_0_18, Toolchain
from tests.local.environment import ROOT, Cluster, Project, dev_settings, eventually, gang
from tests.local.jobs import KUEUE, phase, pods_of, running
from tests.local.member import as_member

pytestmark = pytest.mark.soak("it builds older versions of Kueue and of AppWrapper")

PROGRAM_OF_BEFORE = "9f4eafd9477239ecb8a651c6c5503c7a267a022a"
"""The last commit with Kueue 0.15."""
KINDS = ("ClusterQueue", "LocalQueue", "ResourceFlavor", "Workload")
OF_KUEUE = ".kueue.x-k8s.io"


@pytest.fixture(scope="module")
def project(make_project: Callable[[str], Project]) -> Project:
    return make_project("dev")


@pytest.fixture(scope="module")
def older(paths: Paths) -> None:
    """Install the older versions: programs for the kubelet, manifests for the mirror."""
    toolchain = Toolchain(paths)
    toolchain.install((BEFORE.need(), KUEUE_0_18.need()), Progress(0))
    for source in mirror.SOURCES:
        mirror.render(source, BEFORE, paths, toolchain)


def switch(project: Project, program: Path) -> None:
    """Make the project's stack use another program."""
    for name in ("__main__.py", "components", "stacks"):
        link = project.folder / name
        link.unlink()
        link.symlink_to(program / name)


def program_of_before(folder: Path) -> Path:
    """Return a folder with the old program."""
    command = ["git", "archive", "--format=tar", PROGRAM_OF_BEFORE, "__main__.py", "components", "stacks"]
    packed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def identities(cluster: Cluster, api: str = KUEUE) -> dict[str, str]:
    """Return the UID of each of Kueue's objects."""
    return {
        f"{kind}/{item['metadata'].get('namespace', '')}/{item['metadata']['name']}": item["metadata"]["uid"]
        for kind in KINDS
        for item in cluster.list(api, kind)
    }


def uids(pods: list[dict[str, Any]]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods}


def stored(cluster: Cluster) -> dict[str, list[str]]:
    """Return the stored versions of Kueue's kinds."""
    found = cluster.list("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    return {
        item["metadata"]["name"]: item["status"]["storedVersions"]
        for item in found
        if item["metadata"]["name"].endswith(OF_KUEUE)
    }


def manager(cluster: Cluster) -> str:
    """Return the image of the running Kueue."""
    (pod,) = cluster.list("v1", "Pod", names.SYSTEM_NAMESPACE, label_selector="app.kubernetes.io/name=kueue")
    return str(pod["spec"]["containers"][0]["image"])


def test_a_stack_moves_to_the_newer_kueue_and_back_by_one_version(
    project: Project, cluster: Cluster, paths: Paths, older: None, tmp_path: Path
) -> None:
    settings = {**dev_settings(project.mirror), "samples": {}}
    switch(project, program_of_before(tmp_path))
    project.configure({**settings, "queueing": {**settings.get("queueing", {}), "kueueVersion": "v0.15.2"}})
    project.up()
    assert manager(cluster).endswith(":v0.15.2")
    assert set(map(tuple, stored(cluster).values())) == {("v1beta1",)}

    alice, bob = as_member(paths, "alice"), as_member(paths, "bob")
    alice.create(gang("runs", "blue", pods=2, gpus=8))
    running(cluster, "blue", "runs", pods=2)
    bob.create(gang("small", "red", pods=1, gpus=8))
    running(cluster, "red", "small", pods=1)
    alice.create(gang("waits", "blue", pods=1, gpus=8))
    eventually("a job waits", lambda: phase(cluster, "blue", "waits"), lambda found: found == "Suspended")
    eventually("each has its Workload", lambda: cluster.list(KUEUE, "Workload"), lambda found: len(found) == 3)
    before, pods = identities(cluster), uids([*pods_of(cluster, "blue", "runs"), *pods_of(cluster, "red", "small")])

    switch(project, ROOT)
    project.configure(settings)
    planned = project.changes()
    assert {operation for operation in planned.values() if operation not in ("create", "update")} == set()
    project.up()
    project.unchanged()
    assert manager(cluster).endswith(":v0.19.2")
    assert identities(cluster) == before
    assert uids([*pods_of(cluster, "blue", "runs"), *pods_of(cluster, "red", "small")]) == pods
    assert set(map(tuple, stored(cluster).values())) == {("v1beta2",)}
    assert phase(cluster, "blue", "waits") == "Suspended"
    bob.delete("workload.codeflare.dev/v1beta2", "AppWrapper", "small", "red")
    running(cluster, "blue", "waits", pods=1)

    project.configure({**settings, "queueing": {**settings.get("queueing", {}), "kueueVersion": "v0.18.4"}})
    project.up()
    assert manager(cluster).endswith(":v0.18.4")
    assert uids(pods_of(cluster, "blue", "runs")) <= pods
    alice.delete("workload.codeflare.dev/v1beta2", "AppWrapper", "waits", "blue")
    bob.create(gang("later", "red", pods=1, gpus=8))
    running(cluster, "red", "later", pods=1)
    running(cluster, "blue", "runs", pods=2)
    project.destroy()
