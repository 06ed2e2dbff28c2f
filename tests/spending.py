"""What the tests of budgets share: sessions, requests, and a provider that reports usage."""

from tests import histories
from ullage import AsyncSession, Limits, Session
from ullage.wires import FORMATS

FORMAT_NAMES = tuple(FORMATS)
OUTPUT_TOKENS = 1_000
LIMITS = Limits(window_tokens=20_000)
TOOL = {
    "openai-chat": {
        "type": "function",
        "function": {"name": "bash", "parameters": {}},
    },
    "openai-responses": {
        "type": "function",
        "name": "bash",
        "parameters": {},
        "strict": False,
    },
    "anthropic": {
        "name": "bash",
        "description": "Runs.",
        "input_schema": {"type": "object"},
    },
    "gemini": {
        "functionDeclarations": [{"name": "bash", "description": "Runs."}]
    },
    "ollama": {
        "type": "function",
        "function": {"name": "bash", "parameters": {}},
    },
    "bedrock-converse": {
        "toolSpec": {"name": "bash", "inputSchema": {"json": {}}}
    },
}
NO_CALLS = {
    "openai-chat": ("tool_choice", "none"),
    "openai-responses": ("tool_choice", "none"),
    "anthropic": ("tool_choice", {"type": "none"}),
    "gemini": ("toolConfig", {"functionCallingConfig": {"mode": "NONE"}}),
}
"""How a request forbids its tools; where there is no word for it, it has none."""


def new_session(format="openai-chat", **more):
    return Session(
        histories.MODEL[format], **{"limits": LIMITS, "format": format, **more}
    )


def new_async_session(**more):
    return AsyncSession("gpt-4.1", limits=LIMITS, format="openai-chat", **more)


def request(format="openai-chat", turns=1, *, tools=True, **more):
    """A request that waits for the model: its last turn's calls are answered."""
    call = histories.Call("bash", "a.py", "all is well\n" * 20)
    messages = histories.wire(format, [histories.Turn(calls=(call,))] * turns)
    return histories.request(
        format, messages, **(tools_of(format) if tools else {}), **more
    )


def tools_of(format):
    """The field of a request with the one tool."""
    if format == "bedrock-converse":
        return {"toolConfig": {"tools": [TOOL[format]]}}
    return {"tools": [TOOL[format]]}


def reply(format="openai-chat", prompt=1_000, output=100, **more):
    """A reply that reports so many tokens."""
    match format:
        case "openai-chat":
            return {
                "usage": {
                    "prompt_tokens": prompt,
                    "completion_tokens": output,
                },
                **more,
            }
        case "bedrock-converse":
            counts = {"inputTokens": prompt, "outputTokens": output}
            return {"usage": counts, **more}
        case "gemini":
            counts = {
                "promptTokenCount": prompt,
                "candidatesTokenCount": output,
            }
            return {"usageMetadata": counts, **more}
        case "ollama":
            return {"prompt_eval_count": prompt, "eval_count": output, **more}
        case _:
            return {
                "usage": {"input_tokens": prompt, "output_tokens": output},
                **more,
            }


def greedy_reply(session):
    """A reply of a provider that uses all it may: the worst case of the newest view."""
    window = session.window
    return reply(
        prompt=window.calibration.upper(window.tokens), output=OUTPUT_TOKENS
    )


def most_of(session):
    """The tokens of that reply."""
    window = session.window
    return window.calibration.upper(window.tokens) + OUTPUT_TOKENS


def is_wrap_up(view):
    return view.get("tool_choice") == "none"
