"""What a message costs: a counter for text, and the framing a provider puts around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ullage.messages import (
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
from ullage.tokens import argument_text, counter_for, media_tokens, overhead_for

__all__ = ["Meter"]

MEDIA_BOUND_TOKENS = 5_000


class Meter:
    """Counts leaves, messages and heads for one model. No output of it is calibrated.

    Attributes:
        model: the model counted for.
        text: tokens of a text.
    """

    def __init__(self, model: str) -> None:
        self.model = model
        self.counter = counter_for(model)
        self.overhead = overhead_for(model)
        self.text = self.counter.count

    def leaf(self, leaf: Part | Content) -> int:
        """Tokens of one leaf, without the framing of its message."""
        match leaf:
            case Opaque(tokens=int(tokens)) | Reasoning(tokens=int(tokens)):
                return tokens
            case Text(text=text) | Opaque(text=text) | Reasoning(text=text):
                return self.text(text) if text else 0
            case ToolCall(arguments=arguments):
                return self.arguments(arguments)
            case Media():
                return media_tokens(
                    self.model, leaf.kind, leaf.mime, leaf.data, leaf.width, leaf.height
                )
            case _:
                return 0

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
        """Tokens of what stands outside the messages: system text and tools as JSON."""
        total = self.overhead.request
        tools = 0
        for text in texts:
            total += self.text(text)
            tools += text.startswith("{")
        return total + (self.overhead.tools + tools * self.overhead.tool if tools else 0)

    def bound(self, message: Message) -> int:
        """An upper bound of a message's tokens that needs no tokeniser."""
        total = self.framing(message)
        bound = self.counter.bound
        for part in message.parts:
            if isinstance(part, ToolResult):
                total += sum(_bound(content, bound) for content in part.content)
            else:
                total += _bound(part, bound)
        return total


def _bound(leaf: Part | Content, bound: Callable[[str], int]) -> int:
    match leaf:
        case Opaque(tokens=int(tokens)) | Reasoning(tokens=int(tokens)):
            return tokens
        case Text(text=text) | Opaque(text=text) | Reasoning(text=text):
            return bound(text)
        case ToolCall(arguments=arguments):
            return bound(arguments)
        case Media():
            return MEDIA_BOUND_TOKENS
        case _:
            return 0
