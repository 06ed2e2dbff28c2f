"""Repairing where results are blocks of the one message behind their calls (Anthropic, Gemini)."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from ullage.core.history.pairing import At
from ullage.wires.repair.base import HistoryRepair


class BlockRepair(HistoryRepair):
    """A history whose messages hold calls, results and other things beside one another."""

    @abstractmethod
    def _is_result(self, block: Any) -> bool:
        """Whether a block is the result of a call."""

    @abstractmethod
    def _is_ours(self, block: Any) -> bool:
        """Whether a result is a placeholder of ours."""

    @abstractmethod
    def _fitted(self, here: At, block: Any) -> Any:
        """A block as it may stand where it is; None if it is left out."""

    @abstractmethod
    def _is_arranged(self, at: int, caller: int, blocks: list[Any]) -> bool:
        """Whether the results of a batch stand in a message as they should."""

    @abstractmethod
    def _arranged(
        self, at: int, caller: int, blocks: list[Any]
    ) -> list[list[Any]]:
        """The blocks of a message that holds results, as one message or several."""

    @abstractmethod
    def _with_blocks(self, at: int, blocks: list[Any]) -> Any:
        """A message with other blocks."""

    @abstractmethod
    def _emptied(self, at: int) -> list[Any]:
        """What becomes of a message that holds nothing."""

    def _content(self, at: int, caller: int | None) -> list[Any]:
        """See `HistoryRepair._content`: without the blocks that may not stand there."""
        raw_blocks = self.blocks[at] or []
        numbers = range(len(raw_blocks))
        staying = [
            (at, n) for n in numbers if not self._is_moved((at, n), caller)
        ]
        blocks = []
        for here in staying:
            block = self._fitted(here, self.block(here))
            if block is not None:
                blocks.append(block)
        is_whole = caller is None or self._is_arranged(at, caller, blocks)
        if is_whole and _are_same(blocks, raw_blocks):
            if raw_blocks:
                return [self.raws[at]]
            return self._emptied(at)
        messages = [blocks]
        if caller is not None:
            messages = self._arranged(at, caller, blocks)
        if any(messages):
            return [
                self._with_blocks(at, content)
                for content in messages
                if content
            ]
        has_moved = len(staying) < len(raw_blocks)
        if has_moved:
            return self.left(at)
        return self._emptied(at)

    def _is_moved(self, result: At, caller: int | None) -> bool:
        """Whether a block is a result that stands elsewhere, or one of ours left over."""
        block = self.block(result)
        if not self._is_result(block):
            return False
        call = self.pairs.call_by_result.get(result)
        if call is None:
            return self._is_ours(block)
        return call[0] != caller

    def is_whole(self, at: int, caller: int) -> bool:
        """Whether a message holds all results of a batch."""
        for call in self.batches[caller]:
            result = self.pairs.result_by_call.get(call)
            if result is None or result[0] != at:
                return False
        return True


def _are_same(blocks: list[Any], raw_blocks: list[Any]) -> bool:
    """Whether the blocks are the caller's own objects, all of them."""
    if len(blocks) != len(raw_blocks):
        return False
    return all(
        block is raw for block, raw in zip(blocks, raw_blocks, strict=True)
    )
