"""Microsoft.ContainerService: agent pools, as separate resources or inline in their cluster."""

from emulator.azure.errors import refused
from emulator.azure.services.base import POOL, Kind, Request, at, check_immutable, parent_of
from emulator.azure.services.kubernetes_versions import pool_version
from emulator.azure.services.pool_rules import check_pool, size_of
from emulator.azure.services.resources import Template, in_effect
from emulator.azure.store import Operation, Properties, Record, State


class AgentPool(Kind):
    """A pool of identical nodes of a cluster."""

    token = "azure-native:containerservice:AgentPool"

    def check(self, request: Request) -> None:
        self.check_in(request, parent_of(request, "agentPools").properties)

    def check_in(self, request: Request, cluster: Properties) -> None:
        """Raise ArmError if AKS would reject the pool in a cluster with these properties."""
        if request.before is not None:
            check_immutable(self, request, request.before)
        check_pool(request, cluster)
        pool_version(request, cluster)

    def complete(self, request: Request) -> Properties:
        return self.complete_in(request, parent_of(request, "agentPools").properties)

    def complete_in(self, request: Request, cluster: Properties) -> Properties:
        """Return the pool's properties as read back in a cluster with these properties."""
        version = pool_version(request, cluster)
        own = {"type": "VirtualMachineScaleSets", "currentOrchestratorVersion": version}
        found = {**super().complete(request), **own}
        found.setdefault("orchestratorVersion", version)
        before = request.before.properties if request.before else {}
        if size_of(request, cluster["location"]).gpus:
            found.setdefault("gpuProfile", before.get("gpuProfile", {"driver": "Install"}))
        # A PUT that omits an immutable property does not change it.
        kept = [key for key in self.immutable if key in before and key not in request.body]
        return {**found, **{key: before[key] for key in kept}}

    def on_started(self, request: Request, record: Record) -> None:
        """Record what stays fixed after a pool's creation: its position and whether it has InfiniBand."""
        state, hidden = request.state, record.hidden
        if "order" not in hidden:
            siblings = state.of_type(POOL, _cluster_id(record.id))
            hidden["order"] = max(each.hidden.get("order", 0) for each in siblings) + 1
            hidden["infiniband"] = in_effect(request.facts, state, "Microsoft.ContainerService", "AKSInfinibandSupport")

    def operation(self, state: State, record: Record) -> Operation | None:
        cluster = state.get(_cluster_id(record.id))
        return record.operation or (cluster.operation if cluster else None)

    def on_finished(self, state: State, record: Record) -> None:
        settle_instances(record)
        _show_cluster(state, record)

    def on_failed(self, state: State, record: Record) -> None:
        _show_cluster(state, record)

    def check_delete(self, request: Request) -> None:
        if not any(each.properties["mode"] == "System" for each in request.others(POOL, _cluster_id(request.id))):
            raise refused("LastSystemPool")


AGENT_POOL = AgentPool()


class PoolDeployment(Template, Kind):
    """A template deployed to a resource group."""

    token = "azure-native:resources:Deployment"
    contents = AGENT_POOL
    form = "<cluster>/<pool>"

    def check(self, request: Request) -> None:
        for inner in self.inner(request):
            running = AGENT_POOL.operation(request.state, inner.before or Record(inner.id, AGENT_POOL.token, POOL, {}))
            if running is not None:
                raise refused("OperationInProgress", what=running.kind, id=inner.id)
        super().check(request)

    def on_started(self, request: Request, record: Record) -> None:
        for inner in self.inner(request):
            hidden = inner.before.hidden if inner.before else {}
            pool = Record(inner.id, AGENT_POOL.token, POOL, AGENT_POOL.complete(inner), hidden)
            request.state.put(pool)
            AGENT_POOL.on_started(inner, pool)

    def on_finished(self, state: State, record: Record) -> None:
        for each in record.properties["properties"]["outputResources"]:
            pool = state.get(str(each["id"]))
            if pool is not None:
                settle_instances(pool)


def settle_instances(pool: Record) -> None:
    """Match the instances of a pool's scale set to its count. New ones get the next ids; the highest ids go first."""
    stopped = at(pool.properties, "powerState.code") == "Stopped"
    count = 0 if stopped else int(pool.properties["count"])
    instances = sorted(pool.hidden.get("instances", []))[:count]
    following = int(pool.hidden.get("next", 0))
    while len(instances) < count:
        instances.append(following)
        following += 1
    pool.hidden |= {"instances": instances, "next": following}


def _show_cluster(state: State, pool: Record) -> None:
    """Give the cluster the state of the last operation on one of its pools.

    Source: MicrosoftDocs/SupportArticles-docs, error-code-poddrainfailure.md.
    """
    cluster = state.get(_cluster_id(pool.id))
    if cluster is not None and cluster.operation is None:
        cluster.properties["provisioningState"] = pool.properties["provisioningState"]


def _cluster_id(pool_id: str) -> str:
    return pool_id.rpartition("/agentPools/")[0]
