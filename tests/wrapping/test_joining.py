"""A client that is wrapped in the middle of a conversation, by the vendors' own SDKs."""

import pytest

import ullage
from tests.servers import Call, Reply
from tests.servers.loops import loop
from ullage import Limits
from ullage.wires import FORMATS

TURNS = 24
ROOMY = Limits(window_tokens=1_000_000)
PAGE = "".join(f"line {n} of the page\n" for n in range(1_500))[:30_000]


def reads():
    calls = [
        Reply(calls=[Call("fetch", {"path": f"{n}.html"})])
        for n in range(TURNS)
    ]
    return [*calls, "Ok."]


def page(name, arguments):
    return f"{arguments['path']}\n{PAGE}"


def run(server, first, **settings):
    """Bytes of each request from joining on; the client is wrapped behind ``first`` turns."""
    plain = server.client()
    client = ullage.wrap(plain, limits=ROOMY, **settings)
    messages = (
        loop(server, None, page, client=plain, turns=first) if first else None
    )
    loop(server, None, page, client=client, messages=messages)
    sent = [len(request.raw) for request in server.requests[first:]]
    return sent, ullage.wrapped(client).reports


@pytest.mark.parametrize("format", tuple(FORMATS))
def test_it_sends_little_more_than_a_client_wrapped_from_the_start(
    serve, format
):
    """At whichever turn it was joined: tests/exchange/test_joining.py."""
    first = 3
    whole, _ = run(serve(format, reads(), strict=True), 0)
    sent, reports = run(serve(format, reads(), strict=True), first)
    assert sum(sent) <= 1.5 * sum(whole[first:])
    assert sent[-1] <= 1.5 * whole[-1]
    assert reports[-1].standing is None


def test_it_can_be_turned_off(serve):
    sent, reports = run(
        serve("anthropic", reads(), strict=True), 3, joins=False
    )
    assert sent[-1] > TURNS * len(PAGE)
    assert reports[-1].standing.reason == "joins"
