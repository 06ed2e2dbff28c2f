"""Ollama's own chat: its window, calls without ids, images, and usage that is not told."""

import copy
import json
import re

import pytest

from tests import histories
from tests.wire import PNG
from tests.wires.rule_examples import BARE, GO, numbered, ran, runs
from ullage import Budget, ConfigError, Limits, Policy, Session, problems
from ullage.core.history.pairing import NAMELESS, Pairing
from ullage.wires import FORMATS, recognise

WIRE = FORMATS["ollama"]
LONG = "\n".join(f"line {n} of the log, as it came" for n in range(2_000))


def asked(*messages, model="qwen3:8b", **more):
    return {"model": model, "messages": list(messages), **more}


def fitted(request, **settings):
    session = Session(request["model"], format="ollama", **settings)
    return session, session.fit(request)


# ── the window ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("options", "limits", "window_tokens"),
    [
        (None, None, 4_096),
        ({"num_ctx": 32_768}, None, 32_768),
        ({"num_ctx": 32_768}, 8_000, 8_000),
        ({"num_ctx": 4_000}, 8_000, 4_000),
        (None, 8_000, 8_000),
        *(
            ({"num_ctx": odd}, None, 4_096)
            for odd in (0, -1, "8192", True, 8_192.0, None)
        ),
    ],
)
def test_the_window_is_that_of_the_server(options, limits, window_tokens):
    given = None if limits is None else Limits(window_tokens=limits)
    session, _ = fitted(asked(GO, options=options), limits=given)
    assert session.window.limit_tokens == window_tokens - window_tokens // 8


def test_a_window_that_nobody_tells_is_the_servers_default_and_told_of_once():
    """However much the model could hold: the server would cut the prompt, and say nothing."""
    session, _ = fitted(asked(GO, model="gpt-oss:20b"))
    session.fit(asked(GO, model="gpt-oss:20b"))
    (event,) = [
        event for event in session.events if event.kind == "unknown_model"
    ]
    assert (
        "4,096 tokens are assumed, as its server has without options.num_ctx"
        in event.why
    )
    hosted, _ = fitted(asked(GO, model="gpt-oss:120b-cloud"))
    assert hosted.window.limit_tokens > 100_000
    with pytest.raises(ConfigError, match="no window is known"):
        fitted(asked(GO), policy=Policy(name="strict", unknown_model="error"))
    fixed, _ = fitted(
        asked(GO), policy=Policy(name="own", unknown_model=16_000)
    )
    assert fixed.window.limit_tokens == 14_000


def test_a_request_may_ask_for_another_window_in_mid_conversation():
    session, _ = fitted(asked(GO, options={"num_ctx": 32_768}))
    session.fit(asked(GO, options={"num_ctx": 16_384}))
    assert session.window.limit_tokens == 16_384 - 2_048


def test_what_the_answer_may_take_is_kept_free_and_no_limit_is_none():
    for num_predict, kept in ((1_000, 1_000), (-1, 1_024), (-2, 1_024)):
        options = {"num_ctx": 8_192, "num_predict": num_predict}
        session, _ = fitted(asked(GO, options=options))
        assert session.window.limit_tokens == 8_192 - kept


def test_a_server_that_cuts_the_prompt_is_told_of_at_the_third_reply():
    session = Session(
        "qwen3:8b", format="ollama", limits=Limits(window_tokens=100_000)
    )
    turn = histories.Turn(
        calls=(histories.Call("bash", "a.py", "a line of output\n" * 900),)
    )
    for turns in (4, 5, 6):
        messages = histories.wire("ollama", [turn] * turns)
        session.fit(asked(*messages)).observe(
            {"prompt_eval_count": 4_096, "eval_count": 9}
        )
    events = [
        event for event in session.events if event.kind == "undercounted"
    ]
    assert len(events) == 1
    assert "num_ctx" in events[0].why


# ── calls and results ────────────────────────────────────────────────────────────────────


def test_a_result_that_names_nothing_answers_the_first_call_that_waits():
    pairs = Pairing()
    pairs.begin_message(is_model=True)
    pairs.add_call((0, 0), "", "run")
    pairs.add_call((0, 1), "call_1", "look")
    pairs.add_call((0, 2), "", "run")
    pairs.begin_message(is_model=False)
    assert pairs.add_result((1, 0), "call_1", "") == (0, 1)
    assert pairs.add_result((2, 0), NAMELESS) == (0, 0)
    assert pairs.add_result((3, 0), NAMELESS) == (0, 2)
    assert pairs.add_result((4, 0), NAMELESS) is None
    assert pairs.strays == {(4, 0)}


def test_nor_any_call_of_an_earlier_reply():
    pairs = Pairing()
    for at in (0, 2):
        pairs.begin_message(is_model=True)
        pairs.add_call((at, 0), "", "run")
        pairs.begin_message(is_model=False)
    assert pairs.add_result((3, 0), NAMELESS) == (2, 0)
    assert pairs.add_result((4, 0), NAMELESS) is None


@pytest.mark.parametrize("bare", [True, False])
def test_results_without_ids_are_cut_and_opened_and_stay_with_their_calls(
    bare,
):
    messages = histories.wire(
        "ollama",
        [histories.Turn(calls=(histories.Call("bash", f"{n}.py", f"{n}\n{LONG}"),) * 2)
         for n in range(3)],
        reuse_ids=bare,
    )  # fmt: skip
    request = asked(*messages, options={"num_ctx": 30_000})
    before = copy.deepcopy(request)
    _, view = fitted(request, recall=True)
    assert request == before
    assert problems(view, "ollama") == []
    assert len(json.dumps(view)) < len(json.dumps(request)) / 2
    assert [m.keys() for m in view["messages"]] == [m.keys() for m in messages]
    call = {
        "function": {
            "name": "get_continuation",
            "arguments": {"tool_call_id": "nothing"},
        }
    }
    result = view.recall(call)
    assert (result["role"], result["tool_name"]) == (
        "tool",
        "get_continuation",
    )
    assert "tool_call_id" not in result


BROKEN = {
    "no result": ([GO, runs("run", "look"), BARE], 1),
    "late": (
        [
            GO,
            runs("run", "look"),
            BARE,
            {"role": "user", "content": "x"},
            ran("look"),
        ],
        0,
    ),
    "of no call": ([GO, ran()], 0),
    "a second one, and it says nothing": ([GO, runs("run"), BARE, BARE], 0),
    "two of one name, the second first": (
        [
            GO,
            runs(numbered("a"), numbered("b")),
            ran(tool_call_id="b"),
            GO,
            BARE,
        ],
        0,
    ),
    "arguments as text": (
        [GO, runs(numbered("a", arguments='{"x": 1}')), ran()],
        0,
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_history_is_mended_and_every_text_kept(case):
    messages, interrupted = BROKEN[case]
    marked = [
        {**m, "content": f"what tool {n} gave"} if m["role"] == "tool" else m
        for n, m in enumerate(messages)
    ]
    assert problems(asked(*marked), "ollama")
    session, view = fitted(
        asked(*marked, options={"num_ctx": 8_000}), repair=True
    )
    assert problems(view, "ollama") == []
    shown = json.dumps(view)
    assert shown.count("was interrupted") == interrupted
    kept = {
        text
        for ref in refs_in(shown)
        for text in [session.store.get("", ref).text]
    }
    for message in marked:
        if message["role"] == "tool":
            assert message["content"] in shown or message["content"] in kept


def refs_in(text):
    return re.findall(r"\b[0-9a-z]{16}\b", text)


# ── images, and the objects of the client ────────────────────────────────────────────────


def test_a_text_in_the_place_of_an_image_stands_behind_what_is_said():
    raw = {"role": "user", "content": "Look.", "images": [PNG, "AAAA"]}
    message = WIRE.parse(raw, "m")
    one = WIRE.edit(raw, message, [(2, 0, "[the second]")])
    assert one == {
        "role": "user",
        "content": "Look.\n[the second]",
        "images": [PNG],
    }
    both = WIRE.edit(
        raw, message, [(2, 0, "[2]"), (0, 0, "See."), (1, 0, "[1]")]
    )
    assert both == {"role": "user", "content": "See.\n[1]\n[2]"}


def test_an_image_may_be_bytes_or_a_path_or_an_object(tmp_path):
    ollama = pytest.importorskip("ollama", reason="ollama is not installed")
    raw = {
        "role": "user",
        "images": [b"\0\0\0", tmp_path, ollama.Image(value=PNG)],
    }
    assert [part.data for part in WIRE.parse(raw, "m").parts] == [
        "AAAA",
        str(tmp_path),
        PNG,
    ]


def test_objects_of_the_client_are_messages_and_its_functions_are_tools():
    ollama = pytest.importorskip("ollama", reason="ollama is not installed")

    def look(path: str) -> str:
        """Look at a file."""

    call = ollama.Message.ToolCall(
        function=ollama.Message.ToolCall.Function(
            name="look", arguments={"path": "a"}
        )
    )
    said = ollama.Message(
        role="assistant", content="", thinking="hm", tool_calls=[call]
    )
    request = asked(
        GO,
        said,
        ran("look"),
        tools=[look],
        options=ollama.Options(num_ctx=9_000),
    )
    session, view = fitted(request, recall=False)
    assert view["messages"][1] is said
    assert view["tools"] == [look]
    assert session.window.limit_tokens < 9_000


# ── what it is told by ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "request_",
    [
        asked(GO, options={}),
        asked(GO, keep_alive="5m"),
        asked(GO, think=False),
        asked(GO, {"role": "assistant", "content": "x", "thinking": "y"}),
        asked({**GO, "images": [PNG]}),
        asked({"role": "tool", "tool_name": "run", "content": "x"}),
    ],
)
def test_a_request_that_shows_it_is_recognised(request_):
    assert recognise(request_).name == "ollama"


def test_one_that_does_not_is_of_chat_completions():
    tools = [{"type": "function", "function": {"name": "x"}}]
    assert recognise(asked(GO, tools=tools)).name == "openai-chat"
    assert recognise(asked(GO, model="gpt-4.1")).name == "openai-chat"


# ── what a reply reports ─────────────────────────────────────────────────────────────────


def test_a_prompt_that_is_not_counted_is_no_prompt_of_nothing():
    """Servers before 0.3 left the count out where the whole prompt was cached."""
    session, view = fitted(asked(GO), budget=Budget(tokens=10**6))
    view.observe(
        {"message": {"role": "assistant", "content": "x"}, "eval_count": 7}
    )
    assert session.usage.total_tokens == 0
    assert session.events[-1].kind == "unreported"
    session.fit(asked(GO))
    assert session.calls[-1].usage.output_tokens == 7


def test_a_model_that_is_loaded_says_nothing():
    loaded = {
        "model": "m",
        "message": {"role": "assistant", "content": ""},
        "done": True,
    }
    assert WIRE.reply({**loaded, "done_reason": "load"}) == []
    assert WIRE.usage({**loaded, "done_reason": "load"}) is None
    _, view = fitted(asked(keep_alive=0))
    assert view["messages"] == []
