"""Nothing is lost in silence, and nothing comes out that the target's model refuses."""

import json

import pytest

from tests.wires.test_convert import IMAGE
from ullage import UnsupportedPart, convert, problems
from ullage.wires import FORMATS, ToolSpec

GO = {"role": "user", "content": "go"}
NEXT = {"role": "user", "content": "and now?"}
SPEC = ToolSpec("run", "Runs it.", {"type": "object"})


def chat(*messages, **more):
    return {"model": "gpt-4.1", "messages": list(messages), **more}


def responses(*items, **more):
    return {"model": "gpt-5.6", "input": list(items), **more}


def claude(*messages, **more):
    return {
        "model": "claude-opus-4-8",
        "max_tokens": 9,
        "messages": list(messages),
        **more,
    }


def gemini(*contents, **more):
    return {"model": "gemini-3-pro", "contents": list(contents), **more}


def parts(*given, role="user"):
    return {"role": role, "parts": list(given)}


ASK = parts({"text": "go"})


# ── what a provider holds ────────────────────────────────────────────────────────────────

HELD = {
    "previous_response_id": (
        "openai-responses",
        responses(GO, previous_response_id="resp_1"),
    ),
    "conversation": (
        "openai-responses",
        responses(GO, conversation={"id": "conv_1"}),
    ),
    "config.cachedContent": (
        "gemini",
        gemini(ASK, config={"cached_content": "cachedContents/1"}),
    ),
    "cachedContent": ("gemini", gemini(ASK, cachedContent="cachedContents/1")),
    "thread.previous_message_id": (
        "anthropic",
        claude(
            GO, thread={"type": "continue", "previous_message_id": "msg_1"}
        ),
    ),
}


@pytest.mark.parametrize("lossy", ["error", "describe"])
@pytest.mark.parametrize("place", HELD)
def test_a_history_that_the_provider_holds_is_refused(place, lossy):
    """Nobody here knows what to describe."""
    source, asked = HELD[place]
    with pytest.raises(
        UnsupportedPart, match="held by the provider"
    ) as caught:
        convert(asked, "openai-chat", format=source, lossy=lossy)
    assert caught.value.where == place


def test_a_thread_that_begins_here_holds_nothing_yet():
    assert convert(claude(GO, thread={"type": "create"}), "gemini")["contents"]


# ── what stands beside the messages ──────────────────────────────────────────────────────

BESIDE = {
    "prompt": ("openai-responses", responses(GO, prompt={"id": "pmpt_1"})),
    "mcp_servers": ("anthropic", claude(GO, mcp_servers=[{"type": "url", "name": "files"}])),
    "container": ("anthropic", claude(GO, container="container_1")),
    "web_search_options": ("openai-chat", chat(GO, web_search_options={"user_location": {}})),
    "messages[0].name": ("openai-chat", chat({"role": "system", "content": "x", "name": "n"}, GO)),
    "system[0]": ("anthropic", claude(GO, system=[{"type": "image"}])),
    "tools[0].eager": ("openai-chat", chat(GO, tools=[
        {**FORMATS["openai-chat"].tool(SPEC), "eager": True}])),
}  # fmt: skip


@pytest.mark.parametrize("place", BESIDE)
def test_what_stands_beside_the_messages_is_named(place):
    source, asked = BESIDE[place]
    with pytest.raises(UnsupportedPart) as caught:
        convert(asked, "gemini", format=source)
    assert caught.value.where == place
    assert convert(asked, "gemini", format=source, lossy="describe")[
        "contents"
    ] == [ASK]


def test_a_prompt_that_the_provider_holds_is_told_in_the_system_text():
    there = convert(BESIDE["prompt"][1], "anthropic", lossy="describe")
    assert there["system"].startswith(
        "[ullage: a prompt that the provider holds stood here"
    )


@pytest.mark.parametrize("target", ["anthropic", "gemini", "openai-responses"])
def test_functions_of_the_old_kind_are_tools(target):
    there = convert(
        chat(GO, functions=[{"name": "run", "parameters": {}}]), target
    )
    assert [
        FORMATS[target].tool_name(tool)
        for tool in FORMATS[target].tools(there)
    ] == ["run"]


def test_a_model_that_takes_no_tools_is_given_none():
    """GPT-6.2 has them in Responses alone (C11)."""
    asked = claude(GO, tools=[FORMATS["anthropic"].tool(SPEC)])
    with pytest.raises(UnsupportedPart, match=r"tools: .*'gpt-6\.2'"):
        convert(asked, "openai-chat", model="gpt-6.2")
    there = convert(asked, "openai-chat", model="gpt-6.2", lossy="describe")
    assert "tools" not in there
    assert "tools" in convert(asked, "openai-responses", model="gpt-6.2")


# ── what stands on a part ────────────────────────────────────────────────────────────────


def said(phase, text="Let me look."):
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {
        "type": "message",
        "role": "assistant",
        "content": content,
        "phase": phase,
    }


CALL = {
    "type": "function_call",
    "call_id": "c1",
    "name": "run",
    "arguments": "{}",
}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "ok"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": []}


def test_a_phase_is_carried_where_its_place_tells_it():
    """A comment in front of a call is one anywhere, and the last word is the answer."""
    items = [
        GO,
        said("commentary"),
        THOUGHT,
        CALL,
        OUTPUT,
        said("final_answer", "Done."),
        NEXT,
    ]
    there = convert(items, "anthropic", format="openai-responses")
    assert [message["role"] for message in there] == [
        "user",
        "assistant",
    ] * 2 + ["user"]


@pytest.mark.parametrize("item", [said("commentary"), said("aside")])
def test_a_phase_is_named_where_nothing_tells_it(item):
    items = [GO, item, said("final_answer", "Done."), NEXT]
    with pytest.raises(UnsupportedPart, match=r"input\[1\]\.phase"):
        convert(items, "anthropic", format="openai-responses")


PNG = IMAGE["gemini"]["inlineData"]


@pytest.mark.parametrize("spelling", ["displayName", "display_name"])
def test_the_name_of_a_document_goes_along_and_that_of_an_image_is_named(
    spelling,
):
    page = {
        "mimeType": "application/pdf",
        "data": PNG["data"],
        spelling: "a.pdf",
    }
    there = convert(
        [parts({"inlineData": page})], "anthropic", format="gemini"
    )
    assert there[0]["content"][0]["title"] == "a.pdf"
    image = parts({"inlineData": {**PNG, spelling: "a.png"}})
    with pytest.raises(UnsupportedPart, match="the name of an image"):
        convert([image], "anthropic", format="gemini")


def test_the_name_of_a_document_by_url_is_named_where_it_has_no_place():
    source = {"type": "url", "url": "https://example.com/a.pdf"}
    messages = [{"role": "user", "content": [
        {"type": "document", "source": source, "title": "The plan"}]}]  # fmt: skip
    with pytest.raises(UnsupportedPart, match="the name of a document"):
        convert(messages, "openai-responses", format="anthropic")


def test_a_field_within_a_field_is_named():
    url = IMAGE["openai-chat"]["image_url"]
    block = {"type": "image_url", "image_url": {**url, "crop": "left"}}
    with pytest.raises(UnsupportedPart) as caught:
        convert(
            [{"role": "user", "content": [block]}],
            "gemini",
            format="openai-chat",
        )
    assert caught.value.where == "messages[0].content[0].image_url.crop"


def test_a_result_by_another_name_than_its_call_is_named():
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "run", "arguments": "{}"},
    }
    asks = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {
        "role": "tool",
        "tool_call_id": "c1",
        "content": "ok",
        "name": "run",
    }
    assert convert([GO, asks, result], "anthropic", format="openai-chat")
    with pytest.raises(UnsupportedPart, match=r"messages\[2\]\.name"):
        convert(
            [GO, asks, {**result, "name": "walk"}],
            "anthropic",
            format="openai-chat",
        )


# ── what the target's model refuses ──────────────────────────────────────────────────────


def asked_of(*names):
    """A call of each tool, one step after the other, and its definition."""
    contents = [ASK]
    for name in names:
        contents.append(
            parts({"functionCall": {"id": name, "name": name}}, role="model")
        )
        body = {"id": name, "name": name, "response": {"output": "ok"}}
        contents.append(parts({"functionResponse": body}))
    declared = [{"name": name, "description": ""} for name in names]
    return gemini(
        *contents, config={"tools": [{"function_declarations": declared}]}
    )


NAMES = ("ns.run", "ns_run", "ns:run", "n" * 128, "run")


@pytest.mark.parametrize(
    "target", ["anthropic", "openai-chat", "openai-responses"]
)
def test_a_name_that_the_target_does_not_take_is_named(target):
    with pytest.raises(
        UnsupportedPart, match=r"tools\[0\]\.name: a tool's name"
    ):
        convert(asked_of("ns.run"), target, format="gemini")
    with pytest.raises(
        UnsupportedPart, match=r"contents\[1\]\.parts\[0\]: a tool's name"
    ):
        convert(asked_of("ns.run")["contents"], target, format="gemini")


@pytest.mark.parametrize(
    "target", ["anthropic", "openai-chat", "openai-responses"]
)
def test_described_each_tool_has_one_legal_name_of_its_own(target):
    there = convert(
        asked_of(*NAMES), target, format="gemini", lossy="describe"
    )
    assert problems(there, target) == []
    wire = FORMATS[target]
    defined = [wire.tool_name(tool) for tool in wire.tools(there)]
    parsed = [wire.parse(raw, "message") for raw in wire.history(there)]
    called = [call.name for message in parsed for call in message.calls]
    assert called == defined
    long = "n" * 128 if target == "anthropic" else "n" * 64
    assert defined == ["ns_run_2", "ns_run", "ns_run_3", long, "run"]


def test_a_name_that_begins_with_a_digit_is_none_of_geminis():
    call = {"type": "tool_use", "id": "t1", "name": "1st", "input": {}}
    gave = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}
    steps = [
        GO,
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [gave]},
    ]
    there = convert(steps, "gemini", format="anthropic", lossy="describe")
    assert there[1]["parts"][0]["functionCall"]["name"] == "_1st"
    assert there[2]["parts"][0]["functionResponse"]["name"] == "_1st"


SYSTEM = [
    GO,
    {"role": "system", "content": "Be brief."},
    {"role": "assistant", "content": "Yes."},
]


@pytest.mark.parametrize(
    "model", ["claude-sonnet-4-5", "claude-opus-4-6", "claude-sonnet-5"]
)
def test_a_system_message_in_the_middle_is_named_where_the_model_takes_none(
    model,
):
    with pytest.raises(
        UnsupportedPart, match=r"messages\[1\]: a system message in the middle"
    ):
        convert(chat(*SYSTEM, NEXT), "anthropic", model=model)
    there = convert(
        chat(*SYSTEM, NEXT), "anthropic", model=model, lossy="describe"
    )
    assert [message["role"] for message in there["messages"]] == [
        *("user", "user", "assistant", "user")
    ]
    assert "Be brief." in json.dumps(there)


@pytest.mark.parametrize(
    "model", ["claude-opus-4-8", "claude-sonnet-5-5", "claude-fable-5", None]
)
def test_and_carried_where_it_takes_them(model):
    there = convert(chat(*SYSTEM, NEXT), "anthropic", model=model)
    assert there["messages"][1]["role"] == "system"


def gave(*content):
    call = {"type": "tool_use", "id": "t1", "name": "run", "input": {}}
    result = {
        "type": "tool_result",
        "tool_use_id": "t1",
        "content": list(content),
    }
    return claude(
        GO,
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    )


def text(said):
    return {"type": "text", "text": said}


def test_a_result_has_no_parts_before_gemini_3():
    """Texts are one text there, and media are named."""
    there = convert(
        gave(text("one"), text("two")), "gemini", model="gemini-2.5-pro"
    )
    (part,) = there["contents"][-1]["parts"]
    assert part["functionResponse"]["response"] == {"output": "one\ntwo"}
    assert "parts" not in part["functionResponse"]
    shown = gave(text("see"), IMAGE["anthropic"])
    with pytest.raises(
        UnsupportedPart, match=r"content\[1\]: an image in a tool's result"
    ):
        convert(shown, "gemini", model="gemini-2.5-pro")
    told = convert(shown, "gemini", model="gemini-2.5-pro", lossy="describe")
    body = told["contents"][-1]["parts"][0]["functionResponse"]
    assert body["response"]["output"].startswith("see\n[ullage: an image")
    assert "parts" not in body
    there = convert(shown, "gemini", model="gemini-3-pro")
    assert there["contents"][-1]["parts"][0]["functionResponse"]["parts"] == [
        IMAGE["gemini"]
    ]


def test_calls_for_gemini_behind_the_openai_wire_say_that_nobody_signed_them():
    """C12, as in Gemini's own format (G10)."""
    there = convert(gave(text("ok")), "openai-chat", model="gemini-3-pro")
    assert problems(there, "openai-chat") == []
    there = convert(gave(text("ok")), "openai-chat", model="gpt-4.1")
    assert "extra_content" not in there["messages"][1]["tool_calls"][0]


# ── what is empty ────────────────────────────────────────────────────────────────────────

EMPTY = "[ullage: this message was empty]"
REPLY = {"role": "assistant", "content": "Hello."}


@pytest.mark.parametrize("target", ["anthropic", "gemini"])
@pytest.mark.parametrize("empty", ["", [text("")]])
def test_an_empty_message_says_that_it_was_empty(target, empty):
    silence = {"role": "user", "content": empty}
    messages = [silence, REPLY, silence]
    there = convert(chat(*messages), target)
    assert problems(there, target) == []
    assert json.dumps(there).count(EMPTY) == 2
    assert "what stood before" not in json.dumps(there)
    back = convert(there, "openai-chat", format=target)
    assert [message["content"] for message in back["messages"]] == [
        "",
        "Hello.",
        "",
    ]


def test_between_openais_formats_it_stays_empty():
    messages = [{"role": "user", "content": ""}]
    assert (
        convert(chat(*messages), "openai-responses", format="openai-chat")[
            "input"
        ]
        == messages
    )
    assert convert(responses(*messages), "openai-chat")["messages"] == messages


@pytest.mark.parametrize("target", ["anthropic", "gemini"])
@pytest.mark.parametrize(
    "begin", [[REPLY, NEXT], [{"role": "system", "content": "Be kind."}]]
)
def test_where_no_user_speaks_first_a_line_says_so(target, begin):
    there = convert(chat(*begin), target, format="openai-chat")
    assert problems(there, target) == []
    assert "[ullage: no message of the user stood here]" in json.dumps(there)


def test_a_part_that_stands_alone_is_a_message():
    there = convert(
        {"model": "gemini-3-pro", "contents": {"text": "go"}}, "openai-chat"
    )
    assert there["messages"] == [GO]


def test_the_texts_of_a_document_go_along_and_the_rest_of_it_is_named():
    source = {
        "type": "text",
        "media_type": "text/plain",
        "data": "All is well.",
    }
    found = {"type": "search_result", "source": "s", "title": "t", "content": [
        {"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]}  # fmt: skip
    document = {"type": "document", "source": source, "title": "The plan"}
    messages = [{"role": "user", "content": [document, found]}]
    with pytest.raises(
        UnsupportedPart, match="stands beside the text of a 'document'"
    ):
        convert(messages, format="anthropic", to="openai-chat")
    (said,) = convert(
        messages, format="anthropic", to="openai-chat", lossy="describe"
    )
    written = json.dumps(said)
    places = [
        written.index(text)
        for text in ("All is well.", "'document'", "One.", "Two.")
    ]
    assert places == sorted(places)
