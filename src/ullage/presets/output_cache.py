"""`output-cache-and-compaction.md`: views of tool output, placeholders with refs, compaction.

Every output is shown up to a number of bytes; when all outputs together are over their
budget, the oldest become placeholders that keep the ref. When the reported usage reaches a
share of the model's window, the history is replaced by retain, summary and the last turns
(`ullage.presets.output_compaction`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import ClassVar

from msgspec.structs import replace

from ullage.presets._settings import Settings
from ullage.presets.output_compaction import CompactionConfig, compacted
from ullage.stages.emergency import emergency
from ullage.stages.placeholders import bare_placeholder
from ullage.stages.policy import Policy
from ullage.stages.pressure import newest_batch, outputs_over
from ullage.stages.prune import each, prune, results_only
from ullage.stages.shapes import head_lines
from ullage.stages.truncate import truncate
from ullage.values.toolset import OURS

__all__ = ["ToolOutputCacheConfig", "output_cache"]

_NOTE = "[Continuation can be expanded with reference ID: ref={ref}]"
_PLACEHOLDER = "[tool output trimmed; ref={ref}]"


class ToolOutputCacheConfig(Settings, frozen=True, rename="camel"):
    """The document's `ToolOutputCacheConfig`.

    Attributes:
        enabled: whether outputs are cut and trimmed, and the tools that read them offered.
        context_budget_tokens: tokens all outputs may have together; None for a quarter of
            the context window, from 20,000 to 60,000.
        max_message_bytes: bytes shown of one output.
        max_line_length: characters shown of one line.
        compaction: the document's `CompactionConfig`, its second section.

    Raises:
        ConfigError: a value is of another kind, or a number too small.
    """

    least: ClassVar[Mapping[str, float]] = {
        "context_budget_tokens": 0,
        "max_message_bytes": 1,
        "max_line_length": 1,
    }

    enabled: bool = True
    context_budget_tokens: int | None = None
    max_message_bytes: int = 50 * 1024
    max_line_length: int = 2_000
    compaction: CompactionConfig = CompactionConfig()


_DEFAULTS = ToolOutputCacheConfig()


def output_cache(settings: ToolOutputCacheConfig = _DEFAULTS) -> Policy:
    """The policy of the document."""
    policy = Policy(name="output_cache-1", guard=partial(emergency), unknown_model="error")
    policy = compacted(policy, settings.compaction)
    if not settings.enabled:
        return replace(policy, toolset=replace(OURS, offered="no"))
    shape = partial(
        head_lines,
        max_bytes=settings.max_message_bytes,
        max_line_chars=settings.max_line_length,
        notice=_NOTE,
        lines_notice=_NOTE,
    )
    trim = partial(
        prune,
        wanted=partial(outputs_over, budget_tokens=settings.context_budget_tokens),
        protected=newest_batch,
        candidates=results_only,
        show=partial(each, show=partial(bare_placeholder, words=_PLACEHOLDER)),
        least_share=0.0,
    )
    return replace(
        policy,
        at_first_sight=(partial(truncate, shape=shape),),
        under_pressure=(trim, *policy.under_pressure),
        toolset=replace(OURS, offered="always"),
    )
