"""NetworkPolicies for parts of the OSS MLOps platform without authentication, and for those with its data.

MLflow, pipelines, Prometheus and the forwarder's queue accept every client. Upstream has policies for some of it
(deployment/kubeflow/manifests/contrib/networkpolicies), but no deployment installs them. These policies allow all
namespaces of the platform, besides those that upstream names. Webhooks have no policy, because the API server's address
is unknown.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from components.kubernetes.manifests import Document
from components.kubernetes.network import NAME, NAMESPACE_LABEL, guard

LET_IN: Final = {"app.kubernetes.io/part-of": "kubeflow-profile"}
"""Label of other namespaces that may connect. Kubeflow's namespaces for users have it (apps/profiles,
namespace-labels.yaml), and administrators can set it on others."""


@dataclass(frozen=True, kw_only=True)
class _Guarded:
    """Pods of a namespace: all of them, or those with one of some values of a label. name: of their policy."""

    namespace: str
    name: str = NAME
    label: str = ""
    values: tuple[str, ...] = ()

    def selector(self) -> Document:
        """Return them as a policy's selector."""
        return _one_of(self.label, self.values) if self.label else {}


_GUARDED: Final = (
    _Guarded(namespace="forwarder"),
    _Guarded(namespace="mlflow"),
    _Guarded(namespace="monitoring"),
    _Guarded(
        namespace="kubeflow",
        name="pipelines",
        label="app",
        values=("minio", "ml-pipeline", "ml-pipeline-ui", "ml-pipeline-visualizationserver", "mysql"),
    ),
    _Guarded(
        namespace="kubeflow", name="metadata", label="component", values=("metadata-envoy", "metadata-grpc-server")
    ),
    _Guarded(namespace="kubeflow", name="katib", label="katib.kubeflow.org/component", values=("db-manager", "mysql")),
)
"""By the labels of the pods in all ten deployments at the pinned commit, with Kubeflow's pipelines."""


def policies(documents: Sequence[Document]) -> Iterator[Document]:
    """Yield the policies for namespaces of these objects. All these namespaces may connect."""
    namespaces = sorted(each["metadata"]["name"] for each in documents if each["kind"] == "Namespace")
    callers = [
        {"namespaceSelector": _one_of(NAMESPACE_LABEL, namespaces)},
        {"namespaceSelector": {"matchLabels": dict(LET_IN)}},
    ]
    for guarded in _GUARDED:
        if guarded.namespace in namespaces:
            yield guard(guarded.name, guarded.namespace, pods=guarded.selector(), callers=callers)


def _one_of(label: str, values: Sequence[str]) -> Document:
    return {"matchExpressions": [{"key": label, "operator": "In", "values": list(values)}]}
