"""What is decided on the page of a conversation: its price, and the agent's next request."""

import hashlib
import json
import signal

import pytest

from lab.hand_pictures import requests, send
from tests.proxy.started import started
from tests.proxy.test_fitting import CUTS_ALWAYS, long_chat
from tests.proxy.upstream import ask, proxy, settle, until, upstream
from ullage import SqliteStore
from ullage.doors.proxy.config import AccessSettings
from ullage.doors.proxy.deciding import MOST_BYTES
from ullage.session.stored.conversation import (
    conversation,
    decide,
    decision_of,
)

CHAT = "/v1/chat/completions"
PAGE = {"Content-Type": "application/json", "X-Ullage": "page"}
NOTE = {"verb": "note", "text": "Never touch main."}
TOKEN = "a token that somebody made up"
DIGEST = hashlib.sha256(TOKEN.encode()).hexdigest()


def page_of(url, headers=()):
    """The path of the page of the newest conversation, once a worker has counted its reply."""

    def conversations():
        state = ask(url, path="/_ullage/state", headers=headers)[2]
        return json.loads(state)["conversations"]

    until(conversations)
    return f"/_ullage/conversations/{conversations()[0]['key']}"


def post(url, path, body, headers=PAGE):
    data = json.dumps(body).encode() if isinstance(body, dict) else body
    status, _, answer = ask(url, "POST", path, data, headers)
    return status, json.loads(answer)


def window(url, page):
    return json.loads(ask(url, path=f"{page}/window")[2])


@pytest.fixture(scope="module")
def there():
    with upstream() as there:
        yield there


@pytest.fixture
def chat(there):
    """A proxy with one conversation, and the path of its page."""
    with proxy(there, policy=CUTS_ALWAYS) as url:
        ask(url, "POST", CHAT, long_chat())
        settle(url)
        yield url, page_of(url)


def sent(there):
    return there.requests[-1].body.decode()


def test_it_is_priced_decided_in_the_next_request_and_undone(there, chat):
    url, page = chat
    status, told = post(url, f"{page}/preview", NOTE)
    assert status == 200
    assert told["tokens_after"] > told["tokens_before"]
    assert told["cost_now_usd"] > 0
    assert window(url, page)["decisions"] == [], "a preview decides nothing"
    status, done = post(url, f"{page}/decide", {**NOTE, "reason": "the rule"})
    assert status == 200
    (one,) = done["window"]["decisions"]
    assert one["name"] == done["name"]
    assert (one["text"], one["reason"]) == (NOTE["text"], "the rule")
    assert not one["carried_out"]
    ask(url, "POST", CHAT, long_chat())
    assert NOTE["text"] in sent(there)
    settle(url)
    (one,) = window(url, page)["decisions"]
    assert one["carried_out"]
    assert "no cache is broken" in one["price"] or "again" in one["price"]
    undo = {"verb": "undo", "target": done["name"]}
    assert post(url, f"{page}/decide", undo)[0] == 200
    ask(url, "POST", CHAT, long_chat())
    assert NOTE["text"] not in sent(there)


def test_a_result_that_was_cut_is_pinned_and_dropped(there, chat):
    url, page = chat
    assert len(sent(there)) < len(long_chat())
    shown = {text[1]: text[5] for text in window(url, page)["texts"]}
    assert shown == {"m1.1": "whole", "m2.1": "whole", "m3.1": "in short"}
    pin = {"verb": "pin", "target": "m3.1"}
    assert post(url, f"{page}/decide", pin)[0] == 200
    ask(url, "POST", CHAT, long_chat())
    assert (
        json.loads(sent(there))["messages"]
        == json.loads(long_chat())["messages"]
    ), "whole again"
    assert window(url, page)["texts"][2][5:] == ["whole", True]
    drop = {"verb": "drop", "target": "m3"}
    assert post(url, f"{page}/decide", drop)[0] == 200
    ask(url, "POST", CHAT, long_chat())
    assert len(sent(there)) < 2_000


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Content-Type": "application/json"},
        {**PAGE, "Content-Type": "text/plain"},
        {**PAGE, "Content-Type": "application/x-www-form-urlencoded"},
        {**PAGE, "Origin": "http://evil.example"},
        {**PAGE, "Origin": "null"},
        {**PAGE, "Sec-Fetch-Site": "cross-site"},
        {
            **PAGE,
            "Sec-Fetch-Site": "cross-site",
            "Sec-Fetch-Dest": "document",
        },
        {**PAGE, "Sec-Fetch-Site": "same-site"},
        {**PAGE, "Sec-Fetch-Site": "none"},
        {**PAGE, "X-Forwarded-For": "203.0.113.9"},
    ],
)
@pytest.mark.parametrize("name", ["preview", "decide"])
def test_what_another_page_could_send_decides_nothing(chat, headers, name):
    url, page = chat
    assert post(url, f"{page}/{name}", NOTE, headers)[0] == 403
    assert window(url, page)["decisions"] == []


def test_what_is_no_decision_is_refused_in_words(chat):
    url, page = chat
    for body, status, words in (
        (b"{", 400, "no decision"),
        ({"verb": "erase"}, 400, "no decision"),
        ({**NOTE, "author": "ann"}, 400, "no decision"),
        ({"verb": "note", "text": " "}, 409, "the note is empty"),
        ({"verb": "pin", "target": "m99"}, 409, "m12 for message 12"),
        ({"verb": "pin"}, 409, "names no message"),
        ({"verb": "undo"}, 409, "nothing was decided"),
        ({"verb": "note", "text": "x" * MOST_BYTES}, 413, "at most 65,536"),
    ):
        answer = post(url, f"{page}/decide", body)
        assert answer[0] == status, body
        assert words in answer[1]["error"]["message"]
        if status == 409:
            told = post(url, f"{page}/preview", body)
            assert (told[0], words in told[1]["problem"]) == (200, True)
    assert window(url, page)["decisions"] == []
    assert ask(url, "GET", f"{page}/decide")[0] == 405
    assert ask(url, "POST", f"{page}/window", b"{}", PAGE)[0] == 405
    none = "/_ullage/conversations/none/decide"
    assert post(url, none, NOTE)[0] == 404


def test_with_access_set_who_decides_authenticates_and_is_named(there):
    access = AccessSettings(
        token_sha256=DIGEST,
        user_header="x-forwarded-user",
        proxies=["127.0.0.0/8"],
    )
    with proxy(there, policy=CUTS_ALWAYS, access=access) as url:
        ask(url, "POST", CHAT, long_chat())
        settle(url)
        token = {"Authorization": f"Bearer {TOKEN}"}
        page = page_of(url, token)
        path = f"{page}/decide"
        assert post(url, path, NOTE)[0] == 401
        assert post(url, path, NOTE, {**PAGE, **token})[0] == 200
        named = {**PAGE, "X-Forwarded-User": "ann"}
        status, done = post(url, path, NOTE, named)
    assert status == 200
    assert [one["author"] for one in done["window"]["decisions"]] == [
        "",
        "ann",
    ]


def test_pages_that_are_left_out_decide_nothing(there):
    with proxy(there, pages=False) as url:
        path = "/_ullage/conversations/x/decide"
        assert post(url, path, NOTE)[0] == 403


def test_of_two_workers_the_one_that_has_it_decides(tmp_path):
    with (
        upstream() as there,
        started(
            there, "--workers=2", f"--store={tmp_path}/kept.db"
        ) as running,
    ):
        url = running.url
        ask(url, "POST", CHAT, long_chat())
        settle(url)
        page = page_of(url)
        for number in range(6):
            note = {"verb": "note", "text": f"Rule {number}."}
            assert post(url, f"{page}/decide", note)[0] == 200
        assert post(url, f"{page}/decide", {"verb": "pin"})[0] == 409
        assert len(window(url, page)["decisions"]) == 6, "each is made once"
        for _ in range(4):
            ask(url, "POST", CHAT, long_chat())
            assert all(f"Rule {number}." in sent(there) for number in range(6))
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(20) == 0


def test_the_page_shows_what_was_decided_beside_it_on_the_store(tmp_path):
    path = tmp_path / "kept.db"
    with upstream() as there, proxy(there, store=str(path)) as url:
        answer = json.dumps({"choices": [], "usage": {"prompt_tokens": 9}})
        there._answer = _replies(answer)
        ask(url, "POST", CHAT, long_chat())
        settle(url)
        page = page_of(url)
        store = SqliteStore(path)
        stored = conversation(store, "")
        note = decision_of(stored, "note", text="From beside.", author="bo")
        decide(store, stored, note)
        store.close()
        (one,) = window(url, page)["decisions"]
        assert (one["text"], one["author"]) == ("From beside.", "bo")
        assert window(url, page)["name"] == stored.outline.name


def _replies(text):
    from aiohttp import web

    async def answer(request):
        await request.read()
        return web.Response(text=text, content_type="application/json")

    return answer


def test_a_long_agent_keeps_what_its_user_pinned(there):
    """Ten requests; the rules are pinned in the middle and whole in each one after it."""
    wire = {"policy": "default", "window_tokens": 20_000}
    with proxy(there, **wire) as url:
        for number, request in enumerate(requests()):
            send(url, request)
            if number == 4:
                pin = {"verb": "pin", "target": "m3"}
                done = post(url, f"{page_of(url)}/decide", pin)
                assert done[0] == 200, done
    last = there.requests[-1].body.decode()
    assert last.count("Never push to main") == 24
    assert "in short, a record" in last
