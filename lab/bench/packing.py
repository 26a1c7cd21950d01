"""The losses of each way of packing on one trace: jobs, idle GPUs, and time after a node fails.

Four simulated nodes have eight GPUs each. Blue's quota is eight GPUs, red's eight, and the rest is slack. The trace:

1.  Blue submits eight jobs with one GPU. Then red submits one job with eight GPUs, inside its quota. Then blue submits
    a gang of two pods with eight GPUs each, which it borrows. All ten fit into GPUs and quota. A job that does not run
    in time gets two more tries.
2.  On the empty cluster red submits a job with eight GPUs, and the GPUs of its node are reported broken. AppWrapper
    recreates the pod. This is repeated with a node that an administrator also cordons.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from components import names
from components.scheduling.packing import Packing
from components.scheduling.pod_group import in_group, pod_group
from emulator.paths import Paths
from lab.bench.budget import Budget
from lab.pods import held, is_up
from tests.local.environment import Cluster, Project, dev_settings, eventually, gang
from tests.local.jobs import cordon, mark, phase, pods_of, running
from tests.local.submission import submitted

WAYS: Final = (Packing.NONE, Packing.COSCHEDULING, Packing.TOPOLOGY)
"""Without Sakkara, whose scheduler does not run in the local environment."""
NODES: Final = 4
GPUS_PER_NODE: Final = 8
SMALL: Final = 8
SECONDS: Final = 80
"""Seconds until the first part of the trace is evaluated; three tries of a job take less."""
PATIENCE: Final = 90
"""Seconds after which the second part's job counts as lost."""
_SECONDS: Final = 220.0
"""Approximate duration of the first row."""
_PREFIX: Final = "workload.codeflare.dev.appwrapper/"
TRIES: Final = {
    f"{_PREFIX}warmupGracePeriodDuration": "15s",
    f"{_PREFIX}failureGracePeriodDuration": "1s",
    f"{_PREFIX}retryPausePeriodDuration": "1s",
    f"{_PREFIX}retryLimit": "2",
}
_HEADER: Final = f"{'packing':12} | jobs run  failed  waiting  idle GPUs  half-started gangs "
HEADER: Final = f"{_HEADER}| {'sick node: up again after':24} | and cordoned: up again after"


def lines(paths: Paths, folder: Path, budget: Budget) -> Iterator[str]:
    """Run the trace with each way of packing; yield a table, row by row."""
    expected = _SECONDS
    project = Project(folder / "packing", paths, "packing")
    cluster = Cluster(paths.kubeconfig)
    yield HEADER
    for packing in WAYS:
        if not budget.allows(f"packing by {packing}", expected):
            continue
        began = time.monotonic()
        project.configure(bench_settings(project.mirror, packing))
        project.up()
        sick = [sick_node(cluster, packing, is_cordoned=is_cordoned) for is_cordoned in (False, True)]
        yield f"{packing:12} | {fragmentation(cluster, packing)} | {sick[0]:24} | {sick[1]}"
        expected = time.monotonic() - began
    project.destroy()


def bench_settings(mirror: Path | None, packing: Packing) -> dict[str, Any]:
    """Return the dev settings with four nodes and one way of packing."""
    settings = dev_settings(mirror)
    settings["nodes"]["count"] = NODES
    settings["queueing"]["slack"] |= {"cpu": 448, "memory": "4000G", names.GPU: (NODES - 2) * GPUS_PER_NODE}
    settings["recovery"] = {"retryPauseSeconds": 1, "recoveryTimeoutSeconds": 15, "healthSeconds": 5}
    settings["scheduling"] = {"packing": str(packing)}
    settings["samples"] = {}
    return settings


def fragmentation(cluster: Cluster, packing: Packing) -> str:
    """Run the first part; return its columns."""
    small = [job(packing, f"small-{index}", "blue", pods=1, gpus=1) for index in range(SMALL)]
    large = [
        job(packing, "whole", "red", pods=1, gpus=GPUS_PER_NODE),
        job(packing, "gang", "blue", pods=2, gpus=GPUS_PER_NODE),
    ]
    half = 0
    with submitted(cluster, *small):
        for wrapper in small:
            running(cluster, "blue", wrapper["metadata"]["name"], pods=1)
        with submitted(cluster, *large):
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                half = max(half, int(len(up(cluster, "blue", "gang")) == 1))
                time.sleep(1)
            jobs = [*small, *large]
            phases = [phase(cluster, *_identity(wrapper)) for wrapper in jobs]
            used = sum(gpus for wrapper in jobs for gpus in up(cluster, *_identity(wrapper)))
    run, failed = phases.count("Running"), phases.count("Failed")
    idle = NODES * GPUS_PER_NODE - used
    return f"{run:8}  {failed:6}  {len(jobs) - run - failed:7}  {idle:9}  {half:18}"


def sick_node(cluster: Cluster, packing: Packing, *, is_cordoned: bool) -> str:
    """Run the second part; return its column. is_cordoned: an administrator also cordons the node."""
    with submitted(cluster, job(packing, "whole", "red", pods=1, gpus=GPUS_PER_NODE)):
        running(cluster, "red", "whole", pods=1)
        (node,) = places(cluster)
        began = time.monotonic()
        mark(cluster, node, "EVICT")
        cordon(cluster, node, is_cordoned)
        try:
            eventually(
                "the job runs elsewhere",
                lambda: places(cluster),
                lambda found: bool(found) and node not in found,
                seconds=PATIENCE,
            )
        except AssertionError:
            return f"not in {PATIENCE} s ({phase(cluster, 'red', 'whole')})"
        else:
            return f"{time.monotonic() - began:.0f} s"
        finally:
            mark(cluster, node, None)
            cordon(cluster, node, False)


def job(packing: Packing, name: str, namespace: str, pods: int, gpus: int) -> dict[str, Any]:
    """Return a job as a user submits it. A gang has a PodGroup if the scheduler uses PodGroups."""
    wrapper = gang(name, namespace, pods, gpus, annotations=TRIES)
    if packing is Packing.COSCHEDULING and pods > 1:
        wrapped = wrapper["spec"]["components"][0]["template"]
        wrapper["spec"]["components"] = [
            {"template": item} for item in (pod_group(name, pods), in_group(name, wrapped))
        ]
    return wrapper


def up(cluster: Cluster, namespace: str, name: str) -> Sequence[int]:
    """Return the GPUs of each running pod of a job."""
    found = [pod for pod in pods_of(cluster, namespace, name) if pod["status"].get("phase") == "Running"]
    return [held(pod) for pod in found]


def places(cluster: Cluster) -> list[str]:
    """Return the nodes of the running pods of red's job."""
    return [pod["spec"]["nodeName"] for pod in pods_of(cluster, "red", "whole") if is_up(pod)]


def _identity(wrapper: dict[str, Any]) -> tuple[str, str]:
    return wrapper["metadata"]["namespace"], wrapper["metadata"]["name"]
