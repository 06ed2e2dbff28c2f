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
    def _arranged(self, at: int, caller: int, blocks: list[Any]) -> list[list[Any]]:
        """The blocks of a message that holds results, as one message or several."""

    @abstractmethod
    def _with_blocks(self, at: int, blocks: list[Any]) -> Any:
        """A message with other blocks."""

    @abstractmethod
    def _emptied(self, at: int) -> list[Any]:
        """What becomes of a message that holds nothing."""

    def _content(self, at: int, caller: int | None) -> list[Any]:
        """Without what may not stand there."""
        old = self.blocks[at] or []
        kept = [(at, n) for n in range(len(old)) if not self._is_moved((at, n), caller)]
        fitted = [self._fitted(here, self.block(here)) for here in kept]
        new = [block for block in fitted if block is not None]
        is_same = len(new) == len(old) and all(
            a is b for a, b in zip(new, old, strict=True)
        )
        if is_same and (caller is None or self._is_arranged(at, caller, new)):
            return [self.raws[at]] if old else self._emptied(at)
        made = [new] if caller is None else self._arranged(at, caller, new)
        if any(made):
            return [self._with_blocks(at, blocks) for blocks in made if blocks]
        return self._emptied(at) if len(kept) == len(old) else self.left(at)

    def _is_moved(self, result: At, caller: int | None) -> bool:
        """Whether a block is a result that stands elsewhere, or one of ours left over."""
        if not self._is_result(self.block(result)):
            return False
        call = self.pairs.calls.get(result)
        return self._is_ours(self.block(result)) if call is None else call[0] != caller

    def is_whole(self, at: int, caller: int) -> bool:
        """Whether a message holds all results of a batch."""
        return all(
            self.pairs.answers.get(call, (-1, 0))[0] == at
            for call in self.batches[caller]
        )
