"""The agent loops that people write around each vendor's SDK, with its own objects.

    messages = loop(server, session, run)

calls the model until it asks for no tool; ``run(name, arguments)`` gives a tool's text.
``session`` is anything with ``fit``, ``observe``, ``owns`` and ``recall``, or None to go without.
"""

import json

from tests.histories import in_turn
from tests.servers.replies import MODELS
from ullage.wires import FORMATS, ToolSpec

TASK = "Find the fault."
READ = ToolSpec(
    "read_file",
    "Reads a file.",
    {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
    },
)


def user(format, text=TASK):
    """What the user says, as people write it in this format."""
    if format == "gemini":
        return {"role": "user", "parts": [{"text": text}]}
    if format == "bedrock-converse":
        return {"role": "user", "content": [{"text": text}]}
    return {"role": "user", "content": text}


def request(format, messages, tools=(READ,), **more):
    """The keyword arguments of the SDK's call."""
    wire = FORMATS[format]
    defined = [wire.tool(spec) for spec in tools]
    if format == "gemini":
        config = {"max_output_tokens": 500}
        if defined:
            config["tools"] = [{"function_declarations": defined}]
        return {
            "model": MODELS[format],
            "contents": messages,
            "config": config,
            **more,
        }
    if format == "bedrock-converse":
        head = {
            "modelId": MODELS[format],
            "inferenceConfig": {"maxTokens": 500},
        }
        head |= {"toolConfig": {"tools": defined}} if defined else {}
        return {**head, "messages": in_turn(messages), **more}
    head = {"model": MODELS[format], wire.key: messages}
    head |= {"tools": defined} if defined else {}
    head |= {"store": False} if format == "openai-responses" else {}
    head |= {"max_tokens": 500} if format == "anthropic" else {}
    head |= {"options": {"num_predict": 500}} if format == "ollama" else {}
    return {**head, **more}


def said(reply):
    """What a loop appends of a reply: the SDK's own objects, as a list of messages."""
    if isinstance(reply, dict):
        return [reply["output"]["message"]]
    if hasattr(reply, "candidates"):
        return [reply.candidates[0].content]
    if hasattr(reply, "choices"):
        return [reply.choices[0].message]
    if hasattr(reply, "output"):
        return list(reply.output)
    if hasattr(reply, "message"):
        return [reply.message]
    return [{"role": "assistant", "content": reply.content}]


def calls_in(reply):
    """The tool calls of a reply, the SDK's own objects."""
    if isinstance(reply, dict):
        return [
            block
            for block in reply["output"]["message"]["content"]
            if "toolUse" in block
        ]
    if hasattr(reply, "candidates"):
        return [
            part.function_call
            for part in reply.candidates[0].content.parts
            if part.function_call
        ]
    if hasattr(reply, "choices"):
        return reply.choices[0].message.tool_calls or []
    if hasattr(reply, "message"):
        return reply.message.tool_calls or []
    blocks = reply.output if hasattr(reply, "output") else reply.content
    return [
        block
        for block in blocks
        if block.type in ("function_call", "tool_use")
    ]


def gathered(format, results):
    """The results of one batch as messages."""
    match format:
        case "anthropic" | "bedrock-converse":
            return [{"role": "user", "content": results}]
        case "gemini":
            return [{"role": "user", "parts": results}]
    return results


def loop(
    server,
    session,
    run,
    *,
    client=None,
    messages=None,
    tools=(READ,),
    turns=40,
    **more,
):
    """The whole history after the model called nothing more, or after so many turns."""
    format, client = server.format, client or server.client()
    messages = [user(format)] if messages is None else list(messages)
    for _ in range(turns):
        asked = request(format, messages, tools, **more)
        reply = server.ask(client, session.fit(asked) if session else asked)
        if session:
            session.observe(reply)
        messages += said(reply)
        calls = calls_in(reply)
        if not calls:
            break
        messages += gathered(
            format, [_answer(format, session, run, call) for call in calls]
        )
    return messages


def _answer(format, session, run, raw):
    if session and session.owns(raw):
        return session.recall(raw)
    call = FORMATS[format].call(raw)
    return FORMATS[format].result(
        call, run(call.name, json.loads(call.arguments))
    )
