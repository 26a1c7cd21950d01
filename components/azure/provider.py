"""The provider of all Azure resources."""

import pulumi
import pulumi_azure_native as azure


def azure_provider(
    name: str, *, subscription: str | None, location: str, opts: pulumi.ResourceOptions | None = None
) -> azure.Provider:
    """Return the provider of one subscription, with the credentials of the Azure CLI or the ARM_* variables.

    subscription: its ID. None selects the one of ARM_SUBSCRIPTION_ID or the Azure CLI.
    """
    return azure.Provider(name, subscription_id=subscription, location=location, opts=opts)
