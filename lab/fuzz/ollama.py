"""Histories as Ollama's own chat writes them."""

from __future__ import annotations

from lab.fuzz.steps import Call, Page, Step


def write(page: Page, steps: list[Step], wanted: frozenset[str]) -> None:
    """Write the steps down, with ids or without, and results that name their tool or do not."""
    for step in steps:
        if step.user is not None:
            page.messages.append(_user(page, step))
        if "note" in step.more:
            page.messages.append(
                {"role": "system", "content": "Be brief from now on."}
            )
            page.features.add("note")
        ids = _ids(page, step, wanted)
        page.sent()
        page.messages += _reply(page, step, ids)
        named = _named(page, step, wanted)
        results = [
            _result(page, call, id, is_named=named)
            for id, call in zip(ids, step.calls, strict=True)
        ]
        if results and "interrupted" in step.more:
            results[-1] = {**results[-1], "content": "interrupted by the user"}
            results.append({"role": "user", "content": "Stop. Do the other."})
            page.features.add("interrupted")
        page.messages += results


def _user(page: Page, step: Step) -> dict:
    message: dict = {"role": "user", "content": step.user}
    if step.media is None or step.media.kind != "image":
        return message
    page.features.add("media from the user")
    return {**message, "images": [step.media.data]}


def _ids(page: Page, step: Step, wanted: frozenset[str]) -> list[str]:
    if not step.calls:
        return []
    if "no ids" in wanted:
        page.features.add("no ids")
        return [""] * len(step.calls)
    reuse = "repeated ids" in wanted
    if reuse and step.number:
        page.features.add("repeated ids")
    return [
        f"call_{n}" if reuse else f"call_{step.number}_{n}"
        for n in range(len(step.calls))
    ]


def _named(page: Page, step: Step, wanted: frozenset[str]) -> bool:
    """Whether the results say anything of their call: those of older clients do not."""
    if not step.calls or "no names" not in wanted:
        return True
    page.features.add("no names")
    return False


def _reply(page: Page, step: Step, ids: list[str]) -> list[dict]:
    messages = []
    said = step.said or ("" if step.calls else "done")
    if "several messages" in step.more and said:
        messages.append({"role": "assistant", "content": said})
        said = "" if step.calls else "And so on."
        page.features.add("several messages")
    message: dict = {"role": "assistant", "content": said}
    if step.thought == "open":
        message["thinking"] = "hm " * 30
        page.features.add("open reasoning")
    if step.calls:
        message["tool_calls"] = [
            _call(call, id) for id, call in zip(ids, step.calls, strict=True)
        ]
        if step.said:
            page.features.add("text and call")
        if len(step.calls) > 1:
            page.features.add("parallel calls")
    return [*messages, message]


def _call(call: Call, id: str) -> dict:
    body = {"function": {"name": call.tool, "arguments": call.arguments}}
    return {"id": id, **body} if id else body


def _result(page: Page, call: Call, id: str, *, is_named: bool) -> dict:
    if not call.output:
        page.features.add("empty output")
    message: dict = {"role": "tool", "content": call.output}
    if is_named:
        message["tool_name"] = call.tool
        message |= {"tool_call_id": id} if id else {}
    if call.media is not None and call.media.kind == "image":
        page.features.add("media in a result")
        message["images"] = [call.media.data]
    return message
