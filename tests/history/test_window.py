from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import force_setattr

from tests import histories
from tests.history.test_transcript import transcript_of
from ullage import Address, Replace, Summary
from ullage.history.builder import WindowBuilder
from ullage.history.canon import ref_of
from ullage.history.transcript import leaves_of
from ullage.tokens.meter import Meter
from ullage.values.notices import Words

METER = Meter("gpt-4.1")


def window_of(messages, format="openai-chat"):
    return builder_of(messages, format).window


def set_to(window, **values):
    """A window with these figures: what only a builder may write."""
    for name, value in values.items():
        force_setattr(window, name, value)
    return window


def builder_of(messages, format="openai-chat"):
    builder = WindowBuilder(transcript_of(messages, format), METER, Words())
    builder.limit(10_000, 10_000)
    builder.extend(len(messages))
    return builder


def history(*outputs):
    messages = [{"role": "user", "content": "Go."}]
    for number, output in enumerate(outputs):
        id, body = f"call_{number}", {"name": "bash", "arguments": '{"n": %d}' % number}  # noqa: UP031
        call = {"id": id, "type": "function", "function": body}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": id, "content": output})
    return messages


def replace(window, index, text, kind="pruned"):
    spot = (index, 0, 0)
    return Replace(
        window.transcript.place(spot), window.transcript.output(spot).ref, text, kind, "so"
    )


@given(st.sampled_from(("anthropic", "openai-chat")), histories.histories)
def test_the_sum_is_the_sum_of_its_messages_and_never_over_the_bound(format, turns):
    messages = histories.wire(format, turns)
    window = window_of(messages, format)
    bound = window.head_tokens + sum(METER.bound(m) for m in window.transcript.messages)
    assert window.tokens == sum(window.message_tokens(index) for index in range(window.size))
    assert window.tokens <= bound


def test_an_edit_says_what_its_place_held_and_holds_and_the_sum_follows():
    builder = builder_of(history("tide " * 400, "ebb " * 300))
    window = builder.window
    before = window.tokens
    was, now = builder.apply(replace(window, 2, "gone"))
    assert was > 300
    assert now < 5
    assert window.tokens == before - was + now
    assert window.changed == {2: [(0, 0, "gone")]}
    assert window.spot_of(ref_of("tide " * 400)) == (2, 0, 0)


def test_a_later_edit_wins_over_an_earlier_one():
    builder = builder_of(history("tide " * 400))
    window = builder.window
    builder.apply(replace(window, 2, "a part of it", "truncated"))
    part = window.tokens
    builder.apply(replace(window, 2, "-"))
    assert window.changed == {2: [(0, 0, "-")]}
    assert window.tokens < part


def test_an_edit_is_void_where_the_history_no_longer_holds_what_it_replaces():
    builder = builder_of(history("tide " * 400))
    window = builder.window
    before = window.tokens
    other = Replace(Address("result", "call_0", 0), ref_of("something else"), "x", "pruned", "so")
    missing = Replace(Address("result", "call_9", 0), ref_of("tide " * 400), "x", "pruned", "so")
    span = Summary(bytes(16), bytes(16), "an account", "r" * 16, "so")
    assert [builder.apply(edit) for edit in (other, missing, span)] == [None, None, None]
    assert window.tokens == before
    assert window.changed == {}


def test_a_span_hides_its_messages_and_a_wider_one_takes_its_place():
    builder = builder_of(history("tide " * 400, "ebb " * 400, "flow " * 400))
    window = builder.window
    chain, whole = window.transcript.chain, window.tokens
    was, now = builder.apply(Summary(chain[1], chain[3], "an account", "r" * 16, "so"))
    assert (was, now) == (whole, window.tokens)
    assert [window.hidden(index) for index in range(7)] == [0, 1, 1, 0, 0, 0, 0]
    builder.apply(Summary(chain[1], chain[5], "an account", "r" * 16, "so"))
    assert sum(window.hidden(index) for index in range(7)) == 4
    kept = sum(window.message_tokens(index) for index in (0, 5, 6))
    assert window.tokens == kept + METER.message("an account")


def test_every_leaf_has_a_count():
    window = window_of(history("tide", ""))
    for index, message in enumerate(window.transcript.messages):
        assert len(window.leaf_counts(index)) == len(list(leaves_of(message)))
