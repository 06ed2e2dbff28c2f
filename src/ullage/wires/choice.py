"""Which tools the model may call in its next reply: what a request's tool choice says.

anthropic           tool_choice: auto, any, none, or one tool by its name
openai-chat         tool_choice: auto, required, none, one tool, or a list (``allowed_tools``)
openai-responses    the same, each one level higher; a tool of the provider's by its type
gemini              functionCallingConfig: a mode, and a list of names
ollama              nothing: every tool may be called
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ullage.core.contract.choice import ANY, FORCED, NONE, Choice
from ullage.core.history.raw import field
from ullage.wires.base import name_of_call

_WORDS: Mapping[str, Choice] = {"none": NONE, "required": FORCED}


def openai_choice(choice: Any) -> Choice:
    """What ``tool_choice`` says on one of OpenAI's wires.

    A list stands under ``allowed_tools`` in Chat Completions, and beside its ``type`` in Responses.
    """
    if choice is None:
        return ANY
    if isinstance(choice, str):
        return _WORDS.get(choice, ANY)
    if field(choice, "type") != "allowed_tools":
        return Choice(frozenset((name_of_call(choice),)), is_open=False)
    listed = field(choice, "allowed_tools") or choice
    tools = field(listed, "tools") or ()
    names = frozenset(name_of_call(tool) for tool in tools)
    is_required = field(listed, "mode") == "required"
    return Choice(names, is_open=not is_required)
