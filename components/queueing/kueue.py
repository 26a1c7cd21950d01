"""Kueue: decides which job runs when, by quota, priority and fair share.

Configured as MLBatch configures it (project-codeflare/mlbatch, `setup.k8s/kueue/controller_manager_config.yaml` and
its patches), in the words of Kueue's configuration API config.kueue.x-k8s.io/v1beta2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import pulumi
import yaml

from components import names
from components.artifacts import Release
from components.job_kinds import APPWRAPPER, QUEUED
from components.kubernetes.manifests import Document, Manifests, ManifestsArgs
from components.kubernetes.placement import ANYWHERE, NodeGroup
from components.kubernetes.resources import Resources
from components.layer import Layer
from components.queueing.operators import Operator, install, register_budget

CONFIG_MAP: Final = "kueue-manager-config"
CONFIG_KEY: Final = "controller_manager_config.yaml"
APPWRAPPER_KIND: Final = f"{APPWRAPPER.kind}.{APPWRAPPER.group}"
"""As Kueue's configuration names a kind: that and its group."""

FRAMEWORKS: Final = tuple(kind.framework for kind in QUEUED)
"""The kinds of jobs that Kueue queues, as its configuration names them."""

UNCOUNTED: Final = (f"{names.SHARED_INFINIBAND.partition('/')[0]}/", names.DISK)
"""Prefixes of resources that no quota counts. Kueue would otherwise never admit a job that asks for one, because no
queue covers it. Every pod of a node may have the shared InfiniBand ports, so that there is nothing to count. Disk is
each node's own, and the scheduler counts there what pods ask for."""

BACKOFF_SECONDS: Final = (10, 300)
"""How long an evicted job waits before it is queued again: at first, and at most; twice as long each time. Kueue's own
minute would be a minute more below quota, and its hour longer than most losses last."""

REQUEUES: Final = 50
"""How many times a job is queued again because its pods did not run: a day and a half, with a try of 35 minutes each.
Kueue never counts anew while the job lives, so that it is far more than the nodes that a long job may lose. An
AppWrapper that never runs has failed by then, of its own retries; another kind would preempt newer jobs of its team for
ever, for it stands where it stood by its creation (Kueue v0.19.2, `pkg/controller/core/workload_controller.go`,
triggerDeactivation)."""

CLIENT: Final[Mapping[str, int]] = {"qps": 300, "burst": 500}
"""How much Kueue may ask of the API server, in requests a second and in a row: the defaults of Kueue v0.19, for v0.18,
too, which has 20 and 30 (`apis/config/v1beta2/defaults.go`)."""

GATES_BEFORE: Final[Mapping[str, bool]] = {"ElasticJobsViaWorkloadSlices": False, "FinishOrphanedWorkloads": False}
"""Features of Kueue before v0.19 that are not as by default. Elastic jobs are off: an elastic RayCluster with fewer
`replicas` gives quota back for workers that run on (docs/decisions/2026-11-26-no-elastic-jobs.md). Orphaned workloads
are not finished: Kueue takes those of a job that is being deleted for such, whose pods still end
(`pkg/controller/jobframework/reconciler.go`)."""
GATES: Final[Mapping[str, bool]] = {"PrioritizePreemptorWorkloads": True, **GATES_BEFORE}
"""The same of Kueue v0.19. Without the first one, an owner that borrows CPUs never gets its own GPUs back: its job
evicts a borrower, whose share is the smaller one, so that the borrower is admitted again first, and is evicted again
(`pkg/scheduler/fair_sharing_iterator.go`; kubernetes-sigs/kueue#13662)."""

_SAMPLING_SECONDS: Final = 300
RESOURCES: Final = Resources(cpu_request="500m", memory_request="512Mi", cpu_limit="2", memory_limit="512Mi")
_OWN_KINDS: Final = frozenset({"clusterqueue", "cohort", "resourceflavor", "workload"})


@dataclass(frozen=True, kw_only=True)
class PodsReady:
    """When a job gives its quota back because its pods do not run, and is queued again.

    start_seconds: after it was admitted. recovery_seconds: after pods that ran have gone; AppWrapper's pause before it
    makes them anew is part of it.
    """

    start_seconds: int = 35 * 60
    recovery_seconds: int = 300


@dataclass(frozen=True, kw_only=True)
class FairSharing:
    """How what users have used is weighed, in teams whose queues ask for it.

    half_life_minutes: after which use counts half. resource: the only one that counts.
    """

    half_life_minutes: int = 7 * 24 * 60
    resource: str = names.GPU

    def body(self) -> Mapping[str, Any]:
        """Return Kueue's `admissionFairSharing`.

        Kueue adds up amounts of all resources, memory in bytes, unless each has a weight. It samples every five minutes
        by default, and here at least twenty times in a half-life.
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
    """What to install.

    release: upstream's manifest file and images.
    kinds: of jobs whose operators are installed before; Kueue is restarted when one is added.
    pods_ready: when a job whose pods do not run is queued again. replicas: of the manager.
    gates: features that are switched on or off. fair_sharing: among users of a team; None where no team asks for it.
    resources: of the manager, by default upstream's (config/components/manager/manager.yaml). nodes: for services.
    """

    release: Release
    kinds: Sequence[str] = ()
    pods_ready: PodsReady = PodsReady()
    replicas: int = 1
    gates: Mapping[str, bool] = field(default_factory=lambda: GATES)
    fair_sharing: FairSharing | None = None
    resources: Resources = RESOURCES
    nodes: NodeGroup = ANYWHERE


class Kueue(Layer):
    """Install Kueue into mlbatch-system, which must exist.

    Only the webhooks of enabled frameworks and of Kueue's own kinds are installed. Those for pods, Jobs, Deployments
    and StatefulSets fail closed: while Kueue is down, they would block every workload of the cluster, Kueue's own among
    them. Creates no queue.
    """

    ready: Sequence[pulumi.Resource]
    """Depend on these to create objects of Kueue's kinds: its controller is available and its webhooks answer."""

    def __init__(self, name: str, args: KueueArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:queueing:Kueue", name, None, opts)
        manifests = Manifests(
            name,
            ManifestsArgs(text=args.release.manifest, edit=lambda document: edit(document, args)),
            pulumi.ResourceOptions(parent=self),
        )
        register_budget(self, name, _operator(args))
        self.ready = manifests.ready
        self.register_outputs({})


def edit(document: Document, args: KueueArgs) -> Document | None:
    """Return a document of Kueue's manifest as MLBatch installs it, or None for one that it leaves out."""
    result = install(document, _operator(args))
    if result is not None and result["kind"].endswith("WebhookConfiguration"):
        result["webhooks"] = [webhook for webhook in result["webhooks"] if _is_wanted(webhook["name"])]
    return result


def _operator(args: KueueArgs) -> Operator:
    return Operator(
        name="kueue",
        upstream_namespace="kueue-system",
        images=args.release.images,
        resources=args.resources,
        replicas=args.replicas,
        nodes=args.nodes,
        config_map=CONFIG_MAP,
        config_key=CONFIG_KEY,
        config=_config(args.pods_ready, tuple(args.gates.items()), args.fair_sharing),
        kinds=args.kinds,
    )


@cache
def _config(pods_ready: PodsReady, gates: tuple[tuple[str, bool], ...], fair_sharing: FairSharing | None) -> str:
    """Return the manager's configuration as its file, which is asked for with each document of the manifest."""
    return yaml.safe_dump(configuration(pods_ready, dict(gates), fair_sharing), sort_keys=False)


def configuration(
    pods_ready: PodsReady = PodsReady(), gates: Mapping[str, bool] = GATES, fair_sharing: FairSharing | None = None
) -> Mapping[str, Any]:
    """Return the manager's configuration. Fields and defaults: Kueue `apis/config/v1beta2/configuration_types.go`.

    MLBatch leaves `waitForPodsReady` out, which turns it off; here it is on, because a job whose node was lost would
    wait for ever for GPUs that others have on loan. Evicted, it is queued again where it stood by its creation, and
    reclaims them. AppWrapper counts the failures that are the job's own; what is in none ends after REQUEUES tries
    (docs/recovery.md).

    The numbers of workers are upstream's (`config/components/manager/controller_manager_config.yaml`), which has none
    for AppWrappers: with one, admission waits for it (docs/benchmarks.md).
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
    """Whether a webhook is for an enabled framework or for a kind of Kueue's own.

    Upstream names webhooks `m<kind>.kb.io` and `v<kind>.kb.io` (mutating, validating), and frameworks `<group>/<kind>`.
    """
    kind = webhook.removesuffix(".kb.io")[1:]
    return kind in _OWN_KINDS or kind in {framework.rpartition("/")[2] for framework in FRAMEWORKS}
