"""What a provider keeps of a reply never shows a private call, whichever way it is asked for."""

import json

import pytest

from tests.exchange.scripted import Reply, Upstream, ask, exchanges
from tests.exchange.test_rounds import LOOKS, PATHS, RECALL, asked, whole
from tests.servers.replies import Call
from tests.servers.replies import Reply as Said
from ullage.session.drivers import drive
from ullage.wires import FORMATS

RESPONSES, CHAT = "openai-responses", "openai-chat"
OWN = Call("read_file", {"path": "a.py"})
both = pytest.mark.parametrize("format", [RESPONSES, CHAT])


class Kept(Upstream):
    """An upstream that also takes away what it keeps."""

    def __init__(self, *replies):
        super().__init__(*replies)
        self.deleted = []

    def delete(self, named, other):
        self.deleted.append((named, other))
        return Reply({"deleted": True})


def fetch(door, method, path, value, **more):
    """What a GET or a DELETE gives; the upstream answers with this value."""
    upstream = Kept(Reply(value, **more))
    answer = drive(door.of(method, path, b"", upstream).steps())
    said = b"".join(iter(lambda: drive(answer.next()), b""))
    drive(answer.close())
    return said, upstream


def kept_by(format, reply, sent):
    """A reply as the provider keeps it: with the tools of its request, where it repeats them."""
    body = json.loads(reply.pieces[0])
    return (
        {**body, "tools": json.loads(sent)["tools"]}
        if format == RESPONSES
        else body
    )


def played(format, *script, door=None, **more):
    """A request of the client's: what it got, what the provider keeps, and the upstream."""
    door = door or exchanges()[0]
    replies = [
        whole(format, said, number) for number, said in enumerate(script, 1)
    ]
    copies = [
        whole(format, said, number) for number, said in enumerate(script, 1)
    ]
    _, said, upstream = ask(
        door, PATHS[format], asked(format, **more), *replies
    )
    kept = [
        kept_by(format, *pair)
        for pair in zip(copies, upstream.sent, strict=True)
    ]
    return door, json.loads(said), kept, upstream


def path_of(format, reply, end=""):
    return f"{PATHS[format]}/{reply['id']}{end}"


@both
def test_a_reply_of_two_rounds_is_fetched_as_it_was_given(format):
    door, given, kept, _ = played(format, LOOKS, "Nothing there.", store=True)
    said, _ = fetch(door, "GET", path_of(format, given), kept[0])
    assert json.loads(said) == given
    assert b"get_continuation" not in said


@both
def test_a_call_beside_the_clients_own_is_left_out(format):
    door, given, kept, _ = played(
        format, Said("Two things.", [RECALL, OWN]), store=True
    )
    said, _ = fetch(door, "GET", path_of(format, given), kept[0])
    assert json.loads(said) == given
    assert b"read_file" in said
    assert b"get_continuation" not in said


@both
def test_a_reply_without_one_names_no_private_tool(format):
    door, given, kept, _ = played(format, "Yes.", store=True)
    said, _ = fetch(door, "GET", path_of(format, given), kept[0])
    assert "get_continuation" not in said.decode()
    shown = json.loads(said)
    assert {**shown, "tools": []} == {**given, "tools": []}
    assert len(shown.get("tools", [])) == (1 if format == RESPONSES else 0)


@both
def test_what_needs_no_change_is_passed_on_byte_for_byte(format):
    raw = b'{ "id": "other", "output": [], "choices": [] }'
    door, _ = exchanges()
    assert fetch(door, "GET", f"{PATHS[format]}/other", raw)[0] == raw
    gone = b'{"error": {"message": "not found"}}'
    assert (
        fetch(door, "GET", f"{PATHS[format]}/other", gone, status=404)[0]
        == gone
    )


def test_a_tool_of_the_clients_that_has_the_same_name_stays():
    own = {
        "type": "function",
        "name": "get_continuation",
        "description": "The client's own.",
    }
    call = {
        "type": "function_call",
        "call_id": "c",
        "name": "get_continuation",
        "arguments": "{}",
    }
    raw = json.dumps(
        {"id": "resp_9", "output": [call], "tools": [own]}
    ).encode()
    assert fetch(exchanges()[0], "GET", "/v1/responses/resp_9", raw)[0] == raw


def test_the_items_of_a_request_have_no_private_call():
    """The next request is sent with the hidden turn in it."""
    door, given, _, _ = played(RESPONSES, LOOKS, "Nothing there.", store=True)
    history = [
        *asked(RESPONSES)["input"],
        *given["output"],
        {"role": "user", "content": "Why?"},
    ]
    _, _, upstream = ask(
        door,
        PATHS[RESPONSES],
        {**asked(RESPONSES), "input": history},
        whole(RESPONSES, "So.", 3),
    )
    sent = json.loads(upstream.sent[0])["input"]
    assert "get_continuation" in json.dumps(sent)
    page = {"object": "list", "data": sent, "has_more": False}
    said, _ = fetch(door, "GET", "/v1/responses/resp_3/input_items", page)
    items = json.loads(said)["data"]
    assert "get_continuation" not in json.dumps(items)
    hidden = len(sent) - len(items)
    assert hidden == 2  # the call and its result
    assert json.loads(said)["has_more"] is False


def test_the_messages_of_a_request_have_no_private_call():
    door, given, _, _ = played(CHAT, Said("", [RECALL, OWN]), store=True)
    reply = given["choices"][0]["message"]
    wire = FORMATS[CHAT]
    results = [
        wire.result(wire.call(call), "x = 1") for call in wire.calls(reply)
    ]
    history = [*asked(CHAT)["messages"], reply, *results]
    _, _, upstream = ask(
        door,
        PATHS[CHAT],
        {**asked(CHAT), "messages": history},
        whole(CHAT, "So.", 3),
    )
    sent = json.loads(upstream.sent[0])["messages"]
    assert "get_continuation" in json.dumps(sent)
    said, _ = fetch(
        door, "GET", "/v1/chat/completions/chatcmpl-3/messages", {"data": sent}
    )
    messages = json.loads(said)["data"]
    assert [message["role"] for message in messages] == [
        "user",
        "assistant",
        "tool",
    ]
    assert "get_continuation" not in json.dumps(messages)


def test_a_list_of_replies_has_those_that_clients_got():
    door, given, kept, _ = played(CHAT, LOOKS, "Nothing there.", store=True)
    other = {"id": "chatcmpl-other", "choices": []}
    page = {"object": "list", "data": [*kept, other]}
    said, _ = fetch(door, "GET", "/v1/chat/completions?limit=3", page)
    assert json.loads(said)["data"] == [given, other]


@both
def test_what_is_deleted_goes_with_its_hidden_rounds(format):
    door, given, kept, _ = played(
        format, LOOKS, LOOKS, "Nothing there.", store=True
    )
    said, upstream = fetch(
        door, "DELETE", path_of(format, given), {"deleted": True}
    )
    assert json.loads(said) == {"deleted": True}
    assert upstream.deleted == [(given["id"], each["id"]) for each in kept[1:]]


@both
def test_nothing_else_is_deleted_where_the_provider_refuses(format):
    door, given, _, _ = played(format, LOOKS, "Nothing there.", store=True)
    _, upstream = fetch(
        door, "DELETE", path_of(format, given), {"error": "no"}, status=403
    )
    assert upstream.deleted == []


@pytest.mark.parametrize("stream", [False, True])
def test_in_the_background_no_recall_is_offered(stream):
    """Its reply is fetched as the provider made it, by polling or as a stream taken up again."""
    door, reports = exchanges()
    queued = Reply({"id": "resp_1", "status": "queued", "output": []})
    request = asked(RESPONSES, background=True, stream=stream, store=True)
    _, said, upstream = ask(door, PATHS[RESPONSES], request, queued)
    assert json.loads(said)["status"] == "queued"
    assert "get_continuation" not in upstream.sent[0].decode()
    assert reports[0].passed is None


def test_another_tenant_is_told_nothing():
    """What hides a call is found under the credential that the request was sent with."""
    door, given, kept, _ = played(
        RESPONSES, LOOKS, "Nothing there.", store=True
    )
    upstream = Kept(Reply(kept[0]))
    path = path_of(RESPONSES, given)
    answer = drive(
        door.of("GET", path, b"", upstream, tenant="another").steps()
    )
    said = b"".join(iter(lambda: drive(answer.next()), b""))
    assert b"Nothing there." not in said
