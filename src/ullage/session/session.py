"""Sessions: a turn as most users meet it.

    client, session = anthropic.Anthropic(), ullage.Session(model="claude-opus-4-8")
    reply = client.messages.create(**session.fit(request))
    session.observe(reply)

`Session` and `ullage.session.aio.AsyncSession` differ in nothing but ``await``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from ullage.core.contract.policy import Policy
from ullage.core.errors import ConfigError
from ullage.core.locks import Lock, RLock
from ullage.core.redaction import Redact
from ullage.core.values.decisions import Verb, When
from ullage.core.values.effects import Record, Steps
from ullage.core.values.limits import Limits
from ullage.policy.stages.named import PolicyName
from ullage.session.ahead import AheadMixin, in_background
from ullage.session.closing import Closing
from ullage.session.core import SessionCore
from ullage.session.decisions.preview import Preview
from ullage.session.drivers import drive, run
from ullage.session.recall.dispatch import Answer
from ullage.session.recall.found import ToolOutputRef
from ullage.session.receipts.writer import close
from ullage.session.spend.waiting import pauses
from ullage.session.view import View
from ullage.stores import Store, open_store
from ullage.wires import Format, FormatName, model_in

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


class Session(AheadMixin, SessionCore, Closing):
    """Keeps one conversation within its window.

    Args:
        model: the model the requests are for; ``request["model"]`` goes first.
        policy: a policy, or the name of one.
        limits: the window and what is kept free for the answer. None: the model's own.
        format: the wire format, by name or as an object. None: recognised from the first
            request.
        store: where what is set aside is kept: None or ``"memory"``, ``"sqlite"``, a path of
            an SQLite file, ``"postgresql://…"``, or a store.
        blobs: ``"s3://bucket/prefix"``, for the larger texts; None: in the store with the rest.
        cache: ``"valkey://host"``, for copies of those, and for leases; None: without.
        tenant: whose content this is; a ref opens only what the same tenant put there.
        recall: whether requests offer the recall tools; ``"auto"``: from the start, or, of a
            conversation that is first seen under way, as soon as it saves money; ``"host"``: a
            framework offers them itself, under their own names (`tools`), so nothing is added to
            a request, and a call of one is ours (`open`). Where none are, the default policy
            cuts nothing until the window is nearly full (`Policy.without_recall`).
        joins: whether a conversation that is first seen under way is offered the recall tools,
            and cut as one batch, once it saves money (with ``recall="auto"``). False: never.
        repair: repair a history that the provider would refuse (interrupted calls, results
            that come late, twice or without a call, empty text), and report it.
        state: the state of an earlier session, to go on from.
        budget: what it may spend together with all sessions of the same budget. None: no
            limit; its calls are listed anyway.
        agent: the name its calls are listed under.
        summariser: a model that adds to the summaries of what is compacted: any callable, or
            one of `ullage.summarise`. None: the deterministic summaries stand alone.
        redact: takes secrets out of a text before it is set aside, summarised or shown cut, such
            as `ullage.common_keys`; the same for the same text. None: nothing does.
        user_tools: names of your own tools by which the user answers: their results are the
            user's words, quoted whole wherever user text is. Beside those of the agents that
            ullage knows; compared whole, without case and signs.
        outline: whether the store keeps an outline of the conversation (who said what, and the
            first 60 characters of each text), so that ``ullage window`` can name its messages.
            A store in memory keeps none.
        on_event: is called with each event once, as it happens; it must not use the session.
            What it raises is logged. None: the events are in `events` and in the log alone.

    Raises:
        ConfigError: a setting is not known.

    A session may be used from several threads; its turns run one at a time. It may be read while
    one is under way: what is read is as the last turn left it.
    """

    store: Store
    _new_lock = staticmethod(RLock)

    def _hold(self, store: Any) -> None:
        if self._summaries is not None and self._summaries.summariser.is_async:
            raise ConfigError(
                "summariser",
                "it must be awaited",
                "Use an AsyncSession, or a sync client.",
            )
        self._use(self._with_files(open_store(store)))

    def _use(self, store: Store) -> None:
        self.store = store
        self._lock = Lock()

    def fit(
        self, request: Mapping[str, Any], *, may_add_tools: bool = True
    ) -> View:
        """A request that fits, made from a request with the whole history.

        Args:
            request: the keyword arguments of the provider call. Never changed.
            may_add_tools: whether the recall tools may be added to it. False: its provider refused
                a request that they were added to (with ``recall="auto"``).

        Returns:
            A new dict, which is also the handle of this request (`ullage.View`). Untouched
            messages are the caller's own objects; recall tools may stand at the end of
            ``tools``.

        Raises:
            FormatError: the request is not what its format says it is.
            OverLimitError: what may not be touched is over the limit.
            StoreError: what is set aside could not be kept.
            BudgetExceeded: the budget is spent, and the model has been asked to sum up.
            ConfigError: the budget is in money, and the model's prices are not known.
        """
        with self._account.sending():
            steps = self._fit(request, View, may_add_tools=may_add_tools)
            return self._run(steps, is_turn=True)

    def flush(self, request: Mapping[str, Any]) -> None:
        """Decide now what the next `fit` of this history would decide; nothing is to be sent.

        For the end of an agent's turn: what the answer has made necessary is done and kept
        before the conversation rests. No budget is asked.

        Args:
            request: as for `fit`, the answer at the end of its history.

        Raises:
            FormatError, OverLimitError, StoreError: see `fit`.
        """
        self._run(self._flush(request), is_turn=True)

    def compact(self, request: Mapping[str, Any]) -> bool:
        """Compact this history now, whatever the pressure; nothing is to be sent.

        Args:
            request: as for `fit`.

        Returns:
            Whether there was anything to compact. The next `fit` shows the outcome.

        Raises:
            ConfigError: the policy has no compaction.
            FormatError, OverLimitError, StoreError: see `fit`.
        """
        return self._run(self._compact(request))

    def observe(self, reply: Any) -> None:
        """Take in the reply to the newest view; `View.observe` is for any.

        Its usage calibrates the estimate and adds to the totals.

        Args:
            reply: the provider's reply (a dict or the SDK's object), the list of a stream's
                events, a raw response, or a `Usage`. What reports nothing, or cannot be read
                (a stream itself), is reported in an event of kind ``"unreported"``, and our
                estimate of the prompt is counted against a budget.
        """
        self._run(self._observe(self._newest, reply))

    def call(self, create: Callable[..., T], /, **request: Any) -> T:
        """Fit a request, make the call, and observe the reply: `fit`, a client, and `observe`.

        What the provider calls too long is cut deeper and sent once more, as long as nothing of
        a reply was given out. A call that fails gives back what it had claimed of a budget.

        A request that `fit` refuses (what it holds is not what the format says, the store fails,
        what may not be cut is over the limit) is sent as it came, and an event of kind
        ``"unfitted"`` says why: without ullage it would be sent as well. Where others have
        reserved what is left of the budget, it waits for them (`wait_for_budget`).

        Args:
            create: a method of a client, such as ``client.messages.create`` or ``.stream``, or
                the one behind ``with_raw_response`` or ``with_streaming_response``.
            request: its keyword arguments, with the whole history. Never changed.

        Returns:
            What the client returns. A stream passes its events on as they come, and is observed
            when it ends, breaks off or is closed; a manager is to be entered. If no usage can be
            read, an event of kind ``"unreported"`` says so.

        Raises:
            BudgetExceeded: see `fit`.
            ConfigError: the client is an asynchronous one; see `fit` too.

        Any error of the client's comes out as it is. For a type checker the reply is what
        ``create`` returns; of overloads the first, so use the client's ``stream`` for
        streams.
        """
        from ullage.session.provider.call import ProviderCall

        call = ProviderCall(self, create, request, is_awaited=False)
        return drive(call.steps())  # type: ignore[no-any-return]

    def wait_for_budget(self) -> bool:
        """Wait until the calls of others leave something of the budget.

        For a `BudgetExceeded` with ``can_retry``. `call` and `ullage.loop` wait by themselves.

        Returns:
            Whether `fit` may succeed now. False: none of those calls ended in the budget's
            ``wait_s`` seconds.
        """
        return drive(pauses(self.budget, self._account), time.sleep)

    @overload
    def recall(
        self,
        call: ToolUseBlock,
        *,
        request: Mapping[str, Any] | None = None,
    ) -> ToolResultBlockParam: ...

    @overload
    def recall(
        self,
        call: ChatCompletionMessageFunctionToolCall,
        *,
        request: Mapping[str, Any] | None = None,
    ) -> ChatCompletionToolMessageParam: ...

    @overload
    def recall(
        self,
        call: ResponseFunctionToolCall,
        *,
        request: Mapping[str, Any] | None = None,
    ) -> FunctionCallOutput: ...

    @overload
    def recall(
        self,
        call: Any,
        *,
        request: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]: ...

    def recall(
        self, call: Any, *, request: Mapping[str, Any] | None = None
    ) -> Any:
        """Answer a call that `owns` said is ours.

        Args:
            call: the tool call as it is in the reply, a dict or the SDK's object.
            request: the request with the history, for a session that was made again: where
                nothing was fitted yet, it is decided first, as by `flush`.

        Returns:
            The wire result, ready to append: a tool message (OpenAI), or a ``tool_result``
            block (Anthropic) or ``functionResponse`` part (Gemini) for the next user message.
            What is wrong with the call is said to the model in it.

        Raises:
            FormatError: this is not a tool call of the format.
            StoreError: the store failed.
            ConfigError: nothing was fitted yet, and there is no request.
        """
        return self._run(self._recall(call, request=request))

    def answer(
        self,
        name: str,
        arguments: Mapping[str, Any] | str,
        call_id: str = "",
        *,
        request: Mapping[str, Any] | None = None,
    ) -> Answer:
        """Answer a call of one of `tools` by its name and arguments, for a host that runs tools.

        Args:
            name: the tool's name.
            arguments: its arguments, as an object or as JSON text.
            call_id: the id of the call, where it has one.
            request: as for `recall`.

        Returns:
            What the model is to read; what is wrong with the call is said in it.

        Raises:
            StoreError, ConfigError: see `recall`.
        """
        return self._run(self._answer_named(name, arguments, call_id, request))

    def open(self, ref: str) -> str:
        """The whole text of what was set aside, for people and programs.

        A model reads it page by page, through `tools`.

        Args:
            ref: as a notice or an event names it; or the id of a tool call, of which the newest
                result is meant.

        Returns:
            The text as it came. Of an image or a file, its block as JSON.

        Raises:
            RefNotFound: neither the newest history nor the store has it.
            StoreError: the store failed, or what it holds is damaged.
        """
        return self._run(self._open_text(ref))

    # ── a user's decisions ───────────────────────────────────────────────────────────

    def pin(
        self,
        target: Any,
        *,
        lines: tuple[int, int] | None = None,
        reason: str = "",
        author: str = "",
        request: Mapping[str, Any] | None = None,
    ) -> str:
        """Keep something whole in every view from the next one on, as long as it fits.

        It outranks every policy. The guard alone may cut it, when nothing else is left to make a
        request fit; then an event of kind ``"overruled"`` says so. See `docs/hand.md`.

        Args:
            target: what is meant: ``"m12"`` for message 12 (as events count them), ``"m12.2"``
                for its second text, result or call, a ref, the id of a tool call, or a message of
                the request itself.
            lines: the first and the last line of a text, counted from 1; None: all of it.
            reason: why, for whoever reads the record.
            author: who decided.
            request: as for `recall`.

        Returns:
            The name of the decision, for `undo`.

        Raises:
            RefNotFound: the history has no such target.
            ConfigError: the target has no such lines, or nothing was fitted yet.
            StoreError: the decision could not be kept.
        """
        options: dict[str, Any] = {
            "lines": lines,
            "reason": reason,
            "author": author,
        }
        return self._run(self._decide("pin", target, request, **options))

    def drop(
        self,
        target: Any,
        *,
        reason: str = "",
        author: str = "",
        request: Mapping[str, Any] | None = None,
    ) -> str:
        """Take something out of the view. A notice names the ref that still opens it.

        See `pin` for arguments, what is returned and errors.
        """
        return self._run(
            self._decide("drop", target, request, reason=reason, author=author)
        )

    def restore(
        self,
        target: Any,
        *,
        when: When = "batch",
        lines: tuple[int, int] | None = None,
        reason: str = "",
        author: str = "",
        request: Mapping[str, Any] | None = None,
    ) -> str:
        """Bring back, whole, what left the view. A later batch may take it out again.

        Args:
            target: see `pin`.
            when: ``"batch"``: in its place, when the next batch breaks the prompt cache anyway;
                ``"end"``: a copy at the end of the next view, which breaks nothing; ``"now"``: in
                its place in the next view.
            lines: with ``when="end"``, the lines of a text that are copied; see `pin`.
            reason: see `pin`.
            author: see `pin`.
            request: see `pin`.

        See `pin` for what is returned and errors.
        """
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
        return self._run(self._decide("restore", target, request, **options))

    def undo(
        self,
        name: str | None = None,
        *,
        reason: str = "",
        author: str = "",
        request: Mapping[str, Any] | None = None,
    ) -> str:
        """Take back a batch, a compaction, or an earlier decision: the view is as before it.

        An undo can be undone by its name; then the view is that before the undo, byte for byte
        where nothing was said since. What an undone batch had taken out stays in the view until
        there is no room for it.

        Args:
            name: of a decision (``d…``) or a batch (``b…``), or a ref that a batch set aside.
                None: what was done last and stands, undos left out.
            reason: see `pin`.
            author: see `pin`.
            request: see `pin`.

        See `pin` for what is returned and errors.
        """
        return self._run(
            self._decide("undo", name, request, reason=reason, author=author)
        )

    def note(
        self,
        text: str,
        *,
        reason: str = "",
        author: str = "",
        request: Mapping[str, Any] | None = None,
    ) -> str:
        """Have a text of the user's stand in every view of this conversation from the next one on.

        It is added at the end of the next view and stays at that place, so it breaks no cache.

        Args:
            text: what is to be read.
            reason: see `pin`.
            author: see `pin`.
            request: see `pin`.

        Raises:
            ConfigError: the text is empty, or nothing was fitted yet.
            StoreError: the note could not be kept.

        See `pin` for what is returned.
        """
        options: dict[str, Any] = {
            "text": text,
            "reason": reason,
            "author": author,
        }
        return self._run(self._decide("note", None, request, **options))

    def preview(
        self,
        verb: Verb,
        target: Any = None,
        *,
        request: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Preview:
        """What a decision would change and cost, before it is made. Nothing is kept.

        Args:
            verb: ``"pin"``, ``"drop"``, ``"restore"``, ``"undo"`` or ``"note"``.
            target: as for the method of that name; of a note its text.
            request: see `pin`.
            options: the other arguments of that method.

        Raises:
            OverLimitError: no view would fit with the decision.
            RefNotFound, ConfigError: see `pin`.
        """
        return self._run(
            self._preview_decision(verb, target, request, **options)
        )

    def take(self, records: Iterable[Record]) -> None:
        """Take in what `news` of another session of this conversation gave.

        Args:
            records: in any order, any number of times. What cannot be read is passed over.
        """
        self._run(self._take(records))

    def output_ref(self, wanted: str) -> ToolOutputRef:
        """The ref of a tool output, and how large it is, whether or not it was set aside.

        Args:
            wanted: the id of its tool call (the newest result with it is meant), or its ref.

        Raises:
            RefNotFound: neither the newest history nor the store has it.
            ConfigError: nothing was fitted yet.
        """
        return self._run(self._output_ref(wanted))

    def close(self) -> None:
        """Close the store, and give back what is reserved of the budget.

        A compaction under way is given up.
        """
        self._pending = ()
        self.budget.end(self._account)
        close(self.store)
        self.store.close()

    def _run(self, steps: Steps[T], *, is_turn: bool = False) -> T:
        """Run steps under the session's lock; after those of a turn's request, look ahead."""
        summaries = self._summaries
        tenant = self.settings.tenant
        asked = None if summaries is None else summaries.for_turns()
        with self._lock:
            result = run(steps, self.store, tenant, asked)
            if is_turn and asked is not None and not asked.asks:
                self._look_ahead()
            return result

    def _look_ahead(self) -> None:
        """Begin the next compaction in a thread, where no turn waits for a summary."""
        cut = self._due_ahead()
        if cut is not None:
            steps = self._filling(cut)
            tenant = self.settings.tenant
            work = partial(run, steps, self.store, tenant, self._summaries)
            self._begun(cut, in_background(work))


def fit(
    request: Mapping[str, Any],
    *,
    model: str | None = None,
    policy: PolicyName | str | Policy = "default",
    limits: Limits | None = None,
    format: FormatName | str | Format | None = None,
    store: str | os.PathLike[str] | Store | None = None,
    recall: bool | Literal["auto", "host"] = "auto",
    joins: bool = True,
    repair: bool = False,
    redact: Redact | None = None,
    user_tools: Iterable[str] = (),
) -> View:
    """Make one request fit, without a session. See `Session` for the arguments.

    Without a store, what leaves the view is in the caller's history and nowhere else. A history
    under way is cut by the default near its limit alone, unless ``recall`` says that the model can
    open what is cut.

    Raises:
        FormatError, OverLimitError, StoreError: see `Session.fit`.
    """
    requested_model = model_in(request) or model
    model_name = requested_model if isinstance(requested_model, str) else ""
    session = Session(
        model_name,
        policy=policy,
        limits=limits,
        format=format,
        store=store,
        recall=recall,
        joins=joins,
        repair=repair,
        redact=redact,
        user_tools=user_tools,
    )
    return session.fit(request)
