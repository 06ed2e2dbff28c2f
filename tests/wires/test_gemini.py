"""The Gemini format: both forms, every part, pairing, edits, usage, and the SDK itself."""

import copy
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lab import reading
from lab.returned import problems, problems_of
from tests import histories
from tests.properties.test_gates import boundaries, new_session
from tests.session.test_media_in_turn import png
from ullage import Limits, Session
from ullage.core.errors import FormatError
from ullage.core.history.transcript import Transcript
from ullage.core.values.messages import (
    Media,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from ullage.core.values.notices import pointers
from ullage.core.values.usage import Usage
from ullage.wires import FORMATS, ToolSpec, recognise

WIRE = FORMATS["gemini"]
SPEC = ToolSpec("look", "Look.", {"type": "object", "properties": {}})
BIG = "a line of a large result\n" * 2_000


def user(*parts):
    return {"role": "user", "parts": list(parts)}


def model(*parts):
    return {"role": "model", "parts": list(parts)}


def call(name="bash", id=None, args=None, signature=None):
    part = {
        "functionCall": {
            **({"id": id} if id else {}),
            "name": name,
            "args": args or {},
        }
    }
    return part | ({"thoughtSignature": signature} if signature else {})


def gave(response, name="bash", id=None, **more):
    known = {"id": id} if id else {}
    return {
        "functionResponse": {
            **known,
            "name": name,
            "response": response,
            **more,
        }
    }


def part_of(raw):
    part = WIRE.parse(user(raw), "contents[0]").parts[0]
    return replace(part, block=None) if isinstance(part, Media) else part


@pytest.fixture
def types():
    reason = "google-genai is not installed"
    return pytest.importorskip("google.genai.types", reason=reason)


# -- parts ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "part"),
    [
        ({"text": "hi"}, Text("hi", 0)),
        ({"text": "hm", "thought": True}, Reasoning("hm", 0)),
        (
            {"inlineData": {"mimeType": "image/png", "data": "AA=="}},
            Media("image", "image/png", "AA==", 0),
        ),
        (
            {"inline_data": {"mime_type": "audio/wav", "data": b"\0"}},
            Media("audio", "audio/wav", "AA==", 0),
        ),
        (
            {"fileData": {"mimeType": "application/pdf", "fileUri": "gs://a"}},
            Media("document", "application/pdf", "gs://a", 0),
        ),
        (
            {
                "codeExecutionResult": {"outcome": "OK"},
                "thoughtSignature": "x",
            },
            Opaque(
                "codeExecutionResult",
                '{"codeExecutionResult":{"outcome":"OK"}}',
                0,
                author="program",
            ),
        ),
        ({"hologram": 1}, Opaque("part", '{"hologram":1}', 0)),
        (
            call(args={"b": 1, "a": "x"}),
            ToolCall("bash#1", "bash", '{"a":"x","b":1}', 0),
        ),
        (
            {"function_call": {"name": "f", "id": "7"}},
            ToolCall("7", "f", "{}", 0),
        ),
    ],
)
def test_every_part_has_a_meaning(raw, part):
    assert part_of(raw) == part


@pytest.mark.parametrize(
    ("response", "text", "failed"),
    [
        ({"result": "plain"}, "plain", False),
        ({"output": [1, {"b": 2, "a": "ü"}]}, '[1,{"b":2,"a":"ü"}]', False),
        ({"error": "no such file"}, "no such file", True),
        ({"output": ""}, "", False),
        ({"output": None}, "null", False),
        ({"result": 1, "more": False}, '{"result":1,"more":false}', False),
        ({"content": "x"}, '{"content":"x"}', False),
        ({}, "{}", False),
    ],
)
def test_a_result_is_what_its_wrapper_holds(response, text, failed):
    assert part_of(gave(response)) == ToolResult(
        "bash#1", (Text(text),), failed, 0, "bash"
    )


def test_media_beside_a_response_is_media():
    raw = gave({"output": "see"})
    raw["functionResponse"]["parts"] = [
        {"inlineData": {"mimeType": "image/png", "data": "AA=="}}
    ]
    (block,) = raw["functionResponse"]["parts"]
    picture = Media("image", "image/png", "AA==", 0, block=block)
    assert part_of(raw).content == (Text("see"), picture)
    shown = edited(user(raw), "short")
    assert shown == user(gave({"output": "short"}, parts=[block]))


def test_old_images_in_results_become_plain_text_and_come_back_as_what_they_were():
    contents = [user({"text": "Click through the form."})]
    for number in range(20):
        block = {
            "inlineData": {
                "mimeType": "image/png",
                "data": png(1000, 800, 20_000 + number),
            }
        }
        contents += [
            model(call()),
            user(gave({"output": f"page {number}"}, parts=[block])),
        ]
    session = new_session("gemini", 12_000, policy=histories.PRUNING)
    view = session.fit(histories.request("gemini", contents))["contents"]
    ((_, (said, placeholder)),) = reading.results(view[2])
    assert said == "page 0"
    (pointer,) = pointers(placeholder)
    body = {"name": "get_continuation", "args": {"tool_call_id": pointer.ref}}
    given = session.recall(body)["functionResponse"]
    assert (
        given["parts"] == contents[2]["parts"][0]["functionResponse"]["parts"]
    )
    assert view[-1] is contents[-1]
    assert problems_of("gemini", view) == []


@pytest.mark.parametrize(
    ("raw", "where"),
    [
        ({"role": "assistant", "parts": []}, "contents[0].role"),
        ({"role": "user", "parts": "x"}, "contents[0].parts"),
        (user(7), "contents[0].parts[0]"),
        (user({"text": 7}), "contents[0].parts[0].text"),
        (
            user(gave({"output": object()})),
            "contents[0].parts[0].functionResponse.response",
        ),
        (user({"functionCall": {}}), "contents[0].parts[0].functionCall.name"),
    ],
)
def test_what_is_no_content_is_refused_with_its_place(raw, where):
    with pytest.raises(FormatError) as raised:
        WIRE.parse(raw, "contents[0]")
    assert raised.value.where == where


# -- pairing --------------------------------------------------------------------------------


def pairs(contents):
    """Which call each result is taken to answer, by its arguments."""
    transcript = Transcript(b"")
    for index, raw in enumerate(contents):
        transcript.append(
            WIRE.parse(raw, f"contents[{index}]"), bytes([index])
        )
    found = [
        getattr(transcript.call_for(index, number), "arguments", None)
        for index, message in enumerate(transcript.messages)
        for number, part in enumerate(message.parts)
        if isinstance(part, ToolResult)
    ]
    transcript.append(WIRE.parse(model({"text": "on"}), ""), b"on")
    return found, transcript.may_cut(len(contents))


@pytest.mark.parametrize("call_ids", [True, False])
@pytest.mark.parametrize("result_ids", [True, False])
def test_results_find_their_calls_by_id_or_else_by_name_and_order(
    call_ids, result_ids
):
    """F09: parallel calls of one name; ids on both sides, on one, or on none."""
    contents = [user({"text": "go"})]
    for step in range(2):
        names = [("bash", f"{step}{n}") for n in range(2)] + [
            ("grep", f"{step}2")
        ]
        contents += [
            model(*[call(name, call_ids and id, {"at": id}) for name, id in names]),
            user(*[
                gave({"output": id}, name, result_ids and ("" if call_ids else "client-") + id)
                for name, id in names
            ]),
        ]  # fmt: skip
    wanted = [f'{{"at":"{step}{n}"}}' for step in range(2) for n in range(3)]
    assert pairs(contents) == (wanted, True)


@pytest.mark.parametrize(
    ("id", "wanted"), [(None, None), ("7", "7"), ("bash#x", "bash#x")]
)
def test_a_result_has_the_id_that_came_with_its_call(id, wanted):
    assert (
        WIRE.result(part_of(call(id=id)), "ok")["functionResponse"].get("id")
        == wanted
    )


def test_an_id_goes_before_the_order():
    contents = [
        model(call(id="a", args={"at": "a"}), call(id="b", args={"at": "b"})),
        user(gave({"output": ""}, id="b"), gave({"output": ""}, id="a")),
    ]
    assert pairs(contents)[0] == ['{"at":"b"}', '{"at":"a"}']


@given(turns=histories.histories)
def test_no_made_up_id_goes_onto_the_wire(turns):
    contents = histories.wire("gemini", turns, reuse_ids=True)
    view = new_session("gemini", 4_000).fit(
        histories.request("gemini", contents)
    )
    for content in view["contents"]:
        for part in content["parts"]:
            for key in ("functionCall", "functionResponse"):
                assert "id" not in part.get(key, {})


# -- edits ----------------------------------------------------------------------------------


def edited(raw, text):
    """The content with its first leaf shown as ``text``; it reads as that again."""
    new = WIRE.edit(raw, WIRE.parse(raw, ""), [(0, 0, text)])
    part = WIRE.parse(new, "").parts[0]
    leaf = part.content[0] if isinstance(part, ToolResult) else part
    assert leaf.text == text
    return new


@pytest.mark.parametrize(
    ("before", "text", "after"),
    [
        ({"result": "long"}, "s", {"result": "s"}),
        ({"result": '["json", "text"]'}, '["s"]', {"result": '["s"]'}),
        ({"output": [1, 2, 3]}, '[1,"…"]', {"output": [1, "…"]}),
        (
            {"output": {"a": 1}},
            '{"a":1,"_ullage":"x"}',
            {"output": {"a": 1, "_ullage": "x"}},
        ),
        (
            {"output": [1, 2]},
            "[ullage: set aside]",
            {"output": "[ullage: set aside]"},
        ),
        ({"output": [1, 2]}, "[1, 2]", {"output": "[1, 2]"}),
        ({"error": {"code": 1}}, "s", {"error": "s"}),
        (
            {"rows": [1], "more": True},
            '{"rows":[],"_ullage":"x"}',
            {"rows": [], "_ullage": "x"},
        ),
        (
            {"rows": [1], "more": True},
            "[ullage: set aside]",
            {"output": "[ullage: set aside]"},
        ),
        (
            {"rows": [1], "more": True},
            '{"result":1}',
            {"output": '{"result":1}'},
        ),
    ],
)
def test_a_cut_result_keeps_name_id_and_wrapper_and_reads_as_what_is_shown(
    before, text, after
):
    raw = user(gave(before, id="7"))
    assert edited(raw, text) == user(gave(after, id="7"))
    assert raw == user(gave(before, id="7"))


def test_an_edit_keeps_the_spelling_it_finds():
    raw = {
        "role": "user",
        "parts": [{"function_response": {"name": "f", "response": {"x": 1}}}],
    }
    shown = edited(raw, "s")
    assert shown["parts"][0] == {
        "function_response": {"name": "f", "response": {"output": "s"}}
    }
    assert edited("a text", "s") == "s"
    assert edited(["a text", {"text": "b"}], "s") == ["s", {"text": "b"}]
    assert edited({"text": "alone"}, "s") == {"text": "s"}


def test_a_text_that_is_cut_loses_its_signature():
    raw = model({"text": "long", "thoughtSignature": "c2ln"})
    assert edited(raw, "s") == model({"text": "s"})


def test_arguments_are_stubbed_unless_the_step_is_signed():
    for signature in (None, "c2ln"):
        contents = [user({"text": "go"})]
        for step in range(40):
            write = {"path": f"{step}.py", "text": BIG[:6_000]}
            contents += [
                model(
                    call("write_file", args=write, signature=signature),
                    call("bash"),
                ),
                user(
                    gave({"output": "ok"}, "write_file"),
                    gave({"output": "ok"}),
                ),
            ]
        session = new_session("gemini", 12_000, policy=histories.PRUNING)
        session.fit(histories.request("gemini", contents[:-12]))
        view = session.fit(histories.request("gemini", contents))
        calls = [
            p
            for content in view["contents"]
            for p in content["parts"]
            if "functionCall" in p
        ]
        stubs = [p for p in calls if "_ullage" in p["functionCall"]["args"]]
        assert bool(stubs) == (signature is None)
        assert all(p.get("thoughtSignature") == signature for p in calls[::2])


# -- legality of views ----------------------------------------------------------------------

signed = st.lists(
    st.builds(
        histories.Turn,
        user=st.one_of(st.none(), st.none(), st.just("and now?")),
        said=st.sampled_from(("", "Let me look.")),
        calls=st.lists(histories.calls, min_size=1, max_size=3).map(tuple),
        thought=st.just(True),
    ),
    min_size=1,
    max_size=14,
)


@given(signed, st.sampled_from((3_000, 4_000, 6_000, 12_000)), st.booleans())
def test_no_edit_breaks_a_rule(turns, window, reuse):
    """Signed steps of parallel calls: every view legal, every signature where it came."""
    contents = histories.wire("gemini", turns, reuse_ids=reuse)
    session = new_session("gemini", window)
    for length in boundaries("gemini", contents):
        whole = histories.request(
            "gemini", contents[:length], model="gemini-3-pro-preview"
        )
        view = session.fit(whole)
        assert problems("gemini", view, history=contents) == []
        texts = [
            p["text"]
            for c in view["contents"]
            for p in c["parts"]
            if "text" in p
        ]
        assert all(texts)


@given(
    histories.histories, st.sampled_from((3_000, 4_000, 12_000)), st.booleans()
)
def test_no_edit_breaks_a_rule_that_held(turns, window, reuse):
    """Any history: a view breaks no rule more often than the history does."""
    contents = histories.wire("gemini", turns, reuse_ids=reuse)
    session = new_session("gemini", window)
    for length in boundaries("gemini", contents):
        view = session.fit(histories.request("gemini", contents[:length]))[
            "contents"
        ]
        own = [p.rule for p in problems_of("gemini", contents[:length])]
        for problem in problems_of("gemini", view, history=contents):
            assert problem.rule in own


def test_the_account_is_a_user_content_before_a_reply():
    contents = [user({"text": "go"})]
    for step in range(60):
        contents += [
            model(call(args={"at": step}, signature=f"s{step}"), call("grep")),
            user(
                gave({"output": BIG[:900]}),
                gave({"output": BIG[:900]}, "grep"),
            ),
        ]
    session = new_session("gemini", 4_000)
    view = session.fit(histories.request("gemini", contents))["contents"]
    ((start, _, _),) = session.window.summaries
    assert view[start]["role"] == "user"
    assert view[start]["parts"][0]["text"].startswith(
        "[ullage: messages 2 to "
    )
    assert view[start + 1]["role"] == "model"
    assert problems_of("gemini", view, history=contents) == []


# -- head, tools, usage ---------------------------------------------------------------------

REST = {
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "generationConfig": {"maxOutputTokens": 500},
    "tools": [
        {"functionDeclarations": [{"name": "bash"}, {"name": "grep"}]},
        {"googleSearch": {}},
    ],
    "contents": [user({"text": "go"})],
}
SDK = {
    "model": "gemini-2.5-pro",
    "config": {
        "system_instruction": "Be brief.",
        "max_output_tokens": 500,
        "tools": [
            {"function_declarations": [{"name": "bash"}, {"name": "grep"}]}
        ],
    },
    "contents": "go",
}


def test_the_head_of_both_forms():
    rest, sdk = WIRE.head(REST), WIRE.head(SDK)
    assert rest.texts == (
        "Be brief.",
        '{"name":"bash"}',
        '{"name":"grep"}',
        '{"googleSearch":{}}',
    )
    assert rest.tools == ("bash", "grep", "")
    assert sdk.texts == rest.texts[:3]
    assert rest.asked_output_tokens == sdk.asked_output_tokens == 500
    assert (rest.model, sdk.model) == (None, "gemini-2.5-pro")
    snake = {
        "contents": [],
        "system_instruction": {"parts": [{"text": "Be brief."}]},
    }
    assert WIRE.head(snake).texts == ("Be brief.",)


OWN = [{"name": "bash"}, {"name": "grep"}]
SEARCH = {"googleSearch": {}}


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ([], ["OURS"]),
        ([SEARCH], [SEARCH, "OURS"]),
        (
            [{"functionDeclarations": OWN}],
            [{"functionDeclarations": [*OWN, "our"]}],
        ),
        (
            [{"functionDeclarations": OWN}, SEARCH],
            [{"functionDeclarations": [*OWN, "our"]}, SEARCH],
        ),
        ([{"functionDeclarations": []}], [{"functionDeclarations": ["our"]}]),
        (
            [
                {"functionDeclarations": OWN},
                {"functionDeclarations": OWN, **SEARCH},
            ],
            [
                {"functionDeclarations": OWN},
                {"functionDeclarations": [*OWN, "our"], **SEARCH},
            ],
        ),
    ],
)
def test_added_functions_stand_behind_those_that_the_request_declares(
    own, expected
):
    """Vertex takes all functions in one ``Tool`` alone."""
    ours = WIRE.tool(SPEC)
    request = {
        "contents": [user({"text": "go"})],
        "tools": own,
        "safetySettings": [],
    }
    before = copy.deepcopy(request)
    new = WIRE.compose(request, request["contents"], [ours])
    as_expected = [_filled(tool, ours) for tool in expected]
    assert new["tools"] == as_expected
    assert request == before


def _filled(tool, ours):
    if tool == "OURS":
        return {"functionDeclarations": [ours]}
    declared = tool.get("functionDeclarations")
    if declared is None:
        return tool
    return {
        **tool,
        "functionDeclarations": [
            ours if one == "our" else one for one in declared
        ],
    }


def test_added_functions_are_in_the_form_of_the_request():
    ours = WIRE.tool(SPEC)
    for request, place, key in (
        (REST, lambda r: r["tools"], "functionDeclarations"),
        (SDK, lambda r: r["config"]["tools"], "function_declarations"),
        (
            {"model": "m", "contents": "go"},
            lambda r: r["config"]["tools"],
            "function_declarations",
        ),
    ):
        before = copy.deepcopy(request)
        new = WIRE.compose(request, WIRE.history(request), [ours])
        assert [tool[key][-1] for tool in place(new) if key in tool] == [ours]
        assert request == before
        assert new["contents"] == request["contents"]
        assert len(WIRE.tools(new)) == len(WIRE.tools(request)) + 1


def test_a_tool_of_the_sdk_is_copied_and_declares_ours_too():
    types = pytest.importorskip(
        "google.genai.types", reason="google-genai is not installed"
    )
    declared = types.FunctionDeclaration(name="bash")
    tool = types.Tool(function_declarations=[declared])
    config = types.GenerateContentConfig(tools=[tool])
    request = {"model": "gemini-2.5-pro", "contents": "go", "config": config}
    new = WIRE.compose(request, WIRE.history(request), [WIRE.tool(SPEC)])
    (shown,) = new["config"].tools
    assert [one.name for one in shown.function_declarations] == [
        "bash",
        "look",
    ]
    assert all(
        isinstance(one, types.FunctionDeclaration)
        for one in shown.function_declarations
    )
    assert tool.function_declarations == [declared]


@pytest.mark.parametrize("request_", [REST, SDK], ids=["rest", "sdk"])
def test_a_composed_request_is_not_given_the_tools_again(request_):
    session = Session("gemini-2.5-pro")
    once = session.fit(request_)
    assert session.fit(once) == once
    assert len(WIRE.tools(once)) == len(WIRE.tools(request_)) + 1


def test_the_contents_decide_the_format():
    assert recognise({"contents": "go"}).name == "gemini"
    assert (
        recognise({"contents": [], "model": "gpt-4.1", "tools": []}).name
        == "gemini"
    )


@pytest.mark.parametrize(
    "more",
    [
        {"cachedContent": "cachedContents/1"},
        {"cached_content": "cachedContents/1"},
        {"config": {"cached_content": "cachedContents/1"}},
        {"config": {"cachedContent": "cachedContents/1"}},
    ],
)
def test_a_history_in_a_cache_is_passed_on_with_an_event(more):
    session, request = Session("gemini-2.5-pro"), {"contents": "go", **more}
    assert session.fit(request) == request
    assert [event.kind for event in session.events] == ["passed_on"]


def test_usage_counts_each_token_once():
    counts = {
        "promptTokenCount": 1_000,
        "cachedContentTokenCount": 600,
        "candidatesTokenCount": 50,
        "thoughtsTokenCount": 30,
        "toolUsePromptTokenCount": 7,
    }
    usage = WIRE.usage({"usageMetadata": counts})
    assert usage == Usage(
        fresh_tokens=407,
        cache_read_tokens=600,
        output_tokens=80,
        reasoning_tokens=30,
        prompt_tokens=1_000,
    )
    assert usage.total_tokens == 1_000 + 7 + 50 + 30
    assert WIRE.usage({"candidates": []}) is None


def test_recall_takes_a_part_or_a_call_and_gives_a_part():
    session = new_session("gemini", 12_000)
    contents = [
        user({"text": "go"}),
        model(call(id="7")),
        user(gave({"result": BIG}, id="7")),
    ]
    view = session.fit(histories.request("gemini", contents))
    (shown,) = [
        text
        for _, texts in reading.results(view["contents"][2])
        for text in texts
    ]
    assert shown != BIG
    body = {
        "name": "get_continuation",
        "args": {"tool_call_id": "7", "offset": 100},
    }
    assert session.owns(body)
    assert session.owns({"functionCall": body})
    assert session.owns({"function_call": body})
    assert not session.owns(call())
    one, other = (
        session.recall(body),
        session.recall({"functionCall": {**body, "id": "8"}}),
    )
    assert one["functionResponse"].keys() == {"name", "response"}
    assert other["functionResponse"]["id"] == "8"
    assert one["functionResponse"]["response"]["output"].startswith(
        BIG[100:200]
    )
    unknown = session.recall({**body, "args": {"tool_call_id": "nothing"}})
    assert unknown["functionResponse"]["response"].keys() == {"error"}
    answered = [*contents, model({"functionCall": body}), user(one)]
    assert problems("gemini", {"contents": answered}) == []
    with pytest.raises(FormatError):
        session.recall({"text": "no call"})


# -- the SDK --------------------------------------------------------------------------------


def as_objects(types, contents):
    return [types.Content.model_validate(content) for content in contents]


def as_dicts(contents):
    return [
        content.model_dump(mode="json", exclude_none=True, by_alias=True)
        for content in contents
    ]


@given(turns=histories.histories)
def test_objects_give_the_view_that_dicts_give(turns):
    """The same edits, in objects of the SDK; untouched contents are the caller's own."""
    genai = pytest.importorskip(
        "google.genai", reason="google-genai is not installed"
    )
    contents = as_dicts(
        as_objects(genai.types, histories.wire("gemini", turns))
    )
    objects = as_objects(genai.types, contents)
    before = copy.deepcopy(objects)
    rest, sdk = new_session("gemini", 4_000), new_session("gemini", 4_000)
    for length in boundaries("gemini", contents):
        config = genai.types.GenerateContentConfig(
            system_instruction="You are an agent.", max_output_tokens=1_000
        )
        shown = sdk.fit({"contents": objects[:length], "config": config})
        wanted = rest.fit(histories.request("gemini", contents[:length]))
        assert as_plain(shown["contents"]) == wanted["contents"]
        assert config.tools is None
        assert len(shown["config"].tools) == 1
    mine = {id(content) for content in objects}
    if not sdk.window.summaries:
        for index, content in enumerate(shown["contents"]):
            assert (id(content) in mine) != (index in sdk.window.changed)
    assert objects == before


def as_plain(contents):
    return [c if isinstance(c, dict) else as_dicts([c])[0] for c in contents]


def test_objects_and_dicts_are_one_history(types):
    part = types.Part(
        inline_data=types.Blob(mime_type="image/png", data=b"\xff\xfe\xfd")
    )
    thing = types.Part(
        executable_code=types.ExecutableCode(code="1", language="PYTHON")
    )
    signed_call = types.Part(
        function_call=types.FunctionCall(name="f", args={"x": 1}),
        thought_signature=b"\xff\xfe",
    )
    given = types.Part.from_function_response(
        name="f", response={"result": {"b": 1, "a": 2}}
    )
    for role, parts in (
        ("user", [part, given]),
        ("model", [thing, signed_call]),
    ):
        content = types.Content(role=role, parts=parts)
        (plain,) = as_dicts([content])
        plain = json.loads(json.dumps(plain).replace("__79", "//79"))
        assert WIRE.parse(content, "") == WIRE.parse(plain, "")
        assert WIRE.edit(content, WIRE.parse(content, ""), []) == content


def test_usage_of_a_reply_object(types):
    counts = types.GenerateContentResponseUsageMetadata(
        prompt_token_count=10,
        cached_content_token_count=4,
        candidates_token_count=2,
    )
    reply = types.GenerateContentResponse(usage_metadata=counts)
    assert WIRE.usage(reply) == Usage(
        fresh_tokens=6, cache_read_tokens=4, output_tokens=2
    )


def test_strings_parts_and_functions_are_taken_as_the_sdk_takes_them(types):
    def bash(command: str) -> str:
        """Run a command."""
        return command

    contents = [
        "look",
        types.Part.from_uri(file_uri="gs://a", mime_type="image/png"),
        ["a", "b"],
    ]
    config = types.GenerateContentConfig(
        system_instruction=["One.", "Two."], tools=[bash]
    )
    request = {
        "model": "gemini-2.5-pro",
        "contents": contents,
        "config": config,
    }
    view = Session("gemini-2.5-pro").fit(request)
    assert all(a is b for a, b in zip(view["contents"], contents, strict=True))
    assert view["config"].tools[0] is bash
    head = WIRE.head(request)
    assert head.texts[:2] == ("One.", "Two.")
    assert head.tools == ("bash",)
    assert "Run a command" in head.texts[2]


class _Provider(BaseHTTPRequestHandler):
    """Judges what arrives, asks for one more call, and at the end gives an answer."""

    bodies: list = []  # noqa: RUF012
    steps = 12

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.bodies.append(body)
        number = len(self.bodies)
        parts = [{"text": "done"}]
        if number <= self.steps:
            first = {
                "functionCall": {"name": "bash", "args": {"step": number}}
            }
            parts = [
                {**first, "thoughtSignature": f"c2ln{number:04}"},
                {"functionCall": {"name": "grep", "args": {"step": number}}},
            ]
        counts = {
            "promptTokenCount": len(json.dumps(body)) // 4,
            "candidatesTokenCount": 9,
        }
        reply = {
            "candidates": [
                {
                    "content": {"role": "model", "parts": parts},
                    "finishReason": "STOP",
                }
            ],
            "usageMetadata": counts,
        }
        data = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


@pytest.fixture
def provider():
    bodies = []
    handler = type("Provider", (_Provider,), {"bodies": bodies})
    server = HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}
    )
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", bodies
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("config_as", ["object", "dict"])
def test_a_loop_through_the_real_client(
    types, provider, config_as, monkeypatch
):
    """Two parallel calls a step in a window of 6,000 tokens: every body legal and small."""
    for name in (
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
    ):
        monkeypatch.delenv(name, raising=False)
    genai = pytest.importorskip(
        "google.genai", reason="google-genai is not installed"
    )
    url, bodies = provider
    options = types.HttpOptions(base_url=url)
    declared = {
        "name": "bash",
        "parameters": {"type": "OBJECT", "properties": {}},
    }
    config = {
        "system_instruction": "Be brief.",
        "tools": [{"function_declarations": [declared]}],
    }
    if config_as == "object":
        config = types.GenerateContentConfig.model_validate(config)
    session = Session(
        "gemini-3-pro-preview",
        limits=Limits(window_tokens=6_000, output_reserve_tokens=500),
    )
    contents = [
        types.Content(role="user", parts=[types.Part(text="Find out.")])
    ]
    with genai.Client(api_key="none", http_options=options) as client:
        while True:
            request = {
                "model": "gemini-3-pro-preview",
                "contents": contents,
                "config": config,
            }
            reply = client.models.generate_content(**session.fit(request))
            session.observe(reply)
            contents.append(reply.candidates[0].content)
            if not reply.function_calls:
                break
            contents.append(
                types.Content(
                    role="user",
                    parts=[*map(answer_of(types), reply.function_calls)],
                )
            )
    assert reply.text == "done"
    assert len(bodies) == _Provider.steps + 1
    sent = as_dicts(contents)
    assert any(content not in sent for content in bodies[-1]["contents"])
    names = [
        d["name"]
        for tool in bodies[-1]["tools"]
        for d in tool["functionDeclarations"]
    ]
    assert names == ["bash", "get_continuation"]
    for body in bodies:
        body["model"] = "gemini-3-pro-preview"
        assert problems("gemini", body, history=sent) == []
        assert len(json.dumps(body["contents"])) < 6_000 * 4
        assert body["tools"] == bodies[0]["tools"]
    assert {event.kind for event in session.events} >= {
        "truncated",
        "pruned",
        "observed",
    }


def answer_of(types):
    def answer(call):
        output = (
            BIG
            if call.name == "bash"
            else [{"n": n, "text": "row"} for n in range(60)]
        )
        return types.Part.from_function_response(
            name=call.name, response={"result": output}
        )

    return answer
