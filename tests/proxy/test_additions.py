"""Additions on trial behind the proxy: what is refused, and where it is told."""

import json
import threading

import pytest

from tests.proxy.told import of
from tests.proxy.upstream import ask as ask_raw
from tests.proxy.upstream import proxy, settle
from tests.servers import Refusal
from tests.servers.behind import behind
from tests.servers.loops import request, user
from ullage.core.values.events import Event
from ullage.doors.exchange.additions import ADDITIONS
from ullage.doors.proxy.activity import Activity
from ullage.doors.proxy.logs import line_of
from ullage.doors.proxy.relayed import treatment_of
from ullage.tools.cli._tally import RunTally, summary
from ullage.wires import FORMATS

NO_TOOLS = {
    "error": {
        "message": "No tools beside your own.",
        "type": "invalid_request_error",
    }
}
NO_OPTIONS = {
    "detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs"}]
}
OURS = b"get_continuation"
PATHS = {"openai-chat": "/openai/v1/chat/completions"}


def rule(captured):
    return Refusal(400, NO_TOOLS) if OURS in captured.raw else "Done."


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", sorted(FORMATS))
def test_a_client_gets_its_reply_and_the_refusal_is_remembered(
    serve, wire, stream
):
    server, seen = serve(wire, rule, strict=True), []
    with proxy(server, seen.append) as url:
        through = behind(server, url, stream=stream)
        client = through.client()
        for text in ("one", "two"):
            assert "Done." in str(
                through.ask(client, request(wire, [user(wire, text)]))
            )
    assert [OURS in captured.raw for captured in server.requests] == [
        True,
        False,
        False,
    ]
    assert [each.report.tries for each in seen] == [2, 1]
    assert all("tools" in each.report.without for each in seen)


def test_the_header_the_log_and_the_page_tell_it(serve):
    server, seen = serve("openai-chat", rule), []
    with proxy(server, seen.append) as url:
        given = json.dumps(
            request("openai-chat", [user("openai-chat", "secret words")])
        )
        answers = [
            ask_raw(url, "POST", PATHS["openai-chat"], given.encode())
            for _ in range(2)
        ]
        settle(url)
        _, _, state = ask_raw(url, "GET", "/_ullage/state")
    assert [headers["X-Ullage"] for _, headers, _ in answers] == [
        "unchanged; without=tools"
    ] * 2
    lines = [line_of(each) for each in seen]
    assert [line["without"] for line in lines] == [("tools",)] * 2
    assert "secret words" not in json.dumps(lines)
    shown = Activity()
    for each in seen:
        shown.take(each)
    (one,) = shown.conversations
    assert one.without == ("tools",)
    assert [decision.kind for decision in one.decisions] == [
        "addition_refused"
    ]
    assert json.loads(state)["conversations"][0]["without"] == ["tools"]


def test_a_refusal_goes_down_byte_for_byte(serve):
    mine = {
        "error": {
            "message": "temperature is out of range",
            "type": "invalid_request_error",
        }
    }
    server = serve("openai-chat", lambda _: Refusal(400, mine))
    given = json.dumps(
        request("openai-chat", [user("openai-chat")]), indent=2
    ).encode()
    with proxy(server) as url:
        status, headers, body = ask_raw(
            url, "POST", PATHS["openai-chat"], given
        )
    assert (status, body) == (400, json.dumps(mine).encode())
    assert server.requests[1].raw == given
    assert headers["X-Ullage"] == "unchanged; without=tools"


def test_one_credential_switches_nothing_off_for_another(serve):
    """A neighbour whose own requests are refused, whatever they made the refusal say."""

    def no_tools_for_mallory(captured):
        is_mallory = "mallory" in captured.headers["authorization"]
        return rule(captured) if is_mallory else "Done."

    server = serve("openai-chat", no_tools_for_mallory)
    given = json.dumps(request("openai-chat", [user("openai-chat")])).encode()
    with proxy(server, tenant=None) as url:
        for name in ("mallory", "mallory", "ann"):
            ask_raw(
                url,
                "POST",
                PATHS["openai-chat"],
                given,
                {"Authorization": f"Bearer {name}"},
            )
    ours = [OURS in captured.raw for captured in server.requests]
    assert ours == [True, False, False, True]


def test_many_clients_at_once_each_get_their_reply(serve):
    server, statuses = serve("openai-chat", rule), []
    with proxy(server) as url:

        def run(number):
            given = json.dumps(
                request("openai-chat", [user("openai-chat", str(number))])
            ).encode()
            statuses.append(
                ask_raw(url, "POST", PATHS["openai-chat"], given)[0]
            )

        threads = [
            threading.Thread(target=run, args=(number,))
            for number in range(12)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert statuses == [200] * 12


def test_streams_go_without_the_options_that_their_server_refuses(serve):
    def no_options(captured):
        return (
            Refusal(422, NO_OPTIONS)
            if "stream_options" in captured.body
            else "Done."
        )

    server = serve("openai-chat", no_options)
    given = {**request("openai-chat", [user("openai-chat")]), "stream": True}
    with proxy(server) as url:
        for _ in range(3):
            raw = json.dumps(given).encode()
            status, headers, _ = ask_raw(
                url, "POST", PATHS["openai-chat"], raw
            )
            assert (status, headers["X-Ullage"]) == (
                200,
                "fitted; without=stream_options",
            )
    options = [
        "stream_options" in captured.body for captured in server.requests
    ]
    assert options == [True, False, False, False]


def test_the_summary_of_a_run_says_what_was_refused():
    event = Event(kind="addition_refused", where="tools", why="it was refused")
    shown = Activity()
    shown.take(of("a", 1.0, without=("tools",), events=(event,)))
    shown.take(of("b", 2.0, without=("tools", "stream_options")))
    tally = RunTally()
    tally.take(of("a", 1.0))
    lines = summary(tally, conversations=shown.conversations)
    assert sorted(lines[-2:]) == [
        "1 conversation sent without stream_options: the provider refuses it.",
        "2 conversations sent without tools: the provider refuses it.",
    ]


def test_the_header_names_each_addition():
    report = of("a", 1.0, without=ADDITIONS).report
    assert treatment_of(None, is_changed=True, report=report) == (
        "fitted; without=tools,stream_options,cache_control,budget"
    )
