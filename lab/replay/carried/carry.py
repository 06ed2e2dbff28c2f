"""Carry recorded runs under a policy: every view asked for, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from lab.replay.carried.oracle import Shown, oracle
from lab.replay.carried.passages import passages_of
from lab.replay.carried.recalling import Recall, Recaller
from lab.replay.carried.sight import Read, Reader, View
from lab.replay.carried.sums import Sums
from lab.replay.carried.wants import wants_of
from lab.replay.chooser import SessionPages
from lab.replay.story import Story
from ullage.core.contract.policy import Policy
from ullage.core.errors import OverLimitError
from ullage.core.tokens.catalog import lookup
from ullage.core.values.usage import Usage
from ullage.tools.replay.calls import (
    boundaries,
    model_of,
    request_of,
    session_for,
)
from ullage.tools.replay.cost.prefix import head_of
from ullage.tools.replay.evidence.demands import HeadText
from ullage.tools.replay.gates import Judge
from ullage.tools.replay.readers import Run
from ullage.wires import FORMATS


class Carried(Struct, frozen=True, kw_only=True):
    """What a run costs under a policy in one window, and without any.

    Attributes:
        run: the run's id.
        shown: sums over its views.
        raw: sums over its requests as they were recorded.
        over_limit: calls that could not be made to fit.
        known: sums over the same views, had what replies need been known (`oracle`).
    """

    run: str
    shown: Sums
    raw: Sums
    over_limit: int = 0
    known: Sums | None = None


class Sent(Struct, frozen=True):
    """One request as it is sent.

    Attributes:
        head: what stands outside its messages, as text.
        messages: what it shows of the history.
        recall: how the reply brings back what it does not show.
        limit_tokens: the most it may hold.
        free_tokens: of these, what is left.
    """

    head: str
    messages: Sequence[Any]
    recall: Recall
    limit_tokens: int
    free_tokens: int = 0


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
        self._wants = wants_of(
            self._story, self._lengths, HeadText.of(wire, run.request)
        )
        self._passages = passages_of(self._story, self._lengths)
        self.raw = Sums()
        before: Sequence[Read] = ()
        for length in self._lengths:
            now = self._reader.view(run.messages[:length]).messages
            self.raw.request(now, before, _bytes(self._head))
            before = now

    def under(
        self,
        policy: Policy,
        window_tokens: int | None,
        *,
        with_oracle: bool = False,
    ) -> Carried:
        """Carry it under a policy.

        Args:
            policy: the policy.
            window_tokens: the context window; None: that of the run's model.
            with_oracle: also with what replies need in view, at the same breaks.
        """
        window_tokens = (
            window_tokens or lookup(model_of(self.run)).window_tokens
        )
        return self.judged(
            self._of_session(policy, window_tokens), with_oracle=with_oracle
        )

    def _of_session(
        self, policy: Policy, window_tokens: int
    ) -> Iterator[Sent | None]:
        """The requests of a session, each told how large it was once it was judged."""
        session = session_for(self.run, policy, window_tokens)()
        recaller = Recaller(self._story, SessionPages(session))
        for length in self._lengths:
            try:
                fitted = session.fit(
                    request_of(self.run, self.run.messages[:length])
                )
            except OverLimitError:
                yield None
                continue
            head, raws = head_of(fitted), self._wire.history(fitted)
            limit_tokens = session.window.limit_tokens
            recall = partial(recaller.recall, length)
            yield Sent(
                head,
                raws,
                recall,
                limit_tokens,
                limit_tokens - fitted.sent.estimate,
            )
            tokens = self._judge.tokens(raws) + self._judge.text(head)
            session.observe(Usage(fresh_tokens=tokens))

    def judged(
        self, requests: Iterable[Sent | None], *, with_oracle: bool = False
    ) -> Carried:
        """What requests come to: one for each reply, or None where there was none to be sent.

        Args:
            requests: the requests, in order.
            with_oracle: also with what replies need in view, at the same breaks.
        """
        sums, over_limit, before, views = Sums(), 0, View(()), list[Shown]()
        replies = zip(
            self._lengths, self._wants, self._passages, requests, strict=True
        )
        for length, wants, passages, sent in replies:
            if sent is None:
                over_limit += 1
                continue
            view, head_bytes = (
                self._reader.view(sent.messages),
                _bytes(sent.head),
            )
            sums.request(view.messages, before.messages, head_bytes)
            sums.reply(wants, view, sent.recall)
            sums.repeat(passages, view)
            sums.cut += self._is_cut(length, sent.messages)
            if self._is_unsaid(length, sent.messages, view):
                sums.unsaid += 1
                sums.unsaid_fits += (
                    2 * self._said_tokens(length) <= sent.limit_tokens
                )
            before = view
            if with_oracle:
                views.append(
                    Shown(
                        length,
                        view.messages,
                        head_bytes,
                        sent.free_tokens,
                        wants,
                    )
                )
        known = oracle(self._story, views) if with_oracle else None
        return Carried(
            run=self.run.id,
            shown=sums,
            raw=self.raw,
            over_limit=over_limit,
            known=known,
        )

    def _is_cut(self, length: int, raws: Sequence[Any]) -> bool:
        """Whether a view is anything else than the history."""
        return [self._story.place_of(raw) for raw in raws] != list(
            range(length)
        )

    def _is_unsaid(self, length: int, raws: Sequence[Any], view: View) -> bool:
        """Whether something that the user or the system said is not in a view, word for word."""
        kept = {self._story.place_of(raw) for raw in raws}
        gone = (
            index
            for index in self._story.said
            if index < length and index not in kept
        )
        pieces = (
            piece for index in gone for piece in self._story.pieces[index]
        )
        return any(
            piece.by == "user" and piece.plain not in view.text
            for piece in pieces
        )

    def _said_tokens(self, length: int) -> int:
        """Tokens, as bytes / 4, of all that the user and the system said by then."""
        before = (
            self._story.pieces[index]
            for index in self._story.said
            if index < length
        )
        said = (
            _bytes(piece.text)
            for pieces in before
            for piece in pieces
            if piece.by == "user"
        )
        return sum(said) // 4


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
