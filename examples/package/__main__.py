"""A team and its queue on a cluster, in a program of your own (docs/package.md)."""

import pulumi
import pulumi_kubernetes as kubernetes
import pulumi_mlbatch as mlbatch

RESOURCES = ("cpu", "memory", "nvidia.com/gpu")
COHORT = "gpus"


def quota(flavor: mlbatch.Flavor, gpus: int) -> list[mlbatch.FlavorQuota]:
    """Return a share of the nodes: 16 CPUs and 200 GiB for each GPU."""
    amounts = mlbatch.amounts({"cpu": 16 * gpus, "memory": f"{200 * gpus}Gi", "nvidia.com/gpu": gpus})
    return [mlbatch.FlavorQuota(flavor=flavor.name, quota=amounts)]


config = pulumi.Config()
provider = kubernetes.Provider("cluster", kubeconfig=config.require_secret("kubeconfig"))
mirror = mlbatch.Mirror(**(config.get_object("mirror") or {}))


def after(*needs: pulumi.Resource) -> pulumi.ResourceOptions:
    """Return the options of a component on the cluster that waits for others."""
    return pulumi.ResourceOptions(providers=[provider], depends_on=mlbatch.needed(needs))


system = mlbatch.Namespace("system", mlbatch.NamespaceArgs(name="mlbatch-system", critical=True), after())
wrappers = mlbatch.AppWrappers(
    "appwrapper", mlbatch.AppWrappersArgs(release=mlbatch.release("appwrapper", mirror=mirror)), after(system)
)
kueue = mlbatch.Kueue(
    "kueue", mlbatch.KueueArgs(release=mlbatch.release("kueue", mirror=mirror)), after(system, *wrappers.definitions)
)
gpus = mlbatch.FlavorArgs(nodes={"nvidia.com/gpu.present": "true"}, tolerations=[mlbatch.GPU_TOLERATION])
flavor = mlbatch.Flavor("flavor", gpus, after(kueue))
slack = mlbatch.SlackQueueArgs(flavors=quota(flavor, 8), cohort=COHORT, covered=RESOURCES)
mlbatch.SlackQueue("slack", slack, after(kueue))
members = mlbatch.EditorRole("editor", mlbatch.EditorRoleArgs(), after())
blue = mlbatch.TeamArgs(
    name="blue", users=("alice",), flavors=quota(flavor, 8), cohort=COHORT, covered=RESOURCES, role=members.name
)
pulumi.export("queue", mlbatch.Team("blue", blue, after(kueue, wrappers)).cluster_queue)
