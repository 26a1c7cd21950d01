"""Prices are dated, have a source, and what has none is unknown."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from review import prices
from review.prices import AZURE as PRICES
from review.prices import Charge, cost, find

ND = "Standard_ND96isr_H100_v5"
GUIDE = Path(__file__).parents[2] / "docs" / "aks.md"


@pytest.mark.parametrize("price", PRICES, ids=lambda price: f"{price.item}-{'-'.join(price.regions)}")
def test_every_price_is_dated_and_has_a_source(price: prices.Price) -> None:
    assert date(2026, 1, 1) <= price.as_of
    assert price.source.startswith("https://")
    assert price.per_hour >= 0


def test_no_item_has_two_prices_in_one_region() -> None:
    pairs = [(price.item, region) for price in PRICES for region in price.regions or ("",)]
    assert len(pairs) == len(set(pairs))


@pytest.mark.parametrize("region", ["eastus", "East US", "EastUS"])
def test_a_region_is_found_however_it_is_spelled(region: str) -> None:
    found = find(ND, region, PRICES)
    assert found is not None
    assert found.per_hour == Decimal("98.32")


def test_another_region_is_unknown() -> None:
    assert find(ND, "westeurope", PRICES) is None


def test_the_free_tier_is_free_everywhere() -> None:
    found = find("AKS tier Free", "westeurope", PRICES)
    assert found is not None
    assert found.per_hour == 0


def test_cost_is_a_range_where_an_autoscaler_decides() -> None:
    total = cost([Charge(item=ND, region="eastus", fewest=1, most=4)], PRICES)
    assert (total.low, total.high, total.unknown) == (Decimal("98.32"), Decimal("393.28"), ())
    assert [price.item for price in total.prices] == [ND]


def test_the_unknown_is_listed_and_not_counted() -> None:
    charges = [
        Charge(item=ND, region="eastus", fewest=2, most=2),
        Charge(item=ND, region="westeurope", fewest=1, most=1),
        Charge(item="StorageAccount data", region="", fewest=1, most=1),
        Charge(item="Standard_Unpriced", region="eastus", fewest=0, most=0),
    ]
    total = cost(charges, PRICES)
    assert total.high == Decimal("196.64")
    assert total.unknown == (f"{ND} in westeurope", "StorageAccount data")


def rows() -> dict[str, list[str]]:
    """Return the rows of the guide's table of costs, by their first cell."""
    table = GUIDE.read_text().split("## What it costs")[1].split("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip("| ").split("|")] for line in table.splitlines() if line[:1] == "|"]
    return {row[0]: row[1:] for row in cells[2:]}


@pytest.mark.parametrize(
    ("row", "item"),
    [
        (f"one GPU node, `{ND}`", ND),
        ("one system node, `Standard_D4s_v5`", "Standard_D4s_v5"),
        ("control plane, tier Standard", "AKS tier Standard"),
    ],
)
def test_the_guide_quotes_the_catalogue(row: str, item: str) -> None:
    price = find(item, "eastus", PRICES)
    assert price is not None
    assert rows()[row] == [str(price.per_hour), price.as_of.isoformat()]


@pytest.mark.parametrize(("row", "nodes"), [("1 GPU node", 1), ("2 GPU nodes", 2), ("4 GPU nodes", 4)])
def test_the_guide_adds_up(row: str, nodes: int) -> None:
    charges = [
        Charge(item="AKS tier Standard", region="eastus", fewest=1, most=1),
        Charge(item="Standard_D4s_v5", region="eastus", fewest=2, most=2),
        Charge(item=ND, region="eastus", fewest=nodes, most=nodes),
    ]
    total = cost(charges, PRICES)
    assert total.unknown == ()
    assert Decimal(rows()[f"the stack with {row}"][0]) == round(total.high, 2)
