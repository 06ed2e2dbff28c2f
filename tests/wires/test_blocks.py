"""The table of each wire: a row and an example of every type, and what the row says is so."""

import json

import pytest

from tests.wire import examples, history
from tests.wires.test_every_part import as_object, request, sent
from ullage import UnsupportedPart, convert, problems
from ullage.core.errors import FormatError
from ullage.core.history.transcript import leaves_of
from ullage.core.values.messages import (
    BlockFrame,
    Media,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
)
from ullage.wires import FORMATS

every_format = pytest.mark.parametrize("format", FORMATS)
MEANT = {
    "text": "Text",
    "media": "Media",
    "call": "ToolCall",
    "result": "ToolResult",
    "reasoning": "Reasoning",
    "opaque": "Opaque",
}
NO_ROW = {"thought_signature"}
"""Examples of a field of a call that has no type of its own."""
READ_ONLY = {"openai-responses"}
"""Its ``text`` is of the SDK's older versions: it is read, and legal nowhere."""
MORE_THAN_ONE = {
    ("anthropic", "document", "Passage"),  # a text or blocks as its source
    ("anthropic", "document", "BlockFrame"),  # and what is beside it
    ("anthropic", "search_result", "Passage"),
    ("gemini", "text", "Reasoning"),  # with ``thought``
    ("bedrock-converse", "document", "Passage"),
    ("bedrock-converse", "document", "BlockFrame"),
    ("bedrock-converse", "searchResult", "Passage"),
    ("bedrock-converse", "guardContent", "Text"),
    ("bedrock-converse", "guardContent", "Passage"),
    ("bedrock-converse", "citationsContent", "Passage"),
    (
        "bedrock-converse",
        "toolUse",
        "Opaque",
    ),  # of a tool that the caller does not run
}


@every_format
def test_every_row_has_an_example_and_every_example_a_row(format):
    """With `test_every_part`, which asks an example of every type that the SDKs know."""
    rows = {
        row.kind: row
        for row in FORMATS[format].blocks.values()
        if row.becomes != "message"
    }
    kinds = {example.type for example in examples(format)} - NO_ROW
    assert rows.keys() == kinds | (
        {"text"} & rows.keys() if format in READ_ONLY else set()
    )
    for example in examples(format):
        if example.type in rows:
            meant = MEANT[rows[example.type].becomes]
            assert meant == example.meaning or (
                (format, example.type, example.meaning) in MORE_THAN_ONE
            )


def held(leaf):
    """The longest text that a leaf shows."""
    match leaf:
        case (
            Text(text=text)
            | Reasoning(text=text)
            | Opaque(text=text)
            | BlockFrame(text=text)
        ):
            return text
        case ToolCall(arguments=text):
            return text
        case Media(data=data):
            return data


def strings(value):
    if isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)
    elif isinstance(value, str):
        yield value


def leaves(format):
    """Every leaf of the examples: the number of its message, its spot in that, and the leaf."""
    wire = FORMATS[format]
    for at, raw in enumerate(history(format)):
        for number, item, leaf in leaves_of(wire.parse(raw, "example")):
            yield at, number, item, leaf


LEAVES = [(format, *leaf) for format in FORMATS for leaf in leaves(format)]


def name_of(case):
    return f"{case[0]}-{case[1]}-{case[3]}"


def is_fixed(format, raw, leaf):
    """Whether nothing but the part itself may stand there, by the words of the documents."""
    if isinstance(leaf, (Reasoning, BlockFrame)):
        return True
    if isinstance(leaf, Media):
        return raw.get("type") == "image_generation_call"
    if isinstance(leaf, ToolCall) and format == "gemini":
        return "thoughtSignature" in raw["parts"][leaf.at]
    free = {"document", "search_result", "tool_reference", "browser_state"}
    return isinstance(leaf, Opaque) and leaf.kind not in free


@pytest.mark.parametrize("case", LEAVES, ids=name_of)
def test_a_leaf_is_replaced_legally_and_wholly_or_the_edit_is_refused(case):
    """In dicts and in the SDK's objects; what was there is gone, and the new text is read back."""
    format, at, number, item, leaf = case
    words = f"words of {name_of(case)}, and no others."
    wire, messages = FORMATS[format], history(format)
    raw = messages[at]
    text = json.dumps({"said": words}) if isinstance(leaf, ToolCall) else words
    change = [(number, item, text)]
    before = json.dumps(raw)
    thing = as_object(format, raw)
    for given_ in (raw, thing) if thing is not None else (raw,):
        parsed = wire.parse(given_, "example")
        if is_fixed(format, raw, leaf):
            with pytest.raises(FormatError):
                wire.edit(given_, parsed, change)
            continue
        new = wire.edit(given_, parsed, change)
        view = [*messages[:at], new, *messages[at + 1 :]]
        assert problems(request(format, view), format) == []
        shown = [
            held(each) for _, _, each in leaves_of(wire.parse(new, "new"))
        ]
        assert any(words in each for each in shown)
        assert held(leaf) in (text, "") or held(leaf) not in strings(sent(new))
    assert json.dumps(raw) == before


@every_format
@pytest.mark.parametrize("text", ["", "  "])
def test_a_leaf_is_emptied_legally_or_the_edit_is_refused(format, text):
    """No blank text where the wire forbids it (A9, G2); Converse takes none at all (B6)."""
    emptied, wire, messages = 0, FORMATS[format], history(format)
    for at, number, item, leaf in leaves(format):
        parsed = wire.parse(messages[at], "example")
        try:
            new = wire.edit(messages[at], parsed, [(number, item, text)])
        except FormatError:
            continue
        view = [*messages[:at], new, *messages[at + 1 :]]
        assert problems(request(format, view), format) == [], leaf
        emptied += 1
    assert bool(emptied) == (format != "bedrock-converse")


@every_format
@pytest.mark.parametrize("text", ["no json", "[1]", "7", "{", "[" * 10_000])
def test_arguments_are_replaced_by_an_object_or_not_at_all(format, text):
    calls = [
        case[1:]
        for case in LEAVES
        if case[0] == format and isinstance(case[4], ToolCall)
    ]
    for at, number, item, _ in calls:
        raw = history(format)[at]
        parsed = FORMATS[format].parse(raw, "example")
        if format.startswith(
            "openai"
        ):  # their arguments are a string, whatever it holds
            assert text in json.dumps(
                FORMATS[format].edit(raw, parsed, [(number, item, text)])
            )
        else:
            with pytest.raises(FormatError):
                FORMATS[format].edit(raw, parsed, [(number, item, text)])


@every_format
@pytest.mark.parametrize("to", FORMATS)
def test_each_example_is_converted_or_refused_by_its_place(format, to):
    """A row that says nothing is carried is refused; what is carried is legal in the other."""
    for example in examples(format):
        row = FORMATS[format].blocks.get(example.type)
        try:
            made = convert(
                request(format, example.messages), to, format=format
            )
        except UnsupportedPart:
            continue
        if to == format:
            assert made["model"]
            continue
        assert (
            row is None
            or row.carried is not None
            or row.becomes == "reasoning"
        )
        assert not {p.rule[1:] for p in problems(made, to)} & {"0"}
