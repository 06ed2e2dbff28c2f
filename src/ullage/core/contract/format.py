"""What a format must be able to do: read a provider's request, and write what is shown of it.

A format turns a request into messages and back. It knows nothing of windows, policies or stores.
What it gives back for an untouched message is the caller's own object. What wires have in common
is done by `ullage.wires.format.WireFormat`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from ullage.core.contract.choice import Choice
from ullage.core.contract.repaired import Repaired
from ullage.core.redaction import Redact
from ullage.core.values.messages import Message, ReasoningRule, ToolCall
from ullage.core.values.toolset import ToolSpec
from ullage.core.values.usage import Usage


class RequestHead(Struct, frozen=True):
    """What of a request stands outside its chained messages.

    Attributes:
        leading: how many leading raw messages are system text, not part of the chain.
        texts: every text to be counted: system text, and each tool as JSON.
        schemas: what else the model is shown: the schemas its answer is to have.
        tools: the names of the caller's tools.
        asked_output_tokens: the request's own limit of the answer, or None.
        model: the request's model, or None.
    """

    leading: int
    texts: tuple[str, ...]
    tools: tuple[str, ...]
    asked_output_tokens: int | None
    model: str | None
    schemas: tuple[str, ...] = ()


class HeldHistory(Struct, frozen=True):
    """A field of a request that names a history which the provider holds.

    Attributes:
        field: its name, as errors and events say it.
        paths: where the name of the history may stand, as names with dots between.
    """

    field: str
    paths: tuple[str, ...]


Change: TypeAlias = tuple[int, int, str]
"""A leaf of a message by part and item index, and the text to show there."""


class Format(ABC):
    """One format of requests. Every method is pure; raw values are dicts or SDK objects.

    Attributes:
        name: what it is called.
        wire: the name of the one of ours whose requests, replies and rules it has.
        key: the field of the request that holds the history.
        model_field: the field of the request that names the model.
        joins_results: whether tool results may stand before text in one message of the user.
        most_tools: the most tools that a request may have; None: no limit is known.
        held_histories: the fields that name a history which the provider holds.
    """

    name: str
    wire: str
    key: str = "messages"
    model_field: str = "model"
    joins_results: bool = False
    most_tools: int | None = None
    held_histories: Sequence[HeldHistory] = ()

    # ── the request ──────────────────────────────────────────────────────────────────

    @abstractmethod
    def history(self, request: Mapping[str, Any]) -> list[Any]:
        """The raw messages, the caller's own list where there is one. Raises FormatError."""

    @abstractmethod
    def leading(self, request: Mapping[str, Any]) -> list[Any]:
        """The leading raw messages that are system text. Raises FormatError."""

    @abstractmethod
    def wants_data(self, request: Mapping[str, Any]) -> bool:
        """Whether a program is to read the answer: JSON, or whatever else is no prose."""

    def previous(self, request: Mapping[str, Any]) -> str:
        """The id of the reply that the request goes on from, where the provider holds what led to
        it; ``""`` where the request holds its own history.
        """
        return ""

    def is_thread(self, request: Mapping[str, Any]) -> bool:
        """Whether the next request may go on from the reply to this one by its id alone."""
        return False

    @abstractmethod
    def tools(self, request: Mapping[str, Any]) -> Sequence[Any]:
        """The tool definitions of the request, each in the form that `tool` gives."""

    @abstractmethod
    def tool_text(self, tool: Any, path: str) -> str:
        """A definition as JSON text, without its cache marker. Raises FormatError."""

    def takes_tools(self, request: Mapping[str, Any], model: str) -> bool:
        """Whether functions may be added to the tools of this request, for this model."""
        return True

    @abstractmethod
    def choice(self, request: Mapping[str, Any]) -> Choice:
        """Which tools the model may call in its reply to this request."""

    def allowing(
        self, request: dict[str, Any], names: Sequence[str]
    ) -> dict[str, Any]:
        """A request in whose list of tools that may be called these stand too, at its end.

        It is asked of requests alone whose `choice` takes more.
        """
        return request

    @abstractmethod
    def head(self, request: Mapping[str, Any]) -> RequestHead:
        """What stands outside the messages. Raises FormatError."""

    def window_tokens(self, request: Mapping[str, Any]) -> int | None:
        """The window that the request asks its server for, or None."""
        return None

    def default_window_tokens(self, model: str) -> int | None:
        """The window that a server has for a model if nobody says otherwise, however much the model
        could hold; None where it is the model's own.
        """
        return None

    def media_detail(self, request: Mapping[str, Any]) -> str:
        """How finely the request has media looked at, where a block does not say."""
        return ""

    @abstractmethod
    def compose(
        self,
        request: Mapping[str, Any],
        messages: list[Any],
        tools: Sequence[dict[str, Any]],
    ) -> dict[str, Any]:
        """A new top-level request with these messages, and these tools after its own."""

    @abstractmethod
    def wrap_up(self, request: Mapping[str, Any], text: str) -> dict[str, Any]:
        """The request with one more user message, and the model told to call no tools."""

    # ── messages ─────────────────────────────────────────────────────────────────────

    @abstractmethod
    def parse(self, raw: Any, path: str) -> Message:
        """One message. Raises FormatError naming the place below ``path``."""

    @abstractmethod
    def edit(
        self,
        raw: Any,
        message: Message,
        changes: Sequence[Change],
        *,
        drop_reasoning: bool = False,
    ) -> Any:
        """A fresh message: ``raw`` with other texts in some places, all else as it was.

        ``drop_reasoning`` leaves its reasoning out.

        Raises:
            UnsupportedPart: no text may stand where a change wants one: it is reasoning, or a
                part that stands as it came or not at all. Or the text is blank, and the wire
                takes no blank text there.
            FormatError: the arguments of a call are to be a text that the wire has no form for.
        """

    def apart(self, raw: Any) -> Any:
        """A message of results to stand without its call, which a summary stands for.

        Where a result follows its call at once it goes where that goes, and stays as it is.
        """
        return raw

    @abstractmethod
    def user(self, text: str) -> Any:
        """A user message."""

    def wants_turns(self, model: str) -> bool:
        """Whether user and assistant may have to speak in turn, for a model.

        The vendors' own APIs take several messages of the user in a row (A2, C9). Chat templates
        of many models that others serve refuse them.
        """
        return False

    @abstractmethod
    def together(self, raws: Sequence[Any]) -> Any:
        """One user message that says what several say, in their order.

        Asked only where `wants_turns`; results may stand in the first where ``joins_results``.
        """

    # ── reasoning ────────────────────────────────────────────────────────────────────

    @abstractmethod
    def family(self, model: str) -> str:
        """The name of the family whose rules of reasoning hold for a model."""

    @abstractmethod
    def reasoning(
        self, request: Mapping[str, Any], model: str
    ) -> ReasoningRule:
        """What an edit means for the reasoning behind it, with this model and request."""

    def thinks_first(self, request: Mapping[str, Any]) -> bool:
        """Whether an open turn must begin with thinking (A14)."""
        return False

    # ── tools, calls and replies ─────────────────────────────────────────────────────

    @abstractmethod
    def tool(self, spec: ToolSpec) -> dict[str, Any]:
        """A tool definition."""

    @abstractmethod
    def tool_name(self, raw: Any) -> str:
        """The name in a tool definition, ``""`` where it has none."""

    @abstractmethod
    def call(self, raw: Any) -> ToolCall:
        """A tool call as it stands in a reply. Raises FormatError."""

    @abstractmethod
    def result(
        self,
        call: ToolCall,
        text: str,
        *,
        is_error: bool = False,
        block: Any = None,
    ) -> dict[str, Any]:
        """The wire result of a call, ready to append.

        ``block`` is a content block that was set aside. Where results can hold it, it is
        given back as what it was; elsewhere as JSON text.
        """

    def results(self, results: Sequence[Any]) -> list[Any]:
        """The raw messages that carry these wire results, ready to append to the history."""
        return list(results)

    @abstractmethod
    def reply(self, reply: Any) -> list[Any]:
        """The raw messages a reply consists of, ready to append; none if it says nothing."""

    def cut_short(self, reply: Any) -> str:
        """Why a reply ended before the model was done: its output limit, a filter; or ``""``.

        The last call in such a reply may lack a part of its arguments, and still be legal.
        """
        return ""

    @abstractmethod
    def calls(self, raw: Any) -> list[Any]:
        """The tool calls in a raw message of the model, each as `call` takes it."""

    # ── usage ────────────────────────────────────────────────────────────────────────

    @abstractmethod
    def usage(self, reply: Any) -> Usage | None:
        """What a reply reports, or None if it reports nothing."""

    def usage_of_stream(self, events: Iterable[Any]) -> Usage | None:
        """What the events of one streamed reply report, or None (F63, `provider-rules` §4).

        A stream that broke off gives what it had reported by then. Events of other kinds are
        passed over, and a whole reply is a stream of one event.
        """
        newest: Usage | None = None
        for event in events:
            usage = self.usage(event)
            if usage is not None:
                newest = usage
        return newest


# ── all formats, as a turn asks for them ─────────────────────────────────────────────────


class Recognise(Protocol):
    """Tells the format of a request (`ullage.wires.recognise`)."""

    def __call__(
        self, request: Mapping[str, Any], model: str | None = None
    ) -> Format:
        """The format of a request to a model. Raises FormatError if it cannot be told."""


class Repair(Protocol):
    """Makes a broken history legal (`ullage.wires.repair.apply.repair`)."""

    def __call__(
        self,
        wire: Format,
        raws: Sequence[Any],
        known: Sequence[Repaired] = (),
        *,
        strips: bool = False,
        redact: Redact | None = None,
        model: str = "",
    ) -> Repaired:
        """The messages of a history as the provider takes them."""


class Formats(Struct, frozen=True):
    """The formats that there are, as a turn asks for them; see `ullage.wires.ALL_FORMATS`.

    Attributes:
        named: the format of a name. It raises ConfigError where there is none.
        recognise: the format of a request. It raises FormatError where it cannot be told.
        repair: the messages of a history as their provider takes them.
        held_histories: the fields that name a history which a provider holds, of every format.
    """

    named: Callable[[str], Format]
    recognise: Recognise
    repair: Repair
    held_histories: Sequence[HeldHistory] = ()
