"""The one provider of every Azure resource."""

from __future__ import annotations

import pulumi
import pulumi_azure_native as azure


def azure_provider(
    name: str, *, subscription: str | None, location: str, opts: pulumi.ResourceOptions | None = None
) -> azure.Provider:
    """Return the provider of one subscription, signed in as the Azure CLI or the ARM_* variables say.

    subscription: its id; None for the one that ARM_SUBSCRIPTION_ID or the Azure CLI names.
    """
    return azure.Provider(name, subscription_id=subscription, location=location, opts=opts)
