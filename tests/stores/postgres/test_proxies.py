"""Proxies on several machines before one server: whoever answers, the provider gets the same."""

import json
import tempfile
from functools import cache
from itertools import pairwise

import pytest

from tests.proxy.started import started
from tests.proxy.upstream import ask, upstream
from ullage.doors.proxy.config import config_of
from ullage.doors.proxy.doctor import findings
from ullage.doors.proxy.tenants import secret_of

pytestmark = pytest.mark.xdist_group("postgres")

PATH, KEY = "/v1/chat/completions", {"Authorization": "Bearer somebody"}
SETTINGS = {"ULLAGE_PROXY_WINDOW_TOKENS": "9000"}


def turns(count):
    """The requests of an agent, each with one more result."""
    messages = [{"role": "user", "content": "Mend the failing test."}]
    tool = {"name": "read", "parameters": {"type": "object", "properties": {}}}
    tools = [{"type": "function", "function": tool}]
    for n in range(count):
        body = {
            "model": "gpt-4.1",
            "max_tokens": 500,
            "tools": tools,
            "messages": messages,
        }
        yield json.dumps(body).encode()
        function = {"name": "read", "arguments": json.dumps({"n": n})}
        call = {"id": f"c{n}", "type": "function", "function": function}
        text = "\n".join(
            f"{n} {line} {line * n % 977}"
            for line in range(150 + 40 * (n % 5))
        )
        messages = [
            *messages,
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": text},
        ]


@cache
def sent_by_one():
    """What one proxy by itself sends of these turns."""
    with (
        tempfile.TemporaryDirectory() as folder,
        upstream() as there,
        started(there, f"--store={folder}/one.db", **SETTINGS) as proxy,
    ):
        for body in turns(14):
            assert ask(proxy.url, "POST", PATH, body, KEY)[0] == 200
        return [request.body for request in there.requests]


def test_whichever_proxy_answers_the_provider_gets_the_same(server, url):
    wanted = sent_by_one()
    with (
        upstream() as there,
        started(there, **SETTINGS, ULLAGE_STORE=url) as one,
        started(there, f"--store={url}", **SETTINGS) as two,
        started(there, f"--store={url}", **SETTINGS) as late,
    ):
        for n, body in enumerate(turns(14)):
            if n == 8:
                two.process.kill()
            proxy = (one, two if n < 8 else late)[n % 2]
            assert ask(proxy.url, "POST", PATH, body, KEY)[0] == 200
        assert [request.body for request in there.requests] == wanted
    assert any(len(new) < len(old) for old, new in pairwise(wanted))
    with server.connect() as db:
        tenants = db.execute(
            "SELECT DISTINCT tenant FROM ullage.outputs"
        ).fetchall()
    assert len(tenants) == 1, (
        "a credential is one tenant, whichever proxy it comes to"
    )


def test_the_secret_of_an_installation_is_on_the_server(url):
    assert len(secret_of(url)) == 32
    assert secret_of(url) == secret_of(url)


def test_the_doctor_opens_a_server(url):
    (found,) = (
        each
        for each in findings(config_of(store=url), {})
        if each.about == "store"
    )
    assert (found.verdict, found.words) == ("ok", "it opens")
