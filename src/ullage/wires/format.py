"""How wires do what a format must be able to do (`ullage.core.contract.format`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from ullage.core.contract.choice import Choice
from ullage.core.contract.format import Format, RequestHead
from ullage.core.errors import FormatError
from ullage.core.history.raw import as_json, field, unexpected
from ullage.core.values.messages import ReasoningRule, Role, Text
from ullage.core.values.toolset import ToolSpec
from ullage.core.values.usage import Usage
from ullage.wires.base import (
    MARKERS,
    at_path,
    get,
    list_at,
    plain,
    unmarked,
)
from ullage.wires.block import Block
from ullage.wires.choice import openai_choice
from ullage.wires.models import ANY_ID, Family, family_of
from ullage.wires.schemas import schemas_at
from ullage.wires.usages import Counts
from ullage.wires.usages import read as read_usage

_PROSE = (None, "", "text", "text/plain")
"""What an answer is that nobody asked to be anything else."""


class WireFormat(Format):
    """A format of a provider's API: what most of them have in common is a table here.

    Attributes:
        model_field: the field of the request that names the model.
        blocks: the types of its blocks, items and parts, by their names.
        roles: the roles of its messages, and what they are to us.
        leading_roles: those of messages that are system text where they lead the history.
        answer_limits: the fields that limit the answer, as paths; the first that is given counts.
        schemas: where the schemas stand that an answer is to have, as `schemas_at` takes them.
        answer_forms: the fields that name what kind of text an answer is to be, as paths.
        parameters: the field of a tool's definition that holds the schema of its arguments.
        usage_field: the field of a reply that holds its usage.
        counts: where that has each count.
        families: of its models, tried in order; the last one takes every model.
        text_type: the type of a block of text that the user says.
    """

    model_field = "model"
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

    # ── the request ──────────────────────────────────────────────────────────────────

    def history(self, request: Mapping[str, Any]) -> list[Any]:
        """See `Format.history`."""
        messages = request.get(self.key)
        if isinstance(messages, list):
            return messages
        remedy = f"Give the whole history under {self.key!r}."
        raise unexpected(messages, self.key, "a list", remedy)

    def leading(self, request: Mapping[str, Any]) -> list[Any]:
        """See `Format.leading`."""
        messages = self.history(request) if self.leading_roles else ()
        return list(takewhile(self._leads, messages))

    def _leads(self, raw: Any) -> bool:
        is_message = field(raw, "type") in (None, "message")
        return is_message and field(raw, "role") in self.leading_roles

    def settings(self, request: Mapping[str, Any]) -> Any:
        """Where the request says how to answer."""
        return request

    def wants_data(self, request: Mapping[str, Any]) -> bool:
        """See `Format.wants_data`."""
        settings = self.settings(request)
        for path in self.answer_forms:
            if at_path(settings, path) not in _PROSE:
                return True
        return bool(schemas_at(settings, self.schemas))

    def system(
        self, request: Mapping[str, Any]
    ) -> Iterable[tuple[str, str | None]]:
        """Each system text beside the messages behind its path, None for what is no text.

        Raises FormatError.
        """
        return ()

    def tools(self, request: Mapping[str, Any]) -> Sequence[Any]:
        """See `Format.tools`."""
        return list_at(request.get("tools"), "tools")

    def definitions(
        self, request: Mapping[str, Any]
    ) -> Iterator[tuple[str, Any]]:
        """Each tool, and whatever else defines a function, behind its path."""
        for at, tool in enumerate(self.tools(request)):
            yield f"tools[{at}]", tool

    def tool_text(self, tool: Any, path: str) -> str:
        """See `Format.tool_text`."""
        fields = plain(tool, path)
        definition = {key: fields[key] for key in fields if key not in MARKERS}
        return as_json(definition, path)

    def choice(self, request: Mapping[str, Any]) -> Choice:
        """See `Format.choice`."""
        return openai_choice(request.get("tool_choice"))

    def head(self, request: Mapping[str, Any]) -> RequestHead:
        """See `Format.head`."""
        leading = self.leading(request)
        definitions = list(self.definitions(request))
        texts = [text for _, text in self.system(request) if text is not None]
        for at, raw in enumerate(leading):
            message = self.parse(raw, f"{self.key}[{at}]")
            texts += [
                part.text for part in message.parts if isinstance(part, Text)
            ]
        texts += [self.tool_text(tool, path) for path, tool in definitions]
        settings = self.settings(request)
        return RequestHead(
            leading=len(leading),
            texts=tuple(texts),
            tools=tuple(self.tool_name(tool) for _, tool in definitions),
            asked_output_tokens=self._answer_limit(settings),
            model=request.get(self.model_field),
            schemas=schemas_at(settings, self.schemas),
        )

    def _answer_limit(self, settings: Any) -> int | None:
        """The tokens that the answer may have at most; None where no field limits it."""
        for path in self.answer_limits:
            limit = at_path(settings, path)
            if not limit:
                continue
            return limit if isinstance(limit, int) and limit > 0 else None
        return None

    def compose(
        self,
        request: Mapping[str, Any],
        messages: list[Any],
        tools: Sequence[dict[str, Any]],
    ) -> dict[str, Any]:
        """See `Format.compose`."""
        composed = {**request, self.key: messages}
        if tools:
            own_tools = request.get("tools") or ()
            composed["tools"] = [*own_tools, *tools]
        return composed

    # ── messages ─────────────────────────────────────────────────────────────────────

    def role_of(self, name: Any, path: str) -> Role:
        """The role of the message at ``path``, by its name on the wire.

        Raises:
            FormatError: this format has no such role.
        """
        role = self.roles.get(name) if isinstance(name, str) else None
        if role is not None:
            return role
        quoted = f"of type {type(name).__name__}"
        if isinstance(name, str):
            quoted = repr(name[:64])
        raise FormatError(
            f"{path}.role",
            f"unknown role {quoted}",
            f"Roles here are {', '.join(self.roles)}.",
        )

    def user(self, text: str) -> Any:
        """See `Format.user`."""
        return {"role": "user", "content": text}

    def unmarked(self, raw: Any) -> Any:
        """A copy of a message without what its client marks to have it cached."""
        return unmarked(raw)

    def together(self, raws: Sequence[Any]) -> Any:
        """See `Format.together`. Strings stay a string: some templates read nothing else."""
        contents = [field(raw, "content") for raw in raws]
        joined = dict(plain(raws[0], "message"))
        if all(isinstance(content, str) for content in contents):
            joined["content"] = "\n\n".join(text for text in contents if text)
            return joined
        blocks = []
        for content in contents:
            blocks += self._blocks_of(content)
        joined["content"] = blocks
        return joined

    def _blocks_of(self, content: Any) -> list[Any]:
        """A content as blocks; of a string one, of an empty one none."""
        if not content:
            return []
        if isinstance(content, str):
            return [{"type": self.text_type, "text": content}]
        return list(content)

    # ── reasoning ────────────────────────────────────────────────────────────────────

    def family(self, model: str) -> str:
        """See `Format.family`."""
        return family_of(self.families, model).name

    def reasoning(
        self, request: Mapping[str, Any], model: str
    ) -> ReasoningRule:
        """See `Format.reasoning`."""
        return family_of(self.families, model).rule

    # ── tools, calls and replies ─────────────────────────────────────────────────────

    def tool(self, spec: ToolSpec) -> dict[str, Any]:
        """See `Format.tool`."""
        return {
            "name": spec.name,
            "description": spec.description,
            self.parameters: dict(spec.parameters),
        }

    def tool_name(self, raw: Any) -> str:
        """See `Format.tool_name`."""
        return str(field(raw, "name") or "")

    def call_ids(self, model: str) -> re.Pattern[str]:
        """The form that the ids of calls must have, for a model; ``""`` where none is named."""
        return ANY_ID

    # ── usage ────────────────────────────────────────────────────────────────────────

    def usage(self, reply: Any) -> Usage | None:
        """See `Format.usage`."""
        usage = get(reply, self.usage_field)
        if usage is None or self.counts is None:
            return None
        return read_usage(usage, self.counts)


def before_last(
    messages: Sequence[Any], message: Any, stays_last: Callable[[Any], bool]
) -> list[Any]:
    """The messages with one more at their end, but before those that must be the last."""
    end = len(messages)
    while end and stays_last(messages[end - 1]):
        end -= 1
    return [*messages[:end], message, *messages[end:]]
