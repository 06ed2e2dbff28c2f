"""All vendors at one address, for programs that read a base URL from their environment.

    with everywhere(reader_model) as vendors:
        subprocess.run([…], env={**os.environ, **vendors.environment})
        vendors.requests("anthropic")        what was asked in this format, in order

`reader_model` plays a model that works: it calls the caller's first tool, searches what was cut of
the result, and answers.
"""

import json
import re
import threading
from contextlib import ExitStack, contextmanager
from http.server import ThreadingHTTPServer

from tests.servers.loopback import _PATHS, Captured, Provider, _Answering
from tests.servers.replies import Call, Reply

_RECALL = re.compile(r"\w*get_continuation")
_OWN = re.compile(rf"{_RECALL.pattern}|submit")
_NOTICE = re.compile(r'get_continuation\(tool_call_id=\\*"([\w-]+)')
_VALUES = {
    "integer": 1,
    "number": 1,
    "boolean": True,
    "array": [],
    "object": {},
}
_SCHEMAS = (
    "input_schema",
    "inputSchema",
    "parameters",
    "parametersJsonSchema",
    "parameters_json_schema",
)
_RESULTS = ("tool_result", "function_call_output")
ANSWER = "The disk was full."
"""What `reader_model` says in the end."""


class Vendors:
    """The vendors, and what they were asked.

    Attributes:
        url: where they listen, without a path.
    """

    def __init__(self, providers):
        self.url, self._providers = "", providers

    @property
    def environment(self):
        """Variables that lead the official clients here, with keys that open nothing."""
        keys = ("ANTHROPIC", "OPENAI", "GEMINI", "GOOGLE")
        return {
            **{f"{name}_API_KEY": "none" for name in keys},
            "ANTHROPIC_BASE_URL": self.url,
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "OPENAI_API_BASE": f"{self.url}/v1",
            "GOOGLE_GEMINI_BASE_URL": self.url,
            "OLLAMA_HOST": self.url,
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": self.url,
            "AWS_ACCESS_KEY_ID": "none",
            "AWS_SECRET_ACCESS_KEY": "none",
            "AWS_REGION": "us-east-1",
        }

    def requests(self, format):
        """The requests of one format, in the order they came in."""
        return self._providers[format].requests

    def provider_at(self, path):
        """The provider that answers a path, if there is one."""
        formats = (
            name for name, endings in _PATHS.items() if path.endswith(endings)
        )
        return self._providers.get(next(formats, ""))


@contextmanager
def everywhere(replies, *, strict=True):
    """All vendors on the loopback, for as long as the block lasts.

    Args:
        replies: a function from a `tests.servers.Captured` to a reply.
        strict: refuse what breaks a rule of the vendor, with the vendor's 400.
    """
    with (
        ThreadingHTTPServer(("127.0.0.1", 0), _AnsweringAll) as http,
        ExitStack() as stack,
    ):
        http.vendors = vendors = Vendors(
            {
                name: Provider(
                    name,
                    replies,
                    strict=strict,
                    limit_tokens=None,
                    stack=stack,
                )
                for name in _PATHS
            }
        )
        vendors.url = f"http://127.0.0.1:{http.server_address[1]}"
        thread = threading.Thread(
            target=http.serve_forever, kwargs={"poll_interval": 0.02}
        )
        thread.start()
        try:
            yield vendors
        finally:
            http.shutdown()
            thread.join()


class _AnsweringAll(_Answering):
    def do_GET(self):
        self._say(404, {"content-type": "application/json"}, b'{"error": {}}')

    def do_POST(self):
        raw = self.rfile.read(int(self.headers["content-length"]))
        provider = self.server.vendors.provider_at(self.path.partition("?")[0])
        if provider is None:
            self.do_GET()
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        self._say(
            *provider.answer(
                Captured(self.path, headers, raw, json.loads(raw))
            )
        )


def reader_model(captured):
    """A call of the caller's first tool; a search in what was cut; then the answer."""
    tools = dict(_tools_in(captured.body))
    calls = [name for name in tools if not _OWN.fullmatch(name)]
    recalls = [name for name in tools if _RECALL.fullmatch(name)]
    results = sum(_is_result(part) for part in _dicts_in(captured.body))
    notice = _NOTICE.search(captured.raw.decode())
    if results == 0 and calls:
        return Reply("", [Call(calls[0], _arguments_for(tools[calls[0]]))])
    if results == 1 and recalls and notice:
        arguments = {"tool_call_id": notice[1], "pattern": "full"}
        taken = tools[recalls[0]]["properties"]
        arguments = {
            name: arguments[name] for name in arguments if name in taken
        }
        return Reply("", [Call(recalls[0], arguments)])
    if "submit" in tools:  # how Inspect's agents end
        return Reply("", [Call("submit", {"answer": ANSWER})])
    return ANSWER


def _tools_in(body):
    """The name and the schema of each tool."""
    listed = body.get("tools") or body.get("toolConfig", {}).get("tools", ())
    for tool in listed:
        inner = tool.get("function") or tool.get("toolSpec") or tool
        for definition in tool.get("functionDeclarations") or [inner]:
            schemas = (definition.get(key) for key in _SCHEMAS)
            schema = next(filter(None, schemas), {})
            yield definition.get("name", ""), schema.get("json", schema)


def _arguments_for(schema):
    properties = schema.get("properties", {})
    needed = schema.get("required", properties)
    return {
        name: _VALUES.get(
            str(properties.get(name, {}).get("type")).lower(), "app.log"
        )
        for name in needed
    }


def _is_result(part):
    is_typed = part.get("type") in _RESULTS or part.get("role") == "tool"
    return is_typed or "functionResponse" in part or "toolResult" in part


def _dicts_in(value):
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, dict | list):
            yield from _dicts_in(item)
