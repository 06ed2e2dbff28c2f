import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import force_setattr

from tests import histories
from tests.history.test_transcript import transcript_of
from ullage import Address, ConfigError, Replace, ReplaceSpan, Session
from ullage.core.history.builder import WindowBuilder
from ullage.core.history.canon import ref_of
from ullage.core.history.measures import TABLES, Measure
from ullage.core.history.transcript import leaves_of
from ullage.core.history.window import Window
from ullage.core.tokens.meter import Meter
from ullage.core.turn.rendering import layout
from ullage.core.values.edits import Drop
from ullage.core.values.notices import Words

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
        id = f"call_{number}"
        body = {"name": "bash", "arguments": f'{{"n": {number}}}'}
        call = {"id": id, "type": "function", "function": body}
        messages.append(
            {"role": "assistant", "content": None, "tool_calls": [call]}
        )
        messages.append(
            {"role": "tool", "tool_call_id": id, "content": output}
        )
    return messages


def replace(window, index, text, kind="pruned"):
    spot = (index, 0, 0)
    return Replace(
        window.transcript.address(spot),
        window.transcript.output(spot).ref,
        text,
        kind,
        "so",
    )


@given(st.sampled_from(("anthropic", "openai-chat")), histories.histories)
def test_the_sum_is_the_sum_of_its_messages_and_never_over_the_bound(
    format, turns
):
    messages = histories.wire(format, turns)
    window = window_of(messages, format)
    bound = window.head_tokens + sum(
        METER.bound(m) for m in window.transcript.messages
    )
    assert window.tokens == sum(
        window.message_tokens(index) for index in range(window.size)
    )
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
    assert window.location_of(ref_of("tide " * 400)) == (2, 0, 0)


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
    other = Replace(
        Address("result", "call_0", 0),
        ref_of("something else"),
        "x",
        "pruned",
        "so",
    )
    missing = Replace(
        Address("result", "call_9", 0),
        ref_of("tide " * 400),
        "x",
        "pruned",
        "so",
    )
    span = ReplaceSpan(bytes(16), bytes(16), "an account", "r" * 16, "so")
    assert [builder.apply(edit) for edit in (other, missing, span)] == [
        None,
        None,
        None,
    ]
    assert window.tokens == before
    assert window.changed == {}


def test_a_span_hides_its_messages_and_a_wider_one_takes_its_place():
    builder = builder_of(history("tide " * 400, "ebb " * 400, "flow " * 400))
    window = builder.window
    chain, whole = window.transcript.chain, window.tokens
    was, now = builder.apply(
        ReplaceSpan(chain[1], chain[3], "an account", "r" * 16, "so")
    )
    assert (was, now) == (whole, window.tokens)
    assert [window.hidden(index) for index in range(7)] == [
        0,
        1,
        1,
        0,
        0,
        0,
        0,
    ]
    builder.apply(
        ReplaceSpan(chain[1], chain[5], "an account", "r" * 16, "so")
    )
    assert sum(window.hidden(index) for index in range(7)) == 4
    kept = sum(window.message_tokens(index) for index in (0, 5, 6))
    assert window.tokens == kept + METER.message("an account")


def test_every_leaf_has_a_count():
    window = window_of(history("tide", ""))
    for index, message in enumerate(window.transcript.messages):
        assert len(window.leaf_counts(index)) == len(list(leaves_of(message)))


@pytest.mark.parametrize(
    "name", ["limit_tokens", "size", "summaries", "anything"]
)
def test_a_stage_cannot_write_to_the_window(name):
    window = window_of(history("tide"))
    assert isinstance(window, Window)
    with pytest.raises(
        AttributeError, match=f"'{name}' of a Window cannot be written.*return"
    ):
        setattr(window, name, 1)
    with pytest.raises(AttributeError, match="cannot be written"):
        delattr(window, name)
    assert not any(
        hasattr(window, writer) for writer in ("extend", "apply", "refresh")
    )


def result_chars(window, index, *, least=0):
    return max(
        sum(len(part.text) for part in results_in(window, index)), least
    )


def results_in(window, index):
    leaves = leaves_of(window.transcript.messages[index])
    return [leaf for _, _, leaf in leaves if hasattr(leaf, "text")]


def test_a_measure_made_anew_finds_its_table_and_another_setting_has_its_own():
    window, asked = window_of(history("tide", "ebb")), []

    def chars(window, index, *, least):
        asked.append(index)
        return result_chars(window, index, least=least)

    totals = [
        window.total(Measure("test.chars", chars, least=0)) for _ in range(3)
    ]
    assert totals == [len("Go.tideebb")] * 3
    assert asked == list(range(window.size))
    assert (
        window.total(Measure("test.chars", chars, least=5)) == 5 * window.size
    )


def test_a_plain_function_is_no_measure_and_the_error_says_what_to_do():
    window = window_of(history("tide"))
    with pytest.raises(
        ConfigError, match=r"result_chars is a plain function.*Measure"
    ):
        window.total(result_chars)
    with pytest.raises(ConfigError, match="Measure"):
        window.settled_to(1, lambda window, index: True)
    with pytest.raises(ConfigError, match="Measure"):
        window.transcript.once(lambda transcript, index: 1, 0)


def test_what_is_kept_of_measures_is_bounded():
    window = window_of(history("tide", "ebb"))
    for number in range(3 * TABLES):
        assert (
            window.total(Measure("test.chars", result_chars, least=number))
            >= 0
        )
        assert (
            window.transcript.once(
                Measure("test.n", lambda of, index, n: n, n=number), 0
            )
            == number
        )
    assert len(window._tallies) == len(window.transcript._measured) == TABLES


def test_what_a_summary_hides_adds_nothing_to_a_total():
    builder = builder_of(history("tide", "ebb"))
    chain = builder.window.transcript.chain
    builder.apply(ReplaceSpan(chain[1], chain[3], "a summary", "r" * 16, "so"))
    assert builder.window.total(Measure("test.chars", result_chars)) == len(
        "Go.ebb"
    )


RANGES = st.lists(
    st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=6
)


@given(RANGES)
def test_several_summaries_each_stand_for_a_range_of_their_own(ranges):
    """A new one may cover older ones whole; one that would cut another in two is void."""
    messages = history(*(f"output {n} " * 40 for n in range(4)))
    builder, expected = builder_of(messages), []
    window, chain = builder.window, builder.window.transcript.chain
    for number, (start, stop) in enumerate(ranges):
        edit = ReplaceSpan(
            chain[start], chain[stop], f"summary {number}", "r" * 16, "so"
        )
        may = start < stop and all(
            stop <= a or b <= start or (start <= a and b <= stop)
            for a, b, _ in expected
        )
        assert (builder.apply(edit) is not None) == may
        if may:
            kept = [each for each in expected if not start <= each[0] < stop]
            expected = sorted(
                [*kept, (start, stop, edit)], key=lambda each: each[0]
            )
            assert window.shows(edit)
    assert list(window.summaries) == expected
    gone = {
        index for start, stop, _ in expected for index in range(start, stop)
    }
    assert {
        index for index in range(window.size) if window.hidden(index)
    } == gone
    held = sum(window.message_tokens(index) for index in window.visible)
    assert window.tokens == held + sum(
        METER.message(edit.text) for _, _, edit in expected
    )
    laid = [each for each in layout(window) if isinstance(each, int)]
    assert laid == window.visible
    texts = [each for each in layout(window) if isinstance(each, str)]
    assert texts == [edit.text for _, _, edit in expected]


def test_an_older_summary_stays_where_it_is_when_one_is_added_behind_it():
    builder = builder_of(history("tide " * 99, "ebb " * 99, "flow " * 99))
    window, chain = builder.window, builder.window.transcript.chain
    first = ReplaceSpan(chain[1], chain[3], "the first", "r" * 16, "so")
    second = ReplaceSpan(chain[3], chain[5], "the second", "s" * 16, "so")
    assert builder.apply(first) is not None
    assert builder.apply(second) is not None
    assert layout(window) == [0, "the first", "the second", 5, 6]
    whole = ReplaceSpan(chain[1], chain[5], "both", "t" * 16, "so")
    assert builder.apply(whole) is not None
    assert layout(window) == [0, "both", 5, 6]
    assert window.shows(first), (
        "it is covered, so showing it again would change nothing"
    )
    assert builder.apply(first) is None


def kept_behind_a_reply():
    """A summary of a user's message and of a call that stays with its result; a reply before."""
    turns = history("tide")
    messages = [
        turns[0],
        {"role": "assistant", "content": "Shall I?"},
        turns[0],
        *turns[1:],
    ]
    builder = builder_of(
        [*messages, {"role": "assistant", "content": "Done."}]
    )
    chain = builder.window.transcript.chain
    keeps = (chain[4], chain[5])
    builder.apply(
        ReplaceSpan(
            chain[2], chain[5], "the account", "r" * 16, "so", keeps=keeps
        )
    )
    return builder


def test_an_account_stands_before_a_call_that_stays_where_a_reply_is_before_both():
    builder = kept_behind_a_reply()
    assert layout(builder.window) == [0, 1, "the account", 3, 4, 5]
    builder.reason(builder.window.reasoning, thinks_first=True)
    assert layout(builder.window) == [0, 1, 3, 4, "the account", 5], (
        "its turn has begun already"
    )


def test_a_message_costs_its_framing_beside_its_leaves():
    window = window_of(history("tide " * 40))
    for index, message in enumerate(window.transcript.messages):
        leaves = sum(window.leaf_counts(index))
        assert window.message_tokens(index) == METER.framing(message) + leaves


def test_what_surely_fits_is_asked_of_the_upper_bound():
    session = Session("claude-sonnet-4-5", format="openai-chat")
    session.fit({"messages": history("tide " * 400)})
    assert session.window.within(session.window.estimate)
    assert not session.window.within(session.window.estimate, surely=True)


def _thinks_and_calls():
    said = [
        {"type": "thinking", "thinking": "Hm. " * 40, "signature": "c2ln"},
        {"type": "tool_use", "id": "call_0", "name": "bash", "input": {}},
    ]
    result = {
        "type": "tool_result",
        "tool_use_id": "call_0",
        "content": "tide " * 99,
    }
    return [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": said},
        {"role": "user", "content": [result]},
        *(
            {"role": role, "content": "On."}
            for role in ("assistant", "user", "assistant", "user")
        ),
    ]


@pytest.mark.parametrize("kind", ["replaced", "summarised", "dropped"])
def test_a_fork_before_an_edit_sums_its_messages_as_they_were(kind):
    """The sums of the later state are taken over, but for what was shown otherwise then."""
    shown = Measure(
        "test.shown", lambda window, index: window.count_message(index)
    )
    messages = _thinks_and_calls()
    builder = WindowBuilder(
        transcript_of(messages, "anthropic"), METER, Words()
    )
    builder.extend(5)
    builder.keep_past()
    builder.extend(7)
    chain = builder.window.transcript.chain
    edit = {
        "replaced": replace(builder.window, 2, "cut"),
        "summarised": ReplaceSpan(
            chain[1], chain[3], "so it was", "r" * 16, "so"
        ),
        "dropped": Drop(chain[1], chain[3], "so"),
    }[kind]
    before = builder.window.tally(shown).sum
    assert builder.show(edit)
    assert builder.window.tally(shown).sum < before
    fork = builder.behind(builder.window.transcript.upto(6))
    alone = WindowBuilder(
        transcript_of(messages[:6], "anthropic"), METER, Words()
    )
    for each in (fork, alone):
        each.extend(6)
    assert fork.window.tally(shown).each == alone.window.tally(shown).each
    assert fork.window.total(shown) == alone.window.total(shown)
