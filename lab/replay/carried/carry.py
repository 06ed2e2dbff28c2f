"""Carry recorded runs under a policy: every view asked for, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from lab.replay.carried.sight import Read, Reader, View
from lab.replay.carried.sums import Sums
from lab.replay.carried.wants import wants_of
from lab.replay.story import Story
from ullage.errors import OverLimitError
from ullage.replay.calls import boundaries, model_of, request_of, session_for
from ullage.replay.cost.prefix import head_of
from ullage.replay.evidence.demands import Head
from ullage.replay.gates import Judge
from ullage.replay.readers import Run
from ullage.replay.reading import SessionLibrary, reachable_with, refs_in
from ullage.stages.policy import Policy
from ullage.tokens.catalog import lookup
from ullage.values.usage import Usage
from ullage.wires import FORMATS

__all__ = ["Carried", "Carrier"]


class Carried(Struct, frozen=True, kw_only=True):
    """What a run costs under a policy in one window, and without any.

    Attributes:
        run: the run's id.
        shown: sums over its views.
        raw: sums over its requests as they were recorded.
        over_limit: calls that could not be made to fit.
    """

    run: str
    shown: Sums
    raw: Sums
    over_limit: int = 0


class Carrier:
    """One run, read once, to be carried under any policy in any window.

    Attributes:
        run: the recording.
        raw: sums over its requests as they were recorded.
    """

    def __init__(self, run: Run) -> None:
        wire = self._wire = FORMATS[run.format]
        self.run, self._lengths = run, boundaries(run)
        self._story = Story(wire, run.messages)
        self._reader, self._judge = Reader(self._story), Judge()
        self._head = head_of(run.request)
        self._wants = wants_of(self._story, self._lengths, Head.of(wire, run.request))
        self.raw = Sums()
        before: Sequence[Read] = ()
        for length in self._lengths:
            now = self._reader.view(run.messages[:length]).messages
            self.raw.request(now, before, _bytes(self._head))
            before = now

    def under(self, policy: Policy, window_tokens: int | None) -> Carried:
        """Carry it under a policy.

        Args:
            policy: the policy.
            window_tokens: the context window; None: that of the run's model.
        """
        window_tokens = window_tokens or lookup(model_of(self.run)).window_tokens
        session = session_for(self.run, policy, window_tokens)()
        library = SessionLibrary(session)

        def opens(ref: str, view: View) -> bool:
            named = [pointer.ref for pointer in refs_in(view.text)]
            return ref in named or ref in reachable_with(library.leads, named)

        sums, over_limit, before = Sums(), 0, View(())
        for length, wants in zip(self._lengths, self._wants, strict=True):
            try:
                fitted = session.fit(request_of(self.run, self.run.messages[:length]))
            except OverLimitError:
                over_limit += 1
                continue
            head, raws = head_of(fitted), self._wire.history(fitted)
            view = self._reader.view(raws)
            sums.request(view.messages, before.messages, _bytes(head))
            sums.reply(wants, view, opens)
            if self._is_unsaid(length, raws, view):
                sums.unsaid += 1
                sums.unsaid_fits += 2 * self._said_tokens(length) <= session.window.limit_tokens
            before = view
            tokens = self._judge.tokens(raws) + self._judge.text(head)
            session.observe(Usage(fresh_tokens=tokens))
        return Carried(run=self.run.id, shown=sums, raw=self.raw, over_limit=over_limit)

    def _is_unsaid(self, length: int, raws: Sequence[Any], view: View) -> bool:
        """Whether something that the user or the system said is not in a view, word for word."""
        kept = {self._story.place_of(raw) for raw in raws}
        gone = (index for index in self._story.said if index < length and index not in kept)
        pieces = (piece for index in gone for piece in self._story.pieces[index])
        return any(piece.by == "user" and piece.plain not in view.text for piece in pieces)

    def _said_tokens(self, length: int) -> int:
        """Tokens, as bytes / 4, of all that the user and the system said by then."""
        before = (self._story.pieces[index] for index in self._story.said if index < length)
        said = (_bytes(piece.text) for pieces in before for piece in pieces if piece.by == "user")
        return sum(said) // 4


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
