"""Anthropic Messages: every block type of `provider-rules` §1.A."""

from tests.wire import PDF, PNG, SEALED, Example

_USER = {"role": "user", "content": [{"type": "text", "text": "And then?"}]}


def _user(*blocks):
    return {"role": "user", "content": list(blocks)}


def _model(*blocks):
    return {"role": "assistant", "content": list(blocks)}


def _call(number, **more):
    return {
        "type": "tool_use",
        "id": f"toolu_{number}",
        "name": "read_file",
        "input": {"path": f"café {number}.md"},
        **more,
    }


def _result(number, content, **more):
    return {
        "type": "tool_result",
        "tool_use_id": f"toolu_{number}",
        "content": content,
        **more,
    }


def _inside(number, *blocks):
    return [_model(_call(number)), _user(_result(number, list(blocks)))]


def _text(text):
    return {"type": "text", "text": text}


def _server(number, name, given, kind, content):
    """A tool of the server's and its result, which stand in one message (A18)."""
    call = {
        "type": "server_tool_use",
        "id": f"srvtoolu_{number}",
        "name": name,
        "input": given,
    }
    result = {
        "type": kind,
        "tool_use_id": f"srvtoolu_{number}",
        "content": content,
    }
    return [_USER, _model(call, result, _text("So it is."))]


_IMAGE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": PNG},
}
_IMAGE_URL = {
    "type": "image",
    "source": {"type": "url", "url": "https://example.com/a.png"},
}
_IMAGE_FILE = {
    "type": "image",
    "source": {"type": "file", "file_id": "file_1"},
}
_PDF = {
    "type": "document",
    "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
    "title": "A page",
    "context": "found on the desk",
    "citations": {"enabled": True},
}
_PLAIN = {
    "type": "document",
    "source": {
        "type": "text",
        "media_type": "text/plain",
        "data": "All is well.",
    },
}
_BLOCKS = {
    "type": "document",
    "source": {
        "type": "content",
        "content": [_text("First."), _IMAGE, _text("Second.")],
    },
    "title": "Two and a picture",
}
_SEARCH = {
    "type": "search_result",
    "source": "https://example.com/well",
    "title": "Well",
    "content": [_text("All is well.")],
    "citations": {"enabled": True},
}
_WEB = {
    "type": "web_search_result",
    "title": "Well",
    "url": "https://example.com/well",
    "encrypted_content": SEALED,
    "page_age": None,
}
_FETCHED = {
    "type": "web_fetch_result",
    "url": "https://example.com/well",
    "content": _PLAIN,
    "retrieved_at": "2026-11-21T00:00:00Z",
}
_RAN = {"stdout": "ok\n", "stderr": "", "return_code": 0, "content": []}
_CITED = {
    "type": "text",
    "text": "All is well.",
    "citations": [
        {
            "type": "char_location",
            "cited_text": "All is well.",
            "document_index": 0,
            "document_title": None,
            "start_char_index": 0,
            "end_char_index": 12,
        }
    ],
}

EXAMPLES = (
    Example(
        "compaction",
        "Opaque",
        [
            _model(
                {
                    "type": "compaction",
                    "content": "What was said so far.",
                    "encrypted_content": SEALED,
                    "signature": "c2lnbmVk",
                }
            ),
        ],
    ),
    Example(
        "text",
        "Text",
        [{"role": "user", "content": "Is naïve 猫 well? 🙂"}],
        "user",
    ),
    Example("text", "Text", [_model(_CITED)], note="with citations"),
    Example(
        "image", "Media", [_user(_IMAGE, _IMAGE_URL, _IMAGE_FILE)], "user"
    ),
    Example(
        "document", "Media", [_user(_PDF)], "user", note="data, URL or file id"
    ),
    Example(
        "document",
        "Passage",
        [_user(_PLAIN)],
        "user",
        note="text as its source",
    ),
    Example(
        "document",
        "Passage",
        [_user(_BLOCKS)],
        "user",
        note="blocks as its source",
    ),
    Example(
        "document",
        "BlockFrame",
        [_user(_PLAIN)],
        "user",
        note="what is beside its text",
    ),
    Example("search_result", "Passage", [_user(_SEARCH)], "user"),
    Example(
        "container_upload",
        "Opaque",
        [_user({"type": "container_upload", "file_id": "file_2"})],
        "user",
    ),
    Example(
        "thinking",
        "Reasoning",
        [
            _model(
                {
                    "type": "thinking",
                    "thinking": "Hm.",
                    "signature": "c2lnbmVk",
                },
                _text("Yes."),
            )
        ],
    ),
    Example(
        "thinking",
        "Reasoning",
        [
            _model(
                {"type": "thinking", "thinking": "", "signature": "c2lnbmVk"},
                _text("Yes."),
            )
        ],
        note="sealed: no text, a signature",
    ),
    Example(
        "redacted_thinking",
        "Reasoning",
        [_model({"type": "redacted_thinking", "data": SEALED}, _text("Yes."))],
    ),
    Example(
        "tool_use",
        "ToolCall",
        [
            _USER,
            _model(
                {
                    "type": "thinking",
                    "thinking": "Two files.",
                    "signature": "c2lnbmVk",
                },
                _text("Two at once."),
                _call(1, caller={"type": "direct"}),
                _call(2, cache_control={"type": "ephemeral"}),
            ),
            _user(
                _result(1, "one"), _result(2, [_text("two")], is_error=False)
            ),
        ],
    ),
    Example(
        "tool_result",
        "ToolResult",
        [
            _model(_call(3)),
            _user(_result(3, "no such file", is_error=True), _text("Go on.")),
        ],
        "user",
    ),
    Example(
        "tool_result",
        "ToolResult",
        [
            _model(_call(4)),
            _user({"type": "tool_result", "tool_use_id": "toolu_4"}),
        ],
        "user",
        note="without content (A10)",
    ),
    Example(
        "text", "Text", _inside(5, _text("a line\n")), "user", inside=True
    ),
    Example(
        "image",
        "Media",
        _inside(6, _text("See:"), _IMAGE),
        "user",
        inside=True,
    ),
    Example("document", "Media", _inside(7, _PDF), "user", inside=True),
    Example(
        "search_result", "Passage", _inside(8, _SEARCH), "user", inside=True
    ),
    Example(
        "document",
        "Passage",
        _inside(26, _PLAIN, _BLOCKS),
        "user",
        inside=True,
        note="text",
    ),
    Example(
        "tool_reference",
        "Opaque",
        _inside(9, {"type": "tool_reference", "tool_name": "grep"}),
        "user",
        inside=True,
    ),
    Example(
        "browser_state",
        "Opaque",
        _inside(10, {"type": "browser_state", "tabs": []}),
        "user",
        inside=True,
    ),
    Example(
        "server_tool_use",
        "Opaque",
        _server(
            1,
            "web_search",
            {"query": "well"},
            "web_search_tool_result",
            [_WEB],
        ),
    ),
    Example(
        "web_search_tool_result",
        "Opaque",
        _server(
            2,
            "web_search",
            {"query": "ill"},
            "web_search_tool_result",
            [_WEB, _WEB],
        ),
    ),
    Example(
        "web_fetch_tool_result",
        "Opaque",
        _server(
            3,
            "web_fetch",
            {"url": _WEB["url"]},
            "web_fetch_tool_result",
            _FETCHED,
        ),
    ),
    Example(
        "code_execution_tool_result",
        "Opaque",
        _server(
            4,
            "code_execution",
            {"code": "1 + 1"},
            "code_execution_tool_result",
            {"type": "code_execution_result", **_RAN},
        ),
    ),
    Example(
        "bash_code_execution_tool_result",
        "Opaque",
        _server(
            5,
            "bash_code_execution",
            {"command": "ls"},
            "bash_code_execution_tool_result",
            {"type": "bash_code_execution_result", **_RAN},
        ),
    ),
    Example(
        "text_editor_code_execution_tool_result",
        "Opaque",
        _server(
            6,
            "text_editor_code_execution",
            {"command": "create", "path": "a", "file_text": "b"},
            "text_editor_code_execution_tool_result",
            {
                "type": "text_editor_code_execution_create_result",
                "is_file_update": False,
            },
        ),
    ),
    Example(
        "tool_search_tool_result",
        "Opaque",
        _server(
            7,
            "tool_search_tool_bm25",
            {"query": "files"},
            "tool_search_tool_result",
            {
                "type": "tool_search_tool_search_result",
                "tool_references": [
                    {"type": "tool_reference", "tool_name": "grep"}
                ],
            },
        ),
    ),
    Example(
        "advisor_tool_result",
        "Opaque",
        _server(
            8,
            "advisor",
            {},
            "advisor_tool_result",
            {"type": "advisor_result", "text": "Look up."},
        ),
    ),
    Example(
        "mcp_tool_listing",
        "Opaque",
        [
            _USER,
            _model(
                {
                    "type": "mcp_tool_listing",
                    "mcp_server_name": "x",
                    "tools": [],
                }
            ),
        ],
    ),
    Example(
        "mcp_tool_use",
        "Opaque",
        [
            _USER,
            _model(
                {
                    "type": "mcp_tool_use",
                    "id": "mcptoolu_1",
                    "name": "ask",
                    "server_name": "x",
                    "input": {"q": 1},
                },
                {
                    "type": "mcp_tool_result",
                    "tool_use_id": "mcptoolu_1",
                    "is_error": False,
                    "content": [_text("one")],
                },
            ),
        ],
    ),
    Example(
        "mcp_tool_result",
        "Opaque",
        [
            _USER,
            _model(
                {
                    "type": "mcp_tool_use",
                    "id": "mcptoolu_2",
                    "name": "ask",
                    "server_name": "x",
                    "input": {"q": 2},
                },
                {
                    "type": "mcp_tool_result",
                    "tool_use_id": "mcptoolu_2",
                    "is_error": True,
                    "content": [_text("no")],
                },
            ),
        ],
    ),
    Example(
        "fallback",
        "Opaque",
        [
            _USER,
            _model(
                {
                    "type": "fallback",
                    "from": {"model": "claude-fable-5-2"},
                    "to": {"model": "claude-opus-5-5"},
                    "trigger": None,
                },
                _text("From here on, another model."),
            ),
        ],
    ),
    Example(
        "tool_addition",
        "Opaque",
        [
            _USER,
            {
                "role": "system",
                "content": [
                    _text("There is a new tool."),
                    {
                        "type": "tool_addition",
                        "tool": {"type": "tool_reference", "name": "grep"},
                    },
                ],
            },
            _model(_text("I see.")),
        ],
        "system",
    ),
    Example(
        "tool_removal",
        "Opaque",
        [
            _USER,
            {
                "role": "system",
                "content": [
                    {
                        "type": "tool_removal",
                        "tool": {"type": "tool_reference", "name": "grep"},
                    },
                ],
            },
            _model(_text("I see.")),
            _USER,
        ],
        "system",
    ),
)
