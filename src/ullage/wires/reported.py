"""What a reply reports of its tokens, in whatever form the caller holds it.

    a reply        a dict or the SDK's object, of any of the wires
    its events     the list of a stream's events, whole or as far as the stream came
    a raw response of ``with_raw_response``: what it parses to
    a Usage        as it is

Anything else is `Unreadable`: a stream that somebody else has to read, a reply without usage, a
value that is no reply. An unread reply is a call that was paid for all the same.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from ullage.core.history.raw import field
from ullage.core.tokens.catalog import lookup
from ullage.core.values.limits import Limits
from ullage.core.values.usage import Usage
from ullage.wires import Format
from ullage.wires.base import stream_in

_ANY_TOKENS = 10_000_000
_LEAST_PART, _SLACK_TOKENS = 20, 4_000
"""A provider that clears old results by itself counts a part of the prompt, but no less of it than
this, where our estimate is that much too high."""
_ROUNDS = 100
"""More than any server runs its own tools, or samples again, within one reply."""


class Unreadable(Struct, frozen=True):
    """There is a reply, and no reading from it what it came to.

    Attributes:
        why: the reason, for an event. Never content.
        output_tokens: what is known of the reply all the same.
        input_tokens: what was reported of the prompt, where that is far less than was sent.
    """

    why: str
    output_tokens: int = 0
    input_tokens: int = 0


def usage_of(reply: Any, wire: Format) -> Usage | Unreadable:
    """What a reply reports, or why that cannot be read."""
    if isinstance(reply, (Usage, Unreadable)):
        found: Usage | Unreadable | None = reply
    elif reply is None or isinstance(reply, (str, bytes, bool, int, float)):
        return Unreadable(f"a value of type {type(reply).__name__} is no reply")
    elif isinstance(reply, (list, tuple)):
        found = wire.usage_of_stream(reply)
    elif is_raw(reply):
        return _parsed(reply, wire)
    elif is_stream(reply):
        return Unreadable(
            "a stream reports its usage to whoever reads it: give its events"
        )
    else:
        found = wire.usage(reply)
    if isinstance(found, Unreadable):
        return found
    if found is None:
        return Unreadable(f"a {type(reply).__name__} without usage that can be read")
    return _counted(found)


def plausible(
    usage: Usage, model: str, limits: Limits | None = None, *, estimated_tokens: int = 0
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
    info, given_tokens = lookup(model), limits.window_tokens if limits else 0
    window_tokens = (
        max(given_tokens, info.window_tokens if info.known else 0) or _ANY_TOKENS
    )
    answer_tokens = info.max_output_tokens or window_tokens
    most = window_tokens + answer_tokens
    rounds = 1 if usage.prompt_tokens is None else _ROUNDS
    if usage.sent_tokens > most or usage.total_tokens > rounds * most:
        return Unreadable(
            f"it reports {usage.total_tokens:,} tokens for a window of {window_tokens:,} and an "
            f"answer of {answer_tokens:,}, and is refused"
        )
    if 0 < usage.input_tokens * _LEAST_PART < estimated_tokens - _SLACK_TOKENS:
        why = f"it reports {usage.input_tokens:,} tokens of a prompt of some {estimated_tokens:,}"
        output_tokens = max(usage.output_tokens, 0)
        return Unreadable(f"{why}, and is refused", output_tokens, usage.input_tokens)
    return _counted(usage)


def _counted(usage: Usage) -> Usage | Unreadable:
    """A report as it is, or why it is none."""
    if not usage.is_count:
        return Unreadable("it reports a negative count and is refused")
    if not usage.input_tokens:
        return Unreadable("it reports no tokens of the prompt", usage.output_tokens)
    return usage


def _bodies(reply: Any) -> Sequence[Any]:
    """The replies in what `usage_of` takes: itself, or those in its events.

    boto3 has the id of a reply in an object beside it.
    """
    if not isinstance(reply, (list, tuple)):
        beside = field(reply, "ResponseMetadata")
        return (reply,) if beside is None else (reply, beside)
    inner = (field(event, name) for event in reply for name in ("message", "response"))
    return [*reply, *(body for body in inner if body is not None)]


def is_stream(reply: Any) -> bool:
    """Whether this has to be read to its end before it says what it came to."""
    kind = type(reply)
    is_iterator = hasattr(kind, "__next__") or hasattr(kind, "__anext__")
    return is_iterator or stream_in(reply) is not None


def is_raw(reply: Any) -> bool:
    """Whether this is an SDK's raw response, with a reply in it."""
    return callable(getattr(reply, "parse", None)) and hasattr(reply, "http_response")


def id_of(reply: Any) -> str:
    """The id a provider gave this reply, ``""`` if it has none."""
    names = ("id", "responseId", "response_id", "RequestId")
    found = (field(body, name) for body in _bodies(reply) for name in names)
    return next((name for name in found if isinstance(name, str) and name), "")


def left_out_of(reply: Any) -> Counter[str]:
    """How many blocks of reasoning the provider says it left out of the prompt, by its reasons.

    Claude and GPT from 6.2 on list it in ``input_transformations`` (`provider-rules` §0.1, R11);
    what was let through all the same is listed there too, and not counted.
    """
    total: Counter[str] = Counter()
    for listed in (field(body, "input_transformations") for body in _bodies(reply)):
        if isinstance(listed, (list, tuple)):
            total |= Counter(
                reason
                if isinstance(reason := field(each, "reason"), str)
                else "no reason given"
                for each in listed
                if field(each, "type") == "thinking_dropped"
                or field(each, "action") == "removed"
            )
    return total


def _parsed(response: Any, wire: Format) -> Usage | Unreadable:
    try:
        reply = response.parse()
    except Exception as error:  # noqa: BLE001 - an SDK raises what it likes on a body it dislikes
        return Unreadable(
            f"a raw response that does not parse ({type(error).__name__})"
        )
    if inspect.iscoroutine(reply):
        reply.close()
        return Unreadable(
            "a raw response that is parsed with await: give what it parses to"
        )
    return usage_of(reply, wire)
