"""Microsoft.ContainerService: managed clusters.

Like in Azure, an inline agent pool and a separate one are the same resource, and the cluster's `agentPoolProfiles`
reads back every pool.
"""

import re
from collections.abc import Sequence

from emulator.azure.errors import invalid, refused
from emulator.azure.facts import AzureFacts
from emulator.azure.services.agent_pools import AGENT_POOL, settle_instances
from emulator.azure.services.base import CLUSTER, POOL, Kind, Request, at, group_id, stable_uuid
from emulator.azure.services.cluster_network import check_access, network_profile
from emulator.azure.services.identity import identity_of
from emulator.azure.services.kubelet_identity import kubelet_identity
from emulator.azure.services.kubernetes_versions import LONG_TERM, cluster_version
from emulator.azure.services.resources import ResourceGroup
from emulator.azure.store import Operation, Properties, Record, State

_PREFIX = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,52}[A-Za-z0-9])?"
_LEAST_RSA_BITS = 2048


class ManagedCluster(Kind):
    """A managed Kubernetes cluster. The emulated one is the local cluster, so only one can exist."""

    token = "azure-native:containerservice:ManagedCluster"

    def check(self, request: Request) -> None:
        others = request.others(CLUSTER)
        if others:
            raise refused("LocalClusterTaken", owner=others[0].id)
        self._check_profile(request)
        properties = self.complete(request)
        pools = request.body.get("agentPoolProfiles") or []
        if request.creates and not any(each.get("mode") == "System" for each in pools):
            raise invalid("Parameter agentPoolProfiles: a managed cluster needs at least one pool of mode System.")
        names = [str(each["name"]) for each in pools]
        if not request.creates and pools:
            _check_listed(request, pools)
        if twice := {name for name in names if names.count(name) > 1}:
            raise invalid(f"agentPoolProfiles has the name {', '.join(sorted(twice))} twice.")
        for inner in self._pools(request):
            name, rule = inner.names["agentPoolName"], AGENT_POOL.rule
            if rule is not None and not re.fullmatch(rule.pattern, name):
                raise invalid(f"The agent pool name '{name}' is invalid: it may have {rule.allowed}.")
            AGENT_POOL.check_in(inner, properties)

    def complete(self, request: Request) -> Properties:
        found = super().complete(request)
        found.pop("agentPoolProfiles", None)
        return found

    def computed(self, request: Request) -> Properties:
        body, tenant = request.body, request.facts.tenant_id
        version = cluster_version(request)
        node_group = _node_group(request)
        address = f"{body['dnsPrefix']}-{stable_uuid(request.id)[:8]}.hcp.{request.location}.azmk8s.io"
        private = at(body, "apiServerAccessProfile.enablePrivateCluster")
        found = {
            "currentKubernetesVersion": version,
            "identity": identity_of(request),
            "identityProfile": {"kubeletidentity": kubelet_identity(request, node_group)},
            "kubernetesVersion": body.get("kubernetesVersion") or version,
            "networkProfile": network_profile(request),
            "nodeResourceGroup": node_group,
            "privateFQDN" if private else "fqdn": address,
        }
        if at(body, "oidcIssuerProfile.enabled"):
            issuer = f"https://{request.location}.oic.prod-aks.azure.com/{tenant}/{stable_uuid(request.id, 'issuer')}/"
            found["oidcIssuerProfile"] = {"enabled": True, "issuerURL": issuer}
        if body.get("aadProfile"):
            found["aadProfile"] = {"tenantID": tenant, **body["aadProfile"]}
        return found

    def on_started(self, request: Request, record: Record) -> None:
        for inner in self._pools(request):
            properties = AGENT_POOL.complete_in(inner, record.properties)
            properties["provisioningState"] = record.properties["provisioningState"]
            hidden = inner.before.hidden if inner.before else {}
            pool = Record(inner.id, AGENT_POOL.token, POOL, properties, hidden)
            request.state.put(pool)
            AGENT_POOL.on_started(inner, pool)
        name = record.properties["nodeResourceGroup"]
        group = group_id(request.facts, name)
        if request.state.get(group) is None:
            properties = {**ResourceGroup.defaults, "location": request.location, "managedBy": record.id, "name": name}
            request.state.put(Record(group, ResourceGroup.token, ResourceGroup.type, properties))

    def operation(self, state: State, record: Record) -> Operation | None:
        pools = state.of_type(POOL, record.id)
        return record.operation or next((each.operation for each in pools if each.operation), None)

    def on_finished(self, state: State, record: Record) -> None:
        for pool in state.of_type(POOL, record.id):
            if pool.operation is None:
                pool.properties["provisioningState"] = "Succeeded"
                settle_instances(pool)

    def on_failed(self, state: State, record: Record) -> None:
        for pool in state.of_type(POOL, record.id):
            if pool.operation is None:
                pool.properties["provisioningState"] = "Failed"

    def to_response(self, state: State, record: Record) -> Properties:
        pools = state.of_type(POOL, record.id)
        # In order of creation: pools declared inline come first.
        pools.sort(key=lambda each: each.hidden["order"])
        return {**record.properties, "agentPoolProfiles": [each.properties for each in pools]}

    def on_deleted(self, facts: AzureFacts, state: State, record: Record) -> None:
        state.remove(group_id(facts, record.properties["nodeResourceGroup"]))

    def _pools(self, request: Request) -> list[Request]:
        """Return the requests for the inline pools."""
        found = []
        for each in request.body.get("agentPoolProfiles") or []:
            names = {**request.names, "agentPoolName": str(each["name"])}
            pool_id = AGENT_POOL.id(request.facts, names)
            body = {key: value for key, value in each.items() if key != "name"}
            found.append(Request(request.facts, request.state, pool_id, names, body, request.state.get(pool_id)))
        return found

    def _check_profile(self, request: Request) -> None:
        body = request.body
        if not re.fullmatch(_PREFIX, str(body.get("dnsPrefix", ""))):
            raise invalid(
                f"Provided dnsPrefix {body.get('dnsPrefix')} is invalid: 1-54 letters, digits and hyphens, a letter or "
                "digit at both ends."
            )
        if not body.get("identity"):
            raise invalid(
                "Neither identity nor servicePrincipalProfile is given: a cluster needs one of them.",
                "Set identity.type to SystemAssigned or UserAssigned.",
            )
        if body.get("disableLocalAccounts") and not body.get("aadProfile"):
            raise refused("LocalAccountsNeeded")
        group = request.state.get(group_id(request.facts, _node_group(request)))
        if group is not None and str(group.properties.get("managedBy", "")).lower() != request.id.lower():
            raise refused("NodeResourceGroupAlreadyExists", group=group.name)
        for key in at(body, "linuxProfile.ssh.publicKeys") or []:
            _check_ssh_key(str(key["keyData"]))
        check_access(body.get("apiServerAccessProfile") or {})
        if body.get("supportPlan") == LONG_TERM and at(body, "sku.tier") != "Premium":
            raise refused("LongTermSupportNeedsPremium", plan=LONG_TERM)


def _check_listed(request: Request, pools: Sequence[Properties]) -> None:
    """Reject a list of pools that differs from the cluster's."""
    existing = {pool.name: pool.properties for pool in request.state.of_type(POOL, request.id)}
    listed = {str(each["name"]): each.get("orchestratorVersion") for each in pools}
    if listed.keys() - existing.keys():
        raise refused("NewPool")
    if missing := existing.keys() - listed.keys():
        raise refused("MissingPool", pools=", ".join(sorted(missing)))
    if any(listed.values()) and not all(
        version and (version == request.body.get("kubernetesVersion") or _is_version(existing[name], version))
        for name, version in listed.items()
    ):
        raise refused("NotAllAgentPoolOrchestratorVersionSpecifiedAndUnchanged")


def _is_version(pool: Properties, version: str) -> bool:
    current = str(pool["currentOrchestratorVersion"])
    return version in (pool["orchestratorVersion"], current) or current.startswith(f"{version}.")


def _node_group(request: Request) -> str:
    group, name = request.names["resourceGroupName"], request.names["resourceName"]
    return str(request.body.get("nodeResourceGroup") or f"MC_{group}_{name}_{request.location}"[:80])


def _check_ssh_key(text: str) -> None:
    """Raise ArmError for keys other than RSA keys of 2048 bits (https://github.com/Azure/AKS/issues/1172, 3434)."""
    # Imported here because it is slow to import.
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.serialization import load_ssh_public_key

    try:
        key = load_ssh_public_key(text.strip().encode())
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, RSAPublicKey) or key.key_size < _LEAST_RSA_BITS:
        raise invalid(
            "The value of parameter linuxProfile.ssh.publicKeys.keyData is invalid: no RSA key of "
            f"{_LEAST_RSA_BITS} bits or more as OpenSSH writes them.",
            "Give the content of a file such as ~/.ssh/id_rsa.pub.",
        )
