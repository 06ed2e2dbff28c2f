"""`token-budget-compaction.md`: over a token budget, old results keep 500 characters.

The trigger is what the provider reported for the last request, and what was newest when that
reply came stays: the model may still need it. Every older result that is a string is cut to
its first characters and a marker; nothing else is touched, and no other call is ever made.
"""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from ullage.core.contract.policy import Policy
from ullage.core.values.toolset import OURS
from ullage.documents.presets._settings import DocumentSettings, Natural
from ullage.policy.stages.emergency import emergency
from ullage.policy.stages.placeholders import head_and_marker
from ullage.policy.stages.pressure import newest_answered, over_reported
from ullage.policy.stages.prune import prune, strings_only

MARKER = "[truncated for context management]"
_NOTE = (
    "Note: Compacted {{count}} old tool result(s) — input tokens ({{reported_tokens:,}}) "
    "exceeded budget ({budget:,})"
)


class TokenBudgetSettings(DocumentSettings, frozen=True, rename="pascal"):
    """The document's table of settings.

    Attributes:
        input_token_budget: input tokens, as reported, over which old results are cut; 0
            switches it off.
        tool_result_retention_chars: characters kept of each.

    Raises:
        ConfigError: a value is not a whole number, or is negative.
    """

    input_token_budget: Natural = 40_000
    tool_result_retention_chars: Natural = 500


_DEFAULTS = TokenBudgetSettings()


def token_budget(settings: TokenBudgetSettings = _DEFAULTS) -> Policy:
    """The policy of the document. Recall tools are not offered unless asked for.

    Args:
        settings: the document's table.
    """
    budget = settings.input_token_budget
    stage = partial(
        prune,
        wanted=partial(over_reported, budget_tokens=budget),
        protected=newest_answered,
        candidates=strings_only,
        show=partial(
            head_and_marker,
            retain_chars=settings.tool_result_retention_chars,
            marker=MARKER,
            why=f"input tokens were over the budget of {budget:,}",
        ),
        least_share=0.0,
    )
    return Policy(
        name="token_budget-1",
        under_pressure=(stage,),
        guard=partial(emergency),
        toolset=replace(OURS, offered="no"),
        diagnostic=_NOTE.format(budget=budget),
    )
