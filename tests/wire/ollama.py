"""Ollama's own chat: every field of a message that says something."""

from tests.wire import PNG, Example

GIF = "R0lGODlhAQABAIAAAAAAAAAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw=="


def _call(name="read_file", arguments=None, **more):
    body = {
        "name": name,
        "arguments": {"path": "café.md"} if arguments is None else arguments,
    }
    return {**more, "function": body}


def _asks(*calls):
    return {"role": "assistant", "content": "", "tool_calls": list(calls)}


EXAMPLES = (
    Example(
        "content",
        "Text",
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Is naïve 猫 well? 🙂"},
            {"role": "assistant", "content": "Yes."},
            {"role": "system", "content": "It is late."},
        ],
        "user",
    ),
    Example(
        "images",
        "Media",
        [{"role": "user", "content": "What are these?", "images": [PNG, GIF]}],
        "user",
    ),
    Example(
        "tool_calls",
        "ToolCall",
        [
            _asks(_call(id="call_1"), _call(id="call_2", arguments={})),
            {
                "role": "tool",
                "tool_name": "read_file",
                "tool_call_id": "call_2",
                "content": "two",
            },
            {
                "role": "tool",
                "tool_name": "read_file",
                "tool_call_id": "call_1",
                "content": "one",
            },
        ],
    ),
    Example(
        "tool_calls",
        "ToolCall",
        [
            _asks(
                _call(),
                _call("grep", {"pattern": "x", "lines": [1, 2.5]}),
                _call(),
            ),
            {"role": "tool", "tool_name": "grep", "content": "none"},
            {"role": "tool", "tool_name": "read_file", "content": "one"},
            {"role": "tool", "tool_name": "read_file", "content": "two"},
        ],
        note="without an id: its result is known by the tool",
    ),
    Example(
        "tool",
        "ToolResult",
        [
            _asks(_call()),
            {"role": "tool", "name": "read_file", "content": "all is well\n"},
        ],
        "tool",
        note="of older clients, with its tool under another name",
    ),
    Example(
        "tool",
        "ToolResult",
        [
            _asks(_call(id="call_3"), _call("grep", id="call_4")),
            {"role": "tool", "content": "all is well\n"},
            {"role": "tool", "content": "none"},
        ],
        "tool",
        note="of clients that name neither call nor tool: known by its order",
    ),
    Example(
        "content",
        "Text",
        [
            _asks(_call()),
            {"role": "tool", "tool_name": "read_file", "content": "some text"},
        ],
        "tool",
        inside=True,
    ),
    Example(
        "images",
        "Media",
        [
            _asks(_call("look")),
            {
                "role": "tool",
                "tool_name": "look",
                "content": "a picture",
                "images": [PNG],
            },
        ],
        "tool",
        inside=True,
    ),
    Example(
        "thinking",
        "Reasoning",
        [
            {"role": "assistant", "content": "Yes.", "thinking": "Hm."},
            {"role": "user", "content": "Thanks."},
        ],
    ),
)
