"""One session at a budget: what it has claimed, and the call it has under way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import ismethod
from itertools import count
from typing import NamedTuple, TypeAlias
from weakref import WeakMethod

from ullage.core.values.events import Event
from ullage.core.values.usage import Usage
from ullage.session.spend.allowance import NOTHING
from ullage.session.spend.calls import Call
from ullage.session.spend.cost import priced

_NUMBERS = count(1)


class PendingCall(NamedTuple):
    """A call under way, as it counts if nobody reports it.

    Attributes:
        view: the number of its view.
        model: the model that is called.
        tokens: our estimate of its prompt.
        output_tokens: what is known of its reply.
        wire: the name of its wire; ``""`` if it is not known.
    """

    view: int
    model: str
    tokens: int
    output_tokens: int = 0
    wire: str = ""

    def as_call(self, agent: str) -> Call:
        """The call, priced by our estimate.

        Args:
            agent: the name it is listed under.
        """
        usage = Usage(
            fresh_tokens=self.tokens, output_tokens=self.output_tokens
        )
        return priced(
            agent,
            self.model,
            usage,
            self.tokens,
            reported=False,
            wire=self.wire,
        )


AbandonedCall: TypeAlias = tuple[str, int, PendingCall]
"""What a session left behind that is gone: its agent, its account, a call nobody reported."""


class Account:
    """What a budget knows of one session. Only its budget changes it.

    Args:
        agent: the name its calls are listed under.
        tell: takes the events that concern it. A session's method is held weakly, as it holds this.
        drop: takes what is left behind when nobody holds the account any more.

    Attributes:
        number: tells it from others, from 1 on.
        claim: what the call under way may come to.
        pending: the call under way, None where it is reported or nothing is limited.
        wrapped_up: whether it has been given its one wrap-up.
        is_calling: whether a view was asked for and no reply to it was reported.
    """

    # of the class: `__del__` reads it wherever `__init__` was interrupted
    pending: PendingCall | None = None

    def __init__(
        self,
        agent: str,
        tell: Callable[[Event], None],
        drop: Callable[[AbandonedCall], None],
    ) -> None:
        self.agent = agent
        self._tell = WeakMethod(tell) if ismethod(tell) else lambda: tell
        self.number = next(_NUMBERS)
        self.claim = NOTHING
        self.wrapped_up = False
        self.is_calling = False
        self._drop = drop

    def tell(self, event: Event) -> None:
        """Pass an event on to the session, if it is still there.

        Args:
            event: what happened.
        """
        if tell := self._tell():
            tell(event)

    @contextmanager
    def sending(self) -> Iterator[None]:
        """A block in which a view is made. If it fails, no call is made for it, and none counts."""
        previous = self.pending
        try:
            yield
        except BaseException:
            self.pending = previous
            raise

    def __del__(self) -> None:
        if (
            self.pending is not None
        ):  # at any moment: the budget's lock may be held
            self._drop((self.agent, self.number, self.pending))
