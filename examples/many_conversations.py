"""A service with many conversations, on any number of workers: the store holds what was decided.

python -m examples.many_conversations ada "What is wrong in app.log?"
"""

from __future__ import annotations

import json
import sys
from contextlib import closing
from typing import Any

import openai

import ullage
from examples.files import NAME, PARAMETERS, SAYS, read_file
from ullage.stores import SqliteStore

FUNCTION = {"name": NAME, "description": SAYS, "parameters": PARAMETERS}
TOOLS: list[Any] = [{"type": "function", "function": FUNCTION}]


def answer(
    client: openai.OpenAI, store: SqliteStore, user: str, messages: list[Any], model: str
) -> str:
    """One turn of one conversation. The next may be taken by another worker."""
    session = ullage.Session(model, store=store, tenant=user)  # ullage: goes on from the store
    while True:
        reply = session.call(  # ullage: fits, calls, observes
            client.chat.completions.create, model=model, messages=messages, tools=TOOLS
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
                messages.append({"role": "tool", "tool_call_id": call.id, "content": text})


def main(user: str, question: str, model: str = "gpt-5.4") -> str:
    """Answer a question of one of many users."""
    with closing(SqliteStore("kept.db")) as store:  # ullage: one for the whole service
        history = [{"role": "user", "content": question}]
        return answer(openai.OpenAI(), store, user, history, model)


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
