"""A view: which edits stand where, what they hide, and what is still to be read."""

from hypothesis import given
from hypothesis import strategies as st

from tests import histories
from tests.history.test_transcript import transcript_of
from tests.history.test_window import METER, builder_of, history
from ullage import Limits, Session
from ullage.core.history.builder import WindowBuilder
from ullage.core.history.shown import ShownHistory
from ullage.core.values.notices import Words


def view_of(messages, format="openai-chat"):
    return builder_of(messages, format).window


def test_the_fresh_ones_are_those_new_at_this_boundary():
    builder = WindowBuilder(
        transcript_of(history("one", "two"), "openai-chat"), METER, Words()
    )
    view = builder.window
    builder.extend(1)
    builder.extend(3)
    assert isinstance(view, ShownHistory)
    assert (view.fresh, view.size) == (1, 3)
    assert list(view.results(view.fresh, view.size)) == [(2, 0, 0)]
    assert view.tool_of((2, 0, 0)) == "bash"


def test_only_signed_thoughts_tie_the_calls_beside_them():
    blocks = [{"type": "tool_use", "id": "1", "name": "bash", "input": {}}]
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    unsigned = {"type": "thinking", "thinking": "hm"}
    messages = [
        {"role": "assistant", "content": [*b, *blocks]}
        for b in ([thought], [unsigned], [])
    ]
    view = view_of(messages, "anthropic")
    assert [view.signed(index) for index in range(3)] == [True, False, False]


@given(
    st.sampled_from(("openai-chat", "anthropic")),
    st.sampled_from((4_000, 12_000)),
    histories.histories,
)
def test_every_message_is_visible_or_behind_the_account_and_every_edit_in_its_place(
    format, window_tokens, turns
):
    limits = Limits(window_tokens=window_tokens)
    session = Session(
        histories.MODEL[format],
        policy=histories.EAGER,
        limits=limits,
        format=format,
    )
    session.fit(histories.request(format, histories.wire(format, turns)))
    view = session.window
    hidden = [index for index in range(view.size) if view.hidden(index)]
    assert sorted([*view.visible, *hidden]) == list(range(view.size))
    edited = {index for index in range(view.size) if view.shown(index)}
    assert set(view.changed) == edited.difference(hidden)
    for index, changes in view.changed.items():
        edits = view.shown(index)
        assert changes == [
            (*place, edit.text) for place, edit in edits.items()
        ]
        for edit in edits.values():
            at, *leaf = view.location_of(edit.ref)
            assert view.shown(at)[tuple(leaf)].ref == edit.ref
