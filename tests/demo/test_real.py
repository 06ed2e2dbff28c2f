"""A real model in the demo: the vendors' SDKs, and a scripted model behind each of them."""

import io
import json
import os
import re
from pathlib import Path

import pytest
from rich.console import Console

from demo import providers, real
from demo.agenda import QUICK
from demo.investigator import Investigator
from demo.tools import Tools
from tests.servers import Call, Refusal, Reply
from ullage import convert

WIRES = {
    "claude-sonnet-5": "anthropic",
    "gpt-5.4": "openai-responses",
    "gemini-3-pro-preview": "gemini",
    "qwen-of-ours": "openai-chat",
}
WINDOW_TOKENS = 12_000
AGENDA = QUICK[1:]
VARIABLES = (
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "DEMO_API_KEY",
    "GOOGLE_API_KEY",
)
KEY = "sk-of-nobody"


def plays(format, count):
    """The demo's investigator, as a provider of any wire."""
    investigator = Investigator(AGENDA, count)

    def reply(captured):
        request = convert(
            captured.body, "openai-chat", format=format, lossy="describe"
        )
        message = investigator.create(**request)["choices"][0]["message"]
        calls = [
            Call(
                call["function"]["name"],
                json.loads(call["function"]["arguments"]),
            )
            for call in message.get("tool_calls") or ()
        ]
        return Reply(message["content"], calls)

    return reply


@pytest.fixture
def asking(serve, monkeypatch, tmp_path, count, tools):
    """``asking(model, replies, …)``: the exit status, what is printed, the server."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(providers, "RETRIES", 0)

    def run(model, replies=None, *, key=KEY, on=None, **more):
        format = WIRES.get(model, "anthropic")
        server = on or serve(
            format,
            plays(format, count) if replies is None else replies,
            **more.pop("server", {}),
        )
        if key:
            for variable in set(VARIABLES[:4]) - set(os.environ):
                monkeypatch.setenv(variable, key)
        else:
            for variable in VARIABLES:
                monkeypatch.delenv(variable, raising=False)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
        out = io.StringIO()
        more.setdefault("window_tokens", WINDOW_TOKENS)
        status = real.ask(
            model,
            url=f"{server.url}/v1" if format == "openai-chat" else None,
            agenda=AGENDA,
            console=Console(file=out, width=80),
            count_tokens=count,
            tools=tools,
            **more,
        )
        return status, out.getvalue(), server

    return run


def table_of(text):
    return text[text.index("the same agent") :]


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def but_for_ids(table):
    """A provider numbers its calls by the requests it had, refused ones too."""
    return [
        line
        for line in table.split("\n")
        if not re.search("cache|cost|prompt", line)
    ]


@pytest.mark.parametrize("model", WIRES)
def test_a_model_of_each_wire_is_asked_and_its_recording_replays_offline(
    asking, model
):
    status, text, server = asking(model)
    assert status == 0
    assert re.search(r"calls of a recall tool +│ +0 │ +[1-9]", text)
    assert re.search(
        r"evidence in the last answer +│ +[34] of 4 │ +[234] of 4", text
    )
    assert re.search(r"quotes no tool returned +│ +0 │ +0", text)
    assert max(map(len, text.split("\n"))) <= 80
    path = Path("recordings", f"{model}.jsonl")
    assert KEY not in path.read_text()
    asked = len(server.requests)
    again, said, silent = asking(model, [], key="")
    assert (again, table_of(said)) == (0, table_of(text))
    assert not silent.requests
    if (
        server.format != "openai-chat"
    ):  # nor need it be said what was asked of whom
        assert asking(None, [], key="", recording=path)[:2] == (0, said)
    replies = [line for line in lines_of(path) if "reply" in line]
    assert len(replies) == asked


def test_without_a_key_nothing_is_asked_and_nothing_written(asking):
    status, text, server = asking("claude-sonnet-5", key="")
    assert status == 2
    assert "No key: set ANTHROPIC_API_KEY" in text
    assert not server.requests
    assert not Path("recordings").exists()


@pytest.mark.parametrize(
    "model", ["a-model-of-nobody", "", "my-claude-sonnet"]
)
def test_a_name_that_nobody_has_is_asked_of_nobody(asking, model):
    status, text, server = asking(model)
    assert status == 2
    assert "URL" in text
    assert not server.requests


@pytest.mark.parametrize("model", WIRES)
@pytest.mark.parametrize(
    ("code", "words"),
    [
        (404, "knows no model"),
        (401, "The key is refused"),
        (429, "Too many requests"),
    ],
)
def test_a_refusal_is_told_in_words_that_hold_no_key(
    asking, model, code, words
):
    error = {
        "message": f"no, not {KEY}",
        "code": code,
        "status": "NO",
        "type": "error",
    }
    status, text, server = asking(
        model, [Refusal(code, {"type": "error", "error": error})]
    )
    assert status == 1
    assert words in " ".join(text.split())
    assert str(code) in text
    assert KEY not in text
    assert "Traceback" not in text
    assert len(server.requests) == 1
    assert not Path("recordings").exists()


def test_a_provider_that_is_not_there_is_told(asking):
    status, text, _ = asking("http://127.0.0.1:9/v1")
    assert (status, text) == (
        1,
        "The provider was not reached. Is it up, and its URL right?\n",
    )


def test_a_server_of_ones_own_is_known_by_its_url(
    asking, serve, count, monkeypatch
):
    own = serve("openai-chat", plays("openai-chat", count))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-vendor")
    status, text, _ = asking(f"{own.url}/v1")
    assert status == 0
    assert text.startswith("gpt-4.1 answers")
    assert not [
        each
        for each in own.requests
        if "another" in each.headers["authorization"]
    ]


@pytest.fixture(scope="module")
def whole():
    return {}


@pytest.fixture
def uninterrupted(asking, whole):
    """What a run that nothing happened to prints, and how many requests it sent."""
    if not whole:
        status, text, server = asking("gpt-5.4", recording=Path("whole.jsonl"))
        assert status == 0
        whole.update(table=table_of(text), requests=len(server.requests))
    return whole


def test_a_run_that_was_refused_in_the_middle_goes_on_there(
    asking, uninterrupted, count
):
    play, refusals = plays("openai-responses", count), [5]

    def replies(captured):
        refusals[0] -= 1
        return (
            play(captured)
            if refusals[0]
            else Refusal(429, {"error": {"message": "slow down"}})
        )

    status, text, server = asking("gpt-5.4", replies)
    assert status == 1
    assert (
        "recordings/gpt-5.4.jsonl: the same command goes on there"
        in " ".join(text.split())
    )
    assert len(server.requests) == 5
    status, text, server = asking("gpt-5.4", on=server)
    assert status == 0
    assert but_for_ids(table_of(text)) == but_for_ids(uninterrupted["table"])
    assert "goes on in recordings/gpt-5.4.jsonl" in text
    assert len(server.requests) == uninterrupted["requests"] + 1


@pytest.mark.parametrize("torn", [0, 40])
def test_after_an_interrupt_it_goes_on_though_the_last_line_is_torn(
    asking, uninterrupted, monkeypatch, torn
):
    ran = []

    def interrupted(self, call):
        ran.append(call)
        if len(ran) == 4:
            raise KeyboardInterrupt
        return run(self, call)

    run = Tools.run
    with monkeypatch.context() as patch:
        patch.setattr(Tools, "run", interrupted)
        status, text, server = asking("gpt-5.4")
    assert status == 130
    assert "the same command goes on there" in " ".join(text.split())
    path = Path("recordings/gpt-5.4.jsonl")
    path.write_bytes(path.read_bytes()[: -torn or None])
    status, text, server = asking("gpt-5.4", on=server)
    assert status == 0
    assert but_for_ids(table_of(text)) == but_for_ids(uninterrupted["table"])
    asked_twice = 1 if torn else 0  # the line that was torn off was a reply
    assert len(server.requests) == uninterrupted["requests"] + asked_twice


def test_where_the_model_has_no_room_the_run_without_a_limit_ends_and_says_so(
    asking,
):
    status, text, _ = asking(
        "claude-sonnet-5", server={"limit_tokens": 10_000}
    )
    assert status == 0
    assert re.search(r"ended +│ too long, call \d+ │ +answered", text)
    again, said, server = asking("claude-sonnet-5", [], key="")
    assert (again, table_of(said)) == (0, table_of(text))
    assert not server.requests


def test_a_run_ends_when_it_has_cost_enough_and_goes_on_for_more(asking):
    status, text, first = asking("gpt-5.4", most_usd=0.01)
    assert status == 0
    assert text.count("stopped at $0.01") == 2
    status, text, second = asking("gpt-5.4")
    assert status == 0
    assert "stopped" not in text
    assert first.requests[1].raw not in [each.raw for each in second.requests]


def test_a_recording_of_something_else_is_left_alone(asking):
    assert asking("gpt-5.4", most_usd=0.01)[0] == 0
    before = Path("recordings/gpt-5.4.jsonl").read_bytes()
    status, text, server = asking("gpt-5.4", window_tokens=24_000)
    assert status == 2
    assert "recorded with window_tokens 12000, not 24000" in " ".join(
        text.split()
    )
    assert not server.requests
    assert Path("recordings/gpt-5.4.jsonl").read_bytes() == before


@pytest.mark.parametrize("holds", ["", "no json", '{"a": 1}\n', "[]\n"])
def test_what_is_no_recording_is_said_to_be_none(asking, holds):
    Path("other.jsonl").write_text(holds)
    status, text, _ = asking(None, recording=Path("other.jsonl"))
    assert (status, text) == (2, "other.jsonl is no recording of the demo.\n")


def test_replies_to_other_requests_than_this_version_sends_are_told(asking):
    assert asking("gpt-5.4", most_usd=0.01)[0] == 0
    path = Path("recordings/gpt-5.4.jsonl")
    path.write_text(
        re.sub(r'"of":"(\w)', r'"of":"other', path.read_text(), count=1)
    )
    status, text, _ = asking("gpt-5.4", [], most_usd=0.01, key="")
    assert status == 0
    assert (
        "1 recorded replies were given to other requests than this version"
        in text
    )
