"""A body read from where it differs from an earlier one says what it says read whole."""

import gc
import json
from unittest.mock import patch

import pytest
from blake3 import blake3
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from ullage.doors.exchange import bodies, parsed_body
from ullage.doors.exchange.body_cache import ParsedBodyCache
from ullage.doors.exchange.parsed_body import read_anew, read_on
from ullage.doors.exchange.requests import beginning

WHITE = st.sampled_from(["", "", " ", "\n  "])
TEXTS = st.text(max_size=4) | st.sampled_from(
    ['"messages": [', "],", "}{", "\\", "[{", "é", "日"]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["a", "b", "messages"]), inner, max_size=2
        )
    ),
    max_leaves=4,
)
MESSAGES = st.lists(
    st.dictionaries(st.sampled_from(["role", "content"]), VALUES), max_size=4
)
NAMES = st.sampled_from(
    ["model", "system", "tools", "messages", "\\u006dessages"]
)
TOKENS = st.sampled_from(
    [
        b"",
        b",",
        b"[",
        b"]",
        b"{",
        b"}",
        b" ",
        b'"',
        b'"a":',
        b"1",
        b"{}",
        b",{}",
        b"]}",
        b"\\",
    ]
)


@st.composite
def members(draw, most=2):
    """Members of an object as text; a name may come twice."""
    found = draw(st.lists(st.tuples(NAMES, VALUES), max_size=most))
    return [
        f'"{name}"{draw(WHITE)}: {written(draw, value)}'
        for name, value in found
    ]


def written(draw, value):
    return json.dumps(
        value,
        ensure_ascii=draw(st.booleans()),
        indent=draw(st.sampled_from([None, 1])),
    )


@st.composite
def parts(draw):
    """A body in parts: what stands before its messages, they, what stands behind."""
    before, after = draw(members()), draw(members())
    items = [
        draw(WHITE) + written(draw, each) + draw(WHITE)
        for each in draw(MESSAGES)
    ]
    head = "".join(f"{each},{draw(WHITE)}" for each in before)
    tail = "".join(f"{draw(WHITE)},{each}" for each in after)
    return (
        f'{{{head}"messages"{draw(WHITE)}:{draw(WHITE)}[',
        items,
        f"{draw(WHITE)}]{tail}}}",
    )


def body_of(head, items, tail):
    return (head + ",".join(items) + tail).encode("utf-8", "surrogatepass")


@st.composite
def two_bodies(draw):
    """A body, and one that begins or ends like it, or is it with some bytes exchanged."""
    head, items, tail = draw(parts())
    other_head, more, other_tail = draw(parts())
    one = body_of(head, items, tail)
    if draw(st.booleans()):
        start, stop = sorted(draw(st.tuples(*[st.integers(0, len(one))] * 2)))
        return one, one[:start] + draw(TOKENS) + one[stop:]
    kept = items[: draw(st.integers(0, len(items)))]
    heads, tails = (
        st.sampled_from([head, head, other_head]),
        st.sampled_from([tail, other_tail]),
    )
    return one, body_of(draw(heads), [*kept, *more], draw(tails))


def agree(body, found):
    """Whether a reading is none, or says what the body does when it is read whole."""
    wanted = bodies.read(body)
    return found is None or (
        json.dumps(found.value) == json.dumps(wanted)
        and body.startswith(found.head)
        and body[found.stop :] == found.tail
        and said_in_parts(body, found) == wanted["messages"]
    )


def said_in_parts(body, found):
    """The messages of a body, read part by part: its spans, which hold what they should, and
    its pieces."""
    said, at = [], len(found.head)
    for span in found.spans:
        part, at = body[at : at + span.size_bytes], at + span.size_bytes
        here = bodies.read(b"[" + part.lstrip(b", \n") + b"]")
        assert (len(here), blake3(part).digest()) == (span.count, span.digest)
        said += here
    assert body[at : found.stop] == b"".join(found.pieces)
    return said + [
        bodies.read(piece.lstrip(b", \n")) for piece in found.pieces
    ]


@pytest.mark.parametrize("span_bytes", [1, 20, 1 << 16])
@given(both=two_bodies())
@example(both=(b'{"messages":[{"a":1}]}', b'{"messages":[{"a":1},]}'))
@example(both=(b'{"messages":[{"a":1}]}', b'{"messages":[{"a":1}{"a":2}]}'))
@example(both=(b'{"messages":[{"a":1}]}', b'{"messages":[{"a":1} ,{"a":2}]}'))
@example(
    both=(
        b'{"messages":[{"a":1}],"b":2}',
        b'{"messages":[{"a":1}],"b":2,"messages":[]}',
    )
)
@example(both=(b'{"messages":[]}', b'{"messages":[,{"a":1}]}'))
@example(
    both=(b'{"messages":[{}]}', b'{"messages":[{},{"a":1}],"":[{"a":1}]}')
)
@example(
    both=(
        b'{"a":[{}],"a":[{}],"messages":[{}]}',
        b'{"b":1,"\\u0061":2,"messages":[{}]}',
    )
)
@example(both=(b'{"messages":[{}],"":[{}]}', b'{"messages":[{},{}],"":[{}]}'))
@example(both=(b'{"messages":[{}],"":0}', b'{"messages":[{}],"b":0}'))
@example(
    both=(
        b'{"messages":[{}],"messages":[{}]}',
        b'{"messages":[{},{}],"messages":[{}]}',
    )
)
@example(
    both=(
        b'{"x":{"messages":[{}]},"messages":[{}]}',
        b'{"x":{"messages":[{}]},"messages":[{},{}]}',
    )
)
def test_what_is_read_on_says_what_the_whole_body_does(span_bytes, both):
    one, other = both
    with patch.multiple(parsed_body, _SPAN_BYTES=span_bytes, _LOOSE=1):
        first = read_anew(one, "messages")
        assert agree(one, first)
        assert agree(other, read_anew(other, "messages"))
        if first is not None:
            assert agree(other, read_on(first, other))


def conversation(count, text="x" * 900):
    said = [
        {"role": "user", "content": f"{n} {text}", "n": {"n": n}}
        for n in range(count)
    ]
    return json.dumps(
        {"model": "m", "messages": said, "tools": [{"name": "read"}]}
    ).encode()


class Session:
    """A reading is kept as long as this is there."""


ALWAYS = Session()


def kept(readings, body, owner="me", session=None):
    """What a body says, as the newest of its conversation."""
    found = readings.read(body, "messages", owner)
    readings.keep(session or ALWAYS, owner, body, found)
    return found.value


def shared(one, other):
    """Whether each message of a body is the very object that it is in a longer one."""
    pairs = zip(one["messages"], other["messages"], strict=False)
    return [mine is yours for mine, yours in pairs]


def test_what_was_read_before_is_the_very_same_object():
    readings = ParsedBodyCache()
    first, second = (kept(readings, conversation(count)) for count in (20, 22))
    assert shared(first, second) == [True] * 20
    assert first["tools"] is second["tools"]
    assert first["messages"] is not second["messages"]
    changed = conversation(22).replace(b'"10 x', b'"ten x')
    third = kept(readings, changed)
    assert shared(second, third) == [True] * 10 + [False] * 12
    assert third == bodies.read(changed)


def test_what_one_owner_sent_is_nothing_to_another():
    readings = ParsedBodyCache()
    mine, yours = (
        kept(readings, conversation(20), owner) for owner in ("me", "you")
    )
    assert mine == yours
    assert shared(mine, yours) == [False] * 20


def test_what_stands_around_the_messages_is_held_once_by_conversations_of_one_owner():
    readings, mine, yours, others = (
        ParsedBodyCache(),
        Session(),
        Session(),
        Session(),
    )
    for session, owner, text in (
        (mine, "me", "a"),
        (yours, "me", "b"),
        (others, "you", "c"),
    ):
        kept(readings, conversation(20, text * 900), owner, session)
    one, same, other = (
        readings.read(conversation(21, text * 900), "messages", owner).value
        for owner, text in (("me", "a"), ("me", "b"), ("you", "c"))
    )
    assert one["tools"] is same["tools"]
    assert one["model"] is same["model"]
    assert one["tools"] == other["tools"]
    assert one["tools"] is not other["tools"]


def test_a_long_body_is_read_on_too_and_most_of_its_bytes_are_not_held():
    readings = ParsedBodyCache()
    long = conversation(400)
    first, second = kept(readings, long), kept(readings, conversation(402))
    assert shared(first, second) == [True] * 400
    assert readings.read(long, "messages", "me").held_bytes < len(long) / 4
    changed = conversation(402).replace(b'"9 x', b'"nine x')
    third = kept(readings, changed)
    assert shared(second, third) == [False] * 402
    assert third == bodies.read(changed)
    fourth = kept(readings, changed.replace(b'"395 x', b'"last x'))
    assert shared(third, fourth)[:320] == [True] * 320
    assert fourth["messages"][395] == {
        **third["messages"][395],
        "content": f"last {'x' * 900}",
    }


WORDS = st.text("ab", max_size=2)
TURNS = st.lists(
    st.tuples(st.sampled_from(["system", "user", "assistant"]), WORDS),
    max_size=12,
)


@pytest.mark.parametrize("wire", ["anthropic", "openai-chat"])
@given(TURNS, TURNS, st.integers(0, 12))
def test_how_a_history_begins_is_remembered_only_as_long_as_it_does(
    wire, before, after, shared
):
    one, other = ([*before], [*before[:shared], *after])
    found = []
    for turns in (one, other):
        said = [{"role": role, "content": text} for role, text in turns]
        found.append({"model": "m", "messages": said})
    known = read_anew(json.dumps(found[0]).encode(), "messages")
    begins = beginning(wire, found[0])
    read = read_on(
        replace(known, beginning=begins), json.dumps(found[1]).encode()
    )
    assert read.beginning in (None, beginning(wire, found[1]))
    assert (
        read.beginning == begins
        or shared < begins.read
        or len(before) < begins.read
    )


def test_what_was_read_goes_with_the_session_that_it_was_read_for():
    readings, mine, yours = ParsedBodyCache(), Session(), Session()
    texts = ["a" * 900, "b" * 900]
    first = [
        kept(readings, conversation(20, text), session=session)
        for text, session in zip(texts, (mine, yours), strict=True)
    ]
    del mine
    gc.collect()
    again = [
        readings.read(conversation(20, text), "messages", "me").value
        for text in texts
    ]
    assert [all(shared(*pair)) for pair in zip(first, again, strict=True)] == [
        False,
        True,
    ]
    del yours
    assert (len(readings), first[0]) == (0, again[0])


@pytest.mark.parametrize(
    "odd",
    [
        b'{"messages": "none"}',
        b'{"messages": [1, {}]}',
        b'{"messages": [{}, {}], "messages": [{}]}',
        b'{"a": {"messages": []}}',
        b'["messages", {"messages": []}]',
        b'{"messages": [{"role": "\\ud800"}]}',
        b'{"messages": [{}]} x',
        '{"messages": []}'.encode("utf-16"),
    ],
)
def test_what_is_unusual_is_read_whole(odd):
    assert read_anew(odd, "messages") is None


@pytest.mark.parametrize("key", ["messages", "contents", "input"])
def test_the_lists_name_deep_inside_costs_what_its_bytes_do(key, monkeypatch):
    inside = b",".join(b'"%b": [1]' % key.encode() for _ in range(3_000))
    body = b'{"x":{%b},"%b":[{"a":1}]}' % (inside, key.encode())
    read_bytes = []

    def counted(data):
        read_bytes.append(len(data))
        return bodies.decode(data)

    monkeypatch.setattr(parsed_body, "decode", counted)
    assert read_anew(body, key).messages == ({"a": 1},)
    assert sum(read_bytes) < 2 * len(body)
