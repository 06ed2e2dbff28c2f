"""What adapters for frameworks stand on: sessions whose ledgers the framework carries.

    session = await sessions.opened(key, held, model="my-own", window_tokens=40_000)
    reply = await session.call(ask, **request)
    state.update(sessions.missing(session, held))

An adapter converts a request, has it fitted, converts the view back, and reports the reply. What
its framework keeps for it (``held``: entries of text by text, in a checkpoint, a session's state,
the metadata of a message) makes a session of another process, or after a restart, show the same.

HostSessions, AsyncHostSessions   the sessions of an adapter, by conversation
Entries                           a ledger as entries of a state
Calls                             calls under way, where hooks stand before a call and after it
given, before_reply, forbids      a request of what is there; the one that a tool call answers;
                                  whether a view is the last of a budget
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

from ullage.errors import OverLimitError
from ullage.recall.tools import recall_tools
from ullage.session.aio import AsyncSession
from ullage.session.core import SessionCore
from ullage.session.session import Session
from ullage.session.sessions import AsyncSessions, Sessions
from ullage.session.view import AsyncView
from ullage.tokens.catalog import lookup
from ullage.values.effects import KINDS, Record
from ullage.values.limits import Limits
from ullage.values.toolset import ToolSpec
from ullage.wires import Format

__all__ = [
    "AsyncHostSessions",
    "Calls",
    "Entries",
    "HostSessions",
    "before_reply",
    "entry_of",
    "forbids",
    "given",
    "limits_of",
    "record_of",
]

# ── a ledger in the state of a framework ─────────────────────────────────────────────────

_ENTRY = re.compile(
    rf"ullage:([0-9a-f]{{32}}):({'|'.join(KINDS)}):(0|[1-9][0-9]{{0,5}})(?::(.+))?", re.DOTALL
)


def entry_of(record: Record) -> tuple[str, str]:
    """A record as an entry of a state: its key and its value, both text."""
    name = f":{record.name}" if record.name else ""
    key = f"ullage:{record.key.hex()}:{record.kind}:{record.n}{name}"
    return key, b64encode(record.data).decode()


def record_of(key: str, value: Any) -> Record | None:
    """The record in an entry of a state; None if it is none of ours.

    Whoever may write to the state can write nonsense there; `Session.take` passes it over.
    """
    found = _ENTRY.fullmatch(key)
    if found is None or not isinstance(value, str):
        return None
    with suppress(ValueError):
        data = b64decode(value, validate=True)
        return Record(bytes.fromhex(found[1]), found[2], int(found[3]), data, found[4] or "")
    return None


class Entries:
    """The ledgers of sessions, as entries of the states in which a framework carries them.

    A state may be older than its session (it was rewound, or the step that should have written
    it failed) or newer (another process wrote it). Whoever asks both questions of every call
    keeps the two equal.
    """

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[SessionCore, dict[str, Any]] = WeakKeyDictionary()

    def unknown(self, session: SessionCore, state: Mapping[str, Any]) -> list[Record]:
        """What the state holds and the session does not know: for `Session.take`."""
        known = self._known.setdefault(session, {})
        new = {key: value for key, value in state.items() if known.get(key) != value}
        known.update(new)
        return [record for item in new.items() if (record := record_of(*item)) is not None]

    def missing(self, session: SessionCore, state: Mapping[str, Any]) -> dict[str, str]:
        """What the session decided and the state does not hold: to be written to it."""
        known = self._known.setdefault(session, {})
        known.update(map(entry_of, session.news()))
        return {key: value for key, value in known.items() if state.get(key) != value}


# ── sessions ─────────────────────────────────────────────────────────────────────────────


def limits_of(model: str, window_tokens: int) -> dict[str, Limits]:
    """The setting of a session for a model that its framework knows and we do not; else none.

    Args:
        model: its name.
        window_tokens: what the framework says of it, 0 for nothing.
    """
    known = lookup(model).known or not window_tokens
    return {} if known else {"limits": Limits(window_tokens=window_tokens)}


class _Hosted:
    """What both kinds share."""

    _settings: dict[str, Any]

    def _host(self, settings: Mapping[str, Any]) -> None:
        self._entries = Entries()
        self.tools: Sequence[ToolSpec] = recall_tools(settings.get("policy", "default"))

    def _limits(self, model: str, window_tokens: int) -> dict[str, Limits]:
        return {} if self._settings.get("limits") else limits_of(model, window_tokens)

    def missing(self, session: SessionCore, held: Mapping[str, Any]) -> dict[str, str]:
        """What a session decided and its framework does not hold: to be written there.

        Args:
            session: one of these.
            held: what the framework holds of the conversation, as it is now.
        """
        return self._entries.missing(session, held)


class HostSessions(_Hosted, Sessions):
    """The sessions of an adapter: `Sessions` for a framework's own messages.

    Args:
        format: how the framework's messages are read: a `Host`, or the name of a wire.
        store: see `Session`. Without one what is set aside is kept in memory; after a restart it
            is found again in the history.
        settings: of each session; ``recall`` is ``"host"`` unless given.

    Attributes:
        tools: the recall tools, to be offered as the framework's own.

    Raises:
        ConfigError: a setting is not known.
        StoreError: the store cannot be opened.
    """

    def __init__(self, format: str | Format, *, store: Any = None, **settings: Any) -> None:
        super().__init__(store=store, format=format, **{"recall": "host", **settings})
        self._host(settings)

    def opened(
        self,
        key: str,
        held: Mapping[str, Any],
        *,
        parent: str | None = None,
        model: str = "",
        window_tokens: int = 0,
        **settings: Any,
    ) -> Session:
        """The session of a conversation, which knows all that its framework holds of it.

        Args:
            key: see `Sessions.of`.
            held: the framework's entries of the conversation; those of others are passed over.
            parent: see `Sessions.of`.
            model: the model that is asked.
            window_tokens: its window as the framework knows it, used where we do not; 0: unknown.
            settings: see `Sessions.of`.
        """
        more = {**self._limits(model, window_tokens), **settings}
        session = self.of(key, parent=parent, **more)
        session.take(self._entries.unknown(session, held))
        return session


class AsyncHostSessions(_Hosted, AsyncSessions):
    """`HostSessions` for an event loop."""

    def __init__(self, format: str | Format, *, store: Any = None, **settings: Any) -> None:
        super().__init__(store=store, format=format, **{"recall": "host", **settings})
        self._host(settings)

    async def opened(
        self,
        key: str,
        held: Mapping[str, Any],
        *,
        parent: str | None = None,
        model: str = "",
        window_tokens: int = 0,
        **settings: Any,
    ) -> AsyncSession:
        """See `HostSessions.opened`."""
        more = {**self._limits(model, window_tokens), **settings}
        session = self.of(key, parent=parent, **more)
        await session.take(self._entries.unknown(session, held))
        return session


# ── requests ─────────────────────────────────────────────────────────────────────────────


def given(**request: Any) -> dict[str, Any]:
    """A request of what of these there is: None stands for nothing."""
    return {key: value for key, value in request.items() if value is not None}


def before_reply(messages: Sequence[Any], is_reply: Callable[[Any], bool]) -> list[Any]:
    """The messages that the newest reply came in answer to.

    A recall call stands in that reply. After a restart it may be what comes first, and all about
    its request is decided already: give it to `Session.open` as ``request``.
    """
    newest = (at for at in reversed(range(len(messages))) if is_reply(messages[at]))
    return list(messages[: next(newest, 0)])


def forbids(view: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    """Whether a view forbids tools where the request did not: it is the last of a budget."""
    return view.get("tool_choice") != asked.get("tool_choice")


# ── calls, where hooks stand before them and after them ──────────────────────────────────

_REFUSALS = 2


class _Call:
    """A call under way."""

    def __init__(self, session: AsyncSession, asked: Mapping[str, Any]) -> None:
        self.session, self.asked = session, asked
        self.view: AsyncView | None = None
        self.refusal: Exception | None = None
        self.refusals = 0


class Calls:
    """The model calls under way of a framework that has hooks before a call and after it.

    Where it has one around the call, `Session.call` does all of this. Places are whatever tells
    two calls at once apart: a run, an agent in its branch.
    """

    def __init__(self) -> None:
        self._at: dict[Hashable, _Call] = {}

    def session(self, place: Hashable) -> AsyncSession | None:
        """The session of a call under way."""
        call = self._at.get(place)
        return None if call is None else call.session

    async def begin(
        self, place: Hashable, session: AsyncSession, asked: Mapping[str, Any]
    ) -> AsyncView:
        """A view for a call, or for the next attempt at one that `may_retry`.

        Raises:
            FormatError, OverLimitError, StoreError, BudgetExceeded: see `Session.fit`.
            Exception: what the provider said, where it refused and nothing shorter can be sent.
        """
        call = self._at.get(place)
        if call is None or call.refusal is None:
            call = self._at[place] = _Call(session, asked)
        call.asked = asked
        try:
            call.view = await session.fit(asked)
        except OverLimitError as over:
            if call.refusal is None:
                raise
            raise call.refusal from over
        return call.view

    async def again(self, place: Hashable) -> AsyncView:
        """`begin` for the next attempt of a framework that does not ask anew."""
        call = self._at[place]
        return await self.begin(place, call.session, call.asked)

    def may_retry(self, place: Hashable, error: Exception) -> bool:
        """Whether a call that failed was too long, and a shorter one may be made: twice at most."""
        call = self._at.get(place)
        if call is None or call.view is None or call.refusals == _REFUSALS:
            return False
        if call.view.refused(error) is None:
            return False
        call.refusal, call.refusals = error, call.refusals + 1
        return True

    async def observe(self, place: Hashable, reply: Any, *, is_whole: bool = True) -> Any:
        """Take in what a reply reports.

        Args:
            place: of the call.
            reply: the reply, or what came of it so far.
            is_whole: whether the call is over with it.

        Returns:
            The session; None if no call is under way there.
        """
        call = self._at.get(place)
        if call is None or call.view is None:
            return None
        if is_whole:
            del self._at[place]
        await call.view.observe(reply)
        return call.session

    def leave(self, place: Hashable) -> None:
        """Give back what a call had claimed of a budget, if it failed or was cancelled."""
        call = self._at.pop(place, None)
        if call is not None:
            call.session.release()
