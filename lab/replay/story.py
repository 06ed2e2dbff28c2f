"""The story of a run with what a policy to compare with asks of it: where it may be cut."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ullage.core.values.messages import Message, ToolCall, ToolResult
from ullage.tools.replay.evidence import demands
from ullage.wires import Format


class Story(demands.RunHistory):
    """The messages of a run, read once; it grows, so that any beginning can be judged.

    Attributes:
        results: where each tool result stands: message and part.
        origins: the index of each message in the recorded run; -1 if it was not recorded.
        said: the messages in which the user or the system says something.
    """

    def __init__(
        self,
        wire: Format,
        messages: Sequence[Any] = (),
        *,
        user_tools: tuple[str, ...] = (),
    ) -> None:
        """Begin with these messages."""
        self.results: list[tuple[int, int]] = []
        self.origins: list[int] = []
        self.said: list[int] = []
        self._recorded = 0
        self._fixed: list[bool] = []
        super().__init__(wire, user_tools=user_tools)
        self.extend(messages)

    def extend(
        self, messages: Sequence[Any], *, recorded: bool = True
    ) -> None:
        """Take in the next messages; not ``recorded`` are those put in by who judges."""
        for raw in messages:
            self.origins.append(self._recorded if recorded else -1)
            self._recorded += recorded
            self.add(raw)

    def add(self, raw: Any) -> Message:
        """Take in the next message."""
        index, message = len(self.messages), super().add(raw)
        if any(piece.by == "user" for piece in self.pieces[index]):
            self.said.append(index)
        kinds = (
            (number, isinstance(p, ToolResult))
            for number, p in enumerate(message.parts)
        )
        self.results += [
            (index, number) for number, is_result in kinds if is_result
        ]
        self._fixed.append(
            message.role in ("system", "user") and not message.results
        )
        return message

    def blocks(self, length: int) -> list[tuple[int, int]]:
        """The first ``length`` messages in runs that may be parted from one another.

        A call is never parted from its results, nor one message of a reply from the next.
        """
        cuts = [i for i in range(1, length) if self.transcript.may_split(i)]
        edges = [0, *cuts, length]
        return [(a, b) for a, b in pairwise(edges) if a < b]

    def is_fixed(self, index: int) -> bool:
        """Whether the user or the system says this, and nobody else anything in it."""
        return self._fixed[index]

    def call_for(self, index: int, part: int) -> ToolCall | None:
        """The call that the result in this part answers."""
        return self.transcript.call_for(index, part)
