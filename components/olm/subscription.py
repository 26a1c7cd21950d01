"""Subscriptions to one version of an operator."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from components.kubernetes.manifests import Document

GROUP: Final = "operators.coreos.com"
CATALOG_NAMESPACE: Final = "openshift-marketplace"


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where OLM finds an operator: a channel of a CatalogSource in a namespace."""

    channel: str
    catalog: str
    catalog_namespace: str = CATALOG_NAMESPACE


def operator_group(name: str, namespace: str, watched: Sequence[str] = ()) -> Document:
    """Return the OperatorGroup for operators that watch these namespaces, or all."""
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "OperatorGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"targetNamespaces": list(watched)} if watched else {},
    }


def subscription(package: str, namespace: str, csv: str, source: Source, **config: Any) -> Document:
    """Return the Subscription. With it, OLM installs one version and asks before it installs another.

    csv: the version's ClusterServiceVersion.
    config: configuration of the operator's Deployment, in the Subscription's format.
    """
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "Subscription",
        "metadata": {"name": package, "namespace": namespace},
        "spec": {
            "channel": source.channel,
            "installPlanApproval": "Manual",
            "name": package,
            "source": source.catalog,
            "sourceNamespace": source.catalog_namespace,
            "startingCSV": csv,
            **({"config": config} if config else {}),
        },
    }
