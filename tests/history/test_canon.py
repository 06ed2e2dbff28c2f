"""What a message is, apart from how it is written. The golden digests pin version 1."""

import pytest

from ullage.core.history import canon
from ullage.wires.anthropic.format import Anthropic
from ullage.wires.openai_chat.format import OpenAIChat

CHAT, CLAUDE = OpenAIChat(), Anthropic()


def digest(raw, format=CHAT):
    return canon.digest_of(format.parse(raw, "message")).hex()


def call(arguments, **more):
    body = {"name": "bash", "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_1", "type": "function", "function": body}],
        **more,
    }


SAID = {"role": "user", "content": "Why does the build fail? 猫"}
BLOCK = {"type": "text", "text": "Why does the build fail? 猫"}
USED = {
    "type": "tool_use",
    "id": "call_1",
    "name": "bash",
    "input": {"b": 1, "a": "x"},
}
GAVE = {"type": "tool_result", "tool_use_id": "call_1", "content": "disk full"}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}


@pytest.mark.parametrize(
    "format", [CHAT, CLAUDE], ids=lambda format: format.name
)
def test_a_string_equals_one_text_block_and_a_cache_marker_says_nothing(
    format,
):
    marked = BLOCK | {"cache_control": {"type": "ephemeral"}}
    for content in ([BLOCK], [marked], [BLOCK, {"type": "text", "text": ""}]):
        assert digest({"role": "user", "content": content}, format) == digest(
            SAID, format
        )


def test_nulls_and_the_order_and_spacing_of_arguments_say_nothing():
    plain = digest(call('{"a": "x", "b": 1}'))
    assert (
        digest(call('{"b":1,\n "a":"\\u0078"}', refusal=None, audio=None))
        == plain
    )
    assert digest(call('{"a": "x", "b": 1}', content="")) == plain


def test_reasoning_says_nothing():
    with_thought = {"role": "assistant", "content": [THOUGHT, BLOCK, USED]}
    without = {"role": "assistant", "content": [BLOCK, USED]}
    assert digest(with_thought, CLAUDE) == digest(without, CLAUDE)


@pytest.mark.parametrize(
    "other",
    [
        call('{"a": "x", "b": 2}'),
        call('{"a": "x"}'),
        call('{"a": "x", "b": 1'),
        call('{"a": "x", "b": 1}', content="So."),
        call('{"a": "x", "b": 1}')
        | {"role": "user", "tool_calls": None, "content": "x"},
    ],
)
def test_whatever_else_changes_changes_the_digest(other):
    assert digest(other) != digest(call('{"a": "x", "b": 1}'))


@pytest.mark.parametrize(
    "change",
    [{"content": "disk full."}, {"content": "disk full\n"}, {"tool_use_id": "call_2"},
     {"is_error": True}],
)  # fmt: skip
def test_a_changed_byte_of_a_result_changes_the_digest(change):
    result, other = (
        {"role": "user", "content": [GAVE | more]} for more in ({}, change)
    )
    assert digest(result, CLAUDE) != digest(other, CLAUDE)


def test_every_byte_of_a_text_counts_and_lone_surrogates_are_told_apart():
    texts = (
        "a",
        "b",
        "A",
        "a ",
        "é",
        "e\u0301",
        "\ud800",
        "\udc80",
        "\x00",
        "\ufffd",
    )
    assert len(
        {digest({"role": "user", "content": text}) for text in texts}
    ) == len(texts)


# Golden: these may change only together with canon.VERSION

GOLDEN = {
    "chat user": (CHAT, SAID),
    "chat call": (CHAT, call('{"b": 1, "a": "x"}')),
    "chat result": (
        CHAT,
        {"role": "tool", "tool_call_id": "call_1", "content": "disk full"},
    ),
    "claude user": (CLAUDE, SAID),
    "claude call": (
        CLAUDE,
        {"role": "assistant", "content": [THOUGHT, BLOCK, USED]},
    ),
    "claude result": (
        CLAUDE,
        {"role": "user", "content": [GAVE | {"is_error": True}]},
    ),
    "claude image": (
        CLAUDE,
        {
            "role": "user",
            "content": [
                {
                    "type": "image",
                    "source": {
                        "type": "base64",
                        "media_type": "image/png",
                        "data": "aGk=",
                    },
                }
            ],
        },
    ),
    "claude unknown block": (
        CLAUDE,
        {
            "role": "user",
            "content": [
                {"type": "hologram", "z": [1, None], "cache_control": {}}
            ],
        },
    ),
    "chat lone surrogate": (CHAT, {"role": "user", "content": "\ud800"}),
}
PINNED = {
    "chat user": "e3259864ce6b24c8caf765aebfea5c98",
    "chat call": "e25eaef9fb73628d1f61a58b085897d9",
    "chat result": "c2434c2f292452c63c61f29909a8e8e1",
    "claude user": "e3259864ce6b24c8caf765aebfea5c98",
    "claude call": "eca0694b5951ed4ee5f1b54fedfc8977",
    "claude result": "ba2458d4c2afeb9efa13b2235573e33c",
    "claude image": "224d34f810d63931c206770192883b6a",
    "claude unknown block": "73ed0d46c099de170e4ba8ac93c4c658",
    "chat lone surrogate": "9079f92fa8b058af5a66198b7cc9963a",
}


@pytest.mark.parametrize("name", GOLDEN)
def test_the_form_of_version_1_is_pinned(name):
    format, raw = GOLDEN[name]
    assert (canon.VERSION, digest(raw, format)) == (1, PINNED[name])


def test_roots_chain_and_refs_of_version_1_are_pinned():
    root = canon.root("openai-chat", "tenant")
    assert root.hex() == "4f0095641b928d22a7fd2a596eee46e7"
    assert (
        canon.extend(root, bytes(16)).hex()
        == "f2863e20242b41ce98539accedd4ac0f"
    )
    assert canon.ref_of("disk full") == "vfebqp7312kt9r5m"
    assert canon.ref_of("disk full", "block") == "9s14844fyj3aszzb"
    assert canon.ref_of("\ud800") == "87f8beavv8cv3xs3"


@pytest.mark.parametrize(
    "block",
    [
        {"type": "\ud800"},
        {
            "type": "image",
            "source": {
                "type": "base64",
                "media_type": "\ud800",
                "data": "\ud800",
            },
        },
        USED | {"id": "\ud800", "name": "\ud800"},
        USED | {"input": {"\ud800": 1}},
        GAVE | {"tool_use_id": "\ud800"},
    ],
)
def test_a_lone_surrogate_anywhere_has_a_digest(block):
    assert len(digest({"role": "user", "content": [block]}, CLAUDE)) == 32


def test_formats_and_tenants_have_chains_of_their_own():
    roots = {
        canon.root(f, t)
        for f in ("openai-chat", "anthropic")
        for t in ("", "a", "\ud800")
    }
    assert len(roots) == 6


def test_canonical_json_sorts_and_takes_what_json_takes():
    assert (
        canon.canonical_json({"b": [1, None], "a": "猫"})
        == '{"a":"猫","b":[1,null]}'
    )
    assert (
        canon.canonical_json({"b": "\ud800", "a": 1})
        == '{"a":1,"b":"\\ud800"}'
    )
    with pytest.raises(TypeError):
        canon.canonical_json({"a": object()})
