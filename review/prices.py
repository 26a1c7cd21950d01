"""Prices per hour of machines, each with a dated source (prices.yaml). Other prices are reported as unknown.

They change: see `as_of`, and check the provider's calculator before you set a budget.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final

from components.tables import Table  # noqa: TID251 - reads a file, without components

CURRENCY: Final = "USD"


@dataclass(frozen=True, kw_only=True)
class Price:
    """One price of one item in some regions.

    item: a machine type or another charged item. regions: in lower case, without blanks, empty for all.
    per_hour: US dollars or billing units for one piece. as_of: the day of the source.
    """

    item: str
    regions: tuple[str, ...]
    per_hour: Decimal
    as_of: date
    source: str


@dataclass(frozen=True, kw_only=True)
class Charge:
    """A number of pieces of an item. fewest and most differ if an autoscaler decides."""

    item: str
    region: str
    fewest: int
    most: int


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The sum of charges per hour.

    low, high: US dollars for the fewest and for the most pieces, of the items with a price.
    prices: the prices in the sum. unknown: sorted items without a price that can have pieces.
    """

    low: Decimal
    high: Decimal
    prices: tuple[Price, ...]
    unknown: tuple[str, ...]


class _Source(Table):
    per_hour: Mapping[str, Decimal]
    regions: tuple[str, ...] = ()
    as_of: date
    source: str

    def prices(self) -> list[Price]:
        return [
            Price(item=item, regions=self.regions, per_hour=rate, as_of=self.as_of, source=self.source)
            for item, rate in self.per_hour.items()
        ]


class _Prices(Table):
    azure: tuple[_Source, ...]
    openstack: tuple[_Source, ...]
    without_charge: frozenset[str]


_PRICES: Final = _Prices.load(__name__)
AZURE: Final = tuple(price for source in _PRICES.azure for price in source.prices())
"""List prices in US dollars."""
OPENSTACK: Final = tuple(price for source in _PRICES.openstack for price in source.prices())
"""CSC's rates in billing units."""
WITHOUT_CHARGE: Final = _PRICES.without_charge
"""Types of Azure resources without a charge of their own."""


def find(item: str, region: str, prices: Sequence[Price]) -> Price | None:
    """Return an item's price in a region in any spelling (`East US`, `eastus`). None if unknown."""
    wanted = region.replace(" ", "").lower()
    for price in prices:
        if price.item == item and (not price.regions or wanted in price.regions):
            return price
    return None


def cost(charges: Iterable[Charge], prices: Sequence[Price]) -> Cost:
    """Return the sum of charges. A charge of 0 pieces has no cost, even if its price is unknown."""
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
