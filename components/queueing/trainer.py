"""Kubeflow Trainer: creates a JobSet for each TrainJob from a runtime that the platform declares.

Objects: kubeflow/trainer v2.3.0, `manifests/base`. The role is narrower than upstream's. It still lists and watches all
Secrets, because the plugins MPI and Flux watch them even if no runtime uses them (`pkg/runtime/framework/plugins`,
ReconcilerBuilders). Without this right Trainer exits after two minutes. It writes only the Secret with its certificate.
An MPI runtime would need a Secret with SSH keys in the team's namespace, so the platform has none.

Trainer copies the runtime of each TrainJob into a ConfigMap in the team's namespace and then reads it from there
(`pkg/runtime/core/snapshot.go`). Members cannot write that ConfigMap (components/tenancy/train_jobs.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

import pulumi
import yaml

from components import names
from components.artifacts import Release
from components.job_kinds import JOB_SET, POD_GROUP, TRAIN_JOB
from components.kubernetes.manifests import Document, Manifest, Manifests, ManifestsArgs
from components.kubernetes.placement import ANYWHERE, NodeGroup
from components.kubernetes.resources import Resources
from components.kubernetes.security import PodSecurity
from components.layer import Layer
from components.queueing import fault_tolerance
from components.queueing.appwrapper import AUTOPILOT_TAINTS
from components.queueing.job_operators import (
    LOG_LEVEL,
    RESOURCES,
    JobOperator,
    account,
    budget,
    deployment,
    rule,
    service,
)
from components.queueing.operators import AWAIT_CERTIFICATE, annotate
from components.scheduling.priorities import PRIORITIES
from components.scheduling.topology import preference

NAME: Final = "kubeflow-trainer-controller-manager"
CERTIFICATE: Final = "kubeflow-trainer-webhook-cert"
RUNTIME: Final = "torch-distributed"
"""Upstream's name of its runtime for PyTorch (`manifests/base/runtimes/torch_distributed.yaml`)."""


def runtime(priority_class: str | None) -> str:
    """Return the name of the runtime whose pods have a priority class. None is the cluster's default class."""
    return RUNTIME if priority_class is None else f"{RUNTIME}-{priority_class}"


RUNTIMES: Final = {runtime(name): name for name in (None, *PRIORITIES)}
"""The runtimes that TrainJobs may name, each with the priority class of its pods."""
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
    restarts: how often all pods of a TrainJob are recreated after one has failed.
    replicas: one of them leads.
    pod_security: mechanism that checks Trainer's own pods.
    """

    definitions: Sequence[Release]
    scheduler: str = ""
    gang_seconds: int | None = None
    capabilities: Mapping[str, Sequence[str]] = field(default_factory=dict)
    near: str | None = None
    restarts: int = fault_tolerance.DEFAULTS.retries
    replicas: int = 1
    resources: Resources = RESOURCES
    nodes: NodeGroup = ANYWHERE
    pod_security: PodSecurity = PodSecurity.STANDARDS


class Trainer(Layer):
    """Install Trainer and its runtimes into mlbatch-system. The namespace and JobSet's CRD must exist."""

    kinds: ClassVar[Sequence[str]] = (TRAIN_JOB.kind,)
    """Kinds of jobs that it runs."""
    definitions: Sequence[pulumi.Resource]
    """The CRDs of Trainer's kinds. Kueue looks for them when it starts."""

    ready: Sequence[pulumi.Resource]
    """Depend on these to create TrainJobs: Trainer is available, its webhooks answer, and the runtimes exist."""

    def __init__(self, name: str, args: TrainerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:queueing:Trainer", name, None, opts)
        text = "\n---\n".join(release.manifest for release in args.definitions)
        child = pulumi.ResourceOptions(parent=self)
        self.definitions = Manifests(f"{name}-definitions", ManifestsArgs(text=text), child).definitions
        made = pulumi.ResourceOptions(parent=self, depends_on=self.definitions)
        # Trainer waits for the configurations that it writes its certificate into. The API server calls it last.
        foundation = [
            Manifest(f"{name}/{document['kind']}", document, made)
            for document in (*account(NAME, cluster_rules(), own_rules()), certificate(), config(), trainers_service())
        ]
        operator = job_operator(args)
        works = pulumi.ResourceOptions(parent=self, depends_on=foundation)
        self.ready = [
            Manifest(f"{name}/Deployment", deployment(operator), works),
            *(Manifest(f"{name}/{document['kind']}", document, made) for document in webhook_configurations()),
            *(Manifest(f"{name}/{document['metadata']['name']}", document, made) for document in runtimes(args)),
        ]
        for document in budget(operator):
            Manifest(f"{name}/PodDisruptionBudget", document, made)
        self.register_outputs({})


def job_operator(args: TrainerArgs) -> JobOperator:
    """Return Trainer's pod."""
    probe = {"port": "health", "scheme": "HTTP"}
    return JobOperator(
        name=NAME,
        labels=_LABELS,
        image=args.definitions[0].images[NAME],
        arguments=[LOG_LEVEL, f"--config={_CONFIG_FOLDER}/{_CONFIG_FILE}"],
        ports={"health": 8081, "metrics": 8443, "webhook": 9443},
        probes={
            "livenessProbe": {
                "httpGet": {"path": "/healthz", **probe},
                "initialDelaySeconds": 15,
                "periodSeconds": 20,
                "timeoutSeconds": 3,
            },
            "readinessProbe": {
                "httpGet": {"path": "/readyz", **probe},
                "initialDelaySeconds": 10,
                "periodSeconds": 15,
                "timeoutSeconds": 3,
            },
        },
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
        replicas=args.replicas,
        resources=args.resources,
        nodes=args.nodes,
        pod_security=args.pod_security,
    )


def cluster_rules() -> list[Document]:
    """Return Trainer's rights for the objects of TrainJobs, in all namespaces.

    It has no right to delete, because JobSets, PodGroups and ConfigMaps have their TrainJob as owner.
    """
    webhooks = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]
    return [
        rule(_GROUP, [TRAIN_JOB.plural, *_RUNTIME_KINDS]),
        {"apiGroups": [_GROUP], "resources": [f"{TRAIN_JOB.plural}/finalizers"], "verbs": ["update"]},
        {"apiGroups": [_GROUP], "resources": [f"{TRAIN_JOB.plural}/status"], "verbs": ["get", "patch", "update"]},
        rule(JOB_SET.group, [JOB_SET.plural], "create", "patch"),
        rule(POD_GROUP.group, [POD_GROUP.plural], "create", "patch"),
        rule("scheduling.volcano.sh", ["podgroups"]),
        rule("", ["configmaps"], "create", "patch"),
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list", "watch"]},
        rule("", ["limitranges"]),
        rule("node.k8s.io", ["runtimeclasses"]),
        {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch", "update"]},
        rule("admissionregistration.k8s.io", webhooks),
        {
            "apiGroups": ["admissionregistration.k8s.io"],
            "resources": webhooks,
            "resourceNames": [_webhooks_name(how) for how in _WEBHOOKS],
            "verbs": ["update"],
        },
    ]


def own_rules() -> list[Document]:
    """Return Trainer's rights in its own namespace: updating the certificate of its webhooks."""
    return [
        rule("", ["secrets"]),
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [CERTIFICATE], "verbs": ["update"]},
    ]


def certificate() -> Document:
    """Return the Secret that Trainer fills."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": CERTIFICATE, "namespace": names.SYSTEM_NAMESPACE},
        "type": "Opaque",
    }


def config() -> Document:
    """Return the ConfigMap with Trainer's configuration."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": _CONFIG, "namespace": names.SYSTEM_NAMESPACE},
        "data": {_CONFIG_FILE: yaml.safe_dump(_CONFIGURATION, sort_keys=False)},
    }


def trainers_service() -> Document:
    """Return the Service that the API server calls."""
    return service(NAME, _LABELS, {"monitoring-port": (8443, 8443), "webhook-server": (443, 9443)})


def webhook_configurations() -> list[Document]:
    """Return the webhooks that set defaults of TrainJobs and validate them."""
    documents: list[Document] = []
    for how, (_, verb) in _WEBHOOKS.items():
        document = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{how}WebhookConfiguration",
            "metadata": {"name": _webhooks_name(how)},
            "webhooks": [
                {
                    "name": _webhooks_name(how).replace(".", ".trainjob.", 1),
                    "admissionReviewVersions": ["v1"],
                    "clientConfig": {
                        "service": {
                            "name": NAME,
                            "namespace": names.SYSTEM_NAMESPACE,
                            "path": f"/{verb}-trainer-kubeflow-org-{TRAIN_JOB.version}-trainjob",
                        }
                    },
                    "failurePolicy": "Fail",
                    "rules": [
                        {
                            "apiGroups": [_GROUP],
                            "apiVersions": [TRAIN_JOB.version],
                            "operations": ["CREATE", "UPDATE"],
                            "resources": [TRAIN_JOB.plural],
                        }
                    ],
                    "sideEffects": "None",
                }
            ],
        }
        annotate(document, AWAIT_CERTIFICATE)
        documents.append(document)
    return documents


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
        for name, priority_class in RUNTIMES.items()
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
        "failurePolicy": {"maxRestarts": args.restarts},
        "replicatedJobs": [
            {"name": NODE, "template": {"metadata": ancestor, "spec": {"backoffLimit": 0, "template": template}}}
        ],
    }
