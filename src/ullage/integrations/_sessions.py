"""What adapters for frameworks stand on: sessions whose ledgers the framework carries.

    session = await sessions.opened(key, held, model="my-own", window_tokens=40_000)
    reply = await session.call(ask, **request)
    state.update(sessions.missing(session, held))

An adapter converts a request, has it fitted, converts the view back, and reports the reply. What
its framework keeps for it (``held``: entries of text by text, in a checkpoint, a session's state,
the metadata of a message) makes a session of another process, or after a restart, show the same.

Adapter                           what is the same in every adapter that sees requests
HostSessions, AsyncHostSessions   the sessions of an adapter, by conversation
SessionFamily                     what conversations of one thread share
PendingCalls                      calls under way, where hooks stand before a call and after it
without_none                      a request without the fields that are None
answered_request                  the request that a tool call answers
forbids                           whether a view is the last of a budget
"""

from __future__ import annotations

import json
from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from threading import RLock
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

from ullage import (
    AsyncSession,
    AsyncSessions,
    AsyncView,
    Budget,
    Limits,
    Record,
    Session,
    Sessions,
    ToolSpec,
    recall_tools,
)
from ullage.core.errors import ConfigError
from ullage.doors.host import Portable, Unfitted, adrive, lookup
from ullage.integrations._entries import AnySession, Entries, FamilyAccount
from ullage.integrations._offered import (
    OfferedTool,
    free_tools,
    offered_tools,
    shown_tools,
)
from ullage.stores import MemoryStore, Store
from ullage.wires import Format, format_of

_Arguments: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]

# ── sessions ─────────────────────────────────────────────────────────────────────────────


def limits_of(model: str, window_tokens: int) -> dict[str, Limits]:
    """The setting of a session for a model that its framework knows and we do not; else none.

    Args:
        model: its name.
        window_tokens: what the framework says of it, 0 for nothing.
    """
    is_known = lookup(model).known or not window_tokens
    return {} if is_known else {"limits": Limits(window_tokens=window_tokens)}


class SessionFamily:
    """What the conversations of one family share: the agents of a thread, of a case.

    Args:
        name: its key; what is set aside in it opens in no other.
        budget: what its members may spend together.

    Attributes:
        store: where they keep what is set aside, where no store outlives the process: it goes
            with the family.
        account: what each agent has spent, here and elsewhere; None where nobody limits a family.
    """

    def __init__(
        self, name: str, budget: Budget | None, store: Store | None
    ) -> None:
        self.name = name
        self.store = store
        self.account = None if budget is None else FamilyAccount(budget)
        self._sessions: WeakSet[AnySession] = WeakSet()

    @property
    def budget(self) -> Budget:
        """What its members have spent, and may spend.

        Raises:
            ConfigError: they were given no budget of their own.
        """
        if self.account is None:
            raise ConfigError(
                "budget",
                "the family has none",
                "Give what makes one of a key.",
            )
        return self.account.budget

    @property
    def sessions(self) -> tuple[AnySession, ...]:
        """The sessions of its members, as far as they are held."""
        return tuple(self._sessions)

    @property
    def settings(self) -> dict[str, Any]:
        """What the session of each member is made with."""
        budget = None if self.account is None else self.account.budget
        return without_none(store=self.store, budget=budget)

    def join(self, session: AnySession, stored: Mapping[str, Any]) -> None:
        """Add a member's session, and count what its agents spent elsewhere.

        Args:
            session: the member's session.
            stored: what the framework holds of its conversation.
        """
        self._sessions.add(session)
        if self.account is not None:
            self.account.take(stored)


class _Model(NamedTuple):
    """A model, and its window as its framework knows it."""

    name: str = ""
    window_tokens: int = 0


_MODEL = "ullage:model"


def _model_in(stored: Mapping[str, Any]) -> _Model:
    """The model of the newest call, as the framework's state names it."""
    match stored.get(_MODEL):
        case [str(name), int(window_tokens)]:
            return _Model(name, window_tokens)
    return _Model()


class _Member(NamedTuple):
    """One conversation of a family."""

    family: SessionFamily
    model: _Model


def _names_in(key: str) -> Iterator[str]:
    """The names that a key is made of: itself, and where it is a JSON list, what is in that."""
    yield key
    try:
        parts = json.loads(key) if key.startswith("[") else ()
    except ValueError:
        return
    for part in parts:
        if isinstance(part, str):
            yield from _names_in(part)


class _Hosted:
    """What both kinds of sessions share."""

    _arguments: _Arguments
    _settings: dict[str, Any]
    _lock: RLock
    _alive: Any
    _session_entries: Any

    def _host(
        self, format: str | Format, store: Any, settings: dict[str, Any]
    ) -> dict[str, Any]:
        """The settings of the sessions underneath."""
        self._entries = Entries()
        self._families: WeakValueDictionary[str, SessionFamily] = (
            WeakValueDictionary()
        )
        self._members: WeakKeyDictionary[AnySession, _Member] = (
            WeakKeyDictionary()
        )
        self._format = format_of(format)
        is_off = settings.get("recall") is False
        self.tools: Sequence[ToolSpec] = (
            () if is_off else recall_tools(settings.get("policy", "default"))
        )
        self.offered = offered_tools(self.tools)
        self._is_kept = store is not None and store != "memory"
        self.lasts = self._is_kept and not isinstance(store, MemoryStore)
        budget = settings.get("budget")
        self._new_budget: Callable[[str], Budget] | None = (
            budget if callable(budget) else None
        )
        if self._new_budget is not None:
            self._new_budget("")  # a bad setting is refused now
            settings = {**settings, "budget": None}
        return {"recall": "host", **settings, "store": store}

    def _made_with(self) -> _Arguments:
        """The constructor's arguments alone: the framework's state holds what has to last."""
        return self._arguments

    def family(
        self, name: str, stored: Mapping[str, Any] | None = None
    ) -> SessionFamily:
        """What the conversations of one family share; made at the first call.

        Args:
            name: the key of the family: a conversation's own, or its ``parent``.
            stored: what the framework holds of it, for what its agents spent elsewhere.
        """
        with self._lock:
            family = self._families.get(name)
            if family is None:
                budget = self._new_budget(name) if self._new_budget else None
                store = None if self._is_kept else MemoryStore()
                family = self._families[name] = SessionFamily(
                    name, budget, store
                )
            if family.account is not None:
                family.account.take(stored or {})
            return family

    def shown(
        self,
        tools: Sequence[Any],
        define: Callable[[Any], Any],
        names: Collection[str] = (),
    ) -> tuple[list[Any], list[Any]]:
        """The tools that a model is shown: the user's, and each of ours under one name.

        Args:
            tools: the user's, and each of ours under all of its names.
            define: the definition of one of the user's, in the form of a request.
            names: of tools of the user's that are not among these.

        Returns:
            Those of them that are shown, and their definitions. None is ours where the user has
            each name that ours could have: the session says so then.
        """
        pairs = shown_tools(self.offered, tools, names)
        definitions = [
            define(tool) if offered is None else self.definition(offered)
            for tool, offered in pairs
        ]
        return [tool for tool, _ in pairs], definitions

    def free(self, names: Collection[str]) -> list[OfferedTool]:
        """The recall tools beside tools of these names, for who asks for them when these are known.

        Args:
            names: of the user's tools.
        """
        return free_tools(self.offered, names)

    def definition(self, offered: OfferedTool) -> Any:
        """A recall tool as it stands in a request: the session knows it by that.

        Args:
            offered: the tool, under the name at hand.
        """
        return self._format.tool(offered.spec)

    def get(self, key: str) -> Any:
        """The session of a conversation; None if none is in memory.

        Args:
            key: see `Sessions.of`.
        """
        with self._lock:
            return self._alive.get(key)

    def find(self, *names: str) -> tuple[Any, ...]:
        """The sessions in memory of a conversation by the framework's own names, as for `pin`.

        Args:
            names: of a thread, a session, a case, an agent: whatever is in the key. Without one,
                every session.

        Returns:
            The sessions, the one used last at the end.
        """
        with self._lock:
            used = [*self._session_entries]
            keys = [key for key in self._alive if key not in used]
            return tuple(
                self._alive[key]
                for key in (*keys, *used)
                if {*names} <= {*_names_in(key)}
            )

    def _member(
        self,
        key: str,
        stored: Mapping[str, Any],
        parent: str | None,
        model: _Model | None,
    ) -> tuple[_Member, dict[str, Any]]:
        """The member that a session belongs to, and the settings it is opened with."""
        family = self.family(parent or key)
        known_model = model or _model_in(stored)
        limits = (
            {} if self._settings.get("limits") else limits_of(*known_model)
        )
        name = {"model": known_model.name} if known_model.name else {}
        return _Member(family, known_model), {
            **family.settings,
            **limits,
            **name,
        }

    def _known(
        self, session: AnySession, member: _Member, stored: Mapping[str, Any]
    ) -> Iterable[Record]:
        """The stored records that a session does not have yet; registers it as a member."""
        self._members[session] = member
        member.family.join(session, stored)
        return self._entries.unknown(session, stored)

    def missing(
        self,
        session: AnySession,
        stored: Mapping[str, Any],
        *,
        agent: str = "",
    ) -> dict[str, Any]:
        """The entries to write into the framework's state: what it does not hold yet.

        Args:
            session: one of these.
            stored: what the framework holds of the conversation, as it is now.
            agent: the name of its agent; of what was spent it tells its own.
        """
        entries: dict[str, Any] = self._entries.missing(session, stored)
        family, model = self._members[session]
        if family.account is not None:
            entries |= family.account.missing(agent, stored)
        if model.name and _model_in(stored) != model:
            entries[_MODEL] = list(model)
        return entries


class HostSessions(_Hosted, Sessions):
    """The sessions of an adapter: `Sessions` for a framework's own messages.

    Args:
        format: how the framework's messages are read: a `Host`, or the name of a wire.
        store: see `Session`. Without one what is set aside is kept in memory, as long as one of
            its family is held; after that it is found again in the history.
        settings: of each session; ``recall`` is ``"host"`` unless given. Where ``budget`` makes
            one of a key, each family has its own, which goes on from what the framework holds.

    Attributes:
        tools: the recall tools, to be offered as the framework's own; none with ``recall=False``.
        offered: each of them under all of its names; see `shown`.
        lasts: whether the store outlives the process.

    Raises:
        ConfigError: a setting is not known.
        StoreError: the store cannot be opened.
    """

    def __init__(
        self, format: str | Format, *, store: Any = None, **settings: Any
    ) -> None:
        super().__init__(format=format, **self._host(format, store, settings))

    def opened(
        self,
        key: str,
        stored: Mapping[str, Any],
        *,
        parent: str | None = None,
        model: str = "",
        window_tokens: int = 0,
        **settings: Any,
    ) -> Session:
        """The session of a conversation, up to date with what the framework holds of it.

        Args:
            key: see `Sessions.of`.
            stored: the framework's entries of the conversation; those of others are passed over.
            parent: see `Sessions.of`: the key of its family.
            model: the model that is asked; ``""``: the one that was asked last.
            window_tokens: its window as the framework knows it, used where we do not; 0: unknown.
            settings: see `Sessions.of`.
        """
        known_model = (
            _Model(model, window_tokens) if model or window_tokens else None
        )
        member, defaults = self._member(key, stored, parent, known_model)
        session = self.of(key, parent=parent, **{**defaults, **settings})
        session.take(self._known(session, member, stored))
        return session


class AsyncHostSessions(_Hosted, AsyncSessions):
    """`HostSessions` for an event loop: the same arguments, attributes and errors."""

    def __init__(
        self, format: str | Format, *, store: Any = None, **settings: Any
    ) -> None:
        super().__init__(format=format, **self._host(format, store, settings))

    async def opened(
        self,
        key: str,
        stored: Mapping[str, Any],
        *,
        parent: str | None = None,
        model: str = "",
        window_tokens: int = 0,
        **settings: Any,
    ) -> AsyncSession:
        """See `HostSessions.opened`."""
        known_model = (
            _Model(model, window_tokens) if model or window_tokens else None
        )
        member, defaults = self._member(key, stored, parent, known_model)
        session = self.of(key, parent=parent, **{**defaults, **settings})
        await session.take(self._known(session, member, stored))
        return session


class Adapter(Portable):
    """What is the same in every adapter that sees requests: it has `HostSessions` of its own."""

    @property
    def saved(self) -> Any:
        """What all requests came to, and would have come to without ullage: tokens and dollars.

        ``print(adapter.saved)`` says it in a sentence; see `ullage.Sessions.saved`.
        """
        kinds = (HostSessions, AsyncHostSessions)
        held = [
            each for each in vars(self).values() if isinstance(each, kinds)
        ]
        sums = [sessions.saved for sessions in held]
        return sum(sums[1:], sums[0])


# ── requests ─────────────────────────────────────────────────────────────────────────────


def without_none(**request: Any) -> dict[str, Any]:
    """A request of the fields that are set.

    Args:
        request: the fields by name; one that is None is left out.
    """
    return {key: value for key, value in request.items() if value is not None}


def answered_request(
    session: AnySession,
    messages: Sequence[Any],
    is_reply: Callable[[Any], bool],
) -> dict[str, Any]:
    """The request that the newest reply came in answer to, for a recall call in that reply.

    After a restart a recall call may come first, before any request was fitted. Give this one to
    `Session.answer` as ``request``: its view was decided before.

    Args:
        session: of the conversation.
        messages: its messages, in the framework's form.
        is_reply: whether a message is a reply of the model's.
    """
    newest = (
        at for at in reversed(range(len(messages))) if is_reply(messages[at])
    )
    return {
        "model": session.settings.model,
        "messages": list(messages[: next(newest, 0)]),
    }


def forbids(view: Mapping[str, Any], request: Mapping[str, Any]) -> bool:
    """Whether a view forbids tools that the request allowed, as the last one of a budget does.

    Args:
        view: what `Session.fit` made of the request.
        request: the request.
    """
    return view.get("tool_choice") != request.get("tool_choice")


# ── calls, where hooks stand before them and after them ──────────────────────────────────

_REFUSALS = 2


class _Call:
    """A model call under way, with how often its provider refused it as too long."""

    def __init__(
        self, session: AsyncSession, request: Mapping[str, Any]
    ) -> None:
        self.session = session
        self.request = request
        self.view: AsyncView | Unfitted | None = None
        self.refusal: Exception | None = None
        self.refusals = 0


class PendingCalls:
    """The model calls under way of a framework that has hooks before a call and after it.

    Where it has one around the call, `Session.call` does all of this. Places are whatever tells
    two calls at once apart: a run, an agent in its branch.
    """

    def __init__(self) -> None:
        self._at: dict[Hashable, _Call] = {}

    def session(self, place: Hashable) -> AsyncSession | None:
        """The session of the call under way at a place; None if there is none.

        Args:
            place: what tells the call from others, as given to `begin`.
        """
        call = self._at.get(place)
        return None if call is None else call.session

    async def begin(
        self,
        place: Hashable,
        session: AsyncSession,
        request: Mapping[str, Any],
    ) -> AsyncView | Unfitted:
        """A view for a call, or for the next attempt at one that `may_retry`.

        Args:
            place: what tells the call from others under way.
            session: of its conversation.
            request: the request, in the form that the session reads.

        Returns:
            The view. A request that cannot be fitted comes back as it was; see `Session.call`.

        Raises:
            BudgetExceeded, ConfigError: see `Session.call`.
            Exception: what the provider said, where it refused and nothing shorter can be sent.
        """
        call = self._at.get(place)
        if call is None or call.refusal is None:
            call = self._at[place] = _Call(session, request)
        call.request = request
        view: AsyncView | Unfitted = await adrive(
            session.fit_or_pass(request, call.refusal)
        )
        call.view = view
        return view

    async def again(self, place: Hashable) -> AsyncView | Unfitted:
        """`begin` with the same request, for a framework that repeats a call by itself.

        Args:
            place: of the call that `may_retry`.

        Raises:
            KeyError: no call is under way there.
            BudgetExceeded, ConfigError: see `begin`.
        """
        call = self._at[place]
        return await self.begin(place, call.session, call.request)

    def may_retry(self, place: Hashable, error: Exception) -> bool:
        """Whether a failed call was too long and a shorter one may be tried, twice at most.

        Args:
            place: of the call.
            error: what its provider, or its SDK, raised.
        """
        call = self._at.get(place)
        if call is None or call.view is None or call.refusals == _REFUSALS:
            return False
        if call.view.refused(error) is None:
            return False
        call.refusal = error
        call.refusals += 1
        return True

    async def observe(
        self, place: Hashable, reply: Any, *, is_whole: bool = True
    ) -> Any:
        """Take in what a reply reports.

        Args:
            place: of the call.
            reply: the reply, or the outcome so far.
            is_whole: whether the call is over with it.

        Returns:
            The session; None if no call is under way there.
        """
        call = self._at.get(place)
        if call is None or call.view is None:
            return None
        if is_whole:
            del self._at[place]
        try:
            if isinstance(call.view, Unfitted):
                call.view.observe(reply)
            else:
                await call.view.observe(reply)
        except Exception as error:  # noqa: BLE001 - the reply is there, and paid for
            call.session.leave_uncounted(error)
        return call.session

    def leave(self, place: Hashable) -> None:
        """End a call that failed or was cancelled, and give back what it claimed of a budget.

        Args:
            place: of the call; nothing happens if none is under way there.
        """
        call = self._at.pop(place, None)
        if call is not None:
            call.session.release()
