"""Images, PDFs and sounds in tool results: set aside, and given back byte for byte.

Where the results of a format cannot hold one, what comes back says so.
"""

import base64
import io
import json
import re
import struct
import wave
import zlib

import pytest

from lab.returned import problems
from tests import histories
from ullage import Limits, Session
from ullage.core.tokens.media import media_tokens
from ullage.core.values.messages import Media
from ullage.wires import FORMATS

STEPS = 24


def chunk(kind, data):
    return (
        struct.pack(">I", len(data))
        + kind
        + data
        + struct.pack(">I", zlib.crc32(kind + data))
    )


def png():
    """A grey picture of 1000 by 800 pixels."""
    head = struct.pack(">IIBBBBB", 1000, 800, 8, 0, 0, 0, 0)
    rows = b"".join(b"\0" + bytes([n % 256]) * 1000 for n in range(800))
    body = (
        chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )
    return b"\x89PNG\r\n\x1a\n" + body


def pdf():
    """One empty page."""
    objects = (
        b"1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
        b"2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
        b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]>>endobj\n"
    )
    return b"%PDF-1.4\n" + objects + b"trailer<</Root 1 0 R/Size 4>>\n%%EOF\n"


def wav():
    """Forty seconds of silence."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8_000)
        sound.writeframes(bytes(16_000 * 40))
    return file.getvalue()


DATA = {"image": png(), "document": pdf(), "audio": wav()}
MIME = {
    "image": "image/png",
    "document": "application/pdf",
    "audio": "audio/wav",
}
KEYS = {"openai-responses": "input", "gemini": "contents"}
MODELS = {
    "anthropic": "claude-sonnet-4-5",
    "openai-chat": "gpt-4.1",
    "openai-responses": "gpt-5.6",
    "gemini": "gemini-2.5-pro",
}


def block_of(format, kind):
    """A medium as a format has it."""
    data = base64.b64encode(DATA[kind]).decode()
    if format == "anthropic":
        source = {"type": "base64", "media_type": MIME[kind], "data": data}
        return {"type": kind, "source": source}
    if format == "gemini":
        return {"inlineData": {"mimeType": MIME[kind], "data": data}}
    url = f"data:{MIME[kind]};base64,{data}"
    prefix = "input_" if format == "openai-responses" else ""
    return {
        "image": {"type": "input_image", "detail": "auto", "image_url": url}
        if prefix
        else {"type": "image_url", "image_url": {"url": url}},
        "document": {
            "type": "input_file",
            "filename": "a.pdf",
            "file_data": url,
        }
        if prefix
        else {"type": "file", "file": {"filename": "a.pdf", "file_data": url}},
        "audio": {
            "type": "input_audio",
            "input_audio": {"format": "wav", "data": data},
        },
    }[kind]


def step(format, number, block):
    """A call and its result, which is the block alone."""
    id, name = f"call_{number}", "look"
    if format == "anthropic":
        call = {"type": "tool_use", "id": id, "name": name, "input": {}}
        result = {"type": "tool_result", "tool_use_id": id, "content": [block]}
        return [
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ]
    if format == "gemini":
        call = {"functionCall": {"id": id, "name": name, "args": {}}}
        body = {
            "id": id,
            "name": name,
            "response": {"output": "see"},
            "parts": [block],
        }
        answer = {"role": "user", "parts": [{"functionResponse": body}]}
        return [{"role": "model", "parts": [call]}, answer]
    if format == "openai-responses":
        return [
            {
                "type": "function_call",
                "call_id": id,
                "name": name,
                "arguments": "{}",
            },
            {"type": "function_call_output", "call_id": id, "output": [block]},
        ]
    call = {
        "id": id,
        "type": "function",
        "function": {"name": name, "arguments": "{}"},
    }
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id, "content": [block]},
    ]


def recalled(format, kind):
    """The block, the view in which the oldest was set aside, and what comes back of it."""
    block = block_of(format, kind)
    key, model = KEYS.get(format, "messages"), MODELS[format]
    first = {"role": "user", "parts": [{"text": "go"}]}
    history = [
        first if format == "gemini" else {"role": "user", "content": "go"}
    ]
    data = base64.b64encode(DATA[kind]).decode()
    window_tokens = (
        4_000
        + media_tokens(model, Media(kind, MIME[kind], data, 0)) * STEPS // 3
    )
    limits = Limits(window_tokens=window_tokens)
    session = Session(
        model,
        policy=histories.PRUNING,
        limits=limits,
        recall=True,
        format=format,
    )
    for number in range(STEPS):
        history += step(format, number, block)
        view = session.fit({"model": model, key: history, "max_tokens": 1_000})
    assert view[key][2] != history[2]
    (ref,) = re.findall(r'tool_call_id="(\w+)"', text_of(view[key][2]))
    return block, view, session.recall(asking(format, ref))


def text_of(message):
    """All that is said in a message; what Gemini says beside media is a file of text."""
    said = re.findall(r'"text/plain", "data": "([^"]+)"', json.dumps(message))
    texts = [base64.b64decode(data).decode() for data in said]
    return "\n".join([json.dumps(message).replace('\\"', '"'), *texts])


def asking(format, ref):
    arguments = {"tool_call_id": ref}
    name, text = "get_continuation", json.dumps(arguments)
    return {
        "anthropic": {"type": "tool_use", "id": "c", "name": name, "input": arguments},
        "gemini": {"id": "c", "name": name, "args": arguments},
        "openai-responses": {
            "type": "function_call", "call_id": "c", "name": name, "arguments": text
        },
        "openai-chat": {
            "id": "c", "type": "function", "function": {"name": name, "arguments": text}
        },
    }[format]  # fmt: skip


def blocks_in(format, result):
    """The blocks of a recalled result, or its text."""
    if format == "gemini":
        return (
            result["functionResponse"].get("parts")
            or result["functionResponse"]["response"]
        )
    return result["output" if format == "openai-responses" else "content"]


def may_hold(format, kind, result=False):
    """Whether a message of the user's, or the result of a tool, may hold such a medium."""
    user = {"user", "function"}
    rows = (
        row for row in FORMATS[format].blocks.values() if kind in row.media
    )
    return any(
        row.in_result or (not result and user & {*row.roles}) for row in rows
    )


SENT = [
    (format, kind)
    for format in MODELS
    for kind in DATA
    if may_hold(format, kind)
]
HELD = [pair for pair in SENT if may_hold(*pair, result=True)]
NOT_HELD = [pair for pair in SENT if pair not in HELD]


@pytest.mark.parametrize(("format", "kind"), HELD)
def test_what_results_hold_comes_back_byte_for_byte(format, kind):
    block, view, result = recalled(format, kind)
    assert problems(format, view) == []
    assert blocks_in(format, result) == [block]
    assert base64.b64encode(DATA[kind]).decode() in json.dumps(result)


@pytest.mark.parametrize(("format", "kind"), NOT_HELD)
def test_what_results_cannot_hold_is_told_and_not_written_out(format, kind):
    _, _, result = recalled(format, kind)
    said = blocks_in(format, result)
    assert "not shown: a tool result of this format cannot hold" in said
    assert len(said) < 400


def test_a_file_of_googles_comes_back_beside_its_text():
    wire = FORMATS["gemini"]
    call = wire.call({"id": "c", "name": "get_continuation", "args": {}})
    file = {"fileData": {"fileUri": "gs://b/a.png", "mimeType": "image/png"}}
    result = wire.result(call, "[complete]", block=file)
    assert result["functionResponse"]["parts"] == [file]
