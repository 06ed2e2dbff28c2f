"""The list that ships is the maintained one: whatever is looked up in it has the same answer."""

from datetime import UTC, date, datetime, time, timedelta

import pytest
from genai_prices.data_snapshot import get_snapshot
from hypothesis import given
from hypothesis import strategies as st

from lab import prices
from ullage.tokens.price_list import Dated, Listed, Match, Prices, price_list

THEIRS = get_snapshot()
NAMES = sorted(
    {
        f"{before}{model.id}"
        for each in THEIRS.providers
        for model in each.models
        for before in ("", "x/")
    }
)


def theirs(name):
    try:
        return THEIRS.find_provider_model(name, None, None, None)
    except LookupError:
        return None


@pytest.mark.parametrize("days", [0, 90])
def test_every_name_has_the_maintained_answer(days):
    now = datetime.combine(price_list().as_of, time(12, tzinfo=UTC)) + timedelta(days)
    told = 0
    for name in NAMES:
        found, listed = price_list().find(name), theirs(name)
        if listed is None:
            assert found is None, name
            continue
        provider, model = listed
        expected = prices.dated(model.get_prices(now))
        if found is None:
            assert not model.context_window, name
            assert expected.prices == Prices(), name
            continue
        assert (found[0], found[1].id) == (provider.id, model.id)
        assert found[1].window == (model.context_window or 0)
        at = found[1].at(now)
        assert (at.prices, at.tiers) == (expected.prices, expected.tiers), name
        told += 1
    assert told > 400


def test_it_is_what_make_prices_would_write():
    found = price_list()
    assert prices.PATH.read_text(encoding="utf-8") == prices.written(found)
    assert prices.built(found.as_of) == found


def test_prices_begin_on_their_day():
    old, new = Prices(input_usd=2.0), Prices(input_usd=1.0)
    listed = Listed(
        id="a", match=Match(), prices=(Dated(prices=old), Dated(prices=new, since=date(2027, 1, 1)))
    )
    assert listed.at(datetime(2026, 12, 31, 23, 59, tzinfo=UTC)).prices == old
    assert listed.at(datetime(2027, 1, 1, tzinfo=UTC)).prices == new


@given(st.times(), st.times(), st.times())
def test_hours_may_pass_midnight(start, end, at):
    start, end, at = (each.replace(tzinfo=UTC) for each in (start, end, at))
    dated = Dated(prices=Prices(), hours=(start, end))
    inside = dated.asked(datetime.combine(date(2026, 11, 23), at))
    other = Dated(prices=Prices(), hours=(end, start))
    if start == end:
        assert not inside
    else:
        assert inside != other.asked(datetime.combine(date(2026, 11, 23), at))


def test_several_clauses_are_all_wanted():
    match = Match(all_of=((Match(contains=("fast",)), Match(starts=("g-",))),))
    assert match.fits("g-fast")
    assert not match.fits("g-slow")
    assert not match.fits("fast")
