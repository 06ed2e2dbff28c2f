"""Requests that go as they came: what stands in the place of a view that cannot be made.

A call, a loop or an adapter never ends a run that would go on without ullage. What cannot be
fitted is sent as it came, and an event of kind ``"unfitted"`` says why. `Session.fit` raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Any

from ullage.core.errors import BudgetExceeded, UllageError
from ullage.core.values.events import Event
from ullage.core.values.usage import Usage
from ullage.session.drivers import Actions
from ullage.wires import Format, model_in
from ullage.wires.reported import usage_of

if TYPE_CHECKING:
    from ullage.session.provider.passing import PassMixin


class Unfitted(dict[str, Any]):
    """A request as it came, with the interface of a view.

    Args:
        request: the request; it is sent with the values it has.
        session: of the conversation: what the reply came to counts there.
        wire: its format; None if it cannot be told.
    """

    def __init__(
        self,
        request: Mapping[str, Any],
        session: PassMixin,
        wire: Format | None,
    ) -> None:
        super().__init__(request)
        self.wire = wire
        self._session = session
        self._is_counted = False

    def __copy__(self) -> Unfitted:
        return Unfitted(self, self._session, self.wire)

    def __deepcopy__(self, memo: Any) -> Unfitted:
        return Unfitted(deepcopy(dict(self), memo), self._session, self.wire)

    def __reduce__(self) -> Any:
        """Pickled, it is the request; see `View`."""
        return dict, (dict(self),)

    def owns(self, call: Any) -> bool:
        """Return False: no recall tool was offered in it."""
        return False

    def refused(self, error: Any) -> None:
        """Return None: nothing shorter can be made of it."""

    def reports(self, event: Any) -> bool:
        """Whether an event of a stream speaks of usage."""
        return (
            self.wire is not None
            and self.wire.usage_of_stream((event,)) is not None
        )

    def observe(self, reply: Any) -> None:
        """Count the usage of the reply. The estimates learn nothing from it.

        Args:
            reply: as for `View.observe`.
        """
        if self.wire is None or self._is_counted:
            return
        usage = None
        with suppress(Exception):  # the reply is anybody's object
            usage = usage_of(reply, self.wire)
        if isinstance(usage, Usage):
            self._is_counted = True
            model = model_in(self)
            name = (
                model
                if isinstance(model, str) and model
                else self._session.settings.model
            )
            self._session._count(usage, name, self.wire.wire)


def went_as_it_came(error: Exception) -> Event:
    """The event of a request that could not be fitted.

    Args:
        error: why. An error of ours is quoted; any other is named alone.
    """
    reason = type(error).__name__
    if isinstance(error, UllageError):
        reason = f"{reason}: {error}"
    return Event(
        kind="unfitted", where="request", why=f"sent as it came: {reason}"
    )


def fit_or_pass(
    session: Any,
    request: Mapping[str, Any],
    refusal: BaseException | None = None,
) -> Actions[Any]:
    """The steps of `PassMixin.fit_or_pass`, for a session of either kind."""
    while True:
        try:
            return (yield partial(session.fit, request))
        except BudgetExceeded as exceeded:
            if not exceeded.can_retry or not (yield session.wait_for_budget):
                raise
        except Exception as error:  # ours, and no reason to end the run
            if refusal is not None:
                raise refusal from error
            return session.pass_on(request, error)
