"""A loop of your own on the Gemini API: three lines of it are ullage's.

python -m examples.loop_gemini "What is wrong in app.log?"
"""

from __future__ import annotations

import sys
from typing import Any

from google import genai
from google.genai import types

import ullage
from examples.files import NAME, PARAMETERS, SAYS, read_file


def main(question: str, model: str = "gemini-2.5-pro") -> str:
    """Answer a question with the help of files."""
    client = genai.Client()
    session = ullage.Session(model)  # ullage
    contents: list[Any] = [
        types.Content(role="user", parts=[types.Part(text=question)])
    ]
    declared = types.FunctionDeclaration(
        name=NAME, description=SAYS, parameters_json_schema=PARAMETERS
    )
    tools = [types.Tool(function_declarations=[declared])]
    ours = types.AutomaticFunctionCallingConfig(
        disable=True
    )  # this loop calls the tools
    config = types.GenerateContentConfig(
        tools=list(tools), automatic_function_calling=ours
    )
    while True:
        reply = session.call(  # ullage: fits, calls, observes
            client.models.generate_content,
            model=model,
            contents=contents,
            config=config,
        )
        content = (reply.candidates or [])[0].content
        contents.append(content)
        if not reply.function_calls:
            return reply.text or ""
        parts: list[Any] = []
        for call in reply.function_calls:
            if session.owns(call):  # ullage: a call of a recall tool
                parts.append(session.recall(call))
            else:
                said = {"result": read_file(**(call.args or {}))}
                answer = types.FunctionResponse(
                    id=call.id, name=call.name, response=said
                )
                parts.append(types.Part(function_response=answer))
        contents.append({"role": "user", "parts": parts})


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
