"""A loop one would rather not touch, on OpenAI's Responses: one line of it is ullage's.

python -m examples.wrapped_client "What is wrong in app.log?"
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
    client = ullage.wrap(openai.OpenAI())  # ullage: recall is answered inside
    items: list[Any] = [{"role": "user", "content": question}]
    tools: list[Any] = [
        {
            "type": "function",
            "name": NAME,
            "description": SAYS,
            "parameters": PARAMETERS,
        }
    ]
    while True:
        reply = client.responses.create(model=model, input=items, tools=tools)
        items += [item.model_dump(exclude_none=True) for item in reply.output]
        calls = [item for item in reply.output if item.type == "function_call"]
        if not calls:
            return reply.output_text
        for call in calls:
            text = read_file(**json.loads(call.arguments))
            items.append(
                {
                    "type": "function_call_output",
                    "call_id": call.call_id,
                    "output": text,
                }
            )


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
