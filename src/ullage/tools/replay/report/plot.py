"""One run as a picture for a page, a notebook or a slide: the window over the calls."""

from __future__ import annotations

from collections.abc import Sequence

from ullage.session.picture import OverCalls, svg
from ullage.session.picture.values import short
from ullage.tools.replay.calls import label_of
from ullage.tools.replay.trace import Trace


def plot_of(trace: Trace, title: str = "") -> str:
    """The picture of one run under one policy, as SVG.

    Args:
        trace: what was shown, call by call.
        title: what it is of; names no content. Default: a replayed run.
    """
    return svg(over_calls(trace, title))


def over_calls(trace: Trace, title: str = "") -> OverCalls:
    """The picture as a value; arguments as of `plot_of`."""
    room = (
        label_of(trace.share)
        if trace.share is not None
        else label_of(trace.window_tokens)
    )
    policy = "" if trace.policy == "default" else f", by {trace.policy}"
    sent_tokens = [sum(sizes) for sizes in trace.sizes]
    return OverCalls(
        title=title
        or f"What an agent was sent, in a window of {room}{policy}",
        summary=_said(trace, sent_tokens),
        limit_tokens=trace.limit_tokens,
        history=trace.raw,
        views=sent_tokens,
        rewrites=sorted(
            {mark.turn for mark in trace.marks if not mark.is_new}
        ),
    )


def _said(trace: Trace, sent_tokens: Sequence[int]) -> str:
    """What it came to, in words."""
    raw = trace.raw
    phrases = [
        f"{len(raw):,} calls: {short(sum(sent_tokens))} tokens sent instead of {short(sum(raw))}"
    ]
    costs = [cost for cost in trace.cost_usd if cost is not None]
    wholes = [cost for cost in trace.raw_cost_usd if cost is not None]
    if raw and len(costs) == len(wholes) == len(raw):
        phrases.append(
            f"${sum(costs):,.2f} instead of ${sum(wholes):,.2f}, caching counted"
        )
    return " · ".join(phrases)
