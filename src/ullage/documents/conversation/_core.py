"""What both conversations share, each call as steps; and the conversation for synchronous code."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from msgspec import Struct

from ullage.core.contract.policy import Policy
from ullage.core.contract.ranges import condensed
from ullage.core.errors import ConfigError
from ullage.core.history.window import Window
from ullage.core.locks import Lock
from ullage.core.turn.filling import Asking, Filled, fill, refusal
from ullage.core.values.carried import Portable
from ullage.core.values.edits import ProposedEdit
from ullage.core.values.effects import Commit, Do, Steps, Summarise
from ullage.core.values.limits import Limits
from ullage.core.values.usage import Usage
from ullage.documents import PolicyName, preset
from ullage.documents.conversation._plan import (
    CompactionDraft,
    Row,
    planned,
    row_of,
    summarising,
)
from ullage.documents.conversation.store import (
    CompactionPart,
    ConversationStore,
    StoredMessage,
)
from ullage.session.closing import Closing
from ullage.session.drivers import run
from ullage.session.session import Session
from ullage.session.spend.budget import Budget
from ullage.session.summarise import Summaries, Summariser, of
from ullage.stores import AsyncStore, Store

if TYPE_CHECKING:
    from ullage.session.aio import AsyncSession  # it imports asyncio

T = TypeVar("T")
_ROUNDS = 3
"""So many compactions a fit makes at most."""


class CompactionResult(Struct, frozen=True, kw_only=True):
    """What one compaction did (three-layer document, "Compaction Service").

    Attributes:
        was_compacted: whether there was one.
        tokens_before: what the request held, by the window's estimate.
        tokens_after: what it holds now.
        messages_compacted: how many messages the summary covers, of the whole history.
        summary: its text, without the words around it; None where there was none.
        compaction_part_id: its row's; None where there was none.
    """

    was_compacted: bool = False
    tokens_before: int = 0
    tokens_after: int = 0
    messages_compacted: int = 0
    summary: str | None = None
    compaction_part_id: str | None = None


class ConversationCore(Portable, ABC):
    """What both conversations share. The arguments are those of `Conversation`."""

    _session_of: ClassVar[type[Session] | type[AsyncSession]]
    session: Session | AsyncSession

    def __init__(
        self,
        kept: ConversationStore,
        name: str,
        model: str,
        *,
        policy: PolicyName | str | Policy = "three_layer",
        limits: Limits | None = None,
        store: str | os.PathLike[str] | Store | AsyncStore | None = None,
        tenant: str = "",
        recall: bool | None = None,
        budget: Budget | None = None,
        summariser: Summariser | Callable[[Summarise], Any] | None = None,
        user_tools: Iterable[str] = (),
    ) -> None:
        policy = preset(policy) if isinstance(policy, str) else policy
        self._stage = summarising(policy)
        writer = None if summariser is None else of(summariser)
        if (
            writer is not None
            and writer.is_async
            and self._session_of is Session
        ):
            raise ConfigError(
                "summariser",
                "it must be awaited",
                "Use an AsyncConversation, or a sync client.",
            )
        self.session = self._session_of(
            model,
            policy=policy,
            limits=limits,
            format=kept.wire,
            store=store,
            tenant=tenant,
            recall=policy.toolset.offered != "no"
            if recall is None
            else recall,
            budget=budget,
            redact=kept.redact,
            user_tools=user_tools,
        )
        budget = self.session.budget
        self._summaries = (
            None if writer is None else Summaries(writer, budget, "summaries")
        )
        self._summary_usage = Usage()
        self._kept = kept
        self._name = name
        self._loaded: list[StoredMessage] | None = None
        self.compacted = CompactionResult()
        self._begin()

    @abstractmethod
    def _begin(self) -> None:
        """Make what each kind has of its own, once all else is set: its lock; read ahead."""

    @property
    def usage(self) -> Usage:
        """The sum of everything reported so far, summaries included."""
        if self._summaries is not None:
            self._summary_usage += self._summaries.take().usage
        return self.session.usage + self._summary_usage

    # ── what is loaded ───────────────────────────────────────────────────────────────

    def _load(self) -> Steps[list[StoredMessage]]:
        """What is loaded; read again where it is not known what was written."""
        if self._loaded is None:
            read = partial(self._kept.load, self._name, as_user=True)
            self._loaded = list((yield Do(read)))
        return self._loaded

    def _messages(self) -> Steps[list[Any]]:
        return [stored.message for stored in (yield from self._load())]

    def _append(self, messages: Sequence[Any]) -> Steps[tuple[str, ...]]:
        loaded = self._loaded
        self._loaded = None
        messages = self._kept.redacted(messages)
        ids: tuple[str, ...] = yield Do(
            partial(self._kept.append, self._name, messages)
        )
        if loaded is not None:
            self._loaded = loaded + [
                StoredMessage(
                    id=id, message=message, is_compacted=False, created_at=""
                )
                for id, message in zip(ids, messages, strict=True)
            ]
        return ids

    def _stored(self, index: int | None) -> StoredMessage | None:
        """The loaded message at an index of the session's window, which has no system's head."""
        if index is None or self._loaded is None:
            return None
        wire = self._kept.wire
        messages = [stored.message for stored in self._loaded]
        at = len(wire.leading({wire.key: messages})) + index
        return self._loaded[at] if at < len(self._loaded) else None

    # ── one turn ─────────────────────────────────────────────────────────────────────

    def _fit(self, request: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        key = self._kept.wire.key
        if request.get(key):
            raise ConfigError(
                key, "it is kept already", "Give the request without it."
            )
        view = yield from self._view(request)
        window = self.session.window
        written = None
        message_tokens = sum(map(window.message_tokens, range(window.size)))
        tokens_before = window.calibration.apply(
            window.head_tokens + message_tokens
        )
        for _ in range(_ROUNDS):
            part = yield from self._compact()
            if part is None:
                break
            written = part
            view = yield from self._view(request)
        tokens_after = self.session.window.estimate
        if written is None:
            self.compacted = CompactionResult(
                tokens_before=tokens_after, tokens_after=tokens_after
            )
        else:
            self.compacted = CompactionResult(
                was_compacted=True,
                tokens_before=tokens_before,
                tokens_after=tokens_after,
                messages_compacted=written.compacted_message_count,
                summary=written.summary,
                compaction_part_id=written.id,
            )
        return view

    def _view(self, request: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """The session's view of what is loaded."""
        full_request = {
            **request,
            self._kept.wire.key: (yield from self._messages()),
        }
        view: dict[str, Any] = yield Do(
            partial(self.session.fit, full_request)
        )
        return view

    def _compact(self) -> Steps[CompactionPart | None]:
        """Summarise all before the boundary, if the view shows a summary of some of it.

        None if it does not, or if nothing is won.
        """
        summaries = condensed(self.session.window)
        boundary = self._stored(summaries[-1].stop if summaries else None)
        if boundary is None:
            return None
        plan: CompactionDraft = yield self._planned(boundary.id)
        if plan.cut is None:
            return None
        filled = self._begun(plan.window, plan.cut)
        if filled is None:
            filled = yield from self._ask(plan.window, plan.cut)
        if filled.refused:
            self.session.emit(refusal(filled.refused))
        row: Row | None = yield Do(
            partial(row_of, plan, filled.cut, self._kept)
        )
        if row is None:
            return None
        outputs, write = row
        yield Commit(outputs, ())
        return (yield from self._written(write))

    def _planned(self, boundary_id: str) -> Do:
        """Read the whole history, and plan its compaction up to a boundary."""
        session = self.session
        window = session.window
        tenant = session.settings.tenant
        return Do(
            partial(
                planned,
                self._kept,
                self._name,
                boundary_id,
                self._stage,
                window,
                tenant,
            )
        )

    def _begun(self, window: Window, cut: ProposedEdit) -> Filled | None:
        """What came of a summary that was begun beside the turns, if one was."""
        return None

    def _ask(self, window: Window, cut: ProposedEdit) -> Steps[Filled]:
        model = window.meter.model
        asking = None
        if self._summaries is not None:
            asking = Asking(
                partial(self._summaries.summariser.window_for, caller=model),
                model,
            )
        return (yield from fill(cut, asking, window.meter.text))

    def _written(
        self, write: Callable[[], CompactionPart]
    ) -> Steps[CompactionPart]:
        """Write a compaction down, and load what is left."""
        self._loaded = None
        part: CompactionPart = yield Do(write)
        yield from self._load()
        return part


class Conversation(ConversationCore, Closing):
    """One conversation of a `ConversationStore`, kept within its window.

    Args:
        kept: where its messages are, in their provider's form.
        name: which conversation of that store.
        model: the model its requests are for.
        policy: a policy that compacts, or the name of one.
        store: where what is set aside is kept. Give one that lasts.
        recall: whether requests offer the recall tools; None: if the policy's toolset is offered.
        limits, tenant, budget, summariser, user_tools: see `ullage.Session`. Summaries are charged
            too.

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

        Args:
            messages: as the provider takes them; dicts, or SDK objects.

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
            return run(
                steps, session.store, session.settings.tenant, self._summaries
            )
