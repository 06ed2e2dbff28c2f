"""The stop list: values so common that their presence proves nothing.

A value found in more than 2 % of the other tasks is no evidence: a model knows it anyway, or
every history holds it (`metrics` M1, condition 4). Tasks are counted, not runs, since several
runs of one task share its files.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import islice

from msgspec import Struct

from ullage.core.errors import FormatError
from ullage.tools.replay.engines import Engine, LocalEngine, WorkerDied
from ullage.tools.replay.evidence.atoms import atoms_of, tokens_in
from ullage.tools.replay.evidence.demands import texts_of
from ullage.tools.replay.readers import Run
from ullage.wires import FORMATS

SHARE = 0.02


def common_in(
    runs: Iterable[Run], engine: Engine | None = None
) -> frozenset[str]:
    """The stop list of these runs, each of which is held in memory only while it is read."""
    outcomes = (
        outcome
        for _, outcome in (engine or LocalEngine()).map(
            counted, ((None, run) for run in runs)
        )
    )
    return common_of(
        outcome
        for outcome in outcomes
        if outcome is not None and not isinstance(outcome, WorkerDied)
    )


def task_of(run: Run) -> str:
    """What identifies the task of a run: as recorded, else what the user said first."""
    if run.task:
        return run.task
    users = (
        message for message in run.messages if message.get("role") == "user"
    )
    messages = [
        FORMATS[run.format].parse(message, "messages")
        for message in islice(users, 1)
    ]
    pieces = (piece for message in messages for piece in texts_of(message))
    return "\n".join(piece.text for piece in pieces if piece.by == "user")


class RunValues(Struct, frozen=True):
    """What one run says of the values in it.

    Attributes:
        task: its task.
        used: the values of its arguments.
        hashes: what its texts hold, hashed alike in every process.
    """

    task: str
    used: frozenset[str]
    hashes: array[int]


def counted(run: Run) -> RunValues | None:
    """Count one run: the values of its arguments, and what its texts hold; None if it is broken."""
    wire = FORMATS[run.format]
    used = set[str]()
    tokens = set[str]()
    try:
        for index, raw in enumerate(run.messages):
            message = wire.parse(raw, f"messages[{index}]")
            for call in message.calls:
                used.update(atom.text for atom in atoms_of(call.arguments))
            for piece in texts_of(message):
                tokens.update(tokens_in(piece.plain))
    except (FormatError, AttributeError, KeyError, TypeError):
        return None  # reported when it is replayed
    texts = {text for token in tokens for text in _ends(token)}
    return RunValues(
        task_of(run), frozenset(used), array("q", map(_hash, texts))
    )


def _hash(text: str) -> int:
    encoded = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(
        blake2b(encoded, digest_size=8).digest(), "little", signed=True
    )


def common_of(counts: Iterable[RunValues]) -> frozenset[str]:
    """The values of arguments found in too many of the tasks. Of a text only hashes are kept."""
    used: dict[int, str] = {}
    by_task: dict[str, list[array[int]]] = {}
    for values in counts:
        used |= {_hash(text): text for text in values.used}
        by_task.setdefault(values.task, []).append(values.hashes)
    tasks: Counter[int] = Counter()
    for runs in by_task.values():
        tasks.update(
            {value for hashes in runs for value in hashes if value in used}
        )
    other_tasks = max(len(by_task) - 1, 1)
    return frozenset(
        used[value]
        for value, n in tasks.items()
        if (n - 1) / other_tasks > SHARE
    )


def _ends(token: str) -> Iterator[str]:
    """The token, of a path every ending from a slash on, and of a dotted name every part."""
    yield token
    at = token.find("/")
    while at >= 0:
        yield token[at + 1 :]
        at = token.find("/", at + 1)
    if "." in token:
        yield from token[token.rfind("/") + 1 :].split(".")
