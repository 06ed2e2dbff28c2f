"""The proof of a format: every promise of `ullage.wires.Format` that needs no provider.

It serves a format of one's own and a `Host` for a framework's messages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from functools import partial
from typing import Any

from ullage import Host, ToolSpec, Usage
from ullage.core.contract.format import Format
from ullage.core.errors import FormatError, UnsupportedPart
from ullage.doors.host import RECALL_TOOLS, Message, Text, ToolCall, ToolResult
from ullage.testing._samples import expect, fails_with

__all__ = ["FormatContract"]

NEW = "what is shown in its place"
_NONSENSE: tuple[Any, ...] = (None, 7, object(), {"role": 3})


class FormatContract:
    """The promises of `ullage.wires.Format`, as tests to inherit.

    Give a format, or a `Host`, and some of its requests:

        class TestMine(FormatContract):
            format = MINE
            requests = [{"model": "…", "messages": [...]}]

    Attributes:
        format: the format.
        requests: legal requests of it. Between them they should have every kind of message.
    """

    format: Any
    requests: Iterable[Mapping[str, Any]] = ()

    def _messages(self) -> list[tuple[Any, Message]]:
        format: Format = self.format
        return [
            (raw, format.parse(raw, "message"))
            for request in self.requests
            for raw in format.history(request)
        ]

    def test_there_is_something_to_prove_it_with(self) -> None:
        """Calls and results among it: they are what is cut."""
        parts = [
            part for _, message in self._messages() for part in message.parts
        ]
        for kind in (Text, ToolCall, ToolResult):
            has = any(isinstance(part, kind) for part in parts)
            expect(has, True, f"the requests have a {kind.__name__}")

    def test_reading_changes_nothing_and_gives_the_same_again(self) -> None:
        """What is remembered of a message holds as long as the message does."""
        for raw, message in self._messages():
            original = deepcopy(raw)
            expect(
                self.format.parse(raw, "message"),
                message,
                "read twice, it is the same",
            )
            expect(raw == original, True, "reading does not change a message")

    def test_untouched_messages_are_the_callers_own(self) -> None:
        """The same objects, in a request that is new, with all else as it was."""
        for request in self.requests:
            original = deepcopy(request)
            messages = list(self.format.history(request))
            view = self.format.compose(request, messages, ())
            composed = list(self.format.history(view))
            same = all(
                shown_message is message
                for shown_message, message in zip(
                    composed, messages, strict=True
                )
            )
            expect(same, True, "an untouched message is the same object")
            expect(view is request, False, "the request is a new one")
            expect(request == original, True, "the given one is not changed")
            expect(set(view) >= set(request), True, "no setting is lost")

    def test_every_leaf_of_text_can_be_shown_otherwise(self) -> None:
        """Or it is refused with `UnsupportedPart`, as what is signed.

        Nothing but it changes: not the original, not its neighbours.
        """
        for raw, message in self._messages():
            for number, part in enumerate(message.parts):
                for item in _leaves(part):
                    self._check_edit(raw, message, (number, item))

    def _check_edit(
        self, raw: Any, message: Message, leaf: tuple[int, int]
    ) -> None:
        original = deepcopy(raw)
        number, item = leaf
        text = (
            '{"note":"new"}'
            if isinstance(message.parts[number], ToolCall)
            else NEW
        )
        try:
            fresh = self.format.edit(raw, message, ((number, item, text),))
        except UnsupportedPart:
            fresh = None
        expect(raw == original, True, "an edit does not change the original")
        if fresh is None:
            return
        edited = self.format.parse(fresh, "message")
        expect(
            len(edited.parts), len(message.parts), "an edit keeps every part"
        )
        for at, (part, edited_part) in enumerate(
            zip(message.parts, edited.parts, strict=True)
        ):
            if at != number:
                expect(
                    edited_part, part, "an edit leaves the other parts alone"
                )
        expect(
            _said(edited.parts[number], item),
            text,
            "an edit shows the new text",
        )
        again = self.format.edit(raw, message, ((number, item, text),))
        expect(again == fresh, True, "the same edit gives the same message")

    def test_calls_and_their_results_agree(self) -> None:
        """A result made for a call answers that call, with the text it was given.

        A host's calls and results have the form of its wire, which is proved by itself.
        """
        for raw, message in (
            () if isinstance(self.format, Host) else self._messages()
        ):
            calls = [self.format.call(one) for one in self.format.calls(raw)]
            expect(
                [one.id for one in calls],
                [one.id for one in message.calls],
                "calls",
            )
            for call in calls:
                result = self.format.result(call, NEW)
                (carrier,) = self.format.results([result])
                (answer,) = self.format.parse(carrier, "message").results
                expect(answer.call_id, call.id, "a result answers its call")
                expect(_said(answer, 0), NEW, "a result has its text")

    def test_a_tool_keeps_its_name(self) -> None:
        """By it a call is known as ours, and a clash is seen."""
        for name in RECALL_TOOLS:
            spec = ToolSpec(
                name, "what it does", {"type": "object", "properties": {}}
            )
            tool = self.format.tool(spec)
            expect(self.format.tool_name(tool), name, "a tool has its name")

    def test_a_user_message_says_what_it_was_given(self) -> None:
        """Accounts of what was left out are shown as one."""
        message = self.format.parse(self.format.user(NEW), "message")
        expect(
            (message.role, _said(message.parts[0], 0)),
            ("user", NEW),
            "a user message",
        )

    def test_usage_is_read_or_none(self) -> None:
        """A reply that reports nothing, or nonsense, is no error."""
        for reply in _NONSENSE:
            usage = self.format.usage(reply)
            expect(
                usage is None or isinstance(usage, Usage),
                True,
                "usage is read or None",
            )

    def test_what_is_no_message_is_a_typed_error(self) -> None:
        """A caller sees what is wrong, and where."""
        for raw in _NONSENSE:
            fails_with(
                FormatError,
                partial(self.format.parse, raw, "here"),
                f"{raw!r}",
            )


def _leaves(part: Any) -> list[int]:
    """The items of a part that hold text."""
    if isinstance(part, ToolResult):
        return [
            at
            for at, item in enumerate(part.content)
            if isinstance(item, Text)
        ]
    return [0] if isinstance(part, (Text, ToolCall)) else []


def _said(part: Any, item: int) -> str:
    """The text of a leaf."""
    leaf: Any = part.content[item] if isinstance(part, ToolResult) else part
    if isinstance(leaf, ToolCall):
        return json.dumps(json.loads(leaf.arguments), separators=(",", ":"))
    return str(leaf.text)
