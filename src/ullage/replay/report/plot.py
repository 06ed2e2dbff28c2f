"""One run as a picture for a page, a notebook or a slide: the window over the calls, as SVG.

Two lines tell it: what every call would have sent, and what was sent. It fetches nothing, and takes
the colours of the page it stands in, light or dark.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

from ullage.replay.budgets import label_of
from ullage.replay.trace import Trace

__all__ = ["plot_of"]

_WIDTH, _HEIGHT = 790, 310
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 636, 56, 272
_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #333 }
.small { font-size: 12px; fill: #666 }
.title { font-size: 15px; font-weight: 600; fill: #111 }
.axis { stroke: #ccc } .limit { stroke: #c33; stroke-dasharray: 5 4 }
.raw { fill: none; stroke: #888; stroke-width: 2 }
.area { fill: #2563eb22 } .sent { fill: none; stroke: #2563eb; stroke-width: 2 }
.batch { fill: #2563eb } .of-raw { fill: #666 } .of-sent { fill: #2563eb; font-weight: 600 }
.of-limit { fill: #c33 }
@media (prefers-color-scheme: dark) {
  text { fill: #ddd } .small, .of-raw { fill: #aaa } .title { fill: #fff }
  .axis { stroke: #555 } .of-sent, .batch { fill: #7aa2ff }
  .area { fill: #7aa2ff33 } .sent { stroke: #7aa2ff }
  .of-limit { fill: #ff7b7b } .limit { stroke: #ff7b7b }
}
"""


def plot_of(trace: Trace, title: str = "") -> str:
    """The picture of one run under one policy.

    Args:
        trace: what was shown, call by call.
        title: what it is of; names no content. Default: a replayed run.
    """
    room = label_of(trace.share) if trace.share is not None else label_of(trace.window_tokens)
    title = title or f"One run replayed under {trace.policy}, window {room}"
    sent, raw = [sum(sizes) for sizes in trace.sizes], trace.raw
    most = max(*raw, *sent, trace.limit_tokens, 1)
    limit = _y(trace.limit_tokens, most)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style>",
        _text(_LEFT, 20, title, "title"),
        _text(_LEFT, 40, _saying(trace, raw, sent), "small"),
        *_axes(len(raw), most),
        f'<path class="area" d="{_path(sent, most)} L{_RIGHT} {_BOTTOM} L{_LEFT} {_BOTTOM} Z"/>',
        f'<path class="sent" d="{_path(sent, most)}"/>',
        f'<path class="raw" d="{_path(raw, most)}"/>',
        f'<path class="limit" d="M{_LEFT} {limit} H{_RIGHT}"/>',
        *(_batch(call, len(raw)) for call in _rewrites(trace)),
    ]
    count = len(_rewrites(trace))
    if count:
        told = f"● what was sent before is rewritten: {count:,} time{'s' * (count != 1)}"
        lines.append(_text((_LEFT + _RIGHT) / 2, _HEIGHT - 12, told, "of-sent small", "middle"))
    ends = [(_y(raw[-1], most), f"whole history {_short(raw[-1])}", "of-raw")] if raw else []
    ends += [(_y(sent[-1], most), f"sent {_short(sent[-1])}", "of-sent")] if sent else []
    ends.append((limit, f"limit {_short(trace.limit_tokens)}", "of-limit"))
    lines += [_text(_RIGHT + 8, y + 4, text, kind) for y, text, kind in _apart(ends)]
    return "\n".join([*lines, "</svg>", ""])


def _saying(trace: Trace, raw: Sequence[int], sent: Sequence[int]) -> str:
    """What it came to, in words."""
    said = [f"{len(raw):,} calls: {_short(sum(sent))} tokens sent instead of {_short(sum(raw))}"]
    costs = [cost for cost in trace.cost_usd if cost is not None]
    wholes = [cost for cost in trace.raw_cost_usd if cost is not None]
    if raw and len(costs) == len(wholes) == len(raw):
        said.append(f"${sum(costs):,.2f} instead of ${sum(wholes):,.2f}, prompt caching counted")
    return " · ".join(said)


def _rewrites(trace: Trace) -> list[int]:
    """The calls before which something sent earlier was changed."""
    return sorted({mark.turn for mark in trace.marks if not mark.first})


def _axes(calls: int, most: int) -> list[str]:
    lines = [f'<path class="axis" d="M{_LEFT} {_BOTTOM} H{_RIGHT}"/>']
    for share in (0.5, 1):
        y = _y(most * share, most)
        lines.append(f'<path class="axis" d="M{_LEFT} {y} H{_RIGHT}" opacity="0.4"/>')
        lines.append(_text(_LEFT - 8, y + 4, _short(most * share), "small", "end"))
    lines.append(_text(_LEFT - 8, _BOTTOM + 4, "0", "small", "end"))
    lines.append(_text(_LEFT, _HEIGHT - 12, "call 1", "small"))
    lines.append(_text(_RIGHT, _HEIGHT - 12, f"call {calls:,}", "small", "end"))
    return lines


def _path(values: Sequence[int], most: int) -> str:
    points = [f"{_x(at, len(values))} {_y(value, most)}" for at, value in enumerate(values)]
    return "M" + " L".join(points or [f"{_LEFT} {_BOTTOM}"])


def _batch(call: int, calls: int) -> str:
    place = f'cx="{_x(call, calls)}" cy="{_BOTTOM}" r="3"'
    return f'<circle class="batch" {place}><title>call {call + 1:,}</title></circle>'


def _apart(ends: Sequence[tuple[float, str, str]]) -> list[tuple[float, str, str]]:
    """Labels at the ends of the lines, from the lowest up, none over another."""
    placed: list[tuple[float, str, str]] = []
    for y, text, kind in sorted(ends, reverse=True):
        room = placed[-1][0] - 16 if placed else _BOTTOM + 0.0
        placed.append((min(y, room), text, kind))
    return placed


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    place = f'x="{x}" y="{y}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {place}>{html.escape(text)}</text>'


def _x(call: int, calls: int) -> float:
    return round(_LEFT + (_RIGHT - _LEFT) * call / max(calls - 1, 1), 1)


def _y(tokens: float, most: int) -> float:
    return round(_BOTTOM - (_BOTTOM - _TOP) * tokens / most, 1)


def _short(tokens: float) -> str:
    """A number of tokens as one says it: 940, 53k, 3.7M."""
    if tokens < 1_000:
        return f"{tokens:.0f}"
    if tokens < 999_500:
        return f"{tokens / 1_000:.0f}k"
    return f"{tokens / 1_000_000:.1f}M"
