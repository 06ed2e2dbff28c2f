"""Budgets of teams at a door: what a request may come to, and how one that may not go is answered.

A request that is fitted reserves what its view says. One that is sent as it came is estimated by
its bytes, and its usage is read from its reply where that is plain.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from ullage import BudgetExceeded, FormatError, TeamBudgetExceeded, Usage
from ullage.doors.exchange import bodies
from ullage.doors.exchange.frames import EventTooLong
from ullage.doors.exchange.routes import Route
from ullage.doors.exchange.streamed import REPORTS, framing_of
from ullage.wires import FORMATS, Format, model_in, wire_named

if TYPE_CHECKING:
    from ullage import AsyncView, View

SPENDING_KINDS = frozenset(("create", "compact", "batch"))
"""Routes whose requests cost something; to count tokens is free."""

_SPENT = 402
_BYTES_PER_TOKEN = 4
_ANSWER_TOKENS = 4_096
"""The room for an answer where nothing tells it: it is corrected by what is reported."""


class UnreadRequest(NamedTuple):
    """What is known of a request that is sent as it came.

    Attributes:
        model: that it names.
        prompt_tokens: about how many.
        output_tokens: the room for its answer.
    """

    model: str
    prompt_tokens: int
    output_tokens: int


def unread_request(
    route: Route, body: bytes, size_bytes: int | None = None
) -> UnreadRequest:
    """What a request may come to that is sent as it came.

    Args:
        route: what is asked.
        body: the body, decoded; empty where it is not read.
        size_bytes: its length, where it is not read.
    """
    value = bodies.read(body) if body else None
    request = value if isinstance(value, dict) else {}
    model = route.model or model_in(request) or ""
    tokens = (size_bytes or len(body)) // _BYTES_PER_TOKEN
    output = None
    with suppress(FormatError):
        output = FORMATS[route.wire].head(request).asked_output_tokens
    return UnreadRequest(str(model), max(tokens, 1), output or _ANSWER_TOKENS)


class RefusedRequest(NamedTuple):
    """The answer to a request that goes over a budget.

    Attributes:
        status: of HTTP.
        body: in the provider's own form.
        headers: how long to wait, and whether to try again at all.
    """

    status: int
    body: bytes
    headers: Mapping[str, str]


def refused_request(wire: str, error: BudgetExceeded) -> RefusedRequest:
    """The answer to a request that goes over a budget.

    Args:
        wire: of the request.
        error: says which budget, and until when.
    """
    http = wire_named(wire).http
    if not isinstance(error, TeamBudgetExceeded):
        body = http.error(_SPENT, str(error))
        return RefusedRequest(_SPENT, bodies.write(body), {})
    status, body = http.spent(str(error), can_retry=error.can_retry)
    headers = {"X-Should-Retry": "true" if error.can_retry else "false"}
    if error.retry_s:
        headers["Retry-After"] = str(error.retry_s)
    return RefusedRequest(status, bodies.write(body), headers)


def with_sentence(
    view: View | AsyncView, outgoing: Mapping[str, Any], sentence: str
) -> Mapping[str, Any] | None:
    """A request with a sentence of the door's at its end, behind every cache marker.

    The next request comes without it, so all before it is found in the provider's cache.

    Args:
        view: what is sent.
        outgoing: the same with what else was added.
        sentence: for the model.

    Returns:
        The request; None where nothing may stand behind its last message, or the provider would
        keep the sentence in a history of its own.
    """
    wire: Format = view.wire
    if wire.previous(outgoing):
        return None
    messages = wire.wrap_up(outgoing, sentence)[wire.key]
    history = wire.history(outgoing)
    if len(messages) == len(history) and messages[-1] is history[-1]:
        return None
    return {**outgoing, wire.key: messages}


def usage_in(wire: str, content_type: str, body: bytes) -> Usage | None:
    """The usage that a reply reports, which nobody else reads; None: it reports none.

    Args:
        wire: of the request.
        content_type: of the reply.
        body: all of it, decoded.
    """
    format = FORMATS[wire]
    framing = framing_of(wire, content_type)
    if framing is None:
        value = bodies.read(body)
        events = value if isinstance(value, list) else [value]
        if isinstance(value, dict):
            return format.usage(value)
        return format.usage_of_stream(events)
    try:
        frames = framing.reader().feed(body)
    except EventTooLong:
        return None
    read = (
        bodies.read(frame.data)
        for frame in frames
        if frame.data and REPORTS in frame.data
    )
    return format.usage_of_stream(
        [event for event in read if isinstance(event, dict)]
    )
