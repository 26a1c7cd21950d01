"""What machines cost by the hour, as far as a dated source says so. What is not here is unknown, and is called that.

List prices in US dollars, before tax and before any agreement. They change: look at `as_of`, and at the provider's
calculator before a budget depends on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final

CURRENCY: Final = "USD"


@dataclass(frozen=True, kw_only=True)
class Price:
    """One price of one item in some regions.

    item: a machine type or another thing that is charged for. regions: in lower case, without blanks; empty for all.
    per_hour: US dollars for one piece. as_of: the day on which the source gave this figure.
    """

    item: str
    regions: tuple[str, ...]
    per_hour: Decimal
    as_of: date
    source: str


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


def find(item: str, region: str, prices: Sequence[Price]) -> Price | None:
    """Return an item's price in a region, however the region is spelled (`East US`, `eastus`); None when unknown."""
    wanted = region.replace(" ", "").lower()
    for price in prices:
        if price.item == item and (not price.regions or wanted in price.regions):
            return price
    return None


def cost(charges: Iterable[Charge], prices: Sequence[Price]) -> Cost:
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
