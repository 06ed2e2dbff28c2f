"""A page of somebody else's in a real browser reads nothing of the proxy's and sends nothing on."""

import json
from contextlib import contextmanager

import pytest
from aiohttp import web

from tests.proxy.test_fitting import CUTS_ALWAYS, long_chat
from tests.proxy.upstream import ask, proxy, upstream

pytestmark = [pytest.mark.timeout(300), pytest.mark.xdist_group("the browser")]

CHAT = "/openai/v1/chat/completions"
BODY = json.dumps(
    {
        "model": "gpt-4.1",
        "messages": [{"role": "user", "content": "from a page"}],
    }
)

TRIES = """async ([proxy, chat, body]) => {
  const tried = {};
  const attempt = async (name, act) => {
    try { tried[name] = String(await act()); } catch (error) { tried[name] = "refused"; }
  };
  const at = (path, options) => fetch(proxy + path, options);
  const post = (type, mode, more) =>
    at(chat, {method: "POST", mode, body, headers: {"content-type": type, ...more}});
  const loaded = (tag, path) => new Promise((resolve, reject) => {
    const element = Object.assign(document.createElement(tag), {src: proxy + path});
    element.onload = resolve;
    element.onerror = reject;
    document.body.append(element);
  });
  await attempt("state", () => at("/_ullage/state").then(reply => reply.text()));
  await attempt("metrics", () => at("/_ullage/metrics").then(reply => reply.text()));
  await attempt("blind post", () => post("text/plain", "no-cors").then(reply => reply.type));
  await attempt("bytes", () => at(chat, {method: "POST", mode: "no-cors", body: new Uint8Array(9)})
    .then(reply => reply.type));
  await attempt("post with a key", () => post("application/json", "cors", {"x-api-key": "k"})
    .then(reply => reply.text()));
  await attempt("get", () => at("/openai/v1/models").then(reply => reply.text()));
  await attempt("blind get", () => at("/openai/v1/models", {mode: "no-cors"}).then(r => r.type));
  await attempt("script", () => loaded("script", "/_ullage/state"));
  await attempt("picture", () => loaded("img", "/openai/v1/files/1"));
  await attempt("beacon", () => navigator.sendBeacon(proxy + chat, body));
  return tried;
}"""

FORM = """([proxy, chat]) => {
  const frame = Object.assign(document.createElement("iframe"), {name: "there"});
  const form = Object.assign(document.createElement("form"),
    {method: "POST", action: proxy + chat, target: "there", enctype: "text/plain"});
  form.append(Object.assign(document.createElement("input"), {name: '{"a":"', value: '"}'}));
  document.body.append(frame, form);
  return new Promise(resolve => { frame.onload = resolve; form.submit(); });
}"""


@pytest.fixture(scope="module")
def there():
    with upstream(_as_a_provider_that_allows_browsers) as there:
        yield there


async def _as_a_provider_that_allows_browsers(request):
    allowed = {
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Allow-Headers": "*",
    }
    return web.json_response({"choices": []}, headers=allowed)


async def _empty(_):
    return web.Response(text="<body></body>", content_type="text/html")


@contextmanager
def page_at(browser, address):
    """A page of an address, until the block is over."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(address)
    yield page
    context.close()


def test_a_foreign_page_reads_nothing_and_sends_nothing(browser, there):
    with (
        upstream(_empty) as site,
        proxy(there, policy=CUTS_ALWAYS) as url,
        page_at(browser, site.url) as page,
    ):
        ask(url, "POST", CHAT, long_chat())
        before = len(there.requests)
        tried = page.evaluate(TRIES, [url, CHAT, BODY])
        page.evaluate(FORM, [url, CHAT])
        assert len(there.requests) == before
    readable = {
        "state",
        "metrics",
        "post with a key",
        "get",
        "script",
        "picture",
    }
    assert {
        name for name, outcome in tried.items() if outcome == "refused"
    } >= readable
    assert {tried["blind post"], tried["bytes"], tried["blind get"]} == {
        "opaque"
    }  # none was sent on


def test_a_page_whose_name_was_made_to_lead_here_reads_nothing(browser, there):
    """DNS rebinding: the browser takes the page and the proxy for one origin."""
    with proxy(there, policy=CUTS_ALWAYS) as url:
        ask(url, "POST", CHAT, long_chat())
        before = len(there.requests)
        named = url.replace("127.0.0.1", "evil.example")
        with page_at(browser, f"{named}/_ullage/health") as page:
            tried = page.evaluate(TRIES, ["", CHAT, BODY])
        assert len(there.requests) == before
    for name in ("state", "post with a key", "get"):
        assert "permission_error" in tried[name]


def test_an_allowed_page_is_served_by_its_provider(browser, there):
    with (
        upstream(_empty) as site,
        proxy(there, allowed_origins=[site.url]) as url,
        page_at(browser, site.url) as page,
    ):
        tried = page.evaluate(TRIES, [url, CHAT, BODY])
    assert json.loads(tried["post with a key"]) == {"choices": []}
    assert tried["state"] == "refused"
