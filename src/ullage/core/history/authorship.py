"""Who wrote the parts of a history, and who reads them.

A wire tells the author of most parts. A result has two answers more, which its call gives: what a
tool says that asks the user is the user's, and what a program called for is read by the program.
"""

from __future__ import annotations

from ullage.core.history.pairing import Pairing
from ullage.core.values.authors import Author, Reader, plain_tool_name
from ullage.core.values.messages import (
    Message,
    Opaque,
    Part,
    Passage,
    Role,
    Text,
    ToolCall,
    ToolResult,
)

_SPEAKERS: dict[Role, Author] = {
    "user": "user",
    "system": "system",
    "assistant": "model",
}


class Authorship:
    """The part of a `ullage.core.history.transcript.Transcript` that knows people and programs.

    Attributes:
        messages: the parsed messages.
        user_tools: the tools whose results are the user's words, by their plain names.
    """

    messages: list[Message]
    user_tools: frozenset[str]
    _pairs: Pairing
    # by message: the parts that a program reads, and the results that are the user's words
    _programs: dict[int, set[int]]
    _answers: dict[int, set[int]]

    def call_for(self, index: int, number: int) -> ToolCall | None:
        """The call that the result at (message, part) belongs to."""
        call = self._pairs.of((index, number))
        if call is None:
            return None
        part = self.messages[call[0]].parts[call[1]]
        return part if isinstance(part, ToolCall) else None

    def call_index(self, index: int, number: int) -> int | None:
        """The message of the call that the result at (message, part) belongs to."""
        if self.call_for(index, number) is None:
            return None
        call = self._pairs.of((index, number))
        return call[0] if call else None

    def author(self, index: int, number: int) -> Author:
        """Who wrote a part: as its wire's table says, or the name of a tool that asks the user."""
        message = self.messages[index]
        part = message.parts[number]
        if isinstance(part, ToolResult):
            is_answer = number in self._answers.get(index, ())
            return "user" if is_answer else part.author
        if isinstance(part, ToolCall):
            return part.author
        if isinstance(part, Opaque) and part.author is not None:
            return part.author
        return _SPEAKERS.get(message.role, "tool")

    def reader(self, index: int, number: int) -> Reader:
        """Who reads a part. Whoever made a call reads its result."""
        return (
            "program" if number in self._programs.get(index, ()) else "model"
        )

    def has_program(self, index: int) -> bool:
        """Whether a program reads something in a message."""
        return index in self._programs

    def may_shorten(self, index: int, number: int) -> bool:
        """Whether a part is a tool's result for the model: neither the user's nor a program's."""
        if not isinstance(self.messages[index].parts[number], ToolResult):
            return False
        if self.author(index, number) == "user":
            return False
        return self.reader(index, number) == "model"

    def user_words(self, index: int, number: int) -> str:
        """The words of the user in a part; ``""`` where it holds none."""
        message = self.messages[index]
        part = message.parts[number]
        if isinstance(part, Passage):
            return ""  # the user hands it over: others wrote it
        if isinstance(part, Text):
            is_said = message.role == "user" and part.text.strip()
            return part.text if is_said else ""
        if isinstance(part, Opaque):
            return part.words
        if (
            not isinstance(part, ToolResult)
            or self.author(index, number) != "user"
        ):
            return ""
        texts = [item.text for item in part.content if isinstance(item, Text)]
        return "\n".join(text for text in texts if text.strip())

    def _has_user_words(self, index: int) -> bool:
        numbers = range(len(self.messages[index].parts))
        return any(self.user_words(index, number) for number in numbers)

    def _note_people(self, index: int) -> None:
        """Note which parts of a message a program reads, and which results the user wrote."""
        programs = set[int]()
        answers = set[int]()
        for number, part in enumerate(self.messages[index].parts):
            if isinstance(part, ToolResult) and self._is_answer(
                index, number, part
            ):
                answers.add(number)
            if self._is_for_program(index, number, part):
                programs.add(number)
        for table, numbers in (
            (self._programs, programs),
            (self._answers, answers),
        ):
            table.pop(index, None)
            if numbers:
                table[index] = numbers

    def _is_for_program(self, index: int, number: int, part: Part) -> bool:
        """Whether a program reads a part: it made this call, or the call of this result."""
        if isinstance(part, ToolCall):
            return part.author == "program"
        if isinstance(part, Opaque):
            return part.reader == "program"
        if not isinstance(part, ToolResult):
            return False
        call = self._pairs.of((index, number))
        if part.reader == "program":
            return True
        return call is not None and self.reader(*call) == "program"

    def _is_answer(self, index: int, number: int, result: ToolResult) -> bool:
        """Whether the user wrote a result: its wire says so, or its tool is one that asks."""
        if result.author == "user":
            return True
        call = self.call_for(index, number)
        name = result.name if call is None else call.name
        return plain_tool_name(name) in self.user_tools
