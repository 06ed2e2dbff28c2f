"""A session's summariser: asked once for each input, within its time, and paid for.

One that fails is asked less and less often, and as ever once it has answered well (`Circuit`).
One that hangs is left alone with the one request it hangs in: no other is made until it ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ullage.core.locks import Lock
from ullage.core.tokens.models import counter_for
from ullage.core.values.effects import Reply, Summarise
from ullage.core.values.usage import Usage
from ullage.session.spend.budget import Budget
from ullage.session.spend.calls import Spent
from ullage.session.summarise._summariser import Summariser
from ullage.wires.reported import plausible

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future

_REMEMBERED = 8
_MOST_CHARS_PER_TOKEN = 1_000
"""A reply that is longer than so many for each token it may have is not even counted."""
_TRIES = 2
"""So many requests may fail before any is left out: the second says what was wrong."""
_MOST = 64
"""No more requests than this are left out before the next is made."""


class Circuit(NamedTuple):
    """The failures of a summariser in a session.

    Attributes:
        failures: requests that failed, one after another.
        left_out: requests that are still to be left out, before one is made again.
    """

    failures: int = 0
    left_out: int = 0

    def after_failure(self) -> Circuit:
        """The circuit after one more failure: from the second on, twice as many are left out."""
        failures = self.failures + 1
        more = failures - _TRIES
        return Circuit(failures, min(4 << more, _MOST) if more >= 0 else 0)

    def after_leaving_out(self) -> Circuit:
        """The circuit after one request was left out."""
        return self._replace(left_out=self.left_out - 1)


class StoredReplies(NamedTuple):
    """The replies that are there: for a turn that waits for none.

    Attributes:
        summaries: whoever asked for them.
    """

    summaries: Summaries

    @property
    def asks(self) -> bool:
        """Whether a model is asked: never."""
        return False

    @property
    def summariser(self) -> Summariser:
        """Who was asked beside the turns."""
        return self.summaries.summariser

    def ask(self, request: Summarise) -> Reply:
        """The reply to a request that was made beside the turns, or one without a summary.

        Args:
            request: what the model was asked.
        """
        return self.summaries.answered(request) or Reply(
            problem="there is no summary yet, and no turn waits for one",
            final=True,
        )

    async def aask(self, request: Summarise) -> Reply:
        """`ask` for an event loop.

        Args:
            request: what the model was asked.
        """
        return self.ask(request)


class Summaries:
    """Calls a summariser, and never raises: what goes wrong is in the reply.

    A request that takes too long is given up. It runs in a thread of its own, which does not
    keep the process alive; what it costs is counted when it does come back. A reply without
    usage, or with one that cannot be, is charged by our estimate.

    Args:
        summariser: the model.
        budget: what its calls are charged to. Nothing is asked once that is spent.
        agent: the name its calls are listed under.

    Attributes:
        summariser: as given.
        asks: whether a model is asked: always.
    """

    asks = True

    def __init__(
        self, summariser: Summariser, budget: Budget, agent: str
    ) -> None:
        self.summariser = summariser
        self._budget = budget
        self._agent = agent
        self._lock = Lock()
        self._pending = Spent()
        self._answered: dict[Summarise, Reply] = {}
        self._circuit = Circuit()
        self._has_answered = False
        self._running: threading.Thread | asyncio.Future[Reply] | None = None
        self._turn: asyncio.Lock | None = None

    def ask(self, request: Summarise) -> Reply:
        """Ask for a summary.

        Args:
            request: what the model is asked.

        Returns:
            Its reply, or one whose ``problem`` says why there is none.
        """
        reply = self._stored_reply(request)
        if reply is not None:
            return reply
        try:
            return self._start(request).result(self.summariser.timeout_s)
        except TimeoutError:
            return self._give_up(request)

    async def aask(self, request: Summarise) -> Reply:
        """`ask` for an event loop, one request after another. Cancelled, it cancels the request.

        So whoever asks for what is under way gets its answer, and it is not paid for twice.

        Args:
            request: what the model is asked.
        """
        import asyncio

        self._turn = self._turn or asyncio.Lock()
        async with self._turn:
            reply = self._stored_reply(request)
            if reply is not None:
                return reply
            running: asyncio.Future[Reply]
            if self.summariser.is_async:
                running = self._running = asyncio.ensure_future(
                    self._await_reply(request)
                )
            else:
                running = asyncio.wrap_future(self._start(request))
            try:
                await asyncio.wait(
                    (running,), timeout=self.summariser.timeout_s
                )
            finally:
                is_late = not running.done()
                running.cancel()  # whoever does not hear of it is still under way
            if is_late:
                return self._give_up(request)
            return (
                self._record_error(request, asyncio.CancelledError())
                if running.cancelled()
                else running.result()
            )

    def try_again(self) -> None:
        """Make the next request whatever failed before: the user asked for a summary."""
        self._circuit = self._circuit._replace(left_out=0)

    def answered(self, request: Summarise) -> Reply | None:
        """The reply to a request that was made before; None: it is not there.

        Args:
            request: what the model was asked.
        """
        return self._answered.get(request)

    @property
    def may_ask(self) -> bool:
        """Whether the summariser may be asked now."""
        may_ask = self.summariser.may_ask
        return not self._budget.is_used_up and (may_ask is None or may_ask())

    def for_turns(self) -> Summaries | StoredReplies:
        """What answers a turn that needs a summary: whoever is asked, or what is there."""
        return self if self.summariser.waits else StoredReplies(self)

    def take(self, *, is_refused: bool = False) -> Spent:
        """The sum of the calls since the last time.

        Args:
            is_refused: whether the replies since then are not used: then they count among the
                failures, else the failures are over.
        """
        if self._has_answered:
            self._circuit = (
                self._circuit.after_failure() if is_refused else Circuit()
            )
            self._has_answered = False
        with self._lock:
            spent = self._pending
            self._pending = Spent()
            return spent

    def _stored_reply(self, request: Summarise) -> Reply | None:
        reply = self._answered.get(request)
        if reply is not None:
            if reply.problem:
                # whoever asks for a third time gets another try
                del self._answered[request]
            return reply
        if self._budget.is_used_up:
            return Reply(problem="the budget is spent", final=True)
        if self._is_running():
            return Reply(
                problem="the summariser is still at an earlier request",
                final=True,
            )
        if self._circuit.left_out:
            failures = self._circuit.failures
            self._circuit = self._circuit.after_leaving_out()
            more = self._circuit.left_out
            reason = f"the summariser failed {failures} times and was not asked, as in {more} more"
            return Reply(problem=f"{reason} requests", final=True)
        return None

    def _is_running(self) -> bool:
        """Whether a request that timed out is still running."""
        running = self._running
        if isinstance(running, threading.Thread):
            return running.is_alive()
        return running is not None and not running.done()

    def _give_up(self, request: Summarise) -> Reply:
        reason = (
            f"there was no reply within {self.summariser.timeout_s:g} seconds"
        )
        return self._record_failure(request, Reply(problem=reason, final=True))

    def _start(self, request: Summarise) -> Future[Reply]:
        """The future of a request that runs in a thread of its own."""
        from concurrent.futures import Future  # it imports logging

        future: Future[Reply] = Future()

        def work() -> None:
            try:
                reply = self._read(request, lambda: self._send(request))
            except BaseException as error:  # noqa: BLE001 - it ends this thread and nothing else
                reply = self._record_error(request, error)
            self._running = (
                None  # before anybody hears of it, who may ask again at once
            )
            if future.set_running_or_notify_cancel():
                future.set_result(reply)

        self._running = threading.Thread(
            target=work, name="ullage-summary", daemon=True
        )
        self._running.start()
        return future

    async def _await_reply(self, request: Summarise) -> Reply:
        try:
            response = await self._send(request)
        except Exception as error:  # noqa: BLE001
            return self._record_error(request, error)
        return self._read(request, lambda: response)

    def _send(self, request: Summarise) -> Any:
        summariser = self.summariser
        return summariser.send(
            request, summariser.model_for(request.model, request.caller)
        )

    def _read(self, request: Summarise, receive: Callable[[], Any]) -> Reply:
        """The reply in a response, charged and remembered."""
        try:
            reply = self.summariser.read(receive())
        except Exception as error:  # noqa: BLE001
            return self._record_error(request, error)
        with self._lock:
            self._charge(request, reply)
        if reply.problem:
            return self._record_failure(request, reply)
        if len(reply.text) > _MOST_CHARS_PER_TOKEN * request.most_tokens:
            size = f"{len(reply.text):,} characters for at most {request.most_tokens:,} tokens"
            return self._record_failure(
                request, Reply(problem=f"it has {size}")
            )
        self._has_answered = True
        return self._remember(request, reply)

    def _record_error(self, request: Summarise, error: BaseException) -> Reply:
        return self._record_failure(
            request,
            Reply(problem=f"the summariser raised {type(error).__name__}"),
        )

    def _record_failure(self, request: Summarise, reply: Reply) -> Reply:
        self._circuit = self._circuit.after_failure()
        self._has_answered = False
        return self._remember(request, reply)

    def _remember(self, request: Summarise, reply: Reply) -> Reply:
        """Keep a reply for whoever asks the same again."""
        with self._lock:
            self._answered[request] = reply
            while len(self._answered) > _REMEMBERED:
                del self._answered[next(iter(self._answered))]
        return reply

    def _charge(self, request: Summarise, reply: Reply) -> None:
        model = reply.model or self.summariser.model_for(
            request.model, request.caller
        )
        count = counter_for(model).count
        sent_tokens = sum(map(count, (request.system, *request.texts)))
        usage = plausible(reply.usage, model, estimated_tokens=sent_tokens)
        is_reported = isinstance(usage, Usage)
        # a reply without a usable usage is charged by our own count
        if not isinstance(usage, Usage):
            text = reply.text[: _MOST_CHARS_PER_TOKEN * request.most_tokens]
            usage = Usage(fresh_tokens=sent_tokens, output_tokens=count(text))
        call = self._budget.charge(
            usage, model, agent=self._agent, reported=is_reported
        )
        self._pending += call.spent
