"""What a message costs: a counter for text, and what a provider puts around it: roles, frames, ids.

What a message, a call and a result cost is measured: recorded sessions with reported usage, the
texts counted, what remains spread by least squares (``docs/tokens.md``). The ids of calls are
in it; they are not counted as text. What primes a reply and a schema costs is OpenAI's cookbook's
and Anthropic's documentation's; Google's are a guess from the two. Anthropic's signatures hold
the thought itself, as measured: 3.5 bytes a token up to Claude 4.6, whose vocabulary is an eighth
coarser than the next one's. OpenAI's own coding agent reckons with four bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from math import ceil

import msgspec
from msgspec import Struct

from ullage.core.tokens.estimate import byte_length
from ullage.core.tokens.media import media_tokens
from ullage.core.tokens.models import counter_for, family_of
from ullage.core.values.messages import (
    BlockFrame,
    Content,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)


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


_OPENAI = Overhead(
    request=3,
    message=4,
    call=6,
    result=6,
    tools=12,
    tool=7,
    spoken_arguments=False,
)
_ANTHROPIC = Overhead(
    request=6,
    message=3,
    call=36,
    result=30,
    tools=500,
    tool=20,
    spoken_arguments=True,
    sealed_bytes_per_token=3.1,
)
_GOOGLE = Overhead(
    request=3,
    message=4,
    call=8,
    result=8,
    tools=12,
    tool=7,
    spoken_arguments=False,
)


class Meter:
    """Counts leaves, messages and heads for one model. No output of it is calibrated.

    Attributes:
        model: the model counted for.
        detail: how finely the request has media looked at, where a medium does not say.
        text: tokens of a text.
        counts_as: what decides the tokens of texts and arguments: equal for equal counts.
    """

    def __init__(self, model: str, detail: str = "") -> None:
        self.model = model
        self.detail = detail
        self.counter = counter_for(model)
        self.overhead = overhead_for(model)
        self.text = self.counter.count
        self.counts_as = self.counter.name, self.overhead.spoken_arguments

    def leaf(self, leaf: Part | Content) -> int:
        """Tokens of one leaf, without the framing of its message."""
        return self._leaf(leaf, self.text, self.arguments)

    def leaf_bound(self, leaf: Part | Content) -> int:
        """An upper bound of a leaf's tokens that needs no tokeniser."""
        return self._leaf(leaf, self.counter.bound, self.counter.bound)

    def _leaf(
        self,
        leaf: Part | Content,
        text: Callable[[str], int],
        arguments: Callable[[str], int],
    ) -> int:
        """Tokens of one leaf whose texts are measured so."""
        match leaf:
            case Text(text=said):
                return text(said)
            case ToolCall():
                return arguments(leaf.arguments)
            case Reasoning():
                return text(leaf.text) + self._sealed(leaf)
            case (
                Opaque(text=said, tokens=tokens)
                | BlockFrame(text=said, tokens=tokens)
            ):
                return text(said) if tokens is None else tokens
            case Media():
                return media_tokens(self.model, leaf, self.detail)
            case _:
                return 0

    def _sealed(self, thought: Reasoning) -> int:
        """Tokens of what is sealed and not shown: the provider reads the thought as it was."""
        if not thought.sealed_bytes:
            return 0
        unseen_bytes = thought.sealed_bytes - byte_length(thought.text)
        return ceil(
            max(unseen_bytes, 0) / self.overhead.sealed_bytes_per_token
        )

    def arguments(self, text: str) -> int:
        """Tokens of call arguments, given as JSON text."""
        return self.text(
            argument_text(text) if self.overhead.spoken_arguments else text
        )

    def framing(self, message: Message) -> int:
        """Tokens a message costs beside its leaves: role, call and result frames, names."""
        total = self.overhead.message
        for part in message.parts:
            if isinstance(part, ToolCall):
                total += self.overhead.call + (len(part.name) + 3) // 4
            elif isinstance(part, ToolResult):
                total += self.overhead.result
        return total

    def message(self, text: str) -> int:
        """Tokens of a message that holds just this text."""
        return self.overhead.message + self.text(text)

    def head(self, texts: Iterable[str]) -> int:
        """Tokens of what is outside the messages: system text and tools as JSON."""
        total = self.overhead.request
        tools = 0
        for text in texts:
            total += self.text(text)
            tools += text.startswith("{")
        return total + (
            self.overhead.tools + tools * self.overhead.tool if tools else 0
        )

    def bound(self, message: Message) -> int:
        """An upper bound of a message's tokens that needs no tokeniser.

        Media and what is sealed are counted as they are: they need none.
        """
        total = self.framing(message)
        for part in message.parts:
            leaves = part.content if isinstance(part, ToolResult) else (part,)
            total += sum(map(self.leaf_bound, leaves))
        return total


@lru_cache(maxsize=256)
def meter_for(model: str, detail: str = "") -> Meter:
    """What counts for a model and a detail of media, made once."""
    return Meter(model, detail)


def overhead_for(model: str) -> Overhead:
    """The overhead of a model's family; OpenAI's for an unknown model."""
    family = family_of(model)
    if family.startswith("claude"):
        return _ANTHROPIC
    return _GOOGLE if family == "gemini" else _OPENAI


def argument_text(arguments: str) -> str:
    """Arguments as Claude is shown them: the escapes of JSON undone.

    Code in an argument would otherwise be counted with a backslash before each quote and
    line end, which costs a third more.
    """
    if "\\" not in arguments:
        return arguments
    if "\\u" in arguments:
        with suppress(
            msgspec.DecodeError, UnicodeError, RecursionError
        ):  # it may be no JSON
            arguments = msgspec.json.encode(
                msgspec.json.decode(arguments)
            ).decode()
    plain = (
        arguments.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
    )
    return plain.replace("\\\\", "\\")
