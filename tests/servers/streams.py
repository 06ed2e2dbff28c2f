"""A whole reply as the vendor streams it (`provider-rules` §4.2 to §4.5).

Text and arguments come in two pieces, so that a reader has something to put together.
"""

import copy
import json
from zlib import crc32

from ullage.doors.exchange.amazon import NamedReader


def stream_of(format, body, request):
    """The reply as the events of a stream, as bytes."""
    return b"".join(_STREAMS[format](body, request))


def events_in(raw):
    """The events in the bytes of a stream: server-sent events, lines, or Amazon's frames."""
    if raw[:1] == b"\0":
        return [json.loads(frame.data) for frame in NamedReader().feed(raw)]
    lines = raw.decode().splitlines()
    data = [line[6:] for line in lines if line.startswith("data: ")] or lines
    return [json.loads(each) for each in data if each not in ("", "[DONE]")]


def _named(event):
    """An event with its type on a line of its own."""
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def _bare(event):
    return f"data: {json.dumps(event)}\n\n".encode()


def _halves(text):
    middle = len(text) // 2
    return text[:middle], text[middle:]


# ── Anthropic ────────────────────────────────────────────────────────────────────────────


def _anthropic(body, request):
    usage = body["usage"]
    opened = {
        **body,
        "content": [],
        "stop_reason": None,
        "usage": {**usage, "output_tokens": 1},
    }
    yield _named({"type": "message_start", "message": opened})
    for index, block in enumerate(body["content"]):
        start, deltas = _anthropic_block(block)
        yield _named(
            {
                "type": "content_block_start",
                "index": index,
                "content_block": start,
            }
        )
        yield _named({"type": "ping"})
        for delta in deltas:
            yield _named(
                {"type": "content_block_delta", "index": index, "delta": delta}
            )
        yield _named({"type": "content_block_stop", "index": index})
    told = {"output_tokens": usage["output_tokens"]}
    delta = {
        "stop_reason": body["stop_reason"],
        "stop_sequence": body["stop_sequence"],
    }
    yield _named({"type": "message_delta", "delta": delta, "usage": told})
    yield _named({"type": "message_stop"})


def _anthropic_block(block):
    """How a block begins and what is added to it; any other comes whole."""
    match block["type"]:
        case "text":
            deltas = [
                {"type": "text_delta", "text": half}
                for half in _halves(block["text"])
            ]
            return {**block, "text": ""}, deltas
        case "thinking":
            said = [
                {"type": "thinking_delta", "thinking": t}
                for t in _halves(block["thinking"])
            ]
            signed = {
                "type": "signature_delta",
                "signature": block["signature"],
            }
            return {**block, "thinking": "", "signature": ""}, [*said, signed]
        case "tool_use" | "server_tool_use":
            pieces = ("", *_halves(json.dumps(block["input"])))
            deltas = [
                {"type": "input_json_delta", "partial_json": piece}
                for piece in pieces
            ]
            return {**block, "input": {}}, deltas
    return block, []


# ── OpenAI ───────────────────────────────────────────────────────────────────────────────


def _chat(body, request):
    choice = body["choices"][0]
    message = choice["message"]
    yield _chunk(body, {"role": "assistant", "content": ""})
    for half in _halves(message.get("content") or ""):
        yield _chunk(body, {"content": half})
    for index, call in enumerate(message.get("tool_calls") or ()):
        function = call["function"]
        first = {
            **call,
            "index": index,
            "function": {**function, "arguments": ""},
        }
        yield _chunk(body, {"tool_calls": [first]})
        for half in _halves(function["arguments"]):
            piece = {"index": index, "function": {"arguments": half}}
            yield _chunk(body, {"tool_calls": [piece]})
    yield _chunk(body, {}, choice["finish_reason"])
    if (request.get("stream_options") or {}).get("include_usage"):
        yield _bare(
            {**_chunk_head(body), "choices": [], "usage": body["usage"]}
        )
    yield b"data: [DONE]\n\n"


def _chunk_head(body):
    known = {key: body[key] for key in ("id", "created", "model")}
    return {**known, "object": "chat.completion.chunk"}


def _chunk(body, delta, reason=None):
    choice = {
        "index": 0,
        "delta": delta,
        "logprobs": None,
        "finish_reason": reason,
    }
    return _bare({**_chunk_head(body), "choices": [choice]})


def _responses(body, request):
    for number, event in enumerate(_response_events(body)):
        yield _named({**event, "sequence_number": number})


def _response_events(body):
    begun = {**body, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(body["output"]):
        place = {"output_index": index, "item_id": item.get("id", "")}
        opened, events = _item_events(item)
        yield {
            "type": "response.output_item.added",
            "output_index": index,
            "item": opened,
        }
        for event in events:
            yield {**place, **event}
        yield {
            "type": "response.output_item.done",
            "output_index": index,
            "item": item,
        }
    yield {"type": f"response.{body['status']}", "response": body}


def _item_events(item):
    """How an item begins and what is told before it is done."""
    opened = copy.deepcopy(item)
    if "status" in item:
        opened["status"] = "in_progress"
    match item["type"]:
        case "function_call":
            opened["arguments"] = ""
            kind = "response.function_call_arguments"
            pieces = [
                {"type": f"{kind}.delta", "delta": d}
                for d in _halves(item["arguments"])
            ]
            done = {
                "type": f"{kind}.done",
                "name": item["name"],
                "arguments": item["arguments"],
            }
            return opened, [*pieces, done]
        case "message":
            opened["content"] = []
            return opened, [
                e
                for n, part in enumerate(item["content"])
                for e in _spoken(part, n)
            ]
    return opened, []


def _spoken(part, number):
    place = {"content_index": number}
    empty = {**part, "text": ""}
    yield {**place, "type": "response.content_part.added", "part": empty}
    for half in _halves(part["text"]):
        yield {
            **place,
            "type": "response.output_text.delta",
            "delta": half,
            "logprobs": [],
        }
    done = {
        "type": "response.output_text.done",
        "text": part["text"],
        "logprobs": [],
    }
    yield {**place, **done}
    yield {**place, "type": "response.content_part.done", "part": part}


# ── Gemini ───────────────────────────────────────────────────────────────────────────────


def _gemini(body, request):
    """A chunk for each part; the last one says why it ended."""
    candidate = body["candidates"][0]
    parts = candidate["content"]["parts"]
    for number, part in enumerate(parts):
        said = {"content": {"role": "model", "parts": [part]}, "index": 0}
        if number == len(parts) - 1:
            said["finishReason"] = candidate["finishReason"]
        yield _bare({**body, "candidates": [said]})


# ── Ollama ───────────────────────────────────────────────────────────────────────────────


def _ollama(body, request):
    """Lines: the thought and the text in halves, each call whole, then the counts."""
    message = body["message"]
    for name in ("thinking", "content"):
        for half in _halves(message.get(name) or ""):
            said = (
                {"content": half}
                if name == "content"
                else {"content": "", name: half}
            )
            yield _line(body, said)
    for call in message.get("tool_calls") or ():
        yield _line(body, {"content": "", "tool_calls": [call]})
    yield _as_line({**body, "message": {"role": "assistant", "content": ""}})


def _line(body, said):
    head = {key: body[key] for key in ("model", "created_at")}
    return _as_line(
        {**head, "message": {"role": "assistant", **said}, "done": False}
    )


def _as_line(event):
    return json.dumps(event).encode() + b"\n"


# ── Amazon Bedrock ───────────────────────────────────────────────────────────────────────


def _converse(body, request):
    """A block of text or of reasoning has no event that begins it."""
    message = body["output"]["message"]
    yield framed("messageStart", {"role": message["role"], "p": "abc"})
    for index, block in enumerate(message["content"]):
        start, deltas = _converse_block(block)
        place = {"contentBlockIndex": index}
        if start:
            yield framed("contentBlockStart", {"start": start, **place})
        for delta in deltas:
            yield framed("contentBlockDelta", {"delta": delta, **place})
        yield framed("contentBlockStop", place)
    yield framed("messageStop", {"stopReason": body["stopReason"]})
    yield framed(
        "metadata", {"usage": body["usage"], "metrics": body["metrics"]}
    )


def _converse_block(block):
    if "toolUse" in block:
        start = {key: block["toolUse"][key] for key in ("toolUseId", "name")}
        pieces = ("", *_halves(json.dumps(block["toolUse"]["input"])))
        return {"toolUse": start}, [
            {"toolUse": {"input": piece}} for piece in pieces
        ]
    if "reasoningContent" in block:
        thought = block["reasoningContent"]["reasoningText"]
        said = [
            {"reasoningContent": {"text": half}}
            for half in _halves(thought["text"])
        ]
        return {}, [
            *said,
            {"reasoningContent": {"signature": thought["signature"]}},
        ]
    return {}, [{"text": half} for half in _halves(block["text"])]


def framed(kind, payload, of="event"):
    """An event in one of Amazon's frames: the name of its type is a header."""
    named = {
        f":{of}-type": kind,
        ":content-type": "application/json",
        ":message-type": of,
    }
    headers = b"".join(map(_header, named, named.values()))
    data = json.dumps(payload).encode()
    prelude = (16 + len(headers) + len(data)).to_bytes(4, "big") + len(
        headers
    ).to_bytes(4, "big")
    frame = prelude + crc32(prelude).to_bytes(4, "big") + headers + data
    return frame + crc32(frame).to_bytes(4, "big")


def _header(name, value):
    return (
        bytes([len(name)])
        + name.encode()
        + b"\x07"
        + len(value).to_bytes(2, "big")
        + value.encode()
    )


_STREAMS = {
    "anthropic": _anthropic,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "gemini": _gemini,
    "ollama": _ollama,
    "bedrock-converse": _converse,
}
