"""What OpenAI keeps of a wrapped client's replies, through the SDK's own methods."""

import asyncio
import json

import openai
import pytest

import ullage
from tests.servers.replies import Call, Prompt, Reply, body_of
from ullage.doors.wrapping._http import library_of

LOOKS = Reply(
    "I look.", [Call("get_continuation", {"tool_call_id": "0123456789abcdef"})]
)
READ = {
    "type": "function",
    "name": "read",
    "parameters": {"type": "object"},
    "strict": False,
}


class Keeps:
    """A server that keeps every response with its input, and honours the tools of a request."""

    def __init__(self, *script):
        self.script, self.kept, self.asked = list(script), {}, []

    def client(self, *, is_async=False):
        kind = openai.AsyncOpenAI if is_async else openai.OpenAI
        library = library_of(kind(api_key="none")._client)
        http = __import__(library)
        made = http.AsyncClient if is_async else http.Client
        transport = http.MockTransport(
            lambda request: self.answer(http, request)
        )
        client = kind(
            api_key="none",
            base_url="http://server/v1",
            max_retries=0,
            http_client=made(transport=transport),
        )
        return ullage.wrap(client)

    def answer(self, http, request):
        name = request.url.path.removeprefix("/v1/responses").strip("/")
        self.asked.append((request.method, name))
        if request.method == "POST":
            body = json.loads(request.content)
            reply = body_of(
                "openai-responses",
                self.script.pop(0),
                len(self.asked),
                Prompt(900),
            )
            reply |= {"tools": body["tools"]}
            self.kept[reply["id"]] = reply, body["input"]
            return http.Response(200, json=reply)
        name, _, part = name.partition("/")
        if name not in self.kept:
            return http.Response(404, json={"error": {"message": "not found"}})
        if request.method == "DELETE":
            del self.kept[name]
            return http.Response(200, json={"id": name, "deleted": True})
        reply, items = self.kept[name]
        if part:
            items = (
                items
                if isinstance(items, list)
                else [{"role": "user", "content": items}]
            )
            page = {"object": "list", "data": items, "has_more": False}
            return http.Response(200, json=page)
        return http.Response(200, json=reply)


def said(reply):
    return json.loads(reply.model_dump_json(exclude_unset=True))


def test_a_stored_response_is_what_the_client_got():
    server = Keeps(LOOKS, Reply("Line 5."), Reply("As I said."))
    client = server.client()
    given = client.responses.create(
        model="gpt-5.6", input="What failed?", tools=[READ]
    )
    assert given.output_text.replace("\n", "") == "I look.Line 5."
    assert said(client.responses.retrieve(given.id)) == said(given)
    after = client.responses.create(
        model="gpt-5.6",
        input="And then?",
        previous_response_id=given.id,
        tools=[READ],
    )
    assert (
        "get_continuation"
        not in client.responses.retrieve(after.id).model_dump_json()
    )
    client.responses.delete(given.id)
    assert list(server.kept) == [after.id]
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(given.id)


def test_the_same_on_an_event_loop():
    server = Keeps(LOOKS, Reply("Line 5."))

    async def run():
        client = server.client(is_async=True)
        given = await client.responses.create(
            model="gpt-5.6", input="What failed?", tools=[READ]
        )
        assert said(await client.responses.retrieve(given.id)) == said(given)
        items = await client.responses.input_items.list(given.id)
        assert [item.role for item in items.data] == ["user"]
        await client.responses.delete(given.id)
        assert server.kept == {}

    asyncio.run(run())


def test_in_the_background_the_model_is_offered_nothing_private():
    server = Keeps(Reply("Done."))
    client = server.client()
    given = client.responses.create(
        model="gpt-5.6", input="Go.", tools=[READ], background=True, store=True
    )
    (tool,) = client.responses.retrieve(given.id).tools
    assert tool.name == "read"
