"""The walk over boundaries: what was decided stands, however the history arrives."""

import pytest

from tests.fold import fit
from tests.history.test_transcript import transcript_of
from tests.history.test_window import METER, history
from ullage import OverLimitError, Policy
from ullage.history.ledger import Ledger
from ullage.history.window import Window
from ullage.stages.default import DEFAULT
from ullage.values.notices import Words

MESSAGES = history(*(f"{n} the tide came in\n" * 200 for n in range(8)))


def window_of(messages, limit_tokens=4_000):
    window = Window(transcript_of(messages), METER, Words())
    window.limit_tokens = limit_tokens
    return window


def test_what_is_decided_is_kept_and_what_is_set_aside_comes_with_it():
    window = window_of(MESSAGES)
    fitted = fit(window, Ledger(), DEFAULT)
    assert window.estimate <= 4_000
    batches = [batch for entry in fitted.ledger.entries.values() for batch in entry.batches]
    assert len(batches) == len([r for r in fitted.records if r.kind == "batch"]) > 0
    refs = {edit.ref for batch in batches for edit in batch.edits}
    assert refs <= fitted.outputs.keys()
    assert {batch.policy for batch in batches} == {DEFAULT.name}


def test_a_decision_stands():
    """With the ledger, nothing is decided again, and the window arrives at the same place."""
    first, again = window_of(MESSAGES), window_of(MESSAGES)
    fitted = fit(first, Ledger(), DEFAULT)
    settled = fit(again, fitted.ledger, DEFAULT)
    assert settled.records == []
    assert settled.ledger == fitted.ledger
    assert (again.changed, again.tokens) == (first.changed, first.tokens)


def test_a_decision_stands_even_where_the_policy_would_now_decide_otherwise():
    first, again = window_of(MESSAGES), window_of(MESSAGES, limit_tokens=100_000)
    fitted = fit(first, Ledger(), DEFAULT)
    fit(again, fitted.ledger, Policy(name="none"))
    assert again.changed == first.changed


def test_turn_by_turn_and_at_once_are_the_same():
    warm, ledger = window_of(MESSAGES[:1]), Ledger()
    whole = transcript_of(MESSAGES)
    for index in range(1, len(MESSAGES)):
        ledger = fit(warm, ledger, DEFAULT).ledger if index % 2 else ledger
        warm.transcript.append(whole.messages[index], whole.digests[index])
    ledger = fit(warm, ledger, DEFAULT).ledger
    cold = window_of(MESSAGES)
    assert fit(cold, Ledger(), DEFAULT).ledger == ledger
    assert cold.changed == warm.changed


def test_what_cannot_be_made_to_fit_is_refused_with_its_parts():
    with pytest.raises(OverLimitError) as caught:
        fit(window_of(MESSAGES, 50), Ledger(), Policy(name="none"))
    assert set(caught.value.parts) == {"system text and tools", "messages that must stay"}
