"""The walk over boundaries: what was decided stands, however the history arrives."""

import pytest

from tests.fold import fit
from tests.history.test_transcript import transcript_of
from tests.history.test_window import METER, history
from ullage import OverLimitError, Policy
from ullage.core.history.builder import WindowBuilder
from ullage.core.history.ledger import Ledger
from ullage.core.values.notices import Words
from ullage.policy.stages.default import DEFAULT

MESSAGES = history(*(f"{n} the tide came in\n" * 200 for n in range(8)))


def builder_of(messages, limit_tokens=4_000):
    builder = WindowBuilder(transcript_of(messages), METER, Words())
    builder.limit(limit_tokens, limit_tokens)
    return builder


def test_what_is_decided_is_kept_and_what_is_set_aside_comes_with_it():
    builder = builder_of(MESSAGES)
    fitted = fit(builder, Ledger(), DEFAULT)
    assert builder.window.estimate <= 4_000
    batches = [
        batch
        for entry in fitted.ledger.entries.values()
        for batch in entry.batches
    ]
    assert (
        len(batches)
        == len([r for r in fitted.records if r.kind == "batch"])
        > 0
    )
    refs = {edit.ref for batch in batches for edit in batch.edits}
    assert refs <= fitted.outputs.keys()
    assert {batch.policy for batch in batches} == {DEFAULT.name}


def test_a_decision_stands():
    """With the ledger, nothing is decided again, and the window arrives at the same place."""
    first, again = builder_of(MESSAGES), builder_of(MESSAGES)
    fitted = fit(first, Ledger(), DEFAULT)
    settled = fit(again, fitted.ledger, DEFAULT)
    assert settled.records == []
    assert settled.ledger == fitted.ledger
    assert (again.window.changed, again.window.tokens) == (
        first.window.changed,
        first.window.tokens,
    )


def test_a_decision_stands_even_where_the_policy_would_now_decide_otherwise():
    first, again = (
        builder_of(MESSAGES),
        builder_of(MESSAGES, limit_tokens=100_000),
    )
    fitted = fit(first, Ledger(), DEFAULT)
    fit(again, fitted.ledger, Policy(name="none"))
    assert again.window.changed == first.window.changed


def test_turn_by_turn_and_at_once_are_the_same():
    warm, ledger = builder_of(MESSAGES[:1]), Ledger()
    whole = transcript_of(MESSAGES)
    for index in range(1, len(MESSAGES)):
        ledger = fit(warm, ledger, DEFAULT).ledger if index % 2 else ledger
        warm.window.transcript.append(
            whole.messages[index], whole.digests[index]
        )
    ledger = fit(warm, ledger, DEFAULT).ledger
    cold = builder_of(MESSAGES)
    assert fit(cold, Ledger(), DEFAULT).ledger == ledger
    assert cold.window.changed == warm.window.changed


def test_what_cannot_be_made_to_fit_is_refused_with_its_parts():
    with pytest.raises(OverLimitError) as caught:
        fit(builder_of(MESSAGES, 50), Ledger(), Policy(name="none"))
    assert set(caught.value.parts) == {
        "system text and tools",
        "messages that must stay",
    }
