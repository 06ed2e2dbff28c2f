"""What a reply reports of its tokens, in whatever form the caller holds it.

    a reply        a dict or the SDK's object, of any of the wires
    its events     the list of a stream's events, whole or as far as the stream came
    a raw response of ``with_raw_response``: what it parses to
    a Usage        as it is

Anything else is `Unreadable`: a stream that somebody else has to read, a reply without usage, a
value that is no reply. An unread reply is a call that was paid for anyway.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from ullage.core.history.raw import field
from ullage.core.tokens.catalog import lookup
from ullage.core.values.limits import Limits
from ullage.core.values.usage import Usage
from ullage.wires import Format
from ullage.wires.streams import stream_in

_ANY_TOKENS = 10_000_000
_LEAST_PART = 20
_SLACK_TOKENS = 4_000
"""A provider that clears old results by itself counts a part of the prompt, but no less of it than
this, where our estimate is that much too high."""
_ROUNDS = 100
"""More than any server runs its own tools, or samples again, within one reply."""


class Unreadable(Struct, frozen=True):
    """There is a reply, and no reading from it what it came to.

    Attributes:
        why: the reason, for an event. Never content.
        output_tokens: what is known of the reply anyway.
        input_tokens: what was reported of the prompt, where that is far less than was sent.
    """

    why: str
    output_tokens: int = 0
    input_tokens: int = 0


def usage_of(reply: Any, wire: Format) -> Usage | Unreadable:
    """What a reply reports, or why that cannot be read."""
    usage: Usage | Unreadable | None
    if isinstance(reply, (Usage, Unreadable)):
        usage = reply
    elif reply is None or isinstance(reply, (str, bytes, bool, int, float)):
        return Unreadable(
            f"a value of type {type(reply).__name__} is no reply"
        )
    elif isinstance(reply, (list, tuple)):
        usage = wire.usage_of_stream(reply)
    elif is_raw(reply):
        return _parsed(reply, wire)
    elif is_stream(reply):
        reason = (
            "a stream reports its usage to whoever reads it: give its events"
        )
        return Unreadable(reason)
    else:
        usage = wire.usage(reply)
    if isinstance(usage, Unreadable):
        return usage
    if usage is None:
        return Unreadable(
            f"a {type(reply).__name__} without usage that can be read"
        )
    return _counted(usage)


def plausible(
    usage: Usage,
    model: str,
    limits: Limits | None = None,
    *,
    estimated_tokens: int = 0,
) -> Usage | Unreadable:
    """A report as it is, or why it cannot be: no prompt and reply are longer than the window.

    Nor is a prompt a small part of what was sent, however it is counted.

    Where the provider billed more than the one prompt (`Usage.prompt_tokens`), it may have gone
    around so many times as a server does at most.

    Args:
        usage: what was reported.
        model: what was asked.
        limits: those of the session, if any. Where the model's own window is larger, that one
            holds, and where neither is known, one larger than any there is.
        estimated_tokens: our estimate of the prompt.
    """
    window_tokens, answer_tokens = _most_tokens(model, limits)
    round_tokens = window_tokens + answer_tokens
    rounds = 1 if usage.prompt_tokens is None else _ROUNDS
    if (
        usage.sent_tokens > round_tokens
        or usage.total_tokens > rounds * round_tokens
    ):
        return Unreadable(
            f"it reports {usage.total_tokens:,} tokens for a window of {window_tokens:,} and an "
            f"answer of {answer_tokens:,}, and is refused"
        )
    if 0 < usage.input_tokens * _LEAST_PART < estimated_tokens - _SLACK_TOKENS:
        return Unreadable(
            f"it reports {usage.input_tokens:,} tokens of a prompt of some "
            f"{estimated_tokens:,}, and is refused",
            output_tokens=max(usage.output_tokens, 0),
            input_tokens=usage.input_tokens,
        )
    return _counted(usage)


def _most_tokens(model: str, limits: Limits | None) -> tuple[int, int]:
    """The most tokens of a prompt and of an answer, as far as they are known."""
    info = lookup(model)
    window_tokens = limits.window_tokens if limits else 0
    if info.known:
        window_tokens = max(window_tokens, info.window_tokens)
    window_tokens = window_tokens or _ANY_TOKENS
    return window_tokens, info.max_output_tokens or window_tokens


def _counted(usage: Usage) -> Usage | Unreadable:
    """A report as it is, or why it is none."""
    if not usage.is_count:
        return Unreadable("it reports a negative count and is refused")
    if not usage.input_tokens:
        return Unreadable(
            "it reports no tokens of the prompt", usage.output_tokens
        )
    return usage


def _bodies(reply: Any) -> Sequence[Any]:
    """The replies in what `usage_of` takes: itself, or those in its events.

    boto3 has the id of a reply in an object beside it.
    """
    if not isinstance(reply, (list, tuple)):
        metadata = field(reply, "ResponseMetadata")
        if metadata is None:
            return (reply,)
        return (reply, metadata)
    bodies = list(reply)
    for event in reply:
        for name in ("message", "response"):
            body = field(event, name)
            if body is not None:
                bodies.append(body)
    return bodies


def is_stream(reply: Any) -> bool:
    """Whether this has to be read to its end before it says what it came to."""
    kind = type(reply)
    is_iterator = hasattr(kind, "__next__") or hasattr(kind, "__anext__")
    return is_iterator or stream_in(reply) is not None


def is_raw(reply: Any) -> bool:
    """Whether this is an SDK's raw response, with a reply in it."""
    return callable(getattr(reply, "parse", None)) and hasattr(
        reply, "http_response"
    )


def id_of(reply: Any) -> str:
    """The id a provider gave this reply, ``""`` if it has none."""
    for body in _bodies(reply):
        for name in ("id", "responseId", "response_id", "RequestId"):
            reply_id = field(body, name)
            if reply_id and isinstance(reply_id, str):
                return reply_id
    return ""


def left_out_of(reply: Any) -> Counter[str]:
    """How many blocks of reasoning the provider says it left out of the prompt, by its reasons.

    Claude and GPT from 6.2 on list it in ``input_transformations`` (`provider-rules` §0.1, R11);
    what was let through anyway is listed there too, and not counted.
    """
    counts: Counter[str] = Counter()
    for body in _bodies(reply):
        transformations = field(body, "input_transformations")
        if isinstance(transformations, (list, tuple)):
            # A union: several bodies of one reply may hold the same list.
            counts |= Counter(_reasons_in(transformations))
    return counts


def _reasons_in(transformations: Sequence[Any]) -> Iterator[str]:
    """The reason of each block that was left out."""
    for item in transformations:
        is_dropped = field(item, "type") == "thinking_dropped"
        if is_dropped or field(item, "action") == "removed":
            reason = field(item, "reason")
            yield reason if isinstance(reason, str) else "no reason given"


def _parsed(response: Any, wire: Format) -> Usage | Unreadable:
    try:
        reply = response.parse()
    except Exception as error:  # noqa: BLE001 - an SDK raises what it likes on a body it dislikes
        name = type(error).__name__
        return Unreadable(f"a raw response that does not parse ({name})")
    if inspect.iscoroutine(reply):
        reply.close()
        reason = (
            "a raw response that is parsed with await: give what it parses to"
        )
        return Unreadable(reason)
    return usage_of(reply, wire)
