"""MLBatch's changes of OpenShift AI: files that replace those in its operator's image.

Source: project-codeflare/mlbatch, `setup.RHOAI-v2.16` to `setup.RHOAI-v2.21`, `mlbatch-subscription.yaml`. The
docstrings below have the reasons for differences.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import yaml

from components import names
from components.catalogue import OpenShiftAi
from components.compatibility import numbers
from components.job_kinds import APPWRAPPER
from components.kubernetes.manifests import Document
from components.kubernetes.objects import config_map
from components.queueing import job_operators
from components.queueing.appwrapper import AUTOPILOT_TAINTS
from components.queueing.fault_tolerance import DEFAULTS, FaultTolerance
from components.queueing.kueue import APPWRAPPER_KIND, BACKOFF_SECONDS, CLIENT, REQUEUES, UNCOUNTED
from components.scripts import script

MANIFESTS: Final = "/opt/manifests"
"""Where the operator's image has the manifests of all components."""
CODEFLARE: Final = "codeflare-operator-config"
"""ConfigMap with the configuration of the CodeFlare operator, which contains AppWrapper."""

_KUEUE_CONFIG: Final = "controller_manager_config.yaml"
_PATCH: Final = "manager_config_patch.yaml"
_RAY_PATCH: Final = "kuberay-operator-image-patch.yaml"
_MANAGER: Final = "manager.yaml"
_QUEUES_APPWRAPPERS: Final = (0, 11)


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """The configuration of the operators.

    scheduler: of wrapped jobs that name none. Empty selects the cluster's default.
    binds_gangs: this scheduler binds PodGroups.
    start_seconds: an admitted job whose pods do not run within this time returns its quota.
    fault_tolerance: of jobs.
    """

    release: OpenShiftAi
    scheduler: str = ""
    binds_gangs: bool = False
    start_seconds: int = 35 * 60
    fault_tolerance: FaultTolerance = DEFAULTS

    @property
    def namespaces_of_teams_alone(self) -> bool:
        """True if this Kueue can ignore jobs without a queue outside the teams' namespaces (from 0.10 on)."""
        return not self.release.patched_whole

    @property
    def queues_appwrappers(self) -> bool:
        """Whether Kueue queues AppWrappers itself, from 0.11 on (kubernetes-sigs/kueue, CHANGELOG-0.11.md)."""
        return numbers(self.release.kueue) >= _QUEUES_APPWRAPPERS


@dataclass(frozen=True)
class Replaced:
    """A file of the operator's image that a ConfigMap replaces: the ConfigMap, its key, and the file's path."""

    config_map: str
    key: str
    path: str


def replaced(release: OpenShiftAi) -> list[Replaced]:
    """Return the files of a release that are replaced."""
    kueue, training = "mlbatch-kueue", "mlbatch-training-operator"
    found = [Replaced(kueue, _KUEUE_CONFIG, f"{MANIFESTS}/kueue/components/manager/{_KUEUE_CONFIG}")]
    if release.patched_whole:
        found = [
            Replaced("mlbatch-codeflare", _MANAGER, f"{MANIFESTS}/codeflare/manager/{_MANAGER}"),
            Replaced("mlbatch-kuberay", _RAY_PATCH, f"{MANIFESTS}/ray/openshift/{_RAY_PATCH}"),
            *found,
            Replaced(kueue, _PATCH, f"{MANIFESTS}/kueue/rhoai/{_PATCH}"),
        ]
    return [*found, Replaced(training, _PATCH, f"{MANIFESTS}/trainingoperator/rhoai/{_PATCH}")]


def config_maps(args: Configuration, namespace: str, applications: str) -> Iterator[Document]:
    """Yield the ConfigMaps, first those in the operator's namespace."""
    data: dict[str, dict[str, str]] = {}
    patches = deployments(args)
    for file in replaced(args.release):
        content = kueue(args) if file.key == _KUEUE_CONFIG else patches[file.config_map]
        data.setdefault(file.config_map, {})[file.key] = _text(content)
    for name, files in data.items():
        yield config_map(name, namespace, files)
    yield config_map(CODEFLARE, applications, {"config.yaml": _text(codeflare(args))})


def kueue(args: Configuration) -> Document:
    """Return Kueue's configuration.

    An admitted job that does not run returns its quota after some time, which MLBatch has turned off. This gives lent
    quota back to its owner after a loss of nodes (components/tenancy/slack.py). The limits for API requests are those
    of the platform's Kueue. MLBatch's are 50 and 100.
    """
    teams = {"matchLabels": {names.TEAM_LABEL: "true"}}
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta1",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": ":8081"},
        "metrics": {"bindAddress": ":8443", "enableClusterQueueResources": True},
        "webhook": {"port": 9443},
        "leaderElection": {"leaderElect": True, "resourceName": "c1f6bfd2.kueue.x-k8s.io"},
        "controller": {
            "groupKindConcurrency": {
                "Job.batch": 5,
                "Pod": 5,
                f"Workload.{names.KUEUE_GROUP}": 5,
                f"LocalQueue.{names.KUEUE_GROUP}": 1,
                **({} if args.release.patched_whole else {f"Cohort.{names.KUEUE_GROUP}": 1}),
                f"ClusterQueue.{names.KUEUE_GROUP}": 1,
                f"ResourceFlavor.{names.KUEUE_GROUP}": 1,
                **({APPWRAPPER_KIND: 10} if args.queues_appwrappers else {}),
            }
        },
        "clientConnection": dict(CLIENT),
        "waitForPodsReady": pods_ready(args),
        "manageJobsWithoutQueueName": True,
        **({"managedJobsNamespaceSelector": teams} if args.namespaces_of_teams_alone else {}),
        "integrations": {
            "frameworks": [
                "kubeflow.org/mpijob",
                "ray.io/rayjob",
                "ray.io/raycluster",
                "jobset.x-k8s.io/jobset",
                *([] if args.queues_appwrappers else ["kubeflow.org/mxjob"]),
                "kubeflow.org/paddlejob",
                "kubeflow.org/pytorchjob",
                "kubeflow.org/tfjob",
                "kubeflow.org/xgboostjob",
                *([APPWRAPPER.framework] if args.queues_appwrappers else []),
            ],
            **(
                {}
                if args.queues_appwrappers
                else {"externalFrameworks": [f"{APPWRAPPER.kind}.{APPWRAPPER.version}.{APPWRAPPER.group}"]}
            ),
        },
        "resources": {"excludeResourcePrefixes": list(UNCOUNTED)},
        "fairSharing": {
            "enable": True,
            "preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"],
        },
    }


def pods_ready(args: Configuration) -> Document:
    """Return when a job whose pods do not run is requeued (Kueue v0.8.1, configuration_types.go)."""
    first, longest = BACKOFF_SECONDS
    return {
        "enable": True,
        "blockAdmission": False,
        "timeout": f"{args.start_seconds}s",
        "requeuingStrategy": {
            "timestamp": "Creation",
            "backoffLimitCount": REQUEUES,
            "backoffBaseSeconds": first,
            "backoffMaxSeconds": longest,
        },
    }


def codeflare(args: Configuration) -> Document:
    """Return AppWrapper's configuration in the CodeFlare operator.

    MLBatch also sets the slack queue here, so that AppWrapper changes its limits. The platform's controller does that
    instead and detects more losses (components/tenancy/slack.py). With both, each would revert the other's limits.
    """
    taints = {
        resource: [dict(taint) for taint in taints if taint["effect"] != "PreferNoSchedule"]
        for resource, taints in AUTOPILOT_TAINTS.items()
    }
    own = {"manageJobsWithoutQueueName": True, "waitForPodsReady": pods_ready(args)}
    return {
        "appwrapper": {
            "enabled": True,
            "Config": {
                "autopilot": {"injectAntiAffinities": True, "monitorNodes": True, "resourceTaints": taints},
                "defaultQueueName": names.LOCAL_QUEUE,
                **({} if args.queues_appwrappers else {"enableKueueIntegrations": True}),
                "faultTolerance": args.fault_tolerance.body(),
                **({} if args.queues_appwrappers else {"kueueJobReconciller": own}),
                **({"schedulerName": args.scheduler} if args.scheduler else {}),
                "userRBACAdmissionCheck": False,
            },
        }
    }


def deployments(args: Configuration) -> Mapping[str, Document]:
    """Return the operators' Deployments, by the ConfigMap that replaces them."""
    text = script(
        __name__,
        "deployments.yaml",
        priority=names.SYSTEM_PRIORITY,
        log_level=job_operators.LOG_LEVEL,
        kueue_config=_KUEUE_CONFIG,
        patched_whole=args.release.patched_whole,
        gangs=args.scheduler if args.binds_gangs else "",
        resources=json.dumps(job_operators.RESOURCES.body()),
    )
    found: Mapping[str, Document] = yaml.safe_load(text)
    return found


def _text(document: Document) -> str:
    return yaml.dump(document, Dumper=_Plain, sort_keys=False)


class _Plain(yaml.SafeDumper):
    """Writes no anchors, because kustomize does not support them in patches."""

    def ignore_aliases(self, data: object) -> bool:
        return True
