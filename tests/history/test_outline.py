"""An outline names the messages of a history, and holds little of what was said."""

import pytest

from tests.histories import Call, Turn, wire
from tests.session.test_deciding import WIRES, fit, new_session
from ullage.core.history.ledger import Ledger
from ullage.core.history.outline import (
    HEAD_CHARS,
    head_of,
    outline_of,
    outlined,
    summed_up,
    transcript_of,
)
from ullage.wires import FORMATS

CLAUDE = (
    "This session is being continued from a previous conversation that ran out"
)
CODEX = (
    "Another language model started to solve this problem and produced a summary "
    "of its thinking process."
)
SEALED = {"type": "compaction", "id": "cmp_1", "encrypted_content": "x"}


def said(text, role="user"):
    return {"role": role, "content": text}


@pytest.mark.parametrize(
    ("items", "length"),
    [
        ([said(CLAUDE), said("I see.", "assistant")], 1),
        ([said("<env>"), said("Fix it."), said(CODEX), said("Go on.")], 3),
        ([said("Fix it."), SEALED, said("Go on.")], 2),
        ([said("What did we do so far?"), said("All.", "assistant")], 2),
        ([said("What did we do so far?")], 0),
        ([said("Fix it."), said("Done.", "assistant"), said(CLAUDE)], 0),
        ([said("Fix it."), said("Done.", "assistant"), SEALED], 0),
        ([said(f"He wrote: {CLAUDE}")], 0),
        ([said(CLAUDE, "assistant"), said("Go on.")], 0),
        ([], 0),
    ],
)
def test_where_a_client_summed_up_its_history(items, length):
    wire = FORMATS["openai-responses"]
    messages = [wire.parse(item, "input") for item in items]
    assert summed_up(messages) == length


SECRET = "the first line of it\n" + "what nobody else is to read " * 20
TURNS = [
    Turn(
        user="Find the fault.",
        calls=(Call("bash", "a.py", SECRET), Call("grep", "b", "two")),
    ),
    Turn(
        said="I look.",
        calls=(Call("bash", "c.py", "three", items=2),),
        thought=True,
    ),
]


def outlines_of(session, *lengths):
    """The outlines of a history, written at these lengths."""
    window, ledger, found = session._newest.working, Ledger(), []
    for length in lengths:
        ledger, records = outlined(
            window, length, ledger, wire="anthropic", tokens=9
        )
        found += map(outline_of, records)
    return found


def session_of(format="anthropic"):
    session = new_session(format)
    fit(session, format, wire(format, TURNS))
    return session


@pytest.mark.parametrize("format", WIRES)
def test_the_stand_ins_have_the_chain_of_the_messages(format):
    session = session_of(format)
    transcript = session._newest.transcript
    again = transcript_of(outlines_of(session, 2, len(transcript)))
    assert again.chain == transcript.chain
    assert [message.role for message in again.messages] == [
        message.role for message in transcript.messages
    ]
    for index in range(len(transcript)):
        for spot in transcript.results(index):
            assert again.locate(transcript.address(spot)) == spot


def test_it_holds_the_beginning_of_each_text_and_no_more():
    session = session_of()
    (outline,) = outlines_of(session, len(session._newest.transcript))
    heads = [
        item.head
        for row in outline.messages
        for part in row.parts
        for item in part.items
    ]
    assert (
        "the first line of it what nobody else is to read what nobody…"
        in heads
    )
    assert max(map(len, heads)) <= HEAD_CHARS + 1
    assert outline.title == "Find out why the tests fail."


def test_a_turn_adds_what_is_new_and_nothing_is_written_twice():
    session = session_of()
    first, second = outlines_of(session, 2, 2, len(session._newest.transcript))
    assert (first.start, first.length, first.before) == (0, 2, b"")
    assert second.start == 2
    assert second.before == session._newest.transcript.decision_key(2)
    assert first.name == second.name


@pytest.mark.parametrize("format", ["anthropic", "openai-chat"])
def test_a_title_is_of_the_user_and_not_of_the_client_in_the_user_s_role(
    format,
):
    reminder = "<system-reminder>\nAs you answer, …\n</system-reminder>\n"
    parts = [reminder, "<b>Mend</b> the <i>loader</i>, please."]
    content = [{"type": "text", "text": text} for text in parts]
    session = new_session(format)
    fit(session, format, [{"role": "user", "content": content}])
    (outline,) = outlines_of(session, 1)
    assert outline.title == "<b>Mend</b> the <i>loader</i>, please."


@pytest.mark.parametrize(
    "words", ["<task>Mend the loader.</task>", "<p>One</p>\n"]
)
def test_words_in_a_tag_are_the_title_where_there_are_no_others(words):
    """A program that asks in tags is the user here."""
    session = new_session("anthropic")
    fit(session, "anthropic", [{"role": "user", "content": words}])
    (outline,) = outlines_of(session, 1)
    assert outline.title == words.strip()


@pytest.mark.parametrize(
    ("text", "head"),
    [("  a\n\n b ", "a b"), ("", ""), ("x" * 70, "x" * 60 + "…")],
)
def test_how_a_text_begins(text, head):
    assert head_of(text) == head


def test_what_cannot_be_read_is_no_outline():
    session = session_of()
    _, (record,) = outlined(
        session._newest.working, 3, Ledger(), wire="anthropic", tokens=9
    )
    assert outline_of(record) is not None
    from msgspec.structs import replace

    assert outline_of(replace(record, data=b"nonsense")) is None
