"""Real calls of LiteLLM to a scripted upstream on the loopback."""

import json
import os
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = (
    "True"  # else the import asks the network
)

import litellm

from tests.integrations import outputs
from tests.integrations.outputs import GREP

TOOLS = {"look": outputs.big, "turn": outputs.page}
DEFINITIONS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"Gives what is at a number: {name}.",
            "parameters": {
                "type": "object",
                "properties": {"n": {"type": "integer"}},
            },
        },
    }
    for name in TOOLS
]
USAGE = {
    "prompt_tokens": 1_000,
    "completion_tokens": 10,
    "total_tokens": 1_010,
    "prompt_tokens_details": {"cached_tokens": 700},
}
TOO_LONG = {
    "error": {
        "message": "This model's maximum context length is 8000 tokens. However, your messages "
        "resulted in 15500 tokens. Please reduce the length of the messages.",
        "type": "invalid_request_error",
        "param": "messages",
        "code": "context_length_exceeded",
    }
}
_IDS = count(1)


def calls(*asked):
    """A message that calls tools: pairs of name and arguments."""
    made = [
        {
            "id": f"call_{next(_IDS)}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(args)},
        }
        for name, args in asked
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def says(text):
    return {"role": "assistant", "content": text}


def recalls(request):
    """A message that searches what the last notice of the prompt names."""
    ref = outputs.refs_in(text_of(request["messages"]))[-1]
    return calls((GREP, {"tool_call_id": ref, "pattern": "needle"}))


def text_of(messages):
    return "\n".join(str(message.get("content") or "") for message in messages)


class Upstream(ThreadingHTTPServer):
    """Answers with what a function of a request says: a message, or an error."""

    def __init__(self, script):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script, self.sent = script, []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(
            self.rfile.read(int(self.headers["Content-Length"]))
        )
        self.server.sent.append(request)
        step = self.server.script(request)
        if "error" in step:
            self._give(400, "application/json", json.dumps(step))
        elif request.get("stream"):
            chunks = [
                {
                    "choices": [
                        {"index": 0, "delta": step, "finish_reason": None}
                    ]
                },
                {
                    "choices": [
                        {"index": 0, "delta": {}, "finish_reason": "stop"}
                    ]
                },
                {"choices": [], "usage": USAGE},
            ]
            head = {
                "id": f"c{next(_IDS)}",
                "object": "chat.completion.chunk",
                "created": 1,
                "model": "m",
            }
            lines = [
                f"data: {json.dumps({**head, **chunk})}\n\n"
                for chunk in chunks
            ]
            self._give(
                200, "text/event-stream", "".join([*lines, "data: [DONE]\n\n"])
            )
        else:
            reason = "tool_calls" if step.get("tool_calls") else "stop"
            choice = {"index": 0, "message": step, "finish_reason": reason}
            head = {
                "id": f"c{next(_IDS)}",
                "object": "chat.completion",
                "created": 1,
                "model": "m",
            }
            body = {**head, "choices": [choice], "usage": USAGE}
            self._give(200, "application/json", json.dumps(body))

    def _give(self, status, kind, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@contextmanager
def upstream(script):
    """A server that follows steps, or a function of the request."""
    if isinstance(script, list):
        steps = iter(script)

        def following(request):
            step = next(steps)
            return step(request) if callable(step) else step

    server = Upstream(following if isinstance(script, list) else script)
    thread = threading.Thread(
        target=server.serve_forever, args=(0.01,), daemon=True
    )
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def installed(ullage):
    """A callback, as long as a test runs."""
    litellm.callbacks.append(ullage)
    try:
        yield ullage
    finally:
        litellm.logging_callback_manager.remove_callback_from_all_lists(ullage)


async def ask(server, messages, conversation=None, **more):
    """One call, as an application makes it."""
    metadata = (
        {"metadata": {"session_id": conversation}} if conversation else {}
    )
    return await litellm.acompletion(
        model="openai/gpt-4.1",
        messages=messages,
        api_base=server.url,
        api_key="none",
        max_retries=0,
        **{"tools": DEFINITIONS, **metadata, **more},
    )


def run_tool(call):
    """What a tool of the application answers."""
    return TOOLS[call.function.name](**json.loads(call.function.arguments))


async def run(ullage, server, messages, conversation, **more):
    """The loop of an application; `messages` is what it keeps."""
    tools = [*DEFINITIONS, *ullage.tools]
    while True:
        before = list(messages)
        reply = await ask(server, messages, conversation, tools=tools, **more)
        message = reply.choices[0].message
        messages.append(message)
        if not message.tool_calls:
            return message.content
        for call in message.tool_calls:
            if ullage.owns(call):
                messages.append(await ullage.open(conversation, call, before))
            else:
                given = run_tool(call)
                messages.append(
                    {"role": "tool", "tool_call_id": call.id, "content": given}
                )
