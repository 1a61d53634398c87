"""Amounts as Kubernetes writes them become exact integers."""

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.wire.quantity import BadQuantity, parse_quantity, whole_amount

MULTIPLIERS = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
    "e3": Fraction(1000),
    "E+2": Fraction(100),
    "e-7": Fraction(1, 10**7),
}
digits = st.text("0123456789", min_size=1, max_size=18)


@given(st.sampled_from(["", "+"]), digits, st.none() | st.just("") | digits, st.sampled_from(sorted(MULTIPLIERS)))
def test_an_amount_is_its_exact_value_rounded_up(sign: str, whole: str, part: str | None, suffix: str) -> None:
    exact = Fraction(f"{whole}.{part or 0}") * MULTIPLIERS[suffix]
    number = whole if part is None else f"{whole}.{part}"

    nanos = parse_quantity(sign + number + suffix)

    assert nanos == ceil(exact * 10**9)
    assert whole_amount("cpu", nanos) == ceil(exact * 1000)
    assert whole_amount("memory", nanos) == ceil(exact)


@pytest.mark.parametrize(
    ("resource", "text", "amount"),
    [
        ("cpu", "1500m", 1500),
        ("cpu", "0.1", 100),
        ("cpu", "2", 2000),
        ("cpu", "100u", 1),
        ("memory", "1Gi", 2**30),
        ("memory", "128974848", 128974848),
        ("memory", "129e6", 129_000_000),
        ("memory", "1500m", 2),
        ("memory", "1E", 10**18),
        ("nvidia.com/gpu", "8", 8),
        ("pods", "110", 110),
        ("memory", ".5Ki", 512),
        ("memory", "0", 0),
    ],
)
def test_each_resource_has_its_unit(resource: str, text: str, amount: int) -> None:
    assert whole_amount(resource, parse_quantity(text)) == amount


@pytest.mark.parametrize(
    "text",
    ["", " 1", "1\n", "\u0661", ".", "Gi", "1gi", "1_0", "1e2Gi", "1K", "NaN", "Infinity", "1.1.1", "0x1", "1e", "-1"],
)
def test_what_is_no_amount_is_refused_and_quoted(text: str) -> None:
    with pytest.raises(BadQuantity, match="no quantity") as refusal:
        parse_quantity(text)
    assert repr(text) in str(refusal.value)


@pytest.mark.parametrize("text", ["1e999999999", "1e-999999999", "9" * 5000])
def test_an_absurd_amount_is_refused_at_once(text: str) -> None:
    with pytest.raises(BadQuantity):
        parse_quantity(text)


def test_amounts_are_added_before_they_are_rounded() -> None:
    half = parse_quantity("0.5")
    assert whole_amount("memory", half + half) == 1
