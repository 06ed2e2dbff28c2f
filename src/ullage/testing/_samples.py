"""What the contracts are tried with: odd texts, records of real batches, a clock, threads."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from ullage import Batch, Edit, Output, Record
from ullage.core.history.ledger import Ledger
from ullage.core.values.effects import KINDS
from ullage.core.values.receipts import (
    Receipt,
    ReceiptKey,
    ReceiptTotals,
    TokenCounts,
)
from ullage.stores import DAY_S, receipts_of, ref_of

T = TypeVar("T")
E = TypeVar("E", bound=Exception)

ODD = (
    "",
    "plain",
    "naïve 😀\u0301",
    "\ud83d",
    "\ude00\ud83d",
    "a\x00b",
    "\r\n\u2028\x85",
    "x" * 70_000,
)
"""Texts that have been lost or changed by one store or another."""

_MIB = 1 << 20
HUGE = "".join(
    ("x\n" * _MIB)[: _MIB - 2] + edge for edge in ("ab", "a\r", "\n👩")
)
HUGE += ("\u200d👧" + "é" * _MIB)[: _MIB - 1] + "\ud83d\ude00"
"""Chunks of a MiB end within its CR LF, its joined emoji and its pair of surrogates."""

TENANTS = ("", "a", "ab", "a\x00b", "\ud800", "é")
KEYS = (b"", b"\x00" * 16, b"\xff" * 16, b"k")


class Clock:
    """A clock that moves on demand, for stores that take ``clock``.

    Attributes:
        now_s: the time in seconds since 1970.
    """

    def __init__(self) -> None:
        self.now_s = 1_800_000_000.0

    def __call__(self) -> float:
        """Seconds since 1970."""
        return self.now_s

    def days_pass(self, days: float) -> None:
        """Move the clock.

        Args:
            days: how far, in days; back if negative.
        """
        self.now_s += days * DAY_S


class Contract:
    """A contract: tests of an object that is opened again for each of them.

    Attributes:
        clock: what `open` gives to a store whose time can be set.
    """

    clock = Clock()

    def open(self) -> Any:
        """Open a new and empty object. After its test it is closed, if it has ``close``.

        Raises:
            NotImplementedError: the contract does not say how.
        """
        raise NotImplementedError

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """An open object for the length of a test."""
        opened = self.open()
        try:
            yield opened
        finally:
            if hasattr(opened, "close"):
                opened.close()


def output(text: str, kind: str = "text") -> Output:
    """An output of this text, under the ref that its content gives."""
    return Output(
        ref_of(text, kind), text, "block" if kind == "block" else "text"
    )


def batch(key: bytes, n: int, data: bytes) -> Record:
    """A record that is written once."""
    return Record(key, "batch", n, data)


def decided(key: bytes, *edits: Edit, n: int = 0) -> Record:
    """The record of a real batch, as a session writes it."""
    record = Ledger().with_batch(
        key, Batch("prune", "default", edits, 100, 10)
    )[1]
    return Record(key, "batch", n, record.data)


def random_commit(
    rng: random.Random,
) -> tuple[str, list[Output], list[Record]]:
    """A tenant, up to four outputs and up to four records at places of their own.

    Every second record is a batch, however many kinds there are: that two commits meet at one place
    is what most broken stores are found by.
    """
    records = {}
    for _ in range(rng.randrange(5)):
        kind = rng.choice(
            ["batch", rng.choice([*KINDS, "of a later version"])]
        )
        n = rng.randrange(2) if kind == "batch" else 0
        name = rng.choice(["", "", "a model", "\ud800"])
        record = Record(
            rng.choice(KEYS), kind, n, rng.choice([b"", b"1", b"2"]), name
        )
        records[record.place] = record
    texts = [
        *ODD[:-1],
        *(chr(rng.randrange(1, 0x3000)) * rng.randrange(30) for _ in range(3)),
    ]
    outputs = [
        output(rng.choice(texts), rng.choice(["text", "block"]))
        for _ in range(rng.randrange(5))
    ]
    return (
        rng.choice([*TENANTS, "a", "a", "a"]),
        outputs,
        list(records.values()),
    )


def smallest(
    steps: Sequence[T], fails: Callable[[Sequence[T]], bool]
) -> Sequence[T]:
    """The fewest of these steps that still fail, each left out in turn.

    Args:
        steps: steps that fail.
        fails: whether some steps fail.
    """
    at = len(steps)
    while at:
        at -= 1
        without = (*steps[:at], *steps[at + 1 :])
        if fails(without):
            steps = without
    return steps


def expect(got: object, expected: object, promise: str) -> None:
    """Compare what came out with what should.

    Raises:
        AssertionError: they differ; it names the promise and shows both.
    """
    if got != expected:
        raise AssertionError(
            f"{promise}\n  wanted {expected!r:.600}\n  got    {got!r:.600}"
        )


def fails_with(kind: type[E], call: Callable[[], object], promise: str) -> E:
    """The error of this kind that a call raises.

    Raises:
        AssertionError: it returned; names the promise and what came back.
    """
    try:
        returned = call()
    except kind as error:
        return error
    raise AssertionError(
        f"{promise}: wanted {kind.__name__}, and it returned {returned!r:.200}"
    )


def in_threads(count: int, work: Callable[[int], object]) -> list[str]:
    """The errors of threads that begin at the same moment.

    Args:
        count: how many threads.
        work: what each of them calls with its number.
    """
    together = threading.Barrier(count)

    def one(me: int) -> None:
        together.wait(30)
        work(me)

    with ThreadPoolExecutor(count) as pool:
        errors = [
            job.exception(60)
            for job in [pool.submit(one, me) for me in range(count)]
        ]
    return [repr(error) for error in errors if error is not None]


def receipt(
    writer: str, requests: int, *, day: str = "2026-11-27", tenant: str = ""
) -> Receipt:
    """A receipt of a process, with sums that follow from the number of its requests."""
    sums = ReceiptTotals(
        requests=requests,
        conversations=1,
        sent=TokenCounts(fresh=requests, read=2 * requests, output=7),
        raw=TokenCounts(fresh=3 * requests, written=1),
        recalls=2,
        recall_tokens=9,
        sent_usd=0.25 * requests,
        raw_usd=0.5 * requests,
        recall_usd=0.125,
        counted=requests,
        counted_tokens=300,
        counted_raw_tokens=310,
    )
    place = ReceiptKey(
        day, tenant, "gpt-4.1", "agent", is_held_out=writer == "b"
    )
    return Receipt(
        key=place,
        writer=writer,
        sums=sums,
        is_open=False,
        written_s=1_795_000_000,
    )


def store_receipts(store: Any) -> Any:
    """Every receipt that a store keeps."""
    return receipts_of(store).receipts()
