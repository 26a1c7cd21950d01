"""Kubeflow's training operator: creates the pods of PyTorchJobs, and the PodGroup that starts them together.

Installed as in MLBatch (project-codeflare/mlbatch, `setup.k8s/training-operator`), with two differences. It runs only
PyTorchJobs: members cannot create upstream's other kinds (mlbatch-edit), and the rights for MPIJobs would let the
operator create roles. Workers wait for their master in an image that the catalogue pins: upstream's default image has
no registry, so each node resolves it by its own configuration.

Objects: kubeflow/training-operator, `manifests/base`; rights: the markers in `pkg/controller.v1/pytorch`, `pkg/cert`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import pulumi

from components.artifacts import Release
from components.job_kinds import PYTORCH_JOB
from components.kubernetes.controller import ONE_REPLICA, ControllerPods
from components.kubernetes.manifests import Document
from components.kubernetes.rbac import READ, rule
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

NAME: Final = "training-operator"
KIND: Final = PYTORCH_JOB.kind
CERTIFICATE: Final = "training-operator-webhook-cert"
WEBHOOKS: Final = "validator.training-operator.kubeflow.org"
"""The name that the operator looks for (`cmd/training-operator.v1/main.go`)."""

_GROUP: Final = PYTORCH_JOB.group
_LABELS: Final = {"control-plane": "kubeflow-training-operator", "app.kubernetes.io/name": NAME}
_CERTIFICATE_FOLDER: Final = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108 - where upstream reads it
_SPEED: Final = ("--controller-threads=10", "--kube-api-qps=200", "--kube-api-burst=400")
"""Upstream has one thread and 20 requests a second, so a few jobs with many pods make all teams wait."""


@dataclass(frozen=True, kw_only=True)
class TrainingOperatorArgs:
    """The arguments of the operator.

    release: the CRD of PyTorchJob, and the image of the container `training-operator`.
    init_image: an image with a shell and nslookup. Workers wait in it until their master has an address.
    scheduler: name of the scheduler that binds PodGroups, whose CRD must exist. Empty disables gangs.
    """

    release: Release
    init_image: str
    scheduler: str = ""
    pods: ControllerPods = ONE_REPLICA


class TrainingOperator(JobOperatorLayer):
    """Install the operator."""

    kinds: ClassVar[Sequence[str]] = (KIND,)

    def __init__(self, name: str, args: TrainingOperatorArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:queueing:TrainingOperator", name, None, opts)
        foundation = (certificate(CERTIFICATE), operators_service())
        self._install(name, job_operator(args), [args.release], foundation, [webhooks()])
        self.register_outputs({})


def job_operator(args: TrainingOperatorArgs) -> JobOperator:
    """Return the operator's pod."""
    return JobOperator(
        name=NAME,
        labels=_LABELS,
        image=args.release.images[NAME],
        arguments=[
            LOG_LEVEL,
            *_SPEED,
            *([f"--gang-scheduler-name={args.scheduler}"] if args.scheduler else []),
            f"--enable-scheme={KIND.lower()}",
            f"--pytorch-init-container-image={args.init_image}",
            *(["--leader-elect"] if args.pods.replicas > 1 else []),
        ],
        ports={"metrics": 8080, "webhook-server": 9443},
        probes=health_probes(8081),
        extra={
            "env": [
                {"name": f"MY_POD_{what.upper()}", "valueFrom": {"fieldRef": {"fieldPath": f"metadata.{what}"}}}
                for what in ("namespace", "name")
            ],
            "volumeMounts": [{"name": "cert", "mountPath": _CERTIFICATE_FOLDER, "readOnly": True}],
        },
        volumes=[{"name": "cert", "secret": {"secretName": CERTIFICATE, "defaultMode": 0o644}}],
        pods=args.pods,
        cluster_rules=cluster_rules(),
        own_rules=certificate_rules(CERTIFICATE),
    )


def cluster_rules() -> list[Document]:
    """Return the operator's rights for the objects of PyTorchJobs, in all namespaces."""
    everything = (*READ, "create", "delete", "patch", "update")
    webhooks = ["validatingwebhookconfigurations"]
    return [
        rule(_GROUP, [PYTORCH_JOB.plural], everything),
        *job_rules(_GROUP, PYTORCH_JOB.plural),
        rule("", ["pods", "events"], everything),
        rule("", ["services"], [*READ, "create", "delete"]),
        rule("autoscaling", ["horizontalpodautoscalers"], everything),
        rule("scheduling.x-k8s.io", ["podgroups"], everything),
        rule(ADMISSION, webhooks, READ),
        rule(ADMISSION, webhooks, ["update"], [WEBHOOKS]),
    ]


def operators_service() -> Document:
    """Return the Service that the API server calls."""
    return service(NAME, _LABELS, {"monitoring-port": (8080, 8080), "webhook-server": (443, 9443)})


def webhooks() -> Document:
    """Return the webhook that validates PyTorchJobs (`manifests/base/webhook`)."""
    kind = KIND.lower()
    return webhook_configuration(
        "Validating",
        WEBHOOKS,
        f"validator.{kind}.training-operator.kubeflow.org",
        operator=NAME,
        path=f"/validate-kubeflow-org-v1-{kind}",
        group=_GROUP,
        version="v1",
        plural=PYTORCH_JOB.plural,
    )
