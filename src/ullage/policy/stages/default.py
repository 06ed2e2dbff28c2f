"""The default policy, the same with a compaction that a model may add to, and the safeguards."""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from ullage.core.contract.policy import Policy, Safeguards, leaving_out
from ullage.core.values.toolset import SHORT
from ullage.policy.stages.arrivals import equal_shares, without_slack
from ullage.policy.stages.by_limit import by_limit
from ullage.policy.stages.compact import (
    asked,
    compact,
    newest_turns,
    surely_over,
)
from ullage.policy.stages.emergency import emergency
from ullage.policy.stages.goals import by_count
from ullage.policy.stages.media import refused_media
from ullage.policy.stages.overlong import overlong
from ullage.policy.stages.record import record
from ullage.policy.stages.stall import stall
from ullage.policy.stages.truncate import truncate

SAFEGUARDS = Safeguards(media=refused_media, overlong=overlong, stalled=stall)
"""What runs behind every policy."""

_TRUNCATE = partial(truncate)
_PLAIN = partial(without_slack)
_RECORD = partial(record)
_SHARES = partial(equal_shares)
_USER_SHARE = 0.67
"""At three characters a token; so half of the limit."""

DEFAULT = Policy(
    name="default-11",
    on_arrival=(_TRUNCATE,),
    under_pressure=(_PLAIN, _RECORD, _SHARES),
    without_recall=partial(
        leaving_out,
        stages=(_TRUNCATE, _PLAIN, _RECORD, _SHARES),
    ),
    guard=partial(
        by_limit,
        start_tokens=10_000,
        stop_tokens=20_000,
        # what fits of records stays, for an account has no line of a result
        within=partial(
            emergency,
            user_share=_USER_SHARE,
            target=0.50,
            keep_messages=None,
            account_share=0.08,
        ),
        otherwise=partial(emergency, user_share=_USER_SHARE),
    ),
    on_request=partial(
        compact,
        is_due=asked,
        keep_from=partial(newest_turns, turns=1),
        least_share=0.0,
    ),
    toolset=SHORT,
)
"""Cut on arrival by kind of content with generous limits; make a record of what is old, in
batches that pay, at the latest at 90 % of the limit; condense when the limit itself is near.

Where no recall tools are offered, only that: what is cut could not be opened. A stage that is put
in beside these runs there too."""

HELD_OUT = Policy(name="held-out-1", guard=DEFAULT.guard, toolset=SHORT)
"""Of a conversation that is held out, to be compared with: nothing is cut, but by the guard where a
request would not fit; no recall tools are offered."""

_COMPACT = partial(compact, goals=(by_count(share=0.60),), widens=False)
"""In dense text what the user said would take more than is won; so it has a room in tokens."""
SUMMARISED = replace(
    DEFAULT,
    name="default-summarised-12",
    under_pressure=(_COMPACT, *DEFAULT.under_pressure),
    ahead=partial(_COMPACT, is_due=partial(surely_over, share=0.80)),
)
"""The default with a compaction at 88 %, for sessions that have a model to write summaries. An
`AsyncSession` begins it at 80 %."""
