"""Joining: when a conversation that was met under way is offered the recall tools, and cut.

Its requests so far were sent without our tools and with every result whole. To add tools changes
the head of the request, and with it everything that a provider has cached. So both are done in
one step, and only once that step pays:

    waiting   nothing is added and nothing is broken; each request carries what could be cut
    joined    the tools are added, and everything is cut as if they had been there from the start

What the requests carried in vain is their rent, and what has to be cached again is the price, as
in `ullage.policy.stages.carrying_cost`. Both are functions of the history, so that every worker
comes to the same. Where the cached prefix is broken by something else, the step costs nothing more
and is made then.

Reasoning that is bound to the tools before it (`provider-rules` A15) goes in that step. While
none of it may go (A14), the step waits for the end of the turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from ullage.core.contract.bound import HELD, is_frozen
from ullage.core.contract.policy import Policy, Stage, name_of
from ullage.core.history.builder import CarryingCost, WindowBuilder
from ullage.core.history.chars import WHOLE_CHARS
from ullage.core.history.transcript import Transcript
from ullage.core.history.window import Window
from ullage.core.turn.batches import Walk, cuts_of
from ullage.core.values.edits import ProposedEdit, Replace
from ullage.core.values.events import Event
from ullage.core.values.messages import Media, Text, ToolCall

TIMES = 11.5
"""How often the price the rent must come to. Where a cached token costs a tenth of a new one and
writing it to the cache a quarter more, this is where both are equal (`frontier`)."""

_WHOLE = "the whole history"

Wait: TypeAlias = Literal["", "price", "reasoning", "tools"]
"""What a conversation waits for: nothing, a step that saves money, the end of a turn that was
thought about, or a request with tools that the model may call."""

Cuts: TypeAlias = Literal["nothing", "new", "all"]
"""What is cut while a conversation waits: nothing; what is new, where reasoning is bound to the
rest; everything, where the policy's document says so."""


class Offer(Struct, frozen=True):
    """What the request at hand says about adding tools to it.

    Attributes:
        can_add: whether the recall tools may stand in it.
        broken: why the cached prefix is broken by the request itself, or ``""``.
        is_met_now: nothing was known of the conversation before this request.
        cuts: what is cut while it waits.
    """

    can_add: bool
    broken: str = ""
    is_met_now: bool = False
    cuts: Cuts = "nothing"


class Joining(Struct, frozen=True):
    """Whether a conversation is joined at the end of its history, and why.

    Attributes:
        waits_for: ``""``: it is joined now.
        why: the reason, with its numbers in characters.
        tokens: of the view without any of it.
        cuts: what of it is cut while it waits.
    """

    waits_for: Wait
    why: str
    tokens: int = 0
    cuts: Cuts = "nothing"

    @property
    def is_due(self) -> bool:
        """Whether it is joined now."""
        return not self.waits_for


def is_under_way(transcript: Transcript) -> bool:
    """Whether a model worked on a history before it was met.

    A greeting, an example or a reply that the client made up is text alone. It is part of the
    beginning: nothing in it could have been cut.
    """
    for message in transcript.messages:
        if message.role != "assistant":
            continue
        if any(not isinstance(part, (Text, Media)) for part in message.parts):
            return True
    return False


def note_excess(walk: Walk, policy: Policy) -> None:
    """Note how many characters the policy would cut from each new message, and cut nothing."""
    builder = walk.builder
    for stage in policy.on_arrival:
        for cut in cuts_of(stage, walk.window):
            index, chars = _excess_of(walk.window, cut)
            if chars <= 0:
                continue
            builder.excess[index] = builder.excess.get(index, 0) + chars
            if index < builder.carried.length:
                builder.carried = CarryingCost()


def _excess_of(window: Window, cut: ProposedEdit) -> tuple[int, int]:
    """The message of a cut, and how many characters it takes out."""
    if not isinstance(cut.edit, Replace):
        return 0, 0
    location = window.transcript.locate(cut.edit.address)
    if location is None:
        return 0, 0
    leaf = window.transcript.leaf(location)
    original = getattr(leaf, "text", "")
    if isinstance(leaf, ToolCall):
        original = leaf.arguments
    return location[0], len(original) - len(cut.edit.text)


def weigh(walk: Walk, policy: Policy, offer: Offer) -> Joining:
    """Whether a conversation is joined at the end of its history.

    Args:
        walk: its window as it is shown so far, without the recall tools.
        policy: what decides once they are offered.
        offer: what the request says about adding them.
    """
    wait, reason = _weighed(walk, policy, offer)
    return Joining(
        waits_for=wait,
        why=reason,
        tokens=walk.window.estimate,
        cuts=offer.cuts,
    )


def _weighed(walk: Walk, policy: Policy, offer: Offer) -> tuple[Wait, str]:
    """What it waits for, and why; or why it is joined."""
    if not offer.can_add:
        return "tools", "this request has no tools that the model may call"
    if is_frozen(walk.window):
        return "reasoning", HELD
    broken = _broken(walk, offer)
    if broken:
        return "", f"{broken}, so the cached prefix is broken anyway"
    pays, numbers = _pays(walk.builder)
    if pays:
        return "", f"it saves money: {numbers}"
    due = _due(walk.window, policy)
    if due is not None:
        return (
            "",
            f"stage {name_of(due)} is due, so the cached prefix is broken anyway",
        )
    return "price", f"that does not pay yet: {numbers}"


def _broken(walk: Walk, offer: Offer) -> str:
    """Why the cached prefix is broken whether or not the conversation is joined, or ``""``."""
    if offer.broken:
        return offer.broken
    cuts_all = offer.is_met_now and offer.cuts == "all"
    if cuts_all and walk.builder.excess:
        return "the policy cuts with or without the tools"
    kinds = [record.kind for record in walk.records]
    if "batch" in kinds:
        return "what was sent is near the limit"
    return ""


def _due(window: Window, policy: Policy) -> Stage | None:
    """The first stage that would make a batch of what is shown."""
    for stage in (*policy.under_pressure, policy.guard):
        if stage is not None and cuts_of(stage, window):
            return stage
    return None


def _pays(builder: WindowBuilder) -> tuple[bool, str]:
    """Whether rent came to the price at any request so far, and the numbers as of now.

    Once it did it stays so: a history without a ledger comes to the same at each later request.
    """
    window = builder.window
    boundaries = window.transcript.boundaries(
        builder.carried.length, window.size
    )
    *earlier, size = boundaries or [0]
    for length in earlier:
        builder.carried = _carried(builder, length)
    carried = _carried(builder, size)
    head_chars = sum(len(text) for text in window.head_texts)
    pays = False
    if carried.most_won is not None:
        pays = carried.most_won >= TIMES * head_chars
    cached_chars = head_chars + carried.chars - carried.freed
    requests = window.transcript.count("begins", 1, window.size) + 1
    price = TIMES * cached_chars
    numbers = (
        f"it takes out {carried.freed:,} characters and has {cached_chars:,} cached again; "
        f"carrying it cost as much as {carried.cost:,} cached characters in {requests:,} requests, "
        f"the batch costs {price:,.0f}"
    )
    return pays, numbers


def _carried(builder: WindowBuilder, length: int) -> CarryingCost:
    """What was carried up to a boundary, gone on from an earlier one."""
    earlier = builder.carried
    chars = builder.window.tally(WHOLE_CHARS).each
    came = earlier.chars
    freed = earlier.freed
    for index in range(earlier.length, length):
        came += chars[index]
        freed += builder.excess.get(index, 0)
    rent = earlier.cost + freed
    most_won = earlier.most_won
    if freed > 0:
        won = rent - TIMES * (came - freed)
        if most_won is None or won > most_won:
            most_won = won
    return CarryingCost(length, freed, came, rent, most_won)


# ── what is told of it ───────────────────────────────────────────────────────────────────


def event_of_joining(
    joining: Joining, messages: int, *, is_met_now: bool, tokens_after: int
) -> Event | None:
    """The event of a conversation that is joined now, or that was met now and waits.

    Args:
        joining: what it came to.
        messages: how many the history has.
        is_met_now: whether nothing was known of the conversation before this request.
        tokens_after: of the view as it is shown now.
    """
    if not joining.is_due and not is_met_now:
        return None
    opening = ""
    if is_met_now:
        opening = f"{messages:,} messages stood before this conversation was first seen; "
    if not joining.is_due:
        return Event(
            kind="joined", where=_WHOLE, why=f"{opening}{waiting(joining)}"
        )
    outcome = (
        "the recall tools are offered from here on, what was sent is cut as one batch, and "
        "reasoning bound to it is left out"
    )
    return Event(
        kind="joined",
        where=_WHOLE,
        why=f"{opening}{outcome}: {joining.why}",
        tokens_before=joining.tokens,
        tokens_after=tokens_after,
    )


def waiting(joining: Joining) -> str:
    """Why a conversation is not joined yet."""
    return f"{_HELD_BACK[joining.cuts]}, and no recall tools are offered: {joining.why}"


_HELD_BACK: Mapping[Cuts, str] = {
    "nothing": "nothing is cut",
    "new": "what is new is cut, what was sent is not",
    "all": "what was sent is cut",
}
