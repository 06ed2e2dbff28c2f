"""Who wrote a text of a history, and who reads it: rules go by these, never by wire role alone.

What a user says through a tool stands on the wire as that tool's result, and is the user's all the
same. What a program asked for stands there as any other result, and no model ever reads it. Which
kind of part is whose is in the table of each wire (`ullage.wires.block.Block`); whose answers are
the user's is told by the name of the tool, here.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, TypeAlias

from ullage.core.errors import ConfigError

Author: TypeAlias = Literal["user", "system", "model", "tool", "program"]
"""Who wrote it. A program is code that the model had run, and that calls tools by itself."""

Reader: TypeAlias = Literal["model", "program", "client"]
"""Who reads it. What a program reads is none of the model's context, and no tokens of it."""

QUESTION_TOOLS: dict[str, tuple[str, ...]] = {
    "Claude Code": ("AskUserQuestion", "ExitPlanMode"),
    "Codex": ("request_user_input", "request_permissions"),
    "Gemini CLI": ("ask_user", "exit_plan_mode"),
    "Qwen Code": ("ask_user_question", "exit_plan_mode"),
    "opencode": ("question", "plan_exit"),
    "Cline": (
        "ask_followup_question",
        "plan_mode_respond",
        "attempt_completion",
    ),
    "Roo Code": ("ask_followup_question", "attempt_completion"),
    "Copilot": (
        "vscode_askQuestions",
        "ask_questions",
        "ask_user",
        "exit_plan_mode",
    ),
    "Cursor": ("AskQuestion",),
    "Factory": ("AskUser", "ExitSpecMode"),
    "Kiro": ("user_input", "get_user_input"),
    "Manus": ("message_ask_user",),
    "MetaGPT": ("ask_human",),
    "CAMEL": ("ask_human_via_console",),
    "ADK": (
        "adk_request_confirmation",
        "adk_request_input",
        "ask_for_approval",
        "get_user_choice",
        "request_input",
    ),
    "LangChain": ("human", "human_assistance", "human_input", "ask_human"),
    "smolagents": ("user_input",),
    "Agno": ("get_user_input", "ask_user"),
    "Strands": ("handoff_to_user",),
    "AI SDK": ("askForConfirmation", "ask_for_confirmation"),
    "MCP elicitation": (
        "elicit",
        "elicitation",
        "elicitation/create",
        "request_elicitation",
    ),
}
"""The tools by which agents and frameworks ask their user, under the names they have there."""


@lru_cache(maxsize=1_024)
def plain_tool_name(name: str) -> str:
    """A tool's whole name without case and signs: ``AskUser`` and ``ask_user`` are one."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


@lru_cache(maxsize=64)
def answered_by_user(names: tuple[str, ...] = ()) -> frozenset[str]:
    """The plain names of the tools whose results are the user's words.

    Args:
        names: those of one's own, beside `QUESTION_TOOLS`.
    """
    plain_names = {plain_tool_name(name) for name in names}
    for tools in QUESTION_TOOLS.values():
        plain_names.update(plain_tool_name(name) for name in tools)
    return frozenset(plain_names)


KNOWN_USER_TOOLS = answered_by_user()
"""The plain names of `QUESTION_TOOLS`."""


def named_tools(names: Iterable[str]) -> tuple[str, ...]:
    """The names of a setting, each once and in order, so that their order decides nothing.

    Args:
        names: names of tools, as they stand in requests.

    Raises:
        ConfigError: it is one text, or something in it is not a tool's name.
    """
    remedy = 'Give a list of names: ["ask_the_operator"].'
    if isinstance(names, str):
        raise ConfigError("user_tools", "it is one text", remedy)
    listed = tuple(names)
    for name in listed:
        if not isinstance(name, str) or not plain_tool_name(name):
            raise ConfigError(
                "user_tools", f"{name!r:.64} is no tool's name", remedy
            )
    return tuple(sorted({*listed}))
