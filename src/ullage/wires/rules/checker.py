"""Is this request legal? The providers' wire rules, as one strict judge.

It is the judge of everything that cuts, so it shares no code with anything that cuts, but for
which result answers which call (`ullage.history.pairing`; the tests judge that a second time):
it reads plain JSON and knows nothing of edits, windows or policies.

    problems(format, request)      the whole request: head and messages
    problems_of(format, messages)  the messages alone
    Checker(format)                the same, one message at a time, for a growing history

The rules are data: `ullage.wires.rules.table` has what each asks, where it was read and why
some are not judged.

A history with an open call at its end is not legal: it cannot be sent. Consecutive messages
of one role are legal (A2, C9), a tool_result without content is (A10), reuse of a call id in
a later turn of Chat Completions or Responses is taken as legal, and so are a second output of
one call and an asynchronous call without any in Responses. A13, R4, R8, half of R3 and G8 need
to know what was returned: give the full history as ``history``. What depends on the model
(A11, A12, A24, A25, C11, C12, G7) is judged by `problems` alone, where a model is named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ullage.errors import ConfigError
from ullage.wires.anthropic import rules as _anthropic
from ullage.wires.anthropic import rules_extras as _anthropic_extras
from ullage.wires.anthropic import rules_head as _anthropic_head
from ullage.wires.gemini import rules as _gemini
from ullage.wires.openai_chat import rules as _openai_chat
from ullage.wires.openai_responses import rules as _openai_responses
from ullage.wires.rules.problem import Problem, plain, plain_message
from ullage.wires.rules.table import RULES, Rule

__all__ = ["RULES", "Checker", "Problem", "Rule", "problems", "problems_of"]

_Check: TypeAlias = _anthropic.Check | _openai_chat.Check | _openai_responses.Check | _gemini.Check
_CHECKS: dict[str, Callable[[], _Check]] = {
    "anthropic": _anthropic.Check,
    "openai-chat": _openai_chat.Check,
    "openai-responses": _openai_responses.Check,
    "gemini": _gemini.Check,
}
_HEADS = {
    "anthropic": _anthropic_head.head_problems,
    "openai-chat": _openai_chat.head_problems,
    "openai-responses": _openai_responses.head_problems,
    "gemini": _gemini.head_problems,
}
_AS_RETURNED = {
    "anthropic": _anthropic_extras.thinking_problems,
    "openai-responses": _openai_responses.returned_problems,
    "gemini": _gemini.signature_problems,
}
_SPARED = {"openai-responses": _openai_responses.spared, "gemini": _gemini.spared}
_KEYS = {"openai-responses": "input", "gemini": "contents"}


class Checker:
    """Judges a history one message at a time.

    ``feed`` costs the same whatever came before; ``problems`` may be asked after any message
    and says what a request that ends there would break.
    """

    def __init__(self, format: str) -> None:
        """Begin an empty history.

        Raises:
            ConfigError: no rules are known for ``format``.
        """
        if format not in _CHECKS:
            known = ", ".join(map(repr, _CHECKS))
            raise ConfigError("format", f"no rules are known for {format!r}", f"Use {known}.")
        self._check = _CHECKS[format]()

    def feed(self, message: Any) -> None:
        """Take the next message (a dict, or an object with ``model_dump``)."""
        self._check.feed(plain_message(message))

    def problems(self) -> list[Problem]:
        """What a request that ends with the message fed last would break, in order found."""
        return self._check.close()


def problems(format: str, request: Any, *, history: Sequence[Any] | None = None) -> list[Problem]:
    """Every rule that a request breaks.

    Args:
        format: ``"anthropic"``, ``"openai-chat"``, ``"openai-responses"`` or ``"gemini"``.
        request: the request as a dict, or an object with ``model_dump``; objects may stand
            anywhere inside. It is not changed.
        history: the messages as the provider returned them, if known: then thinking blocks
            (A13), reasoning items (R3, R4, R8) and signatures (G7, G8) are compared with it.

    Raises:
        ConfigError: no rules are known for ``format``.
    """
    body = request if isinstance(request, Mapping) else plain(request)
    if not isinstance(body, Mapping):
        body = {}
    where = _KEYS.get(format, "messages")
    messages = body.get(where)
    if where == "input" and type(messages) is str:
        messages = [{"role": "user", "content": messages}]
    if format == "gemini" and messages is not None and not isinstance(messages, (list, tuple)):
        messages = [messages]  # the SDK takes a content that stands alone
    found = problems_of(format, messages, history=history)
    head = {key: plain(value) for key, value in body.items() if key != where}
    spared = _SPARED[format](head) if format in _SPARED else ()
    found = [problem for problem in found if problem.rule not in spared]
    return _HEADS[format](head, messages) + found


def problems_of(
    format: str, messages: Any, *, history: Sequence[Any] | None = None
) -> list[Problem]:
    """Every rule that these messages break, in one pass. See `problems`."""
    checker = Checker(format)
    for message in messages if isinstance(messages, (list, tuple)) else ():
        checker.feed(message)
    found = checker.problems()
    if history is not None and format in _AS_RETURNED:
        found += _AS_RETURNED[format](messages, history)
    return found
