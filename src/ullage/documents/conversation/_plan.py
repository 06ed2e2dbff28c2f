"""One compaction of a whole conversation: what a summary covers, and its row."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeGuard

from msgspec.structs import replace

from ullage.core.contract.policy import Policy, Stage
from ullage.core.errors import ConfigError
from ullage.core.history.index import outputs_of
from ullage.core.history.window import Window
from ullage.core.tokens.meter import Meter
from ullage.core.values.edits import ProposedEdit, ReplaceSpan, Skipped
from ullage.core.values.effects import Output
from ullage.documents.conversation.store import (
    CompactionPart,
    ConversationStore,
)
from ullage.documents.services import window_of
from ullage.policy.stages.compact import OURS, compact
from ullage.policy.stages.goals import of_messages
from ullage.policy.stages.quotes import USER_SHARE
from ullage.policy.stages.summary import summary

_SUMMARY_SHARE = 0.12
_BEFORE_CHARS = 8_000
"""For what is before a stage's summary, the task say, which is loaded no more either."""
_BOUNDLESS_TOKENS = 1 << 40
"""The limit of the window over the whole history: nothing of it is ever sent."""


Row: TypeAlias = tuple[tuple[Output, ...], Callable[[], CompactionPart]]
"""Everything that a compaction names, which is to be kept first; and what writes its row."""


class CompactionDraft(NamedTuple):
    """A compaction before a model has added to it.

    Attributes:
        window: the whole history but for the system's head, the newest summary shown.
        ids: the ids of its messages, in order.
        cut: the summary of all before a boundary, or None if nothing is won by it.
    """

    window: Window
    ids: tuple[str, ...]
    cut: ProposedEdit | None


def summarising(policy: Policy) -> Stage:
    """A policy's compaction; of ours, with no words around it, for the store puts its own.

    Raises:
        ConfigError: the policy has none.
    """
    stage = policy.on_request
    if stage is None:
        raise ConfigError(
            "policy", "it has no compaction", "Use a policy that compacts."
        )
    if not _is_ours(stage):
        return stage
    prompt = replace(stage.keywords.get("prompt", OURS), opens="", closes="")
    return partial(
        stage,
        prompt=prompt,
        keeps_task=False,
        least_messages=1,
        least_share=0.0,
    )


def _is_ours(stage: Stage) -> TypeGuard[partial[Any]]:
    """Whether a stage may be told where to end, and how much its deterministic text may hold."""
    return isinstance(stage, partial) and stage.func is compact


def planned(
    store: ConversationStore,
    name: str,
    boundary_id: str,
    stage: Stage,
    loaded: Window,
    tenant: str,
) -> CompactionDraft:
    """Read a whole conversation and plan its compaction. It blocks, and changes nothing.

    The boundary is the first message that is still to be loaded. ``loaded`` is the window of what
    is loaded: its model, limit and words hold here too.

    Raises:
        StoreError: the conversation cannot be read.
    """
    # Read before the history, which then holds whatever message it names.
    part = store.newest_compaction(name)
    stored = store.history(name)
    messages = [row.message for row in stored]
    leading = len(store.wire.leading({store.wire.key: messages}))
    ids = tuple(row.id for row in stored[leading:])
    meter = Meter(loaded.meter.model, loaded.meter.detail)
    builder = window_of(
        messages,
        store.wire,
        loaded.words,
        leading=leading,
        tenant=tenant,
        meter=meter,
        redact=store.redact,
        user_tools=loaded.transcript.user_tools,
    )
    builder.limit(_BOUNDLESS_TOKENS, _BOUNDLESS_TOKENS)
    if part is not None:  # a model goes on from it
        chain = builder.window.transcript.chain
        reason = "it was summarised before"
        stop = chain[ids.index(part.message_id)]
        builder.apply(
            ReplaceSpan(
                chain[0], stop, part.text, "", reason, model_text=part.summary
            )
        )
    window = builder.window
    return CompactionDraft(
        window, ids, _cut(window, ids.index(boundary_id), stage, loaded)
    )


def row_of(
    plan: CompactionDraft, cut: ProposedEdit, store: ConversationStore
) -> Row | None:
    """A cut of this plan's history as it is to be written down; None if it is not a summary."""
    span = cut.edit
    window = plan.window
    if not isinstance(span, ReplaceSpan):
        return None
    stop = window.transcript.find(span.upto) or 0
    start = window.transcript.find(span.after) or 0
    texts = list(span.texts)
    if start:
        chars = _BEFORE_CHARS
        texts.insert(
            0, summary(window.transcript, 0, start, chars, user_chars=chars)
        )
    tokens = sum(sum(window.leaf_counts(index)) for index in range(stop))
    # All the run's outputs, not the new ones alone: this store may never have seen the others.
    outputs = (*outputs_of(window.transcript, 0, stop), *cut.outputs)
    write = partial(
        store.mark_compacted, plan.ids[stop], "\n\n".join(texts), tokens=tokens
    )
    return outputs, write


def _cut(
    window: Window, stop: int, stage: Stage, loaded: Window
) -> ProposedEdit | None:
    """The cut that summarises the history: up to a message, or as far as the stage has it."""
    if _is_ours(stage):
        limit = loaded.limit_tokens
        bound = stage.keywords
        account_tokens = _at_most(
            limit * _SUMMARY_SHARE, bound.get("account_tokens")
        )
        user_share = bound.get("user_share", USER_SHARE)
        cuts = stage(
            window,
            keep_from=lambda window, start: stop,
            account_tokens=account_tokens,
            user_tokens=_at_most(limit * user_share, bound.get("user_tokens")),
            goals=tuple(
                of_messages(goal, loaded) for goal in bound.get("goals", ())
            ),
            widens=False,
        )
    else:
        cuts = stage(window)
    proposals = () if isinstance(cuts, Skipped) else cuts
    return next(
        (cut for cut in proposals if isinstance(cut.edit, ReplaceSpan)), None
    )


def _at_most(tokens: float, bound_tokens: int | None) -> int:
    return (
        int(tokens) if bound_tokens is None else min(int(tokens), bound_tokens)
    )
