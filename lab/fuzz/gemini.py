"""Histories as Gemini's generateContent writes them (`provider-rules` §1.D)."""

from __future__ import annotations

import json

from lab.fuzz.steps import Call, Media, Page, Step, opaque


def write(page: Page, steps: list[Step], wanted: frozenset[str]) -> None:
    """Write the steps down. Signed, the first call of every step is; so is a last text.

    Most histories were begun with a model that signs nothing, up to some word of the user.
    """
    began = (0, 1, 1, 2)[page.number // 8 % 4]
    signed = False
    signs = "signed reasoning" in wanted
    signs = signs and any(
        step.user is not None and step.number >= began for step in steps
    )
    for step in steps:
        if step.user is not None:
            page.messages.append(_user(page, step))
            signed = "signed reasoning" in wanted and step.number >= began
        ids = _ids(page, step, wanted)
        if (
            signed == signs
        ):  # what an earlier model was sent is not asked of this one
            page.sent()
        page.messages += _reply(page, step, ids, signed)
        results = [
            _result(page, call, id)
            for id, call in zip(ids, step.calls, strict=True)
        ]
        if results and "interrupted" in step.more:
            body = results[-1]["functionResponse"]
            stopped = {
                **body,
                "response": {"error": "interrupted by the user"},
            }
            results[-1] = {"functionResponse": stopped}
            page.features.add("interrupted")
        if results:
            page.messages.append({"role": "user", "parts": results})
            if "interrupted" in step.more:
                page.messages.append(_spoken("Stop. Do the other."))
    if page.messages[-1]["role"] == "model":
        page.messages.append(_spoken("and now?"))


def _spoken(text: str) -> dict:
    return {"role": "user", "parts": [{"text": text}]}


def _ids(page: Page, step: Step, wanted: frozenset[str]) -> list[dict]:
    if not step.calls:
        return []
    if len(step.calls) > 1:
        page.features.add("parallel calls")
    if "no ids" in wanted:
        page.features.add("no ids")
        return [{}] * len(step.calls)
    reuse = "repeated ids" in wanted
    if reuse and step.number:
        page.features.add("repeated ids")
    return [
        {"id": f"c{n}" if reuse else f"c{step.number}_{n}"}
        for n in range(len(step.calls))
    ]


def _user(page: Page, step: Step) -> dict:
    if step.media is None:
        return _spoken(step.user or "")
    page.features.add("media from the user")
    if step.media.kind != "image":
        page.features.add("document or sound")
    return {"role": "user", "parts": [_blob(step.media), {"text": step.user}]}


def _blob(media: Media) -> dict:
    return {"inlineData": {"mimeType": media.mime, "data": media.data}}


def _reply(
    page: Page, step: Step, ids: list[dict], signed: bool
) -> list[dict]:
    before: list[dict] = []
    parts = _said(page, step)
    if not step.calls and "several messages" in step.more:
        before.append({"role": "model", "parts": parts})
        parts = [{"text": "And so on."}]
        page.features.add("several messages")
    if step.calls and step.said:
        page.features.add("text and call")
    first = len(parts)
    for id, call in zip(ids, step.calls, strict=True):
        parts.append(
            {"functionCall": {**id, "name": call.tool, "args": call.arguments}}
        )
    if signed:
        page.features.add("signed reasoning")
        _sign(page, step, parts, first)
    return [*before, {"role": "model", "parts": parts}]


def _said(page: Page, step: Step) -> list[dict]:
    """What the model thinks, runs at the server and says before it calls anything."""
    parts: list[dict] = []
    if step.thought == "open":
        parts.append({"text": "hm " * 30, "thought": True})
        page.features.add("open reasoning")
    if step.server == "server tool":
        parts.append(
            {
                "executableCode": {
                    "language": "PYTHON",
                    "code": page.name("print # "),
                }
            }
        )
        parts.append(
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}}
        )
        page.features.add("server tool")
    if "unknown part" in step.more:
        parts.append({"futurePart": {"fingerprint": opaque(page, "fut")}})
        page.features.add("unknown part")
    if step.said or not step.calls:
        parts.append({"text": step.said or "done"})
    return parts


def _sign(page: Page, step: Step, parts: list[dict], first: int) -> None:
    """Sign the first call; without calls the last text, or an empty text behind it."""
    if step.calls:
        parts[first] = {
            **parts[first],
            "thoughtSignature": opaque(page, "sig"),
        }
    elif step.number % 2:
        parts.append({"text": "", "thoughtSignature": opaque(page, "end")})
    else:
        parts[-1] = {**parts[-1], "thoughtSignature": opaque(page, "txt")}


def _result(page: Page, call: Call, id: dict) -> dict:
    """A result as clients wrap it: an error, a text, a JSON value, or no wrapper at all."""
    try:
        value = (
            json.loads(call.output) if call.output[:1] == "[" else call.output
        )
    except ValueError:
        value = call.output
    if not call.output:
        page.features.add("empty output")
    response: dict = (
        {"result": call.output},
        {"output": value},
        {"found": value, "more": False},
    )[call.items]
    if call.failed:
        response = {"error": call.output}
        page.features.add("error")
    body: dict = {**id, "name": call.tool, "response": response}
    if call.media is not None:
        body["parts"] = [_blob(call.media)]
        page.features.add("media in a result")
        if call.media.kind != "image":
            page.features.add("document or sound")
    return {"functionResponse": body}
