"""What the session and the session for an event loop share: everything that does no I/O.

    SessionCore                      what it is given, and where it keeps things
      ├ ReplyMixin    replies        what the model answered
      │  └ TurnMixin  turns          the views
      │     └ ChangeMixin  changes   one state, one assignment: the laws
      ├ PassMixin     provider/      refusals, and what is sent as it came
      └ RecallMixin   answering      what was set aside, opened again

`HostMixin`, `ReadMixin`, `CopyMixin` and `DecisionMixin` say in their files what they add.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Literal

from msgspec.structs import replace

from ullage.core.contract.policy import Policy
from ullage.core.redaction import Redact
from ullage.core.tokens.models import preload
from ullage.core.turn.caches import SessionCache
from ullage.core.turn.settings import Settings
from ullage.core.turn.state import State
from ullage.core.values.authors import named_tools
from ullage.core.values.effects import Summarise
from ullage.core.values.limits import Limits
from ullage.policy.stages.default import SAFEGUARDS, SUMMARISED
from ullage.policy.stages.fingerprints import fingerprint
from ullage.policy.stages.named import PolicyName, preset
from ullage.session.answering import RecallMixin
from ullage.session.arguments import check_arguments
from ullage.session.provider.passing import PassMixin
from ullage.session.replies import ReplyMixin
from ullage.session.spend.budget import Budget
from ullage.session.state import SessionState
from ullage.session.summarise import Summariser, of
from ullage.session.telling import OnEvent
from ullage.stores import AsyncStore, Store, with_files
from ullage.stores.objects.opening import beside
from ullage.wires import (
    ALL_FORMATS,
    Format,
    FormatName,
    format_of,
)

_OURS: dict[str, Any] = {"safeguards": SAFEGUARDS, "formats": ALL_FORMATS}
"""What every session has of ours."""


class SessionCore(ReplyMixin, PassMixin, RecallMixin, ABC):
    """What both sessions share: settings, state, and everything that does no I/O.

    The arguments are those of `Session`.
    """

    store: Any
    bytes_beside = 0
    """How much others keep of its conversation as long as it is there."""

    def __init__(
        self,
        model: str,
        *,
        policy: PolicyName | str | Policy = "default",
        limits: Limits | None = None,
        format: FormatName | str | Format | None = None,
        store: str | os.PathLike[str] | Store | AsyncStore | None = None,
        blobs: str | None = None,
        cache: str | None = None,
        tenant: str = "",
        recall: bool | Literal["auto", "host"] = "auto",
        joins: bool = True,
        repair: bool = False,
        state: State | None = None,
        budget: Budget | None = None,
        agent: str = "",
        summariser: Summariser | Callable[[Summarise], Any] | None = None,
        redact: Redact | None = None,
        user_tools: Iterable[str] = (),
        on_event: OnEvent | None = None,
        outline: bool = True,
    ) -> None:
        check_arguments(model, limits, recall, budget)
        chosen = _policy(policy, has_summariser=summariser is not None)
        asking = named_tools(user_tools)
        self.settings = Settings(
            model=model,
            policy=chosen,
            **_OURS,
            limits=limits,
            format=None if format is None else format_of(format),
            tenant=tenant,
            recall=recall,
            joins=joins,
            repair=repair,
            redact=redact,
            user_tools=asking,
            outlines=outline,
            agent=agent,
            policy_fingerprint=fingerprint(chosen, redact, asking),
        )
        self._state = SessionState(state or State(), cache=SessionCache())
        self._begin(
            budget=Budget(tokens=0) if budget is None else budget,
            agent=agent,
            summariser=None if summariser is None else of(summariser),
            on_event=on_event,
            has_limits=limits is not None,
        )
        self._hold(beside(store, blobs, cache))
        preload(model)

    @abstractmethod
    def _hold(self, store: Any) -> None:
        """Open the store and make the lock; sync and async sessions differ."""

    def _with_files(self, store: Store) -> Store:
        """The store with the spill files that the policy wants; tells the policy their place."""
        policy = self.settings.policy
        store, directory = with_files(
            store, policy.spill_directory, self.settings.tenant
        )
        self._place_files(directory)
        return store

    def _place_files(self, directory: str | None) -> None:
        policy = replace(self.settings.policy, spill_directory=directory)
        self.settings = replace(self.settings, policy=policy)


def _policy(policy: str | Policy, *, has_summariser: bool) -> Policy:
    """The policy of a name; with a summariser the default is the one that compacts."""
    if not isinstance(policy, str):
        return policy
    if policy == "default" and has_summariser:
        return SUMMARISED
    return preset(policy)
