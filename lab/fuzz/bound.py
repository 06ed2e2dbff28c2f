"""A small stand-in for a provider that binds reasoning to what stands before it (A15, A16).

It remembers for each thinking block it returned what had been sent before it, and looks
whether the same stands before it in what is sent now. What stands before the newest compaction
it does not read.
"""

from __future__ import annotations

from typing import Any

_THOUGHTS = ("thinking", "redacted_thinking")
_ON_BEDROCK = "reasoningContent"


class Bound:
    """The blocks returned so far, each with what stood before its message."""

    def __init__(self) -> None:
        self._before: dict[str, list[Any]] = {}

    def judge(self, shown: list[Any], reply: list[Any], grew: bool) -> bool:
        """Whether any thinking here stands behind something else than what it was made of.

        Args:
            shown: the view that is sent.
            reply: what came back, and what the caller put behind it.
            grew: the view is the last one with more behind it, and for the same model, so
                nothing can be wrong.
        """
        shown = _read(shown)
        before = [_without_thinking(message) for message in shown]
        wrong = not grew and any(
            self._before.get(seal, before[:at]) != before[:at]
            for at, message in enumerate(shown)
            for seal in _seals(message)
        )
        for message in reply:
            if message["role"] != "assistant":
                break
            for seal in _seals(message):
                self._before[seal] = list(before)
            before = _read([*before, _without_thinking(message)])
        return wrong


def _read(shown: list[Any]) -> list[Any]:
    """What of a view the provider reads: from the newest compaction on."""
    for at in reversed(range(len(shown))):
        content = shown[at]["content"]
        kinds = (
            [block.get("type") for block in content]
            if isinstance(content, list)
            else []
        )
        if "compaction" in kinds:
            newest = len(kinds) - 1 - kinds[::-1].index("compaction")
            return [
                {**shown[at], "content": content[newest:]},
                *shown[at + 1 :],
            ]
    return shown


def _seals(message: Any) -> list[str]:
    if isinstance(message["content"], str):
        return []
    return [_seal(b) for b in message["content"] if _is_thought(b)]


def _is_thought(block: Any) -> bool:
    return block.get("type") in _THOUGHTS or _ON_BEDROCK in block


def _seal(block: Any) -> str:
    """What the provider knows a thought by."""
    body = block.get(_ON_BEDROCK)
    if body is None:
        seal: str = block.get("signature") or block["data"]
        return seal
    return body.get("redactedContent") or body["reasoningText"]["signature"]


def _without_thinking(message: Any) -> Any:
    if isinstance(message["content"], str):
        return message
    kept = [block for block in message["content"] if not _is_thought(block)]
    return {**message, "content": kept}
