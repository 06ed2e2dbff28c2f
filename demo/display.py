"""What is seen while the demo runs: the window, the history, what was set aside.

On a terminal a panel that is redrawn in place; elsewhere one plain line every ten calls.
Both fit into 80 columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from demo.agenda import Question
from demo.status import Status
from demo.tally import Tally, set_aside

__all__ = ["Display"]

_BAR_COLUMNS = 48
_LAST_EVENTS = 4
_EVERY_CALLS = 10
_QUIET = ("observed",)


class Display:
    """The live view of one run, a context manager.

    Args:
        console: where to show it.
        agenda: the questions, to name the one at hand.
        window_tokens: the size of the window.
        tally: the sums of the run, read at each ``show``.
        events: gives what happened in the session so far.
    """

    def __init__(
        self,
        console: Console,
        agenda: Sequence[Question],
        window_tokens: int,
        tally: Tally,
        events: Callable[[], Sequence[Any]],
    ) -> None:
        self._console, self._agenda = console, agenda
        self._window_tokens, self._tally, self._events = (
            window_tokens,
            tally,
            events,
        )
        self._live = (
            Live(console=console, refresh_per_second=12)
            if console.is_terminal
            else None
        )

    def __enter__(self) -> Display:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live:
            self._live.stop()

    def show(self, reply: dict[str, Any]) -> None:
        """Show where the run is after a reply."""
        status = Status.read(reply["choices"][0]["message"]["content"] or "")
        question = status.question if status else 0
        if self._live:
            self._live.update(self._panel(question))
        elif self._tally.calls % _EVERY_CALLS == 0:
            self._console.print(self._line(question), highlight=False)

    def _line(self, question: int) -> str:
        tally, (count, _) = self._tally, set_aside(self._events())
        return (
            f"call {tally.calls:4}  window {tally.view_tokens:6,}  "
            f"history {tally.history_tokens:9,}  set aside {count:3}  "
            f"recalls {tally.recalls:3}  {self._number(question)}"
        )

    def _number(self, question: int) -> str:
        last = len(self._agenda)
        return f"Q{question + 1}/{last}" if question < last else "end"

    def _panel(self, question: int) -> RenderableType:
        tally, (count, tokens) = self._tally, set_aside(self._events())
        scale = max(tally.history_tokens, self._window_tokens)
        asked = question < len(self._agenda)
        named = (
            self._agenda[question].words
            if asked
            else "all answers, with their evidence"
        )
        rows = [
            _bar(
                "window",
                tally.view_tokens,
                scale,
                "green",
                f"of {self._window_tokens:,}",
            ),
            _bar("history", tally.history_tokens, scale, "yellow", "tokens"),
            _row("set aside", f"{tokens:,} tokens, in {count} cuts"),
            _row("recalls", str(tally.recalls)),
            _row(f"call {tally.calls}", f"{self._number(question)}  {named}"),
        ]
        shown = [event for event in self._events() if event.kind not in _QUIET]
        rows += [
            _row("", _words(event), "dim") for event in shown[-_LAST_EVENTS:]
        ]
        return Group(*rows)


def _bar(name: str, tokens: int, scale: int, colour: str, after: str) -> Text:
    full = max(1, round(_BAR_COLUMNS * min(tokens / scale, 1.0)))
    bar = Text("█" * full, style=colour) + Text(
        "░" * (_BAR_COLUMNS - full), style="dim"
    )
    return Text(f"{name:10}") + bar + Text(f" {tokens:,} {after}")


def _row(name: str, text: str, style: str = "") -> Text:
    row = Text(
        f"{name:10}{text}", style=style, no_wrap=True, overflow="ellipsis"
    )
    row.truncate(80, overflow="ellipsis")
    return row


def _words(event: Any) -> str:
    """An event as a sentence: what happened, where, why, and what it saved."""
    before, after = (
        getattr(event, "tokens_before", 0),
        getattr(event, "tokens_after", 0),
    )
    saved = f" ({before:,} → {after:,})" if before else ""
    return f"{event.kind} {getattr(event, 'where', '')}{saved}: {getattr(event, 'why', '')}"
