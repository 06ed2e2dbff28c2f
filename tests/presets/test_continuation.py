"""`tool-result-continuation.md`, in its own order, with its transcript of 24,591 characters."""

import asyncio
import json
import re
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from examples.meeting_server import transcript
from lab import reading
from tests import histories
from tests.servers import Call, Reply
from tests.servers.loops import loop
from ullage import AsyncSession, ConfigError, Limits, Session, documents
from ullage.core.values.toolset import OURS
from ullage.documents.presets.continuation import (
    ContinuationSettings,
    continuation,
    truncate_tool_result,
)
from ullage.doors.loop import UNCOUNTED_TOOLS, run_turn
from ullage.policy.stages.prune import prune
from ullage.policy.stages.shapes import head_chars
from ullage.policy.stages.truncate import truncate
from ullage.wires import FORMATS

FORMAT_NAMES = sorted(FORMATS)
TRANSCRIPT = transcript()
FIRST = (
    "[truncated — showing 4000/24591 chars. "
    'Call get_continuation with tool_call_id="call_abc123" to read more]'
)
SECOND = (
    "[truncated — showing 4000-8000/24591 chars. "
    'Call get_continuation with tool_call_id="call_abc123" and offset=8000 to read more]'
)
MARKER = re.compile(
    r"\n(?:\[ref=(?P<ref>\w+), [\d,]+ characters in all\]\n)?"
    r"\[truncated — showing (?P<shown>[-\d]+)/(?P<total>\d+) chars\. Call (?P<tool>\w+) with "
    r'tool_call_id="(?P<id>[^"]+)"(?: and offset=(?P<offset>\d+))? to read more\]\Z'
)
"""What a model sees at the end of a page, and all that it goes by."""


# ── conversations ────────────────────────────────────────────────────────────────────────


def conversation(result, id="call_abc123"):
    """A question, a call and its result, on OpenAI Chat Completions."""
    function = {
        "name": "transcribe_audio",
        "arguments": '{"path": "meeting.wav"}',
    }
    return [
        {"role": "user", "content": "Summarise the meeting."},
        {
            "role": "assistant",
            "tool_calls": [
                {"id": id, "type": "function", "function": function}
            ],
        },
        {"role": "tool", "tool_call_id": id, "content": result},
    ]


def new_session(policy="continuation", kind=Session, **more):
    more = {
        "format": "openai-chat",
        "recall": True,
        "limits": Limits(window_tokens=200_000),
        **more,
    }
    return kind("gpt-4.1", policy=policy, **more)


def shown(result, policy="continuation", **more):
    """What a model is shown of a result, and the session."""
    session = new_session(policy, **more)
    view = session.fit({"model": "gpt-4.1", "messages": conversation(result)})
    return view["messages"][2]["content"], session


def asked(session, *, name="get_continuation", **arguments):
    return reading.ask(session, name, arguments)


def call_that_reads_on(text):
    """The call a notice names, as a model makes it; None if the text ends without one."""
    found = MARKER.search(text)
    if found is None:
        return None
    offset = {"offset": int(found["offset"])} if found["offset"] else {}
    return Call(found["tool"], {"tool_call_id": found["id"], **offset})


def texts_of(body, format):
    """The results of a request in order, as the model sees them."""
    messages = body[FORMATS[format].key]
    return [
        text
        for message in messages
        for _, texts in reading.results(message)
        for text in texts
    ]


def summariser(format, tool="read_file"):
    """A model that calls a tool, reads on as long as it is told to, and then answers."""

    def reply(captured):
        seen = texts_of(captured.body, format)
        if not seen:
            return Reply("Let me see.", [Call(tool, {"path": "meeting.wav"})])
        call = call_that_reads_on(seen[-1])
        return Reply("", [call]) if call else "Here is the summary."

    return reply


def rebuilt(pages):
    return "".join(MARKER.sub("", page) for page in pages)


# ── Solution ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.says(
    "tool-result-continuation",
    "Solution",
    "When any tool result is truncated, the full result is cached and a synthetic "
    "`get_continuation` tool lets the agent retrieve subsequent chunks on demand.",
    lives="ullage.documents.presets.continuation",
)
@pytest.mark.says(
    "tool-result-continuation",
    "Testing (in test_agent.py)",
    "Integration: mock a tool returning >4000 chars, verify full result recoverable across chunks",
)
@pytest.mark.parametrize("format", FORMAT_NAMES)
def test_a_model_reads_a_long_result_to_its_end_on_every_wire(serve, format):
    """Through each vendor's SDK, by nothing but what the notices say, byte for byte."""
    server = serve(format, summariser(format), strict=True)
    session = Session(histories.MODEL[format], policy="continuation")
    loop(server, session, lambda name, arguments: TRANSCRIPT)
    pages = texts_of(server.requests[-1].body, format)
    assert [len(MARKER.sub("", page)) for page in pages] == [4_000] * 6 + [591]
    assert rebuilt(pages) == TRANSCRIPT
    assert len(server.requests) == 8


# ── 1. Enhanced truncation marker ────────────────────────────────────────────────────────


@pytest.mark.says(
    "tool-result-continuation",
    "1. Enhanced truncation marker",
    "`truncate_tool_result` gains a `tool_call_id` parameter.",
    lives="ullage.documents.presets.continuation.truncate_tool_result",
)
@pytest.mark.says(
    "tool-result-continuation",
    "1. Enhanced truncation marker",
    "Truncated results end with:",
    lives="ullage.policy.stages.shapes.head_chars",
)
@pytest.mark.says(
    "tool-result-continuation",
    "1. Enhanced truncation marker",
    '[truncated — showing 4000/24591 chars. Call get_continuation with tool_call_id="call_abc123" '
    "to read more]",
    lives="ullage.documents.presets.continuation",
    see="ullage fit request.json --policy continuation",
)
@pytest.mark.says(
    "tool-result-continuation",
    "Testing (in test_agent.py)",
    "`truncate_tool_result` with new marker format (tool_call_id embedded, char counts)",
)
def test_the_marker_is_the_documents_to_the_character():
    text, session = shown(TRANSCRIPT)
    ref = session.events[-1].ref
    assert (
        text
        == f"{TRANSCRIPT[:4_000]}\n[ref={ref}, 24,591 characters in all]\n{FIRST}"
    )
    assert truncate_tool_result(TRANSCRIPT, "call_abc123") == text


@given(
    st.text("abc \n", max_size=200),
    st.integers(1, 200),
    st.from_regex(r"\A[\w-]{1,40}\Z"),
)
def test_a_result_ends_in_its_own_marker_or_stays_as_it_is(
    seed, times, call_id
):
    result = seed * times
    text = truncate_tool_result(result, call_id)
    if text == result:
        assert len(result) <= 4_000 + 300
    else:
        found = MARKER.search(text)
        assert (found["shown"], found["total"]) == ("4000", str(len(result)))
        assert (found["id"], found["offset"]) == (call_id, None)
        assert text[: found.start()] == result[:4_000]
        assert len(text) < len(result)


@pytest.mark.parametrize("length", [0, 1, 3_999, 4_000])
def test_a_result_that_fits_is_the_callers_own_message(length):
    messages = conversation("x" * length)
    view = new_session().fit({"model": "gpt-4.1", "messages": messages})
    assert all(a is b for a, b in zip(view["messages"], messages, strict=True))


def test_a_result_just_over_stays_whole():
    """Deviation: with its marker it would be longer than it is."""
    assert (
        shown("x" * 4_001)[0]
        == truncate_tool_result("x" * 4_001, "c")
        == "x" * 4_001
    )
    assert len(shown("x" * 4_400)[0]) < 4_400


@pytest.mark.parametrize("format", FORMAT_NAMES)
def test_the_marker_names_the_id_that_the_wire_has(format):
    calls = tuple(
        histories.Call("read", f"{n}.py", f"{n}{TRANSCRIPT}") for n in range(2)
    )
    messages = histories.wire(format, [histories.Turn(calls=calls)])
    session = new_session(format=format)
    view = session.fit(histories.request(format, messages))
    found = [MARKER.search(text) for text in texts_of(view, format)]
    assert [marker["id"] for marker in found] == ["call_0_0", "call_0_1"]
    for number, marker in enumerate(found):
        page = asked(session, tool_call_id=marker["id"])
        assert page.startswith(f"{number}{TRANSCRIPT}"[4_000:8_000])


def test_calls_of_gemini_without_ids_are_named_by_tool_and_number():
    """And told apart by the ref, for the same name comes back in the next turn."""
    turns = [
        histories.Turn(
            calls=(histories.Call("read", "a.py", f"{n}{TRANSCRIPT}"),)
        )
        for n in (1, 2)
    ]
    messages = histories.wire("gemini", turns, reuse_ids=True)
    session = new_session(format="gemini")
    view = session.fit(histories.request("gemini", messages))
    found = [MARKER.search(text) for text in texts_of(view, "gemini")]
    assert [marker["id"] for marker in found] == ["read#1", "read#1"]
    assert asked(session, tool_call_id="read#1").startswith(
        f"2{TRANSCRIPT}"[4_000:8_000]
    )
    for number, marker in enumerate(found, 1):
        page = asked(session, tool_call_id=marker["ref"])
        assert page.startswith(f"{number}{TRANSCRIPT}"[4_000:8_000])


def test_of_a_repeated_id_the_newest_is_meant_as_in_a_dict_and_the_ref_names_each():
    messages = [*conversation(TRANSCRIPT), *conversation(TRANSCRIPT[::-1])[1:]]
    session = new_session()
    view = session.fit({"model": "gpt-4.1", "messages": messages})
    first, second = (
        MARKER.search(text) for text in texts_of(view, "openai-chat")
    )
    assert asked(session, tool_call_id="call_abc123").startswith(
        TRANSCRIPT[::-1][4_000:8_000]
    )
    assert asked(session, tool_call_id=first["ref"]).startswith(
        TRANSCRIPT[4_000:8_000]
    )
    assert asked(session, tool_call_id=second["ref"]).startswith(
        TRANSCRIPT[::-1][4_000:8_000]
    )


def test_the_texts_of_a_list_are_each_cut_and_each_named():
    """The id opens the first; for every other the marker names its ref."""
    texts = [f"{n}{TRANSCRIPT}" for n in range(2)]
    messages = conversation([{"type": "text", "text": text} for text in texts])
    session = new_session()
    view = session.fit({"model": "gpt-4.1", "messages": messages})
    found = [MARKER.search(text) for text in texts_of(view, "openai-chat")]
    assert found[0]["id"] == "call_abc123"
    assert found[1]["id"] == found[1]["ref"]
    for text, marker in zip(texts, found, strict=True):
        assert asked(session, tool_call_id=marker["id"]).startswith(
            text[4_000:8_000]
        )


def test_without_the_tool_the_marker_names_none():
    text, session = shown(TRANSCRIPT, recall=False)
    assert text.endswith(
        "characters in all]\n[truncated — showing 4000/24591 chars]"
    )
    assert not session.owns(
        {"type": "function", "function": {"name": "get_continuation"}}
    )


def test_who_joins_a_history_under_way_gets_the_tool_if_he_asks_for_it():
    """Deviation: another list of tools would void what is cached and bound."""
    text, session = shown(TRANSCRIPT, recall="auto")
    assert text.endswith("\n[truncated — showing 4000/24591 chars]")
    assert "no recall tools are offered" in session.events[0].why
    text, _ = shown(TRANSCRIPT, recall=True)
    assert text.endswith(FIRST)


def test_a_tool_of_the_callers_of_that_name_stays_his_and_ours_is_renamed():
    theirs = {
        "type": "function",
        "function": {"name": "get_continuation", "parameters": {}},
    }
    session = new_session()
    request = {
        "model": "gpt-4.1",
        "messages": conversation(TRANSCRIPT),
        "tools": [theirs],
    }
    view = session.fit(request)
    assert [tool["function"]["name"] for tool in view["tools"]] == [
        "get_continuation", "ullage_get_continuation"
    ]  # fmt: skip
    call = call_that_reads_on(view["messages"][2]["content"])
    page = asked(session, name=call.name, **call.arguments)
    assert page.startswith(TRANSCRIPT[4_000:8_000])
    assert call_that_reads_on(page).name == "ullage_get_continuation"


def test_no_character_is_cut_in_half_and_none_is_lost():
    """Deviation: fewer than 4,000 are shown then, and a call without an offset reads on there."""
    result = "x" * 3_999 + "e\u0301" + "y" * 9_000
    text, session = shown(result)
    assert MARKER.search(text)["shown"] == "3999"
    pages = [text]
    while call := call_that_reads_on(pages[-1]):
        pages.append(asked(session, **call.arguments))
    assert rebuilt(pages) == result


# ── 2. Result cache ──────────────────────────────────────────────────────────────────────


@pytest.mark.says(
    "tool-result-continuation",
    "2. Result cache",
    "truncated_results: dict[str, str] = {}  # tool_call_id -> full result",
    lives="ullage.session.recall.history.find_in_history",
)
@pytest.mark.says(
    "tool-result-continuation",
    "2. Result cache",
    "Stored when truncation occurs.",
    lives="ullage.policy.stages.truncate",
)
def test_a_result_is_kept_whole_when_it_is_cut_and_not_before():
    text, session = shown(TRANSCRIPT)
    cut = [event for event in session.events if event.kind == "truncated"]
    assert [(event.where, event.why) for event in cut] == [
        ("message 3, transcribe_audio result", "24,591 characters, over 4,000")
    ]
    assert session.store.get("", cut[0].ref).text == TRANSCRIPT
    assert MARKER.search(text)["ref"] == cut[0].ref
    _, session = shown("short")
    assert session.store.refs("") == ()


@pytest.mark.says(
    "tool-result-continuation",
    "2. Result cache",
    "A `dict[str, str]` scoped to each `agent_turn` invocation:",
    lives="ullage.session.session.Session",
)
def test_an_id_opens_what_its_own_conversation_holds_and_nothing_else():
    store = new_session().store
    one = new_session(store=store, tenant="one")
    one.fit({"model": "gpt-4.1", "messages": conversation(TRANSCRIPT)})
    other = new_session(store=store, tenant="other")
    other.fit(
        {"model": "gpt-4.1", "messages": conversation("short", id="call_2")}
    )
    assert "error" in json.loads(asked(other, tool_call_id="call_abc123"))
    assert "error" in json.loads(asked(other, tool_call_id=one.events[-1].ref))


def test_what_was_cut_in_one_turn_opens_in_the_next_and_in_another_process(
    tmp_path,
):
    """Deviation: the document frees it when the turn ends."""
    file = tmp_path / "kept.sqlite"
    later = [
        *conversation(TRANSCRIPT),
        {"role": "assistant", "content": "They meet again in March."},
        {"role": "user", "content": "And who writes the notice?"},
    ]
    with new_session(store=file) as session:
        session.fit({"model": "gpt-4.1", "messages": conversation(TRANSCRIPT)})
        view = session.fit({"model": "gpt-4.1", "messages": later})
        assert asked(session, tool_call_id="call_abc123").startswith(
            TRANSCRIPT[4_000:8_000]
        )
    with new_session(store=file) as session:
        assert session.fit({"model": "gpt-4.1", "messages": later}) == view
        assert asked(session, tool_call_id="call_abc123").startswith(
            TRANSCRIPT[4_000:8_000]
        )
        ref = MARKER.search(view["messages"][2]["content"])["ref"]
    with new_session(store=file) as session:
        session.fit({"model": "gpt-4.1", "messages": later[:1]})
        assert asked(session, tool_call_id=ref).startswith(
            TRANSCRIPT[4_000:8_000]
        )


# ── 3. Synthetic get_continuation tool ───────────────────────────────────────────────────

TOOL = json.loads("""
{
    "type": "function",
    "function": {
        "name": "get_continuation",
        "description": "Retrieve the next chunk of a truncated tool result. Use when a previous tool result shows [truncated].",
        "parameters": {
            "type": "object",
            "properties": {
                "tool_call_id": {
                    "type": "string",
                    "description": "The tool_call_id from the truncation message"
                },
                "offset": {
                    "type": "integer",
                    "description": "Character offset to read from (default: 4000)"
                }
            },
            "required": ["tool_call_id"]
        }
    }
}
""")  # noqa: E501


@pytest.mark.says(
    "tool-result-continuation",
    "3. Synthetic `get_continuation` tool",
    """
    Injected into the tools list at the start of `agent_turn`:
    {
        "type": "function",
        "function": {
            "name": "get_continuation",
            "description": "Retrieve the next chunk of a truncated tool result. Use when a previous tool result shows [truncated].",
            "parameters": {
                "type": "object",
                "properties": {
                    "tool_call_id": {
                        "type": "string",
                        "description": "The tool_call_id from the truncation message"
                    },
                    "offset": {
                        "type": "integer",
                        "description": "Character offset to read from (default: 4000)"
                    }
                },
                "required": ["tool_call_id"]
            }
        }
    }
    """,  # noqa: E501
    lives="ullage.documents.presets.continuation",
)
@pytest.mark.says(
    "tool-result-continuation",
    "What doesn't change",
    "All existing tool implementations — unchanged",
    lives="ullage.doors.loop.tools",
)
def test_the_tool_is_in_the_first_request_after_the_callers_own():
    """From the start, so that the head of the prompt is the same in every request."""
    tools = [{"type": "function", "function": {"name": "bash"}}]
    request = {
        "model": "gpt-4.1",
        "messages": conversation("short")[:1],
        "tools": tools,
    }
    session = new_session(recall="auto")
    view = session.fit(request)
    assert view["tools"] == [*tools, TOOL]
    assert json.dumps(view["tools"][-1]) == json.dumps(TOOL), "in this order"
    again = session.fit(
        {
            **request,
            "messages": conversation(TRANSCRIPT),
            "tools": view["tools"],
        }
    )
    assert again["tools"] == view["tools"]


@pytest.mark.parametrize("format", FORMAT_NAMES)
def test_on_every_wire_it_is_the_same_tool(format):
    messages = [histories.user(format, "Summarise.")]
    view = new_session(format=format).fit(histories.request(format, messages))
    tool = FORMATS[format].tools(view)[-1]
    body = tool.get("function") or tool.get("toolSpec") or tool
    schema = (
        body.get("parameters")
        or body.get("input_schema")
        or body["inputSchema"]["json"]
    )
    theirs = TOOL["function"]
    assert (body["name"], body["description"]) == (
        theirs["name"],
        theirs["description"],
    )
    assert schema == theirs["parameters"]


# ── 4. Local handler in tool call loop ───────────────────────────────────────────────────


@pytest.mark.says(
    "tool-result-continuation",
    "4. Local handler in tool call loop",
    "Look up `tool_call_id` in `truncated_results`",
    lives="ullage.session.recall.dispatch.answer",
)
@pytest.mark.says(
    "tool-result-continuation",
    "4. Local handler in tool call loop",
    "Return `full_result[offset:offset + MAX_TOOL_RESULT_CHARS]`",
    lives="ullage.session.recall.read.characters",
)
@pytest.mark.says(
    "tool-result-continuation",
    "4. Local handler in tool call loop",
    "If more remains, append the same style truncation marker with updated offset info",
    lives="ullage.core.values.toolset.Toolset",
)
@pytest.mark.says(
    "tool-result-continuation",
    "Testing (in test_agent.py)",
    "`get_continuation` handler: valid ID, invalid ID, multiple chunks, final chunk without marker",
)
def test_chunk_by_chunk_to_the_last_which_has_no_marker():
    text, session = shown(TRANSCRIPT)
    second = asked(session, tool_call_id="call_abc123")
    assert second == f"{TRANSCRIPT[4_000:8_000]}\n{SECOND}"
    pages = [text, second]
    while call := call_that_reads_on(pages[-1]):
        pages.append(asked(session, **call.arguments))
    assert [MARKER.search(page)["shown"] for page in pages[:-1]] == [
        "4000", "4000-8000", "8000-12000", "12000-16000", "16000-20000", "20000-24000"
    ]  # fmt: skip
    assert pages[-1] == TRANSCRIPT[24_000:]
    assert rebuilt(pages) == TRANSCRIPT


LONG_SESSION = shown(TRANSCRIPT)[1]


@given(st.integers(0, len(TRANSCRIPT) - 1))
def test_a_chunk_is_that_slice_of_the_full_result(offset):
    page = asked(LONG_SESSION, tool_call_id="call_abc123", offset=offset)
    stop = offset + 4_000
    assert MARKER.sub("", page) == TRANSCRIPT[offset:stop]
    more = call_that_reads_on(page)
    assert (more and more.arguments) == (
        {"tool_call_id": "call_abc123", "offset": stop}
        if stop < len(TRANSCRIPT)
        else None
    )


@pytest.mark.parametrize(
    ("offset", "start"),
    [
        (None, 4_000),
        ("", 4_000),
        ("soon", 4_000),
        ([8_000], 4_000),
        ("8000", 8_000),
        ("8,000", 8_000),
        (8_000.0, 8_000),
        ("8000.0", 8_000),
        (0, 0),
        (-1, 0),
        (-(10**30), 0),
    ],
)
def test_an_offset_as_models_write_it_is_understood_or_is_the_default(
    offset, start
):
    """Deviation: one below 0 reads from the beginning, not from the end."""
    page = asked(LONG_SESSION, tool_call_id="call_abc123", offset=offset)
    assert page.startswith(TRANSCRIPT[start : start + 4_000])


@pytest.mark.parametrize(
    "offset", [24_591, 24_592, 10**12, 10**30, "9" * 5_000, 1e300]
)
def test_past_the_end_there_is_a_sentence_that_says_so(offset):
    """Deviation: the document's slice would be empty, which no model can tell from a failure."""
    page = asked(LONG_SESSION, tool_call_id="call_abc123", offset=offset)
    if offset == "9" * 5_000:  # no number that Python reads
        assert page.startswith(TRANSCRIPT[4_000:8_000])
    else:
        assert (
            page == "[nothing after character 24,591: the output ends there]"
        )


@pytest.mark.says(
    "tool-result-continuation",
    "4. Local handler in tool call loop",
    "If ID not found, return an error JSON",
    lives="ullage.session.recall.dispatch.answer",
)
@pytest.mark.parametrize(
    "wanted",
    [
        "call_nobody",
        "0123456789abcdef",
        "",
        7,
        None,
        'a"quote',
        "new\nline",
        "\ud800",
        "{0}",
        "x" * 999,
    ],
)
def test_an_unknown_id_is_an_error_in_json_that_the_model_can_act_on(wanted):
    told = json.loads(asked(LONG_SESSION, tool_call_id=wanted))
    assert set(told) == {"error", "remedy"}
    if wanted == "call_nobody":
        assert (
            told["error"]
            == "No truncated result found for tool_call_id 'call_nobody'"
        )


@pytest.mark.parametrize(
    "arguments", ["", "{", "[1]", "null", '{"offset": 4000}']
)
def test_arguments_that_name_no_id_are_an_error_in_json_too(arguments):
    call = {
        "id": "call_9",
        "type": "function",
        "function": {"name": "get_continuation", "arguments": arguments},
    }
    assert json.loads(LONG_SESSION.recall(call)["content"])["error"]


def test_a_page_is_never_cut_nor_kept_again():
    """It has more than 4,000 characters with its marker, and is a regular message after that."""
    _, session = shown(TRANSCRIPT)
    page = asked(session, tool_call_id="call_abc123")
    function = {
        "name": "get_continuation",
        "arguments": '{"tool_call_id": "call_abc123"}',
    }
    messages = [
        *conversation(TRANSCRIPT),
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "c2", "type": "function", "function": function}
            ],
        },
        {"role": "tool", "tool_call_id": "c2", "content": page},
    ]
    view = session.fit({"model": "gpt-4.1", "messages": messages})
    assert view["messages"][-1] is messages[-1]
    assert len(session.store.refs("")) == 1


def test_the_async_session_answers_the_same():
    async def read():
        session = new_session(kind=AsyncSession)
        view = await session.fit(
            {"model": "gpt-4.1", "messages": conversation(TRANSCRIPT)}
        )
        function = {
            "name": "get_continuation",
            "arguments": '{"tool_call_id": "call_abc123"}',
        }
        page = await session.recall(
            {"id": "c2", "type": "function", "function": function}
        )
        return view["messages"][2]["content"], page["content"]

    text, session = shown(TRANSCRIPT)
    assert asyncio.run(read()) == (
        text,
        asked(session, tool_call_id="call_abc123"),
    )


# ── 5. Iteration counting ────────────────────────────────────────────────────────────────


def agent(serve, tool, **more):
    """A turn of the reference loop, with a model that reads on, through OpenAI's SDK."""
    server = serve(
        "openai-chat", summariser("openai-chat", tool.__name__), strict=True
    )
    history = [{"role": "user", "content": "Summarise the meeting."}]
    session = Session("gpt-4.1", policy="continuation")
    request = {"model": "gpt-4.1", "messages": history}
    create = server.client().chat.completions.create
    return run_turn(create, session, request, tools=[tool], **more), server


@pytest.mark.says(
    "tool-result-continuation",
    "5. Iteration counting",
    "Add `get_continuation` to `UNCOUNTED_TOOLS` so continuation calls don't count toward the "
    "20-iteration agent loop cap.",
    lives="ullage.doors.loop.steps.UNCOUNTED_TOOLS",
)
@pytest.mark.says(
    "tool-result-continuation",
    "4. Local handler in tool call loop",
    "Before calling `execute_tool_call`, check if the tool is `get_continuation`.",
    lives="ullage.doors.loop.steps",
)
@pytest.mark.says(
    "tool-result-continuation",
    "Solution",
    "Add a generic continuation mechanism to `agent_turn` in `agent.py`.",
    lives="ullage.doors.loop",
)
def test_reading_on_is_no_iteration_and_no_call_of_a_tool(serve):
    """Forty pages, twice the cap; the tool is run once, and with a ceiling it stops."""
    ran = []

    def read_minutes(path: str) -> str:
        """Read the minutes."""
        ran.append(path)
        return TRANSCRIPT * 6 + TRANSCRIPT[:9_000]

    assert "get_continuation" in UNCOUNTED_TOOLS
    outcome, server = agent(serve, read_minutes)
    assert (outcome.text, outcome.why) == ("Here is the summary.", "answered")
    assert (outcome.iterations, outcome.uncounted) == (2, 39)
    assert rebuilt(
        texts_of(server.requests[-1].body, "openai-chat")
    ) == read_minutes("")
    assert ran == ["meeting.wav", ""]
    counted, _ = agent(serve, read_minutes, uncounted=())
    assert (counted.why, counted.iterations) == ("iteration_cap", 20)
    stopped, _ = agent(serve, read_minutes, max_uncounted=10)
    assert (stopped.why, stopped.uncounted) == ("uncounted_ceiling", 10)


# ── What doesn't change ──────────────────────────────────────────────────────────────────


@pytest.mark.says(
    "tool-result-continuation",
    "What doesn't change",
    "`services/compaction.py` — continuation tool results are regular tool messages, compacted "
    "normally",
    lives="ullage.policy",
)
def test_pages_are_pruned_and_condensed_like_any_other_result():
    messages, session = conversation(TRANSCRIPT), new_session()
    session.fit({"model": "gpt-4.1", "messages": messages})
    for number, offset in enumerate(range(4_000, 24_000, 4_000)):
        arguments = {"tool_call_id": "call_abc123", "offset": offset}
        function = {
            "name": "get_continuation",
            "arguments": json.dumps(arguments),
        }
        call = {"id": f"c{number}", "type": "function", "function": function}
        messages += [
            {"role": "assistant", "tool_calls": [call]},
            session.recall(call),
        ]
    little_room = Limits(window_tokens=4_500, output_reserve_tokens=500)
    pruned = new_session(
        replace(continuation(), under_pressure=(partial(prune),), guard=None),
        limits=little_room,
    )
    view = pruned.fit({"model": "gpt-4.1", "messages": messages})
    gone = [
        text
        for text in texts_of(view, "openai-chat")
        if "this page has left" in text
    ]
    assert len(gone) >= 3
    guarded = new_session(limits=little_room)
    guarded.fit({"model": "gpt-4.1", "messages": messages})
    assert "condensed" in {event.kind for event in guarded.events}
    assert asked(guarded, tool_call_id="call_abc123").startswith(
        TRANSCRIPT[4_000:8_000]
    )


# ── settings ─────────────────────────────────────────────────────────────────────────────


def test_the_constant_sets_what_is_shown_the_page_and_the_default_offset(
    tmp_path,
):
    file = tmp_path / "settings.json"
    file.write_text('{"MAX_TOOL_RESULT_CHARS": 1000}')
    policy = documents.load("continuation", file)
    text, session = shown(TRANSCRIPT, policy)
    assert text.startswith(TRANSCRIPT[:1_000] + "\n[ref=")
    assert "[truncated — showing 1000/24591 chars." in text
    page = asked(session, tool_call_id="call_abc123")
    assert page.startswith(
        f"{TRANSCRIPT[1_000:2_000]}\n[truncated — showing 1000-2000/24591"
    )
    assert "(default: 1000)" in json.dumps(policy.toolset.tools[0].parameters)
    assert text == truncate_tool_result(
        TRANSCRIPT,
        "call_abc123",
        ContinuationSettings(MAX_TOOL_RESULT_CHARS=1_000),
    )


@pytest.mark.parametrize("value", [0, -1, "4000", 4_000.5, None, True])
def test_a_limit_that_is_none_is_told(value):
    with pytest.raises(ConfigError, match=r"MAX_TOOL_RESULT_CHARS"):
        documents.load("continuation", {"MAX_TOOL_RESULT_CHARS": value})
    with pytest.raises(ConfigError, match=r"MAX_TOOL_RESULT_CHARS"):
        ContinuationSettings(MAX_TOOL_RESULT_CHARS=value)


# ── remove the behaviour, and this fails ─────────────────────────────────────────────────

CONFORMING = {
    "first": (TRANSCRIPT[:4_000], FIRST),
    "second": (TRANSCRIPT[4_000:8_000], SECOND),
    "last": (TRANSCRIPT[24_000:], ""),
    "unknown": "No truncated result found for tool_call_id 'call_2'",
    "short": "x" * 4_000,
    "tools": [TOOL],
}


def behaviour(policy):
    """What the document says, as one value: what is shown, what is answered, what is offered."""
    text, session = shown(TRANSCRIPT, policy, recall="auto")
    bash = {"type": "function", "function": {"name": "bash"}}
    request = {
        "model": "gpt-4.1",
        "messages": conversation("")[:1],
        "tools": [bash],
    }
    view = new_session(policy, recall="auto").fit(request)
    text, session = shown(TRANSCRIPT, policy)

    def parted(page):
        found = MARKER.search(page)
        return (
            (page[: found.start()], found[0].splitlines()[-1])
            if found
            else (page, "")
        )

    return {
        "first": parted(text),
        "second": parted(asked(session, tool_call_id="call_abc123")),
        "last": parted(
            asked(session, tool_call_id="call_abc123", offset=24_000)
        ),
        "unknown": json.loads(asked(session, tool_call_id="call_2"))["error"],
        "short": shown("x" * 4_000, policy)[0],
        "tools": view["tools"][1:],
    }


def with_shape(**changed):
    (stage,) = continuation().on_arrival
    shape = stage.keywords["shape"]
    changed = partial(head_chars, **{**shape.keywords, **changed})
    return replace(
        continuation(), on_arrival=(partial(truncate, shape=changed),)
    )


def with_desk(**changed):
    return replace(
        continuation(), toolset=replace(continuation().toolset, **changed)
    )


def with_tool(**changed):
    (tool,) = continuation().toolset.tools
    return with_desk(tools=(replace(tool, **changed),))


PARAMETERS = TOOL["function"]["parameters"]
MUTANTS = {
    "a character more": continuation(
        ContinuationSettings(MAX_TOOL_RESULT_CHARS=4_001)
    ),
    "a character less": continuation(
        ContinuationSettings(MAX_TOOL_RESULT_CHARS=3_999)
    ),
    "more shown": with_shape(limit_chars=4_100),
    "another marker": with_shape(
        marker="[cut. Call {prefix}{call_id}: {shown} of {total}]"
    ),
    "no shape": replace(continuation(), on_arrival=()),
    "our shape": replace(continuation(), on_arrival=(partial(truncate),)),
    "larger pages": with_desk(page_chars=8_000),
    "another default": with_desk(first_offset=0),
    "our page end": with_desk(next_page=OURS.next_page),
    "our error": with_desk(unknown=None),
    "not offered": with_desk(offered="no"),
    "our tools": with_desk(tools=OURS.tools),
    "no tool": with_desk(tools=()),
    "another description": with_tool(description="Read on."),
    "another schema": with_tool(
        parameters={**PARAMETERS, "required": ["tool_call_id", "offset"]}
    ),
}


def test_the_preset_does_what_the_document_says():
    assert behaviour(continuation()) == CONFORMING
    assert behaviour(with_shape()) == behaviour(with_tool()) == CONFORMING


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_preset_that_was_changed_in_any_place_does_not(mutant):
    assert behaviour(mutant) != CONFORMING
