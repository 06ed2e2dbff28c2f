"""Who is scored: everything, a policy of the frame, ullage, or a peer in its own process.

A contestant is made anew for each run and budget. It is shown the past before each call and
returns what it would send; its library opens the refs that stand in that.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from lab.bench.peers.process import PeerProcess, Trouble
from lab.replay.chooser import PagedLibrary, SessionPages
from lab.replay.frame import recency
from lab.replay.past import PageLibrary, Past
from ullage.core.errors import OverLimitError
from ullage.core.history.canon import canonical_json
from ullage.core.values.notices import Pointer
from ullage.core.values.usage import Usage
from ullage.documents import preset
from ullage.tools.replay.calls import model_of, session_for
from ullage.tools.replay.cost.prefix import head_of
from ullage.tools.replay.gates import Judge
from ullage.tools.replay.readers import Run


class Refused(Exception):
    """There is no view for this call: the library would not make one."""


class Contestant(Protocol):
    """What is scored.

    Attributes:
        library: opens the refs in its views.
        times_ms: processor time of each view, conversion left out.
    """

    library: PagedLibrary
    times_ms: list[float]

    def view(self, past: Past, budget_tokens: int) -> Sequence[Any]:
        """What it would send.

        Raises:
            Refused: it makes no view for this call.
            Trouble: it cannot be scored any further.
        """


class Everything:
    """Sends the history as it is."""

    def __init__(self) -> None:
        self.library: PagedLibrary = PageLibrary()
        self.times_ms: list[float] = []

    def view(self, past: Past, budget_tokens: int) -> Sequence[Any]:
        """See `Contestant.view`."""
        return past.story.messages[: past.length]


class Recency:
    """The newest messages that fit, whole replies: what every other policy has to beat."""

    def __init__(self) -> None:
        self.library: PagedLibrary = PageLibrary()
        self.times_ms: list[float] = []

    def view(self, past: Past, budget_tokens: int) -> Sequence[Any]:
        """See `Contestant.view`."""
        began = time.process_time()
        shown = recency(past, budget_tokens)
        self.times_ms.append((time.process_time() - began) * 1e3)
        return shown.messages


class Own:
    """ullage's default policy, its session told by the judge what each view came to."""

    def __init__(self, run: Run, window_tokens: int, judge: Judge) -> None:
        """Begin a session for a run in a window; the judge counts what a provider would."""
        chosen = preset("default")
        recall = [
            [tool.description, tool.parameters]
            for tool in chosen.toolset.tools
        ]
        self.request = {**run.request, "model": model_of(run)}
        self.head_tokens = judge.text(head_of(run.request)) + judge.text(
            canonical_json(recall)
        )
        self.session = session_for(run, chosen, window_tokens)()
        self.library: PagedLibrary = SessionPages(self.session)
        self.times_ms: list[float] = []

    def view(self, past: Past, budget_tokens: int) -> Sequence[Any]:
        """See `Contestant.view`."""
        history = past.story.messages[: past.length]
        began = time.process_time()
        try:
            view = self.session.fit({**self.request, "messages": history})[
                "messages"
            ]
        except OverLimitError as error:
            raise Refused from error
        self.times_ms.append((time.process_time() - began) * 1e3)
        self.session.observe(
            Usage(fresh_tokens=self.head_tokens + past.tokens(view))
        )
        return view


class Peer:
    """A policy of another library, in its own process.

    A view's message that the library did not touch is the very object of the history; one
    that it made alike in two views is one object, as it would be in one process.
    """

    def __init__(
        self,
        process: PeerProcess,
        policy: str,
        budget_tokens: int,
        tools: Sequence[Any],
        *,
        run_seconds: float,
    ) -> None:
        """Begin a run."""
        self.process, self.run_seconds = process, run_seconds
        self.versions = process.begin(policy, budget_tokens, tools).versions
        self._refs = PeerLibrary(process)
        self.library: PagedLibrary = self._refs
        self.times_ms: list[float] = []
        self._sent = 0
        self._made: dict[bytes, Any] = {}

    def view(self, past: Past, budget_tokens: int) -> Sequence[Any]:
        """See `Contestant.view`."""
        messages = past.story.messages
        answer = self.process.view(messages[self._sent : past.length])
        self._sent = past.length
        if answer.view is None:
            raise Refused
        self.times_ms.append(answer.ms)
        if sum(self.times_ms) > self.run_seconds * 1e3:
            raise Trouble(f"took more than {self.run_seconds:g} s in all")
        self._refs.stand(answer.refs)
        if any(
            isinstance(item, int) and not 0 <= item < past.length
            for item in answer.view
        ):
            raise Trouble("sent a message that is not in the history")
        return [
            messages[item] if isinstance(item, int) else self._one(item)
            for item in answer.view
        ]

    def _one(self, message: dict[str, Any]) -> dict[str, Any]:
        return self._made.setdefault(msgspec.json.encode(message), message)


class PeerLibrary:
    """Opens refs by the peer's own tool. A page is asked for once a view: names may move."""

    def __init__(self, process: PeerProcess) -> None:
        self._process = process
        self._refs: Sequence[str] = ()
        self._opened: dict[tuple[str, str], str] = {}

    def stand(self, refs: Sequence[str]) -> None:
        """There is a new view, in which these names open something."""
        self._refs, self._opened = refs, {}

    def named(self, text: str) -> list[Pointer]:
        """See `Library.named`. A name in a longer one, as 1 in 12, is none."""
        return [
            Pointer(ref, 0)
            for ref in self._refs
            if ref in text and _stands_in(ref, text)
        ]

    def page(self, pointer: Pointer) -> str:
        """See `Library.page`."""
        return self._open("open", pointer.ref)

    def find(self, words: str, page: int = 1) -> str | None:
        """See `PagedLibrary.find`: no peer's adapter searches."""
        return None

    def whole(self, ref: str) -> str:
        """See `Library.whole`."""
        return self._open("whole", ref)

    def leads(self, ref: str) -> Sequence[str]:
        """See `Library.leads`."""
        return ()

    def _open(self, ask: str, ref: str) -> str:
        if (ask, ref) not in self._opened:
            self._opened[ask, ref] = self._process.page(ask, ref)
        return self._opened[ask, ref]


def _stands_in(ref: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(ref)}(?!\w)", text) is not None
