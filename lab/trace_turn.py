"""The rooms a request walks through, and where it climbs: ``make trace-turn``.

Forty turns of one session are traced, call by call (`sys.setprofile`): a made-up coding agent in
a window small enough for cuts at first sight, batches and recall. Only ``fit`` is traced, and only
frames of ``ullage``; a call made through the standard library or an extension counts as the call
of the nearest frame of ours below it on the stack. What loads modules is left out, for a session
of the same kind has run before.

A *room* is here a package within the ten rooms; a module of ``session`` or ``turn`` is one of its
own, since they direct the turn. Two kinds of call are *climbs*:

a   into a room of a row above the caller's (`ROWS`): a function handed down and called from below.
    Wires and stages stand below the turn here, which is handed them and calls them;
b   of the code that directs a turn (`ORCHESTRATORS`) into a room it had already left for another
    in the same ``fit``. Rooms whose words all others use (`VOCABULARY`) are neither left nor
    entered; a generator that goes on is not entered again; the directing modules may call each
    other; and what a driver does with an effect is the world, no room on the way.

Climbs are alike if they lead from the same room into the same one, however often and by whatever
functions: those are counted beside.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

import ullage

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src"
ORCHESTRATORS = (
    "session.session",
    "session.core",
    "session.changes",
    "session.turns",
    "session.replies",
    "turn.turn",
)
VOCABULARY = ("values", "errors")
ROWS = (
    "session",
    "decisions prompt_cache provider receipts",
    "recall summarise picture",
    "spend",
    "stores",
    "turn",
    "wires stages",
    "contract",
    "history",
    "tokens redaction",
    "values",
    "errors",
)
"""The rooms of a turn in the order in which a request goes down through them."""
_SEVERAL = ("core", "policy", "session", "documents", "doors", "tools")
_DRIVERS = "session.drivers"
TURNS, WINDOW_TOKENS, LINES = 40, 24_000, 120


class Climb(NamedTuple):
    """One kind of climb: ``a`` or ``b``, from a room into a room."""

    kind: str
    start: str
    stop: str


class Trace:
    """What was called while it watched.

    Attributes:
        rooms: the rooms in the order in which each fit first entered them, most usual first.
        climbs: how often each climb was made, and by which functions.
        calls: how many calls there were.
    """

    def __init__(self) -> None:
        self.rooms: Counter[tuple[str, ...]] = Counter()
        self.climbs: dict[Climb, Counter[str]] = {}
        self.calls = 0
        self._rows = _rows()
        self._room_of: dict[CodeType, str] = {}
        self._walk: list[str] = []
        self._resumed: set[int] = set()

    @contextmanager
    def fit(self) -> Iterator[None]:
        """Watch one ``fit``."""
        self._walk, self._resumed = [], set()
        sys.setprofile(self._see)
        try:
            yield
        finally:
            sys.setprofile(None)
            self.rooms[tuple(dict.fromkeys(self._walk))] += 1

    def _see(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "call":
            return
        stop = self._room(frame.f_code)
        if not stop or frame.f_code.co_name in ("<module>", "__del__"):
            return
        before = frame.f_back
        while before is not None and not self._room(before.f_code):
            before = before.f_back
        if before is None:
            return
        self.calls += 1
        start = self._room(before.f_code)
        called = f"{before.f_code.co_qualname} → {frame.f_code.co_qualname}"
        if self._row(stop) < self._row(start):
            self._climb("a", start, stop, called)
        elif start in ORCHESTRATORS and stop not in (
            *ORCHESTRATORS,
            *VOCABULARY,
            _DRIVERS,
        ):
            self._enter(frame, stop, called)

    def _enter(self, frame: FrameType, room: str, called: str) -> None:
        """The directing code calls into a room: further in it, into a new one, or back."""
        is_generator = bool(frame.f_code.co_flags & 0x20)
        if is_generator and id(frame) in self._resumed:
            return
        if is_generator:
            self._resumed.add(id(frame))
        last = self._walk[-1] if self._walk else ""
        if room in self._walk and room != last:
            self._climb("b", last, room, called)
        if room != last:
            self._walk.append(room)

    def _climb(self, kind: str, start: str, stop: str, called: str) -> None:
        self.climbs.setdefault(Climb(kind, start, stop), Counter())[
            called
        ] += 1

    def _room(self, code: CodeType) -> str:
        known = self._room_of.get(code)
        if known is None:
            known = self._room_of[code] = _room_at(code.co_filename)
        return known

    def _row(self, room: str) -> int:
        return self._rows.get(room.partition(".")[0], len(self._rows))


def _room_at(filename: str) -> str:
    """The room of a file; empty outside of ours, and for what loads and compares."""
    path = Path(filename)
    package = Path(ullage.__file__).parent
    if not path.is_relative_to(package):
        return ""
    parts = path.relative_to(package).with_suffix("").parts
    if parts[0] in _SEVERAL and len(parts) > 2:
        parts = parts[1:]
    if parts[-1] == "errors":
        return "errors"
    if len(parts) < 2 or parts[0] == "core":
        return ""
    return ".".join(parts[:2]) if parts[0] in ("session", "turn") else parts[0]


def _rows() -> dict[str, int]:
    """The row of each room, the uppermost 0."""
    return {
        room: row for row, rooms in enumerate(ROWS) for room in rooms.split()
    }


def traced_session(turns: int = TURNS, watch: Trace | None = None) -> Trace:
    """Trace a session of so many turns; each reads a file of some 120 lines and reports usage."""
    trace = watch or Trace()
    session = ullage.Session(
        "gpt-4.1", limits=ullage.Limits(window_tokens=WINDOW_TOKENS)
    )
    history: list[dict[str, Any]] = [
        {"role": "user", "content": "Mend the build of the parser."}
    ]
    for turn in range(turns):
        with trace.fit():
            view = session.fit(
                {
                    "model": "gpt-4.1",
                    "messages": list(history),
                    "tools": _TOOLS,
                }
            )
        session.observe({"usage": {"prompt_tokens": 900 + _size(view) // 4}})
        history += _exchange(turn)
    return trace


_TOOLS = [
    {"type": "function", "function": {"name": "read_file", "parameters": {}}}
]


def _size(view: Any) -> int:
    return sum(
        len(str(message.get("content") or "")) for message in view["messages"]
    )


def _exchange(turn: int) -> list[dict[str, Any]]:
    """A reply that asks for a file, and the file."""
    path = f"src/parser/part_{turn % 9}.py"
    call = {"name": "read_file", "arguments": f'{{"path": "{path}"}}'}
    lines = (
        f"{turn}:{at} def rule_{turn}_{at}(text): return text[{at}:]"
        for at in range(LINES)
    )
    return [
        {
            "role": "assistant",
            "content": f"I read {path}.",
            "tool_calls": [
                {"id": f"call_{turn}", "type": "function", "function": call}
            ],
        },
        {
            "role": "tool",
            "tool_call_id": f"call_{turn}",
            "content": "\n".join(lines),
        },
    ]


def main() -> None:
    """Print the walk, the climbs, and how many there are."""
    parser = argparse.ArgumentParser(
        prog="lab.trace_turn", description=__doc__
    )
    parser.add_argument("--turns", type=int, default=TURNS)
    turns = parser.parse_args().turns
    traced_session(3)
    trace = traced_session(turns)
    console = Console(width=140)
    console.print(
        f"{turns} turns, {trace.calls:,} calls between functions of ours",
        highlight=False,
    )
    for walk, count in trace.rooms.most_common(3):
        console.print(f"{count:3} × " + " → ".join(walk), highlight=False)
    table = Table("", "from", "into", "calls", "by (the most frequent three)")
    for climb, by in sorted(
        trace.climbs.items(), key=lambda item: (item[0].kind, -item[1].total())
    ):
        names = "\n".join(
            f"{name} ({count:,})" for name, count in by.most_common(3)
        )
        table.add_row(
            climb.kind, climb.start, climb.stop, f"{by.total():,}", names
        )
    console.print(table)
    console.print(f"{len(trace.climbs)} climbs", highlight=False)


if __name__ == "__main__":
    main()
