"""Summaries beside the requests: nobody waits for one, and nobody's key goes astray."""

import asyncio
import json
import socket
import threading
import time
from contextlib import closing, contextmanager, suppress
from itertools import count

import pytest
from aiohttp import web

from tests.proxy.upstream import ask, proxy, settle, until, upstream
from tests.session.test_ahead import FULLER, GOOD, TURNS, requests
from ullage import TeamBudget
from ullage.core.errors import ConfigError
from ullage.doors.proxy.config import Config, SummariserSettings, config_of
from ullage.doors.proxy.summarising import AnsweredCredentials
from ullage.stores import SqliteStore
from ullage.wires import FORMATS, WIRES, wire_named

OWN = "key-of-who-runs-the-proxy"
CLIENT = "key-of-a-client-0123456789"
PATH = "/v1/messages"
_IDS = count()
WINDOW = {"window_tokens": 20_000}


def message(text, tokens):
    return {
        "id": f"msg_{next(_IDS)}",
        "type": "message",
        "role": "assistant",
        "model": "claude-haiku-4-5",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": tokens, "output_tokens": 5},
    }


async def answers(request):
    if "stranger" in request.headers.get("x-api-key", ""):
        return web.json_response({"type": "error", "error": {}}, status=401)
    body = await request.read()
    return web.json_response(message("Yes.", len(body) // 4))


class Writer:
    """A provider of summaries that answers when it may."""

    def __init__(self):
        self.may, self.text = threading.Event(), GOOD

    async def __call__(self, request):
        while not self.may.is_set():  # noqa: ASYNC110 - it is set in another thread
            await asyncio.sleep(0.005)
        return web.json_response(message(self.text, 1_000))


@contextmanager
def world(
    monkeypatch, writer, *, tenant="", answer=answers, own=None, **settings
):
    """A proxy, what stands behind it, and who writes summaries."""
    monkeypatch.setenv("KEY_OF_SUMMARIES", OWN)
    with upstream(answer) as there, upstream(writer) as model:
        chosen = {
            "provider": "anthropic",
            "model": "claude-haiku-4-5",
            "key_env": "KEY_OF_SUMMARIES",
            "url": model.url,
        }
        at_once = settings.pop("at_once", 4)
        summariser = SummariserSettings(**(own or chosen), at_once=at_once)
        settings |= {"tenant": tenant, "summariser": summariser, **WINDOW}
        try:
            with proxy(there, **settings) as url:
                yield url, there, model
        finally:
            writer.may.set()


def send(url, request, key=CLIENT, path=PATH):
    body = json.dumps(request).encode()
    headers = {"x-api-key": key, "Content-Type": "application/json"}
    return ask(url, "POST", path, body, headers)


def until_begun(url, model, asked, **more):
    """Go on until a summary was asked for; how many requests that took."""
    for number, request in enumerate(asked, 1):
        send(url, request, **more)
        with suppress(AssertionError):
            _soon(lambda: model.requests)
            return number
    raise AssertionError("nobody was asked for a summary")


def until_shown(url, there, request):
    """Ask again until the summary is there."""

    def is_shown():
        send(url, request)
        return b"The loader is next." in there.requests[-1].body

    until(is_shown)


def _soon(holds):
    """A task of the same loop has begun by now, or has not been begun."""
    end_s = time.monotonic() + 0.05
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.002)


def test_no_client_waits_for_a_summary_and_the_next_request_shows_it(
    monkeypatch, tmp_path
):
    writer, asked = Writer(), requests("anthropic")
    store = f"{tmp_path}/kept.db"
    with world(monkeypatch, writer, store=store) as (url, there, model):
        number = until_begun(url, model, asked)
        status, *_ = send(url, asked[number])  # while it is under way
        assert (status, writer.may.is_set()) == (200, False)
        assert len(model.requests) == 1
        (question,) = model.requests
        assert question.header("x-api-key") == [OWN]
        assert question.header("x-ullage") == ["off"]
        assert CLIENT not in str(question)
        assert "tools" not in json.loads(question.body)
        writer.may.set()
        until_shown(url, there, asked[number])
        assert len(model.requests) == 1
    receipts = SqliteStore(store).receipts()
    sent = sum(receipt.sums.sent.fresh for receipt in receipts)
    seen = sum(len(request.body) // 4 for request in there.requests)
    assert sent == seen + 1_000  # what it cost, beside what clients sent


def test_one_that_is_late_is_dropped_and_the_conversation_goes_on(monkeypatch):
    writer, asked = Writer(), requests("anthropic", FULLER)
    with world(monkeypatch, writer) as (url, there, model):
        number = until_begun(url, model, asked)
        for request in asked[number : number + 12]:
            send(url, request)
        shown = json.loads(there.requests[-1].body)["messages"]
        assert "summarised here" in json.dumps(shown)
        writer.may.set()
        send(url, asked[number + 12])
        later = json.loads(there.requests[-1].body)["messages"]
        assert later[: len(shown) - 1] == shown[:-1]


def test_a_clients_own_credential_goes_to_its_own_upstream_alone(monkeypatch):
    asked = requests("anthropic")
    own = {"credential": "client", "model": "claude-haiku-4-5"}
    writer = Writer()
    writer.may.set()

    async def answer(request):
        body = json.loads(await request.read())
        is_summary = body["model"] == "claude-haiku-4-5"
        return await (writer if is_summary else answers)(request)

    with world(monkeypatch, writer, answer=answer, own=own) as given:
        url, there, model = given

        def questions():
            return [
                item for item in there.requests if b"haiku" in item.body[:200]
            ]

        for request in asked:
            send(url, request, path=f"{PATH}?beta=true")
            with suppress(AssertionError):
                _soon(questions)
                break
        (question,) = questions()
        assert question.target == f"{PATH}?beta=true"
        assert question.header("x-api-key") == [CLIENT]
        assert OWN not in str(there.requests)
        assert not model.requests


@pytest.mark.parametrize("tenant", [None, "all of us"])
def test_nothing_is_asked_for_whom_no_upstream_answers(monkeypatch, tenant):
    writer, asked = Writer(), requests("anthropic", FULLER)
    with world(monkeypatch, writer, tenant=tenant) as (url, _, model):
        for request in asked[:40]:
            assert send(url, request, key="of-a-stranger-0123")[0] == 401
        assert not model.requests
        until_begun(url, model, asked)  # a client's, at the same places


def test_one_worker_asks_for_no_more_than_it_may_at_once(monkeypatch):
    writer, asked = Writer(), requests("anthropic")
    other = requests("anthropic", [*reversed(TURNS)])
    with world(monkeypatch, writer, at_once=1) as (url, there, model):
        number = until_begun(url, model, asked)
        for request in other[: number + 3]:
            assert send(url, request)[0] == 200
        assert len(model.requests) == 1
        writer.may.set()
        until_shown(url, there, asked[number])  # then the place is free
        until_begun(url, Second(model), other[number + 3 :])


class Second:
    """What a model is asked beyond the first request."""

    def __init__(self, model):
        self._model = model

    @property
    def requests(self):
        return self._model.requests[1:]


def test_a_proxy_that_is_stopped_waits_for_no_summary(monkeypatch):
    writer, asked = Writer(), requests("anthropic")
    with world(monkeypatch, writer) as (url, _, model):
        until_begun(url, model, asked)
        began_s = time.monotonic()
    assert time.monotonic() - began_s < 20
    assert model.gone.wait(10)  # it hung up


def test_it_counts_towards_the_budget_of_its_team(monkeypatch):
    writer, asked = Writer(), requests("anthropic", FULLER)
    writer.may.set()
    team = TeamBudget(name="team", tokens=100_000_000)
    with world(monkeypatch, writer, budgets=[team]) as (url, there, model):
        until_begun(url, model, asked)
        sent = sum(len(request.body) // 4 + 5 for request in there.requests)
        settle(url)
        send(url, asked[0])  # what was counted meanwhile is booked with it
        settle(url)
        state = json.loads(ask(url, path="/_ullage/state")[2])
        (row,) = state["budgets"]
        again = len(there.requests[-1].body) // 4 + 5
        assert row["tokens"] == sent + again + 1_005
    spent_up = TeamBudget(name="team", tokens=1_000)
    with world(monkeypatch, writer, budgets=[spent_up]) as (url, _, model):
        for request in asked[:40]:
            send(url, request)
        assert not model.requests


def test_a_summariser_behind_this_very_proxy_is_asked_and_never_fitted(
    monkeypatch,
):
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        listen = f"127.0.0.1:{listening.getsockname()[1]}"
    writer, asked = Writer(), requests("anthropic", FULLER)
    own = {
        "provider": "anthropic",
        "model": "claude-haiku-4-5",
        "url": f"http://{listen}/anthropic",
    }
    with world(monkeypatch, writer, own=own, listen=listen) as (url, there, _):
        for request in asked[:45]:
            send(url, request)
        questions = [
            item for item in there.requests if b"haiku" in item.body[:200]
        ]
        assert questions
        assert not [item for item in questions if item.header("x-ullage")]
        metrics = ask(url, path="/_ullage/metrics")[2].decode()
        passed = f'done="passed; asked"}} {len(questions)}'
        assert passed in metrics or f'asked"}} {len(questions)}' in metrics


def test_a_provider_that_fails_is_asked_less_and_the_clients_go_on(
    monkeypatch,
):
    async def fails(request):
        return web.json_response({"error": "no"}, status=500)

    writer = Writer()
    with world(monkeypatch, fails_as(writer, fails)) as (url, there, model):
        for request in requests("anthropic", FULLER)[:60]:
            assert send(url, request)[0] == 200
        assert 1 <= len(model.requests) <= 8
        assert b"summarised here" in there.requests[-1].body


def fails_as(writer, answer):
    """A writer that answers like another."""

    class Failing:
        may = writer.may

        async def __call__(self, request):
            return await answer(request)

    return Failing()


@pytest.mark.parametrize(
    ("settings", "setting"),
    [
        ({}, "summariser.provider"),
        ({"provider": "smtp", "model": "x"}, "summariser.provider"),
        ({"provider": "openai"}, "summariser.model"),
        ({"credential": "client", "key_env": "X"}, "summariser.credential"),
        (
            {"provider": "openai", "model": "x", "url": "ftp://x"},
            "summariser.url",
        ),
        (
            {"provider": "openai", "model": "x", "at_once": 0},
            "summariser.at_once",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(settings, setting):
    with pytest.raises(ConfigError) as error:
        Config(summariser=SummariserSettings(**settings))
    assert error.value.setting == setting


def test_a_key_that_is_not_there_is_told_when_the_proxy_starts():
    settings = SummariserSettings(
        provider="openai", model="gpt-5-mini", key_env="NO_SUCH_KEY_HERE"
    )
    with (
        upstream() as there,
        pytest.raises(ConfigError, match="no variable"),
        proxy(there, summariser=settings),
    ):
        pass


def test_a_file_names_it(tmp_path):
    file = tmp_path / "proxy.toml"
    file.write_text('[summariser]\ncredential = "client"\nat_once = 2\n')
    settings = config_of(file).summariser
    assert (settings.credential, settings.at_once) == ("client", 2)


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_a_question_is_one_that_its_wire_answers(wire):
    http = wire_named(wire.name).http
    question = http.question(
        wire.example_model, "Sum up.", ["One.", "Two."], 100
    )
    route = http.route("POST", http.base + question.path, "")
    assert (route.wire, route.kind) == (wire.name, "create")
    assert len(FORMATS[wire.name].history(question.body)) >= 1
    for text in ("Sum up.", "One.", "Two."):
        assert text in json.dumps(question.body)
    streamed = {
        "gemini": "/v1beta/models/other:streamGenerateContent",
        "bedrock-converse": "/model/other/converse-stream",
    }.get(wire.name, http.base + question.path)
    assert http.path_beside(f"/x{streamed}", question) == (
        f"/x{http.base}{question.path}"
    )
    assert http.path_beside("/v1/embeddings", question) is None
    assert "a-key" in " ".join(http.key_headers("a-key").values())


def test_a_credential_is_forgotten_once_it_is_refused():
    answered = AnsweredCredentials()
    answered.judge("ann", 200)
    answered.judge("bob", 500)
    assert "ann" in answered
    assert "bob" not in answered
    answered.judge("ann", 401)
    assert "ann" not in answered
