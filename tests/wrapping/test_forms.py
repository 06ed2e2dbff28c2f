"""The vendors' clients for Azure, Vertex, Bedrock and others, with a transport that is a script.

Each is sent a long history, and must send a shorter one that is else as its SDK made it.
"""

import asyncio
import hashlib
import json

import anthropic
import httpx2
import openai
import pytest
from google import genai
from google.oauth2.credentials import Credentials

import ullage
from tests import histories
from tests.servers.replies import Prompt, body_of
from tests.servers.streams import stream_of
from tests.wrapping.asking import aask, ask
from ullage import Limits
from ullage.doors.exchange import amazon
from ullage.doors.wrapping import Wrapped
from ullage.doors.wrapping._signing import Signer, is_signed
from ullage.wires import FORMATS

LIMITS = Limits(window_tokens=8_000, output_reserve_tokens=500)
LONG = [
    histories.Turn(
        calls=(histories.Call("bash", f"{n}.py", f"line {n}\n" * 500),)
    )
    for n in range(12)
]


def history(format):
    return histories.wire(format, LONG)


class Script:
    """A transport: answers each request in the format's way, and keeps it."""

    def __init__(self, format):
        self.format, self.requests = format, []

    def __call__(self, request):
        self.requests.append(request)
        body = json.loads(request.content)
        path = request.url.path
        if path.endswith("count_tokens") or "count-tokens" in path:
            return httpx2.Response(200, json={"input_tokens": 7})
        if path.endswith("batches"):
            return httpx2.Response(200, json={"id": "b_1"})
        said = body_of(self.format, "Done.", 1, Prompt(900))
        if path.endswith("invoke-with-response-stream"):
            lines = stream_of(self.format, said, body).decode().splitlines()
            events = [
                json.loads(line[5:])
                for line in lines
                if line.startswith("data:")
            ]
            frames = b"".join(map(amazon.written, events))
            headers = {"content-type": "application/vnd.amazon.eventstream"}
            return httpx2.Response(200, content=frames, headers=headers)
        if body.get("stream"):
            headers = {"content-type": "text/event-stream"}
            raw = stream_of(self.format, said, body)
            return httpx2.Response(200, content=raw, headers=headers)
        return httpx2.Response(200, json=said)

    @property
    def sent(self):
        return [json.loads(request.content) for request in self.requests]

    @property
    def client(self):
        return httpx2.Client(transport=httpx2.MockTransport(self))

    @property
    def async_client(self):
        return httpx2.AsyncClient(transport=httpx2.MockTransport(self))


def asked(format, model):
    request = histories.request(format, history(format))
    if format == "gemini":
        return {"model": model, "contents": request["contents"], "config": {}}
    return {**request, "model": model}


AWS = {"aws_region": "eu-west-1"}
GOOGLE = {"project_id": "p", "region": "r", "access_token": "t"}
FORMS = {
    "azure": (
        "openai-chat",
        lambda http: openai.AzureOpenAI(
            api_key="k",
            azure_endpoint="https://a.example",
            api_version="1",
            http_client=http,
        ),
        "/openai/deployments/gpt-4.1/chat/completions",
    ),
    "azure-responses": (
        "openai-responses",
        lambda http: openai.OpenAI(
            api_key="k",
            base_url="https://a.example/openai/v1",
            http_client=http,
        ),
        "/openai/v1/responses",
    ),
    "a gateway": (
        "openai-chat",
        lambda http: openai.OpenAI(
            api_key="k", base_url="https://a.example/api/v9", http_client=http
        ),
        "/api/v9/chat/completions",
    ),
    "vertex": (
        "anthropic",
        lambda http: anthropic.AnthropicVertex(**GOOGLE, http_client=http),
        "/v1/projects/p/locations/r/publishers/anthropic/models/gpt-4.1:rawPredict",
    ),
    "bedrock": (
        "anthropic",
        lambda http: anthropic.AnthropicBedrock(
            **AWS, api_key="k", http_client=http
        ),
        "/model/gpt-4.1/invoke",
    ),
    "genai-vertex": (
        "gemini",
        lambda http: genai.Client(
            vertexai=True,
            project="p",
            location="l",
            credentials=Credentials("t"),
            http_options={"httpx_client": http},
        ),
        "/v1beta1/projects/p/locations/l/publishers/google/models/gpt-4.1:generateContent",
    ),
}
MODEL = "gpt-4.1"


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_fitted_where_its_requests_stand(form):
    format, make, path = FORMS[form]
    script = Script(format)
    client = ullage.wrap(make(script.client), limits=LIMITS)
    request = asked(format, MODEL)
    reply = ask(client, format, request, "create")
    assert FORMATS[format].reply(reply)
    (sent,) = script.requests
    assert sent.url.path == path
    assert len(sent.content) < len(json.dumps(request)) / 2
    assert int(sent.headers["content-length"]) == len(sent.content)
    (report,) = ullage.wrapped(client).reports
    assert (report.model, report.is_changed, report.passed) == (
        MODEL,
        True,
        None,
    )
    assert report.usage is not None


def test_azure_for_an_event_loop_streams():
    script = Script("openai-chat")
    client = ullage.wrap(
        openai.AsyncAzureOpenAI(
            api_key="k",
            azure_endpoint="https://a.example",
            api_version="1",
            http_client=script.async_client,
        ),
        limits=LIMITS,
    )
    request = asked("openai-chat", MODEL)
    reply = asyncio.run(aask(client, "openai-chat", request, "stream"))
    assert reply.choices[0].message.content == "Done."
    assert ullage.wrapped(client).reports[0].usage is not None


def test_batches_are_fitted_and_tokens_are_counted_of_the_view():
    script = Script("anthropic")
    client = anthropic.Anthropic(api_key="k", http_client=script.client)
    client = ullage.wrap(client, limits=LIMITS)
    request = asked("anthropic", "claude-opus-4-8")
    del request["max_tokens"]
    assert client.messages.count_tokens(**request).input_tokens == 7
    each = {"custom_id": "a", "params": {**request, "max_tokens": 9}}
    client.messages.batches.create(requests=[each])
    counted, batch = script.sent
    assert (
        len(json.dumps(counted["messages"]))
        < len(json.dumps(request["messages"])) / 2
    )
    assert len(json.dumps(batch)) < len(json.dumps(request)) / 2


@pytest.mark.parametrize("is_async", [False, True])
def test_an_upload_passes_unread(is_async):
    sent = []

    def keep(request):
        sent.append(request)
        return httpx2.Response(200, json={"id": "file_1", "object": "file"})

    transport = httpx2.MockTransport(keep)
    if is_async:
        http = httpx2.AsyncClient(transport=transport)
        client = ullage.wrap(openai.AsyncOpenAI(api_key="k", http_client=http))
        asyncio.run(client.files.create(file=b"a file", purpose="batch"))
    else:
        http = httpx2.Client(transport=transport)
        client = ullage.wrap(openai.OpenAI(api_key="k", http_client=http))
        client.files.create(file=b"a file", purpose="batch")
    assert b"a file" in sent[0].content
    assert ullage.wrapped(client).counts.passed == {"path": 1}


# ── signatures ───────────────────────────────────────────────────────────────────────────


def signed(*, aws_access_key, data, **_):
    digest = hashlib.sha256(data).hexdigest()
    return {
        "authorization": f"AWS4-HMAC-SHA256 Credential={aws_access_key}/20261122/r/bedrock, "
        f"Signature={digest}",
        "x-amz-date": "20261122T000000Z",
    }


@pytest.fixture
def signing(monkeypatch):
    """Amazon's signature without its library: the digest of the body."""
    monkeypatch.setattr(
        "anthropic.lib.bedrock._client.get_auth_headers", signed
    )


def bedrock(http, key="AKIA1"):
    return anthropic.AnthropicBedrock(
        **AWS, aws_access_key=key, aws_secret_key="s", http_client=http
    )


@pytest.mark.usefixtures("signing")
@pytest.mark.parametrize("is_async", [False, True])
def test_a_signed_request_is_signed_again_for_what_is_sent(is_async):
    script = Script("anthropic")
    if is_async:
        client = anthropic.AsyncAnthropicBedrock(
            **AWS,
            aws_access_key="AKIA1",
            aws_secret_key="s",
            http_client=script.async_client,
        )
    else:
        client = bedrock(script.client)
    client = ullage.wrap(client, limits=LIMITS)
    request = asked("anthropic", "anthropic.claude-opus-4-8-v1:0")
    if is_async:
        asyncio.run(aask(client, "anthropic", request, "create"))
    else:
        ask(client, "anthropic", request, "create")
    (sent,) = script.requests
    assert len(sent.content) < len(json.dumps(request)) / 2
    assert (
        hashlib.sha256(sent.content).hexdigest()
        in sent.headers["authorization"]
    )
    assert len(sent.headers.get_list("authorization")) == 1


@pytest.mark.usefixtures("signing")
def test_what_is_signed_in_another_name_is_sent_as_it_came():
    script = Script("anthropic")
    client = ullage.wrap(bedrock(script.client), limits=LIMITS)
    request = asked("anthropic", "anthropic.claude-opus-4-8-v1:0")
    other = client.with_options(aws_access_key="AKIA2", aws_secret_key="x")
    ask(other, "anthropic", request, "create")
    (sent,) = script.requests
    assert "AKIA2" in sent.headers["authorization"]
    assert (
        hashlib.sha256(sent.content).hexdigest()
        in sent.headers["authorization"]
    )
    assert ullage.wrapped(other).counts.passed == {"signature": 1}


def test_only_amazons_signature_holds_the_body():
    request = httpx2.Request(
        "POST", "https://a.example", headers={"authorization": "Bearer k"}
    )
    assert not is_signed(request)
    assert Signer(object()).client is not None


def test_what_is_shared_is_closed_with_the_client(tmp_path):
    script = Script("anthropic")
    client = anthropic.Anthropic(api_key="k", http_client=script.client)
    with ullage.wrap(client, limits=LIMITS, store=tmp_path / "s.db") as made:
        ask(made, "anthropic", asked("anthropic", "claude-opus-4-8"), "create")
        shared = ullage.wrapped(made)
    assert isinstance(shared, Wrapped)
    assert made.is_closed()
    assert client.is_closed()
    with pytest.raises(ullage.StoreError, match="closed"):
        shared.store.refs("")
