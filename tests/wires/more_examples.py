"""More of the rules that break in several ways: what breaks one, and a near miss, as the first.

A row is (format, rule, what is wrong, the request that breaks the rule and no other, the near
miss). `tests.wires.rule_examples` has one row of every rule.
"""

from tests.wires.rule_examples import (
    ASK,
    BARE,
    BY_HAND,
    CONFIG,
    DONE,
    GO,
    GO_ON,
    MANUAL,
    NEW,
    NEXT,
    NOTE,
    OLD,
    REASONED,
    SERVED,
    SERVER,
    TEXT,
    THOUGHT,
    WELL,
    asked,
    asks,
    assistant,
    call,
    calls,
    claude,
    contents,
    gave,
    items,
    marked,
    messages,
    model,
    named,
    numbered,
    parts,
    png,
    point,
    put,
    ran,
    responds,
    returns,
    runs,
    said,
    says,
    tool,
    use,
    user,
    uses,
)

FIRST, SECOND = (
    (assistant(use("a")), user(gave("a"))),
    (assistant(use("b")), user(gave("b"))),
)
THINKING_FIRST = (assistant(THOUGHT, use("a")), user(gave("a")))
PNG = png(1)["source"]
MCP = {
    "type": "mcp_tool_use",
    "id": "mcptoolu_1",
    "name": "run",
    "server_name": "s",
    "input": {},
}
MCP_GAVE = {
    "type": "mcp_tool_result",
    "tool_use_id": "mcptoolu_1",
    "content": "ok",
}
UPLOAD = {"type": "container_upload", "file_id": "file_1"}
MORE_TOOLS = {
    "type": "tool_addition",
    "tool": {"type": "tool_reference", "name": "run"},
}
AUTOMATIC = {"cache_control": {"type": "ephemeral"}}


def image(**source):
    return {"type": "image", "source": source}


def document(held, kind="text"):
    source = {"type": kind, "data" if kind == "text" else "content": held}
    source |= {"media_type": "text/plain"} if kind == "text" else {}
    return {"type": "document", "source": source}


def hit(*content):
    return {
        "type": "search_result",
        "source": "s",
        "title": "t",
        "content": list(content),
    }


BLANK = {"type": "text", "text": " "}

ANTHROPIC = [
    ("A9", "a blank document", messages(user(document(" "))), messages(user(document("x")))),
    ("A9", "a document with a blank text",
     messages(user(document([TEXT, BLANK], "content"))),
     messages(user(document([TEXT, TEXT], "content")))),
    ("A9", "in a result, a search result with a blank text",
     messages(GO, assistant(use()), user(gave(content=[hit(TEXT, BLANK)]))),
     messages(GO, assistant(use()), user(gave(content=[hit(TEXT)])))),
    ("A0", "a search result with a picture",
     messages(user(hit(TEXT, png(9)))), messages(user(hit(TEXT), png(9)))),
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
    ("A14", "words beside the newest results, not behind them",
     messages(GO, assistant(TEXT, use()), user(gave(), TEXT), **MANUAL),
     messages(GO, assistant(TEXT, use()), user(gave()), NEXT, **MANUAL)),
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
    ("A8", "in the id that a result answers",
     messages(GO, assistant(use("t.1")), user(gave("t.1"))),
     messages(GO, assistant(use("t_1")), user(gave("t_1")))),
    ("A19", "a request that sends no tools at all",
     messages(GO, assistant(SERVER, use()), user(gave()), model="claude-opus-5"),
     messages(GO, assistant(SERVER, use()), user(gave()))),
    ("A23", "a flag that a type made null",
     messages(GO, assistant(use()), user(gave(is_error=None))),
     messages(GO, assistant(use()), user(gave(toolset_name=None, cache_control=None)))),
    ("A23", "who called, made null",
     messages(GO, assistant({**use(), "caller": None}), user(gave())),
     messages(GO, assistant({**use(), "toolset_name": None}), user(gave()))),
    ("A23", "within a source",
     messages(user(image(**PNG, path=None))), messages(user(image(**PNG)))),
]  # fmt: skip

# -- OpenAI ---------------------------------------------------------------------------------

HELD = {"previous_response_id": "resp_1"}
CUSTOM = {
    "type": "custom_tool_call",
    "call_id": "c1",
    "name": "sh",
    "input": "ls",
}
FREED = {"type": "custom_tool_call_output", "call_id": "c1", "output": "ok"}
ASKS = {
    "type": "mcp_approval_request",
    "id": "mcpr_1",
    "name": "run",
    "arguments": "{}",
}
ASKS |= {"server_label": "files"}
GIVEN = {
    "type": "mcp_approval_response",
    "approval_request_id": "mcpr_1",
    "approve": True,
}
SCREEN = {
    "type": "computer_screenshot",
    "image_url": "data:image/png;base64,AA==",
}
DELETE = {"type": "delete_file", "path": "a.py"}


def searched(id):
    action = {"type": "search", "query": "x"}
    return {
        "type": "web_search_call",
        "id": id,
        "status": "completed",
        "action": action,
    }


def clicked(output):
    asks = {
        "type": "computer_call",
        "id": "cu_1",
        "call_id": "c1",
        "status": "completed",
    }
    asks |= {"action": {"type": "screenshot"}, "pending_safety_checks": []}
    return asks, {
        "type": "computer_call_output",
        "call_id": "c1",
        "output": output,
    }


def patched(**more):
    asks = {"type": "apply_patch_call", "call_id": "c1", "status": "completed"}
    output = {"type": "apply_patch_call_output", "call_id": "c1", **more}
    return {**asks, "operation": DELETE}, output


def shown(**part):
    return {"role": "user", "content": [part]}


RESPONSES = [
    ("R1", "a custom tool is answered like a function",
     items(CUSTOM, put(), **HELD), items(CUSTOM, FREED)),
    ("R2", "a function that is not to be waited for is answered like a custom tool",
     items(asked(**{"async": True}), FREED), items(asked(**{"async": True}), put())),
    ("R1", "a request for approval without an answer",
     items(GO, ASKS, NEXT), items(GO, ASKS, NEXT, GIVEN)),
    ("R2", "an approval before its request",
     items(GO, GIVEN, ASKS, GIVEN), items(GO, ASKS, GIVEN, NEXT)),
    ("R2", "an approval is no answer to a call",
     items(GO, {**GIVEN, "approval_request_id": "c1"}, asked(), put()),
     items(GO, asked(), put(), ASKS, GIVEN)),
    ("R5", "a prefix that goes on", items(asked(id="fcx"), put()), items(asked(id="fc_x"), put())),
    ("R5", "a message's id on a search",
     items(GO, searched("msg_1"), said()),
     items(GO, searched("ws_1"), said(), {"type": "item_reference", "id": "msg_2"})),
    ("R0", "a screen in words", items(*clicked("a screen")), items(*clicked(SCREEN))),
    ("R0", "a patch that came to nothing", items(*patched(output="ok")),
     items(*patched(status="failed"))),
    ("R0", "no picture in an image", items(shown(type="input_image", detail="auto")),
     items(shown(type="input_image", detail="auto", file_id="file_1"))),
    ("R0", "no data in a file", items(shown(type="input_file", filename="a.pdf")),
     items(shown(type="input_file", file_url="https://example.org/a.pdf"))),
]  # fmt: skip

CHAT = [
    ("C0", "a call of no type",
     messages(GO, asks({**call(), "type": None}), tool(), NEXT),
     messages(GO, asks({k: v for k, v in call().items() if k != "type"}), tool(), NEXT)),
]  # fmt: skip

# -- Gemini ---------------------------------------------------------------------------------

PICTURE = {"mimeType": "image/png"}

GEMINI = [
    ("G0", "a picture without data", contents(parts({"inlineData": PICTURE})),
     contents(parts({"inlineData": {**PICTURE, "data": "AA=="}}))),
    ("G0", "a file that is nowhere", contents(ASK, parts({"fileData": PICTURE})),
     contents(ASK, parts({"fileData": {**PICTURE, "fileUri": "files/1"}}))),
    ("G0", "a field of another API beside a call",
     contents(ASK, model({**calls(signature="c2ln"), "type": "function"}), parts(responds())),
     contents(ASK, model({**calls(signature="c2ln"), "partMetadata": {}}), parts(responds()))),
    ("G0", "a signature that is no base64",
     contents(ASK, model(calls(signature="***")), parts(responds())),
     contents(ASK, model(calls(signature="c2ln_-")), parts(responds()))),
]  # fmt: skip

# -- Ollama ---------------------------------------------------------------------------------

LATE = [GO, runs(numbered("a")), DONE]

OLLAMA = [
    ("O0", "content in parts", messages({"role": "user", "content": [{"text": "go"}]}),
     messages({"role": "user"})),
    ("O0", "options that are no object", messages(GO, options=[]), messages(GO, options={})),
    ("O2", "an id of no call", messages(GO, runs(numbered("a")), ran(tool_call_id="a"),
                                        ran(tool_call_id="b")),
     messages(GO, runs("run", numbered("a")), ran(tool_call_id="a"), ran(tool_call_id="b"))),
    ("O2", "no word of its call, and none is open", messages(GO, runs("run"), ran(), BARE),
     messages(GO, runs("run"), BARE)),
    ("O3", "by its id behind another reply", messages(*LATE, ran(tool_call_id="a")),
     messages(*LATE[:2], ran(tool_call_id="a"))),
    ("O3", "by its tool behind another reply", messages(*LATE, ran()), messages(*LATE[:2], ran())),
    ("O4", "a list of arguments", messages(runs(numbered("a", arguments=[])), ran()),
     messages(runs(numbered("a", arguments={"x": []})), ran())),
    ("O5", "base64 that is cut off", messages({**GO, "images": ["AAA"]}),
     messages({**GO, "images": [""]})),
    ("O6", "a list", messages(GO, format=[]), messages(GO, format="json")),
]  # fmt: skip

# -- Bedrock Converse -----------------------------------------------------------------------

SOUND = {"audio": {"format": "wav", "source": {"bytes": "b2s="}}}
PROFILE = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2c3"

CONVERSE = [
    ("B0", "a text as the content", messages({"role": "user", "content": "go"}), messages(GO_ON)),
    ("B0", "a field that boto3 does not know",
     messages(GO_ON, assistant(uses(caller="model")), user(returns())),
     messages(GO_ON, assistant(uses()), user(returns(status="success")))),
    ("B0", "a medium without its format",
     messages(user(says("go"), {"image": {"source": {"bytes": "b2s="}}})),
     messages(user(says("go"), {"image": {"format": "png", "source": {"bytes": "b2s="}}}))),
    ("B0", "a medium from nowhere",
     messages(user(says("go"), {"image": {"format": "png", "source": {}}})),
     messages(user(says("go"), {"image": {"format": "png", "source": {"bytes": b"ok"}}}))),
    ("B0", "a call of the user's", messages(user(uses())), messages(user({"newBlock": {}}))),
    ("B0", "a sound in a result",
     messages(GO_ON, assistant(uses()), user(returns(content=[SOUND]))),
     messages(user(says("go"), SOUND))),
    ("B3", "calls that nothing follows", messages(GO_ON, assistant(uses())),
     messages(GO_ON, assistant(uses()), user(returns()))),
    ("B4", "a result a turn late",
     messages(GO_ON, assistant(uses("a")), user(returns("a")), WELL, user(returns("b"))),
     messages(GO_ON, assistant(uses("a")), user(returns("a")), assistant(uses("b")),
              user(returns("b"), says("and now?")))),
    ("B6", "a message of nothing", messages(GO_ON, assistant(), GO_ON),
     messages(GO_ON, assistant(uses()), user(returns()))),
    ("B6", "a blank text", messages(user(says(" "))), messages(user(says(" x")))),
    ("B6", "a blank text of a tool", messages(GO_ON, assistant(uses()), user(returns(text=""))),
     messages(GO_ON, assistant(uses()), user(returns(content=[{"json": {}}])))),
    ("B7", "an id that a Claude does not take, and others do",
     messages(GO_ON, assistant(uses("t:1")), user(returns("t:1")), **CONFIG, **claude("opus-4-8")),
     messages(GO_ON, assistant(uses("t:1")), user(returns("t:1")), **CONFIG,
              modelId="us.amazon.nova-pro-v1:0")),
    ("B9", "the model of an inference profile is not known",
     messages(GO_ON, WELL, **claude("haiku-4-6")), messages(GO_ON, WELL, modelId=PROFILE)),
    ("B10", "a cache point in front", messages(user(point(), says("go"))),
     messages(user(says("go"), point()))),
    ("B10", "five cache points", messages(user(*[says("go"), point()] * 5)),
     messages(user(*[says("go"), point()] * 2), system=[says("be brief"), point()])),
    ("B11", "words of the user's in the message with the results leave the loop",
     messages(GO_ON, assistant(uses()), user(returns()), **BY_HAND),
     messages(GO_ON, WELL, user(says("on")), assistant(REASONED, uses()), user(returns()),
              **BY_HAND)),
    ("B12", "a document alone", messages(user(named("a"))),
     messages(user(named("a"), says("see")))),
]  # fmt: skip

MORE = [
    (format, *row)
    for format, rows in (
        ("anthropic", ANTHROPIC),
        ("openai-responses", RESPONSES),
        ("openai-chat", CHAT),
        ("gemini", GEMINI),
        ("ollama", OLLAMA),
        ("bedrock-converse", CONVERSE),
    )
    for row in rows
]
