"""What machines cost by the hour, as far as a dated source says so. What is not here is unknown, and is called that.

Pay-as-you-go list prices for Linux, in US dollars, before tax and before any agreement of the subscription. They
change: look at `as_of`, and at the Azure pricing calculator before a budget depends on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final

CURRENCY: Final = "USD"

AKS_FREE: Final = "AKS tier Free"
AKS_STANDARD: Final = "AKS tier Standard"
"""Names of the charge for a cluster's control plane, `sku.tier` of a managed cluster."""

_RETAIL: Final = "https://prices.azure.com/api/retail/prices"
_AKS_TIERS: Final = "https://learn.microsoft.com/azure/aks/free-standard-pricing-tiers"


@dataclass(frozen=True, kw_only=True)
class Price:
    """One price of one item in some regions.

    item: a VM size, or one of the names above. regions: as Azure's API spells them; empty for all.
    per_hour: US dollars for one piece. as_of: the day on which the source gave this figure.
    """

    item: str
    regions: tuple[str, ...]
    per_hour: Decimal
    as_of: date
    source: str


def _retail(size: str, region: str) -> str:
    """Return the question to the Azure Retail Prices API that the price answers."""
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


@dataclass(frozen=True, kw_only=True)
class Charge:
    """So many pieces of an item; fewest and most differ where an autoscaler decides."""

    item: str
    region: str
    fewest: int
    most: int


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What charges add up to by the hour.

    low, high: US dollars for the fewest and for the most pieces, of what has a price.
    prices: those that were used. unknown: the items without one, of which there may be pieces; sorted.
    """

    low: Decimal
    high: Decimal
    prices: tuple[Price, ...]
    unknown: tuple[str, ...]


def find(item: str, region: str, prices: Sequence[Price] = PRICES) -> Price | None:
    """Return an item's price in a region, however the region is spelled (`East US`, `eastus`); None when unknown."""
    wanted = region.replace(" ", "").lower()
    for price in prices:
        if price.item == item and (not price.regions or wanted in price.regions):
            return price
    return None


def cost(charges: Iterable[Charge], prices: Sequence[Price] = PRICES) -> Cost:
    """Return what charges cost together. A charge of no pieces costs nothing, whether its price is known or not."""
    low, high = Decimal(0), Decimal(0)
    used: list[Price] = []
    unknown: set[str] = set()
    for charge in charges:
        if charge.most == 0:
            continue
        price = find(charge.item, charge.region, prices)
        if price is None:
            unknown.add(f"{charge.item} in {charge.region}" if charge.region else charge.item)
            continue
        low += price.per_hour * charge.fewest
        high += price.per_hour * charge.most
        if price not in used:
            used.append(price)
    return Cost(low=low, high=high, prices=tuple(used), unknown=tuple(sorted(unknown)))
