"""What a message costs: a counter for text, and the framing a format puts around it."""

from __future__ import annotations

from collections.abc import Callable

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
from ullage.tokens import Counter, media_tokens

__all__ = ["Meter"]

MESSAGE_TOKENS = 4
PART_TOKENS = 4
CALL_TOKENS = 8
MEDIA_BOUND_TOKENS = 5_000


class Meter:
    """Counts leaves, messages and heads for one model."""

    def __init__(self, model: str, counter: Counter) -> None:
        self.model = model
        self.counter = counter
        self.text = counter.count

    def leaf(self, leaf: Part | Content) -> int:
        """Tokens of one leaf, without the framing of its message."""
        match leaf:
            case Text(text=text) | Opaque(text=text) | Reasoning(text=text):
                return self.text(text) if text else 0
            case ToolCall(arguments=arguments):
                return self.text(arguments)
            case Media():
                return media_tokens(
                    self.model, leaf.kind, leaf.mime, leaf.data, leaf.width, leaf.height
                )
            case _:
                return 0

    def framing(self, message: Message) -> int:
        """Tokens a message costs beside its leaves: role, part and call markers, names."""
        total = MESSAGE_TOKENS
        for part in message.parts:
            if isinstance(part, ToolCall):
                total += CALL_TOKENS + len(part.name) // 3
            elif isinstance(part, ToolResult):
                total += PART_TOKENS
        return total

    def message(self, text: str) -> int:
        """Tokens of a message that holds just this text."""
        return MESSAGE_TOKENS + self.text(text)

    def bound(self, message: Message) -> int:
        """An upper bound of a message's tokens that needs no tokeniser."""
        total = self.framing(message)
        bound = self.counter.bound
        for part in message.parts:
            if isinstance(part, ToolResult):
                total += sum(self._bound(content, bound) for content in part.content)
            else:
                total += self._bound(part, bound)
        return total

    @staticmethod
    def _bound(leaf: Part | Content, bound: Callable[[str], int]) -> int:
        match leaf:
            case Text(text=text) | Opaque(text=text) | Reasoning(text=text):
                return bound(text)
            case ToolCall(arguments=arguments):
                return bound(arguments)
            case Media():
                return MEDIA_BOUND_TOKENS
            case _:
                return 0
