"""A loop of your own on Anthropic Messages: three lines of it are ullage's.

python -m examples.loop_anthropic "What is wrong in app.log?"
"""

from __future__ import annotations

import sys
from typing import Any

import anthropic

import ullage
from examples.files import NAME, PARAMETERS, SAYS, read_file


def main(question: str, model: str = "claude-sonnet-5") -> str:
    """Answer a question with the help of files."""
    client = anthropic.Anthropic()
    session = ullage.Session(model)  # ullage
    messages: list[Any] = [{"role": "user", "content": question}]
    tools: list[Any] = [
        {"name": NAME, "description": SAYS, "input_schema": PARAMETERS}
    ]
    while True:
        reply = session.call(  # ullage: fits, calls, observes
            client.messages.create,
            model=model,
            max_tokens=4096,
            messages=messages,
            tools=tools,
        )
        messages.append({"role": "assistant", "content": reply.content})
        calls = [block for block in reply.content if block.type == "tool_use"]
        if not calls:
            return "".join(
                block.text for block in reply.content if block.type == "text"
            )
        results = []
        for call in calls:
            if session.owns(call):  # ullage: a call of a recall tool
                results.append(session.recall(call))
            else:
                text = read_file(str(call.input["path"]))
                results.append(
                    {
                        "type": "tool_result",
                        "tool_use_id": call.id,
                        "content": text,
                    }
                )
        messages.append({"role": "user", "content": results})


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
