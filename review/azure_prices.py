"""Prices per hour of Azure machines and clusters: pay-as-you-go list prices for Linux (see `review.prices`).

Check the Azure pricing calculator before you set a budget.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Final

from review.prices import Price

AKS_FREE: Final = "AKS tier Free"
AKS_STANDARD: Final = "AKS tier Standard"
"""Names of the charge for a cluster's control plane, from `sku.tier` of a managed cluster."""

_RETAIL: Final = "https://prices.azure.com/api/retail/prices"
_AKS_TIERS: Final = "https://learn.microsoft.com/azure/aks/free-standard-pricing-tiers"


def _retail(size: str, region: str) -> str:
    """Return the request to the Azure Retail Prices API that returns the price."""
    return f"{_RETAIL}?$filter=armRegionName eq '{region}' and armSkuName eq '{size}' and priceType eq 'Consumption'"


PRICES: Final[tuple[Price, ...]] = (
    Price(
        item="Standard_ND96isr_H100_v5",
        regions=("eastus",),
        per_hour=Decimal("98.32"),
        as_of=date(2026, 9, 16),
        source=_retail("Standard_ND96isr_H100_v5", "eastus"),
    ),
    Price(
        item="Standard_D4s_v5",
        regions=("eastus",),
        per_hour=Decimal("0.192"),
        as_of=date(2026, 9, 22),
        source=_retail("Standard_D4s_v5", "eastus"),
    ),
    Price(
        item="Standard_D4s_v5",
        regions=("centralus",),
        per_hour=Decimal("0.217"),
        as_of=date(2026, 9, 29),
        source=_retail("Standard_D4s_v5", "centralus"),
    ),
    Price(item=AKS_FREE, regions=(), per_hour=Decimal(0), as_of=date(2026, 7, 6), source=_AKS_TIERS),
    Price(
        item=AKS_STANDARD,
        regions=("centralus", "eastus", "francecentral"),
        per_hour=Decimal("0.10"),
        as_of=date(2026, 9, 29),
        source=f"{_RETAIL}?$filter=serviceName eq 'Azure Kubernetes Service' and meterName eq 'Standard Uptime SLA'",
    ),
)
