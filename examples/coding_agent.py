"""A coding agent that knows nothing of ullage. Behind the proxy it stays within its window.

ullage run -- python -m examples.coding_agent "Make the tests pass."
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic


def read_file(path: str) -> str:
    """Read a text file."""
    return Path(path).read_text(encoding="utf-8")


def edit_file(path: str, old: str, new: str) -> str:
    """Replace a text that stands once in a file."""
    text = read_file(path)
    if text.count(old) != 1:
        return f"error: it stands there {text.count(old)} times"
    Path(path).write_text(text.replace(old, new), encoding="utf-8")
    return "done"


def run(command: str) -> str:
    """Run a shell command; gives what it prints, and its exit code."""
    done = subprocess.run(
        command,
        shell=True,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return f"{done.stdout}\nexit code {done.returncode}"


TOOLS: dict[str, Callable[..., str]] = {
    "read_file": read_file,
    "edit_file": edit_file,
    "run": run,
}
STRING = {"type": "string"}
DECLARED: list[Any] = [
    {
        "name": name,
        "description": tool.__doc__,
        "input_schema": {
            "type": "object",
            "properties": {
                key: STRING for key in tool.__annotations__ if key != "return"
            },
            "required": [
                key for key in tool.__annotations__ if key != "return"
            ],
        },
    }
    for name, tool in TOOLS.items()
]


def result_of(call: Any) -> dict[str, Any]:
    """Run a tool for the model; what goes wrong is told to it."""
    try:
        text, failed = TOOLS[call.name](**call.input), False
    except Exception as error:  # noqa: BLE001  (whatever it is, the model is to know)
        text, failed = f"{type(error).__name__}: {error}", True
    return {
        "type": "tool_result",
        "tool_use_id": call.id,
        "content": text,
        "is_error": failed,
    }


def main(task: str, model: str = "claude-sonnet-5") -> str:
    """Work on a task in this folder, with its files and its shell."""
    client = anthropic.Anthropic()
    messages: list[Any] = [{"role": "user", "content": task}]
    while True:
        reply = client.messages.create(
            model=model, max_tokens=8_192, messages=messages, tools=DECLARED
        )
        messages.append({"role": "assistant", "content": reply.content})
        calls = [block for block in reply.content if block.type == "tool_use"]
        if not calls:
            return "".join(
                block.text for block in reply.content if block.type == "text"
            )
        messages.append(
            {"role": "user", "content": [result_of(call) for call in calls]}
        )


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
