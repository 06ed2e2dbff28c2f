"""What ullage adds to requests, and which of it an upstream refuses.

    tools            the recall tools, and their names in the request's list of tools to be called
    stream_options   `include_usage`, for a stream of Chat Completions
    cache_control    cache markers, where the door sets them
    budget           a sentence at the end on how far a team's budget is used, where asked for

Nothing else is added: no header, no beta, no option of reasoning. The words that ask a model to sum
up, once a session's budget is spent, are no addition: without them the request would go over it.

What an upstream refuses is remembered for a tenant, an upstream and a model, in this process, for
an hour. One tenant can teach nothing about another's requests: what an error names can quote the
request that it answers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from ullage.doors.host import RECALL_TOOLS

Addition: TypeAlias = Literal[
    "tools", "stream_options", "cache_control", "budget"
]

ADDITIONS: tuple[Addition, ...] = get_args(Addition)
"""All of them, in the order in which they are listed for people."""

HOLDS_S = 3_600.0
"""After so many seconds an addition that was refused is tried once more."""

MOST_REFUSALS = 4_096
"""So many are remembered in all."""
MOST_OF_A_TENANT = 64
"""And so many of one tenant."""

_NEEDED = 2
"""So often a refusal that names no addition has to be met: the first may have had other reasons."""

_WORD_BYTES = 65_536
"""The words of a refusal are looked for in so many bytes of it."""

_NAMES: Mapping[Addition, tuple[bytes, ...]] = {
    "tools": (
        *(b"tools", b"tool_choice", b"toolconfig", b"function"),
        *(name.encode() for name in RECALL_TOOLS),
    ),
    "stream_options": (b"stream_options", b"streamoptions", b"include_usage"),
    "cache_control": (b"cache_control", b"cachecontrol"),
    "budget": (),
}
"""Words by which an error names an addition, in lower case."""


def named_in(words: bytes) -> frozenset[Addition]:
    """The additions that the words of a refusal name."""
    lower = words[:_WORD_BYTES].lower()
    return frozenset(
        addition
        for addition, names in _NAMES.items()
        if any(name in lower for name in names)
    )


class RequestTarget(Struct, frozen=True):
    """Where a request goes, and its tenant.

    Attributes:
        tenant: the owner.
        upstream: the origin of its URL and the folder of its path, or what the door calls it.
        wire: the name of its wire.
        model: the model that it is for.
    """

    tenant: str
    upstream: str
    wire: str
    model: str


class Refusal(Struct, frozen=True):
    """That an addition was refused, and the request taken without it.

    Attributes:
        at_s: when it happened last, on a clock that never goes back.
        times: how often it happened.
        is_named: whether the upstream's words named the addition.
        own_tools: the fewest tools of the caller's that a refused request had. A limit of their
            number says nothing about a request with fewer.
    """

    at_s: float
    times: int
    is_named: bool
    own_tools: int

    @property
    def holds(self) -> bool:
        """Whether requests are sent without the addition from the beginning."""
        return self.is_named or self.times >= _NEEDED


_Rows: TypeAlias = Mapping[tuple[RequestTarget, Addition], Refusal]


class Refusals(Struct, frozen=True):
    """The refusals that are remembered, the oldest first. A value.

    Attributes:
        rows: each by its target and addition.
    """

    rows: _Rows = {}

    def of(
        self, target: RequestTarget, own_tools: int, now_s: float
    ) -> frozenset[Addition]:
        """The additions that a request is sent without.

        Args:
            target: where it goes.
            own_tools: how many tools it has by itself.
            now_s: the time.
        """
        return frozenset(
            addition
            for addition in ADDITIONS
            if (row := self.rows.get((target, addition))) is not None
            and row.holds
            and now_s - row.at_s < HOLDS_S
            and not _has_room(addition, row, own_tools)
        )

    def with_refusal(
        self,
        target: RequestTarget,
        addition: Addition,
        *,
        is_named: bool,
        own_tools: int,
        now_s: float,
    ) -> Refusals:
        """These and one more. The oldest go where they are too many."""
        rows = {
            key: row
            for key, row in self.rows.items()
            if now_s - row.at_s < HOLDS_S
        }
        earlier = rows.pop((target, addition), None)
        if earlier is not None:
            is_named = is_named or earlier.is_named
            own_tools = min(own_tools, earlier.own_tools)
        times = 1 if earlier is None else earlier.times + 1
        rows[target, addition] = Refusal(now_s, times, is_named, own_tools)
        of_tenant = [key for key in rows if key[0].tenant == target.tenant]
        for key in of_tenant[:-MOST_OF_A_TENANT]:
            del rows[key]
        for key in list(rows)[:-MOST_REFUSALS]:
            del rows[key]
        return Refusals(rows)

    def without(
        self,
        target: RequestTarget,
        additions: Collection[Addition],
        own_tools: int,
    ) -> Refusals:
        """These without what a reply disproved: a request was taken with these additions."""
        disproved = {
            (target, addition)
            for addition in additions
            if (row := self.rows.get((target, addition))) is not None
            and not _has_room(addition, row, own_tools)
        }
        if not disproved:
            return self
        return Refusals(
            {
                key: row
                for key, row in self.rows.items()
                if key not in disproved
            }
        )


def _has_room(addition: Addition, refusal: Refusal, own_tools: int) -> bool:
    """Whether a request has fewer tools than any that was refused with more of them."""
    return addition == "tools" and own_tools < refusal.own_tools
