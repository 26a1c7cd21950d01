"""Thirty days of an AKS stack: ten updates, two failed nodes, two upgrades, a maintenance window.

No resource is replaced, AKS leaves no pool in state Failed, and a gang's pods end together or not at all.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from emulator.azure.__main__ import main
from emulator.azure.local_cluster import subscription
from emulator.azure.services.base import CLUSTER, POOL
from emulator.paths import Paths
from tests.emulator.azure.subscription import KEY
from tests.local.environment import Cluster, Project, eventually, gang, local_environment, stack_settings
from tests.local.jobs import APPWRAPPER, mark, pods_of
from tests.local.submission import submitted
from tests.local.test_aks import await_gpu_nodes, changed

pytestmark = [
    pytest.mark.emulated("Azure is emulated"),
    pytest.mark.soak("takes ten minutes; test_aks.py has each event alone"),
]

OLD, NEW = "1.34", "1.35"
NODES: Final = 4
PODS: Final = 2
HURRIED: Final = {"workload.codeflare.dev.appwrapper/failureGracePeriodDuration": "5s"}
UPDATES: Final[list[dict[str, Any]]] = [
    {"azure.apiServer.authorizedRanges": ["203.0.113.0/24"]},
    {"azure.gpuPool.count": NODES + 1},
    {"azure.access.adminGroups": ["99999999-8888-4777-8666-555555555555"]},
    {"azure.tags": {"cost": "research"}},
    {"azure.systemPool.count": 3},
    {"azure.tier": "Premium", "azure.support": "longTerm"},
    {"azure.upgrades.kubernetes": "patch"},
    {"azure.diagnostics.retentionDays": 60},
    {"storage.volumes": [{"name": "data", "container": "data"}, {"name": "corpus", "container": "corpus"}]},
    {"azure.sshPublicKey": KEY},
]


class Month:
    """One stack whose settings change from day to day, with one gang."""

    def __init__(self, project: Project, paths: Paths, cluster: Cluster) -> None:
        self.cluster = cluster
        self.day = 1
        self._project = project
        self._paths = paths
        start = {"azure.kubernetesVersion": OLD, "azure.gpuPool.count": NODES, "recovery.healthSeconds": 5}
        self._settings = changed(stack_settings("aks"), start)

    def update(self, **changes: Any) -> None:
        """Change settings. Fail if the preview would replace or delete a resource, or no resource would change."""
        self._settings = changed(self._settings, changes)
        self._project.configure(self._settings)
        planned = self._project.changes()
        print(f"day {self.day}: {planned if self.day > 1 else len(planned)}")
        if self.day > 1:
            assert set(planned.values()) <= {"create", "update"}, planned
            assert planned or "azure.sshPublicKey" in changes, f"{changes} has no effect"
        self._project.up()
        self.is_well()

    def is_well(self) -> None:
        """Fail if Azure reports a failure of the cluster or of a pool."""
        found = [each for each in subscription(self._paths).state().resources.values() if each.type in (CLUSTER, POOL)]
        states = {each.name: each.properties["provisioningState"] for each in found}
        assert states == dict.fromkeys(("mlbatch", "system", "ndv5"), "Succeeded")

    def azure(self, command: str, *arguments: str) -> None:
        """Change Azure without the engine."""
        assert main([command, "--state", str(self._paths.state), *arguments]) == 0
        self.is_well()

    def identities(self) -> dict[str, str]:
        """Return the Kubernetes UID, or else the ID, of each resource of the stack."""
        return {
            each["urn"]: (each.get("outputs", {}).get("metadata") or {}).get("uid") or each["id"]
            for each in self._project.resources()
            if each.get("id")
        }

    def pods(self) -> dict[str, str]:
        """Return the nodes of the gang's running pods, by uid."""
        pods = pods_of(self.cluster, "blue", "training")
        return {pod["metadata"]["uid"]: pod["spec"]["nodeName"] for pod in pods if pod["status"]["phase"] == "Running"}

    def retries(self) -> int:
        """Return how often AppWrapper restarted the gang because it had lost pods."""
        return int(self.cluster.existing(APPWRAPPER, "AppWrapper", "training", "blue")["status"].get("retries", 0))

    @contextmanager
    def undisturbed(self, day: int) -> Iterator[None]:
        """Fail if the context ends a pod of the gang."""
        self.day, before = day, self.pods()
        assert len(before) == PODS
        yield
        assert self.pods() == before, f"day {day}"

    @contextmanager
    def restarted(self, day: int, retries: int = 0) -> Iterator[str]:
        """Yield a node of the gang. Wait until all its pods are new ones.

        retries: how often it restarts because it lost a pod.
        """
        self.day, before, expected = day, self.pods(), self.retries() + retries
        assert len(before) == PODS
        yield next(iter(before.values()))
        eventually(
            f"day {day}: the whole gang runs again",
            self.pods,
            lambda now: len(now) == PODS and not now.keys() & before.keys(),
            seconds=300,
        )
        assert self.retries() == expected, f"day {day}"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Suspend the gang as a whole for the context."""
        self.update(**{"queueing.stopPolicy": "HoldAndDrain"})
        eventually("no pod of the gang runs", self.pods, lambda pods: not pods)
        yield
        assert not self.pods()
        self.update(**{"queueing.stopPolicy": "None"})


def test_nothing_is_replaced_and_no_gang_is_halved(tmp_path_factory: pytest.TempPathFactory) -> None:
    with local_environment() as paths:
        cluster = Cluster(paths.kubeconfig)
        project = Project(tmp_path_factory.mktemp("month"), paths, "aks")
        month = Month(project, paths, cluster)
        month.update()
        await_gpu_nodes(cluster, NODES)
        first = month.identities()
        training = gang("training", "blue", pods=PODS, gpus=8, annotations=HURRIED)
        training["spec"]["components"][0]["template"]["spec"]["backoffLimit"] = 0  # as the stack's own gangs
        with submitted(cluster, training):
            eventually("the gang runs", month.pods, lambda pods: len(pods) == PODS)
            for day, changes in enumerate(UPDATES[:5], start=2):
                with month.undisturbed(day):
                    month.update(**changes)
            with month.restarted(8) as node:
                mark(cluster, node, "EVICT")
            assert node not in month.pods().values()
            mark(cluster, node, None)
            for day, changes in enumerate(UPDATES[5:], start=10):
                with month.undisturbed(day):
                    month.update(**changes)
            with month.restarted(17, retries=1) as node:
                month.azure("remove", "--node", node)
            with month.undisturbed(18):
                month.update()
                await_gpu_nodes(cluster, NODES + 1)
            with month.restarted(20), month.held():
                month.update(**{"azure.kubernetesVersion": NEW})
            with month.restarted(24), month.held():
                month.azure("upgrade", "--pool", "system")
                month.azure("upgrade", "--pool", "ndv5")
            with month.undisturbed(28):
                month.azure("maintain")
            project.unchanged()
            assert first.items() <= month.identities().items()
        project.destroy()
