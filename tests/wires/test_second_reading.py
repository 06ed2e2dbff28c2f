"""Two readings of the provider rules agree: the validator, and a checker written apart from it.

Rule 0, the shape of types, is not the document's but the SDKs': `test_sdk_types` reads that.
What was settled between the two is in docs/validator.md. READINGS=20000 reads so many histories
of each wire as they are, and about as many with something wrong.
"""

import copy
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lab.fuzz.histories import NUMBERED, case
from lab.returned import problems
from tests import histories
from tests.second_reading import broken
from tests.wires import (
    test_rules,
    test_rules_gemini,
    test_rules_ollama,
    test_rules_responses,
)

KEYS = {
    "anthropic": "messages",
    "openai-chat": "messages",
    "openai-responses": "input",
    "gemini": "contents",
    "ollama": "messages",
}
READINGS = int(os.environ.get("READINGS", "0"))
SHAPE = {"A0", "C0", "R0", "G0", "O0", "B0"}
every_format = pytest.mark.parametrize("format", KEYS)


def agree(format, request):
    """Both report the same rules; where the shape is wrong, the second has nothing to say."""
    first = {problem.rule for problem in problems(format, request)}
    if not first & SHAPE:
        assert first == broken(format, request)
    return first


EXAMPLES = {
    "openai-chat": [
        *test_rules.CHAT_LEGAL.values(),
        *(m for _, m in test_rules.CHAT_ILLEGAL),
    ],
    "anthropic": [
        *test_rules.ANTHROPIC_LEGAL.values(),
        *(m for _, m in test_rules.ANTHROPIC_ILLEGAL),
    ],
    "openai-responses": [
        *test_rules_responses.LEGAL.values(),
        *(m for _, m in test_rules_responses.ILLEGAL),
    ],
    "gemini": [
        *test_rules_gemini.LEGAL.values(),
        *(m for _, m in test_rules_gemini.ILLEGAL),
    ],
    "ollama": [
        *test_rules_ollama.LEGAL.values(),
        *(m for _, m in test_rules_ollama.ILLEGAL),
    ],
}


def is_wire(message):
    """Not one of the shorter forms that only Google's SDK takes, nor no object at all."""
    return isinstance(message, dict) and message.keys() & {
        "role",
        "type",
        "parts",
    }


@every_format
def test_they_agree_on_every_example(format):
    compared = [m for m in EXAMPLES[format] if all(map(is_wire, m))]
    assert len(compared) > len(EXAMPLES[format]) * 0.9
    for messages in compared:
        agree(format, {KEYS[format]: copy.deepcopy(messages)})


@every_format
@given(number=st.integers(0, max(10_000, 100 * READINGS)))
@settings(max_examples=READINGS or 50)
def test_they_agree_on_generated_histories(format, number):
    one = case(7, number, (format,))
    request = {**one.request, one.key: one.messages, "model": None}
    broken_rules = agree(format, request)
    assert one.repair or broken_rules <= {"A12", "G11"}


@pytest.mark.parametrize("number", [9_500, 35_457, 9_530])
def test_they_agree_where_they_did_not_once(number):
    one = case(7, number, NUMBERED)
    assert agree(
        one.format, {**one.request, one.key: one.messages, "model": None}
    )


# -- mutations ----------------------------------------------------------------------------


def holders(messages):
    """Every list of blocks, parts or calls inside the messages."""
    found = []
    for message in messages:
        for key in ("content", "parts", "tool_calls", "output"):
            if isinstance(message.get(key), list) and message[key]:
                found.append(message[key])
    return found


def dicts(value):
    """Every object inside a value."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value:
        if isinstance(inner, (dict, list)):
            yield from dicts(inner)


def having(messages, *keys):
    return [
        (thing, key)
        for thing in dicts(messages)
        for key in keys
        if key in thing
    ]


def drop(draw, items):
    if items:
        items.pop(draw(st.integers(0, len(items) - 1)))


def double(draw, items):
    if items:
        at = draw(st.integers(0, len(items) - 1))
        items.insert(
            draw(st.integers(0, len(items))), copy.deepcopy(items[at])
        )


def swap(draw, items):
    if items:
        one, other = (draw(st.integers(0, len(items) - 1)) for _ in range(2))
        items[one], items[other] = items[other], items[one]


def within(change):
    """The same change, inside one message."""

    def inside(draw, messages):
        lists = holders(messages)
        if lists:
            change(draw, draw(st.sampled_from(lists)))

    inside.__name__ = f"{change.__name__}_inside"
    return inside


def setting(name, keys, values):
    """Give one field of one object another value, or take the field away."""

    def change(draw, messages):
        places = having(messages, *keys)
        if not places:
            return
        thing, key = draw(st.sampled_from(places))
        value = draw(st.sampled_from(values))
        if value is None:
            del thing[key]
        else:
            thing[key] = value

    change.__name__ = name
    return change


def rename(draw, messages):
    """One id becomes another, perhaps one that is in use."""
    keys = ("id", "tool_use_id", "tool_call_id", "call_id")
    places = [
        (t, key)
        for t, key in having(messages, *keys)
        if isinstance(t[key], str)
    ]
    if places:
        thing, key = draw(st.sampled_from(places))
        used = [other[name] for other, name in places]
        thing[key] = draw(
            st.sampled_from([*used, "other", "a b", "x" * 50, "y" * 70])
        )


ROLES = ("user", "assistant", "model", "tool", "system", "developer")
MUTATIONS = [
    drop,
    double,
    swap,
    within(drop),
    within(double),
    within(swap),
    rename,
    setting("role", ["role"], ROLES),
    setting("empty", ["text", "content"], ("", " ", "x ")),
    setting("unsigned", ["thoughtSignature", "encrypted_content"], (None,)),
    setting("signed", ["functionCall"], ({"name": "bash", "args": {}},)),
    setting("extra", ["type"], ("text", "image")),
]


@every_format
@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda one: one.__name__)
@given(turns=histories.few, data=st.data())
@settings(
    max_examples=READINGS // len(MUTATIONS) or 40,
    suppress_health_check=[HealthCheck.too_slow],
)
def test_they_agree_on_histories_with_something_wrong(
    format, mutate, turns, data
):
    messages = copy.deepcopy(histories.wire(format, turns))
    for _ in range(data.draw(st.integers(1, 3))):
        mutate(data.draw, messages)
    agree(format, histories.request(format, messages))
