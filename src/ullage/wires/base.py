"""What a wire format must be able to do, and what all of them share.

A format turns a provider's request into messages and back. It knows nothing of windows,
policies or stores. What it gives back for an untouched message is the caller's own object.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from ullage.errors import FormatError
from ullage.history import canon
from ullage.values.messages import Message, Part, Reasoning, ReasoningRule, Text, ToolCall
from ullage.values.toolset import ToolSpec
from ullage.values.usage import Usage
from ullage.wires.families import family_of

__all__ = ["Change", "Format", "Head", "MessageList", "ToolSpec", "field", "plain"]


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
        """

    def apart(self, raw: Any) -> Any:
        """A message of results to stand without its call, which an account stands for."""

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


def plain(value: Any, where: str) -> Mapping[str, Any]:
    """``value`` as a mapping: itself if it is a dict, its fields if it is an SDK object.

    Raises:
        FormatError: it is neither.
    """
    if type(value) is dict or isinstance(value, Mapping):
        return value
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        # As the vendors' own clients write it: a null they were given is a null they send.
        fields: Mapping[str, Any] = dump(mode="json", by_alias=True, exclude_unset=True)
        return fields
    raise FormatError(
        where,
        f"expected an object, got {type(value).__name__}",
        "Give a dict as sent on the wire, or the SDK's own object.",
    )


def field(value: Any, name: str, default: Any = None) -> Any:
    """A field of a dict or of an SDK object."""
    if type(value) is dict or isinstance(value, Mapping):  # the second alone is slow
        return value.get(name, default)
    return getattr(value, name, default)


def reply_id(reply: Any) -> str:
    """The id a provider gave its reply, ``""`` if it has none."""
    found = (field(reply, name) for name in ("id", "responseId", "response_id"))
    return next((name for name in found if isinstance(name, str)), "")


def reasoning_left_out(reply: Any) -> Counter[str]:
    """How many blocks of reasoning the provider says it left out of the prompt, by its reasons.

    Claude and GPT from 6.2 on tell it in ``input_transformations`` (`provider-rules` §0.1, R11);
    what was let through all the same is told there too, and not counted.
    """
    told = field(reply, "input_transformations")
    return Counter(
        reason if isinstance(reason := field(each, "reason"), str) else "no reason given"
        for each in (told if isinstance(told, (list, tuple)) else ())
        if field(each, "type") == "thinking_dropped" or field(each, "action") == "removed"
    )


_CALL_BODIES = ("function", "custom", "functionCall", "function_call")
"""Where a format puts what a call says, if not in the call itself."""


def name_of_call(call: Any) -> str:
    """The tool that a raw call of any format is for; ``""`` if it does not tell."""
    bodies = (field(call, key) for key in _CALL_BODIES)
    body = next((body for body in bodies if body), call)
    name = field(body, "name")
    return name if isinstance(name, str) else ""


class MessageList:
    """What the formats share whose history is a list under one key, and tools another.

    A format inherits it for these methods and nothing else.
    """

    name: str
    wire: str
    key = "messages"

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

    def reasoning(self, request: Mapping[str, Any], model: str) -> ReasoningRule:
        """See `Format.reasoning`: as the model's family has it."""
        return family_of(self.wire, model).rule

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


def before_last(
    messages: Sequence[Any], message: Any, stays_last: Callable[[Any], bool]
) -> list[Any]:
    """The messages with one more at their end, but before those that must be the last."""
    at = len(messages)
    while at and stays_last(messages[at - 1]):
        at -= 1
    return [*messages[:at], message, *messages[at:]]


def as_json(value: Any, where: str) -> str:
    """``value`` as canonical JSON text. Raises FormatError if it is not JSON."""
    try:
        return canon.canonical_json(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise _not_json(where, error) from None


def _not_json(where: str, what: object) -> FormatError:
    return FormatError(where, f"not JSON ({what})", "Give plain JSON values.")


def opaque_json(value: Any, where: str) -> str:
    """What says which block this is: canonical JSON without cache markers and nulls.

    Clients move the first and drop the second. Raises FormatError if it is not JSON.
    """
    return as_json(_without_nulls(unmarked(value)), where)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def ordered(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Parts as a message holds them: reasoning last, empty text left out."""
    said = [part for part in parts if not isinstance(part, Reasoning)]
    kept = [part for part in said if not (isinstance(part, Text) and not part.text)]
    if len(kept) == len(parts):
        return tuple(parts)
    return (*kept, *(part for part in parts if isinstance(part, Reasoning)))


def list_at(value: Any, where: str) -> Sequence[Any]:
    """``value`` if it is a list, nothing if it is None. Raises FormatError if it is neither."""
    if value is None or isinstance(value, (list, tuple)):
        return value or ()
    raise FormatError(
        where, f"expected a list, got {type(value).__name__}", "Give a list, or leave it out."
    )


def text_at(value: Any, where: str) -> str:
    """``value`` if it is a string. Raises FormatError if not."""
    if isinstance(value, str):
        return value
    raise FormatError(
        where, f"expected a string, got {type(value).__name__}", "Give text as a string."
    )


def optional_text_at(value: Any, where: str) -> str:
    """``value`` if it is a string, ``""`` if it is None. Raises FormatError if it is neither."""
    return "" if value is None else text_at(value, where)


def block_at(value: Any, where: str) -> Any:
    """A block as it stands on the wire, in containers of its own, without cache markers.

    What is set aside is written down as JSON, so the place is told of anything that is none.

    Raises:
        FormatError: something in it is not JSON.
    """
    if isinstance(value, Mapping):
        kept = {key: item for key, item in value.items() if key not in _MARKERS}
        if not all(isinstance(key, str) for key in kept):
            raise _not_json(where, "a key that is no string")
        return {key: block_at(item, f"{where}.{key}") for key, item in kept.items()}
    if isinstance(value, (list, tuple)):
        return [block_at(item, f"{where}[{at}]") for at, item in enumerate(value)]
    if value is None or isinstance(value, (str, int, float)):
        return value
    if hasattr(value, "model_dump"):
        return block_at(plain(value, where), where)
    raise _not_json(where, f"a {type(value).__name__}")


def unknown_role(role: Any, where: str, known: Sequence[str]) -> FormatError:
    """The error for a role the format does not have."""
    said = repr(role[:64]) if isinstance(role, str) else f"of type {type(role).__name__}"
    return FormatError(
        f"{where}.role", f"unknown role {said}", f"Roles here are {', '.join(known)}."
    )


_MARKERS = frozenset(("cache_control", "prompt_cache_breakpoint"))


def unmarked(value: Any) -> Any:
    """A copy of a block's containers without cache markers, which have no say in identity."""
    if isinstance(value, Mapping):
        return {key: unmarked(item) for key, item in value.items() if key not in _MARKERS}
    if isinstance(value, (list, tuple)):
        return [unmarked(item) for item in value]
    return unmarked(plain(value, "block")) if hasattr(value, "model_dump") else value
