"""A framework's own messages as a format: read straight to ullage's values, and given back.

    HOST = Host("myframework", wire="anthropic", parse=…, show=…, user=…, provider=…)
    session = Session(format=HOST, recall="host")
    view = session.fit({"model": …, "system": …, "messages": framework_messages, "tools": […]})

Untouched messages of the view are the framework's own objects. Nothing goes through dicts of a
wire: what a conversion does not know (reasoning first of all) would be taken for something else,
and the rules that hold for it would not be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec.structs import replace

from ullage.core.contract.format import Change, Format, RequestHead
from ullage.core.values.messages import Message, ReasoningRule, Text
from ullage.core.values.usage import Usage
from ullage.wires import format_of, wire_named
from ullage.wires.format import WireFormat

Parse: TypeAlias = Callable[[Any], Message]
"""Reads one of the framework's messages; each part has its own ``at`` for `Show`."""

Show: TypeAlias = Callable[[Any, Message, Sequence[Change], bool], Any]
"""Makes a message to be shown in the place of one: the original, what it was parsed to, the new
texts by part and item, and whether its reasoning is left out. The original is never changed."""

_APART = "[the result of an earlier call]"
_ASKED_OF_REQUESTS = (
    "media_detail",
    "window_tokens",
    "choice",
    "takes_tools",
    "previous",
)


def _as_on_the_wire(name: str) -> Callable[..., Any]:
    """A method that is the wire's own; of a request it gets what stands beside the messages."""

    def method(
        self: Host, argument: Any, *arguments: Any, **options: Any
    ) -> Any:
        if name in _ASKED_OF_REQUESTS:
            argument = self._without_messages(argument)
        return getattr(self._base, name)(argument, *arguments, **options)

    method.__doc__ = getattr(Format, name).__doc__
    return method


class Host(WireFormat):
    """The format of a framework's own messages.

    A request is a mapping as for a provider: ``model``, ``system`` (text), ``messages``, and beside
    them ``tools``, schemas and limits as one of the wires has them.

    Args:
        name: what it is called; it is part of every place in the ledger.
        wire: the wire whose form tools, calls, results and usage have in requests.
        parse: reads a message. It raises `ullage.FormatError` for what is none.
        show: makes an edited message.
        user: makes a user message of a text.
        provider: the name of the wire that a request is really sent on, whose rules of reasoning
            hold; None: ``wire`` for every request. It is given the request, or its model alone.
        usage: what one of the framework's replies reports, or None if it reports nothing. None:
            its replies have the form of the wire's.

    Raises:
        ConfigError: there is no wire of that name.
    """

    def __init__(
        self,
        name: str,
        *,
        wire: str,
        parse: Parse,
        show: Show,
        user: Callable[[str], Any],
        provider: Callable[[Mapping[str, Any]], str] | None = None,
        usage: Callable[[Any], Usage | None] | None = None,
    ) -> None:
        self.name = name
        self.wire = wire
        self._base = wire_named(wire).format
        self._parse = parse
        self._show = show
        self._user = user
        self._provider = provider
        self._usage = usage
        self.most_tools = self._base.most_tools

    # ── the request ──────────────────────────────────────────────────────────────────

    def leading(self, request: Mapping[str, Any]) -> list[Any]:
        """See `Format.leading`: the messages before the first that is not the system's."""
        messages = self.history(request)
        for index, raw in enumerate(messages):
            if self._parse(raw).role != "system":
                return messages[:index]
        return list(messages)

    def head(self, request: Mapping[str, Any]) -> RequestHead:
        """See `Format.head`: as the wire has it, with ``system`` and the leading messages."""
        leading = self.leading(request)
        texts: list[str] = []
        for raw in leading:
            parts = self._parse(raw).parts
            texts += [part.text for part in parts if isinstance(part, Text)]
        beside = self._without_messages(request)
        read_by_wire = [text for _, text in self._base.system(beside)]
        system = request.get("system")
        if isinstance(system, str) and system not in read_by_wire:
            texts.append(system)
        head = self._base.head(beside)
        return replace(head, leading=len(leading), texts=(*texts, *head.texts))

    media_detail = _as_on_the_wire("media_detail")
    window_tokens = _as_on_the_wire("window_tokens")
    default_window_tokens = _as_on_the_wire("default_window_tokens")
    choice = _as_on_the_wire("choice")
    allowing = _as_on_the_wire("allowing")
    takes_tools = _as_on_the_wire("takes_tools")
    previous = _as_on_the_wire("previous")

    def reasoning(
        self, request: Mapping[str, Any], model: str
    ) -> ReasoningRule:
        """See `Format.reasoning`: by the rules of the wire that is really sent."""
        return self._provider_format(request).reasoning(request, model)

    def thinks_first(self, request: Mapping[str, Any]) -> bool:
        """See `Format.thinks_first`: by the rules of the wire that is really sent."""
        return self._provider_format(request).thinks_first(request)

    def family(self, model: str) -> str:
        """See `Format.family`: by the rules of the wire that is really sent."""
        return self._provider_format({"model": model}).family(model)

    def wrap_up(self, request: Mapping[str, Any], text: str) -> dict[str, Any]:
        """See `Format.wrap_up`: what the wire asks beside the messages, and a user message."""
        request_of_wire = self._base.wrap_up(
            self._without_messages(request), text
        )
        beside = dict(request_of_wire)
        beside.pop(self._base.key, None)
        return {**beside, self.key: [*self.history(request), self._user(text)]}

    def _without_messages(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The request as one of the wire's, with no messages."""
        beside = {
            key: value for key, value in request.items() if key != self.key
        }
        return {**beside, self._base.key: []}

    def _provider_format(self, request: Mapping[str, Any]) -> Format:
        """The format of the wire that a request is really sent on."""
        if self._provider is None:
            return self._base
        return format_of(self._provider(request))

    # ── messages ─────────────────────────────────────────────────────────────────────

    def parse(self, raw: Any, path: str) -> Message:
        """See `Format.parse`."""
        return self._parse(raw)

    def edit(
        self,
        raw: Any,
        message: Message,
        changes: Sequence[Change],
        *,
        drop_reasoning: bool = False,
    ) -> Any:
        """See `Format.edit`."""
        return self._show(raw, message, changes, drop_reasoning)

    def apart(self, raw: Any) -> Any:
        """See `Format.apart`: the user hands in what the results say."""
        lines = [_APART]
        for result in self._parse(raw).results:
            lines += [
                item.text for item in result.content if isinstance(item, Text)
            ]
        return self._user("\n".join(lines))

    def user(self, text: str) -> Any:
        """See `Format.user`."""
        return self._user(text)

    # ── calls and replies, in the form of the wire ───────────────────────────────────

    tool = _as_on_the_wire("tool")
    tool_name = _as_on_the_wire("tool_name")
    call = _as_on_the_wire("call")
    result = _as_on_the_wire("result")
    results = _as_on_the_wire("results")
    reply = _as_on_the_wire("reply")
    calls = _as_on_the_wire("calls")
    cut_short = _as_on_the_wire("cut_short")

    def usage(self, reply: Any) -> Usage | None:
        """See `Format.usage`."""
        if self._usage is None:
            return self._base.usage(reply)
        return self._usage(reply)

    def usage_of_stream(self, events: Iterable[Any]) -> Usage | None:
        """See `Format.usage_of_stream`."""
        if self._usage is None:
            return self._base.usage_of_stream(events)
        return super().usage_of_stream(events)
