"""Who wrote a part, and who reads it, where its call has a say."""

import pytest

from ullage.core.history.authorship import Authorship
from ullage.core.history.transcript import Transcript
from ullage.core.values.authors import answered_by_user
from ullage.core.values.messages import (
    Message,
    Opaque,
    Passage,
    Text,
    ToolCall,
    ToolResult,
)


def transcript_of(*messages):
    transcript = Transcript(
        b"root" * 4, user_tools=answered_by_user(("ask_boss",))
    )
    for number, message in enumerate(messages):
        transcript.append(message, bytes([number]) * 16)
    assert isinstance(transcript, Authorship)
    return transcript


def called(tool, author="model"):
    """A question of the user's, a call, and its result."""
    return transcript_of(
        Message("user", (Text("go"),)),
        Message("assistant", (ToolCall("c1", tool, "{}", 0, author=author),)),
        Message(
            "user", (ToolResult("c1", (Text("yes"), Text(" ")), False, 0),)
        ),
    )


@pytest.mark.parametrize(
    ("tool", "author", "words"),
    [("ask_boss", "user", "yes"), ("bash", "tool", "")],
)
def test_a_tool_that_asks_the_user_brings_the_users_words(tool, author, words):
    transcript = called(tool)
    assert transcript.author(2, 0) == author
    assert transcript.user_words(2, 0) == words
    assert transcript.may_shorten(2, 0) is (author == "tool")
    assert transcript.call_index(2, 0) == 1
    assert transcript.call_for(2, 0).name == tool


def test_a_program_reads_the_result_of_its_call():
    transcript = called("bash", author="program")
    assert transcript.reader(1, 0) == transcript.reader(2, 0) == "program"
    assert transcript.has_program(2)
    assert not transcript.has_program(0)
    assert not transcript.may_shorten(2, 0)


def test_a_wire_tells_the_rest():
    parts = (
        Text("hello"),
        Passage("of a book", 1),
        Opaque("x", "{}", 2, words="hi"),
    )
    transcript = transcript_of(
        Message("user", parts),
        Message(
            "assistant", (Text("well"), Opaque("y", "{}", 1, author="tool"))
        ),
    )
    assert [transcript.user_words(0, number) for number in range(3)] == [
        "hello",
        "",
        "hi",
    ]
    assert transcript.user_words(1, 0) == ""
    assert transcript.author(0, 0) == "user"
    assert transcript.author(1, 0) == "model"
    assert transcript.author(1, 1) == "tool"
    assert transcript.call_for(0, 0) is None
    assert transcript.call_index(0, 0) is None
