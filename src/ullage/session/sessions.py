"""Many conversations behind one object: a session for each, and no more of them than fit.

    sessions = ullage.Sessions(model="claude-opus-4-8", store="sqlite")
    view = sessions.of(conversation_id).fit(request)

Hooks of frameworks and proxies serve every conversation with one object. One session for all of
them would mix them up; one for each, for ever, would fill the memory. So those used last are held,
and one that was let go is made anew from what lasts: the store, or the state that its host carries.
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
from ullage.core.turn.lessons import Lessons
from ullage.core.values.authors import named_tools
from ullage.core.values.carried import Arguments, Portable
from ullage.core.values.effects import Steps
from ullage.core.values.messages import Message
from ullage.policy.stages.default import HELD_OUT
from ullage.session.closing import AsyncClosing, AsyncLent, Closing, Lent
from ullage.session.drivers import arun, run
from ullage.session.holdout import checked, is_held_out
from ullage.session.receipts import aclose, close
from ullage.session.session import Session
from ullage.session.spend.budget import Budget
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

_UNIT = "\x1f"
"""Parts a tenant's name from that of a conversation which is an owner of its own."""

_RECENT = 16
"""So many conversations are the ones used last."""


class _Held(Generic[S]):
    """A session, and about how many bytes it holds of its conversation."""

    def __init__(self, session: S) -> None:
        self.session = session
        self.bytes = 0
        self._messages: list[Message] = []
        self._sizes: list[int] = []

    def measure(self) -> bool:
        """Count what came since the last time; False: nothing was fitted yet."""
        messages = self.session.messages
        if not messages:
            return False
        most = min(len(self._messages), len(messages))
        same = next(not_same(self._messages, messages), (most,))[0]
        new, seen = messages[same:], set[int]()
        sizes = [_held_bytes(message.parts, seen) + _MESSAGE_BYTES for message in new]
        self._messages[same:], self._sizes[same:] = new, sizes
        self.bytes = sum(self._sizes) + self.session.bytes_beside
        return True


def _held_bytes(value: Any, seen: set[int]) -> int:
    """Bytes of a value and of all it holds; what was ``seen`` before counts no more."""
    total, rest = 0, [value]
    while rest:
        one = rest.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        total += getsizeof(one)
        if isinstance(one, Struct):
            rest += astuple(one)
        elif isinstance(one, dict):
            rest += (*one, *one.values())
        elif isinstance(one, (tuple, list)):
            rest += one
    return total


class _Sessions(Portable, Generic[S]):
    """What both kinds share. The arguments are those of `Sessions`."""

    _lent: type[Lent] = Lent

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
        bounds = {"most": most, "most_bytes": most_bytes, "older_bytes": older_bytes}
        for name, value in bounds.items():
            if value < 1:
                raise ConfigError(name, f"{value} is under 1", "Give 1 or more.")
        self.store = self._opened(beside(store, blobs, cache))
        if "user_tools" in settings:  # each session is given them anew
            settings["user_tools"] = named_tools(settings["user_tools"])
        self._settings = {"model": model, **settings}
        self._holdout = checked(holdout)
        self._budget, self._most, self._most_bytes = budget, most, most_bytes
        self._older_bytes = older_bytes
        self._lock = RLock()  # a session is collected wherever Python likes
        self._held: OrderedDict[str, _Held[S]] = OrderedDict()
        self._alive: WeakValueDictionary[str, S] = WeakValueDictionary()
        self._bytes = 0
        self._learnt: dict[str, Lessons] = {}  # of conversations that were let go
        self._uncounted: list[str] = []  # used since they were counted last
        self._made("", {})  # a setting that cannot be meant is refused now

    def _made_with(self) -> Arguments:
        """With the store in memory, if it is that: there is nothing else to find it in."""
        given, named = self._arguments
        kept = innermost(self.store)
        return given, {**named, "store": kept} if isinstance(
            kept, MemoryStore
        ) else named

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
                each for each in self._uncounted if not self._count(each)
            ]
            held = self._held.get(key)
            if held is None:
                session = self._alive.get(key)
                if session is None:
                    if is_held_out(conversation or parent or key, self._holdout):
                        settings |= {
                            "policy": HELD_OUT,
                            "recall": False,
                            "summariser": None,
                        }
                    session = self._made(key, {"tenant": parent or key, **settings})
                    # of no other conversation: a refusal that was misread goes no further
                    session.learn(self._learnt.get(key, Lessons()))
                    self._alive[key] = session
                held = self._held[key] = _Held(session)
            self._held.move_to_end(key)
            self._uncounted.append(key)
            self._let_go()
            return held.session

    def drop(self, key: str) -> None:
        """Let go of a conversation; what it keeps in the store stays there."""
        with self._lock:
            held = self._held.pop(key, None)
            if held is not None:
                self._bytes -= held.bytes

    def drop_tenant(self, tenant: str) -> None:
        """Let go of a tenant's conversations: what they remember is no longer in the store.

        What was learnt of limits stays. A session that somebody holds serves nobody else.

        Args:
            tenant: the tenant, and every owner whose name begins with it and a unit separator.
        """
        with self._lock:
            for key, session in list(self._alive.items()):
                if session.settings.tenant.partition(_UNIT)[0] != tenant:
                    continue
                held = self._held.pop(key, None)
                self._bytes -= held.bytes if held is not None else 0
                del self._alive[key]
                self._keep_learnt(key, session)

    @property
    def held_bytes(self) -> int:
        """About how much the sessions hold that were used last, the newest use left out."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, key: str) -> bool:
        return key in self._held

    def _count(self, key: str) -> bool:
        """Count what the last use of a session added; False: its first fit is still under way."""
        if (held := self._held.get(key)) is None:
            return True
        self._bytes -= held.bytes
        is_fitted = held.measure()
        self._bytes += held.bytes
        return is_fitted

    def _let_go(self) -> None:
        while len(self._held) > 1 and self._is_over():
            key, held = self._held.popitem(last=False)
            self._bytes -= held.bytes
            self._keep_learnt(key, held.session)

    def _keep_learnt(self, key: str, session: S) -> None:
        """Keep what a conversation learnt, or its session made anew is refused again."""
        learnt = session.learnt
        if learnt.lessons:
            self._learnt[key] = learnt
            if len(self._learnt) > self._most:
                del self._learnt[next(iter(self._learnt))]

    def _is_over(self) -> bool:
        """Whether more is held than there is room for."""
        if len(self._held) > self._most or self._bytes > self._most_bytes:
            return True
        if len(self._held) <= _RECENT:
            return False
        recent = islice(reversed(self._held.values()), _RECENT)
        return self._bytes - sum(held.bytes for held in recent) > self._older_bytes

    def _made(self, key: str, settings: dict[str, Any]) -> S:
        budget = self._budget(key) if callable(self._budget) else self._budget
        given = {
            "store": self._lent(self.store),
            "budget": budget,
            **self._settings,
            **settings,
        }
        return self._session(given)

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

    def _opened(self, store: Any) -> Any:
        return open_store(store)

    def _session(self, settings: dict[str, Any]) -> S:
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
            self._held.clear()
            self._bytes = 0
        close(self.store)
        self.store.close()

    def run(self, steps: Steps[T], tenant: str) -> T:
        """See `_Sessions.run`."""
        return run(steps, self.store, tenant)

    def _session(self, settings: dict[str, Any]) -> Session:
        return Session(**settings)


class AsyncSessions(_Sessions["AsyncSession"], AsyncClosing):
    """`Sessions` for an event loop; ``store`` may also be an `AsyncStore`."""

    _lent = AsyncLent

    async def close(self) -> None:
        """See `Sessions.close`. A compaction under way is given up."""
        with self._lock:
            sessions = [held.session for held in self._held.values()]
            self._held.clear()
            self._bytes = 0
        for session in sessions:
            await session.close()
        await aclose(self.store)
        await self.store.close()

    def run(self, steps: Steps[T], tenant: str) -> Awaitable[T]:
        """See `_Sessions.run`."""
        return arun(steps, self.store, tenant)

    def _opened(self, store: Any) -> Any:
        from ullage.stores.threaded import Threaded  # it imports asyncio

        is_awaited = inspect.iscoroutinefunction(getattr(store, "commit", None))
        return store if is_awaited else Threaded(super()._opened(store))

    def _session(self, settings: dict[str, Any]) -> AsyncSession:
        from ullage.session.aio import AsyncSession

        return AsyncSession(**settings)
