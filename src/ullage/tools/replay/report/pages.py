"""What the pages say above the window: of recorded runs, and of one session that was live."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from ullage import __version__
from ullage.session.stored.why import WindowRecord
from ullage.tools.replay.cost.prices import ProfileChoice
from ullage.tools.replay.outlined import Savings
from ullage.tools.replay.report import PageLink, Picture, page_of
from ullage.tools.replay.report.why import page_data
from ullage.tools.replay.rows import ReplaySummary
from ullage.tools.replay.stored import StoredRun


class Replays(Protocol):
    """The outcome of a replay, as far as its page shows it."""

    @property
    def pictures(self) -> Sequence[Picture]:
        """The runs drawn turn by turn."""

    @property
    def rows(self) -> Sequence[ReplaySummary]:
        """The sums; the last of a policy and room is over all runs."""

    @property
    def profiles(self) -> Sequence[ProfileChoice]:
        """The price profiles."""


_TITLE = "An agent's context window, with and without ullage"


def _lead(runs: int) -> str:
    """How the figures of a page came about, and when."""
    return (
        f"{runs:,} recorded run{'s' * (runs != 1)} put through ullage call by call; "
        f"no model was called. ullage {__version__}, {datetime.now(UTC):%d %B %Y}."
    )


def page_of_replays(
    replays: Replays, *, command: str = "", share: bool = False
) -> str:
    """The page of recorded runs that were replayed.

    Args:
        replays: what came out.
        command: what prints the same figures again.
        share: take out what is not for others.
    """
    pictures = replays.pictures
    rows = replays.rows
    profiles = replays.profiles
    runs = max(row.runs for row in rows)
    notes = list[str]()
    if len(pictures) < runs:
        notes.append(
            f"{len(pictures):,} of {runs:,} runs are drawn turn by turn: those with the "
            "largest requests that were replayed now and not taken over from a file (--draw)."
        )
    return page_of(
        _TITLE,
        _lead(runs),
        pictures=pictures,
        rows=rows,
        profiles=profiles,
        command=command,
        notes=notes,
        share=share,
    )


INDEX = "index.html"
"""The page of all runs among the pages of a folder."""


def pages_of_replays(
    replays: Replays, *, command: str = "", share: bool = False
) -> dict[str, str]:
    """A page with the sums over all runs, and a page for each run that is drawn.

    The page of sums holds no text of a conversation.

    Args:
        replays: the outcome of a replay.
        command: what prints the same figures again.
        share: take out what is not for others.

    Returns:
        Each page by the name of its file.
    """
    pictures = replays.pictures
    links = [
        PageLink(
            name=picture.name,
            href=f"run-{number}.html",
            calls=picture.calls,
            peak=picture.peak,
        )
        for number, picture in enumerate(pictures, 1)
    ]
    runs = max(row.runs for row in replays.rows)
    pages = {
        INDEX: page_of(
            _TITLE,
            _lead(runs),
            pictures=(),
            rows=replays.rows,
            profiles=replays.profiles,
            command=command,
            links=links,
            share=share,
        )
    }
    for link, picture in zip(links, pictures, strict=True):
        pages[link.href] = page_of(
            f"Run {link.name}, with and without ullage",
            f"One of {runs:,} recorded runs. ullage {__version__}, "
            f"{datetime.now(UTC):%d %B %Y}.",
            pictures=[picture],
            command=command,
            share=share,
        )
    return pages


def page_of_session(
    name: str,
    session: StoredRun,
    profiles: Sequence[ProfileChoice],
    *,
    record: WindowRecord | None = None,
    command: str = "",
    share: bool = False,
    hand: Mapping[str, Any] | None = None,
) -> str:
    """The page of one session, as it went.

    Args:
        name: what to call it.
        session: what its ledger and history tell.
        profiles: the price profiles.
        record: what left its window, and why; None: its store tells nothing of that.
        command: what prints the same figures again.
        share: take out what is not for others.
        hand: see `ullage.tools.replay.report.page_of`.
    """
    trace = session.trace
    clipped = session.story.clipped
    return page_of(
        "A session's context window, with and without ullage",
        f"One session under {session.policy}: {len(trace.lengths):,} requests, "
        f"{len(trace.marks):,} edits, as its store tells.",
        pictures=[Picture.of(name, session.story, trace)],
        profiles=profiles,
        command=command,
        notes=[f"{clipped:,} long texts are shown without their middle."]
        if clipped
        else (),
        why=None if record is None else page_data(record),
        share=share,
        hand=hand,
    )


_RECKONED = (
    "The tokens of each request are those that the provider reported. What would have been sent "
    "without ullage, and what a prompt cache read, is reckoned from them."
)
_HEADS = (
    "Of each text the store keeps the first 60 characters. What was set aside is whole: "
    "ullage read REF opens it."
)


def page_of_conversation(
    name: str,
    session: StoredRun,
    savings: Savings,
    *,
    record: WindowRecord | None = None,
    command: str = "",
    share: bool = False,
    hand: Mapping[str, Any] | None = None,
) -> str:
    """The page of a conversation that a store keeps, without the history of its caller.

    Args:
        name: its short name.
        session: what its outlines and ledger tell.
        savings: what it sent, and would have sent.
        record: what left its window, and why; None: that is left out.
        command: what writes the same page again.
        share: take out what is not for others.
        hand: see `ullage.tools.replay.report.page_of`.
    """
    sent = savings.sent_tokens
    raw = savings.raw_tokens
    return page_of(
        f"Conversation {name}, with and without ullage",
        f"{savings.requests:,} requests sent {sent:,} tokens instead of about {raw:,}: "
        f"{savings.saved_share:.0%} less.",
        pictures=[Picture.of(name, session.story, session.trace)],
        command=command,
        notes=[_RECKONED, _HEADS],
        why=None if record is None else page_data(record),
        share=share,
        hand=hand,
    )
