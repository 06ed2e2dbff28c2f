import json

import pytest

from ullage import Limits, Session
from ullage.core.history.canon import ref_of
from ullage.core.values.effects import Output
from ullage.core.values.messages import ToolCall
from ullage.core.values.notices import Words
from ullage.core.values.toolset import CONTINUATION, GREP, READ
from ullage.session.drivers import run
from ullage.session.recall.dispatch import answer
from ullage.stores import MemoryStore

TEXT = "".join(f"{n:05} the tide came in\n" for n in range(1, 2_001))
REF = ref_of(TEXT)


def ask(
    tool, arguments, *, prefix="", history=None, tenant=""
) -> tuple[str, str | None, bool]:
    """The answer to one call: text, ref, is it an error. ``TEXT`` is kept for tenant ""."""
    store = MemoryStore()
    store.commit("", [Output(REF, TEXT)], [])
    call = ToolCall("call_1", prefix + tool, arguments, 0)
    words = Words(prefix=prefix)
    given = run(
        answer(call, words, history or (lambda wanted, thorough: None)),
        store,
        tenant,
    )
    return given.text, given.ref, given.is_error


def asked(tool, **arguments):
    return ask(tool, json.dumps(arguments))


def test_continuation_reads_on_from_a_character():
    text, ref, failed = asked(CONTINUATION, tool_call_id=REF, offset=100)
    assert text.startswith(TEXT[100:8_100])
    assert (ref, failed) == (REF, False)


@pytest.mark.says(
    "output-cache-and-compaction",
    "1.8 Deployment (tool_output_cache)",
    "tool_output_cache({ ref_id, offset?, limit? })",
    lives="ullage.session.recall.dispatch",
    see="ullage read REF --lines",
)
def test_the_cache_reads_lines_with_numbers():
    text, ref, failed = asked(READ, ref_id=REF, offset=1_998, limit=5)
    assert (
        text
        == "  1999\t01999 the tide came in\n  2000\t02000 the tide came in\n  2001\t"
    )
    assert (ref, failed) == (REF, False)


@pytest.mark.says(
    "output-cache-and-compaction",
    "1.8 Deployment (tool_output_cache)",
    "Prepare `tool_output_cache_grep` for search purposes (see tools spec).",
    lives="ullage.session.recall.grep",
    see="ullage grep PATTERN REF",
)
def test_grep_gives_matching_lines_and_says_how_many_there_are():
    text, ref, failed = asked(GREP, ref_id=REF, pattern="^0199[89]")
    assert text == (
        "  1998:\t01998 the tide came in\n  1999:\t01999 the tide came in\n"
        "[2 of 2 matching lines; 46,000 characters searched]"
    )
    assert (ref, failed) == (REF, False)


def test_grep_marks_context_and_bounds_what_it_shows():
    text, _, _ = asked(GREP, ref_id=REF, pattern="00002 ", context_lines=1)
    assert [line[:7] for line in text.split("\n")[:3]] == [
        "     1-",
        "     2:",
        "     3-",
    ]
    text, _, _ = asked(GREP, ref_id=REF, pattern="tide", ignore_case=True)
    assert text.endswith(
        "[50 of 2,000 matching lines; 46,000 characters searched]"
    )


def test_grep_that_finds_nothing_says_so_and_is_no_error():
    text, _, failed = asked(GREP, ref_id=REF, pattern="ebb")
    assert text == "[0 of 0 matching lines; 46,000 characters searched]"
    assert not failed


@pytest.mark.parametrize(
    "offset", [4_000, 4_000.0, "4000", "4,000", "4000.0", " 4000 "]
)
def test_a_number_is_taken_as_models_write_it(offset):
    text, _, failed = asked(CONTINUATION, tool_call_id=REF, offset=offset)
    assert text.startswith(TEXT[4_000:4_100])
    assert not failed


@pytest.mark.parametrize("offset", [None, [], "far", -5])
def test_what_is_no_number_is_the_beginning(offset):
    text, _, failed = asked(CONTINUATION, tool_call_id=REF, offset=offset)
    assert text.startswith(TEXT[:100])
    assert not failed


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        (CONTINUATION, "{", "not a JSON object"),
        (CONTINUATION, "[]", "not a JSON object"),
        (CONTINUATION, "", "tool_call_id is missing"),
        (READ, '{"tool_call_id": "x"}', "ref_id is missing"),
        (READ, '{"ref_id": 7}', "ref_id is missing"),
        (READ, '{"ref_id": "../../etc/passwd"}', "nothing is kept"),
        (CONTINUATION, '{"tool_call_id": "\\u0000"}', "nothing is kept"),
        (
            CONTINUATION,
            json.dumps({"tool_call_id": "x" * 5_000}),
            "nothing is kept",
        ),
        (GREP, json.dumps({"ref_id": REF}), "pattern is missing"),
        (
            GREP,
            json.dumps({"ref_id": REF, "pattern": "(?=a)"}),
            "not supported",
        ),
        (GREP, json.dumps({"ref_id": REF, "pattern": "("}), "not understood"),
    ],
)
def test_a_call_that_cannot_be_answered_tells_the_model_what_to_do(
    tool, arguments, says
):
    text, ref, failed = ask(tool, arguments)
    told = json.loads(text)
    assert says in told["error"]
    assert told["remedy"].endswith(".")
    assert failed
    assert ref is None
    assert len(text) < 400


def test_a_prefix_after_a_clash_is_taken_off():
    text, _, failed = ask(
        READ, json.dumps({"ref_id": REF, "limit": 1}), prefix="ullage_"
    )
    assert not failed
    assert text.startswith("     1\t00001 ")


def test_the_history_at_hand_is_asked_before_the_store_and_after_it():
    asked_of_history = []

    def history(wanted, thorough):
        asked_of_history.append((wanted, thorough))
        return Output(ref_of("old"), "old") if thorough else None

    arguments = json.dumps({"tool_call_id": "call_of_long_ago"})
    assert ask(CONTINUATION, arguments, history=history)[:2] == (
        "old",
        ref_of("old"),
    )
    assert asked_of_history == [
        ("call_of_long_ago", False),
        ("call_of_long_ago", True),
    ]


def test_what_another_tenant_put_there_is_not_opened():
    text, ref, failed = ask(
        READ, json.dumps({"ref_id": REF}), tenant="someone else"
    )
    assert failed
    assert ref is None
    assert "tide" not in text


# In a session, on the wire


def test_only_a_call_of_our_tools_is_ours_and_its_answer_goes_straight_into_the_history():
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "bash", "arguments": "{}"},
    }
    messages = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": TEXT},
    ]
    session = Session(
        "gpt-4.1", limits=Limits(window_tokens=100_000), recall=True
    )
    session.fit({"messages": messages})
    ours = {
        "id": "call_2",
        "type": "function",
        "function": {
            "name": CONTINUATION,
            "arguments": '{"tool_call_id": "call_1"}',
        },
    }
    assert not session.owns(call)
    assert session.owns(ours)
    answered = session.recall(ours)
    assert (answered["role"], answered["tool_call_id"]) == ("tool", "call_2")
    assert answered["content"].startswith(TEXT[:8_000])
    assert (session.events[-1].kind, session.events[-1].ref) == (
        "recalled",
        REF,
    )
