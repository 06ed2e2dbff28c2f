"""Is this request legal? The providers' wire rules, as one strict judge.

It is the judge of everything that cuts, so it shares no code with anything that cuts, but for
which result answers which call (`ullage.history.pairing`; the tests judge that a second time) and
the tables of blocks: it reads plain JSON and knows nothing of edits, windows or policies.

    problems(format, request)      the whole request: head and messages
    problems_of(format, messages)  the messages alone
    check_of(format)               the same, one message at a time, for a growing history

The rules are data: `ullage.wires.rules.table` has what each asks and where it was read.

A history with an open call at its end is not legal: it cannot be sent. Consecutive messages
of one role are legal (A2, C9), a tool_result without content is (A10), reuse of a call id in
a later turn of Chat Completions or Responses is taken as legal, and so are a second output of
one call and an asynchronous call without any in Responses. A13, R4, R8, half of R3 and G8
compare with what was returned, which a request does not show. What depends on the model
(A11, A12, A24, A25, C11, C12, G7) is judged by `problems` alone, where a model is named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ullage.errors import ConfigError
from ullage.wires.anthropic import rules as _anthropic
from ullage.wires.gemini import rules as _gemini
from ullage.wires.openai_chat import rules as _openai_chat
from ullage.wires.openai_responses import rules as _openai_responses
from ullage.wires.rules.problem import Check, Problem, Wire, plain

_CHECKS: Mapping[str, Callable[[Wire | None], Check]] = {
    "anthropic": _anthropic.Check,
    "openai-chat": _openai_chat.Check,
    "openai-responses": _openai_responses.Check,
    "gemini": _gemini.Check,
}


def check_of(format: str, head: Wire | None = None) -> Check:
    """A judge of an empty history: `Check.feed` takes a message, at the same cost whatever came
    before, and `Check.problems` may be asked after any.

    Args:
        format: ``"anthropic"``, ``"openai-chat"``, ``"openai-responses"`` or ``"gemini"``.
        head: the request without its messages, as plain JSON, to be judged with them.

    Raises:
        ConfigError: no rules are known for ``format``.
    """
    if format not in _CHECKS:
        known = ", ".join(map(repr, _CHECKS))
        raise ConfigError("format", f"no rules are known for {format!r}", f"Use {known}.")
    return _CHECKS[format](head)


def problems(format: str, request: Any) -> list[Problem]:
    """Every rule that a request breaks. See `fed`."""
    return fed(format, request).problems()


def problems_of(format: str, messages: Any) -> list[Problem]:
    """Every rule that these messages break, in one pass. See `check_of`."""
    return _fed(check_of(format), messages).problems()


def fed(format: str, request: Any) -> Check:
    """The judge of a request, which has taken in all its messages.

    Args:
        format: see `check_of`.
        request: the request as a dict, or an object with ``model_dump``; objects may stand
            anywhere inside. It is not changed.

    Raises:
        ConfigError: no rules are known for ``format``.
    """
    body = request if isinstance(request, Mapping) else plain(request)
    if not isinstance(body, Mapping):
        body = {}
    where = check_of(format).key
    messages = body.get(where)
    if where == "input" and type(messages) is str:
        messages = [{"role": "user", "content": messages}]
    if format == "gemini" and messages is not None and not isinstance(messages, (list, tuple)):
        messages = [messages]  # the SDK takes a content that stands alone
    head = {key: plain(value) for key, value in body.items() if key != where}
    return _fed(check_of(format, head), messages)


def _fed(check: Check, messages: Any) -> Check:
    for message in messages if isinstance(messages, (list, tuple)) else ():
        check.feed(message)
    return check
