"""Kubeflow Trainer: creates a JobSet for each TrainJob from a runtime that the platform declares.

Objects: kubeflow/trainer v2.3.0, `manifests/base`. The role is narrower than upstream's. It still lists and watches all
Secrets, because the plugins MPI and Flux watch them even if no runtime uses them (`pkg/runtime/framework/plugins`,
ReconcilerBuilders). Without this right Trainer exits after two minutes. It writes only the Secret with its certificate.
An MPI runtime would need a Secret with SSH keys in the team's namespace, so the platform has none.

Trainer copies the runtime of each TrainJob into a ConfigMap in the team's namespace and then reads it from there
(`pkg/runtime/core/snapshot.go`). Members cannot write that ConfigMap (components/tenancy/train_jobs.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

import pulumi
import yaml

from components import names
from components.artifacts import Release
from components.job_kinds import JOB_SET, POD_GROUP, TRAIN_JOB
from components.kubernetes.controller import ONE_REPLICA, ControllerPods
from components.kubernetes.manifests import Document, Manifest
from components.kubernetes.objects import config_map
from components.kubernetes.rbac import READ, rule
from components.queueing import fault_tolerance
from components.queueing.appwrapper import AUTOPILOT_TAINTS
from components.queueing.job_operators import (
    ADMISSION,
    LOG_LEVEL,
    JobOperator,
    JobOperatorLayer,
    certificate,
    certificate_rules,
    health_probes,
    job_rules,
    service,
    webhook_configuration,
)
from components.scheduling.priorities import PRIORITIES
from components.scheduling.topology import preference

NAME: Final = "kubeflow-trainer-controller-manager"
CERTIFICATE: Final = "kubeflow-trainer-webhook-cert"
RUNTIME: Final = "torch-distributed"
"""Upstream's name of its runtime for PyTorch (`manifests/base/runtimes/torch_distributed.yaml`)."""


def runtime(priority_class: str | None) -> str:
    """Return the name of the runtime whose pods have a priority class. None is the cluster's default class."""
    return RUNTIME if priority_class is None else f"{RUNTIME}-{priority_class}"


def priorities() -> Mapping[str, str | None]:
    """Return the runtimes that TrainJobs may name, each with the priority class of its pods."""
    return {runtime(name): name for name in (None, *PRIORITIES)}


NODE: Final = "node"
"""Name of a runtime's only Job and of its container, which a TrainJob's `trainer` changes."""
SNAPSHOT: Final = "-runtime-snapshot"
"""Suffix of the ConfigMap with the copy of a runtime; its name starts with the TrainJob's."""
SHARED_MEMORY: Final = "shm"

_GROUP: Final = TRAIN_JOB.group
_RUNTIME_KINDS: Final = ("clustertrainingruntimes", "trainingruntimes")
_LABELS: Final = {
    "app.kubernetes.io/name": "trainer",
    "app.kubernetes.io/component": "manager",
    "app.kubernetes.io/part-of": "kubeflow",
}
_WEBHOOKS: Final = {"Mutating": ("defaulter", "mutate"), "Validating": ("validator", "validate")}
"""Prefixes of the configuration's name and of the path, by kind (`manifests/base/webhook`). Runtimes need no
webhook, because only the program creates runtimes."""
_CONFIG: Final = "kubeflow-trainer-config"
_CONFIG_FOLDER: Final = "/etc/trainer"
_CONFIG_FILE: Final = "controller_manager_config.yaml"
_CERTIFICATE_FOLDER: Final = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108 - where upstream reads it
_CONFIGURATION: Final = {
    "apiVersion": "config.trainer.kubeflow.org/v1alpha1",
    "kind": "Configuration",
    "leaderElection": {
        "leaderElect": True,
        "resourceName": _GROUP,
        "leaseDuration": "15s",
        "renewDeadline": "10s",
        "retryPeriod": "2s",
    },
    "controller": {"groupKindConcurrency": {f"{TRAIN_JOB.kind}.{_GROUP}": 5}},
}
"""Upstream's (`manifests/base/manager/controller_manager_config.yaml`) where it differs from the program's defaults."""


@dataclass(frozen=True, kw_only=True)
class TrainerArgs:
    """The arguments of Trainer.

    definitions: CRDs of Trainer's three kinds, all required. The first one has the image.
    scheduler: for the pods of TrainJobs. Empty selects the cluster's default.
    gang_seconds: seconds that pods of a PodGroup wait for each other on their nodes. None creates no PodGroups.
    Otherwise the CRD of PodGroup must exist.
    capabilities: capabilities that the pods' container adds or drops.
    near: a level of the network, such as a rack. Kueue keeps a TrainJob's pods in one part of this level if possible.
    None: anywhere.
    pods: Trainer's own.
    """

    definitions: Sequence[Release]
    scheduler: str = ""
    gang_seconds: int | None = None
    capabilities: Mapping[str, Sequence[str]] = field(default_factory=dict)
    near: str | None = None
    pods: ControllerPods = ONE_REPLICA


class Trainer(JobOperatorLayer):
    """Install Trainer and its runtimes. JobSet's CRD must exist too."""

    kinds: ClassVar[Sequence[str]] = (TRAIN_JOB.kind,)

    def __init__(self, name: str, args: TrainerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:queueing:Trainer", name, None, opts)
        foundation = (certificate(CERTIFICATE), config(), trainers_service())
        made = self._install(name, job_operator(args), args.definitions, foundation, webhook_configurations())
        own = [Manifest(f"{name}/{document['metadata']['name']}", document, made) for document in runtimes(args)]
        self.ready = [*self.ready, *own]
        self.register_outputs({})


def job_operator(args: TrainerArgs) -> JobOperator:
    """Return Trainer's pod."""
    return JobOperator(
        name=NAME,
        labels=_LABELS,
        image=args.definitions[0].images[NAME],
        arguments=[LOG_LEVEL, f"--config={_CONFIG_FOLDER}/{_CONFIG_FILE}"],
        ports={"health": 8081, "metrics": 8443, "webhook": 9443},
        probes=health_probes("health"),
        extra={
            "volumeMounts": [
                {"name": "cert", "mountPath": _CERTIFICATE_FOLDER, "readOnly": True},
                {"name": "config", "mountPath": _CONFIG_FOLDER, "readOnly": True},
            ]
        },
        volumes=[
            {"name": "cert", "secret": {"secretName": CERTIFICATE, "defaultMode": 0o644}},
            {"name": "config", "configMap": {"name": _CONFIG}},
        ],
        pods=args.pods,
        cluster_rules=cluster_rules(),
        own_rules=certificate_rules(CERTIFICATE),
    )


def cluster_rules() -> list[Document]:
    """Return Trainer's rights for the objects of TrainJobs, in all namespaces.

    It has no right to delete, because JobSets, PodGroups and ConfigMaps have their TrainJob as owner.
    """
    webhooks = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]
    written = (*READ, "create", "patch")
    return [
        rule(_GROUP, [TRAIN_JOB.plural, *_RUNTIME_KINDS], READ),
        *job_rules(_GROUP, TRAIN_JOB.plural),
        rule(JOB_SET.group, [JOB_SET.plural], written),
        rule(POD_GROUP.group, [POD_GROUP.plural], written),
        rule("scheduling.volcano.sh", ["podgroups"], READ),
        rule("", ["configmaps"], written),
        rule("", ["secrets"], ["list", "watch"]),
        rule("", ["limitranges"], READ),
        rule("node.k8s.io", ["runtimeclasses"], READ),
        {**rule("", ["events"], ["create", "patch", "update"]), "apiGroups": ["", "events.k8s.io"]},
        rule(ADMISSION, webhooks, READ),
        rule(ADMISSION, webhooks, ["update"], [_webhooks_name(how) for how in _WEBHOOKS]),
    ]


def config() -> Document:
    """Return the ConfigMap with Trainer's configuration."""
    text = yaml.safe_dump(_CONFIGURATION, sort_keys=False)
    return config_map(_CONFIG, names.SYSTEM_NAMESPACE, {_CONFIG_FILE: text})


def trainers_service() -> Document:
    """Return the Service that the API server calls."""
    return service(NAME, _LABELS, {"monitoring-port": (8443, 8443), "webhook-server": (443, 9443)})


def webhook_configurations() -> list[Document]:
    """Return the webhooks that set defaults of TrainJobs and validate them."""
    return [
        webhook_configuration(
            how,
            _webhooks_name(how),
            _webhooks_name(how).replace(".", ".trainjob.", 1),
            operator=NAME,
            path=f"/{verb}-trainer-kubeflow-org-{TRAIN_JOB.version}-trainjob",
            group=_GROUP,
            version=TRAIN_JOB.version,
            plural=TRAIN_JOB.plural,
        )
        for how, (_, verb) in _WEBHOOKS.items()
    ]


def _webhooks_name(how: str) -> str:
    return f"{_WEBHOOKS[how][0]}.{_GROUP}"


def runtimes(args: TrainerArgs) -> list[Document]:
    """Return the runtimes. They name no image, because TrainJobs do.

    Kueue stops a running TrainJob when its runtime's containers change (v0.19.2, `pkg/util/equality/podset.go`).
    """
    gang = {"podGroupPolicy": {"coscheduling": {"scheduleTimeoutSeconds": args.gang_seconds}}}
    return [
        {
            "apiVersion": TRAIN_JOB.api,
            "kind": "ClusterTrainingRuntime",
            "metadata": {"name": name, "labels": {f"{_GROUP}/framework": "torch"}},
            "spec": {
                "mlPolicy": {"numNodes": 1, "torch": {}},
                **(gang if args.gang_seconds is not None else {}),
                "template": {"spec": job_set(args, priority_class)},
            },
        }
        for name, priority_class in priorities().items()
    ]


def job_set(args: TrainerArgs, priority_class: str | None) -> Document:
    """Return the specification of a TrainJob's JobSet: one Job. All its pods are recreated when one fails."""
    taints = AUTOPILOT_TAINTS[names.GPU]
    sick = [taint["value"] for taint in taints if taint["effect"] in ("NoSchedule", "NoExecute")]
    (label,) = {taint["key"] for taint in taints}
    healthy = {"matchExpressions": [{"key": label, "operator": "NotIn", "values": sick}]}
    pod: Document = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 30,
        "automountServiceAccountToken": False,
        **({"schedulerName": args.scheduler} if args.scheduler else {}),
        **({"priorityClassName": priority_class} if priority_class is not None else {}),
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [healthy]}}
        },
        "containers": [
            {
                "name": NODE,
                **({"securityContext": {"capabilities": dict(args.capabilities)}} if args.capabilities else {}),
                "volumeMounts": [{"name": SHARED_MEMORY, "mountPath": "/dev/shm"}],  # noqa: S108 - only in the container
            }
        ],
        "volumes": [{"name": SHARED_MEMORY, "emptyDir": {"medium": "Memory"}}],
    }
    ancestor = {"labels": {f"{_GROUP}/trainjob-ancestor-step": "trainer"}}
    template = {**({"metadata": {"annotations": preference(args.near)}} if args.near is not None else {}), "spec": pod}
    return {
        "failurePolicy": {"maxRestarts": fault_tolerance.DEFAULTS.retries},
        "replicatedJobs": [
            {"name": NODE, "template": {"metadata": ancestor, "spec": {"backoffLimit": 0, "template": template}}}
        ],
    }
