from hypothesis import given
from hypothesis import strategies as st

from tests import histories
from ullage.core.history import canon
from ullage.core.history.measures import Measure
from ullage.core.history.pairing import INTERRUPTED
from ullage.core.history.transcript import Transcript, leaves_of
from ullage.core.values.edits import Address
from ullage.wires import FORMATS

formats = st.sampled_from(("anthropic", "openai-chat"))


def transcript_of(messages, format="openai-chat"):
    transcript = Transcript(canon.root(format, ""))
    for raw in messages:
        message = FORMATS[format].parse(raw, "message")
        transcript.append(message, canon.digest_of(message))
    return transcript


def called(*ids):
    body = {"name": "bash", "arguments": "{}"}
    calls = [{"id": id, "type": "function", "function": body} for id in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def gave(id, text):
    return {"role": "tool", "tool_call_id": id, "content": text}


ASKED, SAID = (
    {"role": "user", "content": "Go."},
    {"role": "assistant", "content": "Done."},
)
HISTORY = [
    ASKED,
    called("a", "b"),
    gave("a", "one"),
    gave("b", "two"),
    SAID,
    ASKED,
]


@given(formats, histories.histories, st.booleans())
def test_every_leaf_is_found_again_at_its_place(format, turns, reuse):
    transcript = transcript_of(
        histories.wire(format, turns, reuse_ids=reuse), format
    )
    for index, message in enumerate(transcript.messages):
        for number, item, leaf in leaves_of(message):
            spot = (index, number, item)
            assert transcript.leaf(spot) == leaf
            assert transcript.locate(transcript.address(spot)) == spot


@given(formats, histories.histories, st.booleans())
def test_a_place_holds_in_a_longer_history_and_after_a_detour(
    format, turns, reuse
):
    messages = histories.wire(format, turns, reuse_ids=reuse)
    short, long = (
        transcript_of(m, format)
        for m in (messages[: len(messages) // 2], messages)
    )
    for index, message in enumerate(short.messages):
        for number, item, _ in leaves_of(message):
            place = short.address((index, number, item))
            assert long.locate(place) == (index, number, item)


@given(formats, histories.histories)
def test_the_chain_is_one_for_a_shared_beginning_and_parts_with_it(
    format, turns
):
    messages = histories.wire(format, turns)
    whole, half = (
        transcript_of(messages, format),
        transcript_of(messages[:2], format),
    )
    assert whole.chain[:3] == half.chain
    other = transcript_of(
        [{"role": "user", "content": "Something else."}, *messages[1:]], format
    )
    assert whole.chain[0] == other.chain[0]
    assert not set(whole.chain[1:]) & set(other.chain[1:])
    assert len(whole.chain) == len(whole) + 1 == len(messages) + 1


def test_a_request_was_sent_before_each_reply_and_is_to_be_sent_now():
    transcript = transcript_of(HISTORY)
    assert list(transcript.boundaries(0)) == [1, 4, 6]
    assert list(transcript.boundaries(1)) == [4, 6]
    assert list(transcript.boundaries(6)) == []
    assert list(transcript_of([ASKED]).boundaries(0)) == [1]


def test_a_decision_is_keyed_by_the_last_assistant_message():
    transcript = transcript_of(HISTORY)
    keys = [
        transcript.decision_key(length) for length in range(len(HISTORY) + 1)
    ]
    chain = transcript.chain
    assert keys == [
        chain[0],
        chain[1],
        chain[2],
        chain[2],
        chain[2],
        chain[5],
        chain[5],
    ]
    assert [transcript.turn_start(length) for length in range(7)] == [
        0,
        0,
        1,
        1,
        1,
        4,
        4,
    ]


def test_what_a_user_adds_after_the_decision_does_not_change_its_key():
    more = transcript_of([*HISTORY, {"role": "user", "content": "And now?"}])
    assert more.decision_key(7) == transcript_of(HISTORY).decision_key(6)


def test_a_result_answers_the_newest_call_with_its_id():
    first = called("a") | {"content": "first"}
    messages = [
        ASKED,
        first,
        gave("a", "one"),
        called("a"),
        gave("a", "two"),
        gave("z", "?"),
    ]
    transcript = transcript_of(messages)
    assert transcript.call_for(2, 0) is transcript.messages[1].parts[1]
    assert transcript.call_for(4, 0) is transcript.messages[3].parts[0]
    assert transcript.call_for(5, 0) is None
    assert transcript.newest_result("a", len(transcript)) == (4, 0, 0)
    assert transcript.newest_result("nobody's", len(transcript)) is None
    assert transcript.locate(Address("result", "a", 1)) == (4, 0, 0)
    assert transcript.locate(Address("result", "a", 2)) is None


def test_equal_messages_have_places_of_their_own():
    transcript = transcript_of([ASKED, SAID, ASKED])
    assert transcript.address((0, 0, 0)).id == transcript.address((2, 0, 0)).id
    assert [transcript.address((index, 0, 0)).ordinal for index in (0, 2)] == [
        0,
        1,
    ]


def test_a_history_may_begin_anew_only_where_no_call_is_open():
    transcript = transcript_of(HISTORY)
    assert [transcript.may_cut(index) for index in range(len(HISTORY))] == [
        *(False, True, False, False, True, False)
    ]


def test_what_a_leaf_is_set_aside_as():
    body = {"name": "bash", "arguments": '{"a": 1}'}
    call = {"id": "1", "type": "function", "function": body}
    transcript = transcript_of(
        [{"role": "assistant", "content": "so", "tool_calls": [call]}]
    )
    texts = [
        output.text
        for number in (0, 1)
        for output in transcript.outputs(0, number)
    ]
    assert texts == ["so", '{"a": 1}']
    assert transcript.output((0, 5, 0)) is None


@given(formats, histories.histories, st.booleans(), st.data())
def test_the_beginning_of_a_transcript_is_as_if_nothing_more_had_come(
    format, turns, reuse, data
):
    messages = histories.wire(format, turns, reuse_ids=reuse)
    at = data.draw(st.integers(0, len(messages)))
    whole, alone = (
        transcript_of(messages, format),
        transcript_of(messages[:at], format),
    )
    for transcript in (whole, alone):
        for index, message in enumerate(transcript.messages):
            for number, item, _ in leaves_of(message):
                transcript.output((index, number, item))
            transcript.once(Measure("test.index", lambda _, index: index), 0)
    before = repr(sorted(vars(whole).items(), key=lambda item: item[0]))
    cut = whole.upto(at)
    assert worked_out(cut) == worked_out(alone)
    for other in (cut, alone):
        for message, digest in zip(
            whole.messages[at:], whole.digests[at:], strict=True
        ):
            other.append(message, digest)
    assert worked_out(cut) == worked_out(alone)
    again = data.draw(st.integers(0, len(messages)))
    assert worked_out(cut.upto(again)) == worked_out(alone.upto(again))
    assert (
        repr(sorted(vars(whole).items(), key=lambda item: item[0])) == before
    )


def worked_out(transcript):
    caches = "_measured", "_fork", "_folded"
    return {
        name: value
        for name, value in vars(transcript).items()
        if name not in caches
    }


def test_a_result_is_late_where_its_history_could_have_been_parted_before_it():
    at_once = transcript_of(
        [called("a", "b"), gave("b", "1"), gave("a", "2"), called("c")]
    )
    assert at_once.marked("late", 0, 4) == []
    said = {"role": "assistant", "content": "It takes long."}
    messages = [
        called("a", "b"),
        gave("b", "1"),
        said,
        gave("a", "2"),
        gave("b", "again"),
    ]
    assert transcript_of(messages).marked("late", 0, 5) == [3, 4]
    assert transcript_of(messages).upto(4).marked("late", 0, 4) == [3]
    placeholder = gave("a", INTERRUPTED)
    assert transcript_of([called("a"), placeholder, gave("a", "2")]).marked(
        "late", 0, 3
    ) == [2]


CALLER = {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}


def asked(name, **more):
    use = {
        "type": "tool_use",
        "id": "toolu_1",
        "name": name,
        "input": {},
        **more,
    }
    result = {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": "yes",
    }
    return [
        {"role": "user", "content": "Begin."},
        {"role": "assistant", "content": [use]},
        {
            "role": "user",
            "content": [result, {"type": "text", "text": "Go on."}],
        },
    ]


def taken_in(raws, **settings):
    transcript = Transcript(canon.root("anthropic", ""), **settings)
    for index, raw in enumerate(raws):
        message = FORMATS["anthropic"].parse(raw, f"messages[{index}]")
        transcript.append(message, canon.digest_of(message))
    return transcript


def people(transcript):
    """Who wrote and who reads the call, its result, and the text beside that."""
    spots = ((1, 0), (2, 0), (2, 1))
    return [
        (transcript.author(*spot), transcript.reader(*spot)) for spot in spots
    ]


TOOLS = [("model", "model"), ("tool", "model"), ("user", "model")]
ANSWERS = [("model", "model"), ("user", "model"), ("user", "model")]
PROGRAMS = [("program", "program"), ("tool", "program"), ("user", "model")]


def test_who_wrote_and_who_reads_goes_by_the_call_of_a_result():
    assert people(taken_in(asked("query"))) == TOOLS
    assert people(taken_in(asked("ask_user"))) == ANSWERS
    assert (
        people(taken_in(asked("query"), user_tools=frozenset({"query"})))
        == ANSWERS
    )
    assert people(taken_in(asked("query", caller=CALLER))) == PROGRAMS
    assert people(taken_in(asked("query", caller={"type": "direct"}))) == TOOLS


def test_the_words_of_the_user_are_found_wherever_they_stand():
    transcript = taken_in(asked("AskUser"))
    words = [
        transcript.user_words(*spot)
        for spot in ((0, 0), (1, 0), (2, 0), (2, 1))
    ]
    assert words == ["Begin.", "", "yes", "Go on."]
    assert transcript.newest_user_words(3) == 2
    assert transcript.newest_user_words(2) == 0
    assert not transcript.may_shorten(2, 0)
    assert taken_in(asked("query")).may_shorten(2, 0)


def test_a_client_may_leave_the_caller_out_later_and_a_fork_knows_what_was_said():
    """It has no say in what a message is; the newest wording holds."""
    transcript = taken_in(asked("query", caller=CALLER))
    assert people(transcript.upto(3)) == PROGRAMS
    plain = FORMATS["anthropic"].parse(asked("query")[1], "messages[1]")
    transcript.refresh(1, plain)
    assert people(transcript) == TOOLS
    transcript.refresh(
        1, FORMATS["anthropic"].parse(asked("query", caller=CALLER)[1], "m")
    )
    assert people(transcript) == PROGRAMS
    assert not transcript.upto(2).has_program(2)


def test_a_message_is_shown_with_all_that_its_calls_and_results_are_joined_to():
    """A tool of the provider's is called in one reply and answered in the next."""
    searching = {
        "type": "server_tool_use",
        "id": "s1",
        "name": "web_search",
        "input": {},
    }
    found = {
        "type": "web_search_tool_result",
        "tool_use_id": "s1",
        "content": [],
    }
    call = {"type": "tool_use", "name": "query", "input": {}}
    transcript = taken_in(
        [
            {"role": "user", "content": "Begin."},
            {"role": "assistant", "content": [searching, {**call, "id": "a"}]},
            {"role": "user", "content": [result_of("a")]},
            {"role": "assistant", "content": [found, {**call, "id": "b"}]},
            {"role": "user", "content": [result_of("b")]},
            {"role": "assistant", "content": [{**call, "id": "c"}]},
            {"role": "user", "content": [result_of("c")]},
        ]
    )
    for index in (1, 2, 3, 4):
        assert transcript.inseparable(index, 7) == {1, 2, 3, 4}
    assert transcript.inseparable(2, 4) == {1, 2, 3}, (
        "as far as the history goes"
    )
    assert transcript.inseparable(6, 7) == {5, 6}
    assert transcript.inseparable(0, 7) == {0}


def result_of(id):
    return {"type": "tool_result", "tool_use_id": id, "content": "done"}
