"""The estimate some documents name: four characters are one token.

Nothing of ours is decided by it; a preset may take it for its trigger where its document
does (DESIGN §10 "estimators"). Each text is rounded up by itself, and a message costs four
tokens more (three-layer document, "Token Estimator").
"""

from __future__ import annotations

from collections.abc import Mapping

from ullage.edits import Replace
from ullage.messages import Message, Opaque, Reasoning, Text, ToolCall
from ullage.transcript import leaves_of

__all__ = ["CHARS_PER_TOKEN", "MESSAGE_TOKENS", "message_tokens", "text_tokens"]

CHARS_PER_TOKEN = 4
MESSAGE_TOKENS = 4


def text_tokens(text: str) -> int:
    """Tokens of a text: a quarter of its characters, rounded up."""
    return -(-len(text) // CHARS_PER_TOKEN)


def message_tokens(
    message: Message, shown: Mapping[tuple[int, int], Replace], *, silent: bool = False
) -> int:
    """Tokens of a message as it is shown.

    Args:
        message: the original.
        shown: what replaces its leaves, by part and item index.
        silent: its reasoning is left out.
    """
    total = MESSAGE_TOKENS
    for number, item, leaf in leaves_of(message):
        edit = shown.get((number, item))
        if isinstance(leaf, ToolCall):
            total += text_tokens(leaf.name)
            total += text_tokens(leaf.arguments if edit is None else edit.text)
        elif edit is not None:
            total += text_tokens(edit.text)
        elif isinstance(leaf, (Text, Opaque)) or (isinstance(leaf, Reasoning) and not silent):
            total += text_tokens(leaf.text)
    return total
