"""Histories as Amazon Bedrock Converse writes them (`provider-rules` §1.F).

User and assistant speak in turn, so what the user says behind results stands in their message.
"""

from __future__ import annotations

import json

from lab.fuzz.anthropic import begun_with_thinking, is_manual
from lab.fuzz.steps import TOOLS, Call, Media, Page, Step, opaque

_MOST_POINTS = 3
_POINT = {"cachePoint": {"type": "default"}}
_FORMATS = {"image/png": "png", "application/pdf": "pdf", "audio/wav": "wav"}


def write(page: Page, steps: list[Step], wanted: frozenset[str]) -> None:
    """Write the steps down."""
    points = 0
    if is_manual(wanted):
        steps = [begun_with_thinking(step) for step in steps]
    for step in steps:
        if step.user is not None:
            _say(page, _user(page, step, wanted))
        page.sent()
        ids = [f"tooluse_{step.number}_{n}" for n in range(len(step.calls))]
        page.messages.append(_reply(page, step, ids))
        results = [
            _result(page, call, id)
            for id, call in zip(ids, step.calls, strict=True)
        ]
        if not results:
            continue
        if "interrupted" in step.more:
            results[-1] = _stopped(results[-1])
            results.append({"text": "Stop. Do the other."})
            page.features.add("interrupted")
        if "cache marker" in step.more and points < _MOST_POINTS:
            results.append(_POINT)
            points += 1
            page.features.add("cache marker")
        _say(page, results)


def tools(**choice: dict) -> dict:
    """The configuration of tools; with a choice, as it stands under ``toolChoice``."""
    schema = {"json": {"type": "object", "properties": {}}}
    specs = [
        {"toolSpec": {"name": name, "inputSchema": schema}} for name in TOOLS
    ]
    return {"tools": specs, **({"toolChoice": choice} if choice else {})}


def _say(page: Page, blocks: list[dict]) -> None:
    """Add blocks of the user's, to the message before if that is the user's too (B2)."""
    if page.messages and page.messages[-1]["role"] == "user":
        page.messages[-1]["content"] += blocks
    else:
        page.messages.append({"role": "user", "content": blocks})


def _user(page: Page, step: Step, wanted: frozenset[str]) -> list[dict]:
    blocks = []
    if step.media is not None:
        page.features.add("media from the user")
        if step.media.kind != "image":
            page.features.add("document or sound")
        blocks.append(_medium(page, step.media))
    if "document or sound" in wanted:
        page.features.add("document or sound")
        blocks.append(_document(page))
    return [*blocks, {"text": step.user}]


def _document(page: Page) -> dict:
    """A document of plain text, which is cut where it stands."""
    source = {"text": "a line of a document\n" * 20}
    return {
        "document": {
            "format": "txt",
            "name": page.name("doc"),
            "source": source,
        }
    }


def _medium(page: Page, media: Media) -> dict:
    body: dict = {
        "format": _FORMATS[media.mime],
        "source": {"bytes": media.data},
    }
    if media.kind == "document":
        body["name"] = page.name("doc")
    return {media.kind: body}


def _reply(page: Page, step: Step, ids: list[str]) -> dict:
    blocks = _thinking(page, step)
    if step.said or not step.calls:
        blocks.append({"text": step.said or "done"})
    if "unknown part" in step.more:
        blocks.append({"advisorNote": {"fingerprint": opaque(page, "adv")}})
        page.features.add("unknown part")
    for id, call in zip(ids, step.calls, strict=True):
        body = {"toolUseId": id, "name": call.tool, "input": call.arguments}
        blocks.append({"toolUse": body})
    if step.calls and step.said:
        page.features.add("text and call")
    if len(step.calls) > 1:
        page.features.add("parallel calls")
    return {"role": "assistant", "content": blocks}


def _thinking(page: Page, step: Step) -> list[dict]:
    if step.thought == "signed":
        page.features.add("signed reasoning")
        thought = {"text": "hm " * 30, "signature": opaque(page, "sig")}
        return [{"reasoningContent": {"reasoningText": thought}}]
    if step.thought == "sealed":
        page.features.add("sealed reasoning")
        return [{"reasoningContent": {"redactedContent": opaque(page, "red")}}]
    return []


def _result(page: Page, call: Call, id: str) -> dict:
    content = _content(page, call)
    body: dict = {"toolUseId": id, "content": content}
    if call.failed:
        page.features.add("error")
        body["status"] = "error"
        body["content"] = content or [{"text": "failed"}]
    return {"toolResult": body}


def _content(page: Page, call: Call) -> list[dict]:
    """What a result says: a text, several, JSON, or a text and a picture or document."""
    if not call.output:
        page.features.add("empty output")
        return []
    text = {"text": call.output}
    if call.media is not None:
        page.features.add("media in a result")
        if call.media.kind == "document":
            page.features.add("document or sound")
        return [text, _medium(page, call.media)]
    if call.items == 2 and call.output[0] == "[":
        return [{"json": {"rows": json.loads(call.output)}}]
    return [text] * max(call.items, 1)


def _stopped(result: dict) -> dict:
    """A result that says that its call was interrupted."""
    content = [{"text": "interrupted by the user"}]
    body = {**result["toolResult"], "content": content, "status": "error"}
    return {"toolResult": body}
