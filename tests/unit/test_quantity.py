"""Quantities parse and print as in k8s.io/apimachinery: the tables were printed by its v0.34.2."""

from __future__ import annotations

import pytest

from components.kubernetes.quantity import Quantity, QuantityError, canonical

CANONICAL = {
    "1.000000000000000000000000000000000000": "1",
    "0": "0",
    "8": "8",
    "+8": "8",
    "08": "8",
    "8000m": "8",
    "500m": "500m",
    "0.5": "500m",
    ".5": "500m",
    "1.": "1",
    "1.0": "1",
    "1.5": "1500m",
    "100.000": "100",
    "224": "224",
    "1000": "1k",
    "100": "100",
    "2000G": "2T",
    "2T": "2T",
    "1000M": "1G",
    "1000000000": "1G",
    "999999m": "999999m",
    "100k": "100k",
    "5P": "5P",
    "5Pi": "5Pi",
    "8E": "8E",
    "9E": "9E",
    "1n": "1n",
    "1u": "1u",
    "1000u": "1m",
    "3.14159": "3141590u",
    "128Gi": "128Gi",
    "1024Mi": "1Gi",
    "1000Ki": "1000Ki",
    "1025Ki": "1025Ki",
    "1.5Gi": "1536Mi",
    "0.5Gi": "512Mi",
    "0.5Ki": "512",
    "0.0001Ki": "102400u",
    "1.0001Ki": "1024102400u",
    "2113411288Ki": "2113411288Ki",
    "1900Gi": "1900Gi",
    "7Ei": "7Ei",
    "0Ki": "0",
    "0e5": "0",
    "1e3": "1e3",
    "1E3": "1e3",
    "12e6": "12e6",
    "1e4": "10e3",
    "1e18": "1e18",
    "1.5e0": "1500e-3",
    "1500e-3": "1500e-3",
    "1e-3": "1e-3",
}


@pytest.mark.parametrize(("text", "wanted"), CANONICAL.items())
def test_a_string_prints_as_kubernetes_prints_it(text: str, wanted: str) -> None:
    assert canonical(text) == wanted


@pytest.mark.parametrize("wanted", sorted(set(CANONICAL.values())))
def test_the_canonical_form_is_stable(wanted: str) -> None:
    assert canonical(wanted) == wanted


@pytest.mark.parametrize(
    ("number", "wanted"),
    [
        (8, "8"),
        (0, "0"),
        (224, "224"),
        (1000, "1k"),
        (0.5, "500m"),
        (1.0, "1"),
        (0.125, "125m"),
        (2e12, "2T"),
        (0.1, "100m"),
    ],
)
def test_a_number_of_yaml_or_json_is_a_quantity(number: float, wanted: str) -> None:
    assert canonical(number) == wanted


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("-8", "never negative"),
        (-8, "never negative"),
        (-0.5, "never negative"),
        ("-1e3", "never negative"),
        (True, "true or false"),
        (None, "nothing"),
        ([8], "a list"),
        ({"cpu": 8}, "a mapping"),
        (float("nan"), "finite"),
        (float("inf"), "finite"),
        (0.0001, "3 decimals"),
        ("", "not a Kubernetes quantity"),
        (".", "not a Kubernetes quantity"),
        ("8g", "not a Kubernetes quantity"),
        ("8GB", "not a Kubernetes quantity"),
        ("8K", "not a Kubernetes quantity"),
        ("8 Gi", "not a Kubernetes quantity"),
        ("1e", "not a Kubernetes quantity"),
        ("1i", "not a Kubernetes quantity"),
        ("NaN", "not a Kubernetes quantity"),
        ("eight", "not a Kubernetes quantity"),
        ("٨", "not a Kubernetes quantity"),
        ("0.1n", "finer"),
        ("1e-40", "finer"),
        ("8Ei", "more than Kubernetes can hold"),
        ("10E", "more than Kubernetes can hold"),
        ("1e999999999", "more than Kubernetes can hold"),
    ],
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
