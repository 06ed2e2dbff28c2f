"""Which tools the model may call in its next reply: what a request's tool choice says.

anthropic           tool_choice: auto, any, none, or one tool by its name
openai-chat         tool_choice: auto, required, none, one tool, or a list (``allowed_tools``)
openai-responses    the same, each one level higher; a tool of the provider's by its type
gemini              functionCallingConfig: a mode, and a list of names
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from ullage.wires.base import field, name_of_call


class Choice(Struct, frozen=True):
    """The tools that may be called in reply to a request.

    Attributes:
        names: their names; None for every tool of the request.
        is_open: whether the model may also answer in words. A list of tools can be longer then
            without changing what the caller asks for.
    """

    names: frozenset[str] | None = None
    is_open: bool = True

    @property
    def forbids(self) -> bool:
        """Whether no tool may be called."""
        return self.names == frozenset()

    def allows(self, names: Iterable[str]) -> bool:
        """Whether each of these tools may be called."""
        return self.names is None or self.names.issuperset(names)

    @property
    def takes_more(self) -> bool:
        """Whether names may be added to the list of a request."""
        return bool(self.names) and self.is_open


ANY = Choice()
"""Every tool may be called, and none has to be."""
FORCED = Choice(is_open=False)
"""Every tool may be called, and one has to be."""
NONE = Choice(frozenset())
"""No tool may be called."""


def openai_choice(choice: Any) -> Choice:
    """What ``tool_choice`` says on one of OpenAI's wires.

    A list stands under ``allowed_tools`` in Chat Completions, and beside its ``type`` in Responses.
    """
    if choice is None or isinstance(choice, str):
        return {"none": NONE, "required": FORCED}.get(choice or "", ANY)
    if field(choice, "type") != "allowed_tools":
        return Choice(frozenset((name_of_call(choice),)), is_open=False)
    listed = field(choice, "allowed_tools") or choice
    names = frozenset(name_of_call(tool) for tool in field(listed, "tools") or ())
    return Choice(names, is_open=field(listed, "mode") != "required")
