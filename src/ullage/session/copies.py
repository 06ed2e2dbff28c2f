"""Copies of sessions, here and in another process: the same state, on the same store."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Self

from msgspec.structs import replace

from ullage.core.turn.settings import Settings
from ullage.core.values.carried import check
from ullage.core.values.events import Event
from ullage.core.values.limits import ServedWindow
from ullage.policy.stages.default import HELD_OUT
from ullage.session.closing import SharedStore
from ullage.session.receipts.writer import ReceiptWriter, SessionReceipts
from ullage.session.spend.account import Account
from ullage.session.spend.budget import Budget
from ullage.session.state import SessionState
from ullage.session.summarise import Summaries, Summariser
from ullage.session.telling import OnEvent


class CopyMixin:
    """The part of a session that copies and pickles it.

    Attributes:
        store: where it keeps what is set aside.
        settings: what it was asked to be.
        budget: what it may spend.
    """

    store: Any
    settings: Settings
    budget: Budget
    _state: SessionState
    _state_lock: AbstractContextManager[bool]
    _account: Account
    _summaries: Summaries | None
    _on_event: OnEvent | None
    _has_limits: bool
    _served: ServedWindow | None
    _saved: SessionReceipts
    _lent: ClassVar[type[SharedStore]] = SharedStore

    @staticmethod
    @abstractmethod
    def _new_lock() -> AbstractContextManager[bool]:
        """A reentrant lock."""

    @abstractmethod
    def emit(self, event: Event) -> None:
        """List an event with the others."""

    @abstractmethod
    def _use(self, store: Any) -> None:
        """Use an open store, and make the session's lock; sync and async sessions differ."""

    def _begin(
        self,
        *,
        budget: Budget,
        agent: str,
        summariser: Summariser | None,
        on_event: OnEvent | None,
        has_limits: bool,
        served: ServedWindow | None = None,
    ) -> None:
        """Open an account at the budget, and keep what a copy is given as well."""
        self._state_lock = self._new_lock()
        self._has_limits = has_limits
        self._served = served
        self._on_event = on_event
        self._saved = SessionReceipts()
        self.budget = budget
        self._account = budget.join(agent, self.emit)
        self._summaries = None
        if summariser is not None:
            self._summaries = Summaries(summariser, budget, agent)

    def _begin_arguments(self) -> dict[str, Any]:
        """The arguments of `_begin`, as they are now."""
        return {
            "budget": self.budget,
            "agent": self._account.agent,
            "summariser": None
            if self._summaries is None
            else self._summaries.summariser,
            "on_event": self._on_event,
            "has_limits": self._has_limits,
            "served": self._served,
        }

    @property
    def is_held_out(self) -> bool:
        """Whether the conversation passes unfitted, to be compared with (``holdout=``)."""
        return self.settings.policy.name == HELD_OUT.name

    @property
    def _receipts(self) -> ReceiptWriter:
        """The writer of this session's receipts."""
        adds_tools = self.settings.recall != "host"
        tenant = self.settings.tenant
        agent = self._account.agent
        return ReceiptWriter(
            self.store,
            tenant,
            agent,
            adds_tools,
            self.is_held_out,
            self._saved,
        )

    def __copy__(self) -> Self:
        return self.__deepcopy__(None)

    def __deepcopy__(self, memo: Any) -> Self:
        """A session of the same state, on the same store and budget."""
        copy: Self = _restore_session(type(self), *self._carried())
        copy.store = self._lent(self.store)
        return copy

    def __reduce__(self) -> Any:
        """Pickled, it is its state, with the store, the budget and whoever is called by it.

        The newest view stays behind: after `fit` there is one.

        Raises:
            NotCarried: one of these cannot go along.
        """
        settings, state, beside = self._carried()
        for field in settings.__struct_fields__:
            check(field, getattr(settings, field))
        for name, value in beside.items():
            check(name, value)
        return _restore_session, (
            type(self),
            settings,
            replace(state, newest=None),
            beside,
        )

    def _carried(self) -> tuple[Settings, SessionState, dict[str, Any]]:
        """Settings, state and resources: everything that a copy needs.

        Another thread may be in a turn just now: then this is the state before it.
        """
        state = self._state  # one value, read once
        newest = None if state.newest is None else state.newest.apart()
        beside = {"store": self.store, **self._begin_arguments()}
        return self.settings, replace(state, cache=None, newest=newest), beside


def _restore_session(
    kind: type[Any],
    settings: Settings,
    state: SessionState,
    beside: Mapping[str, Any],
) -> Any:
    """A session with the state of another one, in this process or in a new one."""
    session = object.__new__(kind)
    session.settings = settings
    session._state = state
    options = dict(beside)
    session._use(options.pop("store"))
    session._begin(**options)
    return session
