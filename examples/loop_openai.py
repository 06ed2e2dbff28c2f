"""A loop of your own on OpenAI Chat Completions: three lines of it are ullage's.

python -m examples.loop_openai "What is wrong in app.log?"
"""

from __future__ import annotations

import json
import sys
from typing import Any

import openai

import ullage
from examples.files import NAME, PARAMETERS, SAYS, read_file


def main(question: str, model: str = "gpt-5.4") -> str:
    """Answer a question with the help of files."""
    client = openai.OpenAI()
    session = ullage.Session(model)  # ullage
    messages: list[Any] = [{"role": "user", "content": question}]
    function = {"name": NAME, "description": SAYS, "parameters": PARAMETERS}
    tools: list[Any] = [{"type": "function", "function": function}]
    while True:
        reply = session.call(  # ullage: fits, calls, observes
            client.chat.completions.create,
            model=model,
            messages=messages,
            tools=tools,
        )
        message = reply.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return message.content or ""
        for call in message.tool_calls:
            if session.owns(call):  # ullage: a call of a recall tool
                messages.append(session.recall(call))
            elif call.type == "function":
                text = read_file(**json.loads(call.function.arguments))
                messages.append(
                    {"role": "tool", "tool_call_id": call.id, "content": text}
                )


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
