"""What a host of sessions reads of one and gives it: a proxy, `Sessions`, an exchange, a page.

Nobody outside this package touches what a session knows. What is read here is frozen, or is read
while no call works on it; what is written goes through the state's lock. So all of it may be called
from any thread, also while a `fit` is under way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ullage.core.history import canon
from ullage.core.history.snapshots import is_written_alike, not_same
from ullage.core.tokens.catalog import lookup
from ullage.core.turn.caches import HistoryCache
from ullage.core.turn.lessons import Lessons, limits_for
from ullage.core.turn.request import Header
from ullage.core.turn.settings import Settings
from ullage.core.turn.state import wire_of
from ullage.core.values.messages import Message
from ullage.session.receipts.writer import SessionReceipts
from ullage.session.state import SessionState

if TYPE_CHECKING:
    from ullage.session.view import RequestInfo


class HostMixin:
    """The part of a session that serves its host.

    Attributes:
        settings: what the session was asked to be.
    """

    settings: Settings
    _state: SessionState
    _state_lock: AbstractContextManager[bool]
    _saved: SessionReceipts

    def count_into(self, whole: SessionReceipts) -> None:
        """Have each reply counted among those of many sessions as well.

        Args:
            whole: the sums of them all.
        """
        self._saved = SessionReceipts(whole)

    @property
    def learnt(self) -> Lessons:
        """The provider's limits as its answers taught them, for a later session (`learn`)."""
        return self._state.learnt

    def learn(self, learnt: Lessons) -> None:
        """Begin with what an earlier session of the same conversation learnt.

        Args:
            learnt: as `learnt` of that session returned it.
        """
        with self._state_lock:
            self._state = replace(self._state, learnt=learnt)

    def asked_in(self, client_session: str, subagent: str = "") -> None:
        """Take in the client's own names of who asks, for the outlines from here on.

        Args:
            client_session: as the client calls its session; ``""`` changes nothing.
            subagent: as it calls the sub-agent that asks; ``""``: none asks.
        """
        settings = self.settings
        if not client_session:
            return
        if (client_session, subagent) != (
            settings.client_session,
            settings.subagent,
        ):
            self.settings = replace(
                settings, client_session=client_session, subagent=subagent
            )

    @property
    def messages(self) -> Sequence[Message]:
        """The history of the newest view as values; empty where nothing was fitted yet."""
        newest = self._state.newest
        return () if newest is None else newest.transcript.messages

    @property
    def header(self) -> Header | None:
        """The fields around the messages of the last request; None: not known at the moment."""
        with self._state_lock:
            cache = self._state.cache
            return None if cache is None else cache.envelopes.last

    def begin_with_header(self, header: Header | None) -> None:
        """Begin with the header that another session of the same tenant and format read last.

        So it is in memory once. A session that has read a request, or is in its first, keeps its
        own.

        Args:
            header: as `header` of that session returned it.
        """
        with self._state_lock:
            cache = self._state.cache
            if cache is not None and cache.envelopes.last is None:
                cache.envelopes.last = header

    def intern(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Replace the messages of a request by equal ones that the session remembers.

        For a host that reads every request again from JSON: so each message is in memory once, and
        is recognised in next to no time.

        Args:
            request: as for `Session.fit`, of plain JSON; never changed.

        Returns:
            A request that says the same; the same one while a call is under way, which works on
            what is remembered. The messages in it are the session's: nobody may write into them.
        """
        settings = self.settings
        # a call takes the cache out of the state under this lock before it works on it
        with self._state_lock:
            cache = self._state.cache
            wire = wire_of(self._state.persisted, settings)
            if (
                cache is None
                or wire is None
                or type(request.get(wire.key)) is not list
            ):
                return request
            leading = len(wire.leading(request))
            raws = request[wire.key][leading:]
            root = canon.root(wire.name, settings.tenant)
            for line in cache.histories:
                if line.transcript.chain[0] == root:
                    same = _same_messages(line, raws)
                    raws[: len(same)] = same
        return {**request, wire.key: [*request[wire.key][:leading], *raws]}

    def largest_call(self, info: RequestInfo) -> tuple[int, int]:
        """The most tokens that the call of a view can use: for its prompt, and for its answer.

        Args:
            info: of the view.
        """
        model_info = lookup(info.model)
        lesson = self._state.learnt.of(info.transcript, info.model)
        limits = limits_for(info.model, info.limits, lesson)
        reserve = limits.window_tokens - info.limit_tokens
        output = min(reserve, model_info.max_output_tokens or reserve)
        return info.frozen.calibration.upper(info.tokens), output

    def newest_request(self) -> dict[str, Any] | None:
        """The newest request that was fitted, as it came, with the whole history.

        Returns:
            The request, or None where it is not at hand. The values in it are the session's:
            nobody may write into them.
        """
        newest = self._state.newest
        return None if newest is None else newest.raw.request()


def _same_messages(line: HistoryCache, raws: Sequence[Any]) -> list[Any]:
    """The remembered messages of a line, as far as they equal the given ones."""
    same = line.copies[: len(raws)]
    for index, copy, raw in not_same(same, raws):
        if copy != raw:
            return same[:index]
        if not is_written_alike(raw, copy):
            same[index] = raw
    return same
