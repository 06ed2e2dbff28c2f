"""What a request costs besides its texts: roles, frames, ids, schemas.

What a message, a call and a result cost is measured: recorded sessions with reported usage, the
texts counted, what remains spread by least squares (``docs/tokens.md``). The ids of calls are
in it; they are not counted as text. What primes a reply and a schema costs is OpenAI's cookbook's
and Anthropic's documentation's; Google's are a guess from the two. Anthropic's signatures hold
the thought itself, as measured: 3.5 bytes a token up to Claude 4.6, whose vocabulary is an eighth
coarser than the next one's. OpenAI's own coding agent reckons with four bytes.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from ullage.tokens.models import family_of

__all__ = ["ANTHROPIC", "GOOGLE", "OPENAI", "Overhead", "argument_text", "overhead_for"]


class Overhead(Struct, frozen=True, kw_only=True):
    """Tokens around the texts of a request.

    Attributes:
        request: once a request, the priming of the reply included.
        message: each message.
        call: each tool call, its id included, besides name and arguments.
        result: each tool result, its id included, besides its content.
        tools: once, if there are tools.
        tool: each tool, besides the text of its schema.
        spoken_arguments: arguments are shown to the model as values, not as JSON text.
        sealed_bytes_per_token: bytes of sealed reasoning for each token of it.
    """

    request: int
    message: int
    call: int
    result: int
    tools: int
    tool: int
    spoken_arguments: bool
    sealed_bytes_per_token: float = 4.0


OPENAI = Overhead(request=3, message=4, call=6, result=6, tools=12, tool=7, spoken_arguments=False)
ANTHROPIC = Overhead(
    request=6,
    message=3,
    call=36,
    result=30,
    tools=500,
    tool=20,
    spoken_arguments=True,
    sealed_bytes_per_token=3.1,
)
GOOGLE = Overhead(request=3, message=4, call=8, result=8, tools=12, tool=7, spoken_arguments=False)


def overhead_for(model: str) -> Overhead:
    """The overhead of a model's family; OpenAI's for an unknown model."""
    family = family_of(model)
    if family.startswith("claude"):
        return ANTHROPIC
    return GOOGLE if family == "gemini" else OPENAI


def argument_text(arguments: str) -> str:
    """Arguments as Claude is shown them: the escapes of JSON undone.

    Code in an argument would otherwise be counted with a backslash before each quote and
    line end, which costs a third more.
    """
    if "\\" not in arguments:
        return arguments
    if "\\u" in arguments:
        arguments = _without_unicode_escapes(arguments)
    plain = arguments.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
    return plain.replace("\\\\", "\\")


def _without_unicode_escapes(arguments: str) -> str:
    """The same JSON with its characters written out; as it is if it is not JSON."""
    try:
        return msgspec.json.encode(msgspec.json.decode(arguments)).decode()
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return arguments
