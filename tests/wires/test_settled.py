"""The two readings agree where they last differed: replies of several messages, ids that come
again, and what a server made, legal or not.

Each history is drawn, in any order, from the few shapes of a wire that have to do with who answers
whom. READINGS=20000 draws so many for each wire.
"""

import copy
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.returned import problems
from tests.second_reading import broken

READINGS = int(os.environ.get("READINGS", "0"))


def twice(*shapes):
    """Each shape with either of two ids."""
    return [shape(id) for id in ("a", "b") for shape in shapes]


def messages(holding, **roles):
    """Messages of these roles in any order, each of up to three of the parts of its role."""
    one = [
        st.builds(
            lambda parts, role=role: {
                "role": role,
                holding: copy.deepcopy(parts),
            },
            st.lists(st.sampled_from(parts), min_size=1, max_size=3),
        )
        for role, parts in roles.items()
    ]
    return st.lists(st.one_of(one), min_size=1, max_size=6)


# -- Anthropic ----------------------------------------------------------------------------

TEXT = {"type": "text", "text": "Words."}
INSIDE = [
    {"type": "text", "text": "", "new": 1},
    {"type": "image", "cache_control": {}},
]
"""What a server's tool gave: it looks like blocks, and none of their rules is about it."""

CLAUDE = messages(
    "content",
    assistant=[
        TEXT,
        *twice(
            lambda id: {
                "type": "tool_use",
                "id": id,
                "name": "bash",
                "input": {},
            },
            lambda id: {
                "type": "server_tool_use",
                "id": id,
                "name": "web_search",
                "input": {},
            },
            lambda id: {
                "type": "web_search_tool_result",
                "tool_use_id": id,
                "content": INSIDE,
            },
            lambda id: {
                "type": "mcp_tool_use",
                "id": id,
                "name": "ask",
                "input": {},
            },
            lambda id: {
                "type": "mcp_tool_result",
                "tool_use_id": id,
                "content": INSIDE,
            },
        ),
    ],
    user=[
        TEXT,
        *twice(
            lambda id: {"type": "tool_result", "tool_use_id": id},
            lambda id: {
                "type": "tool_result",
                "tool_use_id": id,
                "content": [
                    {
                        "type": "search_result",
                        "source": "s",
                        "title": "t",
                        "content": [{**TEXT, "new": 1} if id == "b" else TEXT],
                    }
                ],
            },
        ),
    ],
    system=[TEXT],
)
CLAUDES = [
    {},
    {"model": "claude-opus-4-8", "thinking": {"type": "enabled"}},
    {"model": "claude-opus-4-8", "tools": [{"name": "bash"}]},
    {
        "model": "claude-opus-4-8",
        "tools": [{"name": "bash"}, {"name": "web_search"}],
    },
]

# -- Chat Completions ---------------------------------------------------------------------

CALLS = twice(
    lambda id: {
        "id": id,
        "type": "function",
        "function": {"name": "bash", "arguments": "{}"},
    },
    lambda id: {
        "id": id,
        "type": "custom",
        "custom": {"name": "patch", "input": "x"},
    },
)
CHAT = st.lists(
    st.one_of(
        st.builds(
            lambda calls: {
                "role": "assistant",
                "content": None,
                "tool_calls": calls,
            },
            st.lists(st.sampled_from(CALLS), max_size=3),
        ),
        st.sampled_from(
            twice(
                lambda id: {"role": "tool", "tool_call_id": id, "content": "x"}
            )
        ),
        st.sampled_from(["assistant", "user", "developer"]).map(
            lambda role: {"role": role, "content": "Words."}
        ),
    ),
    min_size=1,
    max_size=9,
)

# -- Responses ----------------------------------------------------------------------------

ITEMS = st.lists(
    st.sampled_from(
        [
            {"role": "user", "content": "Words."},
            {"role": "assistant", "content": "Words."},
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [],
                "encrypted_content": "c2VhbA==",
            },
            {"type": "item_reference", "id": "msg_9"},
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
            *twice(
                lambda id: {
                    "type": "function_call",
                    "call_id": id,
                    "name": "bash",
                    "arguments": "{}",
                },
                lambda id: {
                    "type": "function_call_output",
                    "call_id": id,
                    "output": "x",
                },
                lambda id: {
                    "type": "custom_tool_call",
                    "call_id": id,
                    "name": "patch",
                    "input": "",
                },
                lambda id: {
                    "type": "custom_tool_call_output",
                    "call_id": id,
                    "output": "x",
                },
                lambda id: {
                    "type": "mcp_approval_request",
                    "id": f"mcpr_{id}",
                    "server_label": "s",
                    "name": "ask",
                    "arguments": "{}",
                },
                lambda id: {
                    "type": "mcp_approval_response",
                    "approval_request_id": f"mcpr_{id}",
                    "approve": True,
                },
            ),
        ]
    ),
    min_size=1,
    max_size=9,
).map(copy.deepcopy)

# -- Gemini -------------------------------------------------------------------------------

SIGNED = {
    "functionCall": {"name": "bash", "args": {}},
    "thoughtSignature": "c2VhbA==",
}
GEMINI = messages(
    "parts",
    model=[
        {"text": "Words."},
        SIGNED,
        {"functionCall": {"name": "bash", "args": {}}},
        {"executableCode": {"language": "PYTHON", "code": "1"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        *twice(
            lambda id: {
                "functionCall": {"id": id, "name": f"tool_{id}", "args": {}}
            }
        ),
    ],
    user=[
        {"text": "Words."},
        {"functionResponse": {"name": "bash", "response": {}}},
        *twice(
            lambda id: {
                "functionResponse": {
                    "id": id,
                    "name": "tool_a",
                    "response": {},
                }
            }
        ),
    ],
)
# -- Ollama -------------------------------------------------------------------------------


def _asked(name, id=""):
    return {
        **({"id": id} if id else {}),
        "function": {"name": name, "arguments": {}},
    }


def _answered(**named):
    return {"role": "tool", "content": "ok", **named}


OLLAMA = st.lists(
    st.one_of(
        st.just({"role": "user", "content": "go"}),
        st.builds(
            lambda calls: {
                "role": "assistant",
                "content": "",
                "tool_calls": calls,
            },
            st.lists(
                st.sampled_from(
                    [*map(_asked, "xy"), *twice(lambda id: _asked("x", id))]
                ),
                max_size=3,
            ),
        ),
        st.sampled_from(
            [
                _answered(),
                *(_answered(tool_name=name) for name in "xy"),
                *twice(
                    lambda id: _answered(tool_call_id=id),
                    lambda id: _answered(tool_call_id=id, name="x"),
                ),
            ]
        ),
    ),
    min_size=1,
    max_size=8,
).map(copy.deepcopy)
HISTORIES = {
    "anthropic": ("messages", CLAUDE, CLAUDES),
    "openai-chat": ("messages", CHAT, [{}, {"model": "gemini-3-pro"}]),
    "openai-responses": (
        "input",
        ITEMS,
        [{}, {"store": False}, {"previous_response_id": "r"}],
    ),
    "ollama": ("messages", OLLAMA, [{}, {"format": "xml"}]),
    "gemini": (
        "contents",
        GEMINI,
        [{}, {"model": "gemini-3-pro"}, {"model": "gemini-2.5-pro"}],
    ),
}


@pytest.mark.parametrize("format", HISTORIES)
@given(data=st.data())
@settings(max_examples=READINGS or 300)
def test_they_name_the_same_rules(format, data):
    key, histories, heads = HISTORIES[format]
    request = {**data.draw(st.sampled_from(heads)), key: data.draw(histories)}
    found = {problem.rule for problem in problems(format, request)}
    assert found == broken(format, request)
