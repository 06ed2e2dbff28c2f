"""One self-contained page of a replay, or of a live session: for looking rather than reading.

The page is put together from the files beside this one. It fetches nothing, and its own policy
forbids it to; the page of a live conversation may ask the proxy that gave it. All content is data:
the summary as JSON in which no tag can begin, the pictures as deflated JSON in base64, and the
script puts it in as text, never as markup.
"""

from __future__ import annotations

import base64
import hashlib
import html
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from ullage.tools.replay.calls import Room
from ullage.tools.replay.cost.prices import Profile, ProfileChoice
from ullage.tools.replay.report.share import repacked, without_private
from ullage.tools.replay.run import Replayed
from ullage.tools.replay.trace import KINDS, Trace, TracedRun

__all__ = ["Album", "DrawnReplay", "PageLink", "Picture", "packed", "page_of"]

_HERE = Path(__file__).parent
_SCRIPT = 'type="text/plain"'
_LEFT_OUT = "Keys, addresses and home folders that can be told by their form are left out."


class Picture(Struct, frozen=True, kw_only=True):
    """The turns of one run, packed: its messages, and what each policy showed of them.

    Attributes:
        name: the run.
        calls: how many requests.
        peak: tokens of its largest raw request.
        story: its `TracedRun`, packed.
        traces: a `Trace` for each policy and window, packed.
    """

    name: str
    calls: int
    peak: int
    story: bytes
    traces: list[bytes]

    @classmethod
    def of(cls, name: str, story: TracedRun, trace: Trace) -> Picture:
        """One session, as it was shown."""
        calls = len(trace.lengths)
        peak = max(trace.raw, default=0)
        return cls(
            name=name,
            calls=calls,
            peak=peak,
            story=packed(story),
            traces=[packed(trace)],
        )

    @property
    def first(self) -> Trace:
        """What the first policy showed of it, in the first room."""
        return msgspec.json.decode(zlib.decompress(self.traces[0]), type=Trace)


class PageLink(Struct, frozen=True, kw_only=True):
    """The page of one run, as another page leads to it.

    Attributes:
        name: the run.
        href: the file, beside the page that leads to it.
        calls: how many requests.
        peak: tokens of its largest raw request.
    """

    name: str
    href: str
    calls: int
    peak: int


class DrawnReplay(Struct, frozen=True, kw_only=True):
    """A replay and its turns.

    Attributes:
        replayed: what came out.
        line: the line of the file its run begins at.
        story: the run's `TracedRun`, packed.
        trace: the `Trace` of it, packed.
    """

    replayed: Replayed
    line: int
    story: bytes
    trace: bytes


class Album:
    """Keeps the pictures of the runs with the largest raw requests, and lets go of the others.

    Args:
        most: how many runs.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._pages: dict[tuple[str, int], list[DrawnReplay]] = {}

    def add(self, drawn: DrawnReplay) -> None:
        """Take in a run under one policy and in one room, if it is among the largest so far."""
        self._pages.setdefault((drawn.replayed.run, drawn.line), []).append(
            drawn
        )
        if len(self._pages) > self._most:
            del self._pages[min(self._pages, key=self._peak)]

    def pictures(self, tries: Sequence[tuple[str, Room]]) -> list[Picture]:
        """The runs kept, largest first, each with its policies and rooms in this order."""
        pictures = []
        for key in sorted(self._pages, key=self._peak, reverse=True):
            drawn = self._pages[key][0]
            traces = {
                (replay.replayed.policy, replay.replayed.room): replay.trace
                for replay in self._pages[key]
            }
            picture = Picture(
                name=drawn.replayed.run,
                calls=drawn.replayed.calls,
                peak=drawn.replayed.raw_peak_tokens,
                story=drawn.story,
                traces=[
                    traces[attempt] for attempt in tries if attempt in traces
                ],
            )
            pictures.append(picture)
        return pictures

    def _peak(self, key: tuple[str, int]) -> int:
        return self._pages[key][0].replayed.raw_peak_tokens


def packed(value: TracedRun | Trace) -> bytes:
    """A part of a picture as deflated JSON."""
    return zlib.compress(msgspec.json.encode(value), 9)


def page_of(
    title: str,
    lead: str,
    *,
    pictures: Sequence[Picture],
    rows: Sequence[Any] = (),
    profiles: Sequence[ProfileChoice] = (),
    command: str = "",
    notes: Sequence[str] = (),
    links: Sequence[PageLink] = (),
    why: Mapping[str, Any] | None = None,
    share: bool = False,
    hand: Mapping[str, Any] | None = None,
) -> str:
    """The page.

    Args:
        title: its heading.
        lead: a sentence below it.
        pictures: the runs to be drawn turn by turn.
        rows: the table, a row for each group of runs, policy and window.
        profiles: the price profiles of the table. Each trace has the one of its turns.
        command: what prints the same figures again.
        notes: what was left out of the page.
        links: pages of single runs to lead to.
        why: what left the window of a conversation, and why (`ullage.tools.replay.report.why`).
        share: take out what is not for others (`ullage.tools.replay.report.share`).
        hand: what a user may decide on it, as ``hand.js`` reads it: whether it is ``live``, the
            ``window`` (`ullage.tools.hand.described.as_page`), the ``options`` of a command. None:
            nothing.
    """
    hand = None if share else hand
    blobs: list[bytes] = []
    runs = [_run(picture, blobs) for picture in pictures]
    summary: dict[str, Any] = {
        "title": title,
        "lead": lead,
        "command": command,
        "notes": notes,
        "kinds": KINDS,
        "profiles": [
            profile for profile in profiles if isinstance(profile, Profile)
        ],
        "rows": rows,
        "runs": runs,
        "links": links,
        "why": why,
        "hand": hand,
    }
    if share:
        notes = [*notes, _LEFT_OUT]
        summary = without_private(
            msgspec.to_builtins({**summary, "notes": notes})
        )
        blobs = [repacked(blob) for blob in blobs]
    data = [
        f'<script type="application/json" id="summary">{_inert(summary)}</script>'
    ]
    for at, blob in enumerate(blobs):
        data.append(
            f'<script {_SCRIPT} id="b{at}">{base64.b64encode(blob).decode()}</script>'
        )
    style = _file("page.css")
    script = _file("page.js")
    section = ""
    if hand is not None:
        section = _file("hand.html")
        style += _file("hand.css")
        script += _file("hand.js")
    script += "\nstart();\n"
    return Template(_file("page.html")).substitute(
        policy=_policy(style, script, asks=bool(hand and hand["live"])),
        title=html.escape(summary["title"]),
        style=style,
        script=script,
        hand=section,
        data="\n".join(data),
    )


def _run(picture: Picture, blobs: list[bytes]) -> Mapping[str, Any]:
    """A picture with the names of its packed parts, which are put beside it."""
    story, *traces = (
        f"b{len(blobs) + at}" for at in range(1 + len(picture.traces))
    )
    blobs += [picture.story, *picture.traces]
    return {**asdict(picture), "story": story, "traces": traces}


def _inert(value: Any) -> str:
    """JSON that no HTML parser reads anything but text in."""
    text = msgspec.json.encode(value).decode()
    return (
        text.replace("<", "\\u003c")
        .replace(">", "\\u003e")
        .replace("&", "\\u0026")
    )


def _policy(style: str, script: str, *, asks: bool) -> str:
    """What the page may do: run its own script and style, and ask who gave it, if it is live."""
    connect = "connect-src 'self'; " if asks else ""
    return (
        f"default-src 'none'; script-src 'sha256-{_hash(script)}'; "
        f"style-src 'sha256-{_hash(style)}'; img-src data:; {connect}"
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _file(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")
