"""InfiniBand between AKS nodes: a feature that the subscription has to have, or must not have."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final

import pulumi
from pulumi_azure_native import features, resources

NAMESPACE: Final = "Microsoft.ContainerService"
FEATURE: Final = "AKSInfinibandSupport"
SHOW: Final = f"az feature show --namespace {NAMESPACE} --name {FEATURE} --query properties.state"
REGISTER: Final = f"az feature register --namespace {NAMESPACE} --name {FEATURE}"
PROPAGATE: Final = f"az provider register --namespace {NAMESPACE}"

_REGISTERED: Final = "Registered"
_PENDING: Final = frozenset({"NotSpecified", "NotRegistered", "Pending", "Registering"})
"""States on the way to Registered; the first two are what a registration shows before Azure has taken it up."""


class FeatureError(Exception):
    """The subscription does not have the feature, or only just: somebody has to do something about it."""


@dataclass(frozen=True, kw_only=True)
class InfinibandFeatureArgs:
    """deployment: name of the template's deployment, which no other stack in the subscription has.

    location: where Azure keeps the record of the deployment. timeout_seconds: how long the registration may take;
    minutes are usual, half an hour happens. poll_seconds: between two looks at its state.
    """

    deployment: str
    location: str
    timeout_seconds: int = 1800
    poll_seconds: float = 15


class InfinibandFeature(pulumi.ComponentResource):
    """Register AKSInfinibandSupport, and let nothing stand on it before the subscription has it.

    Node pools that are created earlier are spread over racks that no InfiniBand fabric connects. An update that sees
    the feature become registered stops there: AKS has to be told by a command that no resource stands for
    (learn.microsoft.com/azure/aks/use-hpc-infiniband). The feature belongs to the subscription, whose other clusters
    may need it too: destroying the stack leaves it registered. A preview never waits.

    By a template, because every feature is there before anybody registers it, and the provider's own resource for a
    registration refuses to create what is there (pulumi/pulumi-azure-native issue 1722).
    """

    registered: pulumi.Output[pulumi.Resource]
    """Depend on this to create a cluster or a pool that has the feature; it comes if Azure says Registered at once."""

    def __init__(self, name: str, args: InfinibandFeatureArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:azure:InfinibandFeature", name, None, opts)
        self._args = args
        registration = resources.DeploymentAtSubscriptionScope(
            args.deployment,
            deployment_name=args.deployment,
            location=args.location,
            properties=resources.DeploymentPropertiesArgs(
                mode=resources.DeploymentMode.INCREMENTAL, template=template()
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
        state: pulumi.Output[str] = registration.id.apply(lambda _: self._wait())
        self.registered = state.apply(lambda _: registration)
        self.register_outputs({"state": state})

    async def _wait(self) -> str:
        if pulumi.runtime.is_dry_run():
            return "not asked during a preview"
        waited = 0.0
        while (state := await self._state()) != _REGISTERED:
            if state not in _PENDING:
                raise FeatureError(
                    f"{FEATURE} is {state or 'in no state'}, from which it does not become {_REGISTERED}: run "
                    f"`{REGISTER}`, and once `{SHOW}` says {_REGISTERED}, `{PROPAGATE}`; then run this update again"
                )
            if waited >= self._args.timeout_seconds:
                raise FeatureError(
                    f"{FEATURE} is still {state} after {waited:.0f} s: Azure goes on without us, so run this update "
                    f"again once `{SHOW}` says {_REGISTERED}, or raise mlbatch:azure.feature.timeoutSeconds"
                )
            pulumi.log.info(
                f"{FEATURE} is {state}; waited {waited:.0f} of at most {self._args.timeout_seconds} s", self
            )
            await asyncio.sleep(self._args.poll_seconds)
            waited += self._args.poll_seconds
        if waited:
            raise FeatureError(
                f"{FEATURE} is {_REGISTERED} since just now, and AKS learns of it when its provider is registered "
                f"anew: run `{PROPAGATE}`, then this update again. A GPU pool from before that costs as much and stays "
                "without InfiniBand, so none was created"
            )
        return _REGISTERED

    async def _state(self) -> str | None:
        answer = features.get_subscription_feature_registration_output(
            provider_namespace=NAMESPACE, feature_name=FEATURE, opts=pulumi.InvokeOutputOptions(parent=self)
        )
        found = await answer.future()
        return found.properties.state if found is not None and found.properties is not None else None


def template() -> dict[str, Any]:
    """Return the template that registers the feature, as Bicep's reference of Microsoft.Features has it."""
    return {
        "$schema": "https://schema.management.azure.com/schemas/2018-05-01/subscriptionDeploymentTemplate.json#",
        "contentVersion": "1.0.0.0",
        "resources": [
            {
                "type": "Microsoft.Features/featureProviders/subscriptionFeatureRegistrations",
                "apiVersion": "2021-07-01",
                "name": f"{NAMESPACE}/{FEATURE}",
                "properties": {},
            }
        ],
    }
