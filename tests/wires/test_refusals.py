"""What the model refused with stands in a part, or in a field beside the content: text both."""

import json

import pytest

from ullage import Limits, Session, UnsupportedPart, convert, problems
from ullage.core.history import canon
from ullage.core.values.messages import Text, ToolCall
from ullage.wires import FORMATS

WIRE = FORMATS["openai-chat"]
GO = {"role": "user", "content": "go"}
NEXT = {"role": "user", "content": "and now?"}
CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "run", "arguments": "{}"},
}


def refused(text="I had rather not.", content=None, **more):
    return {"role": "assistant", "content": content, "refusal": text, **more}


def in_a_part(text="I had rather not."):
    return {
        "role": "assistant",
        "content": [{"type": "refusal", "refusal": text}],
    }


def parse(raw):
    return WIRE.parse(raw, "messages[1]")


def test_it_is_text_between_the_content_and_the_calls():
    parts = parse(refused(content="Hm.", tool_calls=[CALL])).parts
    assert [part.text for part in parts if isinstance(part, Text)] == [
        "Hm.",
        "I had rather not.",
    ]
    assert isinstance(parts[-1], ToolCall)


def test_in_a_part_or_in_the_field_it_is_the_same_message():
    assert canon.digest_of(parse(refused())) == canon.digest_of(
        parse(in_a_part())
    )
    assert canon.digest_of(parse(refused())) != canon.digest_of(
        parse(refused("No."))
    )


@pytest.mark.parametrize("none", [{}, {"refusal": None}, {"refusal": ""}])
def test_where_there_is_none_nothing_is_read(none):
    raw = {"role": "assistant", "content": "done", **none}
    assert parse(raw).parts == (Text("done"),)


@pytest.mark.parametrize(
    "raw", [refused(), refused(content="Hm."), in_a_part()]
)
def test_an_edit_leaves_it_a_refusal(raw):
    message = parse(raw)
    new = WIRE.edit(raw, message, [(len(message.parts) - 1, 0, "No.")])
    assert json.dumps(new) == json.dumps(raw).replace(
        "I had rather not.", "No."
    )
    assert (
        problems(
            {"model": "gpt-4.1", "messages": [GO, new, NEXT]}, "openai-chat"
        )
        == []
    )


def test_it_is_counted_and_cut_like_any_text():
    asked = {
        "model": "gpt-4.1",
        "messages": [GO, refused("No, I will not. " * 20_000), NEXT],
    }
    before = json.dumps(asked)
    wide = Session("gpt-4.1", recall=False)
    assert json.dumps(wide.fit(asked)) == before
    assert wide.window.estimate > 80_000
    narrow = Session(
        "gpt-4.1", recall=False, limits=Limits(window_tokens=6_000)
    )
    view = narrow.fit(asked)
    assert narrow.window.estimate <= narrow.window.limit_tokens
    assert problems(view, "openai-chat") == []
    assert json.dumps(asked) == before


@pytest.mark.parametrize("target", ["anthropic", "gemini", "openai-responses"])
@pytest.mark.parametrize(
    ("raw", "place"),
    [(refused(), r"\.refusal"), (in_a_part(), r"\.content\[0\]")],
    ids=["field", "part"],
)
def test_that_it_is_a_refusal_is_named_and_its_text_carried(
    target, raw, place
):
    messages = [GO, raw, NEXT]
    with pytest.raises(
        UnsupportedPart,
        match=rf"messages\[1\]{place}: that a text is a refusal",
    ):
        convert(messages, target, format="openai-chat")
    there = convert(messages, target, format="openai-chat", lossy="describe")
    assert "I had rather not." in json.dumps(there[1])
    assert "[ullage" not in json.dumps(there)


def test_mending_keeps_it_where_the_content_is_an_empty_list():
    asked = {"model": "gpt-4.1", "messages": [GO, refused(content=[]), NEXT]}
    assert problems(asked, "openai-chat")
    view = Session("gpt-4.1", recall=False, repair=True).fit(asked)
    assert view["messages"] == [GO, refused(), NEXT]
