import ast
import copy
import importlib.util
import json
import re
from pathlib import Path

import pytest

from demo.agenda import AGENDA, QUICK, Question, task
from demo.evidence import text_of
from demo.investigator import (
    CONCLUSION,
    NOT_FOUND,
    Investigator,
    count_request,
)
from demo.loop import run
from demo.tools import SPECS, default_roots
from tests.demo.standin import CONTINUATION, GREP, Identity, Pruning

QUOTE = re.compile(r"^> (\S+?):(\d+): (.*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def whole(play):
    return play(QUICK, Identity())


def conclusion(history):
    return text_of(history[-1]).partition(CONCLUSION)[2].rpartition("\n")[0]


def source_line(path, number):
    root, _, rest = path.partition("/")
    text = (default_roots()[root] / rest).read_text(encoding="utf-8")
    return text.split("\n")[number - 1]


def defined_at(name):
    """Where Python itself says a name is defined: the file's end and the line."""
    module, _, symbol = name.rpartition(".")
    origin = importlib.util.find_spec(module).origin
    nodes = ast.walk(ast.parse(Path(origin).read_text(encoding="utf-8")))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    lines = [
        n.lineno for n in nodes if isinstance(n, kinds) and n.name == symbol
    ]
    return Path(origin), lines


def test_every_quote_of_a_whole_run_is_the_line_of_the_real_file(play):
    history, views = play(AGENDA, Pruning())
    said = "\n".join(text_of(m) for m in history if m["role"] == "assistant")
    quotes = QUOTE.findall(said)
    assert len(set(quotes)) >= 3 * len(AGENDA)
    assert NOT_FOUND not in said
    for path, number, text in quotes:
        assert text == source_line(path, int(number))
    assert 60 <= len(views) <= 150
    raw = {"messages": history}
    assert (
        count_request(raw, lambda texts: [len(t) // 5 for t in texts])
        > 300_000
    )


def test_the_definitions_are_where_python_finds_them(play):
    history, _ = play(AGENDA, Identity())
    sections = re.split(r"\n(?=\d+\. )", conclusion(history))[1:]
    assert len(sections) == len(AGENDA)
    for question, section in zip(AGENDA, sections, strict=True):
        path, number, text = QUOTE.search(section).groups()
        file, lines = defined_at(question.name)
        root, _, rest = path.partition("/")
        assert (default_roots()[root] / rest).resolve() == file.resolve()
        assert int(number) in lines
        assert question.symbol in text


def test_the_same_request_gets_the_same_reply_from_anyone(play, count):
    _, views = play(QUICK, Pruning())
    for view, reply in views:
        request = json.loads(json.dumps(view))
        before = copy.deepcopy(request)
        assert Investigator(QUICK, count).create(**request) == reply
        assert request == before


def test_a_reply_reports_what_it_was_sent(whole, count):
    view, reply = whole[1][3]
    assert reply["usage"]["prompt_tokens"] == count_request(view, count)
    assert reply["usage"]["completion_tokens"] > 0
    ids = [
        c["id"]
        for _, r in whole[1]
        for c in r["choices"][0]["message"].get("tool_calls", ())
    ]
    assert len(ids) == len(set(ids))


def test_some_steps_call_several_tools_at_once(whole):
    batches = [
        r["choices"][0]["message"].get("tool_calls", ()) for _, r in whole[1]
    ]
    assert max(map(len, batches)) >= 3


@pytest.mark.parametrize(
    ("settings", "asked"),
    [
        ({}, GREP),
        ({"grep": False}, CONTINUATION),
        ({"index": True, "keep": 12}, GREP),
        ({"index": True, "keep": 12, "grep": False}, CONTINUATION),
        ({"cut_chars": 6_000}, GREP),
    ],
)
def test_what_left_the_window_is_called_back_and_quoted_the_same(
    play, whole, settings, asked
):
    session = Pruning(**settings)
    history, _ = play(QUICK, session)
    assert conclusion(history) == conclusion(whole[0])
    calls = [c["function"] for m in history for c in m.get("tool_calls") or ()]
    assert any(call["name"] == asked for call in calls)
    assert session.recalls > 0


def placeholder_view(play, notice):
    """The last view of a run in which every tool result has become the same words."""
    _, views = play(QUICK[1:], Identity())
    view = copy.deepcopy(views[-1][0])
    for message in view["messages"]:
        if message["role"] == "tool":
            message["content"] = notice
    return view


def test_a_placeholder_is_followed_with_the_arguments_it_gives(play, count):
    notice = '[gone: get_continuation(tool_call_id="k3x", offset=70)]'
    view = placeholder_view(play, notice)
    view["tools"] = [*view["tools"], {"function": {"name": CONTINUATION}}]
    reply = Investigator(QUICK[1:], count).create(**view)
    (call, *_) = reply["choices"][0]["message"]["tool_calls"]
    assert call["function"]["name"] == CONTINUATION
    assert json.loads(call["function"]["arguments"]) == {
        "tool_call_id": "k3x",
        "offset": 70,
    }


def test_search_is_preferred_where_it_is_offered(play, count):
    view = placeholder_view(
        play, '[gone: get_continuation(tool_call_id="k3x", offset=0)]'
    )
    names = ({"function": {"name": name}} for name in (CONTINUATION, GREP))
    view["tools"] = [*view["tools"], *names]
    reply = Investigator(QUICK[1:], count).create(**view)
    (call, *_) = reply["choices"][0]["message"]["tool_calls"]
    assert call["function"]["name"] == GREP
    arguments = json.loads(call["function"]["arguments"])
    assert arguments == {"ref_id": "k3x", "pattern": "(def|class) JSONDecoder"}


def test_without_a_notice_the_file_is_read_again(play, count):
    view = placeholder_view(play, "[gone]")
    reply = Investigator(QUICK[1:], count).create(**view)
    names = {
        c["function"]["name"]
        for c in reply["choices"][0]["message"]["tool_calls"]
    }
    assert names == {"read_file"}


def test_progress_is_read_from_an_account_when_the_messages_are_gone(
    whole, count
):
    view, _ = whole[1][8]
    status_line = [
        text_of(m) for m in view["messages"] if m["role"] == "assistant"
    ][-1]
    account = {"role": "user", "content": f"Earlier, condensed: {status_line}"}
    short = {**view, "messages": [view["messages"][0], account]}
    reply = Investigator(QUICK, count).create(**short)
    said = reply["choices"][0]["message"]["content"]
    assert re.search(r"\[status call=9 ", said)


def test_a_name_that_is_nowhere_ends_the_question_without_evidence(play):
    history, _ = play(
        (Question("no.such_thing_here", "stdlib/json", "x"),), Identity()
    )
    assert CONCLUSION in text_of(history[-1])
    assert not QUOTE.search(text_of(history[-1]))


def test_evidence_that_cannot_be_had_is_said_to_be_missing(tools, count):
    """Every way fails, the file itself included: the run still ends, and says so."""

    class Shut:
        def run(self, call):
            asked = json.loads(call["function"]["arguments"])
            whole = (
                "end_line" not in asked
                or asked["start_line"] != asked["end_line"]
            )
            gone = {
                "role": "tool",
                "tool_call_id": call["id"],
                "content": "error: gone",
            }
            return tools.run(call) if whole else gone

    class Forgetful(Pruning):
        def recall(self, call):
            return {
                "role": "tool",
                "tool_call_id": call["id"],
                "content": "error: gone",
            }

    request = {
        "messages": [{"role": "user", "content": task(QUICK[1:])}],
        "tools": SPECS,
    }
    run(Investigator(QUICK[1:], count), Forgetful(keep=3), Shut(), request)
    assert len(request["messages"]) < 200
    assert f": {NOT_FOUND}" in text_of(request["messages"][-1])
