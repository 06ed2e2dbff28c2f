"""What the sessions of one process write into the ledger of receipts of their store.

A reply that is taken in is noted in numbers, from sums that its window keeps. What it comes to is
worked out and written later, of many replies at once: with a reply when the last write was
`EVERY_S` seconds ago or `MOST_NOTED` wait, when a session or the store is closed, and at the end of
the process. On an event loop a timer writes them too (`ullage.session.receipts.timer`), so that no
silence holds them back; without a loop they wait for the next reply. A process that is killed loses
what came since its last write, and its rows stay open: a report tells of both.

A store that keeps no receipts costs nothing and is asked for nothing. No session fails for its
receipts: what cannot be written is kept, and tried again.
"""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache, partial
from inspect import iscoroutinefunction
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary, ref

from msgspec.structs import replace

from ullage.core.errors import StoreError
from ullage.core.history.window import Window
from ullage.core.locks import Lock
from ullage.core.values.effects import Do, Steps
from ullage.core.values.owners import tenant_of
from ullage.core.values.receipts import (
    Receipt,
    ReceiptKey,
    ReceiptTotals,
    name_of,
)
from ullage.core.values.usage import Usage
from ullage.session.receipts.reckoning import (
    RequestCounts,
    as_it_came,
    beside,
    counted,
    raw_prompt_tokens,
    sums_of,
)
from ullage.session.spend.calls import Spent
from ullage.session.view import RequestInfo
from ullage.stores import receipts_of

EVERY_S = 10.0
"""A process that is killed loses the receipts of at most so many seconds, or of `MOST_NOTED`."""
MOST_NOTED = 64
_MOST_PLACES = 500
"""So many models and clients a day have rows of their own: their names are a client's to choose."""
_MOST_CONVERSATIONS = 10_000
_OTHERS = "(others)"
_MOST_APART = 4
"""A provider that counts so many times what is reckoned, or so much less, counts something else."""
_DAY_S = 86_400


class ReceiptNote(NamedTuple):
    """A reply whose receipt is to be written.

    Attributes:
        place: the owner.
        request: what it answers, as it was counted; None: it was sent as it came.
        usage: what it came to.
        instead_of: what was noted of the same reply before.
        is_reported: whether its provider reported it.
        caches: whether a prompt cache was seen at work in its conversation.
        at_s: when it was noted, by a clock of this process.
        beside: what summaries cost, which a model wrote; nobody would have asked for them.
        wire: of a request that was sent as it came, the name of its wire.
        counted: what a provider counts for a request as it came; None: this is a reply.
    """

    place: ReceiptKey
    request: RequestCounts | None
    usage: Usage = Usage()
    instead_of: Usage | None = None
    is_reported: bool = True
    caches: bool = False
    at_s: float = 0.0
    beside: Spent | None = None
    wire: str = ""
    counted: ReceiptTotals | None = None

    def sums(self, gap_s: float) -> ReceiptTotals:
        """The sums that this reply adds.

        Args:
            gap_s: seconds since the reply before it, in this process; 0: not known.
        """
        if self.counted is not None:
            return self.counted
        if self.beside is not None:
            return beside(self.beside)
        sums = self._sums_of(self.usage, gap_s)
        return (
            sums
            if self.instead_of is None
            else sums - self._sums_of(self.instead_of, gap_s)
        )

    def _sums_of(self, usage: Usage, gap_s: float) -> ReceiptTotals:
        if self.request is None:
            return as_it_came(
                usage,
                self.place.model,
                self.wire,
                is_reported=self.is_reported,
            )
        return sums_of(
            self.request,
            usage,
            is_reported=self.is_reported,
            caches=self.caches,
            gap_s=gap_s,
        )


class _ReplyTimes:
    """When each conversation was replied to last, by a clock of this process."""

    def __init__(self) -> None:
        self._at_s: dict[bytes, float] = {}

    def gap_s(self, note: ReceiptNote) -> float:
        """Seconds since the reply before this one in its conversation; 0: not known."""
        if note.request is None:
            return 0.0
        begins = note.request.begins
        before_s = self._at_s.pop(begins, note.at_s)
        self._at_s[begins] = note.at_s
        if len(self._at_s) > _MOST_CONVERSATIONS:
            del self._at_s[next(iter(self._at_s))]
        return note.at_s - before_s


class SessionReceipts:
    """What the replies to one session came to, summed up when it is asked for.

    Args:
        whole: of many sessions, this one among them: it hears of each reply too.
    """

    def __init__(self, whole: SessionReceipts | None = None) -> None:
        self._lock = Lock()
        self._notes: list[ReceiptNote] = []
        self._sums = ReceiptTotals()
        self._taken = ReceiptTotals()
        self._reply_times = _ReplyTimes()
        self._whole = whole

    def note(self, note: ReceiptNote) -> None:
        """Take in a reply.

        Args:
            note: what it came to.
        """
        if self._whole is not None:
            self._whole.note(note)
        with self._lock:
            self._notes.append(note)
            if len(self._notes) >= MOST_NOTED:
                self._add_notes()

    @property
    def totals(self) -> ReceiptTotals:
        """The sums of all replies so far."""
        with self._lock:
            self._add_notes()
            return self._sums

    def take_new(self) -> ReceiptTotals:
        """The sums of the replies since this was last called: each reply is in one of them."""
        with self._lock:
            self._add_notes()
            sums = self._sums - self._taken
            self._taken = self._sums
            return sums

    def _add_notes(self) -> None:
        for note in self._notes:
            try:
                self._sums += note.sums(self._reply_times.gap_s(note))
            except Exception:  # noqa: BLE001 - what a host put into its history must not end its run
                self._sums += as_it_came(note.usage, note.place.model)
        self._notes.clear()


_writers: dict[str, int] = {}
"""The process of each writer; a fork inherits those of its parent."""


class Timer(Protocol):
    """Has what waits in a ledger written in time (`ullage.session.receipts.timer`)."""

    def wake(self) -> None:
        """Look at what waits, from any thread."""


class ReceiptLedger:
    """What this process has written into one store, and what is to be written.

    Attributes:
        timer: has what waits written in time; None: it waits for the next reply.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._writing = Lock()
        self._keeper: Callable[[], Any] = _no_keeper
        self._begin()

    def _begin(self) -> None:
        """Begin as a process of its own: after a fork the sums so far are the parent's."""
        self._pid = os.getpid()
        self.writer = os.urandom(8).hex()
        self.timer: Timer | None = None
        _writers[self.writer] = self._pid
        self._notes: list[ReceiptNote] = []
        self._sums: dict[ReceiptKey, ReceiptTotals] = {}
        self._unwritten: set[ReceiptKey] = set()
        self._reply_times = _ReplyTimes()
        self._written_at_s = float("-inf")
        self._due_at = MOST_NOTED  # with so many notes somebody writes

    def _leave_parent(self) -> None:
        """Begin anew in the child of a fork; under the lock."""
        if self._pid != os.getpid():
            self._begin()

    def note(self, note: ReceiptNote) -> bool:
        """Note a reply.

        Args:
            note: what it came to.

        Returns:
            Whether it is time to `write`. Of those who note something meanwhile none is told so
            too; if the write comes to nothing, whoever comes as late again is.
        """
        with self._lock:
            self._leave_parent()
            self._notes.append(note)
            waited_s = note.at_s - self._written_at_s
            is_due = len(self._notes) >= self._due_at or waited_s >= EVERY_S
            if is_due:
                self._written_at_s = note.at_s
                self._due_at = len(self._notes) + MOST_NOTED
            timer = self.timer
        if timer is not None:
            timer.wake()
        return is_due

    def due_in_s(self) -> float | None:
        """Seconds until what waits is to be written, below 0 if it is late; None: nothing waits."""
        with self._lock:
            self._leave_parent()
            if not self._notes and not self._unwritten:
                return None
            return self._written_at_s + EVERY_S - time.monotonic()

    @property
    def keeper(self) -> Any:
        """The part of the store that keeps receipts; None: it is gone."""
        return self._keeper()

    def write(self, keeper: Any, *, is_over: bool = False) -> None:
        """Work out and write what was noted.

        Args:
            keeper: the part of the store that keeps receipts; it is not awaited.
            is_over: nothing is left to come, as far as is known.
        """
        with self._writing:
            receipts = self._collect_receipts(is_over=is_over)
            if receipts:
                with suppress(StoreError):
                    keeper.keep_receipts(receipts)
                    self._mark_written(receipts)

    async def awrite(self, keeper: Any, *, is_over: bool = False) -> None:
        """`write` where the store is awaited."""
        receipts = self._collect_receipts(is_over=is_over)
        if receipts:
            with suppress(StoreError):
                await keeper.keep_receipts(receipts)
                self._mark_written(receipts)

    def end(self) -> None:
        """Write what is left where the process ends, if the store is still there."""
        keeper = self.keeper
        if keeper is not None and not is_awaited(keeper):
            self.write(keeper, is_over=True)

    def _collect_receipts(self, *, is_over: bool) -> list[Receipt]:
        """The receipts to be written; what was noted is in the sums then."""
        with self._lock:
            self._leave_parent()
            notes = self._notes
            self._notes = []
            self._written_at_s = time.monotonic()
            self._due_at = MOST_NOTED
        sums = list(self._sum_notes(notes))
        with self._lock:
            for place, added in sums:
                place = self._place(place)
                self._sums[place] = (
                    self._sums.get(place, ReceiptTotals()) + added
                )
                self._unwritten.add(place)
            changed = self._sums.keys() if is_over else self._unwritten
            now_s = int(time.time())
            return [
                Receipt(
                    key=place,
                    writer=self.writer,
                    sums=self._sums[place],
                    is_open=not is_over,
                    written_s=now_s,
                )
                for place in sorted(changed)
            ]

    def _sum_notes(
        self, notes: Iterable[ReceiptNote]
    ) -> Iterator[tuple[ReceiptKey, ReceiptTotals]]:
        for note in notes:
            try:
                yield note.place, note.sums(self._reply_times.gap_s(note))
            except Exception:  # noqa: BLE001 - what a host put into its history must not end its run
                yield note.place, as_it_came(note.usage, note.place.model)

    def _place(self, place: ReceiptKey) -> ReceiptKey:
        """The place of a receipt; beyond `_MOST_PLACES` one for all others."""
        if place in self._sums or len(self._sums) < _MOST_PLACES:
            return place
        return replace(place, model=_OTHERS, client=_OTHERS)

    def _mark_written(self, receipts: Iterable[Receipt]) -> None:
        with self._lock:
            self._unwritten -= {
                receipt.key
                for receipt in receipts
                if self._sums.get(receipt.key) == receipt.sums
            }


def is_awaited(keeper: Any) -> bool:
    """Whether the methods of a store that keeps receipts are coroutines."""
    return iscoroutinefunction(keeper.keep_receipts)


def _no_keeper() -> None:
    return None


_ledgers: WeakKeyDictionary[Any, ReceiptLedger] = WeakKeyDictionary()
_opening = Lock()


def ledger_of(keeper: Any) -> ReceiptLedger:
    """This process's ledger of receipts for a store; stores at one place share it.

    Args:
        keeper: the part of the store that keeps receipts.
    """
    shared = getattr(keeper, "shared", keeper)
    with _opening:
        ledger = _ledgers.get(shared)
        if ledger is None:
            ledger = _ledgers[shared] = ReceiptLedger()
        ledger._keeper = ref(keeper)
        return ledger


def writes(
    store: object, *, is_over: bool = False
) -> Callable[[], Any] | None:
    """The function that writes the receipts noted for a store; None if the store keeps none.

    Args:
        store: any store, however it is wrapped.
        is_over: whether no more receipts are expected.

    Returns:
        A function or a coroutine function, as the store's methods are.
    """
    keeper = receipts_of(store)
    if keeper is None:
        return None
    ledger = ledger_of(keeper)
    write = ledger.awrite if is_awaited(keeper) else ledger.write
    return partial(write, keeper, is_over=is_over)


def close(store: object) -> None:
    """Write the receipts noted for a store that is about to be closed.

    Args:
        store: any store, however it is wrapped.
    """
    write = writes(store, is_over=True)
    if write is not None:
        write()


def written_here(store: object, since_day: str) -> ReceiptTotals | None:
    """What this process has written into a store, as the store has it now.

    Args:
        store: an open store that is not awaited.
        since_day: the first day, in UTC, as ``2026-11-30``.

    Returns:
        The sums; None if the store keeps no receipts.

    Raises:
        StoreError: the store failed.
    """
    keeper = receipts_of(store)
    if keeper is None:
        return None
    pid = os.getpid()
    receipts = keeper.receipts(since_day)
    sums = [
        receipt.sums
        for receipt in receipts
        if _writers.get(receipt.writer) == pid
    ]
    return sum(sums, ReceiptTotals())


class ReceiptWriter(NamedTuple):
    """Notes the receipts of one session.

    Attributes:
        store: the session's store.
        tenant: the session's tenant.
        client: the agent it is of.
        adds_tools: whether recall tools in its views are ours, not the caller's own.
        is_held_out: whether its conversation is held out.
        session: sums up what this session alone came to; None: nothing does.
    """

    store: object
    tenant: str
    client: str
    adds_tools: bool = True
    is_held_out: bool = False
    session: SessionReceipts | None = None

    def look_at(self, info: RequestInfo, window: Window | None) -> None:
        """Count a view for the receipt of its reply, once.

        Args:
            info: the view.
            window: the working window where it still shows the same; None: it has moved on.
        """
        if info.counts is None and receipts_of(self.store) is not None:
            try:
                info.counts = counted(info, window, adds_tools=self.adds_tools)
            except Exception:  # noqa: BLE001 - what a host put into its history must not end its run
                info.counts = None

    def raw_tokens(self, info: RequestInfo, usage: Usage) -> int:
        """Reckon the prompt of a view without ullage, as its receipt will.

        Args:
            info: the view, which `look_at` counted.
            usage: what its reply came to.

        Returns:
            Tokens; -1 where the view was not counted.
        """
        if info.counts is None:
            return -1
        return raw_prompt_tokens(info.counts, usage)

    def paid(
        self,
        info: RequestInfo,
        usage: Usage,
        earlier: Usage | None = None,
        *,
        is_reported: bool = True,
        caches: bool = False,
    ) -> Steps[None]:
        """Note what the reply to a view came to, and write what was noted where it is time.

        Args:
            info: the view.
            usage: what its reply came to.
            earlier: what was noted of the same reply in another view.
            is_reported: whether its provider reported it.
            caches: whether a prompt cache was seen at work in its conversation.
        """
        earlier = info.noted_usage or earlier
        info.noted_usage = usage
        note = ReceiptNote(
            self._place(info.model),
            info.counts,
            usage,
            earlier,
            is_reported=is_reported,
            caches=caches,
            at_s=time.monotonic(),
        )
        if self._note(note):
            write = writes(self.store)
            assert write is not None
            yield Do(write)

    def paid_as_it_came(
        self, usage: Usage, model: str, wire: str, *, is_reported: bool = True
    ) -> None:
        """Note what a request came to that was sent as it came; written with the next reply.

        Args:
            usage: what its reply came to; our estimate where nothing was reported.
            model: the model that was called.
            wire: the name of its wire.
            is_reported: whether its provider reported it.
        """
        note = ReceiptNote(
            self._place(model),
            None,
            usage,
            is_reported=is_reported,
            at_s=time.monotonic(),
            wire=wire,
        )
        self._note(note)

    def paid_beside(self, spent: Spent, model: str) -> None:
        """Note what summaries cost; written with the next reply."""
        self._note(
            ReceiptNote(
                self._place(model), None, at_s=time.monotonic(), beside=spent
            )
        )

    def counted(self, info: RequestInfo, tokens: int) -> bool:
        """Note what a provider counts for a request as it came; written with the next reply.

        Args:
            info: the view of it, its reply taken in.
            tokens: what the provider counts.

        Returns:
            Whether it is noted. False: nothing is reckoned for the request, or the provider
            counts something else.
        """
        if info.counts is None or info.noted_usage is None:
            return False
        reckoned = sums_of(info.counts, info.noted_usage).raw.prompt
        least = reckoned / _MOST_APART
        most = reckoned * _MOST_APART
        if not reckoned or not least <= tokens <= most:
            return False
        sums = ReceiptTotals(
            counted=1, counted_tokens=tokens, counted_raw_tokens=reckoned
        )
        note = ReceiptNote(
            self._place(info.model), None, at_s=time.monotonic(), counted=sums
        )
        self._note(note)
        return True

    def _note(self, note: ReceiptNote) -> bool:
        """Note something, where the store keeps receipts; whether it is time to write."""
        if self.session is not None:
            self.session.note(note)
        keeper = receipts_of(self.store)
        return keeper is not None and ledger_of(keeper).note(note)

    def _place(self, model: str) -> ReceiptKey:
        """Where it is summed up today."""
        today = int(time.time() // _DAY_S)
        return _place_of(
            today, self.tenant, model, self.client, self.is_held_out
        )


@lru_cache(maxsize=256)
def _place_of(
    day: int, tenant: str, model: str, client: str, is_held_out: bool
) -> ReceiptKey:
    """Where replies are summed up on a day, counted from the first of 1970 in UTC."""
    date = datetime.fromtimestamp(day * _DAY_S, UTC).date().isoformat()
    return ReceiptKey(
        date,
        name_of(tenant_of(tenant)),
        name_of(model),
        name_of(client),
        is_held_out,
    )


@atexit.register
def _end() -> None:
    for ledger in list(_ledgers.values()):
        # the process is at its end, and the store may be gone
        with suppress(Exception):
            ledger.end()
