"""From each wire to each other: what is carried comes back, what is not is named."""

import copy
import json
from base64 import b64decode
from itertools import permutations

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from tests import histories
from tests.servers import Call, Reply
from tests.servers.loops import loop, request
from tests.servers.replies import MODELS
from tests.wire import PDF, PNG, WAV, examples, history
from ullage import ConfigError, FormatError, UnsupportedPart, problems
from ullage.core.history import canon
from ullage.wires import FORMATS, model_in
from ullage.wires.convert import convert

PAIRS = list(permutations(FORMATS, 2))
pairs = pytest.mark.parametrize(
    ("source", "target"), PAIRS, ids=[f"{a}-{b}" for a, b in PAIRS]
)
every = pytest.mark.parametrize("format", FORMATS)


def flowing(turns, most_items=2):
    """The turns with the user between any two replies, and no parts of nothing but spaces.

    Two replies with nothing between are one in Responses and Gemini, and the texts of a result one
    in Ollama.
    """
    spoken, calls = [], True
    for turn in turns:
        turn = turn if calls or turn.user else replace(turn, user="Go on.")
        shown = tuple(short(call, most_items) for call in turn.calls)
        spoken.append(replace(turn, calls=shown))
        calls = bool(turn.calls)
    return spoken


def short(call, most_items=2):
    """Length is nothing to a conversion."""
    output = call.output if len(call.output) < 1_000 else call.output[:200]
    items = min(call.items, most_items) if output.strip() else 0
    return replace(call, output=output, items=items)


def whole(format, turns, most_items=2, **more):
    """A request that may be sent: the user has the last word."""
    messages = histories.wire(format, flowing(turns, most_items), **more)
    if format != "gemini" or messages[-1]["role"] == "model":
        messages.append(histories.user(format, "And now?"))
    in_turn = format == "bedrock-converse"
    return histories.request(
        format, histories.in_turn(messages) if in_turn else messages
    )


def digests(format, request):
    wire = FORMATS[format]
    raws = wire.history(request)[len(wire.leading(request)) :]
    parsed = [wire.parse(raw, "message") for raw in raws]
    return [
        canon.digest_of(message)
        for message in parsed
        if not message.only_thought
    ]


@pairs
@settings(max_examples=15)
@given(turns=histories.histories)
def test_there_is_legal_and_back_again_is_the_same(source, target, turns):
    if "bedrock-converse" in (source, target):
        turns = said_in_turn(turns)
    asked = whole(source, turns, 1 if "ollama" in (source, target) else 2)
    before = copy.deepcopy(asked)
    there = convert(asked, target, format=source, model=MODELS[target])
    assert asked == before
    assert problems(there, target) == []
    back = convert(there, source, format=target, model=model_in(asked))
    assert problems(back, source) == []
    assert digests(source, back) == digests(source, asked)


def said_in_turn(turns):
    """Without what Converse has no form for: two messages of the user in a row."""
    return [replace(turns[0], user=None), *turns[1:]]


@pairs
@settings(max_examples=10)
@given(turns=histories.histories)
def test_ids_that_are_used_twice_or_missing_are_mended(source, target, turns):
    turns = said_in_turn(turns) if target == "bedrock-converse" else turns
    asked = whole(source, turns, reuse_ids=True)
    there = convert(asked, target, format=source, model=MODELS[target])
    assert problems(there, target) == []
    wire = FORMATS[target]
    parsed = [wire.parse(raw, "message") for raw in wire.history(there)]
    results = [result for message in parsed for result in message.results]
    assert len(results) == sum(len(turn.calls) for turn in turns)
    assert all(result.call_id for result in results)


@pytest.mark.parametrize(
    ("source", "target"),
    [pair for pair in PAIRS if pair != ("ollama", "openai-responses")],
)  # which has a place for all of it
def test_every_part_is_carried_described_or_named(source, target):
    """One of every type there is: a place and a remedy, or a legal request with a text."""
    asked = {"model": "a-model", FORMATS[source].key: history(source)}
    before = copy.deepcopy(asked)
    with pytest.raises(UnsupportedPart, match=FORMATS[source].key) as caught:
        convert(asked, target, format=source)
    assert caught.value.remedy
    there = convert(
        asked, target, format=source, model=MODELS[target], lossy="describe"
    )
    there |= {"max_tokens": 500} if target == "anthropic" else {}
    assert problems(there, target) == []
    assert "[ullage: " in json.dumps(there, default=str)
    assert asked == before


@pairs
def test_what_is_opaque_is_never_carried_in_silence(source, target):
    opaque = [
        example for example in examples(source) if example.meaning == "Opaque"
    ]
    assert opaque or source == "ollama"
    for example in opaque:
        with pytest.raises(UnsupportedPart):
            convert(example.messages, target, format=source)


@pytest.mark.parametrize("source", FORMATS)
def test_an_agents_history_of_sdk_objects_is_carried(serve, source):
    """Recorded with one vendor's SDK, sent with another's; no reasoning goes along."""
    steps = [
        Reply(
            "Two.",
            [Call("read_file", {"path": "é"}), Call("read_file", {"n": [1]})],
            "Secret.",
        ),
        Reply("Done."),
    ]
    messages = loop(
        serve(source, steps), None, lambda name, given: f"{name}: {given}"
    )
    go_on = histories.user(source, "Thanks.")
    for target in (name for name in FORMATS if name != source):
        there = convert(
            request(source, [*messages, go_on]), target, model=MODELS[target]
        )
        there |= {"max_tokens": 500} if target == "anthropic" else {}
        server = serve(target, ["Welcome."], strict=True)
        server.ask(server.client(), there)
        sent = json.dumps(server.requests[0].body, ensure_ascii=False)
        assert "Secret." not in sent
        wanted = ("Two.", "read_file: {'n': [1]}", "Thanks.", "Reads a file.")
        assert [text for text in wanted if text not in sent] == [], target


# ── part by part ─────────────────────────────────────────────────────────────────────────


def asks(format, *parts):
    if format == "ollama":
        return list(parts)  # they stand beside the content
    key = "parts" if format == "gemini" else "content"
    return [{"role": "user", key: list(parts)}]


IMAGE = {
    "anthropic": {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": PNG},
    },
    "openai-chat": {
        "type": "image_url",
        "image_url": {"url": f"data:image/png;base64,{PNG}"},
    },
    "openai-responses": {
        "type": "input_image",
        "image_url": f"data:image/png;base64,{PNG}",
        "detail": "auto",
    },
    "gemini": {"inlineData": {"mimeType": "image/png", "data": PNG}},
    "ollama": {"role": "user", "content": "", "images": [PNG]},
    "bedrock-converse": {
        "image": {"format": "png", "source": {"bytes": b64decode(PNG)}}
    },
}
PAGE = {
    "anthropic": {
        "type": "document",
        "source": {
            "type": "base64",
            "media_type": "application/pdf",
            "data": PDF,
        },
        "title": "a.pdf",
    },
    "openai-chat": {
        "type": "file",
        "file": {
            "filename": "a.pdf",
            "file_data": f"data:application/pdf;base64,{PDF}",
        },
    },
    "openai-responses": {
        "type": "input_file",
        "filename": "a.pdf",
        "file_data": f"data:application/pdf;base64,{PDF}",
    },
}
SOUND = {
    "openai-chat": {
        "type": "input_audio",
        "input_audio": {"data": WAV, "format": "wav"},
    },
    "openai-responses": {
        "type": "input_audio",
        "input_audio": {"data": WAV, "format": "wav"},
    },
    "gemini": {"inlineData": {"mimeType": "audio/wav", "data": WAV}},
    "bedrock-converse": {
        "audio": {"format": "wav", "source": {"bytes": b64decode(WAV)}}
    },
}
LINK = {
    "anthropic": {
        "type": "image",
        "source": {"type": "url", "url": "https://example.com/a.png"},
    },
    "openai-chat": {
        "type": "image_url",
        "image_url": {"url": "https://example.com/a.png"},
    },
    "openai-responses": {
        "type": "input_image",
        "image_url": "https://example.com/a.png",
        "detail": "auto",
    },
    "gemini": {
        "fileData": {
            "fileUri": "https://example.com/a.png",
            "mimeType": "image/png",
        },
    },
}
CARRIED = [
    (source, target, blocks)
    for blocks in (IMAGE, PAGE, SOUND, LINK)
    for source, target in permutations(blocks, 2)
]


@pytest.mark.parametrize(("source", "target", "blocks"), CARRIED)
def test_media_become_the_block_that_the_target_has_for_them(
    source, target, blocks
):
    there = convert(asks(source, blocks[source]), target, format=source)
    assert there == asks(target, blocks[target])


def test_sounds_have_no_place_at_anthropic():
    with pytest.raises(
        UnsupportedPart, match=r"contents\[0\]\.parts\[0\]: an audio"
    ):
        convert(asks("gemini", SOUND["gemini"]), "anthropic", format="gemini")


def failed(format, call_id="c1"):
    wire = FORMATS[format]
    call = {
        "anthropic": {
            "type": "tool_use",
            "id": call_id,
            "name": "run",
            "input": {"b": 1, "a": 2},
        },
        "gemini": {
            "functionCall": {
                "id": call_id,
                "name": "run",
                "args": {"b": 1, "a": 2},
            }
        },
    }[format]
    result = wire.result(wire.call(call), "no such file", is_error=True)
    key, model = (
        ("parts", "model") if format == "gemini" else ("content", "assistant")
    )
    return [{"role": model, key: [call]}, {"role": "user", key: [result]}]


@pytest.mark.parametrize("source", ["anthropic", "gemini"])
@pytest.mark.parametrize("target", ["openai-chat", "openai-responses"])
def test_an_error_is_told_in_words_where_there_is_no_flag(source, target):
    there = convert(failed(source), target, format=source)
    assert "[the tool failed]\\nno such file" in json.dumps(there[-1])
    back = convert(there, source, format=target)
    flag = (
        ("is_error", True)
        if source == "anthropic"
        else ("error", "no such file")
    )
    assert json.dumps(dict([flag]))[1:-1] in json.dumps(back[-1])
    assert "the tool failed" not in json.dumps(back)


def test_arguments_keep_the_order_of_their_keys():
    (call, _) = convert(failed("anthropic"), "openai-chat", format="anthropic")
    assert call["tool_calls"][0]["function"]["arguments"] == '{"b": 1, "a": 2}'


def test_media_in_a_result_stay_there_or_are_named():
    result = {
        "type": "tool_result",
        "tool_use_id": "c1",
        "content": [IMAGE["anthropic"]],
    }
    messages = [failed("anthropic")[0], {"role": "user", "content": [result]}]
    there = convert(messages, "openai-responses", format="anthropic")
    assert there[-1]["output"] == [IMAGE["openai-responses"]]
    there = convert(messages, "gemini", format="anthropic")
    assert there[-1]["parts"][0]["functionResponse"]["parts"] == [
        IMAGE["gemini"]
    ]
    where = r"messages\[1\]\.content\[0\]\.content\[0\]: an image in a tool's result"
    with pytest.raises(UnsupportedPart, match=where):
        convert(messages, "openai-chat", format="anthropic")
    there = convert(
        messages, "openai-chat", format="anthropic", lossy="describe"
    )
    assert there[-1]["content"].startswith(
        "[ullage: an image in a tool's result stood here"
    )


def test_a_call_of_gemini_that_nobody_made_says_so():
    """Else Gemini 3 refuses the step (G7): only the first of parallel calls carries it."""
    twice = [failed("anthropic")[0], failed("anthropic", "c2")[0]]
    calls = [
        {"role": "assistant", "content": [m["content"][0] for m in twice]}
    ]
    (_, content) = convert(calls, "gemini", format="anthropic")
    signed = [part.get("thoughtSignature") for part in content["parts"]]
    assert signed == ["skip_thought_signature_validator", None]


def test_free_text_for_a_tool_is_kept_between_openais_formats():
    custom = next(
        e for e in examples("openai-responses") if e.type == "custom_tool_call"
    )
    there = convert(custom.messages, "openai-chat", format="openai-responses")
    assert there[0]["tool_calls"][0]["custom"] == {
        "name": "python",
        "input": "print(1)",
    }
    assert (
        convert(there, "openai-responses", format="openai-chat")[1]
        == custom.messages[1]
    )
    with pytest.raises(UnsupportedPart, match="no JSON object"):
        convert(there, "gemini", format="openai-chat")
    told = convert(there, "anthropic", format="openai-chat", lossy="describe")
    assert told[1]["content"][0]["input"] == {"input": "print(1)"}


def test_a_call_that_may_be_answered_later_is_named():
    late = next(
        e for e in examples("openai-responses") if "asynchronous" in e.note
    )
    with pytest.raises(
        UnsupportedPart, match=r"input\[0\]: a call that may be answered later"
    ):
        convert(late.messages, "anthropic", format="openai-responses")
    told = str(
        convert(
            late.messages,
            "anthropic",
            format="openai-responses",
            lossy="describe",
        )
    )
    assert "a call that may be answered later" in told
    assert "the result of such a call" in told
    assert "tool_use" not in told
    assert "tool_result" not in told


# ── beside the messages ──────────────────────────────────────────────────────────────────


SYSTEM = {
    "anthropic": {
        "system": [
            {"type": "text", "text": "Be kind."},
            {"type": "text", "text": "Go."},
        ]
    },
    "openai-chat": [
        {"role": "system", "content": "Be kind."},
        {"role": "system", "content": "Go."},
    ],
    "openai-responses": [
        {"role": "developer", "content": "Be kind."},
        {"role": "developer", "content": "Go."},
    ],
    "gemini": {
        "system_instruction": {
            "parts": [{"text": "Be kind."}, {"text": "Go."}]
        }
    },
    "ollama": [
        {"role": "system", "content": "Be kind."},
        {"role": "system", "content": "Go."},
    ],
    "bedrock-converse": {"system": [{"text": "Be kind."}, {"text": "Go."}]},
}


def with_system(format):
    messages = [histories.user(format, "Hello.")]
    match SYSTEM[format]:
        case list(leading):
            return request(format, [*leading, *messages], ())
        case given if format == "gemini":
            asked = request(format, messages, ())
            return {**asked, "config": {**asked["config"], **given}}
        case given:
            return {**request(format, messages, ()), **given}


@pairs
def test_system_text_and_the_limit_stand_where_the_target_has_them(
    source, target
):
    there = convert(
        with_system(source), target, format=source, model=MODELS[target]
    )
    asked = FORMATS[source].head(with_system(source)).asked_output_tokens
    wanted = FORMATS[target].head(with_system(target))
    assert (
        FORMATS[target].head(there).texts
        == wanted.texts
        == ("Be kind.", "Go.")
    )
    assert FORMATS[target].head(there).asked_output_tokens == asked


@pairs
def test_tools_are_defined_as_the_target_has_it(source, target):
    there = convert(
        request(source, [histories.user(source, "Hello.")]),
        target,
        format=source,
    )
    back = convert(there, source, format=target)
    wire = FORMATS[target]
    assert [wire.tool_name(tool) for tool in wire.tools(there)] == [
        "read_file"
    ]
    assert "path" in json.dumps(wire.tools(there))
    again = [json.dumps(tool) for tool in FORMATS[source].tools(back)]
    assert all('"required": ["path"]' in tool for tool in again)


def test_a_tool_of_the_vendors_own_is_named():
    asked = request("anthropic", [histories.user("anthropic", "Hello.")])
    asked["tools"].append(
        {"type": "web_search_20250305", "name": "web_search"}
    )
    with pytest.raises(
        UnsupportedPart,
        match=r"tools\[1\]: a tool of type 'web_search_20250305'",
    ):
        convert(asked, "gemini", format="anthropic")
    there = convert(asked, "openai-chat", format="anthropic", lossy="describe")
    assert len(there["tools"]) == 1


def test_a_system_message_in_the_middle_needs_a_place_for_it():
    system = {"role": "system", "content": "It is late."}
    messages = [
        *asks("openai-chat", {"type": "text", "text": "Hello."}),
        system,
    ]
    assert convert(messages, "anthropic", format="openai-chat")[1] == {
        "role": "system",
        "content": [{"type": "text", "text": "It is late."}],
    }
    with pytest.raises(
        UnsupportedPart, match=r"messages\[1\]: a system message in the middle"
    ):
        convert(messages, "gemini", format="openai-chat")
    with pytest.raises(
        UnsupportedPart, match=r"messages\[0\]: a system message"
    ):
        convert(messages[1:], "anthropic", format="openai-chat")


@every
def test_what_has_the_format_already_is_given_back(format):
    asked = request(format, [histories.user(format, "Hello.")])
    assert convert(asked, format, format=format) is asked
    messages = asked[FORMATS[format].key]
    assert convert(messages, format, format=format) is messages


def test_what_cannot_be_told_is_refused():
    with pytest.raises(ConfigError, match="'cohere' is not known"):
        convert([], "cohere", format="gemini")
    with pytest.raises(FormatError, match="Give format="):
        convert([], "gemini")
