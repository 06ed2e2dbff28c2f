"""A program that knows nothing of ullage; behind the proxy it stays within its window.

ullage run -- python -m examples.without_ullage "What is wrong in app.log?"
"""

from __future__ import annotations

import json
import sys
from typing import Any

import openai

from examples.files import NAME, PARAMETERS, SAYS, read_file


def main(question: str, model: str = "gpt-5.4") -> str:
    """Answer a question with the help of files."""
    client = openai.OpenAI()
    messages: list[Any] = [{"role": "user", "content": question}]
    function = {"name": NAME, "description": SAYS, "parameters": PARAMETERS}
    tools: list[Any] = [{"type": "function", "function": function}]
    while True:
        reply = client.chat.completions.create(model=model, messages=messages, tools=tools)
        message = reply.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return message.content or ""
        for call in message.tool_calls:
            if call.type == "function":
                text = read_file(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": text})


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
