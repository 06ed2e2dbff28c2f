"""F22 to F41: when compaction runs, how often, and what happens where it cannot help."""

import json
import threading

import pytest

from tests import histories
from tests.failures.scenes import (
    LINES,
    WIRES,
    Writer,
    history,
    kinds,
    new_session,
    requests,
    run,
    steps,
    tagged,
)
from tests.histories import Call, Turn
from ullage import (
    OverLimitError,
    Policy,
    Session,
    Usage,
    is_overflow,
    problems,
    summarise,
)
from ullage.core.values.messages import ToolCall
from ullage.wires import FORMATS

wires = pytest.mark.parametrize("format", WIRES)
apart = pytest.mark.parametrize("format", histories.APART)
CHAT = "openai-chat"
REWRITES = {"pruned", "compacted", "condensed"}
PAID = Usage(fresh_tokens=1_000, output_tokens=10)


def rewrites(session):
    return [event for event in session.events if event.kind in REWRITES]


def whole(format, turns, **more):
    return list(requests(format, turns, **more))[-1]


def fits(session):
    return session.window.estimate <= session.window.limit_tokens


def batches_over(session, format, turns):
    """At which requests something was rewritten."""
    found = []
    for number, request in enumerate(requests(format, turns)):
        before = len(rewrites(session))
        session.fit(request)
        if len(rewrites(session)) > before:
            found.append(number)
    return found


def test_f22_a_summariser_that_gives_its_input_back_is_not_asked_without_end():
    """Compaction did not make the request smaller, so it ran at every step, and was billed."""
    model = Writer(lambda asked: tagged("\n".join(asked.texts), usage=PAID))
    session = new_session(CHAT, 16_000, summariser=model)
    run(session, CHAT, steps(60))
    assert fits(session)
    assert (
        0
        < len(model.asked)
        <= sum(e.kind == "compacted" for e in session.events)
    )
    assert session.usage.fresh_tokens == 1_000 * len(model.asked)


def test_f23_a_batch_that_cannot_win_enough_does_not_fire_at_every_turn():
    """What cannot shrink was nearly the window: each turn compacted again and won a few tokens."""
    turns = [Turn(user="A rule of the user's. " * 600), *steps(60, lines=10)]
    fired = batches_over(new_session(CHAT, 10_000), CHAT, turns)
    assert 0 < len(fired) <= 20
    with pytest.raises(OverLimitError, match="system text and tools"):
        new_session(CHAT, 2_000).fit(
            whole(CHAT, [Turn(user="Go.")], tools=[big_tool(40_000)])
        )


def big_tool(chars):
    function = {
        "name": "big",
        "description": "x y " * (chars // 4),
        "parameters": {},
    }
    return {"type": "function", "function": function}


def test_f24_a_conversation_larger_than_the_summarisers_window_goes_in_parts():
    """The request for a summary overflowed itself, and the session was stuck."""
    model = Writer(tagged("It went on."))
    small = summarise.of(model, window_tokens=8_000)
    session = new_session(CHAT, 200_000, summariser=small)
    assert session.compact(whole(CHAT, steps(60)))
    assert len(model.asked) > 2
    assert all(
        sum(map(len, asked.texts)) // 5 < 8_000 for asked in model.asked
    )


@wires
@pytest.mark.parametrize("who", ["user", "said", "result"])
def test_f25_one_message_larger_than_the_window_is_cut_and_the_session_goes_on(
    format, who
):
    """One message of three windows: 104 compactions in an hour, and none of them helped."""
    text = LINES * 2_000
    huge = {
        "user": Turn(user=text),
        "said": Turn(said=text, calls=(Call("bash", "x", "ok"),)),
        "result": Turn(calls=(Call("bash", "x", text),)),
    }[who]
    session = new_session(format)
    for view in run(session, format, [huge, *steps(3)]):
        assert problems(view, format) == []
        assert fits(session)


@wires
def test_f26_the_arguments_of_a_call_are_cut_as_valid_json(format):
    """A file of a megabyte stood in a call's arguments, which nothing could shrink."""
    turn = Turn(calls=(Call("write_file", LINES * 27_000, "written"),))
    session = new_session(format)
    view = session.fit(whole(format, [turn, *steps(2)]))
    assert fits(session)
    assert problems(view, format) == []
    wire = FORMATS[format]
    messages = [wire.parse(raw, "view") for raw in wire.history(view)]
    parts = [part for message in messages for part in message.parts]
    calls = [part for part in parts if isinstance(part, ToolCall)]
    (written,) = [call for call in calls if call.name == "write_file"]
    assert [*json.loads(written.arguments)] == ["_ullage"]


def test_f27_a_single_turn_of_three_hundred_steps_never_goes_over():
    """The threshold was looked at when a turn began, and the loop of tools ran into the wall."""
    session = new_session(CHAT, 12_000)
    for request in requests(CHAT, steps(300, lines=20)):
        session.fit(request)
        assert fits(session)


def test_f28_a_report_from_before_a_compaction_does_not_start_the_next():
    """The old count was still there after a compaction, and compacted again at once."""
    session = new_session(CHAT, 40_000)
    every = list(requests(CHAT, steps(32)))
    session.fit(every[-3])
    session.observe(Usage(fresh_tokens=38_000))
    before = session.window.estimate
    assert session.compact(every[-2])
    assert session.window.estimate < before
    done = len(rewrites(session))
    for request in every[-2:]:
        session.fit(request)
    assert len(rewrites(session)) == done


def test_f29_what_is_reported_as_done_made_the_view_smaller():
    """Trigger and cut counted differently: nothing was done, and success was reported."""
    session = new_session(CHAT, 100_000)
    assert not session.compact(whole(CHAT, [Turn(user="Go.")]))
    assert session.compact(whole(CHAT, steps(9)))
    assert all(
        event.tokens_after < event.tokens_before for event in rewrites(session)
    )


def test_f30_a_summary_that_failed_is_not_asked_for_again_over_the_same_messages():
    """A failed compaction was retried, unchanged and billed, at every turn."""
    model = Writer(tagged("", usage=PAID))
    session, request = (
        new_session(CHAT, 100_000, summariser=model),
        whole(CHAT, steps(9)),
    )
    for _ in range(5):
        session.compact(request)
        view = session.fit(request)
    assert len(model.asked) <= 2
    assert "are summarised here" in str(view)


def test_f31_a_summariser_that_failed_is_asked_again_and_works():
    """A breaker that opened once never closed, and the manual command was behind it too."""
    model = Writer(*[OSError("down")] * 2, tagged("It works again."))
    session = new_session(CHAT, 200_000, summariser=model)
    for count in (4, 8):
        session.compact(whole(CHAT, steps(count)))
    assert "It works again." in str(session.fit(whole(CHAT, steps(8))))


def test_f32_nothing_to_compact_is_no_error_and_nothing_is_done_twice():
    """ "Nothing to compact" ended the session, or the same tail was compacted again."""
    session, request = new_session(CHAT, 100_000), whole(CHAT, steps(9))
    assert session.compact(request)
    assert not session.compact(request)
    assert fits_and_goes_on(session)


def fits_and_goes_on(session):
    session.fit(whole(CHAT, steps(10)))
    return fits(session)


@pytest.mark.parametrize("lines", [25, 60, 150])
def test_f33_between_two_batches_lie_several_turns(lines):
    """A threshold without headroom: 8 rewrites became 265."""
    fired = batches_over(
        new_session(CHAT, 32_000), CHAT, steps(150, lines=lines)
    )
    assert fired
    assert len(fired) <= 150 / 5


def test_f34_what_is_switched_off_does_nothing():
    """Compaction was off, and the context shrank all the same on the way out of an error."""
    session = new_session(CHAT, policy=Policy(name="off"))
    with pytest.raises(OverLimitError):
        session.fit(whole(CHAT, steps(60)))
    assert not rewrites(session)


OVERFLOWS = [
    {
        "error": {
            "message": "prompt is too long: 213462 tokens > 200000 maximum"
        }
    },
    {
        "error": {
            "message": "This model's maximum context length is 8192 tokens. However, your "
            "messages resulted in 9000 tokens."
        }
    },
    {"error": {"code": "context_length_exceeded", "message": "too long"}},
    {
        "error": {
            "message": "The input token count (1100000) exceeds the maximum number of tokens "
            "allowed (1048576)."
        }
    },
]
OTHERS = [
    {"error": {"message": "Rate limit reached: 30000 tokens per min"}},
    {
        "error": {
            "message": "max_tokens: 99999 > 8192, which is the maximum allowed"
        }
    },
]


def test_f35_an_overflow_is_recognised_by_its_words_and_nothing_else_is():
    """Each provider says it in other words; an empty 400, or a rate limit, was taken for one."""
    assert all(is_overflow(body) for body in OVERFLOWS)
    assert not any(is_overflow(body) for body in OTHERS)


def test_f36_the_first_request_after_a_switch_to_a_smaller_window_fits():
    """A conversation of a large model was handed to a small one, and refused."""
    session, request = Session("gpt-4.1", recall=True), whole(CHAT, steps(200))
    limits = []
    for model in ("gpt-4.1", "gpt-4o", "gpt-4"):
        session.fit({**request, "model": model})
        assert fits(session)
        limits.append(session.window.limit_tokens)
    assert limits == sorted(limits, reverse=True)


def test_f37_an_unknown_model_gets_a_cautious_window_and_learns_from_its_refusal():
    """The window was hard-coded, or the room for the answer was not taken off it."""
    session = Session("a-model-nobody-knows", format=CHAT)
    request = whole(CHAT, steps(60), model="a-model-nobody-knows")
    session.fit(request)
    assert "unknown_model" in kinds(session)
    session.refused(
        OSError("prompt is too long: 13000 tokens > 10000 maximum")
    )
    session.fit(request)
    assert session.window.estimate + request["max_tokens"] <= 10_000


def test_f38_a_summariser_that_hangs_is_given_up():
    """Compaction hung, and nobody was watching."""
    free = threading.Event()
    slow = summarise.of(lambda asked: free.wait() and "", timeout_s=0.02)
    session = new_session(CHAT, 100_000, summariser=slow)
    assert session.compact(whole(CHAT, steps(9)))
    free.set()
    assert "summary_refused" in kinds(session)


@wires
@pytest.mark.parametrize("window", [3_000, 5_000, 9_000])
def test_f39_the_last_resort_always_gives_a_view_that_fits(format, window):
    """Whatever was tried last refused as well: a deadlock."""
    turns = [
        Turn(user=LINES * 300),
        *steps(9, lines=400, calls=3),
        Turn(user=LINES * 300),
    ]
    session = new_session(format, window)
    view = session.fit(whole(format, turns))
    assert fits(session)
    assert problems(view, format) == []


def test_f40_what_was_read_is_named_in_the_summary_and_reading_all_of_it_again_is_reported():
    """After each compaction the agent read the same files: 48 compactions, 128 reads."""
    again = [
        Turn(
            calls=(Call("read_file", f"{n % 6}.py", f"{n % 6}\n{LINES * 30}"),)
        )
        for n in range(60)
    ]
    session = new_session(
        CHAT, 200_000, summariser=Writer(tagged("I read them."))
    )
    for number, request in enumerate(requests(CHAT, again), 1):
        if number % 20 == 0:
            session.compact(request)
        session.fit(request)
    assert "stalled" in kinds(session)
    assert all(f"{n}.py" in str(session.fit(request)) for n in range(6))


@apart
def test_f41_a_compaction_in_the_middle_of_a_loop_goes_on_with_the_same_turn(
    format,
):
    """The agent stopped, or began from its start-up routine, after a compaction."""
    request = whole(format, steps(9))
    session = new_session(format, 100_000)
    assert session.compact(request)
    view = history(format, session.fit(request))
    assert view[-1] is history(format, request)[-1]
    assert view[0] == history(format, request)[0]
    assert histories.user(format, "Go on.") not in view
