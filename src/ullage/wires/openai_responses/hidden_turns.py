"""OpenAI Responses: items, their output indexes, and a numbered event for each thing.

``response.completed`` repeats the whole output and is written again. Its id is that of the first
round, as in ``response.created``. What the provider holds behind it is under the id of the last:
`ullage.doors.hidden_turns.restore_hidden_turns` puts that one in where
``previous_response_id`` names the first.

A response also repeats the tools of its request; the private ones are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ullage.wires.hidden_turns.dialect import Dialect, Stream, object_at
from ullage.wires.hidden_turns.pieces import summed

_ENDINGS = ("response.completed", "response.incomplete", "response.failed")
_BEGINNINGS = ("response.created", "response.in_progress", "response.queued")


class ResponsesDialect(Dialect):
    """The Responses format."""

    added = ("output_tokens", "output_tokens_details")
    total = "total_tokens"

    def is_single(self, request: Mapping[str, Any]) -> bool:
        """See `Dialect.is_single`: what is made in the background is fetched as it was made."""
        return not request.get("background")

    def is_held(self, request: Mapping[str, Any]) -> bool:
        """See `Dialect.is_held`."""
        return request.get("store") is not False

    def going_on_from(
        self,
        request: Mapping[str, Any],
        reply_id: str,
    ) -> dict[str, Any]:
        """See `Dialect.going_on_from`."""
        return {**request, "previous_response_id": reply_id}

    def stop_of(self, reply: Mapping[str, Any]) -> str:
        """See `Dialect.stop_of`: the status."""
        return str(reply.get("status") or "")

    def shown(self, message: Any) -> Any:
        """See `Dialect.shown`: an item is a call, or none."""
        if self.hides(message):
            return None
        return message

    def untold(self, message: Any) -> Any:
        """See `Dialect.untold`."""
        if _is_message(message):
            return None
        return message

    def hides(self, item: Any) -> bool:
        """Whether an item is a private call."""
        if (
            not isinstance(item, Mapping)
            or item.get("type") != "function_call"
        ):
            return False
        return self.owns(item)

    def plain(self, reply: dict[str, Any]) -> dict[str, Any]:
        """See `Dialect.plain`."""
        return self.public(reply)

    def joined(
        self,
        replies: Sequence[Mapping[str, Any]],
        messages: Sequence[Any],
        note: str,
    ) -> dict[str, Any]:
        """See `Dialect.joined`."""
        opening = replies[0]
        usages = [reply.get("usage") for reply in replies]
        output = list(messages)
        if note:
            output.append(note_item(opening, note))
        reply = dict(replies[-1])
        for name in ("id", "created_at"):
            if name in opening:
                reply[name] = opening[name]
        reply["output"] = output
        reply["usage"] = summed(usages, self.added, self.total)
        return self.public(reply)

    def public(self, reply: dict[str, Any]) -> dict[str, Any]:
        """A response that names no private tool; itself if it names none."""
        reply = self._without_private(reply)
        choice = reply.get("tool_choice")
        if not isinstance(choice, Mapping):
            return reply
        public_choice = self._without_private(choice)
        if public_choice is choice:
            return reply
        return {**reply, "tool_choice": public_choice}

    def _without_private(self, holder: Any) -> Any:
        """A response, or its choice of tools, without private tools; itself if it has none."""
        tools = holder.get("tools")
        if not isinstance(tools, list):
            return holder
        public_tools = [tool for tool in tools if not self.owns(tool)]
        if public_tools == tools:
            return holder
        return {**holder, "tools": public_tools}

    def kept(self, reply: dict[str, Any]) -> dict[str, Any]:
        """See `Dialect.kept`."""
        public = self.public(reply)
        output = reply.get("output") or []
        public_output = [item for item in output if not self.hides(item)]
        if public_output == output:
            return public
        return {**public, "output": public_output}

    # ── reasoning ────────────────────────────────────────────────────────────────────

    def seals(self, message: Any) -> list[str]:
        """See `Dialect.seals`."""
        seal = _seal(message)
        if seal:
            return [seal]
        return []

    def loose(self, rounds: Sequence[Sequence[Any]]) -> list[str]:
        """See `Dialect.loose`: what was made with a private call, and needs it behind (R3)."""
        seals: list[str] = []
        waiting: list[str] = []
        for items in rounds:
            for item in items:
                seal = _seal(item)
                if seal:
                    waiting.append(seal)
                    continue
                if self.hides(item):
                    seals += waiting
                waiting = []
        return seals + waiting

    def without(
        self, run: Sequence[Any], is_loose: Callable[[str], bool]
    ) -> list[Any]:
        """See `Dialect.without`: nor may what was made with it name itself (R4)."""
        items = []
        is_nameless = False
        for item in run:
            seal = _seal(item)
            if seal:
                is_nameless = is_loose(seal)
                if is_nameless:
                    continue
            elif is_nameless and "id" in item:
                item = {name: item[name] for name in item if name != "id"}
            items.append(item)
        return items


def _is_message(item: Any) -> bool:
    return isinstance(item, Mapping) and item.get("type") == "message"


def _seal(item: Any) -> str:
    """The sealed text of a reasoning item, or its id; ``""`` of any other item."""
    if not isinstance(item, Mapping) or item.get("type") != "reasoning":
        return ""
    return str(item.get("encrypted_content") or item.get("id") or "")


def note_item(reply: Mapping[str, Any], text: str) -> dict[str, Any]:
    """A message of the model's that says a note; its id is made of the reply's."""
    reply_id = str(reply.get("id") or "").removeprefix("resp_")
    part = {
        "type": "output_text",
        "text": text,
        "annotations": [],
        "logprobs": [],
    }
    return {
        "id": f"msg_{reply_id}_limit",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }


# ── the stream ───────────────────────────────────────────────────────────────────────────


class ResponsesStream(Stream):
    """Events of the Responses format."""

    _next = 0
    _number: int | None = None
    _opening: Mapping[str, Any] = {}

    def _clear(self) -> None:
        self._items: dict[int, dict[str, Any]] = {}
        self._at: dict[int, int | None] = {}
        self._ending: dict[str, Any] | None = None

    def feed(self, event: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        """See `Stream.feed`."""
        kind = event.get("type")
        if kind in _BEGINNINGS:
            if not self.is_first:
                return ()
            self._opening = object_at(event, "response")
            return (self._numbered(self._public(event)),)
        if kind in _ENDINGS:
            self._ending = event
            if self.holds:
                return ()
            return (self._numbered(self._public(event)),)
        index = event.get("output_index")
        if not isinstance(index, int):
            return (self._numbered(event),)
        if kind == "response.output_item.added":
            self._start(index, object_at(event, "item"))
        elif kind == "response.output_item.done":
            self._items[index] = object_at(event, "item")
        at = self._at.get(index, index)
        if at is None:
            return ()
        if at != index:
            event = {**event, "output_index": at}
        return (self._numbered(event),)

    def speaks(self, event: Mapping[str, Any]) -> bool:
        """See `Stream.speaks`."""
        is_start = event.get("type") == "response.output_item.added"
        return is_start and _is_message(event.get("item"))

    def _public(self, event: dict[str, Any]) -> dict[str, Any]:
        response = object_at(event, "response")
        public = self.dialect.public(response)
        if public is response:
            return event
        return {**event, "response": public}

    def _start(self, index: int, item: Mapping[str, Any]) -> None:
        """Decide where the client has a new item: None if it does not have it."""
        if self.dialect.hides(item):
            self.hides = True
            self._at[index] = None
        elif self.is_muted and _is_message(item):
            self._at[index] = None
        else:
            self._at[index] = self._next
            self._next += 1

    def _numbered(self, event: dict[str, Any]) -> dict[str, Any]:
        """An event under the client's number for it."""
        number = event.get("sequence_number")
        if not isinstance(number, int):
            return event
        if self._number is None or not self.holds:
            self._number = number
        else:
            self._number += 1
        if self._number == number:
            return event
        return {**event, "sequence_number": self._number}

    def reply(self) -> dict[str, Any] | None:
        """See `Stream.reply`. Some servers leave the output out of the event that ends it."""
        if self._ending is None:
            return None
        response = object_at(self._ending, "response")
        output = response.get("output")
        if not output:
            output = [item for _, item in sorted(self._items.items())]
        return {**response, "output": output}

    def closing(
        self, reply: dict[str, Any], note: str
    ) -> list[dict[str, Any]]:
        """See `Stream.closing`."""
        events = []
        if note:
            events += _note(note_item(self._opening, note), self._next)
        events.append({**(self._ending or {}), "response": reply})
        if self._number is None:
            return events
        numbered = []
        for number, event in enumerate(events, self._number + 1):
            numbered.append({**event, "sequence_number": number})
        return numbered


def _note(item: dict[str, Any], index: int) -> list[dict[str, Any]]:
    """The events of a message.

    Args:
        item: the message, whole, with one part.
        index: where it stands in the output.
    """
    (part,) = item["content"]
    address = {
        "item_id": item["id"],
        "output_index": index,
        "content_index": 0,
    }
    return [
        {
            "type": "response.output_item.added",
            "output_index": index,
            "item": {**item, "status": "in_progress", "content": []},
        },
        {
            "type": "response.content_part.added",
            **address,
            "part": {**part, "text": ""},
        },
        {
            "type": "response.output_text.delta",
            **address,
            "delta": part["text"],
            "logprobs": [],
        },
        {
            "type": "response.output_text.done",
            **address,
            "text": part["text"],
            "logprobs": [],
        },
        {
            "type": "response.content_part.done",
            **address,
            "part": part,
        },
        {
            "type": "response.output_item.done",
            "output_index": index,
            "item": item,
        },
    ]


ResponsesDialect.stream = ResponsesStream
DIALECT = ResponsesDialect
