"""What a wire format must be able to do, and what those have in common whose history is a list.

A format turns a provider's request into messages and back. It knows nothing of windows,
policies or stores. What it gives back for an untouched message is the caller's own object.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from ullage.errors import FormatError
from ullage.values.messages import Message, ReasoningRule, ToolCall
from ullage.values.model_names import plain_name
from ullage.values.toolset import ToolSpec
from ullage.values.usage import Usage
from ullage.wires.base import list_at

__all__ = [
    "Change",
    "Family",
    "Format",
    "Head",
    "MessageList",
    "ToolSpec",
    "before_last",
    "family_of",
]


class Head(Struct, frozen=True):
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


Change: TypeAlias = tuple[int, int, str]
"""A leaf of a message by part and item index, and the text to show there."""


class Format(Protocol):
    """One wire format. Every method is pure; raw values are dicts or SDK objects.

    Attributes:
        name: what it is called.
        wire: the name of the one of ours whose requests, replies and rules it has.
        key: the field of the request that holds the history.
    """

    name: str
    wire: str
    key: str

    def __hash__(self) -> int:
        """By identity: what is made of a format is remembered for it."""

    def history(self, request: Mapping[str, Any]) -> list[Any]:
        """The raw messages, the caller's own list where there is one. Raises FormatError."""

    def tools(self, request: Mapping[str, Any]) -> Sequence[Any]:
        """The tool definitions of the request, each in the form that `tool` gives."""

    def takes_tools(self, request: Mapping[str, Any], model: str) -> bool:
        """Whether functions may be added to the tools of this request, for this model."""

    def compose(
        self, request: Mapping[str, Any], messages: list[Any], tools: Sequence[dict[str, Any]]
    ) -> dict[str, Any]:
        """A new top-level request with these messages, and these tools after its own."""

    def head(self, request: Mapping[str, Any]) -> Head:
        """What stands outside the messages. Raises FormatError."""

    def media_detail(self, request: Mapping[str, Any]) -> str:
        """How finely the request has media looked at, where a block does not say."""

    def leading(self, request: Mapping[str, Any]) -> list[Any]:
        """The leading raw messages that are system text. Raises FormatError."""

    def parse(self, raw: Any, where: str) -> Message:
        """One message. Raises FormatError naming the path below ``where``."""

    def edit(
        self, raw: Any, message: Message, changes: Sequence[Change], *, silent: bool = False
    ) -> dict[str, Any]:
        """A fresh message: ``raw`` with other texts in some places, all else as it was.

        ``silent`` leaves its reasoning out.

        Raises:
            UnsupportedPart: no text may stand where a change wants one: it is reasoning, or a
                part that stands as it came or not at all.
            FormatError: the arguments of a call are to be a text that the wire has no form for.
        """

    def apart(self, raw: Any) -> Any:
        """A message of results to stand without its call, which an account stands for."""

    def family(self, model: str) -> str:
        """The name of the family whose rules of reasoning hold for a model."""

    def reasoning(self, request: Mapping[str, Any], model: str) -> ReasoningRule:
        """What an edit means for the reasoning behind it, with this model and request."""

    def thinks_first(self, request: Mapping[str, Any]) -> bool:
        """Whether an open turn must begin with thinking (A14)."""

    def user(self, text: str) -> dict[str, Any]:
        """A user message."""

    def wrap_up(self, request: Mapping[str, Any], text: str) -> dict[str, Any]:
        """The request with one more user message, and the model told to call no tools."""

    def tool(self, spec: ToolSpec) -> dict[str, Any]:
        """A tool definition."""

    def tool_name(self, raw: Any) -> str:
        """The name in a tool definition, ``""`` where it has none."""

    def call(self, raw: Any) -> ToolCall:
        """A tool call as it stands in a reply. Raises FormatError."""

    def result(
        self, call: ToolCall, text: str, *, is_error: bool = False, block: Any = None
    ) -> dict[str, Any]:
        """The wire result of a call, ready to append.

        ``block`` is a content block that was set aside. Where results can hold it, it is
        given back as what it was; elsewhere as JSON text.
        """

    def results(self, results: Sequence[Any]) -> list[Any]:
        """The raw messages that carry these wire results, ready to append to the history."""

    def reply(self, reply: Any) -> list[Any]:
        """The raw messages a reply consists of, ready to append; none if it says nothing."""

    def calls(self, raw: Any) -> list[Any]:
        """The tool calls in a raw message of the model, each as `call` takes it."""

    def usage(self, reply: Any) -> Usage | None:
        """What a reply reports, or None if it reports nothing."""

    def usage_of_stream(self, events: Iterable[Any]) -> Usage | None:
        """What the events of one streamed reply report, or None if they report nothing."""


class Family(Struct, frozen=True, gc=False):
    """Models of one format whose reasoning is bound in one way (`provider-rules` §0.1).

    Attributes:
        name: of the family.
        models: a regular expression that is looked for in the model's name.
        rule: what an edit means for the reasoning behind it.
        manual_rule: the same with manual thinking.
    """

    name: str
    models: str
    rule: ReasoningRule = "free"
    manual_rule: ReasoningRule = "free"


def family_of(families: Sequence[Family], model: str) -> Family:
    """The first family that a model's name fits; the last one takes every model."""
    name = plain_name(model)
    return next(family for family in families if re.search(family.models, name) is not None)


class MessageList:
    """What the formats share whose history is a list under one key, and tools another.

    A format inherits it for these methods and nothing else.

    Attributes:
        families: of its models, tried in order; the last one takes every model.
    """

    name: str
    wire: str
    key = "messages"
    families: Sequence[Family] = ()

    def history(self, request: Mapping[str, Any]) -> list[Any]:
        """See `Format.history`."""
        messages = request.get(self.key)
        if isinstance(messages, list):
            return messages
        raise FormatError(
            self.key,
            f"expected a list, got {type(messages).__name__}",
            f"Give the whole history under {self.key!r}.",
        )

    def tools(self, request: Mapping[str, Any]) -> Sequence[Any]:
        """See `Format.tools`."""
        return list_at(request.get("tools"), "tools")

    def media_detail(self, request: Mapping[str, Any]) -> str:
        """See `Format.media_detail`: only the blocks say it here."""
        return ""

    def takes_tools(self, request: Mapping[str, Any], model: str) -> bool:
        """See `Format.takes_tools`."""
        return True

    def family(self, model: str) -> str:
        """See `Format.family`."""
        return family_of(self.families, model).name

    def reasoning(self, request: Mapping[str, Any], model: str) -> ReasoningRule:
        """See `Format.reasoning`: as the model's family has it."""
        return family_of(self.families, model).rule

    def thinks_first(self, request: Mapping[str, Any]) -> bool:
        """See `Format.thinks_first`."""
        return False

    def apart(self, raw: Any) -> Any:
        """See `Format.apart`. A result follows its call at once here, and goes where it goes."""
        return raw

    def compose(
        self, request: Mapping[str, Any], messages: list[Any], tools: Sequence[dict[str, Any]]
    ) -> dict[str, Any]:
        """See `Format.compose`."""
        new = {**request, self.key: messages}
        if tools:
            new["tools"] = [*(request.get("tools") or ()), *tools]
        return new

    def results(self, results: Sequence[Any]) -> list[Any]:
        """See `Format.results`: each result is a message of its own."""
        return list(results)

    def usage(self, reply: Any) -> Usage | None:
        """See `Format.usage`."""
        raise NotImplementedError

    def usage_of_stream(self, events: Iterable[Any]) -> Usage | None:
        """See `Format.usage_of_stream`: the last event that reports anything counts."""
        found = [usage for event in events if (usage := self.usage(event)) is not None]
        return found[-1] if found else None


def before_last(
    messages: Sequence[Any], message: Any, stays_last: Callable[[Any], bool]
) -> list[Any]:
    """The messages with one more at their end, but before those that must be the last."""
    at = len(messages)
    while at and stays_last(messages[at - 1]):
        at -= 1
    return [*messages[:at], message, *messages[at:]]
