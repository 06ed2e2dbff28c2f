"""A conversation that is kept in a database and loaded from its newest summary on.

    kept = Conversation(ConversationStore("chat.db"), "session-1", "gpt-4.1", store="outputs.db")
    kept.append([{"role": "user", "content": "Mend the loader."}])
    reply = client.chat.completions.create(**kept.fit({"model": "gpt-4.1"}))
    kept.append([reply.choices[0].message])

A session fits what is loaded. Where its policy, or the guard, finds that it is time to stand for
messages by less, the summary is made anew of the whole history, the compacted messages too, and
the boundary, the summary and the marks are written in one transaction. What is loaded begins
there, so that one summary stands however often it is compacted.

    ┌ history ─────────────────────────────┐
    │ compacted, kept  │ from the boundary │      the summary is made of the left side
    └──────────────────┴───────────────────┘
             summary + │ from the boundary │      what is loaded, fitted and sent
                       └───────────────────┘
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ullage import canon
from ullage.budget import Budget
from ullage.compaction import Asking, Filled, fill
from ullage.drivers import run
from ullage.edits import Cut, Held, Span
from ullage.effects import Summarise
from ullage.errors import ConfigError
from ullage.events import Event
from ullage.limits import Limits
from ullage.meter import Meter
from ullage.policy import Policy
from ullage.presets import preset
from ullage.session import Session
from ullage.stages.account import outputs_of
from ullage.stages.compact import OURS, compact
from ullage.stores import Store
from ullage.stores.conversations import CompactionPart, ConversationStore, StoredMessage
from ullage.summarise import Summaries, Summariser, of
from ullage.transcript import Transcript
from ullage.usage import Usage
from ullage.window import Window

__all__ = ["CompactionResult", "Conversation"]

_ROUNDS = 3
_SUMMARY_SHARE = 0.12
_BOUNDLESS_TOKENS = 1 << 40
"""The limit of the window over the whole history: nothing of it is ever sent."""


class CompactionResult(Struct, frozen=True, kw_only=True):
    """What one compaction did (three-layer document, "Compaction Service").

    Attributes:
        was_compacted: whether there was one.
        tokens_before: what the request held, by the window's estimate.
        tokens_after: what it holds now.
        messages_compacted: how many messages the summary stands for, of the whole history.
        summary: its text, without the words around it; None where there was none.
        compaction_part_id: its row's; None where there was none.
    """

    was_compacted: bool = False
    tokens_before: int = 0
    tokens_after: int = 0
    messages_compacted: int = 0
    summary: str | None = None
    compaction_part_id: str | None = None


class Conversation:
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
    """

    def __init__(
        self,
        kept: ConversationStore,
        name: str,
        model: str,
        *,
        policy: str | Policy = "three_layer",
        limits: Limits | None = None,
        store: str | os.PathLike[str] | Store | None = None,
        tenant: str = "",
        recall: bool | None = None,
        budget: Budget | None = None,
        summariser: Summariser | Callable[[Summarise], Any] | None = None,
    ) -> None:
        policy = preset(policy) if isinstance(policy, str) else policy
        self._stage = _summarising(policy)
        self.session = Session(
            model,
            policy=policy,
            limits=limits,
            format=kept.wire.name,
            store=store,
            tenant=tenant,
            recall=policy.toolset.offered if recall is None else recall,
            budget=budget,
        )
        self._summaries: Summaries | None = None
        if summariser is not None:
            self._summaries = Summaries(of(summariser), self.session.budget, "summaries")
            if self._summaries.summariser.is_async:
                raise ConfigError("summariser", "it must be awaited", "Give a sync one.")
        self._summary_usage = Usage()
        self._kept = kept
        self._name = name
        self._loaded = list(kept.load(name, as_user=True))
        self.compacted = CompactionResult()

    @property
    def messages(self) -> list[Any]:
        """What is loaded: the newest summary, then every message from its boundary on."""
        return [stored.message for stored in self._loaded]

    @property
    def usage(self) -> Usage:
        """The sum of everything reported so far, summaries included."""
        return self.session.usage + self._summary_usage

    def append(self, messages: Sequence[Any]) -> tuple[str, ...]:
        """Keep some messages at the end, all of them or none. Returns their ids.

        Raises:
            FormatError, StoreError: see `ConversationStore.append`.
        """
        ids = self._kept.append(self._name, messages)
        self._loaded += [
            StoredMessage(id=id, message=message, is_compacted=False, created_at="")
            for id, message in zip(ids, messages, strict=True)
        ]
        return ids

    def fit(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """A request that fits, with what is loaded as its history; compacts where it is time.

        Args:
            request: the keyword arguments of the provider call, but for the history.

        Raises:
            ConfigError: there is a history in the request.
            FormatError, OverLimitError, StoreError, BudgetExceeded: see `ullage.Session.fit`.
        """
        key = self._kept.wire.key
        if request.get(key):
            raise ConfigError(key, "it is kept already", "Give the request without it.")
        written, before = None, 0
        for _ in range(_ROUNDS):
            asked = {**request, key: self.messages}
            view = self.session.fit(asked)
            before = before or _unfitted(self.session.window)
            boundary = self._boundary(asked)
            part = None if boundary is None else self._compact(boundary)
            if part is None:
                break
            written = part
        after = self.session.window.estimate
        self.compacted = CompactionResult(tokens_before=after, tokens_after=after)
        if written is not None:
            self.compacted = CompactionResult(
                was_compacted=True,
                tokens_before=before,
                tokens_after=after,
                messages_compacted=written.compacted_message_count,
                summary=written.summary,
                compaction_part_id=written.id,
            )
        return view

    def _boundary(self, asked: Mapping[str, Any]) -> StoredMessage | None:
        """Where what is loaded should begin, if the view stands for some of it by less."""
        span = self.session.window.span
        at = len(self._kept.wire.leading(asked)) + (span[1] if span else 0)
        return self._loaded[at] if span and at < len(self._loaded) else None

    def _compact(self, boundary: StoredMessage) -> CompactionPart | None:
        """Summarise all before a boundary, and load what is left; None if nothing is won."""
        whole = self._kept.history(self._name)
        places = {stored.id: index for index, stored in enumerate(whole)}
        part = self._kept.newest_compaction(self._name)
        window, leading = self._window([stored.message for stored in whole])
        if part is not None:
            _stand(window, places[part.message_id] - leading, part)
        cut = self._cut(window, places[boundary.id] - leading)
        if cut is None:
            return None
        written = self._write(boundary.id, window, cut)
        self._loaded = list(self._kept.load(self._name, as_user=True))
        return written

    def _window(self, messages: list[Any]) -> tuple[Window, int]:
        """The whole history without its leading system text, and how much that is."""
        wire, session = self._kept.wire, self.session
        leading = len(wire.leading({wire.key: messages}))
        transcript = Transcript(canon.root(wire.name, session.settings.tenant))
        for index in range(leading, len(messages)):
            message = wire.parse(messages[index], f"{wire.key}[{index}]")
            transcript.append(message, canon.digest_of(message))
        window = Window(transcript, Meter(session.window.meter.model), session.window.words)
        window.limit_tokens = window.context_tokens = _BOUNDLESS_TOKENS
        window.extend(len(transcript))
        return window, leading

    def _cut(self, window: Window, stop: int) -> Cut | None:
        """The cut that summarises the whole history up to a message."""
        most = int(self.session.window.limit_tokens * _SUMMARY_SHARE)
        floor_tokens = min(most, self._stage.keywords.get("floor_tokens") or most)
        cuts = self._stage(window, kept=lambda window, start: stop, floor_tokens=floor_tokens)
        return cuts[0] if cuts and not isinstance(cuts, Held) else None

    def _write(self, boundary_id: str, window: Window, cut: Cut) -> CompactionPart | None:
        """Have a model add to a summary, keep what it stands for, and then write it down."""
        filled = self._filled(window, cut)
        span = filled.cut.edit
        if not isinstance(span, Span):
            return None
        if filled.refused:
            why = f"{filled.refused}; the deterministic summary stands"
            self.session.events.append(Event(kind="summary_refused", where="summary", why=why))
        run_length = window.transcript.find(span.upto) or 0
        # All the run's outputs, not the new ones alone: this store may never have seen the others.
        outputs = (*outputs_of(window.transcript, 0, run_length), *cut.outputs)
        self.session.store.commit(self.session.settings.tenant, outputs, ())
        tokens = sum(sum(window.leaf_counts(index)) for index in range(run_length))
        summary = "\n\n".join(span.texts)
        return self._kept.mark_compacted(boundary_id, summary, tokens=tokens)

    def _filled(self, window: Window, cut: Cut) -> Filled:
        """A cut with what a model has to add, if there is one."""
        summaries, session, model = self._summaries, self.session, window.meter.model
        if summaries is None:
            return Filled(cut)
        asking = Asking(partial(summaries.summariser.window_for, caller=model), model)
        steps = fill(cut, asking, window.meter.text)
        filled = run(steps, session.store, session.settings.tenant, summaries)
        self._summary_usage += summaries.take().usage
        return filled


def _unfitted(window: Window) -> int:
    """What the request would hold if nothing stood for a run of messages."""
    held = sum(map(window.message_tokens, range(window.size)))
    return window.calibration.apply(window.head_tokens + held)


def _stand(window: Window, stop: int, part: CompactionPart) -> None:
    """Let the newest summary stand, for a model to go on from."""
    chain = window.transcript.chain
    why = "it was summarised before"
    window.apply(Span(chain[0], chain[stop], part.text, "", why, said=part.summary))


def _summarising(policy: Policy) -> partial[Any]:
    """A policy's compaction, for summaries that the store puts its own words around."""
    stage = policy.on_request
    if not isinstance(stage, partial) or stage.func is not compact:
        raise ConfigError("policy", "it has no compaction", "Use a policy that compacts.")
    prompt = replace(stage.keywords.get("prompt", OURS), opens="", closes="")
    return partial(stage, prompt=prompt, keeps_task=False, least_messages=1, least_share=0.0)
