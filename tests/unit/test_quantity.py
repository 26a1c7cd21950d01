"""Quantities parse and print as in k8s.io/apimachinery: the tables were printed by its v0.34.2."""

import pytest

from components.kubernetes.quantity import Quantity, QuantityError, canonical
from tests.unit.tables import table

CANONICAL = table("quantity", "canonical")


@pytest.mark.parametrize(("text", "wanted"), CANONICAL.items())
def test_a_string_prints_as_kubernetes_prints_it(text: str, wanted: str) -> None:
    assert canonical(text) == wanted


@pytest.mark.parametrize("wanted", sorted(set(CANONICAL.values())))
def test_the_canonical_form_is_stable(wanted: str) -> None:
    assert canonical(wanted) == wanted


@pytest.mark.parametrize(
    ("number", "wanted"),
    table("quantity", "numbers"),
)
def test_a_number_of_yaml_or_json_is_a_quantity(number: float, wanted: str) -> None:
    assert canonical(number) == wanted


@pytest.mark.parametrize(
    ("value", "reason"),
    table("quantity", "refused"),
)
def test_anything_else_is_refused_with_its_reason(value: object, reason: str) -> None:
    with pytest.raises(QuantityError, match=reason):
        Quantity.parse(value)


def test_one_that_was_read_already_stays_as_it_is() -> None:
    amount = Quantity.parse("128Gi")
    assert Quantity.parse(amount) is amount


def test_sums_and_differences_are_exact_and_never_negative() -> None:
    memory, node = Quantity.parse("2000G"), Quantity.parse("2113411288Ki")
    assert str(memory + memory + memory) == "6T"
    assert str(node * 3) == "6340233864Ki"
    assert str(memory - node) == "0"
    assert str(node - memory) == "160286288Ki"
    assert Quantity.parse("24") // Quantity.parse("8") == 3
    assert Quantity.parse("1Gi") < Quantity.parse("1074M")
