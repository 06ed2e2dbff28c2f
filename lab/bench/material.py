"""Histories to measure with, in every wire format: made up, yet of real stuff.

Tool results are cut from this machine's own standard library (source), from made-up logs and
from made-up JSON, so they count and compress as an agent's do. A history depends on its
arguments, the seed and the Python version alone. Every result is a string of its own, and two
histories of one `Material` share them as two requests of one agent do.
"""

from __future__ import annotations

import json
import random
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from lab.bench.stores import json_line, log_line

Format = Literal["openai-chat", "openai-responses", "anthropic", "gemini"]
Message = dict[str, Any]

FORMATS: tuple[Format, ...] = (
    "openai-chat",
    "openai-responses",
    "anthropic",
    "gemini",
)
MODELS: dict[Format, str] = {
    "openai-chat": "gpt-4.1",
    "openai-responses": "gpt-4.1",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-pro",
}
KEYS = {
    "openai-chat": "messages",
    "openai-responses": "input",
    "anthropic": "messages",
    "gemini": "contents",
}
POOL_CHARS = 3_000_000
ARGUMENT_CHARS = 2_000
NOTE = (
    "The cache is read before it is written; I shall look at who calls it.\n"
)


class Material:
    """Where the texts of histories are cut from.

    Attributes:
        source: Python source of the standard library, about three million characters.
        logs: as much of made-up logs.
        rows: as much of JSON, one object a line.
    """

    def __init__(self) -> None:
        rng = random.Random(0)
        self.source = _standard_library()
        self.logs = "\n".join(log_line(rng) for _ in range(POOL_CHARS // 60))
        self.rows = "\n".join(json_line(rng) for _ in range(POOL_CHARS // 60))

    def text(
        self, rng: random.Random, chars: int, *, foreign: bool = False
    ) -> str:
        """About ``chars`` characters of one kind; ``foreign`` mixes in what is not ASCII."""
        pool = rng.choices((self.source, self.logs, self.rows), (6, 3, 1))[0]
        start = rng.randrange(len(pool) - chars)
        text = pool[start : start + chars]
        return "名前は「猫」。" + text[7:] if foreign else text

    def history(
        self,
        format: Format,
        messages: int,
        megabytes: float,
        *,
        tool: str = "read_file",
        foreign: bool = False,
    ) -> list[Message]:
        """A loop of calls and results, a word of the user now and then.

        Args:
            format: the wire format.
            messages: how many messages.
            megabytes: characters of everything said, in millions.
            tool: whose results these are; a read is shown whole up to 40,000 characters, a
                shell up to 6,000.
            foreign: every result holds characters beyond ASCII.
        """
        rng = random.Random(messages)
        write = _WRITERS[format]
        turns = messages // 2
        mean = int(megabytes * 1e6) // turns - 200 - ARGUMENT_CHARS // 8
        said: list[Message] = [
            said_by_user(format, "Find out why the tests fail.")
        ]
        for number in range(turns):
            chars = max(int(mean * rng.uniform(0.3, 1.7)), 20)
            argument = (
                self.source[number : number + ARGUMENT_CHARS]
                if number % 8 == 7
                else "a.py"
            )
            output = self.text(rng, chars, foreign=foreign)
            said += write(f"call_{number}", tool, argument, output)
            if number % 20 == 19 and len(said) < messages - 1:
                said.append(said_by_user(format, f"Go on with part {number}."))
        del said[messages - (messages + len(said)) % 2 :]
        return said


def grown(
    format: Format,
    history: Sequence[Message],
    number: int,
    output: str,
    tool: str = "read_file",
) -> list[Message]:
    """The history with one more call and its result: two new messages."""
    return [*history, *_WRITERS[format](f"new_{number}", tool, "b.py", output)]


def said_by_user(format: Format, text: str) -> Message:
    """A message of the user."""
    if format == "gemini":
        return {"role": "user", "parts": [{"text": text}]}
    return {"role": "user", "content": text}


def request(format: Format, messages: Sequence[Message]) -> dict[str, Any]:
    """A whole request around the messages, as an agent with thirty tools would send it."""
    body: dict[str, Any] = {"model": MODELS[format], "max_tokens": 8_000}
    system = NOTE * 40
    schema = {
        "type": "object",
        "properties": {"path": {"type": "string", "description": NOTE}},
    }
    names = (
        "read_file",
        "bash",
        "grep",
        "web_fetch",
        *(f"tool_{n}" for n in range(26)),
    )
    if format == "anthropic":
        tools = [
            {"name": n, "description": NOTE, "input_schema": schema}
            for n in names
        ]
        return {
            **body,
            "system": system,
            "tools": tools,
            "messages": list(messages),
        }
    functions = [
        {"name": n, "description": NOTE, "parameters": schema} for n in names
    ]
    if format == "gemini":
        return {
            "model": MODELS[format],
            "systemInstruction": {"parts": [{"text": system}]},
            "tools": [{"functionDeclarations": functions}],
            "contents": list(messages),
        }
    if format == "openai-responses":
        tools = [{"type": "function", **function} for function in functions]
        return {
            **body,
            "instructions": system,
            "tools": tools,
            "input": list(messages),
        }
    tools = [
        {"type": "function", "function": function} for function in functions
    ]
    return {
        **body,
        "tools": tools,
        "messages": [{"role": "system", "content": system}, *messages],
    }


def _openai(
    id: str, tool: str, argument: str, output: str
) -> Iterator[Message]:
    function = {"name": tool, "arguments": json.dumps({"path": argument})}
    call = {"id": id, "type": "function", "function": function}
    yield {"role": "assistant", "content": NOTE, "tool_calls": [call]}
    yield {"role": "tool", "tool_call_id": id, "content": output}


def _anthropic(
    id: str, tool: str, argument: str, output: str
) -> Iterator[Message]:
    call = {
        "type": "tool_use",
        "id": id,
        "name": tool,
        "input": {"path": argument},
    }
    yield {
        "role": "assistant",
        "content": [{"type": "text", "text": NOTE}, call],
    }
    result = {"type": "tool_result", "tool_use_id": id, "content": output}
    yield {"role": "user", "content": [result]}


def _responses(
    id: str, tool: str, argument: str, output: str
) -> Iterator[Message]:
    """Two items, so that as many messages hold as much as in the other formats."""
    arguments = json.dumps({"path": argument, "why": NOTE})
    yield {
        "type": "function_call",
        "id": f"fc_{id}",
        "call_id": id,
        "name": tool,
        "arguments": arguments,
        "status": "completed",
    }
    yield {"type": "function_call_output", "call_id": id, "output": output}


def _gemini(
    id: str, tool: str, argument: str, output: str
) -> Iterator[Message]:
    call = {"id": id, "name": tool, "args": {"path": argument}}
    yield {"role": "model", "parts": [{"text": NOTE}, {"functionCall": call}]}
    result = {"id": id, "name": tool, "response": {"output": output}}
    yield {"role": "user", "parts": [{"functionResponse": result}]}


_WRITERS = {
    "openai-chat": _openai,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
}


def _standard_library() -> str:
    """Sources in the order of their names, until there are enough; ASCII only."""
    found, chars = [], 0
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        text = path.read_text("utf-8", "replace")
        if text.isascii():
            found.append(text)
            chars += len(text)
        if chars > POOL_CHARS:
            break
    return "\n".join(found)
