"""The end of the demo: the table, and the proof that nothing was lost.

The proof reads only what the model could read. Every tool result of the history is compared,
by SHA-256, with what comes back from the last view: the result itself if it still stands
there, else what its visible notice leads to, page by page. A result that has no message in
the view any more must be reached through a notice whose text lists further notices.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from msgspec import Struct
from rich.table import Table

from demo.asked import Asked
from demo.evidence import text_of
from demo.investigator import CONCLUSION, NOT_FOUND
from demo.loop import Session
from demo.notices import CONTINUATION, Call, calls, read_all
from demo.tally import Tally

__all__ = ["Proof", "evidence", "prove", "table"]

_MAX_DEPTH = 4
Messages = Sequence[Mapping[str, Any]]


class Proof(Struct, frozen=True, kw_only=True):
    """How each tool result of a history came back.

    Attributes:
        total: tool results in the history, recall results not counted.
        verbatim: those that stand in the view as they were.
        by_notice: those that their own notice gave back.
        by_index: those that a notice listed in another set-aside text gave back.
        lost: ids of the calls whose result did not come back.
        recall_calls: recall calls this took.
    """

    total: int
    verbatim: int
    by_notice: int
    by_index: int
    lost: tuple[str, ...]
    recall_calls: int

    @property
    def back(self) -> int:
        """Results that came back byte for byte."""
        return self.verbatim + self.by_notice + self.by_index

    def __str__(self) -> str:
        return (
            f"{self.back} of {self.total} tool results came back byte for byte "
            f"({self.verbatim} in the view, {self.by_notice} by their notice, "
            f"{self.by_index} through an index; {self.recall_calls:,} recall calls)"
        )


class _Reader:
    """Follows notices with the session's recall tools; each ref is read once."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._texts: dict[tuple[str, int], str] = {}
        self.recall_calls = 0

    def read(self, ref: str, offset: int) -> str:
        key = (ref, offset)
        if key not in self._texts:
            self._texts[key] = read_all(
                Call(CONTINUATION, ref, offset), self._recall
            )
        return self._texts[key]

    def _recall(self, name: str, arguments: Mapping[str, Any]) -> str:
        self.recall_calls += 1
        function = {"name": name, "arguments": json.dumps(arguments)}
        call_id = f"proof_{self.recall_calls}"
        return text_of(
            self._session.recall(
                {"id": call_id, "type": "function", "function": function}
            )
        )


def prove(session: Session, view: Messages, history: Messages) -> Proof:
    """Compare every tool result of a history with what the view leads back to.

    Args:
        session: answers the recall calls.
        view: the messages that were sent last.
        history: the caller's own messages, up to the same point.

    Returns:
        The counts, and the ids of what did not come back.
    """
    originals = _originals(session, history)
    shown = {
        m["tool_call_id"]: text_of(m) for m in view if m["role"] == "tool"
    }
    reader = _Reader(session)
    how = {"view": 0, "notice": 0, "index": 0}
    missing: list[tuple[str, str]] = []
    for call_id, text in originals:
        if shown.get(call_id) == text:
            how["view"] += 1
        elif any(
            _digest(back) == _digest(text)
            for back in _back(shown.get(call_id, ""), reader)
        ):
            how["notice"] += 1
        else:
            missing.append((call_id, text))
    reached = (
        _reach(view, {_digest(text) for _, text in originals}, reader)
        if missing
        else set()
    )
    lost = tuple(
        call_id for call_id, text in missing if _digest(text) not in reached
    )
    return Proof(
        total=len(originals),
        verbatim=how["view"],
        by_notice=how["notice"],
        by_index=len(missing) - len(lost),
        lost=lost,
        recall_calls=reader.recall_calls,
    )


def _originals(session: Session, history: Messages) -> list[tuple[str, str]]:
    """The results of the agent's own tools, by call id; results of recall are copies."""
    recalled = {
        call["id"]
        for m in history
        for call in m.get("tool_calls") or ()
        if session.owns(call)
    }
    results = [m for m in history if m["role"] == "tool"]
    return [
        (m["tool_call_id"], text_of(m))
        for m in results
        if m["tool_call_id"] not in recalled
    ]


def _back(shown: str, reader: _Reader) -> Iterator[str]:
    """What the notices in a shown result lead to, the last one first.

    A notice that reads on from an offset continues what is shown up to there.
    """
    for call in reversed(calls(shown)):
        if call.offset:
            yield shown[: call.offset] + reader.read(call.ref, call.offset)
        yield reader.read(call.ref, 0)


def _reach(view: Messages, originals: set[str], reader: _Reader) -> set[str]:
    """Digests of every text the view's notices lead to, over several steps.

    The text of an original is not searched for notices: it is a tool's, not ours.
    """
    texts = [text_of(m) for m in view if _digest(text_of(m)) not in originals]
    seen: set[str] = set()
    reached: set[str] = set()
    for _ in range(_MAX_DEPTH):
        refs = dict.fromkeys(
            call.ref for text in texts for call in calls(text)
        )
        texts = []
        for ref in [ref for ref in refs if ref not in seen]:
            text = reader.read(ref, 0)
            reached.add(_digest(text))
            if _digest(text) not in originals:
                texts.append(text)
        seen |= refs.keys()
    return reached


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def evidence(answer: str) -> tuple[list[str], int]:
    """The lines the last answer quotes, and how many it should have quoted."""
    last = answer.partition(CONCLUSION)[2]
    quotes = [line for line in last.split("\n") if line.startswith("> ")]
    return [line for line in quotes if not line.endswith(NOT_FOUND)], len(
        quotes
    )


def table(
    unlimited: Tally | Asked,
    limited: Tally | Asked,
    *,
    window_tokens: int,
    costs_usd: tuple[float | None, float | None],
    cache: str = "simulated",
) -> Table:
    """The same agent without and with ullage, row by row.

    Args:
        unlimited: the sums of the run without ullage.
        limited: the sums of the run with it.
        window_tokens: the window of the second.
        costs_usd: the cost of each, caching included; None where prices are not known.
        cache: how it is known what the provider's cache held.
    """
    shown = Table(
        title="the same agent, twice", title_justify="left", width=78
    )
    shown.add_column("")
    shown.add_column("no limit", justify="right")
    shown.add_column(f"ullage, {window_tokens:,}", justify="right")
    rows: dict[str, Callable[[Tally | Asked], str]] = {
        "model calls": lambda run: f"{run.calls:,}",
        "calls of a recall tool": lambda run: f"{run.recalls:,}",
        "history at the end, tokens": lambda run: f"{run.history_tokens:,}",
        "history summed over all calls": lambda run: (
            f"{run.history_sum_tokens:,}"
        ),
        "largest prompt sent, tokens": lambda run: f"{run.peak_tokens:,}",
        "prompts summed over all calls": lambda run: f"{run.sum_tokens:,}",
        f"of these from the cache ({cache})": lambda run: (
            f"{run.cache_share:.0%}"
        ),
        "replies, tokens": lambda run: f"{run.output_tokens:,}",
    }
    for name, cell in rows.items():
        shown.add_row(name, cell(unlimited), cell(limited))
    costs = (
        "unknown" if cost is None else f"${cost:,.2f}" for cost in costs_usd
    )
    shown.add_row("cost, caching included", *costs)
    return shown
