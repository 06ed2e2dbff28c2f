"""Every block, item and part type of the wires: known, kept, and written as it was.

The examples are those of `tests.wire`. That there is one for every type the vendors' own SDKs
know is asked of the SDKs.
"""

import json
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
from anthropic.types import beta
from google.genai import types as genai
from openai.types import chat, responses

from tests.wire import examples, found_in, history, in_bytes
from tests.wires.table import NAMES, PAGE, table
from ullage import Session, problems
from ullage.core.history import canon
from ullage.wires import FORMATS

ALL = [(format, example) for format in FORMATS for example in examples(format)]
each = pytest.mark.parametrize(
    ("format", "example"),
    ALL,
    ids=[f"{f}-{e.type}-{e.note or e.role}" for f, e in ALL],
)
LAST = {"anthropic": {"max_tokens": 500}}


def request(format, messages):
    return {
        "model": "a-model",
        FORMATS[format].key: messages,
        **LAST.get(format, {}),
    }


def session(format):
    return Session("claude-sonnet-4-5", format=format, recall=False)


@each
def test_it_has_its_meaning(format, example):
    found = list(found_in(format, example))
    assert {message.role for message, _ in found} >= {example.role}


@each
def test_it_is_written_as_it_was(format, example):
    wire = FORMATS[format]
    for raw in example.messages:
        before = json.dumps(raw)
        again = wire.edit(raw, wire.parse(raw, "example"), ())
        assert json.dumps(again) == before == json.dumps(raw)


@each
def test_as_the_sdks_object_it_is_the_same(format, example):
    """Same digest, and written as the vendor's client writes its own objects."""
    wire = FORMATS[format]
    for raw in example.messages:
        thing = as_object(format, raw)
        if thing is None:
            continue
        parsed = wire.parse(thing, "object")
        assert canon.digest_of(parsed) == canon.digest_of(
            wire.parse(raw, "dict")
        )
        assert sent(wire.edit(thing, parsed, ())) == sent(thing)


@pytest.mark.parametrize("format", FORMATS)
def test_all_of_them_are_one_history_that_goes_through_untouched(format):
    asked = request(format, history(format))
    assert problems(asked, format) == []
    view = session(format).fit(asked)
    key = FORMATS[format].key
    assert all(a is b for a, b in zip(view[key], asked[key], strict=True))
    assert json.dumps(view) == json.dumps(asked)


# ── as objects of the SDKs ───────────────────────────────────────────────────────────────


def as_object(format, raw):
    """The message as the SDK gives it, or None where it gives only dicts."""
    match format:
        case "anthropic" if raw["role"] == "assistant":
            return {
                **raw,
                "content": beta.BetaMessage.construct(
                    content=raw["content"]
                ).content,
            }
        case "openai-chat" if raw["role"] == "assistant" and not _in_parts(
            raw
        ):
            return chat.ChatCompletionMessage.construct(**raw)
        case "openai-responses" if (
            "type" in raw and raw.get("role", "assistant") == "assistant"
        ):
            listed = responses.ResponseItemList.construct(data=[raw]).data[0]
            return None if isinstance(listed, dict) else listed
        case "bedrock-converse":
            return in_bytes(raw)
        case "gemini":
            return genai.Content.model_validate(raw)
        case "ollama":  # its client passes over what it does not know
            ollama = pytest.importorskip(
                "ollama", reason="ollama is not installed"
            )
            images = [
                ollama.Image(value=image) for image in raw.get("images", ())
            ]
            made = ollama.Message(
                **{**raw, **({"images": images} if images else {})}
            )
            return made if sent(made) == raw else None
    return None


def _in_parts(raw):
    """Replies of Chat Completions hold text; parts are for requests only."""
    return isinstance(raw.get("content"), list)


def sent(thing):
    """As the vendor's client would write it: what nobody set is left out."""
    if isinstance(thing, genai.Content):
        return thing.model_dump(mode="json", by_alias=True, exclude_none=True)
    if isinstance(thing, dict):
        return {key: sent(value) for key, value in thing.items()}
    if isinstance(thing, list):
        return [sent(value) for value in thing]
    if hasattr(thing, "model_dump"):
        return thing.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return thing


# ── what the SDKs know ───────────────────────────────────────────────────────────────────


def types_in(union):
    """Every ``type`` that a union of the SDK's allows."""
    if hasattr(union, "model_fields"):
        return literals(union.model_fields["type"].annotation)
    if isinstance(union, type):
        return literals(get_type_hints(union).get("type"))
    return {kind for arg in get_args(union) if arg for kind in types_in(arg)}


def literals(annotation):
    """The strings in a Literal, also in an optional one."""
    if get_origin(annotation) is Literal:
        return set(get_args(annotation))
    return {text for arg in get_args(annotation) for text in literals(arg)}


def known(format, inside=False):
    return {
        example.type
        for example in examples(format)
        if inside in (example.inside, False)
    }


def test_every_block_that_anthropics_sdk_knows_has_an_example():
    assert types_in(beta.BetaContentBlockParam) - known("anthropic") == set()
    held = types_in(beta.beta_tool_result_block_param.Content)
    assert held - known("anthropic", inside=True) == set()


def test_every_item_that_openais_sdk_knows_has_an_example():
    items = types_in(responses.ResponseInputItemParam) - {"message"}
    assert items - known("openai-responses") == set()
    parts = types_in(responses.ResponseInputContentParam)
    assert parts - known("openai-responses") == set()


def test_every_block_that_boto3_knows_has_an_example():
    loader = pytest.importorskip(
        "botocore.loaders", reason="boto3 is not installed"
    ).Loader()
    shapes = loader.load_service_model("bedrock-runtime", "service-2")[
        "shapes"
    ]
    point = {"cachePoint"}  # it is no part of a message
    assert (
        shapes["ContentBlock"]["members"].keys() - known("bedrock-converse")
        == point
    )
    held = shapes["ToolResultContentBlock"]["members"].keys()
    assert held - known("bedrock-converse", inside=True) == set()


def test_every_part_that_googles_sdk_knows_has_an_example():
    aliases = {
        field.alias or name for name, field in genai.Part.model_fields.items()
    }
    beside = {
        name for name in aliases if name.endswith(("Metadata", "Processing"))
    }
    beside |= {
        "thought",
        "thoughtSignature",
        "mediaResolution",
        "audioTranscription",
    }
    assert aliases - beside - known("gemini") == set()


@pytest.mark.parametrize("format", FORMATS)
def test_the_page_says_what_each_type_is_taken_for(format):
    """Else `python -m tests.wires.table`."""
    assert f"### {NAMES[format]}\n\n{table(format)}\n" in PAGE.read_text(
        encoding="utf-8"
    )
