"""`three-layer-management.md`: outputs cut at once, old ones pruned near the limit.

Layer 1 cuts a tool's output by lines, bytes, length of line and characters by tool, and keeps
the whole as a file. Layer 2 prunes old outputs to their first characters, the oldest first, until
enough is won. Layer 3 puts a summary in the place of the older half of the conversation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar

from msgspec import field

from ullage.core.contract.policy import BesideStore, Policy
from ullage.core.errors import ConfigError
from ullage.core.values.briefs import Prompt
from ullage.core.values.edits import ProposedEdit, Skipped
from ullage.documents.presets._settings import (
    DocumentSettings,
    Natural,
    Positive,
    Share,
)
from ullage.policy.stages.compact import (
    AHEAD,
    any_of,
    asked,
    compact,
    newest_share,
    newest_turns,
    oldest_rough,
    over_and_pruned,
    rough_full,
    surely_over,
)
from ullage.policy.stages.emergency import emergency
from ullage.policy.stages.goals import by_count, by_rough
from ullage.policy.stages.placeholders import head_and_marker
from ullage.policy.stages.pressure import (
    GUARD_SHARE,
    newest_rough,
    over_share,
    rough_over,
)
from ullage.policy.stages.pressure import newest_share as newest_tokens
from ullage.policy.stages.prune import prune, results_only, rough_won
from ullage.policy.stages.shapes import DEFAULT_TOOL, head_lines
from ullage.policy.stages.truncate import Shape, truncate

TOOL_OUTPUT_LIMITS: Mapping[str, int] = {
    "read": 100_000,
    "bash": 50_000,
    "grep": 30_000,
    "glob": 20_000,
    "webfetch": 50_000,
    "websearch": 20_000,
    "list": 10_000,
    DEFAULT_TOOL: 50_000,
}
"""Characters shown of an output, by tool."""

_ELLIPSIS = "... (line truncated)"
_NOTICE = "---\n[Output truncated: {lines} → {kept_lines} lines, {size} → {kept_size}]\n"
_SPILLED = (
    "[Full output saved to: {path}]\n"
    "[Use 'read' tool with the path above to see full content]\n"
)
_ACCOUNT_TOKENS = 4_000
"""The most that the deterministic part of a summary has; the document has no such part."""
_PROTECTED_SHARE = 0.25
"""Near the limit: the newest share of it that no pruning touches."""
_LEAST_SHARE = 0.10
"""Near the limit: the least share of it that a pruning has to win."""
_LEAST_WON_SHARE = 0.05
"""What a compaction has to win, of the limit: else it would come again at every turn."""
_PRUNED = "[Output pruned: kept first {retain_chars} chars]"
_NO_DATABASE = "data/spill"
"""Where files go that are asked for without a place, and without a database to be beside."""


COMPACTION = Prompt(
    system="""You are a conversation summarizer. Your task is to create a concise summary of the \
conversation history.

Focus on:
1. Key decisions made
2. Important context and requirements discovered
3. Files that were modified and why
4. Current state of the task
5. Any pending items or blockers

Format the summary as:
## Conversation Summary

### Context
[Brief context of what was being worked on]

### Key Decisions
- [Decision 1]
- [Decision 2]

### Changes Made
- [File/change 1]
- [File/change 2]

### Current State
[Where things stand now]

### Pending Items
- [If any]

Keep the summary under 2000 tokens. Be concise but preserve critical context.""",
    opening="Summarize this conversation:\n\n",
    sections=(
        "## Conversation Summary",
        "### Context",
        "### Key Decisions",
        "### Changes Made",
        "### Current State",
    ),
    most_tokens=2_000,
    quoted=False,
    opens="[Previous conversation compacted]",
    closes="[End of compacted summary - {messages} messages, {tokens} tokens]",
)
"""The words of the document's compaction (layer 3)."""

_COMPACT = partial(
    compact,
    prompt=COMPACTION,
    keeps_task=False,
    account_tokens=_ACCOUNT_TOKENS,
    least_share=_LEAST_WON_SHARE,
    warning="Not enough messages to compact",
)
"""Layer 3: the oldest messages become a summary."""


class ThreeLayerSettings(DocumentSettings, frozen=True, rename="pascal"):
    """The document's constants, under the keys of its section ``TokenManagement``.

    Attributes:
        section: the name of that section.
        max_output_lines: lines shown of an output.
        max_output_bytes: bytes of UTF-8 shown of it, each line's end included.
        max_line_length: characters shown of a line.
        tool_output_limits: characters shown by tool, ``default`` for all others. A tool that
            is not named here keeps the document's limit (`TOOL_OUTPUT_LIMITS`).
        enable_disk_spillover: keep every output set aside as a file too. None: where a
            directory is named, or beside the session's SQLite file if its store is one.
        spill_directory: where these files are; None: ``spill`` beside the SQLite file.
        prune_protect_tokens: the newest parts of so many tokens are never pruned, and nothing
            is while the whole has fewer.
        prune_minimum_tokens: one pruning stops when it has won so many.
        prune_output_retain_chars: characters kept of a pruned output.
        prune_threshold: the share of the context window over which old outputs are pruned.
        default_context_window: the window of a model nobody knows, in tokens.
        default_max_output_tokens: what is left for the answer before old outputs are pruned.
        compaction_threshold: the share of the window at which it is compacted (layer 3).
        compaction_target_percent: the percentage it is then brought to (layer 3).

    Raises:
        ConfigError: a value is of another kind, out of range, or contradicts another.
    """

    section: ClassVar[str | None] = "TokenManagement"

    max_output_lines: Positive = 2_000
    max_output_bytes: Positive = 50 * 1024
    max_line_length: Positive = 2_000
    tool_output_limits: Mapping[str, Positive] = field(
        default_factory=lambda: TOOL_OUTPUT_LIMITS
    )
    enable_disk_spillover: bool | None = None
    spill_directory: str | None = None
    prune_protect_tokens: Natural = 40_000
    prune_minimum_tokens: Positive = 20_000
    prune_output_retain_chars: Natural = 2_000
    prune_threshold: Share = 0.85
    default_context_window: Positive = 128_000
    default_max_output_tokens: Natural = 16_384
    compaction_threshold: Share = 0.90
    compaction_target_percent: Positive = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.compaction_target_percent >= self.compaction_threshold * 100:
            raise ConfigError(
                "CompactionTargetPercent",
                f"{self.compaction_target_percent} is not under CompactionThreshold, "
                f"{self.compaction_threshold:.0%}",
                "Give a smaller target.",
            )
        if (
            self.spill_directory is not None
            and not self.spill_directory.strip()
        ):
            raise ConfigError(
                "SpillDirectory", "it is empty", "Name one, or leave it out."
            )


_DEFAULTS = ThreeLayerSettings()


def three_layer(settings: ThreeLayerSettings = _DEFAULTS) -> Policy:
    """The policy of the document, its three layers.

    Layers 2 and 3 stand there once more, before the guard, by our own count and deeper: the
    document counts characters, and takes its thresholds of the whole context. Where the answer
    takes much of that, or text has few characters a token, the limit is reached below them.

    Args:
        settings: the document's constants.
    """
    threshold = settings.compaction_threshold
    target = settings.compaction_target_percent / 100
    compacts = partial(
        _COMPACT, goals=(by_rough(share=target), by_count(share=target))
    )
    oldest = partial(oldest_rough, target=target)
    prunes = pruning(settings)
    prunes_deeper = partial(
        prunes,
        wanted=partial(over_share, high=GUARD_SHARE, low=target),
        protected=partial(
            newest_tokens,
            share=_PROTECTED_SHARE,
            most_tokens=settings.prune_protect_tokens,
        ),
        show=partial(
            prunes.keywords["show"], why="the view was near its limit"
        ),
        least_share=_LEAST_SHARE,
    )
    near = GUARD_SHARE * AHEAD
    prunes_ahead = partial(
        prunes_deeper, wanted=partial(over_share, high=near, low=target)
    )
    softer = (
        partial(rough_full, share=threshold * AHEAD),
        partial(over_and_pruned, share=near, prunes=prunes_ahead),
    )
    return Policy(
        name="three_layer-1",
        on_arrival=(partial(truncate, shape=output_shape(settings)),),
        under_pressure=(
            prunes,
            partial(
                compacts,
                is_due=partial(rough_full, share=threshold),
                keep_from=oldest,
            ),
            prunes_deeper,
            partial(
                compacts,
                is_due=partial(surely_over, share=GUARD_SHARE),
                keep_from=partial(newest_share, share=target),
            ),
        ),
        guard=partial(emergency),
        ahead=partial(
            compacts,
            is_due=partial(any_of, conditions=softer),
            keep_from=oldest,
        ),
        on_request=partial(
            compacts,
            is_due=asked,
            keep_from=partial(newest_turns, turns=1),
            least_share=0.0,
        ),
        unknown_model=settings.default_context_window,
        spill_directory=_spill_directory(settings),
    )


def output_shape(settings: ThreeLayerSettings = _DEFAULTS) -> Shape:
    """What layer 1 shows of one output."""
    return partial(
        head_lines,
        max_lines=settings.max_output_lines,
        max_bytes=settings.max_output_bytes,
        max_line_chars=settings.max_line_length,
        tool_chars={**TOOL_OUTPUT_LIMITS, **settings.tool_output_limits},
        notice=_NOTICE,
        ellipsis=_ELLIPSIS,
        spilled=_SPILLED,
    )


def pruning(
    settings: ThreeLayerSettings = _DEFAULTS, *, held_tokens: int | None = None
) -> partial[Sequence[ProposedEdit] | Skipped]:
    """Layer 2: the oldest outputs to their first characters, until enough is won.

    Args:
        settings: the document's.
        held_tokens: what the whole request holds, where it is known; None: it is estimated.
    """
    retain_chars = settings.prune_output_retain_chars
    return partial(
        prune,
        wanted=partial(
            rough_over,
            share=settings.prune_threshold,
            reserve_tokens=settings.default_max_output_tokens,
            least_tokens=settings.prune_protect_tokens,
            minimum_tokens=settings.prune_minimum_tokens,
            held_tokens=held_tokens,
        ),
        protected=partial(newest_rough, tokens=settings.prune_protect_tokens),
        candidates=results_only,
        show=partial(
            head_and_marker,
            retain_chars=retain_chars,
            marker=_PRUNED.format(retain_chars=retain_chars),
            why=f"the window was over {settings.prune_threshold:.0%}, or the answer short of room",
        ),
        won=partial(rough_won, retain_chars=retain_chars),
        least_share=0.0,
    )


def _spill_directory(settings: ThreeLayerSettings) -> str | BesideStore | None:
    """Where files are kept; a library that was not asked to writes none of its own accord."""
    enabled = settings.enable_disk_spillover
    if enabled is False:
        return None
    return settings.spill_directory or BesideStore(
        otherwise=_NO_DATABASE if enabled else None
    )
