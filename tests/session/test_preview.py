"""What a decision would change and cost, before it is made."""

import pytest

from tests.session.test_deciding import (
    MODELS,
    WIRES,
    fit,
    gone,
    pressed,
    shown,
)
from ullage.core.tokens.catalog import lookup
from ullage.session.decisions.preview import Preview


@pytest.mark.parametrize("wire", WIRES)
def test_it_tells_what_the_next_view_comes_to_and_keeps_nothing(wire):
    session, messages, view = pressed(wire)
    name, records = gone(session)[-1], session.state.ledger
    told = session.preview("pin", name)
    assert session.state.ledger == records
    assert session.decisions == ()
    assert shown(fit(session, wire, messages)) == shown(view)
    session.pin(name)
    after = fit(session, wire, messages)
    assert told.tokens_after == session.window.estimate
    pairs = zip(view[view.wire.key], after[after.wire.key], strict=False)
    first = next(at for at, (one, other) in enumerate(pairs) if one != other)
    assert told.changed_from == first + 1
    assert 0 < told.rewritten_tokens <= told.tokens_after


def test_the_price_is_that_of_the_model():
    session, messages, _ = pressed("anthropic")
    told = session.preview("drop", f"m{len(messages)}")
    price = lookup(MODELS["anthropic"]).prices_at(told.rewritten_tokens)
    rate = (price.cache_write_usd - price.cache_read_usd) / 1_000_000
    assert told.cost_now_usd == pytest.approx(told.rewritten_tokens * rate)
    more = told.tokens_after - told.tokens_before
    assert told.cost_per_call_usd == pytest.approx(
        more * price.cache_read_usd / 1_000_000
    )
    assert "written to the cache again" in str(told)


def test_what_changes_nothing_says_so():
    session, messages, _ = pressed("anthropic")
    told = session.preview("pin", f"m{len(messages)}")
    assert told.changes_nothing
    assert str(told) == f"nothing changes: {told.tokens_after:,} tokens"


def test_a_view_has_it_too():
    _, _, view = pressed("anthropic")
    told = view.preview("note", "Keep it short.")
    assert isinstance(told, Preview)
    assert told.cost_now_usd is not None
    assert [event.kind for event in told.events] == ["added", "decided"]


def test_a_note_that_cannot_fit_is_not_shown_and_that_is_told():
    _, _, view = pressed("anthropic")
    told = view.preview("note", "word " * 40_000)
    assert "overruled" in [event.kind for event in told.events]
    assert told.tokens_after < 12_000
