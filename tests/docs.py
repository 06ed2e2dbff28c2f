"""What the code of the pages in depth is run with; the user's run as pasted (`tests.site`).

The blocks of one file are run in order in one set of names, as a reader would type them, in an
empty folder. A client of a provider is a stand-in with canned replies: it calls the first of
the caller's tools once, and then says that it is done. The names of `GIVEN` are the
reader's own. A comment before a block may set up more:

    <!-- setup
    messages = [...]
    -->

A block of `ullage` commands whose output shall be checked is opened by ``console checked``; a
line "…" in it stands for any lines. The commands of every other console block must at least
exist, with the options they are given.
"""

import re
from types import ModuleType, SimpleNamespace

from msgspec import Struct

_BLOCK = re.compile(
    r"^<!-- setup\n(?P<setup>.*?)^-->"
    r"|^(?P<fence>`{3,})(?P<info>[^\n]*)\n(?P<body>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)


class Block(Struct, frozen=True):
    """A fenced block, or a set-up: its kind, its text and the line it begins at."""

    kind: str
    text: str
    line: int


def blocks_of(text):
    """The blocks of a Markdown file, in order."""
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        if found["setup"] is not None:
            yield Block("setup", found["setup"], line)
        else:
            yield Block(found["info"].strip(), found["body"], line)


# ── stand-ins for the providers ──────────────────────────────────────────────────────────


class Fields(SimpleNamespace):
    """An object as the SDKs give them: fields, and `model_dump`."""

    def model_dump(self, **_):
        """The fields as plain values."""
        return {
            key: _dumped(value)
            for key, value in vars(self).items()
            if value is not None
        }


def _dumped(value):
    if isinstance(value, list):
        return [_dumped(item) for item in value]
    return value.model_dump() if isinstance(value, Fields) else value


def claude(**request):
    """A canned reply of Anthropic Messages."""
    content = [Fields(type="text", text="It is done.")]
    if _calls_a_tool(request):
        name = request["tools"][0]["name"]
        content = [
            Fields(
                type="tool_use",
                id="toolu_1",
                name=name,
                input={"path": "app.log"},
            )
        ]
    usage = Fields(
        input_tokens=100,
        cache_read_input_tokens=0,
        cache_creation_input_tokens=0,
        output_tokens=10,
    )
    stop = content[0].type if content[0].type == "tool_use" else "end_turn"
    return Fields(
        role="assistant", content=content, usage=usage, stop_reason=stop
    )


def chat(**request):
    """A canned reply of OpenAI Chat Completions."""
    message = Fields(role="assistant", content="It is done.", tool_calls=None)
    if _calls_a_tool(request):
        name = request["tools"][0]["function"]["name"]
        function = Fields(name=name, arguments='{"path": "app.log"}')
        call = Fields(id="call_1", type="function", function=function)
        message = Fields(role="assistant", content=None, tool_calls=[call])
    usage = Fields(
        prompt_tokens=100, completion_tokens=10, prompt_tokens_details=None
    )
    stop = "tool_calls" if message.tool_calls else "stop"
    return Fields(
        choices=[Fields(message=message, finish_reason=stop)], usage=usage
    )


def _calls_a_tool(request):
    """Whether the canned reply is a call: once, if there is a tool to call."""
    answered = any(_is_answer(message) for message in request["messages"])
    return bool(request.get("tools")) and not answered


def _is_answer(message):
    content = (
        message.get("content")
        if isinstance(message, dict)
        else message.content
    )
    role = message["role"] if isinstance(message, dict) else message.role
    return role == "tool" or (role == "user" and isinstance(content, list))


def _awaited(reply):
    async def create(**request):
        return reply(**request)

    return create


def _client(messages, completions):
    """A class of clients with what both SDKs call their endpoints."""

    def make(*_, **__):
        create = SimpleNamespace(create=completions)
        chat = SimpleNamespace(completions=create)
        return SimpleNamespace(
            messages=SimpleNamespace(create=messages), chat=chat
        )

    return make


def stand_ins():
    """Modules to stand in for the SDKs, by name."""
    anthropic, openai = ModuleType("anthropic"), ModuleType("openai")
    anthropic.Anthropic = openai.OpenAI = _client(claude, chat)
    anthropic.AsyncAnthropic = openai.AsyncOpenAI = _client(
        _awaited(claude), _awaited(chat)
    )
    return {"anthropic": anthropic, "openai": openai}


def run(call):
    """The reader's own tools: answers any call in the format it was made in."""
    if call.type == "tool_use":
        return {
            "type": "tool_result",
            "tool_use_id": call.id,
            "content": "all is well",
        }
    return {"role": "tool", "tool_call_id": call.id, "content": "all is well"}


_SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOLS = [
    {
        "name": "read_log",
        "description": "Reads a log.",
        "input_schema": _SCHEMA,
    }
]
GIVEN = {"TOOLS": TOOLS, "run": run}
