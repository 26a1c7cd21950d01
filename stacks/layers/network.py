"""Network rules of a namespace's pods, from the settings."""

from typing import Any

from components.kubernetes.network import Network, Peers, Pods, Resolvers
from components.observability import prometheus
from stacks.config.inputs import StackInputs
from stacks.settings.network import RAY_DASHBOARD, PeerSettings, TeamNetworkSettings


def network(inputs: StackInputs[Any], team: TeamNetworkSettings | None = None) -> Network | None:
    """Return the rules of a namespace, of a team or not, or None if network policies are off."""
    own, settings = team or TeamNetworkSettings(), inputs.settings.tenancy.network
    if not settings.enabled:
        return None
    metrics = inputs.settings.monitoring
    scrapers = (prometheus.scrapers(metrics.namespace),) if metrics.enabled else ()
    teams = {item.name for item in inputs.settings.teams}
    is_default = "ray_operators" not in settings.model_fields_set
    brought = inputs.target.ray_operators(inputs.settings) if is_default else ()
    operators = [Pods(namespace=name) for name in (*settings.ray_operators, *brought) if name not in teams]
    return Network(
        callers=_peers(settings.ingress, own.ingress, scrapers=scrapers),
        callers_of={RAY_DASHBOARD: Peers(pods=operators)},
        called=_peers(settings.egress, own.egress),
        internet=settings.egress.internet,
        denied=settings.egress.denied,
        resolvers=Resolvers(
            pods=[Pods(namespace=item.namespace, labels=item.labels) for item in settings.dns.pods],
            ports=settings.dns.ports,
            addresses=settings.dns.addresses,
        ),
    )


def _peers(*settings: PeerSettings, scrapers: tuple[Pods, ...] = ()) -> Peers:
    namespaces = dict.fromkeys(name for item in settings for name in item.namespaces)
    addresses = dict.fromkeys(address for item in settings for address in item.addresses)
    return Peers(pods=[*scrapers, *(Pods(namespace=name) for name in namespaces)], addresses=list(addresses))
