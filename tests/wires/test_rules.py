"""The judge: each rule with a legal and an illegal example, and mutations of legal histories."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.returned import problems, problems_of
from tests.wires import histories
from ullage.core.errors import ConfigError
from ullage.wires.rules.checker import check_of

USER = {"role": "user", "content": "go"}
DONE = {"role": "assistant", "content": "done"}


def rules(format, messages):
    return {problem.rule for problem in problems_of(format, messages)}


# -- OpenAI Chat Completions ----------------------------------------------------------------


def call(call_id="c1", arguments="{}", name="run"):
    body = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": body}


def asks(*calls, content=None):
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def tool(call_id="c1", content="ok"):
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def parts(role, *blocks):
    return {"role": role, "content": list(blocks)}


TEXT = {"type": "text", "text": "hello"}
IMAGE_URL = {
    "type": "image_url",
    "image_url": {"url": "data:image/png;base64,AA=="},
}
CUSTOM = {
    "id": "c1",
    "type": "custom",
    "custom": {"name": "sh", "input": "ls"},
}

CHAT_LEGAL = {
    "the simplest": [USER],
    "any role may be last and first": [DONE, USER, USER, DONE, DONE],
    "results in any order": [
        USER,
        asks(call("a"), call("b")),
        tool("b"),
        tool("a"),
        DONE,
    ],
    "calls of a batch may be custom": [asks(CUSTOM), tool()],
    "empty results and an empty text beside calls": [
        asks(call(), content=""),
        tool(content=""),
    ],
    "an id used again in a later turn": [
        asks(call()),
        tool(),
        asks(call()),
        tool(),
    ],
    "null content beside a refusal": [
        {"role": "assistant", "content": None, "refusal": "no"}
    ],
    "an id of 64 characters": [asks(call("x" * 64)), tool("x" * 64)],
    "arguments that are no JSON": [asks(call(arguments="{oops")), tool()],
    "text parts in a result": [asks(call()), tool(content=[TEXT])],
    "an image from the user": [parts("user", TEXT, IMAGE_URL)],
    "a name on a tool message": [asks(call()), tool() | {"name": "run"}],
    "old function calls": [
        {
            "role": "assistant",
            "content": None,
            "function_call": {"name": "f", "arguments": ""},
        },
        {"role": "function", "name": "f", "content": "x"},
    ],
}
CHAT_ILLEGAL = [
    ("C0", []),
    ("C0", [{"role": "robot", "content": "x"}]),
    ("C0", ["just text"]),
    ("C0", [parts("user", {"type": "tool_use"})]),
    ("C0", [parts("assistant", IMAGE_URL)]),
    ("C0", [parts("user", {"type": "text"})]),
    ("C0", [asks(call(name="")), tool()]),
    ("C0", [asks(call(None)), tool()]),
    ("C0", [asks({"id": "c1", "type": "web"}), tool()]),
    ("C0", [asks(call()), {"role": "tool", "content": "ok"}, tool()]),
    ("C0", [{"role": "function", "content": "x"}]),
    ("C1", [USER, asks(call())]),
    ("C1", [USER, asks(call("a"), call("b")), tool("a"), DONE]),
    ("C1", [asks(call("a"), call("a")), tool("a"), tool("a")]),
    ("C2", [USER, tool()]),
    ("C2", [asks(call()), tool(), tool()]),
    ("C2", [asks(call()), tool(), DONE, tool()]),
    ("C3", [asks(call()), USER, tool()]),
    ("C4", [{"role": "assistant", "content": "x", "tool_calls": []}]),
    ("C5", [{"role": "assistant", "content": None}]),
    ("C5", [{"role": "assistant"}]),
    ("C0", [{"role": "user", "content": None}]),
    ("C0", [{"role": "user", "content": []}]),
    ("C0", [asks(call()), tool(content=None)]),
    ("C6", [asks(call("x" * 65)), tool("x" * 65)]),
    ("C7", [asks(call(arguments={})), tool()]),
    ("C8", [asks(call()), tool(content=[IMAGE_URL])]),
]


@pytest.mark.parametrize("messages", CHAT_LEGAL.values(), ids=CHAT_LEGAL)
def test_chat_takes_what_is_legal(messages):
    assert problems_of("openai-chat", messages) == []


@pytest.mark.parametrize(("rule", "messages"), CHAT_ILLEGAL)
def test_chat_names_the_rule_that_is_broken(rule, messages):
    assert rule in rules("openai-chat", messages)


def test_chat_head():
    body = {
        "model": "m",
        "messages": [USER],
        "stream_options": {"include_usage": True},
    }
    assert [p.rule for p in problems("openai-chat", body)] == ["C10"]
    assert problems("openai-chat", body | {"stream": True}) == []
    assert [
        p.rule
        for p in problems("openai-chat", {"messages": [USER], "tools": {}})
    ] == ["C0"]


# -- Anthropic Messages ---------------------------------------------------------------------


def use(call_id="t1", name="run", **more):
    return {
        "type": "tool_use",
        "id": call_id,
        "name": name,
        "input": {},
    } | more


def result(call_id="t1", **more):
    return {"type": "tool_result", "tool_use_id": call_id} | more


def user(*blocks):
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks):
    return {"role": "assistant", "content": list(blocks)}


def marked(block, ttl=None):
    control = {"type": "ephemeral"} | ({"ttl": ttl} if ttl else {})
    return block | {"cache_control": control}


THOUGHT = {"type": "thinking", "thinking": "", "signature": "s"}
IMAGE = {
    "type": "image",
    "source": {"type": "url", "url": "https://example.org/x.png"},
}
SERVER = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "web_search",
    "input": {},
}
SERVED = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [],
}
NOTE = {"role": "system", "content": "be brief"}
COMPACTED = {"type": "compaction", "content": "so far"}

ANTHROPIC_LEGAL = {
    "the simplest": [USER],
    "messages of one role in a row": [USER, USER, DONE, DONE, USER],
    "a batch": [
        USER,
        assistant(THOUGHT, use("a"), use("b")),
        user(result("b"), result("a")),
    ],
    "text after the results": [
        USER,
        assistant(use()),
        user(result(), TEXT, IMAGE),
    ],
    "a result without content, and one with blocks": [
        USER,
        assistant(use("a"), use("b")),
        user(result("a"), result("b", content=[TEXT, IMAGE])),
    ],
    "empty text in a result": [
        USER,
        assistant(use()),
        user(result(content="")),
    ],
    "an empty last reply": [USER, {"role": "assistant", "content": ""}],
    "a server tool": [USER, assistant(SERVER, SERVED, TEXT), USER],
    "a paused server tool": [USER, assistant(TEXT, SERVER)],
    "a paused turn that went on": [
        USER,
        assistant(SERVER),
        assistant(SERVED, TEXT),
    ],
    "a mixed turn": [
        USER,
        assistant(SERVER, use()),
        user(result()),
        assistant(SERVED, TEXT),
    ],
    "a system message after the user": [USER, NOTE, NOTE, DONE, USER, NOTE],
    "a system message after results": [
        USER,
        assistant(use()),
        user(result()),
        NOTE,
        DONE,
    ],
    "a system message after a server result": [
        USER,
        assistant(SERVER, SERVED),
        NOTE,
        DONE,
    ],
    "a compaction first": [assistant(COMPACTED, TEXT), USER],
    "four markers, long ones first": [
        user(marked(TEXT, "1h"), marked(TEXT, "5m"), marked(TEXT)),
        DONE,
        user(marked(TEXT)),
    ],
    "a block type from the future": [user({"type": "hologram", "beam": 1})],
}
ANTHROPIC_ILLEGAL = [
    ("A0", [{"role": "tool", "content": "x"}]),
    ("A0", [user({"text": "x"})]),
    ("A0", [user({"type": "text"})]),
    ("A0", [user(use()), user(result())]),
    ("A0", [USER, assistant(result())]),
    ("A0", [user(THOUGHT)]),
    (
        "A0",
        [USER, assistant({"type": "thinking", "thinking": "no signature"})],
    ),
    ("A0", [USER, assistant(use() | {"input": "{}"}), user(result())]),
    ("A0", [USER, assistant(use()), user(result(content=[use()]))]),
    ("A0", [USER, assistant(use()), user(result(content=None))]),
    ("A1", []),
    ("A1", [DONE, USER]),
    ("A3", [USER, assistant(use())]),
    ("A3", [USER, assistant(use()), DONE]),
    ("A3", [USER, assistant(use()), USER]),
    ("A3", [USER, assistant(use("a"), use("b")), user(result("a")), DONE]),
    ("A4", [user(result())]),
    ("A4", [USER, assistant(use()), user(result()), DONE, user(result())]),
    ("A5", [USER, assistant(use()), user(TEXT, result())]),
    ("A5", [USER, assistant(use()), USER, user(result())]),
    (
        "A6",
        [
            USER,
            assistant(use("a"), use("b")),
            user(result("a")),
            user(result("b")),
        ],
    ),
    ("A7", [USER, assistant(use()), user(result(), result())]),
    (
        "A7",
        [
            USER,
            assistant(use()),
            user(result()),
            assistant(use()),
            user(result()),
        ],
    ),
    ("A8", [USER, assistant(use("t.1")), user(result("t.1"))]),
    ("A8", [USER, assistant(use(name="a b")), user(result())]),
    ("A8", [USER, assistant(use(name="x" * 129)), user(result())]),
    ("A9", [{"role": "user", "content": ""}]),
    ("A9", [{"role": "user", "content": " \n"}]),
    ("A9", [user()]),
    ("A9", [{"role": "user"}]),
    ("A9", [user(TEXT | {"text": "\t"})]),
    ("A9", [USER, assistant(TEXT | {"text": ""})]),
    ("A9", [USER, assistant(), USER]),
    ("A18", [USER, assistant(SERVER, TEXT), USER]),
    ("A18", [USER, assistant(SERVED)]),
    ("A18", [USER, assistant(SERVED, SERVER)]),
    ("A18", [USER, assistant(SERVER, use()), user(result()), DONE]),
    (
        "A19",
        [
            USER,
            assistant(SERVER, use()),
            user(result(), TEXT),
            assistant(SERVED),
        ],
    ),
    ("A20", [NOTE, USER]),
    ("A20", [USER, DONE, NOTE]),
    ("A20", [USER, assistant(SERVER, SERVED, TEXT), NOTE]),
    ("A20", [USER, NOTE, USER]),
    ("A20", [USER, assistant(use()), NOTE, user(result())]),
    ("A21", [user(*[marked(TEXT)] * 5)]),
    ("A21", [user(marked(TEXT), marked(TEXT, "1h"))]),
    ("A21", [USER, assistant(marked(THOUGHT))]),
    ("A21", [user(marked({"type": "text", "text": ""}))]),
    (
        "A21",
        [USER, assistant(use()), user(result(content=[marked(TEXT)] * 5))],
    ),
    ("A23", [user(TEXT | {"note": 1})]),
    ("A23", [USER | {"name": "bob"}]),
    (
        "A23",
        [USER, assistant(use()), user(result(content=[TEXT | {"note": 1}]))],
    ),
]


@pytest.mark.parametrize(
    "messages", ANTHROPIC_LEGAL.values(), ids=ANTHROPIC_LEGAL
)
def test_anthropic_takes_what_is_legal(messages):
    assert problems_of("anthropic", messages) == []


@pytest.mark.parametrize(("rule", "messages"), ANTHROPIC_ILLEGAL)
def test_anthropic_names_the_rule_that_is_broken(rule, messages):
    assert rule in rules("anthropic", messages)


def test_anthropic_splits_are_the_batch_rule_and_no_other():
    split = [
        USER,
        assistant(use("a"), use("b")),
        user(result("a")),
        user(result("b")),
    ]
    assert rules("anthropic", split) == {"A6"}


HEADS = [
    ("A9", {"system": [{"type": "text", "text": ""}]}),
    ("A0", {"system": 7}),
    ("A8", {"tools": [{"name": "a b"}]}),
    ("A21", {"system": [marked(TEXT)] * 5}),
    (
        "A21",
        {"system": [marked(TEXT)], "messages": [user(*[marked(TEXT)] * 4)]},
    ),
    (
        "A21",
        {
            "cache_control": {"type": "ephemeral"},
            "messages": [user(*[marked(TEXT)] * 4)],
        },
    ),
    (
        "A21",
        {
            "tools": [marked({"name": "x"})],
            "messages": [user(marked(TEXT, "1h"))],
        },
    ),
]


@pytest.mark.parametrize(("rule", "head"), HEADS)
def test_anthropic_head(rule, head):
    assert [
        p.rule for p in problems("anthropic", {"messages": [USER]} | head)
    ] == [rule]


def test_anthropic_head_that_is_legal():
    head = {
        "system": [marked(TEXT, "1h")],
        "tools": [marked({"name": "run"}, "1h")],
    }
    assert (
        problems(
            "anthropic",
            head | {"messages": [user(marked(TEXT), marked(TEXT))]},
        )
        == []
    )


def test_thinking_of_the_last_reply_is_compared_with_what_was_returned():
    other = THOUGHT | {"signature": "t"}
    history = [
        USER,
        assistant(THOUGHT, use("a")),
        user(result("a")),
        assistant(other, TEXT),
    ]
    bare = [*history[:3], assistant(TEXT)]

    def judged(messages):
        return [
            p.rule for p in problems_of("anthropic", messages, history=history)
        ]

    assert judged(history) == []
    assert judged([*history[:3], assistant(THOUGHT, TEXT)]) == ["A13"]
    assert judged(bare) == ["A13"]
    assert (
        judged([USER, assistant(use("a")), user(result("a")), assistant(TEXT)])
        == []
    )


# -- both -----------------------------------------------------------------------------------

BUILD = {"openai-chat": histories.chat, "anthropic": histories.anthropic}
both = pytest.mark.parametrize("format", BUILD)


@both
@given(turns=histories.TURNS)
def test_generated_histories_are_legal_and_so_is_every_prefix_before_a_reply(
    format, turns
):
    messages = BUILD[format](turns)
    checker = check_of(format)
    for at, message in enumerate(messages):
        if message["role"] == "assistant":
            assert checker.problems() == []
        checker.feed(message)
        assert checker.problems() == problems_of(format, messages[: at + 1])
    assert checker.problems() == []


def _batches(format, messages):
    """(index of the asking message, number of result messages behind it)."""
    for at, message in enumerate(messages):
        blocks = message.get("tool_calls") or message["content"]
        if message["role"] == "assistant" and any(
            "name" in b or "function" in b for b in blocks
        ):
            yield (
                at,
                (len(message["tool_calls"]) if format == "openai-chat" else 1),
            )


def drop_result(format, messages, at, results):
    if format == "openai-chat":
        del messages[at + 1]
    else:
        del messages[at + 1]["content"][0]


def drop_call_message(format, messages, at, results):
    del messages[at]


def drop_call(format, messages, at, results):
    calls = messages[at][
        "tool_calls" if format == "openai-chat" else "content"
    ]
    calls.pop()


def drop_all_results(format, messages, at, results):
    del messages[at + 1 : at + 1 + results]


def swap(format, messages, at, results):
    messages[at], messages[at + 1] = messages[at + 1], messages[at]


def double_result(format, messages, at, results):
    if format == "openai-chat":
        messages.insert(at + 1, copy.deepcopy(messages[at + 1]))
    else:
        messages[at + 1]["content"] *= 2


def rename_result(format, messages, at, results):
    if format == "openai-chat":
        messages[at + 1]["tool_call_id"] = "other"
    else:
        messages[at + 1]["content"][0]["tool_use_id"] = "other"


def double_call(format, messages, at, results):
    calls = messages[at][
        "tool_calls" if format == "openai-chat" else "content"
    ]
    calls.append(copy.deepcopy(calls[-1]))


def speak_between(format, messages, at, results):
    messages.insert(at + 1, {"role": "user", "content": "wait"})


def reply_between(format, messages, at, results):
    messages.insert(at + 1, {"role": "assistant", "content": "hm"})


def results_later(format, messages, at, results):
    messages += messages[at + 1 : at + 1 + results]
    del messages[at + 1 : at + 1 + results]


def cut_after_call(format, messages, at, results):
    del messages[at + 1 :]


def cut_before_results(format, messages, at, results):
    del messages[: at + 1]


def empty_reply(format, messages, at, results):
    if format == "openai-chat":
        messages[-1]["content"] = None
    else:
        messages[-1]["content"][0]["text"] = ""


def wrong_role(format, messages, at, results):
    messages[at + 1]["role"] = "assistant"


def broken_arguments(format, messages, at, results):
    if format == "openai-chat":
        messages[at]["tool_calls"][0]["function"]["arguments"] = None
    else:
        messages[at]["content"][-1]["input"] = "{}"


MUTATIONS = [
    drop_result, drop_call_message, drop_call, drop_all_results, swap, double_result,
    rename_result, double_call, speak_between, reply_between, results_later, cut_after_call,
    cut_before_results, empty_reply, wrong_role, broken_arguments,
]  # fmt: skip


@both
@pytest.mark.parametrize(
    "mutate", MUTATIONS, ids=lambda mutation: mutation.__name__
)
@given(turns=histories.TURNS, data=st.data())
def test_every_mutation_of_a_legal_history_is_caught(
    format, mutate, turns, data
):
    messages = BUILD[format]([*turns, ("ask", [["r", "s"]], "answer")])
    at, results = data.draw(st.sampled_from(list(_batches(format, messages))))
    mutate(format, messages, at, results)
    found = problems_of(format, messages)
    assert found
    assert all(p.where and p.sentence and p.remedy for p in found)


SHAPES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3)
    | st.sampled_from(["user", "assistant", "tool", "system", "text", "tool_use", "function"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(
            ["role", "content", "type", "text", "tool_calls", "id", "tool_call_id", "function",
             "tool_use_id", "input", "name", "cache_control", "source", "messages", "system",
             "tools"]
        ), inner, max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@both
@given(request=SHAPES)
def test_any_json_is_judged_without_an_exception(format, request):
    assert problems(format, request) or isinstance(request, dict)
    assert problems(format, {"messages": request}) or isinstance(request, list)
    problems(
        format, {"messages": [request], "tools": request, "system": request}
    )
    problems(
        format, {"messages": request, "cache_control": {}}, history=[DONE]
    )


def test_client_objects_are_dumped():
    anthropic = pytest.importorskip("anthropic")
    block = anthropic.types.ToolUseBlock(
        id="t1", name="run", input={}, type="tool_use"
    )
    messages = [
        USER,
        {"role": "assistant", "content": [block]},
        user(result()),
    ]
    assert problems("anthropic", {"messages": messages}) == []
    assert rules("anthropic", messages[:2]) == {"A3"}


def test_nothing_is_changed():
    messages = histories.anthropic([("a", [["b", ""]], "c")])
    before = copy.deepcopy(messages)
    problems("anthropic", {"messages": messages})
    assert messages == before


def test_an_unknown_format_says_which_are_known():
    with pytest.raises(
        ConfigError,
        match="'openai-chat', 'openai-responses', 'anthropic', 'gemini', 'bedrock-converse'",
    ):
        problems("telex", {"messages": []})
