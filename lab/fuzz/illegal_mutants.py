"""One way to break each rule: the judge must name it, and a judge without it must not.

An illegal mutant is a legal request of a format and a change that makes it illegal. The request
is the smallest that holds the rule's subject.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from lab.fuzz import converse

Request: TypeAlias = dict[str, Any]
IllegalMutant: TypeAlias = tuple[str, str, Callable[[Request], None]]
"""Format, rule, and what breaks it, in place."""

_CHAT_CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "run", "arguments": "{}"},
}
_OLLAMA_CALL = {"function": {"name": "run", "arguments": {}}}


def _converse_document() -> Request:
    return {
        "document": {
            "format": "txt",
            "name": "a",
            "source": {"text": "a text"},
        }
    }


def _converse_point() -> Request:
    return {"cachePoint": {"type": "default"}}


def _converse_thought() -> Request:
    thought = {"text": "hm", "signature": "s"}
    return {"reasoningContent": {"reasoningText": thought}}


def _converse_call(id: str) -> Request:
    return {"toolUse": {"toolUseId": id, "name": "run", "input": {}}}


def _converse_result(id: str) -> Request:
    return {"toolResult": {"toolUseId": id, "content": [{"text": "ok"}]}}


LEGAL: dict[str, Callable[[], Request]] = {
    "anthropic": lambda: {
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "system", "content": "be brief"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {
                        "type": "server_tool_use",
                        "id": "srvtoolu_1",
                        "name": "web",
                        "input": {},
                    },
                    {
                        "type": "web_search_tool_result",
                        "tool_use_id": "srvtoolu_1",
                        "content": [],
                    },
                    {"type": "text", "text": "I look."},
                    {
                        "type": "tool_use",
                        "id": "t1",
                        "name": "run",
                        "input": {},
                    },
                    {
                        "type": "tool_use",
                        "id": "t2",
                        "name": "run",
                        "input": {},
                    },
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t1",
                        "content": "a",
                    },
                    {
                        "type": "tool_result",
                        "tool_use_id": "t2",
                        "content": "b",
                    },
                    {
                        "type": "text",
                        "text": "go on",
                        "cache_control": {"type": "ephemeral"},
                    },
                ],
            },
        ]
    },
    "openai-chat": lambda: {
        "messages": [
            {"role": "user", "content": "go"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{**_CHAT_CALL}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "ok"},
            {"role": "assistant", "content": "done"},
        ]
    },
    "ollama": lambda: {
        "messages": [
            {"role": "user", "content": "go", "images": ["AAAA"]},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{**_OLLAMA_CALL}],
            },
            {"role": "tool", "tool_name": "run", "content": "ok"},
            {"role": "assistant", "content": "done"},
        ]
    },
    "bedrock-converse": lambda: {
        "modelId": "anthropic.claude-sonnet-4-6",
        "toolConfig": converse.tools(),
        "messages": [
            {
                "role": "user",
                "content": [
                    _converse_document(),
                    {"text": "go"},
                    _converse_point(),
                ],
            },
            {
                "role": "assistant",
                "content": [_converse_thought(), _converse_call("a")],
            },
            {
                "role": "user",
                "content": [
                    _converse_result("a"),
                    {"text": "on"},
                    _converse_point(),
                ],
            },
            {
                "role": "assistant",
                "content": [_converse_thought(), _converse_call("b")],
            },
            {"role": "user", "content": [_converse_result("b")]},
        ],
    },
    "openai-responses": lambda: {
        "store": False,
        "input": [
            {"role": "user", "content": "go"},
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [],
                "encrypted_content": "e",
            },
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "c1",
                "name": "run",
                "arguments": "{}",
            },
            {"type": "function_call_output", "call_id": "c1", "output": "ok"},
            {
                "type": "mcp_approval_request",
                "id": "mcpr_1",
                "name": "d",
                "arguments": "{}",
            },
            {
                "type": "mcp_approval_response",
                "approval_request_id": "mcpr_1",
                "approve": True,
            },
        ],
    },
    "gemini": lambda: {
        "contents": [
            {"role": "user", "parts": [{"text": "go"}]},
            {
                "role": "model",
                "parts": [
                    {
                        "functionCall": {"name": "run", "args": {}},
                        "thoughtSignature": "c2ln",
                    },
                    {"functionCall": {"name": "see", "args": {}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {
                        "functionResponse": {
                            "name": "run",
                            "response": {"output": "a"},
                        }
                    },
                    {
                        "functionResponse": {
                            "name": "see",
                            "response": {"output": "b"},
                        }
                    },
                ],
            },
        ]
    },
}
"""A legal request of each format, made anew at each call."""


def _content(request: Request, at: int) -> list[Any]:
    found: list[Any] = request["messages"][at]["content"]
    return found


def _parts(request: Request, at: int) -> list[Any]:
    found: list[Any] = request["contents"][at]["parts"]
    return found


def _split(request: Request) -> None:
    """The results of one batch in two user messages."""
    second = _content(request, 3).pop(1)
    _content(request, 3).pop()
    request["messages"].append({"role": "user", "content": [second]})


def _pair(request: Request) -> None:
    """A signed call without a response, and the response in the content after."""
    request["contents"].insert(
        2, {"role": "user", "parts": [{"text": "wait"}]}
    )


def _unsigned_step(request: Request) -> None:
    """One more step, without a signature."""
    request["contents"] += [
        {
            "role": "model",
            "parts": [{"functionCall": {"name": "run", "args": {}}}],
        },
        {
            "role": "user",
            "parts": [
                {
                    "functionResponse": {
                        "name": "run",
                        "response": {"output": "a"},
                    }
                }
            ],
        },
    ]


ILLEGAL_MUTANTS: tuple[IllegalMutant, ...] = (
    ("anthropic", "A0", lambda r: _content(r, 2)[4].pop("name")),
    ("anthropic", "A0", lambda r: _content(r, 2)[2].pop("content")),
    ("anthropic", "A1", lambda r: r.update(messages=r["messages"][2:])),
    ("anthropic", "A3", lambda r: _content(r, 3).pop(0)),
    ("anthropic", "A4", lambda r: _content(r, 2).pop(4)),
    (
        "anthropic",
        "A5",
        lambda r: _content(r, 3).insert(0, _content(r, 3).pop()),
    ),
    ("anthropic", "A6", _split),
    (
        "anthropic",
        "A7",
        lambda r: _content(r, 3).insert(1, {**_content(r, 3)[0]}),
    ),
    ("anthropic", "A8", lambda r: _content(r, 2)[4].update(name="a name")),
    ("anthropic", "A9", lambda r: _content(r, 2)[3].update(text=" ")),
    ("anthropic", "A13", lambda r: _content(r, 2)[0].update(thinking="")),
    ("anthropic", "A18", lambda r: _content(r, 2).pop(1)),
    ("anthropic", "A19", lambda r: _content(r, 2).pop(2)),
    ("anthropic", "A20", lambda r: r["messages"].insert(2, r["messages"][0])),
    (
        "anthropic",
        "A21",
        lambda r: (
            _content(r, 3)[0].update(cache_control={"ttl": "5m"})
            or _content(r, 3)[1].update(cache_control={"ttl": "1h"})
        ),
    ),
    (
        "anthropic",
        "A21",
        lambda r: (
            _content(r, 3)[2].update(cache_control={"ttl": "1h"})
            or r.update(cache_control={"type": "ephemeral"})
        ),
    ),
    ("anthropic", "A23", lambda r: _content(r, 2)[3].update(annotations=[])),
    ("anthropic", "A23", lambda r: _content(r, 2)[1].update(text=None)),
    ("openai-chat", "C0", lambda r: r["messages"][0].update(role="robot")),
    (
        "openai-chat",
        "C0",
        lambda r: r["messages"][1]["tool_calls"][0].update(type=None),
    ),
    ("openai-chat", "C1", lambda r: r["messages"].pop(2)),
    ("openai-chat", "C2", lambda r: r["messages"].pop(1)),
    (
        "openai-chat",
        "C3",
        lambda r: r["messages"].insert(2, {"role": "user", "content": "x"}),
    ),
    ("openai-chat", "C4", lambda r: r["messages"][3].update(tool_calls=[])),
    ("openai-chat", "C5", lambda r: r["messages"][3].update(content=None)),
    (
        "openai-chat",
        "C6",
        lambda r: r["messages"][1]["tool_calls"][0].update(id="x" * 65),
    ),
    (
        "openai-chat",
        "C7",
        lambda r: r["messages"][1]["tool_calls"][0].update(
            function={"name": "run", "arguments": {}}
        ),
    ),
    (
        "openai-chat",
        "C8",
        lambda r: r["messages"][2].update(
            content=[{"type": "image_url", "image_url": {"url": "x"}}]
        ),
    ),
    (
        "openai-chat",
        "C10",
        lambda r: r.update(stream_options={"include_usage": True}),
    ),
    ("ollama", "O0", lambda r: r["messages"][0].update(content=["go"])),
    ("ollama", "O1", lambda r: r["messages"].pop(2)),
    ("ollama", "O2", lambda r: r["messages"].pop(1)),
    ("ollama", "O2", lambda r: r["messages"][2].update(tool_name="other")),
    (
        "ollama",
        "O3",
        lambda r: r["messages"].insert(2, {"role": "user", "content": "x"}),
    ),
    (
        "ollama",
        "O4",
        lambda r: r["messages"][1]["tool_calls"][0].update(
            function={"name": "run", "arguments": "{}"}
        ),
    ),
    (
        "ollama",
        "O5",
        lambda r: r["messages"][0].update(
            images=["data:image/png;base64,AAAA"]
        ),
    ),
    ("ollama", "O6", lambda r: r.update(format="xml")),
    (
        "bedrock-converse",
        "B0",
        lambda r: _content(r, 1)[1]["toolUse"].pop("name"),
    ),
    ("bedrock-converse", "B1", lambda r: r["messages"].pop(0)),
    (
        "bedrock-converse",
        "B2",
        lambda r: r["messages"].insert(0, {**r["messages"][0]}),
    ),
    ("bedrock-converse", "B3", lambda r: _content(r, 2).pop(0)),
    ("bedrock-converse", "B4", lambda r: _content(r, 1).pop()),
    (
        "bedrock-converse",
        "B5",
        lambda r: _content(r, 1).append(_content(r, 1)[1]),
    ),
    ("bedrock-converse", "B6", lambda r: _content(r, 2)[1].update(text=" ")),
    (
        "bedrock-converse",
        "B7",
        lambda r: _content(r, 1)[1]["toolUse"].update(name="a name"),
    ),
    ("bedrock-converse", "B8", lambda r: r.pop("toolConfig")),
    (
        "bedrock-converse",
        "B9",
        lambda r: r["messages"].append(
            {"role": "assistant", "content": [{"text": "So"}]}
        ),
    ),
    (
        "bedrock-converse",
        "B10",
        lambda r: _content(r, 2).extend(4 * [_converse_point()]),
    ),
    (
        "bedrock-converse",
        "B11",
        lambda r: (
            r.update(
                additionalModelRequestFields={"thinking": {"type": "enabled"}}
            )
            or _content(r, 3).pop(0)
        ),
    ),
    ("bedrock-converse", "B12", lambda r: _content(r, 0).pop(1)),
    (
        "bedrock-converse",
        "B13",
        lambda r: _content(r, 3)[0].update(
            reasoningContent={
                "reasoningText": {"text": "so", "signature": "f"}
            }
        ),
    ),
    ("openai-responses", "R0", lambda r: r["input"][2].pop("name")),
    ("openai-responses", "R1", lambda r: r["input"].pop(3)),
    ("openai-responses", "R1", lambda r: r["input"].pop()),
    (
        "openai-responses",
        "R1",
        lambda r: r["input"][3].update(type="custom_tool_call_output"),
    ),
    ("openai-responses", "R2", lambda r: r["input"].pop(4)),
    (
        "openai-responses",
        "R3",
        lambda r: r["input"].insert(2, {"role": "user", "content": "x"}),
    ),
    ("openai-responses", "R4", lambda r: r["input"].pop(1)),
    ("openai-responses", "R5", lambda r: r["input"][2].update(id="msg_1")),
    ("openai-responses", "R5", lambda r: r["input"][2].update(id="fcx")),
    ("openai-responses", "R5", lambda r: r["input"][4].update(id="rs_2")),
    (
        "openai-responses",
        "R6",
        lambda r: r["input"].insert(2, {**r["input"][1]}),
    ),
    (
        "openai-responses",
        "R7",
        lambda r: r["input"][1].pop("encrypted_content"),
    ),
    (
        "openai-responses",
        "R8",
        lambda r: r["input"][1].update(encrypted_content="f"),
    ),
    (
        "openai-responses",
        "R10",
        lambda r: r.update(previous_response_id="r", conversation="c"),
    ),
    (
        "openai-responses",
        "R14",
        lambda r: r["input"].insert(0, {"type": "compaction_trigger"}),
    ),
    ("gemini", "G1", lambda r: r["contents"][0].update(role="assistant")),
    ("gemini", "G2", lambda r: _parts(r, 0)[0].update(text="")),
    ("gemini", "G3", lambda r: _parts(r, 2).pop()),
    (
        "gemini",
        "G4",
        lambda r: r["contents"].insert(
            1, {"role": "model", "parts": [{"text": "I look."}]}
        ),
    ),
    ("gemini", "G5", _pair),
    (
        "gemini",
        "G6",
        lambda r: _parts(r, 2)[0]["functionResponse"].update(name="other"),
    ),
    ("gemini", "G7", _unsigned_step),
    (
        "gemini",
        "G8",
        lambda r: _parts(r, 1)[0].update(thoughtSignature="bW92ZWQ="),
    ),
    (
        "gemini",
        "G11",
        lambda r: r["contents"].append(
            {"role": "model", "parts": [{"text": "x"}]}
        ),
    ),
    (
        "gemini",
        "G12",
        lambda r: r.update(
            cachedContent="c", tools=[{"functionDeclarations": []}]
        ),
    ),
)
"""A rule may be broken together with others; it must be among what the judge names."""
