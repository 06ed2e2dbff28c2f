"""What happened, as values: every decision can be read, logged, counted and shown."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from ullage.core.values.cache_breaks import CacheBreak

Kind: TypeAlias = Literal[
    "truncated",  # a result was cut when first seen
    "pruned",  # old messages became a record, or an old result left the view
    "condensed",  # a run of messages became a deterministic summary
    "compacted",  # a run of messages became a summary
    "kept_alive",  # a prompt cache that was about to expire was read again
    "preparing",  # a summary was begun beside the turns, before it is needed
    "summary_refused",  # what a model wrote was not accepted; the deterministic one is shown
    "stalled",  # what was summarised is being done again, call for call, and nothing is changed
    "reasoning",  # reasoning that an edit made invalid was left out, here or by the provider
    "held",  # a batch was not made: reasoning of an open turn must stay, or it wins too little
    "mended",  # a stage's cut was completed or moved, so that the view is legal and can be opened
    "declined",  # a stage's cut, or one of the ledger's, was not shown: no view can show it
    "cut",  # one oversized text was cut to fit the hard limit
    "joined",  # the history was under way when it was first seen: it waits, or is cut now
    "decided",  # a decision of a user's was carried out: pin, drop, restore, undo, note
    "restored",  # what had left the view is shown whole again
    "added",  # a text of a user's was added to the view
    "overruled",  # what a user pinned or brought back was cut: the request was over its hard limit
    "changed",  # another policy, wording or model family decides from here on
    "renamed",  # a tool of the caller's took a name of ours; ours have others from here on
    "passed_on",  # the history is held by the provider; only what is in the request was cut
    "unfitted",  # the request could not be fitted, and went to the provider as it came
    "superseded",  # a newer policy decides here; only the guard adds to it
    "observed",  # a reply's usage was taken in
    "cache_broken",  # what had been sent before was billed again; the event says because of what
    "unkept",  # the store is full: what is new is shown uncut, or nothing would open it
    "unreported",  # a reply's usage could not be read or kept; our estimate is counted for it
    "refused",  # the provider called the request, or a text, too long; the next one is smaller
    "addition_refused",  # the provider refused what was added to a request, and took it without
    "undercounted",  # the provider counts far less than was sent, again and again
    "recalled",  # something set aside was opened again
    "repaired",  # something the provider would refuse was repaired
    "warned",  # a budget is nearly spent, or is spent and everything goes on all the same
    "wrapped_up",  # a budget is spent, and the model was asked to sum up
    "diagnostic",  # what a policy wants printed on stderr
    "window_found",  # the model's server told the window it is served with
    "window_refused",  # what it told cannot be one
    "large_reserve",  # the request asks for an answer larger than half of the window
    "unknown_model",  # no window is known for the model; a default is used
]


class Event(Struct, frozen=True, kw_only=True):
    """One thing that happened in a session.

    Attributes:
        kind: what happened.
        where: the place, such as ``message 12, Read result``. Never content.
        why: the reason, with its numbers.
        tokens_before: tokens of the text before; where whole messages are edited, those of the
            view. 0 where it does not apply.
        tokens_after: tokens of the same after.
        ref: what opens the original, or None.
        left_out_bytes: bytes of the original that are not shown, where its stage says.
        broken: the break of a prompt cache that it tells of, or None.
    """

    kind: Kind
    where: str
    why: str
    tokens_before: int = 0
    tokens_after: int = 0
    ref: str | None = None
    left_out_bytes: int = 0
    broken: CacheBreak | None = None
