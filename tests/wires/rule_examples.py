"""Of every rule that is judged: a request that breaks it and no other, and one that just does not.

A row is (the request that breaks the rule, the near miss), and where the rule compares with
what the provider returned, the history as it was returned.
"""

import base64
import struct

GO = {"role": "user", "content": "go"}
NEXT = {"role": "user", "content": "and now?"}
DONE = {"role": "assistant", "content": "done"}
HALF = {"role": "assistant", "content": "so I "}


def user(*blocks):
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks):
    return {"role": "assistant", "content": list(blocks)}


# -- Anthropic ----------------------------------------------------------------------------


def use(id="t1", name="run"):
    return {"type": "tool_use", "id": id, "name": name, "input": {}}


def gave(id="t1", **more):
    return {"type": "tool_result", "tool_use_id": id, **more}


def marked(block, ttl="5m"):
    return {**block, "cache_control": {"type": "ephemeral", "ttl": ttl}}


def messages(*given, **head):
    return {"messages": list(given), **head}


def png(side, filler=0):
    """The beginning of a PNG of so many pixels a side, and as many bytes more."""
    header = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(
        ">II", side, side
    )
    data = base64.b64encode(header + bytes(filler)).decode()
    source = {"type": "base64", "media_type": "image/png", "data": data}
    return {"type": "image", "source": source}


TEXT = {"type": "text", "text": "hello"}
NOTE = {"role": "system", "content": "be brief"}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s1"}
LATER = {"type": "thinking", "thinking": "so", "signature": "s2"}
SERVER = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "web_search",
    "input": {},
}
SERVED = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [],
}
SUMMARY = {"type": "compaction", "content": "so far", "signature": "s"}
RETURNED = [
    GO,
    assistant(THOUGHT, use()),
    user(gave()),
    assistant(LATER, TEXT),
    NEXT,
]
MANUAL = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
OLD, NEW = "claude-sonnet-4-5", "claude-opus-4-6"
SEARCH = {"type": "web_search_20250305", "name": "web_search"}

ANTHROPIC = {
    "A0": (messages(GO, assistant({"type": "tool_use", "id": "t1", "name": "run"}), user(gave())),
           messages(GO, assistant(use()), user(gave()))),
    "A1": (messages(DONE, GO), messages(assistant(SUMMARY, TEXT), GO)),
    "A3": (messages(GO, assistant(use("a"), use("b")), user(gave("a"))),
           messages(GO, assistant(use("a"), use("b")), user(gave("b"), gave("a")))),
    "A4": (messages(GO, assistant(use("a")), user(gave("a"), gave("b"))),
           messages(GO, assistant(use("a")), user(gave("a")))),
    "A5": (messages(GO, assistant(use()), user(TEXT, gave())),
           messages(GO, assistant(use()), user(gave(), TEXT))),
    "A6": (messages(GO, assistant(use("a"), use("b")), user(gave("a")), user(gave("b"))),
           messages(GO, assistant(use("a"), use("b")), user(gave("a"), gave("b")), user(TEXT))),
    "A7": (messages(GO, assistant(use()), user(gave(), gave())),
           messages(GO, assistant(use("a"), use("b")), user(gave("a"), gave("b")))),
    "A8": (messages(GO, assistant(use("t.1")), user(gave("t.1"))),
           messages(GO, assistant(use("t_1-A", "x" * 128)), user(gave("t_1-A")))),
    "A9": (messages(GO, assistant({"type": "text", "text": " "}), NEXT),
           messages(GO, assistant(use()), user(gave(content="")), assistant())),
    "A11": (messages(GO, HALF, model=NEW), messages(GO, assistant(TEXT, SERVER), model=NEW)),
    "A12": (messages(GO, HALF, model=OLD), messages(GO, DONE, model=OLD)),
    "A13": (messages(*RETURNED[:3], assistant(THOUGHT, TEXT), NEXT),
            messages(GO, assistant(use()), user(gave()), assistant(TEXT), NEXT), RETURNED),
    "A14": (messages(GO, assistant(TEXT, use()), user(gave()), **MANUAL),
            messages(GO, assistant(TEXT, use()), user(gave()), thinking={"type": "adaptive"})),
    "A18": (messages(GO, assistant(SERVER, TEXT), NEXT),
            messages(GO, assistant(SERVER), assistant(SERVED, TEXT), NEXT)),
    "A19": (messages(GO, assistant(SERVER, use()), user(gave()), tools=[{"name": "run"}]),
            messages(GO, assistant(SERVER, use()), user(gave()), tools=[SEARCH])),
    "A20": (messages(GO, DONE, NOTE), messages(GO, NOTE, NOTE, DONE, NEXT)),
    "A21": (messages(user(marked(TEXT), marked(TEXT, "1h"))),
            messages(user(marked(TEXT, "1h"), marked(TEXT)), system=[marked(TEXT, "1h")])),
    "A22": (messages(GO, assistant(SUMMARY, TEXT), NEXT),
            messages(assistant(SUMMARY, TEXT), NEXT)),
    "A23": (messages(user({**TEXT, "citation": None})), messages(user({**TEXT, "citations": []}))),
    "A24": (messages(GO, model="claude-fable-5-1", tool_choice={"type": "any"}),
            messages(GO, model="claude-fable-5", tool_choice={"type": "any"})),
    "A25": (messages(user(*[png(2001)] * 21)), messages(user(*[png(2001)] * 20))),
}  # fmt: skip

# -- OpenAI Chat Completions --------------------------------------------------------------


def call(id="c1", arguments="{}", **more):
    body = {"name": "run", "arguments": arguments}
    return {"id": id, "type": "function", "function": body, **more}


def asks(*calls):
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def tool(id="c1", content="ok"):
    return {"role": "tool", "tool_call_id": id, "content": content}


IMAGE = {
    "type": "image_url",
    "image_url": {"url": "data:image/png;base64,AA=="},
}
SIGNED = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
STREAMED = {"stream_options": {"include_usage": True}}
TOOLS = [{"type": "function", "function": {"name": "run"}}]

OPENAI_CHAT = {
    "C0": (messages({"role": "robot", "content": "x"}),
           messages({"role": "developer", "content": "x"})),
    "C1": (messages(GO, asks(call("a"), call("b")), tool("a")),
           messages(GO, asks(call("a"), call("b")), tool("b"), tool("a"))),
    "C2": (messages(GO, asks(call()), tool(), tool()),
           messages(GO, asks(call()), tool(), asks(call()), tool())),
    "C3": (messages(asks(call("a"), call("b")), tool("a"), GO, tool("b")),
           messages(asks(call("a"), call("b")), tool("b"), tool("a"), GO)),
    "C4": (messages(GO, {**DONE, "tool_calls": []}, NEXT), messages(GO, DONE, NEXT)),
    "C5": (messages(GO, {"role": "assistant", "content": None}),
           messages(GO, {"role": "assistant", "content": None, "refusal": "no"})),
    "C6": (messages(asks(call("x" * 65)), tool("x" * 65)),
           messages(asks(call("x" * 64)), tool("x" * 64))),
    "C7": (messages(asks(call(arguments={})), tool()),
           messages(asks(call(arguments="{oops")), tool())),
    "C8": (messages(asks(call()), tool(content=[IMAGE])), messages(asks(call()), tool(),
           user(IMAGE))),
    "C10": (messages(GO, **STREAMED), messages(GO, stream=True, **STREAMED)),
    "C11": (messages(GO, model="gpt-6.2-sol", tools=TOOLS),
            messages(GO, model="gpt-6.1-sol", tools=TOOLS)),
    "C12": (messages(GO, asks(call(**SIGNED)), tool(), asks(call()), tool(), model="gemini-3-pro"),
            messages(GO, asks(call()), tool(), GO, asks(call("a", **SIGNED), call("b")),
                     tool("a"), tool("b"), model="gemini-3-pro")),
}  # fmt: skip

# -- Ollama -------------------------------------------------------------------------------


def runs(*calls):
    """What a reply of Ollama's asks for, each call by its name or as it is."""
    named = [
        {"function": {"name": c, "arguments": {}}} if type(c) is str else c
        for c in calls
    ]
    return {"role": "assistant", "content": "", "tool_calls": named}


def ran(tool="run", **more):
    return {"role": "tool", "tool_name": tool, "content": "ok", **more}


def numbered(id, name="run", **body):
    return {"id": id, "function": {"name": name, "arguments": {}, **body}}


BARE = {"role": "tool", "content": "ok"}
OLLAMA = {
    "O0": (messages({"role": "developer", "content": "x"}),
           messages({"role": "system", "content": "x"})),
    "O1": (messages(GO, runs("run", "look"), ran()),
           messages(GO, runs("run", "look"), ran("look"), ran())),
    "O2": (messages(GO, runs("run"), ran(), ran()),
           messages(GO, runs("run", "run"), ran(), BARE)),
    "O3": (messages(runs("run", "look"), ran(), GO, ran("look")),
           messages(runs("run", "look"), BARE, BARE, GO)),
    "O4": (messages(runs(numbered("a", arguments="{}")), ran()),
           messages(runs(numbered("a", arguments={"x": "{}"})), ran(tool_call_id="a"))),
    "O5": (messages({**GO, "images": ["data:image/png;base64,AAAA"]}),
           messages({**GO, "images": ["AAAA", "AAA=", "AA\nAA"]})),
    "O6": (messages(GO, format="xml"), messages(GO, format={"type": "object"})),
}  # fmt: skip

# -- OpenAI Responses ---------------------------------------------------------------------


def items(*given, **head):
    return {"input": list(given), **head}


def asked(call_id="c1", **more):
    return {
        "type": "function_call",
        "call_id": call_id,
        "name": "run",
        "arguments": "{}",
        **more,
    }


def put(call_id="c1", output="ok"):
    return {
        "type": "function_call_output",
        "call_id": call_id,
        "output": output,
    }


def mused(id="rs_1", sealed="gAAAA"):
    return {
        "type": "reasoning",
        "id": id,
        "summary": [],
        "encrypted_content": sealed,
    }


def said(**more):
    part = {"type": "output_text", "text": "done", "annotations": []}
    return {
        "type": "message",
        "role": "assistant",
        "content": [part],
        "status": "completed",
        **more,
    }


REFERENCE = {"type": "item_reference", "id": "msg_1"}
TRIGGER = {"type": "compaction_trigger"}
CAME = [GO, mused(), asked(id="fc_1"), put(), NEXT]

OPENAI_RESPONSES = {
    "R0": (items(asked(arguments={}), put()), items(asked(arguments="{oops"), put())),
    "R1": (items(GO, asked("a"), asked("b"), put("a")),
           items(GO, asked("a"), asked("b", **{"async": True}), put("a"))),
    "R2": (items(GO, put()), items(GO, put(), previous_response_id="resp_1")),
    "R3": (items(GO, mused(), NEXT), items(GO, mused(), mused("rs_2"), said(id="msg_1"), NEXT)),
    "R4": (items(GO, asked(id="fc_1"), put(), NEXT), items(GO, asked(), put(), NEXT), CAME),
    "R5": (items(asked(id="msg_1"), put()), items(asked(id="fc_1"), put())),
    "R6": (items(GO, said(id="msg_1"), NEXT, said(id="msg_1")),
           items(GO, said(id="msg_1"), NEXT, said(id="msg_2"))),
    "R7": (items(GO, REFERENCE, store=False), items(GO, REFERENCE)),
    "R8": (items(GO, mused(sealed="gAAAB"), *CAME[2:]), items(*CAME), CAME),
    "R10": (items(GO, previous_response_id="resp_1", conversation="conv_1"),
            items(GO, previous_response_id="resp_1", conversation=None)),
    "R14": (items(TRIGGER, GO), items(GO, TRIGGER)),
    "C6": (items(asked("x" * 65), put("x" * 65)), items(asked("x" * 64), put("x" * 64))),
}  # fmt: skip

# -- Gemini -------------------------------------------------------------------------------


def contents(*given, **head):
    return {"contents": list(given), **head}


def parts(*given):
    return {"role": "user", "parts": list(given)}


def model(*given):
    return {"role": "model", "parts": list(given)}


def calls(name="run", signature=None, **body):
    part = {"functionCall": {"name": name, "args": {}, **body}}
    return {**part, "thoughtSignature": signature} if signature else part


def responds(name="run", **body):
    return {
        "functionResponse": {
            "name": name,
            "response": {"output": "ok"},
            **body,
        }
    }


ASK, SAID = parts({"text": "go"}), model({"text": "done"})
STEP = [ASK, model(calls(signature="c2ln")), parts(responds())]
CACHED = {"cachedContent": "cachedContents/1"}

GEMINI = {
    "G0": (contents(ASK, model(calls(args="{}")), parts(responds())),
           contents(ASK, model(calls(args={})), parts(responds()))),
    "G1": (contents({"role": "assistant", "parts": [{"text": "x"}]}, ASK),
           contents(ASK, model(calls()), {"role": "function", "parts": [responds()]})),
    "G2": (contents(ASK, model({"text": ""}), ASK),
           contents(ASK, model({"text": "", "thoughtSignature": "c2ln"}), ASK)),
    "G3": (contents(ASK, model(calls(), calls()), parts(responds())),
           contents(ASK, model(calls(), calls()), parts(responds(), responds()))),
    "G4": (contents(ASK, SAID, model(calls()), parts(responds())),
           contents(ASK, model(calls()), parts(responds()), model(calls()), parts(responds()))),
    "G5": (contents(ASK, model(calls()), parts(responds()), parts(responds())),
           contents(ASK, model(calls()), parts(responds()), ASK)),
    "G6": (contents(ASK, model(calls(id="1")), parts(responds(id="2"))),
           contents(ASK, model(calls("a"), calls("b")), parts(responds("b"), responds("a")))),
    "G7": (contents(ASK, model(calls()), parts(responds()), model="gemini-3-pro"),
           contents(ASK, model(calls()), parts(responds()), SAID, ASK, model="gemini-3-pro")),
    "G8": (contents(ASK, model(calls(signature="c2lo")), parts(responds())),
           contents(ASK, model(calls(signature="skip_thought_signature_validator")),
                    parts(responds())), STEP),
    "G11": (contents(ASK, SAID), contents(ASK, SAID, ASK)),
    "G12": (contents(ASK, tools=[{"codeExecution": {}}], **CACHED), contents(ASK, **CACHED)),
}  # fmt: skip

# -- Bedrock Converse ---------------------------------------------------------------------


def says(text):
    return {"text": text}


def uses(id="t1", name="run", **more):
    return {"toolUse": {"toolUseId": id, "name": name, "input": {}, **more}}


def returns(id="t1", text="ok", **more):
    return {"toolResult": {"toolUseId": id, "content": [says(text)], **more}}


def named(name):
    return {
        "document": {
            "format": "txt",
            "name": name,
            "source": {"bytes": "b2s="},
        }
    }


def point(ttl="5m"):
    return {"cachePoint": {"type": "default", "ttl": ttl}}


def claude(version, **more):
    return {"modelId": f"us.anthropic.claude-{version}-v1:0", **more}


GO_ON, WELL = user(says("go")), assistant(says("done"))
REASONED = {
    "reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}
}
REASONED_LATER = {
    "reasoningContent": {"reasoningText": {"text": "so", "signature": "c2lo"}}
}
REASONING = [GO_ON, assistant(REASONED, uses()), user(returns()),
             assistant(REASONED_LATER, says("so")), GO_ON]  # fmt: skip
BY_HAND = {"additionalModelRequestFields": {"thinking": {"type": "enabled"}}}
CONFIG = {
    "toolConfig": {
        "tools": [{"toolSpec": {"name": "run", "inputSchema": {"json": {}}}}]
    }
}

BEDROCK_CONVERSE = {
    "B0": (messages(user({"text": "go", "image": {}})), messages(user({"text": "go"}))),
    "B1": (messages(WELL, GO_ON), messages(GO_ON, WELL)),
    "B2": (messages(GO_ON, GO_ON), messages(user(says("go"), says("go")))),
    "B3": (messages(GO_ON, assistant(uses("a"), uses("b")), user(returns("a"))),
           messages(GO_ON, assistant(uses("a"), uses("b")), user(returns("b"), returns("a")))),
    "B4": (messages(GO_ON, assistant(uses("a")), user(returns("a"), returns("b"))),
           messages(GO_ON, assistant(uses("a")), user(returns("a")))),
    "B5": (messages(GO_ON, assistant(uses()), user(returns(), returns())),
           messages(GO_ON, assistant(uses("a"), uses("b")), user(returns("a"), returns("b")))),
    "B6": (messages(GO_ON, assistant(uses()), user(returns(content=[], status="error"))),
           messages(GO_ON, assistant(uses()), user(returns(content=[], status="success")))),
    "B7": (messages(GO_ON, assistant(uses("t.1")), user(returns("t.1"))),
           messages(GO_ON, assistant(uses("t_1-A", "x" * 64)), user(returns("t_1-A")))),
    "B8": (messages(GO_ON, assistant(uses()), user(returns()), **claude("sonnet-4-5")),
           messages(GO_ON, assistant(uses()), user(returns()), **claude("sonnet-4-5"), **CONFIG)),
    "B9": (messages(GO_ON, WELL, **claude("opus-4-6")),
           messages(GO_ON, WELL, **claude("sonnet-4-5"))),
    "B10": (messages(user(says("go"), point(), says("on"), point("1h"))),
            messages(user(says("go"), point("1h"), says("on"), point()))),
    "B11": (messages(GO_ON, assistant(says("so"), uses()), user(returns()), **BY_HAND),
            messages(GO_ON, assistant(REASONED, uses()), user(returns()), **BY_HAND)),
    "B12": (messages(user(says("go"), named("a_file.txt"))),
            messages(user(says("go"), named("a file (1)")))),
    "B13": (messages(*REASONING[:3], assistant(REASONED, says("so")), GO_ON),
            messages(GO_ON, assistant(uses()), user(returns()), assistant(says("so")), GO_ON),
            REASONING),
}  # fmt: skip

EXAMPLES = {
    "anthropic": ANTHROPIC,
    "openai-chat": OPENAI_CHAT,
    "openai-responses": OPENAI_RESPONSES,
    "gemini": GEMINI,
    "ollama": OLLAMA,
    "bedrock-converse": BEDROCK_CONVERSE,
}
