"""Common parts of the operators that create the pods of jobs, as MLBatch installs them in mlbatch-system."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

import pulumi

from components import names
from components.artifacts import Release
from components.kubernetes import objects
from components.kubernetes.controller import Controller
from components.kubernetes.manifests import Document, Manifest, Manifests, ManifestsArgs, register_all
from components.kubernetes.rbac import READ, rule
from components.kubernetes.resources import Resources
from components.kubernetes.security import READ_ONLY
from components.layer import Layer
from components.queueing.operators import AWAIT_CERTIFICATE

RESOURCES: Final = Resources(cpu_request="100m", memory_request="100Mi", cpu_limit="500m", memory_limit="1000Mi")
"""MLBatch's values for both operators (project-codeflare/mlbatch, `setup.k8s/training-operator` and
`setup.k8s/kuberay`)."""
LOG_LEVEL: Final = "--zap-log-level=2"
"""MLBatch's value for both operators."""

ADMISSION: Final = "admissionregistration.k8s.io"
_LEASES: Final = rule("coordination.k8s.io", ["leases"], ["create", "get", "update"])


@dataclass(frozen=True, kw_only=True)
class JobOperator(Controller):
    """The Deployment of an operator.

    arguments: of its program /manager.
    extra: more fields of the container.
    cluster_rules, own_rules: its rights in the cluster, and in its namespace besides those to lead.
    """

    namespace: str = names.SYSTEM_NAMESPACE
    image: str
    arguments: Sequence[str]
    ports: Mapping[str, int]
    probes: Document
    extra: Document = field(default_factory=dict)
    volumes: Sequence[Document] = ()
    sidecars: Sequence[Document] = ()
    cluster_rules: Sequence[Document]
    own_rules: Sequence[Document] = ()


class JobOperatorLayer(Layer):
    """An operator in mlbatch-system, which must exist."""

    kinds: ClassVar[Sequence[str]]
    """Kinds of jobs that it runs."""
    definitions: Sequence[pulumi.Resource]
    """The CRDs of these kinds. Kueue looks for them when it starts."""

    ready: Sequence[pulumi.Resource]
    """Depend on these to create jobs of these kinds: the operator is available and its webhooks answer."""

    def _install(
        self,
        name: str,
        operator: JobOperator,
        definitions: Sequence[Release],
        foundation: Iterable[Document],
        webhooks: Iterable[Document] = (),
    ) -> pulumi.ResourceOptions:
        """Register the CRDs, then the other objects, and return their options.

        The operator waits for the foundation. It writes its certificate into the webhooks, which the API server calls
        last.
        """
        text = "\n---\n".join(release.manifest for release in definitions)
        child = pulumi.ResourceOptions(parent=self)
        self.definitions = Manifests(f"{name}-definitions", ManifestsArgs(text=text), child).definitions
        made = pulumi.ResourceOptions(parent=self, depends_on=self.definitions)
        works = pulumi.ResourceOptions(
            parent=self, depends_on=register_all(name, [*account(operator), *foundation], made)
        )
        self.ready = [
            Manifest(f"{name}/Deployment", deployment(operator), works),
            *register_all(name, webhooks, made),
        ]
        register_all(name, operator.budget(), made)
        return made


def deployment(operator: JobOperator) -> Document:
    """Return the Deployment, with the priority from MLBatch's patches."""
    container = {
        "name": operator.name,
        "image": operator.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/manager"],
        "args": list(operator.arguments),
        "ports": [{"containerPort": port, "name": name, "protocol": "TCP"} for name, port in operator.ports.items()],
        **operator.probes,
        **operator.extra,
        "resources": RESOURCES.body(),
        "securityContext": dict(READ_ONLY),
    }
    return operator.deployment([container, *operator.sidecars], operator.volumes, grace_seconds=10)


def health_probes(port: int | str) -> Document:
    """Return the probes of Kubeflow's operators."""

    def probe(path: str, delay: int, period: int) -> Document:
        return {
            "httpGet": {"path": path, "port": port, "scheme": "HTTP"},
            "initialDelaySeconds": delay,
            "periodSeconds": period,
            "timeoutSeconds": 3,
        }

    return {"livenessProbe": probe("/healthz", 15, 20), "readinessProbe": probe("/readyz", 10, 15)}


def service(name: str, labels: Mapping[str, str], ports: Mapping[str, tuple[int, int]]) -> Document:
    """Return a Service of an operator's pods. ports: port of the Service and of the pods, by name."""
    return objects.service(name, names.SYSTEM_NAMESPACE, labels, ports)


def account(operator: JobOperator) -> list[Document]:
    """Return an operator's service account and its rights in the cluster and in mlbatch-system, where it leads."""
    own = operator.account
    return [
        own.document(),
        *own.granted(operator.cluster_rules),
        *own.granted([_LEASES, *operator.own_rules], operator.namespace),
    ]


def job_rules(group: str, plural: str) -> list[Document]:
    """Return the rights to report the state of jobs of a kind."""
    return [
        rule(group, [f"{plural}/finalizers"], ["update"]),
        rule(group, [f"{plural}/status"], ["get", "patch", "update"]),
    ]


def certificate(name: str) -> Document:
    """Return the Secret for the certificate of an operator's webhooks. The operator fills it."""
    own = objects.metadata(name, names.SYSTEM_NAMESPACE)
    return {"apiVersion": "v1", "kind": "Secret", "metadata": own, "type": "Opaque"}


def certificate_rules(name: str) -> list[Document]:
    """Return the right to update only this Secret."""
    return [rule("", ["secrets"], READ), rule("", ["secrets"], ["update"], [name])]


def webhook_configuration(
    how: str, name: str, webhook: str, *, operator: str, path: str, group: str, version: str, plural: str
) -> Document:
    """Return the configuration of a webhook that an operator's Service answers for one kind of jobs.

    how: Mutating or Validating.
    webhook: name of the webhook in the configuration.
    """
    return {
        "apiVersion": f"{ADMISSION}/v1",
        "kind": f"{how}WebhookConfiguration",
        "metadata": objects.metadata(name, annotations=AWAIT_CERTIFICATE),
        "webhooks": [
            {
                "name": webhook,
                "admissionReviewVersions": ["v1"],
                "clientConfig": {
                    "service": {"name": operator, "namespace": names.SYSTEM_NAMESPACE, "path": path},
                },
                "failurePolicy": "Fail",
                "rules": [
                    {
                        "apiGroups": [group],
                        "apiVersions": [version],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": [plural],
                    }
                ],
                "sideEffects": "None",
            }
        ],
    }
