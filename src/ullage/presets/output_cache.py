"""`output-cache-and-compaction.md`, section 1: views of tool output, and placeholders with refs.

Every output is shown up to a number of bytes; when all outputs together are over their
budget, the oldest become placeholders that keep the ref.
"""

from __future__ import annotations

from functools import partial

from ullage.policy import Policy
from ullage.presets._settings import Settings, at_least
from ullage.stages.emergency import emergency
from ullage.stages.placeholders import bare_placeholder
from ullage.stages.pressure import newest_batch, outputs_over
from ullage.stages.prune import prune, results_only
from ullage.stages.shapes import head_lines
from ullage.stages.truncate import truncate

__all__ = ["ToolOutputCacheConfig", "output_cache"]

_NOTE = "[Continuation can be expanded with reference ID: ref={ref}]"
_PLACEHOLDER = "[tool output trimmed; ref={ref}]"


class ToolOutputCacheConfig(Settings, frozen=True, rename="camel"):
    """The document's `ToolOutputCacheConfig`.

    Attributes:
        enabled: whether outputs are cut and trimmed at all.
        context_budget_tokens: tokens all outputs may have together; None for a quarter of
            the context window, from 20,000 to 60,000.
        max_message_bytes: bytes shown of one output.
        max_line_length: characters shown of one line.

    Raises:
        ConfigError: a number is too small.
    """

    enabled: bool = True
    context_budget_tokens: int | None = None
    max_message_bytes: int = 50 * 1024
    max_line_length: int = 2_000

    def __post_init__(self) -> None:
        at_least(0, contextBudgetTokens=self.context_budget_tokens)
        at_least(1, maxMessageBytes=self.max_message_bytes, maxLineLength=self.max_line_length)


_DEFAULTS = ToolOutputCacheConfig()


def output_cache(settings: ToolOutputCacheConfig = _DEFAULTS) -> Policy:
    """The policy of the document's first section."""
    guard = partial(emergency)
    if not settings.enabled:
        return Policy(name="output_cache-1", guard=guard)
    shape = partial(
        head_lines,
        max_bytes=settings.max_message_bytes,
        max_line_chars=settings.max_line_length,
        notice=_NOTE,
    )
    trim = partial(
        prune,
        wanted=partial(outputs_over, budget_tokens=settings.context_budget_tokens),
        protected=newest_batch,
        candidates=results_only,
        show=partial(bare_placeholder, words=_PLACEHOLDER),
        least_share=0.0,
    )
    return Policy(
        name="output_cache-1",
        at_first_sight=(partial(truncate, shape=shape),),
        under_pressure=(trim,),
        guard=guard,
    )
