"""What a request costs that the proxy sends as it came: in receipts, metrics and the report."""

import asyncio
import http.client
import json
from contextlib import closing
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from tests.proxy.upstream import ask as ask_raw
from tests.proxy.upstream import proxy, settle, until, upstream
from tests.servers.behind import behind
from tests.servers.loops import request, user
from ullage import SqliteStore, Usage
from ullage.core.values.receipts import summed
from ullage.doors.host import cost_of
from ullage.doors.proxy.relayed import cost_in_usd, raw_cost_in_usd
from ullage.session.receipts import writer
from ullage.stores import receipts_of
from ullage.wires import FORMATS

PATH = "/anthropic/v1/messages"
ASK = {
    "model": "claude-opus-4-8",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "What is wrong?"}],
}
OFF = {
    "Content-Type": "application/json",
    "X-Ullage": "off",
    "x-api-key": "k",
    "User-Agent": "harness/1.0",
}


REPORTED = {"input_tokens": 900, "output_tokens": 40}
USAGE = Usage(fresh_tokens=900, output_tokens=40)


async def answer(_):
    """A reply of Anthropic's."""
    return web.json_response({"type": "message", "usage": REPORTED})


async def respond(_):
    """A reply of the Responses API."""
    usage = {"input_tokens": 70, "output_tokens": 3, "total_tokens": 73}
    return web.json_response({"object": "response", "usage": usage})


async def begin(request):
    """The first event of a stream; nothing follows until its reader is gone."""
    reply = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await reply.prepare(request)
    usage = {"input_tokens": 1_234, "output_tokens": 1}
    event = {"type": "message_start", "message": {"usage": usage}}
    line = f"event: message_start\ndata: {json.dumps(event)}\n\n"
    await reply.write(line.encode())
    await asyncio.sleep(60)
    return reply


def leave_early(url, body):
    """Ask for a stream, and hang up after its first bytes."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
    connection.request("POST", PATH, body, OFF)
    assert connection.getresponse().read1(20)
    connection.sock.close()
    connection.close()


def post(url, body, path=PATH, headers=OFF):
    """The status of an answer."""
    raw = json.dumps(body).encode()
    return ask_raw(url, "POST", path, raw, headers)[0]


def receipts(path, *by):
    """The sums of the receipts in a store."""
    with closing(SqliteStore(path)) as store:
        return summed(receipts_of(store).receipts(), by)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", sorted(FORMATS))
def test_what_asks_not_to_be_fitted_is_paid_for_and_saves_nothing(
    serve, tmp_path, wire, stream
):
    server, seen = serve(wire, lambda captured: "Done."), []
    # the vendor's own request, as its SDK sends it
    straight = behind(server, server.url, stream=stream)
    straight.ask(straight.client(), request(wire, [user(wire, "one")]))
    sent = server.requests[0]
    store = tmp_path / "kept.db"
    with proxy(server, seen.append, store=str(store)) as url:
        status, headers, _ = ask_raw(url, "POST", sent.path, sent.raw, OFF)
        settle(url)
        metrics = ask_raw(url, path="/_ullage/metrics")[2].decode()
    assert (status, headers["X-Ullage"]) == (200, "passed; asked")
    assert server.requests[1].raw == sent.raw
    (one,) = seen
    report = one.report
    assert (report.wire, report.passed) == (wire, "asked")
    assert report.model == sent.body.get("model", report.model) != ""
    sums = receipts(store, "model")[report.model,]
    assert (sums.requests, sums.sent) == (1, sums.raw)
    assert sums.sent_usd == sums.raw_usd
    # a stream of Chat Completions reports nothing where nobody asks it to
    is_reported = not (stream and wire == "openai-chat")
    assert sums.unreported == (not is_reported)
    assert sums.sent.prompt
    assert sums.sent.output
    if not is_reported:
        assert report.usage is None
        return
    usage = report.usage
    assert sums.sent.prompt == usage.total_tokens - usage.output_tokens
    assert cost_in_usd(one) == raw_cost_in_usd(one)
    assert sums.unpriced == (cost_in_usd(one) is None)
    assert sums.sent_usd == pytest.approx(cost_in_usd(one) or 0.0)
    assert "ullage_reported_tokens_total" in metrics
    assert f'wire="{wire}",done="passed"' in metrics


def test_it_is_listed_under_its_tenant_and_its_program(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "EVERY_S", 0.1)
    store = tmp_path / "kept.db"
    with (
        upstream(answer) as there,
        proxy(there, store=str(store), tenant="anna") as url,
    ):
        assert post(url, ASK) == 200
        settle(url)
        # written although no reply to a fitted request follows
        until(lambda: receipts(store, "tenant", "client"))
    rows = receipts(store, "tenant", "client")
    assert list(rows) == [("anna", "harness")]
    assert rows["anna", "harness"].sent_usd == cost_of(USAGE, ASK["model"])


def test_what_adds_to_a_history_elsewhere_is_paid_for_too(tmp_path):
    seen = []
    store = tmp_path / "kept.db"
    body = {"model": "gpt-5.4", "conversation": "c", "input": "Go on."}
    with (
        upstream(respond) as there,
        proxy(there, seen.append, store=str(store)) as url,
    ):
        path = "/openai/v1/responses"
        assert post(url, body, path, {"Content-Type": "application/json"})
        settle(url)
    assert seen[0].report.passed == "elsewhere"
    assert seen[0].report.model == "gpt-5.4"
    assert receipts(store)[()].sent.fresh == 70


def test_a_client_that_goes_away_has_spent_what_was_reported_until_then(
    tmp_path,
):
    store = tmp_path / "kept.db"
    seen = []
    with (
        upstream(begin) as there,
        proxy(there, seen.append, store=str(store)) as url,
    ):
        leave_early(url, json.dumps({**ASK, "stream": True}).encode())
        until(lambda: seen)
    assert seen[0].report.usage.fresh_tokens == 1_234
    assert receipts(store)[()].sent.fresh == 1_234


@pytest.mark.parametrize("status", [400, 429, 500])
def test_what_is_refused_costs_nothing(tmp_path, status):
    store = tmp_path / "kept.db"

    async def refuse(_):
        return web.json_response({"usage": REPORTED}, status=status)

    with upstream(refuse) as there, proxy(there, store=str(store)) as url:
        assert post(url, ASK) == status
        assert post(url, ASK, f"{PATH}/count_tokens") == status
        settle(url)
    assert not receipts(store)


def test_to_count_tokens_costs_nothing(tmp_path):
    store = tmp_path / "kept.db"
    with upstream(answer) as there, proxy(there, store=str(store)) as url:
        assert post(url, ASK, f"{PATH}/count_tokens") == 200
        settle(url)
    assert not receipts(store)
