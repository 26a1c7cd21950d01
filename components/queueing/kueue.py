"""Kueue: decides by quota, priority and fair share which job runs when.

The configuration is MLBatch's (project-codeflare/mlbatch, `setup.k8s/kueue/controller_manager_config.yaml` and its
patches), in Kueue's configuration API config.kueue.x-k8s.io/v1beta2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import pulumi
import yaml

from components import names
from components.artifacts import Release
from components.job_kinds import APPWRAPPER, QUEUED
from components.kubernetes.controller import ONE_REPLICA, ControllerPods
from components.kubernetes.manifests import Document
from components.kubernetes.resources import Resources
from components.queueing.operators import Operator, OperatorLayer, install

CONFIG_MAP: Final = "kueue-manager-config"
CONFIG_KEY: Final = "controller_manager_config.yaml"
APPWRAPPER_KIND: Final = f"{APPWRAPPER.kind}.{APPWRAPPER.group}"
"""Name of the kind and its group in Kueue's configuration."""

FRAMEWORKS: Final = tuple(kind.framework for kind in QUEUED)
"""The kinds of jobs that Kueue queues, as its configuration names them."""

UNCOUNTED: Final = (f"{names.SHARED_INFINIBAND.partition('/')[0]}/", names.DISK)
"""Prefixes of resources that no quota counts. Kueue would never admit a job that requests one of them, because no queue
covers it. Every pod of a node may have the shared InfiniBand ports, so a quota has no meaning. Disk belongs to one
node, and the scheduler counts requests for it there."""

BACKOFF_SECONDS: Final = (10, 300)
"""Seconds that an evicted job waits before it is requeued: the first wait and the longest. Each wait is twice as long
as the one before. Kueue's default of one minute would leave the owner below its quota a minute longer. Its default of
one hour exceeds most losses."""

REQUEUES: Final = 50
"""How often a job is requeued because its pods did not run: a day and a half, with 35 minutes for each try. Kueue does
not reset this count, so it must exceed the number of nodes that a long job may lose. An AppWrapper that never runs
fails earlier, by its own retries. A job of another kind would preempt newer jobs of its team forever, because its
position depends on its creation time (Kueue v0.19.2, `pkg/controller/core/workload_controller.go`,
triggerDeactivation)."""

CLIENT: Final[Mapping[str, int]] = {"qps": 300, "burst": 500}
"""Kueue's limits for requests to the API server: requests a second, and requests in a burst. Kueue v0.18 has 20 and 30
by default, and gets the defaults of v0.19 here (`apis/config/v1beta2/defaults.go`)."""

GATES_BEFORE: Final[Mapping[str, bool]] = {"ElasticJobsViaWorkloadSlices": False, "FinishOrphanedWorkloads": False}
"""Feature gates of Kueue before v0.19 that differ from its defaults. Elastic jobs are off: an elastic RayCluster with
fewer `replicas` returns quota for workers that still run (docs/decisions/2026-11-26-no-elastic-jobs.md).
FinishOrphanedWorkloads is off: Kueue treats the Workload of a job that is being deleted as orphaned, although its pods
still end (`pkg/controller/jobframework/reconciler.go`)."""
GATES: Final[Mapping[str, bool]] = {"PrioritizePreemptorWorkloads": True, **GATES_BEFORE}
"""The same for Kueue v0.19. Without PrioritizePreemptorWorkloads, an owner that borrows CPUs never reclaims its GPUs.
Its job evicts a borrower with a smaller share. The borrower is therefore admitted again first, and evicted again
(`pkg/scheduler/fair_sharing_iterator.go`; kubernetes-sigs/kueue#13662)."""

_SAMPLING_SECONDS: Final = 300
RESOURCES: Final = Resources(cpu_request="500m", memory_request="512Mi", cpu_limit="2", memory_limit="2Gi")
"""Upstream's values (config/components/manager/manager.yaml)."""
_OWN_KINDS: Final = frozenset({"clusterqueue", "cohort", "resourceflavor", "workload"})


@dataclass(frozen=True, kw_only=True)
class PodsReady:
    """When a job whose pods do not run is evicted and requeued.

    start_seconds: seconds after its admission.
    recovery_seconds: seconds after running pods are lost, including AppWrapper's pause before it recreates them.
    """

    start_seconds: int = 35 * 60
    recovery_seconds: int = 300


@dataclass(frozen=True, kw_only=True)
class FairSharing:
    """How Kueue weighs the use of users, in teams that enable it.

    half_life_minutes: minutes until past use counts half.
    resource: the only resource that counts.
    """

    half_life_minutes: int = 7 * 24 * 60
    resource: str = names.GPU

    def body(self) -> Mapping[str, Any]:
        """Return Kueue's `admissionFairSharing`.

        Kueue adds up the amounts of all resources, with memory in bytes, unless each has a weight. It samples every
        five minutes by default. Here it samples at least twenty times in a half-life.
        """
        return {
            "usageHalfLifeTime": f"{self.half_life_minutes}m",
            "usageSamplingInterval": f"{min(_SAMPLING_SECONDS, self.half_life_minutes * 60 // 20)}s",
            "resourceWeights": {
                **{name: 0 for name in names.RESOURCES if name != self.resource},
                self.resource: 1,
            },
        }


@dataclass(frozen=True, kw_only=True)
class KueueArgs:
    """The arguments of Kueue.

    kinds: kinds of jobs whose operators are installed first. Kueue restarts when one is added.
    pods_ready: when a job whose pods do not run is requeued.
    fair_sharing: among users of a team. None if no team enables it.
    """

    release: Release
    kinds: Sequence[str] = ()
    pods_ready: PodsReady = PodsReady()
    gates: Mapping[str, bool] = field(default_factory=lambda: GATES)
    fair_sharing: FairSharing | None = None
    pods: ControllerPods = ONE_REPLICA


class Kueue(OperatorLayer):
    """Install Kueue into mlbatch-system, which must exist. Creates no queue.

    It installs only the webhooks of enabled frameworks and of Kueue's own kinds. The webhooks for pods, Jobs,
    Deployments and StatefulSets fail closed. While Kueue is down, they would block all workloads of the cluster,
    including Kueue.
    """

    def __init__(self, name: str, args: KueueArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:queueing:Kueue", name, None, opts)
        self._install(name, args.release.manifest, _operator(args), lambda document: edit(document, args))


def edit(document: Document, args: KueueArgs) -> Document | None:
    """Return a document of Kueue's manifest as MLBatch installs it, or None if MLBatch omits it."""
    result = install(document, _operator(args))
    if result is not None and result["kind"].endswith("WebhookConfiguration"):
        result["webhooks"] = [webhook for webhook in result["webhooks"] if _is_wanted(webhook["name"])]
    return result


def _operator(args: KueueArgs) -> Operator:
    return Operator(
        name="kueue",
        upstream_namespace="kueue-system",
        images=args.release.images,
        resources=RESOURCES,
        pods=args.pods,
        config_map=CONFIG_MAP,
        config_key=CONFIG_KEY,
        config=_config(args.pods_ready, tuple(args.gates.items()), args.fair_sharing),
        kinds=args.kinds,
    )


@cache
def _config(pods_ready: PodsReady, gates: tuple[tuple[str, bool], ...], fair_sharing: FairSharing | None) -> str:
    """Return the text of the manager's configuration file. Cached, because each document of the manifest needs it."""
    return yaml.safe_dump(configuration(pods_ready, dict(gates), fair_sharing), sort_keys=False)


def configuration(
    pods_ready: PodsReady = PodsReady(), gates: Mapping[str, bool] = GATES, fair_sharing: FairSharing | None = None
) -> Mapping[str, Any]:
    """Return the manager's configuration. Fields and defaults: Kueue `apis/config/v1beta2/configuration_types.go`.

    MLBatch omits `waitForPodsReady`, which turns it off. Here it is on. Otherwise a job that lost its node would wait
    forever for GPUs that others have borrowed. An evicted job is requeued at its position by creation time, and
    reclaims them. AppWrapper counts a job's own failures. A job outside AppWrappers ends after REQUEUES tries
    (docs/recovery.md).

    The numbers of workers are upstream's (`config/components/manager/controller_manager_config.yaml`). Upstream sets
    none for AppWrappers, and with its default of one worker, admission waits for it (docs/benchmarks.md).
    """
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": names.SYSTEM_NAMESPACE,
        "health": {"healthProbeBindAddress": ":8081"},
        "metrics": {"bindAddress": ":8443", "enableClusterQueueResources": True},
        "webhook": {"port": 9443},
        "leaderElection": {"leaderElect": True, "resourceName": "c1f6bfd2.kueue.x-k8s.io"},
        "controller": {
            "groupKindConcurrency": {
                APPWRAPPER_KIND: 10,
                "Workload.kueue.x-k8s.io": 10,
                "LocalQueue.kueue.x-k8s.io": 5,
                "Cohort.kueue.x-k8s.io": 1,
                "ClusterQueue.kueue.x-k8s.io": 5,
                "ResourceFlavor.kueue.x-k8s.io": 1,
            }
        },
        "clientConnection": dict(CLIENT),
        "waitForPodsReady": {
            "timeout": f"{pods_ready.start_seconds}s",
            "recoveryTimeout": f"{pods_ready.recovery_seconds}s",
            "blockAdmission": False,
            "requeuingStrategy": {
                "timestamp": "Creation",
                "backoffLimitCount": REQUEUES,
                "backoffBaseSeconds": BACKOFF_SECONDS[0],
                "backoffMaxSeconds": BACKOFF_SECONDS[1],
            },
        },
        "manageJobsWithoutQueueName": True,
        "managedJobsNamespaceSelector": {"matchLabels": {names.TEAM_LABEL: "true"}},
        "integrations": {"frameworks": list(FRAMEWORKS)},
        "resources": {"excludeResourcePrefixes": list(UNCOUNTED)},
        "fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]},
        **({"admissionFairSharing": fair_sharing.body()} if fair_sharing is not None else {}),
        "featureGates": dict(gates),
    }


def _is_wanted(webhook: str) -> bool:
    """Return whether a webhook is for an enabled framework or for one of Kueue's kinds.

    Upstream names webhooks `m<kind>.kb.io` and `v<kind>.kb.io` (mutating, validating), and frameworks `<group>/<kind>`.
    """
    kind = webhook.removesuffix(".kb.io")[1:]
    return kind in _OWN_KINDS or kind in {framework.rpartition("/")[2] for framework in FRAMEWORKS}
