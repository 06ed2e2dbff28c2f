"""A third reading of shapes: what the validator takes, the types of the vendors' SDKs take too."""

import copy

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import histories
from tests.wires import (
    test_rules,
    test_rules_gemini,
    test_rules_ollama,
    test_rules_responses,
)
from tests.wires.rule_examples import EXAMPLES
from tests.wires.test_second_reading import KEYS, MUTATIONS, is_wire
from ullage.wires.rules.checker import problems_of

pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed")
every_format = pytest.mark.parametrize("format", KEYS)

TYPES = {
    "anthropic": ("anthropic.types.beta", "BetaMessageParam"),
    "openai-chat": ("openai.types.chat", "ChatCompletionMessageParam"),
    "openai-responses": ("openai.types.responses", "ResponseInputItemParam"),
    "gemini": ("google.genai.types", "Content"),
    "ollama": ("ollama", "Message"),
}
LEGAL = {
    "anthropic": test_rules.ANTHROPIC_LEGAL,
    "openai-chat": test_rules.CHAT_LEGAL,
    "openai-responses": test_rules_responses.LEGAL,
    "gemini": test_rules_gemini.LEGAL,
    "ollama": test_rules_ollama.LEGAL,
}
WIDER = {
    "a block type from the future": "a type newer than the SDK is carried through",
    "a type from the future": "a type newer than the SDK is carried through",
    "server tools, and parts from the future": "a part newer than the SDK is carried through",
    "output text and a refusal": "the SDK asks the ids and annotations that the server gave, and "
    "which it does without",
    "reasoning before a message, a call, a search": "the SDK asks what was searched for, which "
    "is the server's own",
}
"""Legal examples that the SDK's types refuse, and why the validator takes them."""


SHAPED = [mutate for mutate in MUTATIONS if mutate.__name__ != "extra"]
"""All but the one that gives blocks another type: what is of an unknown type is carried on."""


@pytest.fixture(scope="module")
def sdk():
    """A function that says whether the SDK of a format takes a message."""
    adapters = {}

    def takes(format, message):
        if format not in adapters:
            module, name = TYPES[format]
            kind = getattr(
                pytest.importorskip(module, reason=f"no {module}"), name
            )
            adapters[format] = pydantic.TypeAdapter(kind)
        try:
            exhaust(adapters[format].validate_python(easy(message)))
        except pydantic.ValidationError:
            return False
        return True

    return takes


def easy(message):
    """A copy, and of an item that is text alone without the keys that no such type declares.

    Text is an iterable too: beside them pydantic would take it for a list of parts. Ollama's client
    makes objects of images before its types see them.
    """
    if "images" in message:
        return {
            **message,
            "images": [{"value": image} for image in message["images"]],
        }
    if not isinstance(message.get("content"), str):
        return copy.deepcopy(message)
    return {
        key: value
        for key, value in message.items()
        if key not in ("id", "status")
    }


def exhaust(value):
    """Iterables are validated when they are read."""
    if isinstance(value, dict):
        value = value.values()
    elif isinstance(value, (str, bytes, pydantic.BaseModel)) or not hasattr(
        value, "__iter__"
    ):
        return
    for inner in value:
        exhaust(inner)


@every_format
def test_the_sdk_takes_every_legal_example_but_those_listed(format, sdk):
    wire = {
        name: m for name, m in LEGAL[format].items() if all(map(is_wire, m))
    }
    wire |= {
        rule: row[1][KEYS[format]] for rule, row in EXAMPLES[format].items()
    }
    refused = {
        name
        for name, given in wire.items()
        if not all(sdk(format, m) for m in given)
    }
    assert refused == WIDER.keys() & wire.keys()


@every_format
@pytest.mark.parametrize(
    "mutate", [None, *SHAPED], ids=lambda one: getattr(one, "__name__", "")
)
@given(turns=histories.few, data=st.data())
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
def test_the_sdk_takes_what_stays_legal_when_something_changes(
    format, mutate, turns, data, sdk
):
    messages = copy.deepcopy(histories.wire(format, turns))
    if mutate is not None:
        mutate(data.draw, messages)
    if not problems_of(format, messages):
        assert all(sdk(format, message) for message in messages)
