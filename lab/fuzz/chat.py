"""Histories as OpenAI Chat Completions writes them (`provider-rules` §1.B)."""

from __future__ import annotations

import json

from lab.fuzz.steps import Call, Page, Step, opaque


def write(page: Page, steps: list[Step], wanted: frozenset[str]) -> None:
    """Write the steps down."""
    reuse = "repeated ids" in wanted
    for step in steps:
        if step.user is not None:
            page.messages.append(_user(page, step))
        if "note" in step.more:
            page.messages.append(
                {"role": "developer", "content": "Be brief from now on."}
            )
            page.features.add("note")
        ids = [
            f"call_{n}" if reuse else f"call_{step.number}_{n}"
            for n in range(len(step.calls))
        ]
        if reuse and step.calls and step.number:
            page.features.add("repeated ids")
        page.sent()
        page.messages += _reply(page, step, ids)
        results = [
            _result(page, call, id)
            for id, call in zip(ids, step.calls, strict=True)
        ]
        if results and "interrupted" in step.more:
            results[-1] = {**results[-1], "content": "interrupted by the user"}
            results.append({"role": "user", "content": "Stop. Do the other."})
            page.features.add("interrupted")
        page.messages += results


def _user(page: Page, step: Step) -> dict:
    if step.media is None:
        return {"role": "user", "content": step.user}
    url = f"data:{step.media.mime};base64,{step.media.data}"
    part = {
        "image": {"type": "image_url", "image_url": {"url": url}},
        "document": {
            "type": "file",
            "file": {"file_data": url, "filename": "a.pdf"},
        },
        "audio": {
            "type": "input_audio",
            "input_audio": {"data": step.media.data, "format": "wav"},
        },
    }[step.media.kind]
    page.features.add("media from the user")
    if step.media.kind != "image":
        page.features.add("document or sound")
    return {
        "role": "user",
        "content": [{"type": "text", "text": step.user}, part],
    }


def _reply(page: Page, step: Step, ids: list[str]) -> list[dict]:
    messages = []
    said = step.said or ("" if step.calls else "done")
    if "several messages" in step.more and said:
        messages.append({"role": "assistant", "content": said})
        said = "" if step.calls else "And so on."
        page.features.add("several messages")
    message: dict = {"role": "assistant", "content": said or None}
    if step.thought == "open":
        message["reasoning_content"] = "hm " * 30
        page.features.add("open reasoning")
    if "unknown part" in step.more and not said:
        message["audio"] = {"id": page.name("audio_")}
        page.features.add("unknown part")
    if step.calls:
        calls = [
            _call(page, call, id)
            for id, call in zip(ids, step.calls, strict=True)
        ]
        if step.thought == "signed":
            extra = {"google": {"thought_signature": opaque(page, "sig")}}
            calls[0]["extra_content"] = extra
            page.features.add("signed reasoning")
        message["tool_calls"] = calls
        if step.said:
            page.features.add("text and call")
        if len(calls) > 1:
            page.features.add("parallel calls")
    return [*messages, message]


def _call(page: Page, call: Call, id: str) -> dict:
    if call.custom:
        page.features.add("custom tool")
        body = {"name": call.tool, "input": call.arguments.get("text", "ls")}
        return {"id": id, "type": "custom", "custom": body}
    body = {"name": call.tool, "arguments": json.dumps(call.arguments)}
    return {"id": id, "type": "function", "function": body}


def _result(page: Page, call: Call, id: str) -> dict:
    content: object = call.output
    if call.items and call.output:
        content = [{"type": "text", "text": call.output}] * call.items
    if not call.output:
        page.features.add("empty output")
    return {"role": "tool", "tool_call_id": id, "content": content}
