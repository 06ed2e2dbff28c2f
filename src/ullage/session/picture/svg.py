"""Pictures as SVG. They fetch nothing, and are light or dark as the reader's screen is."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

from ullage.session.picture.values import KINDS, OneWindow, OverCalls, short

_WIDTH = 640
_HEIGHT = 316
_LEFT = 52
_RIGHT = 496
_TOP = 66
_BOTTOM = 272
_STYLE = """
.paper { fill: #fff } text { font: 13px system-ui, sans-serif; fill: #333 }
.small { font-size: 12px; fill: #595959 } .title { font-size: 16px; font-weight: 600; fill: #111 }
.axis { stroke: #ccc } .limit { stroke: #c22; stroke-dasharray: 5 4 } .of-limit { fill: #b91c1c }
.aside { fill: #88888818 } .raw { fill: none; stroke: #777; stroke-width: 2 } .of-raw { fill: #555 }
.area { fill: #2563eb22 } .sent { fill: none; stroke: #2563eb; stroke-width: 2 }
.batch, .of-sent { fill: #1d4fd0 } .of-sent { font-weight: 600 }
.k0 { fill: #8b909b } .k1 { fill: #d99a12 } .k2 { fill: #3f6fd1 } .k3 { fill: #a9bccf }
.k4 { fill: #dd4f2c } .narrow { display: none }
@media (max-width: 480px) { /* of the picture itself: on a phone its words stay readable */
  .over text { font-size: 20px } .over .small { font-size: 18px } .over .title { font-size: 22px }
  .over .wide { display: none } .over .narrow { display: inline }
}
@media (prefers-color-scheme: dark) {
  .paper { fill: #14161a } text { fill: #ddd } .small, .of-raw { fill: #aaa } .title { fill: #fff }
  .axis { stroke: #555 } .of-sent, .batch { fill: #7aa2ff }
  .area { fill: #7aa2ff33 } .sent { stroke: #7aa2ff }
  .k1 { fill: #e2ae3c } .k2 { fill: #6f97ea } .k3 { fill: #51657c } .k4 { fill: #f4714d }
  .of-limit { fill: #ff7b7b } .limit { stroke: #ff7b7b }
}
"""


def svg(picture: OneWindow | OverCalls) -> str:
    """A picture as one SVG element."""
    return (
        _window_svg(picture)
        if isinstance(picture, OneWindow)
        else _calls_svg(picture)
    )


def _page(
    picture: OneWindow | OverCalls, height: int, lines: Sequence[str]
) -> str:
    """The frame of every picture: its paper, its title and its summary."""
    over = ' class="over"' if isinstance(picture, OverCalls) else ""
    title = html.escape(f"{picture.title}: {picture.summary}")
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" role="img"{over}>',
        f"<title>{title}</title><style>{_STYLE}</style>",
        f'<rect class="paper" width="{_WIDTH}" height="{height}" rx="8"/>',
        _text(_LEFT, 26, picture.title, "title"),
        _text(_LEFT, 47, picture.summary, "small wide"),
    ]
    return "\n".join([*head, *lines, "</svg>", ""])


# Over the calls


def _calls_svg(picture: OverCalls) -> str:
    """Two lines over the calls: what each would have sent, and what was sent."""
    raw = picture.history
    views = picture.views
    most = max(*raw, *views, picture.limit_tokens, 1)
    limit = _y(picture.limit_tokens, most)
    back = _path(views[::-1], most, backwards=True)
    lines = [
        *_axes(len(raw), most),
        f'<path class="aside" d="{_path(raw, most)} L{back[1:]} Z"/>',
        f'<path class="area" d="{_path(views, most)} L{_RIGHT} {_BOTTOM} L{_LEFT} {_BOTTOM} Z"/>',
        f'<path class="sent" d="{_path(views, most)}"/>',
        f'<path class="raw" d="{_path(raw, most)}"/>',
        f'<path class="limit" d="M{_LEFT} {limit} H{_RIGHT}"/>',
        *(_batch(call, len(raw)) for call in picture.rewrites),
    ]
    if raw and raw[-1] - views[-1] > most / 3:
        y = round((_y(raw[-1], most) + limit) / 2 + 34, 1)
        aside = f"{short(raw[-1] - views[-1])} set aside"
        lines.append(
            _text(
                _RIGHT - 12,
                y,
                f"{aside}, kept byte for byte",
                "of-raw wide",
                "end",
            )
        )
        lines.append(_text(_RIGHT - 12, y, aside, "of-raw narrow", "end"))
        lines.append(
            _text(
                _RIGHT - 12,
                y + 22,
                "the model opens it by its ref",
                "small",
                "end",
            )
        )
    if picture.rewrites:
        count = len(picture.rewrites)
        x = (_LEFT + _RIGHT) / 2
        y = _HEIGHT - 18
        caption = f"● what was sent before is rewritten: {count:,} time{'s' * (count != 1)}"
        lines.append(_text(x, y, caption, "of-sent small wide", "middle"))
        lines.append(
            _text(x, y, f"● rewritten {count:,}×", "of-sent narrow", "middle")
        )
    ends = (
        [(_y(raw[-1], most), f"history {short(raw[-1])}", "of-raw")]
        if raw
        else []
    )
    if views:
        ends.append(
            (_y(views[-1], most), f"sent {short(views[-1])}", "of-sent")
        )
    ends.append((limit, f"limit {short(picture.limit_tokens)}", "of-limit"))
    lines += [
        _text(_RIGHT + 8, y + 4, text, kind) for y, text, kind in _spread(ends)
    ]
    return _page(picture, _HEIGHT, lines)


def _axes(calls: int, most: int) -> list[str]:
    lines = [f'<path class="axis" d="M{_LEFT} {_BOTTOM} H{_RIGHT}"/>']
    for share in (0.5, 1):
        y = _y(most * share, most)
        lines.append(
            f'<path class="axis" d="M{_LEFT} {y} H{_RIGHT}" opacity="0.4"/>'
        )
        lines.append(
            _text(_LEFT - 8, y + 4, short(most * share), "small wide", "end")
        )
    lines.append(_text(_LEFT - 8, _BOTTOM + 4, "0", "small", "end"))
    lines.append(_text(_LEFT, _HEIGHT - 18, "call 1", "small"))
    lines.append(
        _text(_RIGHT, _HEIGHT - 18, f"call {calls:,}", "small", "end")
    )
    return lines


def _path(values: Sequence[int], most: int, *, backwards: bool = False) -> str:
    count = len(values)
    places = range(count - 1, -1, -1) if backwards else range(count)
    points = [
        f"{_x(at, count)} {_y(value, most)}"
        for at, value in zip(places, values, strict=True)
    ]
    return "M" + " L".join(points or [f"{_LEFT} {_BOTTOM}"])


def _batch(call: int, calls: int) -> str:
    place = f'cx="{_x(call, calls)}" cy="{_BOTTOM}" r="3"'
    return f'<circle class="batch" {place}><title>call {call + 1:,}</title></circle>'


def _spread(
    ends: Sequence[tuple[float, str, str]],
) -> list[tuple[float, str, str]]:
    """Labels at the ends of the lines, from the lowest up, none over another."""
    placed: list[tuple[float, str, str]] = []
    for y, text, kind in sorted(ends, reverse=True):
        room = placed[-1][0] - 20 if placed else _BOTTOM + 0.0
        placed.append((min(y, room), text, kind))
    return placed


# One window


def _window_svg(picture: OneWindow) -> str:
    """Two bars: what the history holds, and what of it is shown."""
    most = max(
        sum(picture.history.values()),
        sum(picture.view.values()),
        picture.limit_tokens,
        1,
    )
    limit = _across(picture.limit_tokens, most)
    legend = []
    x = _LEFT
    for number, kind in enumerate(KINDS):
        if picture.history[kind] or picture.view[kind]:
            legend.append(
                f'<rect class="k{number}" x="{x}" y="158" width="10" height="10" rx="2"/>'
            )
            legend.append(_text(x + 15, 168, kind, "small"))
            x += 34 + 7 * len(kind)
    lines = [
        *_bar("history", picture.history, 66, most, limit),
        *_bar("sent", picture.view, 104, most, limit),
        f'<path class="limit" d="M{limit} 60 V138"/>',
        _text(
            limit,
            151,
            f"limit {short(picture.limit_tokens)}",
            "of-limit small",
            "middle",
        ),
        *legend,
    ]
    return _page(picture, 184, lines)


def _bar(
    name: str, sizes: Mapping[str, int], y: int, most: int, limit: float
) -> list[str]:
    ends = [0, *accumulate(sizes[kind] for kind in KINDS)]
    lines = [_text(_LEFT - 8, y + 19, name, "small", "end")]
    for number, (start, stop) in enumerate(pairwise(ends)):
        x = _across(start, most)
        tooltip = f"{KINDS[number]}: {stop - start:,} tokens"
        width = round(_across(stop, most) - x, 1)
        if width:
            shape = f'x="{x}" y="{y}" width="{width}" height="28"'
            lines.append(
                f'<rect class="k{number}" {shape}><title>{tooltip}</title></rect>'
            )
    x = _across(ends[-1], most)
    x = limit if x <= limit < x + 40 else x  # no line through the number
    return [*lines, _text(x + 8, y + 19, short(ends[-1]), "of-raw")]


def _across(tokens: float, most: int) -> float:
    return round(_LEFT + (_RIGHT - _LEFT) * tokens / most, 1)


def _text(
    x: float, y: float, text: str, kind: str, anchor: str = "start"
) -> str:
    place = f'x="{x}" y="{y}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {place}>{html.escape(text)}</text>'


def _x(call: int, calls: int) -> float:
    return round(_LEFT + (_RIGHT - _LEFT) * call / max(calls - 1, 1), 1)


def _y(tokens: float, most: int) -> float:
    return round(_BOTTOM - (_BOTTOM - _TOP) * tokens / most, 1)
