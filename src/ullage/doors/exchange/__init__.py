"""One exchange with a provider's API, without the sockets: what a proxy and wrapped clients share.

    routes      which path is which wire, and what is asked there
    bodies      bytes to JSON and back
    parsed_body a body, parsed; the next one of its conversation is parsed from there on
    splices     a changed body, written around the messages that are the client's own
    body_cache  the newest body of each conversation, parsed
    headers     tools and system text, shared by the conversations of one tenant
    sse         server-sent events, in bytes cut anywhere
    lines       lines of JSON, in bytes cut anywhere
    additions   what is added to requests, and what of it was refused
    trials      the additions of one request, and what is left out of its next try
    refusals    additions that upstreams refuse, for all threads and loops
    exchange    the steps from a request's bytes to the answer's
    streamed    an answer that comes as events
    exchanges   what all exchanges of one door share: sessions, counts

A door brings the sockets. It gives the request to `Exchanges.of`, something that sends bytes
(`Upstream`), and runs the steps: with `drive` where it blocks, with `adrive` on an event loop.

    exchange = exchanges.of("POST", "/v1/messages", body, upstream)
    answer = drive(exchange.steps())           # sent, maybe twice; the reply's head is there
    while data := drive(answer.next()): ...    # b"" at its end
    drive(answer.close())                      # always, also of a client that went away
"""

from __future__ import annotations

from ullage.doors.exchange.exchange import Exchange
from ullage.doors.exchange.exchanges import Exchanges, conversation
from ullage.doors.exchange.routes import Route, route_of
from ullage.doors.exchange.values import (
    ClientAnswer,
    ExchangeCounts,
    ExchangeReport,
    Passed,
    Upstream,
    UpstreamReply,
)

__all__ = [
    "ClientAnswer",
    "Exchange",
    "ExchangeCounts",
    "ExchangeReport",
    "Exchanges",
    "Passed",
    "Route",
    "Upstream",
    "UpstreamReply",
    "conversation",
    "route_of",
]
