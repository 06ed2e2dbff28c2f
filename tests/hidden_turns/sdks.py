"""Replies as the vendors' own SDKs read them, streamed or not, and as clients send them back."""

import json

import pytest

from ullage.wires import FORMATS

__all__ = ["gathered", "messages"]


def messages(format, reply, events=None):
    """The raw messages that a client appends: of the reply, or of what an SDK makes of a stream."""
    if events is not None:
        return _SENT_BACK[format](gathered(format, events))
    return FORMATS[format].reply(reply)


def gathered(format, events):
    """What the SDK's own accumulator makes of a stream, as JSON."""
    return _GATHERED[format](events)


def _anthropic(events):
    from anthropic.lib.streaming._messages import accumulate_event

    snapshot, buffers = None, {}
    for event in events:
        if event["type"] != "ping":
            snapshot = accumulate_event(
                event=event, current_snapshot=snapshot, json_bufs=buffers
            )
    return snapshot.to_dict(mode="json")


def _chat(events):
    from openai._models import construct_type
    from openai.lib.streaming.chat import ChatCompletionStreamState
    from openai.types.chat import ChatCompletionChunk

    state = ChatCompletionStreamState()
    for event in events:
        state.handle_chunk(
            construct_type(type_=ChatCompletionChunk, value=event)
        )
    return state.current_completion_snapshot.to_dict(mode="json")


def _responses(events):
    from openai import omit
    from openai._models import construct_type
    from openai.lib.streaming.responses._responses import ResponseStreamState
    from openai.types.responses import ResponseStreamEvent

    state = ResponseStreamState(input_tools=omit, text_format=omit)
    numbers = [event["sequence_number"] for event in events]
    assert numbers == [*range(len(events))]
    for event in events:
        told = state.handle_event(
            construct_type(type_=ResponseStreamEvent, value=event)
        )
    return told[-1].response.to_dict(mode="json")


def _gemini(events):
    """The chunks: google-genai leaves it to its chats to put them together."""
    from google.genai.types import GenerateContentResponse

    chunks = [
        GenerateContentResponse.model_validate(event) for event in events
    ]
    return [
        chunk.model_dump(mode="json", by_alias=True, exclude_none=True)
        for chunk in chunks
    ]


def _ollama(events):
    """The lines as the client reads them, put together as its users do it."""
    ollama = pytest.importorskip("ollama", reason="ollama is not installed")
    lines = [
        ollama.ChatResponse(**event).model_dump(mode="json", exclude_none=True)
        for event in events
    ]
    message = {"role": "assistant"}
    for name in ("content", "thinking"):
        text = "".join(line["message"].get(name, "") for line in lines)
        message |= {name: text} if text else {}
    calls = [
        call
        for line in lines
        for call in line["message"].get("tool_calls", ())
    ]
    return {
        **lines[-1],
        "message": message | ({"tool_calls": calls} if calls else {}),
    }


def _converse(events):
    """As people put the events together that boto3 gives; it has nothing that does."""
    blocks, whole = {}, {}
    for event in events:
        ((kind, body),) = event.items()
        if kind == "contentBlockStart":
            call = body["start"]["toolUse"]
            blocks[body["contentBlockIndex"]] = {
                "toolUse": {**call, "input": ""}
            }
        elif kind == "contentBlockDelta":
            _add_delta(blocks, body)
        elif kind in ("messageStop", "metadata"):
            whole |= body
    for block in blocks.values():
        if "toolUse" in block:
            block["toolUse"]["input"] = json.loads(
                block["toolUse"]["input"] or "{}"
            )
    message = {
        "role": "assistant",
        "content": [blocks[at] for at in sorted(blocks)],
    }
    return {"output": {"message": message}, **whole}


def _add_delta(blocks, body):
    at, delta = body["contentBlockIndex"], body["delta"]
    if "toolUse" in delta:
        blocks[at]["toolUse"]["input"] += delta["toolUse"]["input"]
    elif "text" in delta:
        blocks.setdefault(at, {"text": ""})["text"] += delta["text"]
    else:
        empty = {"reasoningContent": {"reasoningText": {}}}
        thought = blocks.setdefault(at, empty)["reasoningContent"][
            "reasoningText"
        ]
        for name, piece in delta["reasoningContent"].items():
            thought[name] = thought.get(name, "") + piece


_GATHERED = {
    "bedrock-converse": _converse,
    "anthropic": _anthropic,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "gemini": _gemini,
    "ollama": _ollama,
}


def _content(chunks):
    """One content of all that the chunks say."""
    candidates = [
        candidate
        for chunk in chunks
        for candidate in chunk.get("candidates", ())
    ]
    parts = [
        part
        for each in candidates
        for part in each.get("content", {}).get("parts", ())
    ]
    said = [part for part in parts if part != {"text": ""}]
    return [{"role": "model", "parts": said}] if said else []


def _of_chat(reply):
    message = dict(reply["choices"][0]["message"])
    for call in message.get("tool_calls") or ():
        call.pop("index", None)
        call["function"].pop("parsed_arguments", None)
    message.pop("parsed", None)
    return [message]


def _of_responses(reply):
    return [
        {k: v for k, v in item.items() if "parsed" not in k}
        for item in reply["output"]
    ]


_SENT_BACK = {
    "anthropic": lambda reply: [
        {"role": "assistant", "content": reply["content"]}
    ],
    "openai-chat": _of_chat,
    "openai-responses": _of_responses,
    "gemini": _content,
    "ollama": lambda reply: [reply["message"]],
    "bedrock-converse": lambda reply: FORMATS["bedrock-converse"].reply(reply),
}
