"""What a message costs: a counter for text, and the framing a provider puts around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import ceil

from ullage.tokens.estimate import byte_length
from ullage.tokens.media import media_tokens
from ullage.tokens.models import counter_for
from ullage.tokens.overhead import argument_text, overhead_for
from ullage.values.messages import (
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

__all__ = ["Meter"]


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
        self, leaf: Part | Content, text: Callable[[str], int], arguments: Callable[[str], int]
    ) -> int:
        """Tokens of one leaf whose texts are measured so."""
        match leaf:
            case Opaque(tokens=int(tokens)):
                return tokens
            case Reasoning():
                return text(leaf.text) + self._sealed(leaf)
            case Text(text=said) | Opaque(text=said):
                return text(said)
            case ToolCall():
                return arguments(leaf.arguments)
            case Media():
                return media_tokens(self.model, leaf, self.detail)
            case _:
                return 0

    def _sealed(self, thought: Reasoning) -> int:
        """Tokens of what is sealed and not shown: the provider reads the thought as it was."""
        if not thought.sealed_bytes:
            return 0
        unseen_bytes = thought.sealed_bytes - byte_length(thought.text)
        return ceil(max(unseen_bytes, 0) / self.overhead.sealed_bytes_per_token)

    def arguments(self, text: str) -> int:
        """Tokens of call arguments, given as JSON text."""
        return self.text(argument_text(text) if self.overhead.spoken_arguments else text)

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
        return total + (self.overhead.tools + tools * self.overhead.tool if tools else 0)

    def bound(self, message: Message) -> int:
        """An upper bound of a message's tokens that needs no tokeniser.

        Media and what is sealed are counted as they are: they need none.
        """
        total = self.framing(message)
        for part in message.parts:
            leaves = part.content if isinstance(part, ToolResult) else (part,)
            total += sum(map(self.leaf_bound, leaves))
        return total
