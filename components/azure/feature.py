"""InfiniBand between AKS nodes: a feature that a subscription must, or must not, have registered."""

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
"""States before Registered. A registration shows the first two until Azure starts to process it."""


class FeatureError(pulumi.RunError):
    """The subscription does not have the feature, or got it just now. The user has to act."""


@dataclass(frozen=True, kw_only=True)
class InfinibandFeatureArgs:
    """The arguments of the registration.

    deployment: name of the template's deployment, unique in the subscription.
    location: where Azure stores the record of the deployment.
    timeout_seconds: limit for the registration. It usually takes minutes, and sometimes half an hour.
    poll_seconds: time between two requests for its state.
    """

    deployment: str
    location: str
    timeout_seconds: int = 1800
    poll_seconds: float = 15


class InfinibandFeature(pulumi.ComponentResource):
    """Register AKSInfinibandSupport. Resources that need it wait until the subscription has it.

    Node pools that are created earlier are spread over racks that InfiniBand does not connect. An update during which
    the feature becomes registered stops there, because AKS needs a command that no resource represents
    (learn.microsoft.com/azure/aks/use-hpc-infiniband). Other clusters of the subscription may need the feature too, so
    it remains registered when the stack is destroyed. A preview never waits.

    It uses a template, because all features exist before their registration. The provider's resource for a registration
    refuses to create an existing one (pulumi/pulumi-azure-native issue 1722).
    """

    registered: pulumi.Output[pulumi.Resource]
    """Depend on this to create a cluster or a pool with the feature. It resolves if Azure already reports Registered.
    """

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
                    f"{FEATURE} is in state {state or 'unknown'}, and Azure does not register it. Run `{REGISTER}`. "
                    f"When `{SHOW}` prints {_REGISTERED}, run `{PROPAGATE}`, then this update again"
                )
            if waited >= self._args.timeout_seconds:
                raise FeatureError(
                    f"{FEATURE} is still {state} after {waited:.0f} s. Azure continues to register it. When `{SHOW}` "
                    f"prints {_REGISTERED}, run `{PROPAGATE}`, then this update again"
                )
            pulumi.log.info(
                f"{FEATURE} is {state}; waited {waited:.0f} of at most {self._args.timeout_seconds} s", self
            )
            await asyncio.sleep(self._args.poll_seconds)
            waited += self._args.poll_seconds
        if waited:
            raise FeatureError(
                f"{FEATURE} was registered during this update, and AKS does not use it yet. Run `{PROPAGATE}`, then "
                "this update again. No GPU pool was created, because it would have no InfiniBand"
            )
        return _REGISTERED

    async def _state(self) -> str | None:
        answer = features.get_subscription_feature_registration_output(
            provider_namespace=NAMESPACE, feature_name=FEATURE, opts=pulumi.InvokeOutputOptions(parent=self)
        )
        found = await answer.future()
        return found.properties.state if found is not None and found.properties is not None else None


def template() -> dict[str, Any]:
    """Return the template that registers the feature, as in Bicep's reference of Microsoft.Features."""
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
