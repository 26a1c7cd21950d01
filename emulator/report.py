"""The reports of `make up` and `make status`: local cluster, clouds, OpenShift, charts, versions, platform."""

from emulator import azure, controllers, mlops
from emulator.charts.releases import SELECTOR
from emulator.charts.report import report as charts_report
from emulator.cluster import ClusterStatus
from emulator.openshift.report import report as openshift_report
from emulator.openstack import overview as openstack
from emulator.paths import Paths
from runner import webhooks
from runner.report import MLOPS_LABEL, connect, objects, platform_report, table


def cluster_report(status: ClusterStatus) -> str:
    """Return the report of the local cluster: its processes with their state and logs."""
    rows = [(p.name, p.state, p.pid or "-", p.restarts, p.log) for p in status.processes]
    answers = "ready" if status.ready else "not ready"
    title = f"Local cluster: {answers}{f', {status.server}' if status.server else ''}"
    left = [f"  left over from an earlier run: {pid} {command}" for pid, command in status.leftovers.items()]
    return "\n".join([table(title, ["PROCESS", "STATE", "PID", "RESTARTS", "LOG"], rows), *left])


def environment_report(paths: Paths) -> str:
    """Return the report of a running local environment: Azure, OpenStack, OpenShift, charts, versions, platform.

    Raises the Kubernetes client's exceptions if the cluster does not respond.
    """
    client = connect(paths.kubeconfig)
    releases = objects(client, "v1", "Secret", label_selector=SELECTOR)
    pods = objects(client, "v1", "Pod")
    charts = charts_report(releases, pods) if releases else ""
    openshift = openshift_report(
        objects(client, "config.openshift.io/v1", "ClusterVersion"),
        objects(client, "route.openshift.io/v1", "Route"),
        objects(client, "v1", "PersistentVolume"),
        objects(client, "operators.coreos.com/v1alpha1", "CatalogSource"),
    )
    pipelines = mlops.report(objects(client, "apps/v1", "Deployment", label_selector=MLOPS_LABEL))
    parts = (
        azure.report(paths),
        openstack.report(paths),
        openshift,
        charts,
        pipelines,
        controllers.report(pods),
        platform_report(client),
        *(section.text() for section in webhooks.report(client)),
    )
    return "\n\n".join(part for part in parts if part)
