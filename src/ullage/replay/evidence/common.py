"""The stop list: values so common that their presence proves nothing.

A value found in more than 2 % of the other tasks is no evidence: a model knows it anyway, or
every history holds it (`metrics` M1, condition 4). Tasks are counted, not runs, since several
runs of one task share its files.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress

from ullage.errors import FormatError
from ullage.replay.evidence.atoms import atoms_of, tokens_in
from ullage.replay.evidence.story import said
from ullage.replay.readers import Run
from ullage.replay.reading import content_of, texts_of
from ullage.wires import FORMATS

__all__ = ["SHARE", "Census", "common_in", "task_of"]

SHARE = 0.02


def common_in(runs: Iterable[Run]) -> frozenset[str]:
    """The stop list of these runs, each of which is held in memory only while it is read."""
    census = Census()
    for run in runs:
        with suppress(FormatError, AttributeError, KeyError, TypeError):  # reported when replayed
            census.add(run)
    return census.common()


def task_of(run: Run) -> str:
    """What identifies the task of a run: as recorded, else what the user said first."""
    if run.task:
        return run.task
    users = (message for message in run.messages if message.get("role") == "user")
    return "\n".join(texts_of(content_of(next(users, {}))))


class Census:
    """Counts in how many tasks each value is found. Of a text only hashes are kept."""

    def __init__(self) -> None:
        """Nothing is counted yet."""
        self._used: set[str] = set()
        self._by_task: dict[str, list[array[int]]] = {}

    def add(self, run: Run) -> None:
        """Count one run: the values of its arguments, and what its texts hold."""
        wire = FORMATS[run.format]
        tokens: set[str] = set()
        for index, raw in enumerate(run.messages):
            message = wire.parse(raw, f"messages[{index}]")
            for call in message.calls:
                self._used.update(atom.text for atom in atoms_of(call.arguments))
            for piece in said(message):
                tokens.update(tokens_in(piece.plain))
        hashes = {hash(text) for token in tokens for text in _ends(token)}
        self._by_task.setdefault(task_of(run), []).append(array("q", hashes))

    def common(self, share: float = SHARE) -> frozenset[str]:
        """The values of arguments found in more than this share of the other tasks."""
        used = {hash(text): text for text in self._used}
        tasks: Counter[int] = Counter()
        for runs in self._by_task.values():
            tasks.update({value for values in runs for value in values if value in used})
        others = max(len(self._by_task) - 1, 1)
        return frozenset(used[value] for value, n in tasks.items() if (n - 1) / others > share)


def _ends(token: str) -> Iterator[str]:
    """The token, of a path every ending from a slash on, and of a dotted name every part."""
    yield token
    at = token.find("/")
    while at >= 0:
        yield token[at + 1 :]
        at = token.find("/", at + 1)
    if "." in token:
        yield from token[token.rfind("/") + 1 :].split(".")
