"""Many conversations behind one object: a session for each, and no more of them than fit.

    sessions = ullage.Sessions(model="claude-opus-4-8", store="sqlite")
    view = sessions.of(conversation_id).fit(request)

Hooks of frameworks and proxies serve every conversation with one object. One session for all of
them would mix them up; one for each, for ever, would fill the memory. So those used last are held,
and one that was let go is made again from what lasts: the store, or the state that its host
carries.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from itertools import islice
from sys import getsizeof
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakValueDictionary

from msgspec import Struct
from msgspec.structs import astuple

from ullage.core.errors import ConfigError
from ullage.core.history.snapshots import not_same
from ullage.core.locks import RLock
from ullage.core.tokens.catalog import lookup
from ullage.core.turn.lessons import Lessons
from ullage.core.values.authors import named_tools
from ullage.core.values.carried import Arguments, Portable
from ullage.core.values.effects import Steps
from ullage.core.values.messages import Message
from ullage.core.values.owners import tenant_of
from ullage.core.values.receipts import ReceiptTotals
from ullage.core.values.usage import Usage
from ullage.policy.stages.default import HELD_OUT
from ullage.session.arguments import check_names
from ullage.session.closing import (
    AsyncClosing,
    AsyncSharedStore,
    Closing,
    SharedStore,
)
from ullage.session.core import SessionCore
from ullage.session.drivers import arun, run
from ullage.session.receipts.holdout import checked, is_held_out
from ullage.session.receipts.writer import (
    ReceiptWriter,
    SessionReceipts,
    close,
)
from ullage.session.session import Session
from ullage.session.spend.budget import Budget
from ullage.session.spend.calls import Spent
from ullage.session.spend.cost import cost_usd
from ullage.stores import MemoryStore, open_store
from ullage.stores._open import innermost
from ullage.stores.objects.opening import beside

if TYPE_CHECKING:
    from ullage.session.aio import AsyncSession

S = TypeVar("S", bound="Session | AsyncSession")
T = TypeVar("T")

_MESSAGE_BYTES = 4_000
"""What is kept of a message beside its texts: the snapshot, digests, counts, places, and what a
policy worked out of it; of 50 sessions of 200 KB it was 2.5 KB, and 6 if they decided something."""

_SHARED = frozenset((bool, int, type(None)))
_RECENT = 16
"""So many conversations are the ones used last."""


class _SessionEntry(Generic[S]):
    """A session, and about how many bytes of memory its conversation takes."""

    def __init__(self, session: S) -> None:
        self.session = session
        self.bytes = 0
        self._messages: list[Message] = []
        self._sizes: list[int] = []

    def measure(self) -> bool:
        """Count the messages since the last time; False: nothing was fitted yet."""
        messages = self.session.messages
        if not messages:
            return False
        most = min(len(self._messages), len(messages))
        same = next(not_same(self._messages, messages), (most,))[0]
        added = messages[same:]
        counted_ids = set[int]()
        sizes = [
            _count_bytes(message.parts, counted_ids) + _MESSAGE_BYTES
            for message in added
        ]
        self._messages[same:] = added
        self._sizes[same:] = sizes
        self.bytes = sum(self._sizes) + self.session.bytes_beside
        return True


def _count_bytes(value: Any, seen: set[int]) -> int:
    """The bytes of a value and of all it holds, without what is in ``seen``."""
    total = 0
    queue = [value]
    while queue:
        item = queue.pop()
        # nothing of its own: flags and places, of which a part has more than texts
        if type(item) in _SHARED or id(item) in seen:
            continue
        seen.add(id(item))
        total += getsizeof(item)
        if isinstance(item, Struct):
            queue += astuple(item)
        elif isinstance(item, dict):
            queue += (*item, *item.values())
        elif isinstance(item, (tuple, list)):
            queue += item
    return total


class _Sessions(Portable, Generic[S]):
    """The part that both kinds share. The arguments are those of `Sessions`."""

    _lent: type[SharedStore] = SharedStore

    def __init__(
        self,
        model: str = "",
        *,
        store: Any = None,
        blobs: str | None = None,
        cache: str | None = None,
        budget: Budget | Callable[[str], Budget] | None = None,
        most: int = 256,
        most_bytes: int = 256 << 20,
        older_bytes: int | None = None,
        holdout: float = 0.0,
        **settings: Any,
    ) -> None:
        older_bytes = most_bytes if older_bytes is None else older_bytes
        bounds = {
            "most": most,
            "most_bytes": most_bytes,
            "older_bytes": older_bytes,
        }
        for name, value in bounds.items():
            if value < 1:
                raise ConfigError(
                    name, f"{value} is under 1", "Give 1 or more."
                )
        check_names(settings, inspect.signature(SessionCore).parameters)
        self.store = self._open(beside(store, blobs, cache))
        if "user_tools" in settings:  # each session is given them anew
            settings["user_tools"] = named_tools(settings["user_tools"])
        self._settings = {"model": model, **settings}
        self._holdout = checked(holdout)
        self._saved = SessionReceipts()
        self._budget = budget
        self._most = most
        self._most_bytes = most_bytes
        self._older_bytes = older_bytes
        self._lock = RLock()  # a session is collected wherever Python likes
        self._session_entries: OrderedDict[str, _SessionEntry[S]] = (
            OrderedDict()
        )
        self._alive: WeakValueDictionary[str, S] = WeakValueDictionary()
        self._bytes = 0
        self._learnt: dict[
            str, Lessons
        ] = {}  # of conversations that were let go
        self._uncounted: list[str] = []  # used since they were counted last
        self._make_session(
            "", {}
        )  # a setting that cannot be meant is refused now

    def _made_with(self) -> Arguments:
        """With the store in memory, if it is that: there is nothing else to find it in."""
        positional, settings = self._arguments
        lasting = innermost(self.store)
        if isinstance(lasting, MemoryStore):
            settings = {**settings, "store": lasting}
        return positional, settings

    def of(
        self,
        key: str,
        *,
        parent: str | None = None,
        conversation: str | None = None,
        **settings: Any,
    ) -> S:
        """The session of a conversation: the one that is there, or one made anew.

        Args:
            key: which conversation: what its host keeps it under, the agent's name, the branch.
            parent: the key of the conversation whose refs this one may open as well, at the top
                of its family: of an agent called by an agent, the first one's. None: its own.
            conversation: what names the conversation where some of them are held out. None: the
                parent, or the key.
            settings: for this session, if it is made now, in the place of those given to all;
                ``tenant`` and ``state`` (what its host carries) among them.

        A session that somebody still holds, or a view of, is never made twice.
        """
        with self._lock:
            self._uncounted = [
                used_key
                for used_key in self._uncounted
                if not self._count(used_key)
            ]
            entry = self._session_entries.get(key)
            if entry is None:
                # let go, but held by somebody: two sessions of one history would disagree
                session = self._alive.get(key)
                if session is None:
                    if is_held_out(
                        conversation or parent or key, self._holdout
                    ):
                        settings |= {
                            "policy": HELD_OUT,
                            "recall": False,
                            "summariser": None,
                        }
                    session = self._make_session(
                        key, {"tenant": parent or key, **settings}
                    )
                    # of no other conversation: a refusal that was misread goes no further
                    session.learn(self._learnt.get(key, Lessons()))
                    self._alive[key] = session
                entry = self._session_entries[key] = _SessionEntry(session)
            # the newest use is at the end, so that `_let_go` takes the oldest first
            self._session_entries.move_to_end(key)
            self._uncounted.append(key)
            self._let_go()
            return entry.session

    def drop(self, key: str) -> None:
        """Let go of a conversation; what it keeps in the store stays there.

        Args:
            key: as for `of`.
        """
        with self._lock:
            entry = self._session_entries.pop(key, None)
            if entry is not None:
                self._bytes -= entry.bytes

    def drop_tenant(self, tenant: str) -> None:
        """Let go of a tenant's conversations: what they remember is no longer in the store.

        What was learnt of limits stays. A session that somebody holds serves nobody else.

        Args:
            tenant: the tenant, and every owner whose name begins with it and a unit separator.
        """
        with self._lock:
            for key, session in list(self._alive.items()):
                if tenant_of(session.settings.tenant) != tenant:
                    continue
                entry = self._session_entries.pop(key, None)
                self._bytes -= entry.bytes if entry is not None else 0
                del self._alive[key]
                self._keep_learnt(key, session)

    @property
    def held_bytes(self) -> int:
        """About how much the sessions hold that were used last, the newest use left out."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._session_entries)

    def __contains__(self, key: str) -> bool:
        return key in self._session_entries

    def _count(self, key: str) -> bool:
        """Count what the last use of a session added; False: its first fit is still under way."""
        if (entry := self._session_entries.get(key)) is None:
            return True
        self._bytes -= entry.bytes
        is_fitted = entry.measure()
        self._bytes += entry.bytes
        return is_fitted

    def _let_go(self) -> None:
        while len(self._session_entries) > 1 and self._is_over():
            key, entry = self._session_entries.popitem(last=False)
            self._bytes -= entry.bytes
            self._keep_learnt(key, entry.session)

    def _keep_learnt(self, key: str, session: S) -> None:
        """Keep what a conversation learnt, or its session made anew is refused again."""
        learnt = session.learnt
        if learnt.lessons:
            self._learnt[key] = learnt
            if len(self._learnt) > self._most:
                del self._learnt[next(iter(self._learnt))]

    def _is_over(self) -> bool:
        """Whether more is held than there is room for."""
        if (
            len(self._session_entries) > self._most
            or self._bytes > self._most_bytes
        ):
            return True
        if len(self._session_entries) <= _RECENT:
            return False
        recent = islice(reversed(self._session_entries.values()), _RECENT)
        return (
            self._bytes - sum(entry.bytes for entry in recent)
            > self._older_bytes
        )

    def _make_session(self, key: str, settings: dict[str, Any]) -> S:
        """A new session with the settings of all, and with its own in their place."""
        budget = self._budget(key) if callable(self._budget) else self._budget
        options = {
            "store": self._lent(self.store),
            "budget": budget,
            **self._settings,
            **settings,
        }
        session = self._create(options)
        session.count_into(self._saved)
        return session

    @property
    def saved(self) -> ReceiptTotals:
        """What the requests of all sessions came to, and would have come to without ullage.

        Sessions that were let go are among them; what came before a restart is not.
        ``print(sessions.saved)`` says it in a sentence.
        """
        return self._saved.totals

    def pay_beside(
        self, usage: Usage, model: str, *, tenant: str, client: str
    ) -> None:
        """Put into the receipts what was paid beside all requests of a conversation.

        Args:
            usage: what it came to.
            model: that was asked.
            tenant: whose conversation it was.
            client: what the receipt is listed under.
        """
        spent = Spent(usage=usage, cost_usd=cost_usd(usage, lookup(model)))
        ReceiptWriter(self.store, tenant, client).paid_beside(spent, model)

    def pay_as_it_came(
        self,
        usage: Usage,
        model: str,
        wire: str,
        *,
        tenant: str,
        client: str,
        is_reported: bool = True,
    ) -> None:
        """Put into the receipts what a request came to that no session fitted: it saved nothing.

        Args:
            usage: what its reply came to; an estimate where nothing was reported.
            model: that was asked.
            wire: the name of its wire.
            tenant: whose request it was.
            client: the program that asked.
            is_reported: whether its provider reported the usage.
        """
        self._write_in_time()
        receipts = ReceiptWriter(
            self.store, tenant, client, session=self._saved
        )
        receipts.paid_as_it_came(usage, model, wire, is_reported=is_reported)

    def _write_in_time(self) -> None:
        """Have receipts written without a reply that follows, where an event loop runs."""

    def run(self, steps: Steps[T], tenant: str) -> Any:
        """Do what steps ask of the store.

        Args:
            steps: what is to be done, as `Find` and other effects.
            tenant: whose content and records they are about.

        Returns:
            What the steps end in; beside an event loop an awaitable of it.

        Raises:
            StoreError: the store failed, and the steps let that pass.
        """
        raise NotImplementedError

    def _open(self, store: Any) -> Any:
        return open_store(store)

    def _create(self, settings: dict[str, Any]) -> S:
        raise NotImplementedError


class Sessions(_Sessions[Session], Closing):
    """A session for each conversation, those used last held in memory.

    Args:
        model: see `Session`, as for every other setting.
        store: one store for all of them; what is set aside in one conversation opens in no other.
        budget: one for all of them, or what makes one of a key.
        most: the most conversations that are held.
        most_bytes: about the most that they hold of their histories together.
        older_bytes: about the most of it that is held of conversations which are not among the 16
            used last; None: all of it.
        holdout: the share of conversations that pass unfitted, such as 0.05, so that real bills can
            be compared (`ullage report`). Which ones, a hash of the key decides, the same for every
            worker. Only what would not fit is cut in them.
        settings: what each session is made with.

    Attributes:
        store: the store, which `close` closes.

    Raises:
        ConfigError: a setting is not known.
        StoreError: the store cannot be opened.

    It may be used from several threads. What is held is bounded by number and by size; a session
    that is in use beyond that is found again as long as it is. What conversations set aside is
    the store's: a `MemoryStore` keeps it as long as the process runs, so give a service one on
    disk, or a `ullage.stores.BoundedStore`.
    """

    def close(self) -> None:
        """Let go of all of them, and close the store."""
        with self._lock:
            self._session_entries.clear()
            self._bytes = 0
        close(self.store)
        self.store.close()

    def run(self, steps: Steps[T], tenant: str) -> T:
        """Run steps on the store; see `AsyncSessions.run`.

        Args:
            steps: what is to be done, as `Find` and other effects.
            tenant: whose content and records they are about.

        Raises:
            StoreError: the store failed, and the steps let that pass.
        """
        return run(steps, self.store, tenant)

    def _create(self, settings: dict[str, Any]) -> Session:
        return Session(**settings)


class AsyncSessions(_Sessions["AsyncSession"], AsyncClosing):
    """`Sessions` for an event loop; ``store`` may also be an `AsyncStore`."""

    _lent = AsyncSharedStore

    async def write_receipts(self) -> None:
        """Write the receipts that wait, for somebody who is about to read them."""
        # it imports asyncio
        from ullage.session.receipts.timer import write_now

        await write_now(self.store)

    def _write_in_time(self) -> None:
        # it imports asyncio
        from ullage.session.receipts.timer import write_in_time

        write_in_time(self.store)

    async def close(self) -> None:
        """See `Sessions.close`. A compaction under way is given up."""
        # it imports asyncio
        from ullage.session.receipts.timer import aclose

        with self._lock:
            # those that were let go may still have one under way
            sessions = list(self._alive.values())
            self._session_entries.clear()
            self._bytes = 0
        for session in sessions:
            await session.close()
        await aclose(self.store)
        await self.store.close()

    def run(self, steps: Steps[T], tenant: str) -> Awaitable[T]:
        """Run steps on the store, awaited; see `Sessions.run`."""
        return arun(steps, self.store, tenant)

    def _open(self, store: Any) -> Any:
        from ullage.stores.threaded import Threaded  # it imports asyncio

        is_awaited = inspect.iscoroutinefunction(
            getattr(store, "commit", None)
        )
        return store if is_awaited else Threaded(super()._open(store))

    def _create(self, settings: dict[str, Any]) -> AsyncSession:
        from ullage.session.aio import AsyncSession

        return AsyncSession(**settings)
