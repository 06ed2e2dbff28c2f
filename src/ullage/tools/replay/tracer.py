"""What a session showed, folded into a trace.

A trace is folded from windows, one after each fit, and from nothing else. So a replay and a
live session whose ledger was kept (`ullage inspect`) give the same value. A turn costs what is
new in it: counts are kept by message until an edit changes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TypeAlias

from msgspec.structs import replace

from ullage import Replace, ReplaceSpan, Window
from ullage.core.values.edits import without_surrogates
from ullage.doors.host import (
    Content,
    Media,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from ullage.policy import leaves_of
from ullage.tools.replay.cost.money import Priced
from ullage.tools.replay.readers import Run
from ullage.tools.replay.trace import (
    KINDS,
    REASONING_DROPPED,
    SHORTENED,
    STUB,
    SUMMED_UP,
    WHOLE,
    Role,
    Trace,
    TracedEdit,
    TracedPart,
    TracedRun,
)

_FRAMING_TOKENS = 4
_TEXT_CHARS = 1_600
_SHOWN_CHARS = 900
_SUMMARY_CHARS = 4_000
_SUBJECT_CHARS = 120

_State: TypeAlias = tuple[int, tuple[Replace, ...]]
"""How a message is shown, and the edits in it."""


class Tracer:
    """Folds windows into a trace; ``count`` gives the tokens of a text."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count
        self._counts: list[dict[tuple[int, int], tuple[str, int]]] = []
        self._vectors: list[list[int]] = []
        self._raws: list[int] = []
        self._states: dict[int, _State] = {}
        self._summaries: set[ReplaceSpan] = set()
        self._head = -1
        self._window: Window | None = None
        self._trace = Trace(policy="")

    def __call__(self, window: Window, priced: Priced) -> None:
        """Take in the window after one fit, and what its request came to."""
        trace = self._trace
        call = priced.call
        turn = len(trace.lengths)
        if self._head < 0:
            self._head = sum(map(self._count, window.head_texts))
        self._window = window
        for index in range(len(self._vectors), window.size):
            self._add(window, index)
        self._look(window, turn)
        record_tokens = self._condensed(window, turn)
        sums = [0] * len(KINDS)
        for vector in self._vectors:
            for kind, tokens in enumerate(vector):
                sums[kind] += tokens
        sums[_AT["head"]] += self._head
        sums[_AT["record"]] += record_tokens
        trace.lengths.append(window.size)
        trace.sizes.append(sums)
        trace.raw.append(self._head + sum(self._raws))
        trace.cached.append(call.cached_tokens)
        trace.written.append(call.written_tokens)
        trace.fresh.append(call.fresh_tokens)
        trace.rewritten.append(call.rewritten_tokens)
        trace.cost_usd.append(priced.cost_usd)
        trace.raw_cost_usd.append(priced.raw_cost_usd)
        self._trace = replace(
            trace,
            window_tokens=window.context_tokens,
            limit_tokens=window.limit_tokens,
            profile=priced.profile,
        )

    def trace(self, policy: str, share: float | None = None) -> Trace:
        """Everything taken in so far."""
        return replace(self._trace, policy=policy, share=share)

    def story(self, run: Run) -> TracedRun:
        """The messages behind it, and what the recording says of itself."""
        window = self._window
        head = ""
        messages = (
            window.transcript.messages[: len(self._vectors)] if window else []
        )
        if window is not None and window.head_texts:
            head = clipped("\n\n".join(window.head_texts), _SUMMARY_CHARS)
        parts = [
            list(self._said(window, index))
            for index in range(len(messages))
            if window
        ]
        cut = sum(part.chars > _TEXT_CHARS for row in parts for part in row)
        began_s = min(run.stamps.values(), default=0.0)
        roles: list[Role] = [message.role for message in messages]
        return TracedRun(
            run=run.id,
            head=head,
            roles=roles,
            parts=parts,
            clipped=cut,
            model=run.model,
            began=f"{datetime.fromtimestamp(began_s, UTC):%Y-%m-%d}"
            if run.stamps
            else "",
        )

    # ── counting ─────────────────────────────────────────────────────────────────────

    def _add(self, window: Window, index: int) -> None:
        """Take in a new message, unedited."""
        message = window.transcript.messages[index]
        counts = window.leaf_counts(index)
        leaves = zip(leaves_of(message), counts, strict=True)
        self._counts.append(
            {
                (number, item): (
                    _kind(message.role, message.parts[number]),
                    self._leaf(leaf, estimated),
                )
                for (number, item, leaf), estimated in leaves
            }
        )
        self._vectors.append(self._vector(window, index, (WHOLE, ())))
        self._raws.append(sum(self._vectors[-1]))

    def _leaf(self, leaf: Part | Content, estimated: int) -> int:
        """Tokens of a leaf: its text's, or what the meter makes of what is no text."""
        if isinstance(leaf, ToolCall):
            return self._count(leaf.name) + self._count(leaf.arguments)
        if isinstance(leaf, Text) or (
            isinstance(leaf, Reasoning) and leaf.text
        ):
            return self._count(leaf.text)
        return estimated

    def _vector(self, window: Window, index: int, state: _State) -> list[int]:
        """Tokens of a message by kind, as it is shown."""
        vector = [0] * len(KINDS)
        shape, edits = state
        if shape == SUMMED_UP:
            return vector
        message = window.transcript.messages[index]
        replacements = window.shown(index) if edits else {}
        vector[
            _AT[
                _kind(message.role, message.parts[0])
                if message.parts
                else "user"
            ]
        ] += _FRAMING_TOKENS
        for place, (kind, tokens) in self._counts[index].items():
            edit = replacements.get(place)
            if edit is not None:
                kind = _kind_instead(kind, edit)
                tokens = self._count(edit.text)
            elif (
                isinstance(message.parts[place[0]], Reasoning)
                and index in window.reasoning_dropped
            ):
                continue
            vector[_AT[kind]] += tokens
        return vector

    # ── what changed ─────────────────────────────────────────────────────────────────

    def _look(self, window: Window, turn: int) -> None:
        """Note every message that looks otherwise than at the turn before."""
        now = _states(window)
        for index in sorted({*now, *self._states}):
            state = now.get(index, (WHOLE, ()))
            earlier = self._states.get(index, (WHOLE, ()))
            if state == earlier:
                continue
            self._vectors[index] = self._vector(window, index, state)
            if state[0] != earlier[0]:
                self._trace.changes.append((turn, index, state[0]))
            for edit in state[1]:
                if edit not in earlier[1]:
                    self._trace.marks.append(
                        self._replaced(window, turn, index, edit)
                    )
        self._states = now

    def _replaced(
        self, window: Window, turn: int, index: int, edit: Replace
    ) -> TracedEdit:
        spot = window.location_of(edit.ref) or (index, 0, 0)
        _, tokens = self._counts[index].get(spot[1:], ("", 0))
        return TracedEdit(
            turn=turn,
            message=index,
            stop=index + 1,
            kind=edit.kind,
            is_new=index >= window.fresh,
            subject=_subject(window, index, spot[1]),
            reason=edit.why,
            ref=edit.ref,
            tokens_before=tokens,
            tokens_after=self._count(edit.text),
            text=clipped(edit.text, _SHOWN_CHARS),
        )

    def _condensed(self, window: Window, turn: int) -> int:
        """Tokens of the summaries shown in place of messages; a new one is marked."""
        total = 0
        for start, stop, edit in window.summaries:
            tokens = sum(
                self._count(text) + _FRAMING_TOKENS for text in edit.texts
            )
            total += tokens
            if edit in self._summaries:
                continue
            self._summaries.add(edit)
            self._trace.marks.append(
                TracedEdit(
                    turn=turn,
                    message=start,
                    stop=stop,
                    kind=edit.kind,
                    is_new=False,
                    subject=f"messages {start + 1} to {stop}",
                    reason=edit.why,
                    ref=edit.ref,
                    tokens_before=sum(self._raws[start:stop]),
                    tokens_after=tokens,
                    text=clipped("\n\n".join(edit.texts), _SUMMARY_CHARS),
                )
            )
        return total

    def _said(self, window: Window, index: int) -> Iterator[TracedPart]:
        message = window.transcript.messages[index]
        for number, item, leaf in leaves_of(message):
            kind, tokens = self._counts[index][number, item]
            text = _text(leaf)
            part = message.parts[number]
            tool = part.name if isinstance(part, ToolCall) else ""
            if isinstance(part, ToolResult):
                tool = window.tool_of((index, number, 0))
            yield TracedPart(
                kind, tool, clipped(text, _TEXT_CHARS), tokens, len(text)
            )


_AT = {kind: at for at, kind in enumerate(KINDS)}


def _states(window: Window) -> dict[int, _State]:
    """Every message that is not shown as it is."""
    states: dict[int, _State] = {}
    for index in window.reasoning_dropped:
        states[index] = (REASONING_DROPPED, ())
    for index in window.changed:
        edits = tuple(window.shown(index).values())
        stub = any(edit.kind == "pruned" for edit in edits)
        states[index] = (STUB if stub else SHORTENED, edits)
    for start, stop, _ in window.summaries:
        for index in range(start, stop):
            if window.hidden(index):
                states[index] = (SUMMED_UP, ())
    return states


def _kind(role: str, part: Part) -> str:
    """What a part is of (`KINDS`)."""
    return _OF_PART.get(type(part)) or {
        "system": "head",
        "tool": "result",
    }.get(role, role)


def _kind_instead(kind: str, edit: Replace) -> str:
    """What the text of an edit is of, in place of a leaf of this kind."""
    if kind != "result" and edit.kind != "pruned":
        return kind
    is_line = "\n" not in edit.text.strip()
    return "notice" if is_line else "excerpt"


_OF_PART: dict[type, str] = {
    ToolCall: "call",
    ToolResult: "result",
    Reasoning: "reasoning",
}


def _subject(window: Window, index: int, number: int) -> str:
    """The call that a place belongs to, or who speaks there."""
    message = window.transcript.messages[index]
    part = message.parts[number]
    call = (
        part
        if isinstance(part, ToolCall)
        else window.transcript.call_for(index, number)
    )
    if call is None:
        return f"{message.role} text"
    subject = " ".join(call.arguments.split())
    more = "…" if len(subject) > _SUBJECT_CHARS else ""
    return without_surrogates(f"{call.name} {subject[:_SUBJECT_CHARS]}{more}")


def _text(leaf: Part | Content) -> str:
    if isinstance(leaf, ToolCall):
        return leaf.arguments
    if isinstance(leaf, (Text, Reasoning)):
        return leaf.text
    if isinstance(leaf, Media):
        return f"[{leaf.kind}, {leaf.mime}]"
    return f"[{leaf.kind}]" if isinstance(leaf, Opaque) else ""


def clipped(text: str, most_chars: int) -> str:
    """A text of at most so many characters, and how many were left out of its middle."""
    if len(text) <= most_chars:
        return without_surrogates(text)
    head = most_chars * 2 // 3
    tail = most_chars // 3
    gap = f" ⟨… {len(text) - head - tail:,} characters not in this page …⟩ "
    return without_surrogates(text[:head] + gap + text[-tail:])
