"""Batches of one policy: a summary for each range, added behind those that are shown already."""

from itertools import pairwise

import pytest

from tests import histories
from tests.fold import fit
from tests.properties.test_gates import boundaries
from tests.turn.test_fold import builder_of
from ullage import Limits, Policy, Session
from ullage.core.history import canon
from ullage.core.history.index import index_of, outputs_of
from ullage.core.history.ledger import Ledger
from ullage.core.turn.batches import Walk
from ullage.core.values.edits import ProposedEdit, ReplaceSpan
from ullage.core.values.effects import Output
from ullage.core.values.notices import pointers
from ullage.policy.stages.default import SAFEGUARDS
from ullage.policy.stages.emergency import emergency
from ullage.session.recall.history import find_in_history
from ullage.wires import FORMATS
from ullage.wires.rules.checker import problems_of

LIMITS = Limits(window_tokens=200_000)
TURNS = [
    histories.Turn(
        user="Go." if n == 0 else None,
        said=f"Step {n}.",
        calls=(histories.Call("read", f"{n}.py", f"line {n}\n" * 90),),
    )
    for n in range(12)
]


def each_six(window, /):
    """A summary for every six messages that are complete, and none twice."""
    start = window.summaries[-1].stop if window.summaries else 1
    stop = next(
        (i for i in range(start + 6, window.size) if window.may_cut(i)), None
    )
    if stop is None:
        return ()
    chain, index = (
        window.transcript.chain,
        index_of(window.transcript, start, stop, window.words),
    )
    ref = canon.ref_of(index)
    text = f"Messages {start + 1} to {stop}: see {ref}."
    outputs = (*outputs_of(window.transcript, start, stop), Output(ref, index))
    return (
        ProposedEdit(
            ReplaceSpan(
                chain[start], chain[stop], text, ref, "six are complete"
            ),
            outputs,
        ),
    )


POLICY = Policy(name="each-six-1", under_pressure=(each_six,))


@pytest.mark.parametrize(
    "format", ["openai-chat", "anthropic", "openai-responses", "gemini"]
)
def test_every_summary_stays_as_it_was_and_the_next_comes_behind_it(format):
    messages = histories.wire(format, TURNS)
    session, before = (
        Session("", policy=POLICY, limits=LIMITS, format=format, recall=True),
        [],
    )
    for length in boundaries(format, messages):
        view = FORMATS[format].history(
            session.fit(histories.request(format, messages[:length]))
        )
        assert not problems_of(format, view)
        ranges = [placed[:2] for placed in session.window.summaries]
        assert ranges[: len(before)] == before, "the older ones stay"
        before = ranges
    assert len(before) >= 2
    assert all(a[1] <= b[0] for a, b in pairwise(before))
    cold = Session(
        "", policy=POLICY, limits=LIMITS, format=format, recall=True
    )
    assert (
        FORMATS[format].history(cold.fit(histories.request(format, messages)))
        == view
    )
    for placed in session.window.summaries:
        found = find_in_history(
            session.window, placed.edit.ref, session.window.size, thorough=True
        )
        assert found.text.startswith(
            f"Index of messages {placed.start + 1} to {placed.stop} "
        )
    told = [event for event in session.events if event.kind == "condensed"]
    assert [event.where for event in told] == [
        f"messages {a + 1} to {b}" for a, b in before
    ]


def test_what_is_shown_is_not_shown_again():
    builder = builder_of(histories.wire("openai-chat", TURNS), 200_000)
    ledger = fit(builder, Ledger(), POLICY).ledger
    before, walk = (
        builder.window.summaries,
        Walk(builder, POLICY, SAFEGUARDS, ledger),
    )
    assert len(before) >= 2
    for key in ledger.entries:
        walk.show_again(key)
    assert builder.window.summaries == before
    assert walk.records == walk.events == []


@pytest.mark.parametrize("recall", [True, False])
@pytest.mark.parametrize(
    "format", ["openai-chat", "anthropic", "openai-responses", "gemini"]
)
def test_what_a_wider_account_hides_opens_again_in_a_rewound_history(
    format, recall
):
    """Also where no recall tools were offered when it was made, and are by now."""
    limits = Limits(window_tokens=3_000, output_reserve_tokens=0)
    messages, policy = (
        histories.wire(format, TURNS),
        Policy(name="guard-1", guard=emergency),
    )
    session, refs = opened(format, policy, limits, recall=recall), set()
    session.fit(histories.request(format, messages))
    later = opened(
        format,
        policy,
        limits,
        recall=True,
        state=session.state,
        store=session.store,
    )
    for length in boundaries(format, messages):
        view = later.fit(histories.request(format, messages[:length]))
        refs |= {placed.edit.ref for placed in later.window.summaries}
        for pointer in pointers(str(view)):
            page = later.answer(
                "get_continuation", {"tool_call_id": pointer.ref}
            )
            assert not page.text.startswith('{"error"'), page.text
    assert len(refs) > 1


def opened(format, policy, limits, **more):
    return Session(
        histories.MODEL[format],
        policy=policy,
        limits=limits,
        format=format,
        **more,
    )
