"""A loop of your own on OpenAI Responses: three lines of it are ullage's.

python -m examples.loop_responses "What is wrong in app.log?"
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
        reply = session.call(  # ullage: fits, calls, observes
            client.responses.create,
            model=model,
            input=items,
            tools=tools,
            store=False,
        )
        items += [item.model_dump(exclude_none=True) for item in reply.output]
        calls = [item for item in reply.output if item.type == "function_call"]
        if not calls:
            return reply.output_text
        for call in calls:
            if session.owns(call):  # ullage: a call of a recall tool
                items.append(session.recall(call))
            else:
                text = read_file(**json.loads(call.arguments))
                result = {
                    "type": "function_call_output",
                    "call_id": call.call_id,
                    "output": text,
                }
                items.append(result)


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
