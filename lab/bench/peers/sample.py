"""Which runs: those large enough to need a policy, drawn by lot, the same lot every time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import msgspec

from ullage.core.errors import FormatError
from ullage.tools.replay.evidence.common import RunValues, common_of, counted
from ullage.tools.replay.gates import Judge
from ullage.tools.replay.readers import Run, read


def sample_of(
    paths: Iterable[Path], most: int, peak_tokens: int
) -> tuple[list[Run], frozenset[str]]:
    """Runs of OpenAI Chat messages, and the values that are no evidence in any of the paths.

    Args:
        paths: files or folders.
        most: how many runs to draw; by a hash of their ids, so that a longer list holds the
            shorter.
        peak_tokens: the least a drawn run's messages come to.
    """
    counts, large = list[RunValues](), list[Run]()
    for run in _chats(paths):
        found = counted(run)
        if found is not None:
            counts.append(found)
            if _is_larger(run, peak_tokens):
                large.append(run)
    return sorted(large, key=_lot)[:most], common_of(counts)


def _chats(paths: Iterable[Path]) -> Iterator[Run]:
    for path in paths:
        files = (
            sorted(f for f in path.rglob("*") if f.is_file())
            if path.is_dir()
            else [path]
        )
        for file in files:
            with suppress(FormatError):
                yield from (
                    run for run in read(file) if run.format == "openai-chat"
                )


def _is_larger(run: Run, tokens: int) -> bool:
    chars = len(msgspec.json.encode(run.messages))
    return chars > tokens and Judge().tokens(run.messages) >= tokens


def _lot(run: Run) -> bytes:
    return blake2b(run.id.encode(), digest_size=8).digest()
