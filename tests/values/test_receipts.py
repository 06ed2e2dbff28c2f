"""Receipts as values: sums, and names from outside."""

from hypothesis import given
from hypothesis import strategies as st

from ullage.core.values.receipts import (
    NAME_CHARS,
    Receipt,
    ReceiptKey,
    ReceiptTotals,
    TokenCounts,
    name_of,
    summed,
)

COUNTS = st.integers(0, 10**9)
TOKENS = st.builds(
    TokenCounts, fresh=COUNTS, read=COUNTS, written=COUNTS, output=COUNTS
)
SUMS = st.builds(
    ReceiptTotals, requests=COUNTS, sent=TOKENS, raw=TOKENS, recalls=COUNTS
)


@given(SUMS, SUMS)
def test_what_is_added_can_be_taken_out_again(one, other):
    assert one + other - other == one
    assert (one + other).sent.prompt == one.sent.prompt + other.sent.prompt


@given(st.text(st.characters()))
def test_a_name_is_one_line_of_bounded_length(text):
    name = name_of(text)
    assert len(name) <= NAME_CHARS
    assert len(name.splitlines()) <= 1
    name.encode()  # no lone surrogate is left
    assert name_of(name) == name


def test_receipts_are_summed_by_what_is_asked_for():
    places = [
        ReceiptKey("2026-11-27", "a", "m"),
        ReceiptKey("2026-11-26", "a", "n"),
        ReceiptKey("2026-11-26", "b"),
    ]
    rows = [
        Receipt(key=place, writer="w", sums=ReceiptTotals(requests=10**n))
        for n, place in enumerate(places)
    ]
    assert {
        key: sums.requests for key, sums in summed(rows, ("day",)).items()
    } == {
        ("2026-11-26",): 110,
        ("2026-11-27",): 1,
    }
    assert summed(rows, ("tenant",))[("a",)].requests == 11
    assert summed(rows)[()].requests == 111
    assert summed([]) == {}


def test_a_saving_is_a_share_of_what_would_have_been_paid():
    assert ReceiptTotals(sent_usd=3.0, raw_usd=4.0).saved_share == 0.25
    assert ReceiptTotals(sent_usd=3.0, raw_usd=4.0).saved_usd == 1.0
    assert ReceiptTotals().saved_share is None
