"""The session for an event loop. Apart, because asyncio is a third of what an import costs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, TypeVar, overload
from weakref import WeakKeyDictionary, WeakSet

from ullage.core.errors import ConfigError
from ullage.core.locks import RLock
from ullage.core.tokens.models import is_ready, make_ready
from ullage.core.values.decisions import Verb, When
from ullage.core.values.effects import Record, Steps
from ullage.session.ahead import AheadMixin
from ullage.session.closing import AsyncClosing, AsyncSharedStore
from ullage.session.core import SessionCore
from ullage.session.decisions.preview import Preview
from ullage.session.drivers import adrive, arun, run
from ullage.session.recall.dispatch import Answer
from ullage.session.recall.found import ToolOutputRef
from ullage.session.receipts.timer import aclose, write_in_time
from ullage.session.spend.waiting import pauses
from ullage.session.view import AsyncView
from ullage.stores import AsyncStore, directory_of, files_of, open_store
from ullage.stores.threaded import Threaded, in_thread

# A turn with few new messages and a small view is worked out on the event loop itself. A batch of
# the largest such view has the loop wait a tenth of a second, once in some fifty turns; a thread
# costs two milliseconds at every turn, and twice the time until the answer.
_LIGHT_MESSAGES = 32
_LIGHT_TOKENS = 200_000


if (
    TYPE_CHECKING
):  # without an SDK its types are Any, and so is what recall gives
    from anthropic.types import ToolResultBlockParam, ToolUseBlock
    from openai.types.chat import (
        ChatCompletionMessageFunctionToolCall,
        ChatCompletionToolMessageParam,
    )
    from openai.types.responses import ResponseFunctionToolCall
    from openai.types.responses.response_input_item_param import (
        FunctionCallOutput,
    )

T = TypeVar("T")


_RECALLS_AT_ONCE = 2
_recalls: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = (
    WeakKeyDictionary()
)


def _recalls_at_once() -> asyncio.Semaphore:
    """The semaphore that bounds concurrent recall calls on the running event loop."""
    return _recalls.setdefault(
        asyncio.get_running_loop(), asyncio.Semaphore(_RECALLS_AT_ONCE)
    )


_open_sessions: WeakSet[AsyncSession] = WeakSet()


def _free_all() -> None:
    """Give sessions new locks in the child of a fork: no task there releases the old ones."""
    for session in tuple(_open_sessions):
        session._lock = asyncio.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)


class AsyncSession(AheadMixin, SessionCore, AsyncClosing):
    """`Session` for an event loop: the same settings, the same views, awaited.

    ``store`` may also be an `AsyncStore`; a sync store runs in a thread.

    With a summariser, a compaction is begun beside the turns before it is needed, and the first
    `fit` after it is ready shows it. `preparing` is the task of it.
    """

    store: AsyncStore
    _lent = AsyncSharedStore
    _new_lock = staticmethod(RLock)

    def _hold(self, store: Any) -> None:
        self._use(store)
        if not iscoroutinefunction(getattr(store, "commit", None)):
            self.store = Threaded(self._with_files(open_store(store)))
            return
        directory = self.settings.policy.spill_directory
        spilled = files_of(store)
        if (
            directory is not None
            and spilled is None
            and directory_of(directory, store) is not None
        ):
            raise ConfigError(
                "spill_directory",
                "an asynchronous store keeps no files",
                "Give a SpillStore in ullage.stores.threaded.Threaded, or the store underneath.",
            )
        self._place_files(
            spilled.folder.as_posix()
            if directory is not None and spilled
            else None
        )

    def _use(self, store: AsyncStore) -> None:
        self.store = store
        self._lock = asyncio.Lock()
        _open_sessions.add(self)

    async def fit(
        self, request: Mapping[str, Any], *, may_add_tools: bool = True
    ) -> AsyncView:
        """Return a request that fits, to be sent by an asynchronous client; see `Session.fit`."""
        with self._account.sending():
            steps = self._fit(request, AsyncView, may_add_tools=may_add_tools)
            return await self._run(steps, request)

    async def flush(self, request: Mapping[str, Any]) -> None:
        """Decide now what the next `fit` of this history would decide; see `Session.flush`."""
        await self._run(self._flush(request), request)

    async def compact(self, request: Mapping[str, Any]) -> bool:
        """Compact this history now; see `Session.compact`."""
        return await self._run(self._compact(request), request)

    async def observe(self, reply: Any) -> None:
        """Take in the reply to the newest view; see `Session.observe`."""
        await self._run(self._observe(self._newest, reply))

    @overload
    async def call(
        self, create: Callable[..., Awaitable[T]], /, **request: Any
    ) -> T: ...
    @overload
    async def call(self, create: Callable[..., T], /, **request: Any) -> T: ...
    async def call(self, create: Callable[..., Any], /, **request: Any) -> Any:
        """Fit a request, await the call, and observe the reply; see `Session.call`.

        A client's stream manager is returned as it is, to be entered.
        """
        from ullage.session.provider.call import ProviderCall

        return await adrive(
            ProviderCall(self, create, request, is_awaited=True).steps()
        )

    async def wait_for_budget(self) -> bool:
        """Wait until the calls of others leave budget; see `Session.wait_for_budget`."""
        return await adrive(pauses(self.budget, self._account), asyncio.sleep)

    @overload
    async def recall(
        self,
        call: ToolUseBlock,
        *,
        request: Mapping[str, Any] | None = None,
    ) -> ToolResultBlockParam: ...

    @overload
    async def recall(
        self,
        call: ChatCompletionMessageFunctionToolCall,
        *,
        request: Mapping[str, Any] | None = None,
    ) -> ChatCompletionToolMessageParam: ...

    @overload
    async def recall(
        self,
        call: ResponseFunctionToolCall,
        *,
        request: Mapping[str, Any] | None = None,
    ) -> FunctionCallOutput: ...

    @overload
    async def recall(
        self,
        call: Any,
        *,
        request: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]: ...

    async def recall(
        self, call: Any, *, request: Mapping[str, Any] | None = None
    ) -> Any:
        """Answer a tool call that `owns` said is ours; see `Session.recall`."""
        return await self._run_recall(
            self._recall(call, request=request), request
        )

    async def answer(
        self,
        name: str,
        arguments: Mapping[str, Any] | str,
        call_id: str = "",
        *,
        request: Mapping[str, Any] | None = None,
    ) -> Answer:
        """Answer a call of one of `tools` by its name and arguments; see `Session.answer`."""
        return await self._run_recall(
            self._answer_named(name, arguments, call_id, request), request
        )

    async def open(self, ref: str) -> str:
        """Return the whole text of what was set aside; see `Session.open`."""
        return await self._run(self._open_text(ref))

    # ── a user's decisions ───────────────────────────────────────────────────────────

    async def pin(
        self,
        target: Any,
        *,
        lines: tuple[int, int] | None = None,
        reason: str = "",
        author: str = "",
        request: Mapping[str, Any] | None = None,
    ) -> str:
        """Keep something whole in every view from the next one on; see `Session.pin`."""
        options: dict[str, Any] = {
            "lines": lines,
            "reason": reason,
            "author": author,
        }
        return await self._run(self._decide("pin", target, request, **options))

    async def drop(
        self,
        target: Any,
        *,
        reason: str = "",
        author: str = "",
        request: Mapping[str, Any] | None = None,
    ) -> str:
        """Take something out of the view; see `Session.drop`."""
        return await self._run(
            self._decide("drop", target, request, reason=reason, author=author)
        )

    async def restore(
        self,
        target: Any,
        *,
        when: When = "batch",
        lines: tuple[int, int] | None = None,
        reason: str = "",
        author: str = "",
        request: Mapping[str, Any] | None = None,
    ) -> str:
        """Bring back, whole, what left the view; see `Session.restore`."""
        if when not in ("batch", "end", "now"):
            raise ConfigError(
                "when",
                f"{when!r} is not a time",
                'Give "batch", "end" or "now".',
            )
        options: dict[str, Any] = {
            "when": when,
            "lines": lines,
            "reason": reason,
            "author": author,
        }
        return await self._run(
            self._decide("restore", target, request, **options)
        )

    async def undo(
        self,
        name: str | None = None,
        *,
        reason: str = "",
        author: str = "",
        request: Mapping[str, Any] | None = None,
    ) -> str:
        """Take back a batch, a compaction, or an earlier decision; see `Session.undo`."""
        return await self._run(
            self._decide("undo", name, request, reason=reason, author=author)
        )

    async def note(
        self,
        text: str,
        *,
        reason: str = "",
        author: str = "",
        request: Mapping[str, Any] | None = None,
    ) -> str:
        """Show a text of the user's in every view from the next one on; see `Session.note`."""
        options: dict[str, Any] = {
            "text": text,
            "reason": reason,
            "author": author,
        }
        return await self._run(self._decide("note", None, request, **options))

    async def preview(
        self,
        verb: Verb,
        target: Any = None,
        *,
        request: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Preview:
        """Work out what a decision would change and cost; see `Session.preview`."""
        return await self._run_heavy(
            self._preview_decision(verb, target, request, **options)
        )

    async def take(self, records: Iterable[Record]) -> None:
        """Take in the `news` of another session of this conversation; see `Session.take`."""
        await self._run(self._take(records))

    async def output_ref(self, wanted: str) -> ToolOutputRef:
        """Return the ref and the size of a tool output; see `Session.output_ref`."""
        return await self._run(self._output_ref(wanted))

    async def close(self) -> None:
        """Close the store, and give back what is reserved of the budget.

        A compaction under way is given up.
        """
        if self.preparing is not None:
            self.preparing.cancel()
            await asyncio.wait((self.preparing,))
        self.budget.end(self._account)
        await aclose(self.store)
        await self.store.close()

    def _is_heavy(self, request: Mapping[str, Any]) -> bool:
        newest = self._state.newest
        if newest is None:
            return True
        self._count_view(newest)
        if newest.tokens > _LIGHT_TOKENS:
            return True
        values = request.values() if isinstance(request, Mapping) else ()
        messages = max(
            (len(value) for value in values if isinstance(value, list)),
            default=0,
        )
        return messages - newest.size > _LIGHT_MESSAGES

    async def _run(
        self, steps: Steps[T], request: Mapping[str, Any] | None = None
    ) -> T:
        """Run steps under the session's lock; after those of a turn's request, look ahead.

        A turn that may take longer than the loop can wait is worked out in a thread.
        """
        async with self._lock:
            is_heavy = request is not None and self._is_heavy(request)
            result = await self._beside(steps, is_heavy=is_heavy)
            if request is not None:
                self._look_ahead()
            return result

    async def _run_heavy(self, steps: Steps[T]) -> T:
        """Run steps that read alone and take long, such as a preview, in a thread."""
        async with self._lock:
            return await self._beside(steps, is_heavy=True)

    async def _run_recall(
        self, steps: Steps[T], request: Mapping[str, Any] | None = None
    ) -> T:
        """Run the steps of a recall call in a thread: a search may take long.

        A few run at a time, so that threads are left for turns.
        """
        async with self._lock, _recalls_at_once():
            result = await self._beside(steps, is_heavy=True)
            if request is not None:
                self._look_ahead()
            return result

    async def _beside(
        self,
        steps: Steps[T],
        *,
        is_heavy: bool = False,
        is_ahead: bool = False,
    ) -> T:
        """Run steps: on the loop, or in a thread where they are heavy and the store blocks.

        Those of a turn ask nobody for a summary where no turn waits for one.
        """
        model = self.settings.model
        tenant = self.settings.tenant
        if not is_ready(model):
            await asyncio.to_thread(make_ready, model)
        write_in_time(self.store)
        blocking = getattr(self.store, "blocking", None)
        summaries = self._summaries
        asked = (
            summaries
            if is_ahead or summaries is None
            else summaries.for_turns()
        )
        asks = asked is not None and asked.asks
        if is_heavy and blocking is not None and not asks:
            # one thread for all steps, not one for each
            return await in_thread(run, steps, blocking, tenant, asked)
        return await arun(steps, self.store, tenant, asked, is_heavy=is_heavy)

    def _look_ahead(self) -> None:
        """Begin the next compaction, if the view is over the softer threshold."""
        cut = self._due_ahead()
        if cut is not None:
            steps = self._beside(self._filling(cut), is_ahead=True)
            task = asyncio.create_task(steps, name="ullage-compaction")
            self._begun(cut, task)
