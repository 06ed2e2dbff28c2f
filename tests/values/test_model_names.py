"""One name of a model, whoever spells it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.core.tokens.catalog import lookup
from ullage.core.tokens.models import counter_for, family_of
from ullage.core.values.model_names import dated_name, plain_name
from ullage.wires import FORMATS, recognise
from ullage.wires.models import family_of as wire_family_of
from ullage.wires.models import is_gpt_6_2

SPELT = {
    "gpt-4.1": [
        "openai:gpt-4.1",
        "azure:gpt-4.1",
        "azure_openai:gpt-4.1",
        "openai/gpt-4.1",
    ],
    "gpt-5": [
        "openai-responses:gpt-5",
        "gateway/openai:gpt-5",
        "openrouter:openai/gpt-5",
    ],
    "gpt-4": ["gpt-4-0613", "azure/gpt-4-0314", "openai:gpt-4-0613"],
    "gemini-2.0-flash": [
        "gemini-2.0-flash-001",
        "vertex_ai/gemini-2.0-flash@001",
    ],
    "o3": ["openai:o3", "openai-chat:o3"],
    "claude-sonnet-4-5": [
        "anthropic:claude-sonnet-4-5",
        "anthropic:claude-sonnet-4.5",
        "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "bedrock_converse:anthropic.claude-sonnet-4-5-20250929-v1:0",
        "google-vertex:claude-sonnet-4-5@20250929",
        "openrouter/anthropic/claude-sonnet-4.5:thinking",
    ],
    "gemini-2.5-pro": [
        "google-gla:gemini-2.5-pro",
        "google-vertex:gemini-2.5-pro",
        "google_genai:gemini-2.5-pro",
        "vertexai:gemini-2.5-pro",
        "vertex_ai/gemini-2.5-pro",
        "models/gemini-2.5-pro",
    ],
}
EVERY = [(plain, spelt) for plain, names in SPELT.items() for spelt in names]


@pytest.mark.parametrize(("plain", "spelt"), EVERY)
def test_a_model_is_known_by_whatever_prefix(plain, spelt):
    assert plain_name(spelt) == plain
    ours, theirs = lookup(spelt), lookup(plain)
    assert (ours.known, ours.window_tokens, ours.prices) == (
        True,
        theirs.window_tokens,
        theirs.prices,
    )
    assert family_of(spelt) == family_of(plain)
    assert counter_for(spelt) == counter_for(plain)
    for wire in FORMATS.values():
        assert wire_family_of(wire.families, spelt) == wire_family_of(
            wire.families, plain
        )


@pytest.mark.parametrize(
    "name", ["openai:gpt-4.1", "azure:o3-mini", "anthropic:claude-opus-5"]
)
def test_a_prefixed_model_tells_the_format(name):
    wire = recognise({"messages": [{"role": "user", "content": "hi"}]}, name)
    assert wire.name == ("anthropic" if "claude" in name else "openai-chat")


def test_a_model_that_learned_from_another_is_its_own_makers():
    wire = recognise(
        {"messages": [{"role": "user", "content": "hi"}]},
        "qwen3-8b-claude-distill",
    )
    assert wire.name == "openai-chat"


def test_a_dated_name_keeps_what_tells_one_snapshot_from_another():
    assert (
        dated_name("openrouter/openai/GPT-3.5-turbo-0613")
        == "gpt-3.5-turbo-0613"
    )
    assert (
        dated_name("us.anthropic.claude-opus-4.5-20251101-v1:0")
        == "claude-opus-4-5-20251101-v1:0"
    )


@pytest.mark.parametrize(
    "name", ["gpt-4-32k", "text-embedding-004", "mistral-large-2411", "gpt-6"]
)
def test_what_is_no_revision_stays(name):
    assert plain_name(name) == name


def test_a_version_and_a_tag_are_not_taken_for_a_prefix():
    assert plain_name("qwen3:8b") == "qwen3:8b"
    assert plain_name("llama3.1:70b") == "llama3.1:70b"
    assert is_gpt_6_2("openai:gpt-6.2-astra")
    assert not is_gpt_6_2("openai:gpt-6.1-sol")


@pytest.mark.parametrize(("plain", "spelt"), EVERY)
def test_a_plain_name_is_in_small_letters_and_stays_as_it_is(plain, spelt):
    assert plain_name(f" {spelt.upper()} ") == plain == plain_name(plain)


@given(st.text(max_size=60))
def test_any_text_has_a_plain_name(name):
    assert len(plain_name(name)) <= len(name.lower())
