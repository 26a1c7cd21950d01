"""The report of the local OpenShift for `make status`: what is real, and what is simulated."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Objects = Iterable[Mapping[str, Any]]

_NOTES = (
    "OpenShift's own admission plugin, in Kubernetes' API server, checks pods",
    "simulated: users of namespaces, Routes (without a router), volumes of an NFS provisioner (without folders)",
    "missing: projects, users, groups, images, builds, Services' certificates; the GPU operator except its labels",
)
_NO_CATALOG = "no OperatorHub: a stack with openshift.operators: openshift-ai has one"


def report(versions: Objects, routes: Sequence[Mapping[str, Any]], volumes: Objects, catalogs: Objects) -> str:
    """Return the report, empty if the cluster is not an OpenShift.

    Arguments: all ClusterVersions, Routes, PersistentVolumes, and CatalogSources of OLM in the cluster.
    """
    found = [version["status"]["desired"]["version"] for version in versions]
    if not found:
        return ""
    folders = [volume for volume in volumes if "nfs" in volume["spec"]]
    names = ", ".join(catalog["metadata"]["name"] for catalog in catalogs)
    hub = (
        f"operators come from OLM's catalogs {names}, which have only OpenShift AI and the GPU operator.\n"
        "  The three operators of OpenShift AI 3 are stubs, which install upstream's Kueue and KubeRay"
        if names
        else _NO_CATALOG
    )
    counted = f"simulated now: Routes {len(routes)}, volumes {len(folders)}"
    return "\n".join([f"OpenShift {found[0]}", *(f"  {note}" for note in (*_NOTES, hub, counted))])
