"""The report of the local OpenShift, for `make status`: what of it is OpenShift's own program, and what is played."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Objects = Iterable[Mapping[str, Any]]

_NOTES = (
    "pods are judged by OpenShift's own admission plugin, in Kubernetes' API server",
    "played: users of namespaces, Routes (no router answers), volumes of an NFS provisioner (no folder is made)",
    "not here: projects, users, groups, images, builds, Services' certificates; the GPU operator, but its labels",
)
_NO_CATALOG = "no OperatorHub: a stack with openshift.operators: openshift-ai has one"


def report(versions: Objects, routes: Sequence[Mapping[str, Any]], volumes: Objects, catalogs: Objects) -> str:
    """Return the report; empty where the cluster is no OpenShift.

    Each is the cluster's: ClusterVersions, Routes, PersistentVolumes, and the CatalogSources of OLM.
    """
    found = [version["status"]["desired"]["version"] for version in versions]
    if not found:
        return ""
    folders = [volume for volume in volumes if "nfs" in volume["spec"]]
    names = ", ".join(catalog["metadata"]["name"] for catalog in catalogs)
    hub = (
        f"operators come from OLM's catalogs {names}, which have OpenShift AI and the GPU operator alone"
        if names
        else _NO_CATALOG
    )
    counted = f"played now: Routes {len(routes)}, volumes {len(folders)}"
    return "\n".join([f"OpenShift {found[0]}", *(f"  {note}" for note in (*_NOTES, hub, counted))])
