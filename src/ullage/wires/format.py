"""What a wire format must be able to do, and how those do it that have nothing of their own.

A format turns a provider's request into messages and back. It knows nothing of windows,
policies or stores. What it gives back for an untouched message is the caller's own object.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, TypeAlias

from msgspec import Struct

from ullage.errors import FormatError
from ullage.values.messages import Message, ReasoningRule, Role, Text, ToolCall
from ullage.values.toolset import ToolSpec
from ullage.values.usage import Usage
from ullage.wires.base import (
    MARKERS,
    as_json,
    at_path,
    field,
    get,
    list_at,
    plain,
    schemas_at,
    unexpected,
)
from ullage.wires.block import Block
from ullage.wires.choice import Choice, openai_choice
from ullage.wires.models import ANY_ID, Family, family_of
from ullage.wires.usages import Counts
from ullage.wires.usages import read as read_usage

_PROSE = (None, "text", "text/plain")
"""What an answer is that nobody asked to be anything else."""


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


class Format(ABC):
    """One wire format. Every method is pure; raw values are dicts or SDK objects.

    Attributes:
        name: what it is called.
        wire: the name of the one of ours whose requests, replies and rules it has.
        key: the field of the request that holds the history.
        blocks: the types of its blocks, items and parts, by their names.
        roles: the roles of its messages, and what they are to us.
        leading_roles: those of messages that are system text where they lead the history.
        answer_limits: the fields that limit the answer; the first that is given counts.
        schemas: where the schemas stand that an answer is to have, as `schemas_at` takes them.
        answer_forms: the fields that name what kind of text an answer is to be, as paths.
        parameters: the field of a tool's definition that holds the schema of its arguments.
        usage_field: the field of a reply that holds its usage.
        counts: where that has each count.
        families: of its models, tried in order; the last one takes every model.
        text_type: the type of a block of text that the user says.
        joins_results: whether tool results may stand before text in one message of the user.
    """

    name: str
    wire: str
    key: str = "messages"
    blocks: Mapping[str, Block] = {}
    roles: Mapping[str, Role] = {}
    leading_roles: tuple[str, ...] = ()
    answer_limits: tuple[str, ...] = ()
    schemas: tuple[str, ...] = ()
    answer_forms: tuple[str, ...] = ()
    parameters = "parameters"
    usage_field = "usage"
    counts: Counts | None = None
    families: Sequence[Family] = ()
    text_type = "text"
    joins_results = False

    # ── the request ──────────────────────────────────────────────────────────────────

    def history(self, request: Mapping[str, Any]) -> list[Any]:
        """The raw messages, the caller's own list where there is one. Raises FormatError."""
        messages = request.get(self.key)
        if isinstance(messages, list):
            return messages
        remedy = f"Give the whole history under {self.key!r}."
        raise unexpected(messages, self.key, "a list", remedy)

    def leading(self, request: Mapping[str, Any]) -> list[Any]:
        """The leading raw messages that are system text. Raises FormatError."""
        messages = self.history(request) if self.leading_roles else ()
        return list(takewhile(self._leads, messages))

    def _leads(self, raw: Any) -> bool:
        is_message = field(raw, "type") in (None, "message")
        return is_message and field(raw, "role") in self.leading_roles

    def settings(self, request: Mapping[str, Any]) -> Any:
        """Where the request says how to answer."""
        return request

    def wants_data(self, request: Mapping[str, Any]) -> bool:
        """Whether a program is to read the answer: JSON, or whatever else is no prose."""
        settings = self.settings(request)
        forms = (at_path(settings, path) for path in self.answer_forms)
        return any(form not in _PROSE for form in forms) or bool(schemas_at(settings, self.schemas))

    def system(self, request: Mapping[str, Any]) -> Iterable[tuple[str, str | None]]:
        """Each system text beside the messages behind its path, None for what is no text.

        Raises FormatError.
        """
        return ()

    def previous(self, request: Mapping[str, Any]) -> str:
        """The id of the reply that the request goes on from, where the provider holds what led to
        it; ``""`` where the request holds its own history.
        """
        return ""

    def tools(self, request: Mapping[str, Any]) -> Sequence[Any]:
        """The tool definitions of the request, each in the form that `tool` gives."""
        return list_at(request.get("tools"), "tools")

    def definitions(self, request: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Each tool, and whatever else defines a function, behind its path."""
        for at, tool in enumerate(self.tools(request)):
            yield f"tools[{at}]", tool

    def tool_text(self, tool: Any, where: str) -> str:
        """A definition as JSON text, without its cache marker. Raises FormatError."""
        fields = plain(tool, where)
        return as_json({key: fields[key] for key in fields if key not in MARKERS}, where)

    def takes_tools(self, request: Mapping[str, Any], model: str) -> bool:
        """Whether functions may be added to the tools of this request, for this model."""
        return True

    def choice(self, request: Mapping[str, Any]) -> Choice:
        """Which tools the model may call in its reply to this request."""
        return openai_choice(request.get("tool_choice"))

    def allowing(self, request: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """A request in whose list of tools that may be called these stand too, at its end.

        It is asked of requests alone whose `choice` takes more.
        """
        return request

    def forbids_tools(self, request: Mapping[str, Any]) -> bool:
        """Whether the model may call none of the tools of this request."""
        return self.choice(request).forbids

    def head(self, request: Mapping[str, Any]) -> Head:
        """What stands outside the messages. Raises FormatError."""
        leading = self.leading(request)
        texts = [text for _, text in self.system(request) if text is not None]
        for at, raw in enumerate(leading):
            parts = self.parse(raw, f"{self.key}[{at}]").parts
            texts += [part.text for part in parts if isinstance(part, Text)]
        texts += [self.tool_text(tool, where) for where, tool in self.definitions(request)]
        settings = self.settings(request)
        asked = next((most for name in self.answer_limits if (most := get(settings, name))), None)
        return Head(
            len(leading),
            tuple(texts),
            tuple(self.tool_name(tool) for _, tool in self.definitions(request)),
            asked if isinstance(asked, int) else None,
            request.get("model"),
            schemas_at(settings, self.schemas),
        )

    def media_detail(self, request: Mapping[str, Any]) -> str:
        """How finely the request has media looked at, where a block does not say."""
        return ""

    def compose(
        self, request: Mapping[str, Any], messages: list[Any], tools: Sequence[dict[str, Any]]
    ) -> dict[str, Any]:
        """A new top-level request with these messages, and these tools after its own."""
        new = {**request, self.key: messages}
        if tools:
            new["tools"] = [*(request.get("tools") or ()), *tools]
        return new

    @abstractmethod
    def wrap_up(self, request: Mapping[str, Any], text: str) -> dict[str, Any]:
        """The request with one more user message, and the model told to call no tools."""

    # ── messages ─────────────────────────────────────────────────────────────────────

    @abstractmethod
    def parse(self, raw: Any, where: str) -> Message:
        """One message. Raises FormatError naming the path below ``where``."""

    def role_of(self, said: Any, where: str) -> Role:
        """Who speaks in a message at ``where``. Raises FormatError for a role it has not."""
        role = self.roles.get(said) if isinstance(said, str) else None
        if role is not None:
            return role
        shown = repr(said[:64]) if isinstance(said, str) else f"of type {type(said).__name__}"
        raise FormatError(
            f"{where}.role", f"unknown role {shown}", f"Roles here are {', '.join(self.roles)}."
        )

    @abstractmethod
    def edit(
        self, raw: Any, message: Message, changes: Sequence[Change], *, drop_reasoning: bool = False
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

    def user(self, text: str) -> Any:
        """A user message."""
        return {"role": "user", "content": text}

    def wants_turns(self, model: str) -> bool:
        """Whether user and assistant may have to speak in turn, for a model.

        The vendors' own APIs take several messages of the user in a row (A2, C9). Chat templates
        of many models that others serve refuse them.
        """
        return False

    def together(self, raws: Sequence[Any]) -> Any:
        """One user message that says what several say, in their order.

        Asked only where `wants_turns`; results may stand in the first where ``joins_results``.
        Strings stay a string: some chat templates read nothing else.
        """
        contents = [field(raw, "content") for raw in raws]
        first = dict(plain(raws[0], "message"))
        if all(isinstance(content, str) for content in contents):
            return {**first, "content": "\n\n".join(filter(None, contents))}
        blocks = [block for content in contents for block in self._blocks_of(content)]
        return {**first, "content": blocks}

    def _blocks_of(self, content: Any) -> list[Any]:
        """A content as blocks; of a string one, of an empty one none."""
        if isinstance(content, str):
            return [{"type": self.text_type, "text": content}] if content else []
        return list(content or ())

    # ── reasoning ────────────────────────────────────────────────────────────────────

    def family(self, model: str) -> str:
        """The name of the family whose rules of reasoning hold for a model."""
        return family_of(self.families, model).name

    def reasoning(self, request: Mapping[str, Any], model: str) -> ReasoningRule:
        """What an edit means for the reasoning behind it, with this model and request."""
        return family_of(self.families, model).rule

    def thinks_first(self, request: Mapping[str, Any]) -> bool:
        """Whether an open turn must begin with thinking (A14)."""
        return False

    # ── tools, calls and replies ─────────────────────────────────────────────────────

    def tool(self, spec: ToolSpec) -> dict[str, Any]:
        """A tool definition."""
        described = {"name": spec.name, "description": spec.description}
        return {**described, self.parameters: dict(spec.parameters)}

    def tool_name(self, raw: Any) -> str:
        """The name in a tool definition, ``""`` where it has none."""
        return str(field(raw, "name") or "")

    @abstractmethod
    def call(self, raw: Any) -> ToolCall:
        """A tool call as it stands in a reply. Raises FormatError."""

    @abstractmethod
    def result(
        self, call: ToolCall, text: str, *, is_error: bool = False, block: Any = None
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

    def call_ids(self, model: str) -> re.Pattern[str]:
        """The form that the ids of calls must have, for a model; ``""``: none is named."""
        return ANY_ID

    # ── usage ────────────────────────────────────────────────────────────────────────

    def usage(self, reply: Any) -> Usage | None:
        """What a reply reports, or None if it reports nothing."""
        usage = get(reply, self.usage_field)
        return None if usage is None or self.counts is None else read_usage(usage, self.counts)

    def usage_of_stream(self, events: Iterable[Any]) -> Usage | None:
        """What the events of one streamed reply report, or None (F63, `provider-rules` §4).

        A stream that broke off gives what it had reported by then. Events of other kinds are
        passed over, and a whole reply is a stream of one event.
        """
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
