"""More of the rules that break in several ways: what breaks one, and a near miss, as the first.

A row is (format, rule, what is wrong, the request that breaks the rule and no other, the near
miss). `tests.formats.rule_examples` has one row of every rule.
"""

from tests.formats.rule_examples import (
    DONE,
    GO,
    MANUAL,
    NEW,
    NEXT,
    NOTE,
    OLD,
    SERVED,
    SERVER,
    TEXT,
    THOUGHT,
    assistant,
    gave,
    marked,
    messages,
    png,
    use,
    user,
)

FIRST, SECOND = (assistant(use("a")), user(gave("a"))), (assistant(use("b")), user(gave("b")))
THINKING_FIRST = (assistant(THOUGHT, use("a")), user(gave("a")))
PNG = png(1)["source"]
MCP = {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "run", "server_name": "s", "input": {}}
MCP_GAVE = {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "content": "ok"}
UPLOAD = {"type": "container_upload", "file_id": "file_1"}
MORE_TOOLS = {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "run"}}
AUTOMATIC = {"cache_control": {"type": "ephemeral"}}


def image(**source):
    return {"type": "image", "source": source}


ANTHROPIC = [
    ("A0", "an upload from the assistant",
     messages(GO, assistant(UPLOAD, TEXT), NEXT), messages(user(UPLOAD, TEXT))),
    ("A0", "an upload of nothing",
     messages(user({**UPLOAD, "file_id": None})), messages(user(UPLOAD))),
    ("A0", "the user adds a tool",
     messages(user(TEXT, MORE_TOOLS)),
     messages(GO, {"role": "system", "content": [MORE_TOOLS]}, DONE, NEXT)),
    ("A0", "a server tool's result without content",
     messages(GO, assistant(SERVER, {k: v for k, v in SERVED.items() if k != "content"}), NEXT),
     messages(GO, assistant(MCP, {**MCP_GAVE, "content": None}), NEXT)),
    ("A0", "an empty source", messages(user(image())), messages(user(image(**PNG)))),
    ("A0", "a source of no type",
     messages(user(image(type="disk", path="a.png"))),
     messages(user(image(type="file", file_id="file_1")))),
    ("A0", "data of no type",
     messages(user(image(type="base64", data="AA=="))),
     messages(user(image(type="url", url="https://example.org/a.png")))),
    ("A0", "in a result, data of no type",
     messages(GO, assistant(use()), user(gave(content=[image(type="base64", data="AA==")]))),
     messages(GO, assistant(use()), user(gave(content=[image(**PNG)])))),
    ("A0", "a system message to a model that takes none",
     messages(GO, NOTE, DONE, NEXT, model=OLD),
     messages(GO, NOTE, DONE, NEXT, model="claude-opus-4-8")),
    ("A0", "a system message to Sonnet 5",
     messages(GO, NOTE, model="claude-sonnet-5"), messages(GO, NOTE, model="claude-sonnet-5-5")),
    ("A11", "the server's tool has its result",
     messages(GO, assistant(SERVER, SERVED, TEXT), model=NEW),
     messages(GO, assistant(TEXT, MCP), model=NEW)),
    ("A11", "the result stands in the message behind",
     messages(GO, assistant(MCP), assistant(MCP_GAVE, TEXT), model=NEW),
     messages(GO, assistant(SERVER, SERVED), assistant(TEXT, MCP), model=NEW)),
    ("A14", "a later step alone begins with thinking",
     messages(GO, *FIRST, assistant(THOUGHT, use("b")), user(gave("b")), **MANUAL),
     messages(GO, *THINKING_FIRST, *SECOND, **MANUAL)),
    ("A14", "behind a system message",
     messages(GO, assistant(TEXT, use()), user(gave()), NOTE, **MANUAL),
     messages(GO, assistant(THOUGHT, TEXT, use()), user(gave()), NOTE, **MANUAL)),
    ("A14", "the user spoke beside earlier results",
     messages(GO, assistant(THOUGHT, use("a")), user(gave("a"), TEXT), *SECOND, **MANUAL),
     messages(GO, *THINKING_FIRST, assistant(use("b")), user(gave("b"), TEXT), **MANUAL)),
    ("A14", "the turn before began with thinking, this one does not",
     messages(GO, *THINKING_FIRST, assistant(TEXT), GO, *SECOND, **MANUAL),
     messages(GO, *FIRST, assistant(TEXT), GO, assistant(THOUGHT, use("b")), user(gave("b")),
              **MANUAL)),
]  # fmt: skip

ANTHROPIC += [
    ("A21", "the automatic marker against the one on the last block",
     messages(user(marked(TEXT, "1h")), **AUTOMATIC),
     messages(user(marked(TEXT, "1h"), TEXT), **AUTOMATIC)),
    ("A21", "the automatic marker lives longer than one before it",
     messages(user(marked(TEXT), TEXT), cache_control={"type": "ephemeral", "ttl": "1h"}),
     messages(user(marked(TEXT)), **AUTOMATIC)),
    ("A21", "on thinking",
     messages(GO, assistant(marked(THOUGHT), TEXT), NEXT),
     messages(GO, assistant(THOUGHT, marked(TEXT)), NEXT)),
    ("A23", "a null marker on thinking",
     messages(GO, assistant({**THOUGHT, "cache_control": None}, TEXT), NEXT),
     messages(GO, assistant(THOUGHT, {**TEXT, "cache_control": None}), NEXT)),
    ("A23", "a null that a type added to a server tool's call",
     messages(GO, assistant({**SERVER, "text": None}, SERVED), NEXT),
     messages(GO, assistant({**SERVER, "route": "a"}, SERVED), NEXT)),
    ("A23", "a null that a type added to its result",
     messages(GO, assistant(SERVER, {**SERVED, "text": None}), NEXT),
     messages(GO, assistant(SERVER, {**SERVED, "route": "a", "caller": None}), NEXT)),
    ("A23", "within a source",
     messages(user(image(**PNG, path=None))), messages(user(image(**PNG)))),
]  # fmt: skip

MORE = [("anthropic", *row) for row in ANTHROPIC]
