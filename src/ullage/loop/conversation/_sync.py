"""The conversation for synchronous code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from ullage.locks import Lock
from ullage.loop.conversation._core import ConversationCore
from ullage.session import Session
from ullage.session.closing import Closing
from ullage.session.drivers import run
from ullage.values.effects import Steps

__all__ = ["Conversation"]

T = TypeVar("T")


class Conversation(ConversationCore, Closing):
    """One conversation of a `ConversationStore`, kept within its window.

    Args:
        kept: where its messages are, in their provider's form.
        name: which conversation of that store.
        model: the model its requests are for.
        policy: a policy that compacts, or the name of one.
        limits: see `ullage.Session`.
        store: where what is set aside is kept; see `ullage.Session`. Give one that lasts.
        tenant: see `ullage.Session`.
        recall: whether requests offer the recall tools; None: if the policy's toolset is offered.
        budget: see `ullage.Session`; summaries are charged to it too.
        summariser: a model that adds to the summaries; see `ullage.Session`.

    Attributes:
        session: what fits the loaded messages; it also takes replies in and answers recalls.
        compacted: what the newest `fit` did.

    Raises:
        ConfigError: the policy has no compaction, or the summariser must be awaited.
        StoreError: the conversation cannot be read.

    It may be used from several threads; its calls run one at a time.
    """

    session: Session
    _session_of = Session

    def _begin(self) -> None:
        self._lock = Lock()
        self._run(self._load())

    @property
    def messages(self) -> list[Any]:
        """What is loaded: the newest summary, then every message from its boundary on."""
        return self._run(self._messages())

    def append(self, messages: Sequence[Any]) -> tuple[str, ...]:
        """Keep some messages at the end, all of them or none. Returns their ids.

        Raises:
            FormatError, StoreError: see `ConversationStore.append`.
        """
        return self._run(self._append(messages))

    def fit(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """A request that fits, with what is loaded as its history; compacts where it is time.

        Args:
            request: the keyword arguments of the provider call, but for the history.

        Raises:
            ConfigError: there is a history in the request.
            FormatError, OverLimitError, StoreError, BudgetExceeded: see `ullage.Session.fit`.
        """
        return self._run(self._fit(request))

    def close(self) -> None:
        """Close the session; see `ullage.Session.close`."""
        self.session.close()

    def _run(self, steps: Steps[T]) -> T:
        session = self.session
        with self._lock:
            return run(steps, session.store, session.settings.tenant, self._summaries)
