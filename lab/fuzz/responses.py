"""Histories as OpenAI Responses writes them, item by item (`provider-rules` §1.C)."""

from __future__ import annotations

import json

from lab.fuzz.steps import Call, Media, Page, Step, opaque


def write(page: Page, steps: list[Step], wanted: frozenset[str]) -> None:
    """Write the steps down; what comes late stands before the user or the next reply."""
    owed: list[tuple[int, dict]] = []
    for step in steps:
        page.messages += _due(owed, step.number)
        if step.user is not None or _is_models(page.messages[-1:]):
            page.messages.append(_user(page, step))
        if "note" in step.more:
            page.messages.append(
                {"role": "developer", "content": "Be brief from now on."}
            )
            page.features.add("note")
        page.sent()
        page.messages += _thinking(page, step)
        page.messages += _said(page, step)
        page.messages += _asides(page, step)
        for item, answer, late in _asks(page, step, "repeated ids" in wanted):
            page.messages.append(item)
            if answer:
                owed.append((step.number + late, answer))
        now = _due(owed, step.number)
        if now and "interrupted" in step.more and step.calls:
            now.append({"role": "user", "content": "Stop. Do the other."})
            page.features.add("interrupted")
        page.messages += now
    page.messages += _due(owed, len(steps) + 2)
    if "compaction trigger" in wanted:
        page.messages.append({"type": "compaction_trigger"})
        page.features.add("compaction trigger")


def _due(owed: list[tuple[int, dict]], number: int) -> list[dict]:
    """Take what is to stand here by now."""
    due = [item for at, item in owed if at <= number]
    owed[:] = [(at, item) for at, item in owed if at > number]
    return due


def _is_models(items: list[dict]) -> bool:
    return any(
        item.get("role") == "assistant"
        or item.get("type", "message") not in _CALLERS
        for item in items
    )


_CALLERS = (
    "message",
    "function_call_output",
    "custom_tool_call_output",
    "shell_call_output",
    "computer_call_output",
    "mcp_approval_response",
)


def _user(page: Page, step: Step) -> dict:
    said = step.user or "go on"
    if step.media is None:
        return {"role": "user", "content": said}
    page.features.add("media from the user")
    if step.media.kind != "image":
        page.features.add("document or sound")
    return {
        "role": "user",
        "content": [{"type": "input_text", "text": said}, _part(step.media)],
    }


def _part(media: Media) -> dict:
    url = f"data:{media.mime};base64,{media.data}"
    if media.kind == "image":
        return {"type": "input_image", "image_url": url, "detail": "auto"}
    if media.kind == "document":
        return {"type": "input_file", "file_data": url, "filename": "a.pdf"}
    return {
        "type": "input_audio",
        "input_audio": {"data": media.data, "format": "wav"},
    }


def _thinking(page: Page, step: Step) -> list[dict]:
    if step.thought not in ("signed", "open"):
        return []
    page.features.add(f"{step.thought} reasoning")
    item = {"type": "reasoning", "id": page.name("rs_"), "summary": []}
    if step.thought == "signed":
        return [{**item, "encrypted_content": opaque(page, "enc")}]
    return [
        {**item, "content": [{"type": "reasoning_text", "text": "hm " * 30}]}
    ]


def _said(page: Page, step: Step) -> list[dict]:
    texts = [step.said] if step.said or not step.calls else []
    if texts and "several messages" in step.more:
        texts.append("And so on.")
        page.features.add("several messages")
    if texts and step.calls:
        page.features.add("text and call")
    return [
        {
            "type": "message",
            "role": "assistant",
            "id": page.name("msg_"),
            "status": "completed",
            "content": [
                {
                    "type": "output_text",
                    "text": text or "done",
                    "annotations": [],
                }
            ],
        }
        for text in texts
    ]


def _asides(page: Page, step: Step) -> list[dict]:
    """Items that stand for themselves."""
    items: list[dict] = []
    if step.server == "server tool":
        action = {"type": "search", "query": "x"}
        id = page.name("ws_")
        items.append(
            {
                "type": "web_search_call",
                "id": id,
                "status": "completed",
                "action": action,
            }
        )
        page.features.add("server tool")
    if "compaction" in step.more:
        id = page.name("cmp_")
        items.append(
            {
                "type": "compaction",
                "id": id,
                "encrypted_content": opaque(page, "cmp"),
            }
        )
        page.features.add("compaction")
    if "unknown part" in step.more:
        id = page.name("prog_")
        program = {"type": "program", "id": id, "code": "x = 1"}
        items.append({**program, "fingerprint": opaque(page, "fp")})
        page.features.add("unknown part")
    return items


def _call(page: Page, call: Call, id: str, number: str) -> dict:
    if call.custom:
        page.features.add("custom tool")
        text = call.arguments.get("text", "ls")
        item = {
            "type": "custom_tool_call",
            "id": f"ctc_{number}",
            "name": call.tool,
        }
        return {**item, "call_id": id, "input": text, **_lateness(page, call)}
    item = {
        "type": "function_call",
        "id": f"fc_{number}",
        "call_id": id,
        "name": call.tool,
    }
    arguments = json.dumps(call.arguments)
    return {
        **item,
        "arguments": arguments,
        "status": "completed",
        **_lateness(page, call),
    }


def _lateness(page: Page, call: Call) -> dict:
    if not call.late:
        return {}
    page.features.add("late result" if call.late > 0 else "never answered")
    return {"async": True}


def _output(page: Page, call: Call, id: str) -> dict:
    kind = "custom_tool_call_output" if call.custom else "function_call_output"
    output: object = call.output
    if not call.output:
        page.features.add("empty output")
    elif call.items:
        output = [{"type": "input_text", "text": call.output}] * call.items
    if call.media is not None:
        output = [
            {"type": "input_text", "text": call.output or "see"},
            _part(call.media),
        ]
        page.features.add("media in a result")
        if call.media.kind != "image":
            page.features.add("document or sound")
    return {"type": kind, "call_id": id, "output": output}


def _asks(
    page: Page, step: Step, reuse: bool
) -> list[tuple[dict, dict | None, int]]:
    """What the model asks for in a step, the answer if it gets one, and how late that comes."""
    asked: list[tuple[dict, dict | None, int]] = []
    if len(step.calls) > 1:
        page.features.add("parallel calls")
    for n, call in enumerate(step.calls):
        again = reuse and not call.late
        if again and step.number:
            page.features.add("repeated ids")
        id = f"call_{n}" if again else f"call_{step.number}_{n}"
        item = _call(page, call, id, f"{step.number}_{n}")
        answer = _output(page, call, id) if call.late >= 0 else None
        asked.append((item, answer, max(call.late, 0)))
    if "hosted call" in step.more:
        asked.append(_shell(page) if step.number % 2 else _computer(page))
    kind = next(
        (k for k in ("late approval", "approval") if k in step.more), None
    )
    if kind is not None:
        asked.append(_approval(page, kind))
    return asked


def _shell(page: Page) -> tuple[dict, dict, int]:
    """A command that the caller runs, and what it printed."""
    page.features.add("hosted call")
    call_id, id = page.name("shell_"), page.name("sh_")
    call = {
        "type": "shell_call",
        "id": id,
        "call_id": call_id,
        "action": {"commands": ["ls"]},
    }
    printed = {
        "stdout": "a line of a listing\n" * 60,
        "stderr": "",
        "outcome": {"type": "exit"},
    }
    return (
        call,
        {"type": "shell_call_output", "call_id": call_id, "output": [printed]},
        0,
    )


def _computer(page: Page) -> tuple[dict, dict, int]:
    """An action on a screen, and the screen after it."""
    page.features.add("hosted call")
    call_id, id = page.name("comp_"), page.name("cu_")
    call = {
        "type": "computer_call",
        "id": id,
        "call_id": call_id,
        "action": {"type": "wait"},
    }
    screen = {
        "type": "computer_screenshot",
        "image_url": "data:image/png;base64,iVBORw0KGgo=",
    }
    return (
        call,
        {"type": "computer_call_output", "call_id": call_id, "output": screen},
        0,
    )


def _approval(page: Page, kind: str) -> tuple[dict, dict, int]:
    """A request for approval, and the user's answer: at once, or a step later."""
    page.features.add(kind)
    id = page.name("mcpr_")
    asked = {"type": "mcp_approval_request", "id": id, "server_label": "files"}
    answer = {
        "type": "mcp_approval_response",
        "approval_request_id": id,
        "approve": True,
    }
    late = int(kind == "late approval")
    return (
        {**asked, "name": "delete", "arguments": '{"path": "a"}'},
        answer,
        late,
    )
