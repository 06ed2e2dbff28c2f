"""What everybody may read of a session, from any thread, also while a turn is under way.

Nothing here takes a lock, and nothing writes: the state is one frozen value, and the newest view in
it a snapshot (`ullage.core.history.frozen`). In the middle of a turn a session reads as before it.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ullage.core.errors import ConfigError
from ullage.core.history.window import Window
from ullage.core.turn.settings import Settings
from ullage.core.turn.state import State
from ullage.core.values.events import Event
from ullage.core.values.receipts import ReceiptTotals
from ullage.core.values.toolset import ToolSpec
from ullage.core.values.usage import Usage
from ullage.session.picture import OneWindow, PictureMixin
from ullage.session.receipts.writer import SessionReceipts
from ullage.session.spend.account import Account
from ullage.session.spend.budget import Budget
from ullage.session.spend.calls import Call
from ullage.session.state import SessionState
from ullage.session.view import RequestInfo


class ReadMixin(PictureMixin):
    """The part of a session that may be read at any time.

    Attributes:
        settings: what the session was asked to be.
        budget: what it may spend.
    """

    settings: Settings
    budget: Budget
    _state: SessionState
    _account: Account
    _saved: SessionReceipts

    def __repr__(self) -> str:
        newest = self._state.newest
        size = "nothing was fitted yet" if newest is None else newest.summary
        policy = self.settings.policy.name
        return f"<{type(self).__name__}, policy {policy}: {size}>"

    def _picture(self) -> OneWindow | None:
        newest = self._state.newest
        return None if newest is None else newest.picture()

    @property
    def state(self) -> State:
        """What lasts between two turns: one frozen value, to go on from elsewhere."""
        return self._state.persisted

    @property
    def events(self) -> tuple[Event, ...]:
        """What happened so far, in order; of a long session the newest 4,096."""
        return self._state.events

    @property
    def usage(self) -> Usage:
        """The sum of everything reported so far."""
        return self.state.usage

    @property
    def cost_usd(self) -> float | None:
        """What the reported usage cost at list price, or None if a price is not known."""
        return self.state.cost_usd

    @property
    def saved(self) -> ReceiptTotals:
        """What this session's requests came to, and would have come to without ullage.

        `ullage run` and `ullage report` print the same figures. ``print(session.saved)`` puts them
        into a sentence. A copy of a session begins again.
        """
        return self._saved.totals

    @property
    def calls(self) -> tuple[Call, ...]:
        """Every call that was observed: its tokens, its cost, and our estimate of its prompt."""
        return self.budget.calls_of(self._account)

    @property
    def window(self) -> Window:
        """The newest window: how much is shown, of what limit, and every edit.

        It stays as it is while later turns go on, and may be read from any thread. It is made when
        it is first asked for, in time proportional to the history; `repr` needs none of it.

        Raises:
            ConfigError: nothing was fitted yet.
        """
        return self._newest.window

    def owns(self, call: Any) -> bool:
        """Whether a tool call of the model is for `recall` and not for the caller's tools.

        A call is ours if its name and our definition are in the newest request.

        Args:
            call: a tool call as it is in the reply, a dict or the SDK's object.
        """
        newest = self._state.newest
        return newest is not None and newest.owns(call)

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The recall tools as this session's notices name them; see `ullage.recall_tools`."""
        opened = self.state.policy_record
        tools = self.settings.policy.toolset.tools
        if opened is None or not opened.prefix:
            return tools
        return tuple(
            replace(spec, name=opened.prefix + spec.name) for spec in tools
        )

    @property
    def _newest(self) -> RequestInfo:
        newest = self._state.newest
        if newest is None:
            raise ConfigError(
                "session", "nothing was fitted yet", "Call fit(request) first."
            )
        return newest
