"""Kubeflow's training operator: creates the pods of PyTorchJobs, and the PodGroup that starts them together.

Installed as in MLBatch (project-codeflare/mlbatch, `setup.k8s/training-operator`), with two differences. It runs only
PyTorchJobs: members cannot create upstream's other kinds (mlbatch-edit), and the rights for MPIJobs would let the
operator create roles. Workers wait for their master in an image that the catalogue pins: upstream's default image has
no registry, so each node resolves it by its own configuration.

Objects: kubeflow/training-operator, `manifests/base`; rights: the markers in `pkg/controller.v1/pytorch`, `pkg/cert`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import pulumi

from components import names
from components.artifacts import Release
from components.job_kinds import PYTORCH_JOB
from components.kubernetes.manifests import Document, Manifest, Manifests, ManifestsArgs
from components.kubernetes.placement import ANYWHERE, NodeGroup
from components.kubernetes.resources import Resources
from components.kubernetes.security import PodSecurity
from components.layer import Layer
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

NAME: Final = "training-operator"
KIND: Final = PYTORCH_JOB.kind
CERTIFICATE: Final = "training-operator-webhook-cert"
WEBHOOKS: Final = "validator.training-operator.kubeflow.org"
"""The name that the operator looks for (`cmd/training-operator.v1/main.go`)."""

_GROUP: Final = PYTORCH_JOB.group
_WRITE: Final = ("create", "delete", "patch", "update")
_LABELS: Final = {"control-plane": "kubeflow-training-operator", "app.kubernetes.io/name": NAME}
_CERTIFICATE_FOLDER: Final = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108 - where upstream reads it


@dataclass(frozen=True, kw_only=True)
class TrainingOperatorArgs:
    """The arguments of the operator.

    release: the CRD of PyTorchJob, and the image of the container `training-operator`.
    init_image: an image with a shell and nslookup. Workers wait in it until their master has an address.
    scheduler: name of the scheduler that binds PodGroups, whose CRD must exist. Empty disables gangs.
    replicas: one of them leads.
    pod_security: mechanism that checks its pods.
    """

    release: Release
    init_image: str
    scheduler: str = ""
    replicas: int = 1
    resources: Resources = RESOURCES
    nodes: NodeGroup = ANYWHERE
    pod_security: PodSecurity = PodSecurity.STANDARDS


class TrainingOperator(Layer):
    """Install the operator into mlbatch-system, which must exist."""

    kinds: ClassVar[Sequence[str]] = (KIND,)
    """Kinds of jobs that it runs."""
    definitions: Sequence[pulumi.Resource]
    """The CRD of PyTorchJob. Kueue looks for it when it starts."""

    ready: Sequence[pulumi.Resource]
    """Depend on these to create PyTorchJobs: the operator is available and its webhook answers."""

    def __init__(self, name: str, args: TrainingOperatorArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:queueing:TrainingOperator", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        definitions = Manifests(f"{name}-definitions", ManifestsArgs(text=args.release.manifest), child)
        self.definitions = definitions.definitions
        made = pulumi.ResourceOptions(parent=self, depends_on=self.definitions)
        # The operator waits for the configuration that it writes its certificate into. The API server calls it last.
        foundation = [
            Manifest(f"{name}/{document['kind']}", document, made)
            for document in (*account(NAME, cluster_rules(), own_rules()), certificate(), operators_service())
        ]
        webhooks = Manifest(f"{name}/ValidatingWebhookConfiguration", webhook_configuration(), made)
        operator = job_operator(args)
        works = pulumi.ResourceOptions(parent=self, depends_on=foundation)
        self.ready = [Manifest(f"{name}/Deployment", deployment(operator), works), webhooks]
        for document in budget(operator):
            Manifest(f"{name}/PodDisruptionBudget", document, made)
        self.register_outputs({})


def job_operator(args: TrainingOperatorArgs) -> JobOperator:
    """Return the operator's pod."""
    probe = {"port": 8081, "scheme": "HTTP"}
    return JobOperator(
        name=NAME,
        labels=_LABELS,
        image=args.release.images[NAME],
        arguments=[
            LOG_LEVEL,
            *([f"--gang-scheduler-name={args.scheduler}"] if args.scheduler else []),
            f"--enable-scheme={KIND.lower()}",
            f"--pytorch-init-container-image={args.init_image}",
            *(["--leader-elect"] if args.replicas > 1 else []),
        ],
        ports={"metrics": 8080, "webhook-server": 9443},
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
            "env": [
                {"name": f"MY_POD_{what.upper()}", "valueFrom": {"fieldRef": {"fieldPath": f"metadata.{what}"}}}
                for what in ("namespace", "name")
            ],
            "volumeMounts": [{"name": "cert", "mountPath": _CERTIFICATE_FOLDER, "readOnly": True}],
        },
        volumes=[{"name": "cert", "secret": {"secretName": CERTIFICATE, "defaultMode": 0o644}}],
        replicas=args.replicas,
        resources=args.resources,
        nodes=args.nodes,
        pod_security=args.pod_security,
    )


def cluster_rules() -> list[Document]:
    """Return the operator's rights for the objects of PyTorchJobs, in all namespaces."""
    return [
        rule(_GROUP, [PYTORCH_JOB.plural], *_WRITE),
        {"apiGroups": [_GROUP], "resources": [f"{PYTORCH_JOB.plural}/finalizers"], "verbs": ["update"]},
        {"apiGroups": [_GROUP], "resources": [f"{PYTORCH_JOB.plural}/status"], "verbs": ["get", "patch", "update"]},
        rule("", ["pods", "events"], *_WRITE),
        rule("", ["services"], "create", "delete"),
        rule("autoscaling", ["horizontalpodautoscalers"], *_WRITE),
        rule("scheduling.x-k8s.io", ["podgroups"], *_WRITE),
        rule("admissionregistration.k8s.io", ["validatingwebhookconfigurations"]),
        {
            "apiGroups": ["admissionregistration.k8s.io"],
            "resources": ["validatingwebhookconfigurations"],
            "resourceNames": [WEBHOOKS],
            "verbs": ["update"],
        },
    ]


def own_rules() -> list[Document]:
    """Return the operator's rights in its own namespace: updating the certificate of its webhook."""
    return [
        rule("", ["secrets"]),
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [CERTIFICATE], "verbs": ["update"]},
    ]


def certificate() -> Document:
    """Return the Secret that the operator fills."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": CERTIFICATE, "namespace": names.SYSTEM_NAMESPACE},
        "type": "Opaque",
    }


def operators_service() -> Document:
    """Return the Service that the API server calls."""
    return service(NAME, _LABELS, {"monitoring-port": (8080, 8080), "webhook-server": (443, 9443)})


def webhook_configuration() -> Document:
    """Return the webhook that validates PyTorchJobs (`manifests/base/webhook`)."""
    kind = KIND.lower()
    document = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": WEBHOOKS},
        "webhooks": [
            {
                "name": f"validator.{kind}.training-operator.kubeflow.org",
                "admissionReviewVersions": ["v1"],
                "clientConfig": {
                    "service": {
                        "name": NAME,
                        "namespace": names.SYSTEM_NAMESPACE,
                        "path": f"/validate-kubeflow-org-v1-{kind}",
                    }
                },
                "failurePolicy": "Fail",
                "rules": [
                    {
                        "apiGroups": [_GROUP],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": [f"{kind}s"],
                    }
                ],
                "sideEffects": "None",
            }
        ],
    }
    annotate(document, AWAIT_CERTIFICATE)
    return document
