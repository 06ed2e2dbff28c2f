"""The server, and the SDKs that talk to it. See `tests.servers`."""

import json
import threading
from contextlib import ExitStack, closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from msgspec import Struct

from tests.servers.refusals import Refusal, refused, too_long
from tests.servers.replies import MODELS, Prompt, body_of
from tests.servers.streams import stream_of
from ullage import problems

_CACHE_STEP, _CACHE_LEAST = 128, 1_024
_JSON, _EVENTS = (
    {"content-type": "application/json"},
    {"content-type": "text/event-stream"},
)
_LINES = {"content-type": "application/x-ndjson"}
_FRAMES = {"content-type": "application/vnd.amazon.eventstream"}
_CACHED_BY_MARKERS = {
    "anthropic": b'"cache_control"',
    "bedrock-converse": b'"cachePoint"',
}
_PATHS = {
    "anthropic": ("/v1/messages",),
    "openai-chat": ("/v1/chat/completions",),
    "openai-responses": ("/v1/responses",),
    "gemini": (":generateContent", ":streamGenerateContent"),
    "ollama": ("/api/chat",),
    "bedrock-converse": ("/converse", "/converse-stream"),
}


class Captured(Struct, frozen=True):
    """One request as it came in: its path, header lines (names in lower case), bytes, JSON."""

    path: str
    headers: dict[str, str]
    raw: bytes
    body: dict[str, Any]

    @property
    def streamed(self):
        """Whether the answer is to come as events."""
        is_default = self.path.endswith("/api/chat")
        by_path = ":stream" in self.path or self.path.endswith(
            "/converse-stream"
        )
        return bool(self.body.get("stream", is_default)) or by_path


class Provider:
    """One provider: what it answers, and what it was asked.

    Attributes:
        url: where it listens, without a path.
        requests: every request of this format, in the order they came in.
        answered: the body of each answer, in the same order; a refusal's as well.
    """

    def __init__(self, format, replies, *, strict, limit_tokens, stack):
        self.format = format
        self.requests: list[Captured] = []
        self.answered: list[dict[str, Any]] = []
        self.url = ""
        self._replies = replies
        self._strict = strict
        self._limit_tokens = limit_tokens
        self._lock = threading.Lock()
        self._stack = stack

    # ── asking ───────────────────────────────────────────────────────────────────────

    def client(self):
        """The vendor's own client. It asks here only: no proxy, no retry; closed at the end."""
        return self._stack.enter_context(_CLIENTS[self.format](self.url))

    def ask(self, client, request, *, stream=False):
        """The SDK's call with ``request`` as keyword arguments; streamed, a list of events."""
        match self.format:
            case "anthropic":
                create = client.messages.create
            case "openai-chat":
                create = client.chat.completions.create
            case "openai-responses":
                create = client.responses.create
            case "ollama":
                create = client.chat
            case "bedrock-converse":
                if stream:
                    with closing(
                        client.converse_stream(**request)["stream"]
                    ) as events:
                        return list(events)
                return client.converse(**request)
            case _:
                models = client.models
                create = (
                    models.generate_content_stream
                    if stream
                    else models.generate_content
                )
                return list(create(**request)) if stream else create(**request)
        if not stream:
            return create(**request)
        if self.format == "ollama":
            return list(create(**request, stream=True))
        with create(**request, stream=True) as events:
            return list(events)

    # ── answering ────────────────────────────────────────────────────────────────────

    def answer(self, captured):
        """Status, headers and bytes of the answer to one request."""
        with self._lock:
            reply = self._reply(captured)
            self.requests.append(captured)
            refusal = isinstance(reply, Refusal)
            number = len(self.requests)
            body = (
                reply.body if refusal else self._body(reply, number, captured)
            )
            self.answered.append(body)
        if refusal or not captured.streamed:
            status, headers = (
                (reply.status, reply.headers) if refusal else (200, {})
            )
            return status, {**_JSON, **headers}, json.dumps(body).encode()
        events = {"ollama": _LINES, "bedrock-converse": _FRAMES}.get(
            self.format, _EVENTS
        )
        return 200, events, stream_of(self.format, body, captured.body)

    def _reply(self, captured):
        found = problems(captured.body, self.format) if self._strict else []
        if found:
            return refused(self.format, found[0])
        tokens = tokens_of(captured.raw)
        if self._limit_tokens is not None and tokens > self._limit_tokens:
            return too_long(self.format, tokens, self._limit_tokens)
        if callable(self._replies):
            return self._replies(captured)
        if not self._replies:
            message = "the script has no more replies"
            return Refusal(
                500, {"error": {"message": message}, "message": message}
            )
        return self._replies.pop(0)

    def _body(self, reply, number, captured):
        return body_of(self.format, reply, number, self._prompt(captured))

    def _prompt(self, captured):
        """Tokens of the prompt; what it shares with an earlier one was cached (§3.1, §3.2)."""
        total, raw = tokens_of(captured.raw), captured.raw
        marker = _CACHED_BY_MARKERS.get(self.format, b"")
        if marker not in raw:
            return Prompt(total)
        shared = [_shared(raw, old.raw) for old in self.requests[:-1]]
        cached = max(shared, default=0) // 4 // _CACHE_STEP * _CACHE_STEP
        cached = cached if cached >= _CACHE_LEAST else 0
        return Prompt(total, cached, total - cached if marker else 0)


def tokens_of(raw: bytes) -> int:
    """What this provider counts: four bytes of the request a token."""
    return len(raw) // 4


def _shared(raw, old):
    """How many bytes two requests begin with in common, by halving."""
    low, high = 0, min(len(raw), len(old))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (
            (middle, high)
            if raw[:middle] == old[:middle]
            else (low, middle - 1)
        )
    return low


@contextmanager
def provider(format, replies=(), *, strict=False, limit_tokens=None):
    """A provider on the loopback, for as long as the block lasts.

    Args:
        format: one of the wire formats.
        replies: what it answers, in order, or a function from a `Captured` to a reply.
        strict: refuse what breaks a rule of the vendor, with the vendor's 400.
        limit_tokens: refuse what is longer, with the vendor's 400; None: take anything.
    """
    script = replies if callable(replies) else list(replies)
    with (
        ThreadingHTTPServer(("127.0.0.1", 0), _Answering) as http,
        ExitStack() as stack,
    ):
        server = Provider(
            format,
            script,
            strict=strict,
            limit_tokens=limit_tokens,
            stack=stack,
        )
        server.url = f"http://127.0.0.1:{http.server_address[1]}"
        http.provider = server
        thread = threading.Thread(
            target=http.serve_forever, kwargs={"poll_interval": 0.02}
        )
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()


class _Answering(BaseHTTPRequestHandler):
    def do_GET(self):
        listed = [
            {"id": MODELS[self.server.provider.format], "object": "model"}
        ]
        is_models = self.path == "/v1/models"
        body = (
            {"object": "list", "data": listed} if is_models else {"error": {}}
        )
        self._say(200 if is_models else 404, _JSON, json.dumps(body).encode())

    def do_POST(self):
        provider = self.server.provider
        raw = self.rfile.read(int(self.headers["content-length"]))
        path = self.path.partition("?")[0]
        if path.endswith(_PATHS[provider.format]):
            headers = {
                name.lower(): value for name, value in self.headers.items()
            }
            body = json.loads(raw)
            self._say(
                *provider.answer(Captured(self.path, headers, raw, body))
            )
        else:
            self._say(404, _JSON, b'{"error": {"message": "no such path"}}')

    def _say(self, status, headers, answer):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments):
        pass


# ── the SDKs, loaded when they are asked for ─────────────────────────────────────────────


def _openai(url):
    import openai

    http = openai.DefaultHttpxClient(trust_env=False)
    return openai.OpenAI(
        api_key="none", base_url=f"{url}/v1", max_retries=0, http_client=http
    )


def _anthropic(url):
    import anthropic

    http = anthropic.DefaultHttpxClient(trust_env=False)
    return anthropic.Anthropic(
        api_key="none", base_url=url, max_retries=0, http_client=http
    )


def _gemini(url):
    from google import genai

    options = {"base_url": url, "client_args": {"trust_env": False}}
    return genai.Client(api_key="none", vertexai=False, http_options=options)


def _ollama(url):
    ollama = pytest.importorskip("ollama", reason="ollama is not installed")
    return ollama.Client(host=url, trust_env=False)


@contextmanager
def _bedrock(url):
    boto3 = pytest.importorskip("boto3", reason="boto3 is not installed")
    from botocore import UNSIGNED
    from botocore.config import Config

    # nothing is retried, and no proxy of the environment is asked
    config = Config(
        retries={"max_attempts": 0}, proxies={}, signature_version=UNSIGNED
    )
    session = boto3.Session("AKIA0", "none", region_name="us-east-1")
    with closing(
        session.client("bedrock-runtime", endpoint_url=url, config=config)
    ) as client:
        yield client


_CLIENTS = {
    "anthropic": _anthropic,
    "openai-chat": _openai,
    "openai-responses": _openai,
    "gemini": _gemini,
    "ollama": _ollama,
    "bedrock-converse": _bedrock,
}
