"""Generated histories: what agents really produce, in every wire format.

A history is drawn as a list of turns that know nothing of any format; `wire` writes it down
in one. Parallel calls, errors, empty and huge outputs, unicode, repeated ids, duplicates.
"""

import json
from functools import partial
from itertools import product

from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from ullage.core.history.transcript import leaves_of
from ullage.core.values.messages import ToolCall, ToolResult
from ullage.policy.stages.default import DEFAULT
from ullage.policy.stages.pressure import over_or_pays, over_share
from ullage.policy.stages.prune import prune
from ullage.policy.stages.record import record

TOOLS = ("read_file", "bash", "grep", "web_fetch", "lookup")
SEEDS = (
    "def f(x):\n    return x + 1\n",
    "2026-11-21 ERROR connection refused by host 10.0.0.7\n",
    "名前は「猫」である。\n",
    "🙂👩‍👩‍👧 naïve café e\u0301\n",
    "\x00\x1b[31mred\x1b[0m\r\n",
    "aGVsbG8gd29ybGQ",
    " ",
)


CUTS_ALWAYS = replace(DEFAULT, without_recall=None)
"""The default policy, with the recall tools or without."""

EAGER = replace(
    CUTS_ALWAYS,
    name="eager",
    under_pressure=(
        partial(
            record,
            is_due=partial(
                over_or_pays,
                high=0.7,
                times=15,
                tail_chars=16_000,
                least_calls=50,
            ),
            least_share=0.1,
        ),
    ),
)
"""The default policy, with batches so small that they happen in short conversations."""


def calls_and_results(window, protected):
    """What a call was given and what it gave, the oldest first."""
    messages = window.transcript.messages[: protected[0]]
    return [
        (index, number, item)
        for index, message in enumerate(messages)
        for number, item, _ in leaves_of(message)
        if isinstance(message.parts[number], (ToolCall, ToolResult))
    ]


PRUNING = replace(
    CUTS_ALWAYS,
    name="pruning",
    under_pressure=(
        partial(
            prune,
            wanted=partial(over_share, high=0.7, low=0.0),
            candidates=calls_and_results,
            least_share=0.1,
        ),
    ),
)
"""A short notice in the place of each old result and argument; the messages stay."""

HUGE, LARGE = "(a huge argument)", "(a large argument)"
"""Stand for 3,000 and 900 characters of argument, so that a failing example can be read."""


def argument_of(call):
    return (
        "new text\n" * _LINES[call.argument]
        if call.argument in _LINES
        else call.argument
    )


_LINES = {HUGE: 340, LARGE: 100}


class Call(Struct, frozen=True):
    tool: str
    argument: str
    output: str
    failed: bool = False
    items: int = 0
    """0: the result is a string; else it is that many text blocks."""


class Turn(Struct, frozen=True):
    user: str | None = None
    said: str = ""
    calls: tuple[Call, ...] = ()
    thought: bool = False


def _repeated(number, mark):
    """One of the seeds again and again, to the length that stands in the number."""
    size, seed = divmod(number, len(SEEDS))
    return f"{mark}\n" + (SEEDS[seed] * (size // len(SEEDS[seed]) + 1))[:size]


def _text(least, most):
    return st.builds(
        _repeated,
        st.integers(least * len(SEEDS), most * len(SEEDS)),
        st.integers(0, 999),
    )


def _table(rows):
    return json.dumps(
        [{"id": n, "name": f"row {n}", "v": n * n} for n in range(rows)]
    )


OUTPUTS = {
    "empty": st.just(""),
    "small": st.text(max_size=40),
    "big": _text(200, 3_000),
    "huge": _text(3_000, 60_000),
    "table": st.integers(1, 400).map(_table),
    "seen": st.just("the same output every time\n" * 60),
}
"""What a tool returns: nothing, text of any script and length, JSON, what it returned before."""
CALLS = tuple(
    product(
        TOOLS,
        ("a.py", "b.py", "", "", HUGE, HUGE),
        OUTPUTS,
        (False, True),
        (0, 0, 0, 1, 2),
    )
)
"""Tool, argument ("": any short one), kind of output, whether it failed, how many items.

They are drawn at once, by number: each draw takes its time, and so does `sampled_from` many.
"""


@st.composite
def _calls(draw):
    tool, argument, output, failed, items = CALLS[
        draw(st.integers(0, len(CALLS) - 1))
    ]
    argument = argument or draw(st.text(max_size=8))
    return Call(tool, argument, draw(OUTPUTS[output]), failed, items)


def sendable(turn):
    """The turn, its signed arguments no larger than the smallest window holds.

    What was signed may not be shortened; too much of it is `OverLimitError`.
    """
    if not turn.thought:
        return turn
    shorter = [
        replace(call, argument=LARGE) if call.argument == HUGE else call
        for call in turn.calls
    ]
    return replace(turn, calls=tuple(shorter))


SAID = ("", "Let me look.", "I now know what is wrong: the cache.")
TURNS = tuple(product((False, False, True), SAID, (False, True), range(4)))
"""Whether the user speaks, what the model says, whether it thought, how often it calls."""


@st.composite
def _turns(draw):
    asked, said, thought, count = TURNS[draw(st.integers(0, len(TURNS) - 1))]
    user = "u" + draw(st.text(min_size=1, max_size=60)) if asked else None
    return sendable(
        Turn(user, said, tuple(draw(calls) for _ in range(count)), thought)
    )


calls, turns = _calls(), _turns()
histories = st.lists(turns, min_size=1, max_size=14)
few = st.lists(turns, min_size=3, max_size=4)


def wire(format, turns, *, reuse_ids=False, start=0):
    """The turns as wire messages of a format, each beginning with the user's task."""
    messages = [] if start else [user(format, "Find out why the tests fail.")]
    if format == "gemini":
        return messages + _gemini_history(turns, reuse_ids, start)
    write = WRITERS[format]
    for number, turn in enumerate(turns, start):
        answered = number > start and not turns[number - start - 1].calls
        if format == "openai-responses" and answered and turn.user is None:
            turn = replace(
                turn, user="Go on."
            )  # else its items are one reply with those before
        messages += write(turn, number, reuse_ids)
    return in_turn(messages) if format == "bedrock-converse" else messages


def in_turn(messages):
    """Messages of Converse, of which no two of one role stand in a row (B2)."""
    made = []
    for message in messages:
        role = message["role"]
        if made and made[-1]["role"] == role == "user":
            made[-1] = {
                **message,
                "content": [*made[-1]["content"], *message["content"]],
            }
            continue
        if made and made[-1]["role"] == role:
            made.append(user("bedrock-converse", "Go on."))
        made.append(message)
    return made


def user(format, text):
    """What the user says."""
    if format == "bedrock-converse":
        return {"role": "user", "content": [{"text": text}]}
    if format == "gemini":
        return {"role": "user", "parts": [{"text": text}]}
    return {"role": "user", "content": text}


def _ids(turn, number, reuse):
    return [
        f"call_{n}" if reuse else f"call_{number}_{n}"
        for n in range(len(turn.calls))
    ]


def _openai(turn, number, reuse):
    if turn.user is not None:
        yield {"role": "user", "content": turn.user}
    message = {
        "role": "assistant",
        "content": turn.said or ("done" if not turn.calls else None),
    }
    ids = _ids(turn, number, reuse)
    if turn.calls:
        message["tool_calls"] = [
            {
                "id": id,
                "type": "function",
                "function": {
                    "name": c.tool,
                    "arguments": json.dumps({"path": argument_of(c)}),
                },
            }
            for id, c in zip(ids, turn.calls, strict=True)
        ]
    yield message
    for id, call in zip(ids, turn.calls, strict=True):
        content = call.output
        if call.items and call.output:
            content = [{"type": "text", "text": call.output}] * call.items
        yield {"role": "tool", "tool_call_id": id, "content": content}


def _ollama(turn, number, reuse):
    """Without ids where ids are reused, and results that do not name their tool either, as older
    servers and clients write them."""
    if turn.user is not None:
        yield {"role": "user", "content": turn.user}
    message = {
        "role": "assistant",
        "content": turn.said or ("done" if not turn.calls else ""),
    }
    if turn.thought:
        message["thinking"] = "hm " * 50
    ids = _ids(turn, number, False)
    if turn.calls:
        message["tool_calls"] = [
            {
                **({} if reuse else {"id": id}),
                "function": {
                    "name": c.tool,
                    "arguments": {"path": argument_of(c)},
                },
            }
            for id, c in zip(ids, turn.calls, strict=True)
        ]
    yield message
    for id, call in zip(ids, turn.calls, strict=True):
        named = {} if reuse else {"tool_name": call.tool, "tool_call_id": id}
        yield {"role": "tool", **named, "content": call.output}


def _responses(turn, number, reuse):
    """One item after the other, with the ids that the server gave them."""
    if turn.user is not None:
        yield {"role": "user", "content": turn.user}
    if turn.thought:
        sealed = "gAAAAA" + f"{number:04}" * 300
        yield {
            "type": "reasoning",
            "id": f"rs_{number}",
            "summary": [{"type": "summary_text", "text": "hm"}],
            "encrypted_content": sealed,
        }
    if turn.said or not turn.calls:
        part = {
            "type": "output_text",
            "text": turn.said or "done",
            "annotations": [],
        }
        yield {
            "type": "message",
            "role": "assistant",
            "id": f"msg_{number}",
            "status": "completed",
            "content": [part],
        }
    ids = _ids(turn, number, reuse)
    for n, (id, call) in enumerate(zip(ids, turn.calls, strict=True)):
        yield {
            "type": "function_call",
            "id": f"fc_{number}_{n}",
            "call_id": id,
            "name": call.tool,
            "arguments": json.dumps({"path": argument_of(call)}),
            "status": "completed",
        }
    for id, call in zip(ids, turn.calls, strict=True):
        output = call.output
        if call.items and call.output:
            output = [{"type": "input_text", "text": call.output}] * call.items
        yield {"type": "function_call_output", "call_id": id, "output": output}


def _anthropic(turn, number, reuse):
    if turn.user is not None:
        yield {"role": "user", "content": turn.user}
    ids = _ids(turn, number, False)
    blocks = []
    if turn.thought:
        blocks.append(
            {
                "type": "thinking",
                "thinking": "hm " * 50,
                "signature": f"c2ln{number}",
            }
        )
    if turn.said or not turn.calls:
        blocks.append({"type": "text", "text": turn.said or "done"})
    blocks += [
        {
            "type": "tool_use",
            "id": id,
            "name": c.tool,
            "input": {"path": argument_of(c)},
        }
        for id, c in zip(ids, turn.calls, strict=True)
    ]
    yield {"role": "assistant", "content": blocks}
    results = [
        _anthropic_result(id, c) for id, c in zip(ids, turn.calls, strict=True)
    ]
    if results:
        yield {"role": "user", "content": results}


def _anthropic_result(id, call):
    block = {"type": "tool_result", "tool_use_id": id, "content": call.output}
    if call.items and call.output.strip():
        block["content"] = [{"type": "text", "text": call.output}] * call.items
    if call.failed:
        block["is_error"] = True
    return block


def _converse(turn, number, reuse):
    """A blank text is no content: a result has none, and the user says something else."""
    if turn.user is not None:
        yield user("bedrock-converse", turn.user)
    ids = _ids(turn, number, False)
    blocks = []
    if turn.thought:
        thought = {"text": "hm " * 50, "signature": f"c2ln{number}"}
        blocks.append({"reasoningContent": {"reasoningText": thought}})
    if turn.said or not turn.calls:
        blocks.append({"text": turn.said or "done"})
    blocks += [
        {
            "toolUse": {
                "toolUseId": id,
                "name": c.tool,
                "input": {"path": argument_of(c)},
            }
        }
        for id, c in zip(ids, turn.calls, strict=True)
    ]
    yield {"role": "assistant", "content": blocks}
    results = [
        _converse_result(id, c) for id, c in zip(ids, turn.calls, strict=True)
    ]
    if results:
        yield {"role": "user", "content": results}


def _converse_result(id, call):
    """A result: a text, several, or where the output is JSON that."""
    content = (
        [{"text": call.output}] * max(call.items, 1)
        if call.output.strip()
        else []
    )
    if call.items == 2 and call.output[:1] + call.output[-1:] == "[]":
        content = [{"json": {"rows": json.loads(call.output)}}]
    block = {"toolUseId": id, "content": content}
    if call.failed:
        block |= {
            "content": content or [{"text": "failed"}],
            "status": "error",
        }
    return {"toolResult": block}


def _gemini(turn, number, reuse, signed=False):
    """Without ids where ids are reused, as older models and many clients write them.

    Signed, the first call of a step carries a signature; without calls, the text does.
    """
    if turn.user is not None:
        yield user("gemini", turn.user)
    ids = [{} if reuse else {"id": id} for id in _ids(turn, number, False)]
    parts = [{"text": "hm " * 50, "thought": True}] if turn.thought else []
    if turn.said or not turn.calls:
        parts.append({"text": turn.said or "done"})
    parts += [
        {
            "functionCall": {
                **id,
                "name": c.tool,
                "args": {"path": argument_of(c)},
            }
        }
        for id, c in zip(ids, turn.calls, strict=True)
    ]
    if signed:
        first = next(
            (part for part in parts if "functionCall" in part), parts[-1]
        )
        first["thoughtSignature"] = f"c2ln{number:04}"
    yield {"role": "model", "parts": parts}
    results = [
        _gemini_result(id, c) for id, c in zip(ids, turn.calls, strict=True)
    ]
    if results:
        yield {"role": "user", "parts": results}


def _gemini_history(turns, reuse, start):
    """Contents of the turns: signed all or none, and with the user between two replies (G4)."""
    contents = []
    for number, turn in enumerate(turns, start):
        for content in _gemini(turn, number, reuse, signed=turns[0].thought):
            if contents and contents[-1]["role"] == content["role"] == "model":
                contents.append(user("gemini", "go on"))
            contents.append(content)
    if contents and contents[-1]["role"] == "model":
        contents.append(user("gemini", "and now?"))
    return contents


def _gemini_result(id, call):
    """A result as clients wrap it: an error, a text, a JSON value, or no wrapper at all."""
    try:
        value = json.loads(call.output, parse_constant=str)
    except ValueError:
        value = call.output
    response = (
        {"result": call.output},
        {"output": value},
        {"found": value, "more": False},
    )
    given = {"error": call.output} if call.failed else response[call.items]
    return {"functionResponse": {**id, "name": call.tool, "response": given}}


MODEL = {
    "openai-chat": "gpt-4.1",
    "openai-responses": "gpt-5.6",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-pro",
    "ollama": "gpt-oss:120b-cloud",
    "bedrock-converse": "anthropic.claude-sonnet-4-5-20250929-v1:0",
}


APART = tuple(name for name in MODEL if name != "bedrock-converse")
"""The wires on which the user may say several messages in a row, and a summary is one of its own.

Converse has one message for all that the user says at once (B2): what is added to a view there goes
into a message of the caller's."""


def request(format, messages, **more):
    """A whole request around the messages."""
    if format == "gemini":
        system = {"parts": [{"text": "You are an agent."}]}
        head = {
            "systemInstruction": system,
            "generationConfig": {"maxOutputTokens": 1_000},
        }
        return {"model": MODEL[format], **head, "contents": messages, **more}
    if format == "bedrock-converse":
        tools = {"tools": [converse_tool()]}
        head = {
            "system": [{"text": "You are an agent."}],
            "inferenceConfig": {"maxTokens": 1_000},
        }
        return {
            "modelId": MODEL[format],
            **head,
            "toolConfig": tools,
            "messages": messages,
            **more,
        }
    if format == "openai-responses":
        head = {
            "instructions": "You are an agent.",
            "max_output_tokens": 1_000,
            "store": False,
        }
        return {"model": MODEL[format], **head, "input": messages, **more}
    if format == "ollama":
        head = {"options": {"num_predict": 1_000}}
        return {"model": MODEL[format], **head, "messages": messages, **more}
    head = {"system": "You are an agent."} if format == "anthropic" else {}
    return {
        "model": MODEL[format],
        **head,
        "max_tokens": 1_000,
        "messages": messages,
        **more,
    }


def converse_tool():
    """Where calls are in the history, tools have to be in the request (B8). It is none of these."""
    return {
        "toolSpec": {
            "name": "run_it",
            "inputSchema": {"json": {"type": "object"}},
        }
    }


WRITERS = {
    "openai-chat": _openai,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "ollama": _ollama,
    "bedrock-converse": _converse,
}
