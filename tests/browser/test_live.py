"""The live page in a real browser: light, dark, and on a phone."""

import json

import pytest

from tests.browser.test_page import CONTRAST, NAMELESS, expect
from tests.proxy.test_fitting import CUTS_ALWAYS, long_chat
from tests.proxy.upstream import ask, proxy, settle, upstream
from ullage import TeamBudget

pytestmark = [pytest.mark.timeout(300), pytest.mark.xdist_group("the browser")]
EVIL = '<img src=x onerror="document.title=1">'


@pytest.fixture(scope="module")
def url():
    with upstream() as there, proxy(there, policy=CUTS_ALWAYS) as url:
        yield url


@pytest.fixture
def live(new_page, url):
    def look(width=1280, scheme="light", path="/_ullage/"):
        screen = {"width": width, "scheme": scheme, "motion": "no-preference"}
        page = new_page(allowed=_is_ours, **screen)
        page.goto(f"{url}{path}")
        return page

    def _is_ours(address):
        return address.startswith((f"{url}/_ullage", "data:"))

    return look


def test_a_conversation_appears_while_one_looks_on(live, url):
    page = live()
    expect(page.locator("#none")).to_be_visible()
    request = json.loads(long_chat())
    ask(
        url,
        "POST",
        "/v1/chat/completions",
        json.dumps({**request, "model": EVIL}).encode(),
    )
    ask(url, "POST", "/v1/chat/completions", long_chat())
    expect(page.locator(".conversation")).to_have_count(2)
    expect(page.locator("#none")).to_be_hidden()
    expect(page.locator(".conversation h2").nth(1)).to_have_text(EVIL)
    assert page.locator("main img").count() == 0
    first = page.locator(".conversation").first
    assert "gpt-4.1" in first.locator("h2").text_content()
    assert "% less" in first.locator(".hint").text_content()
    assert "1 request; the newest" in first.locator("svg").get_attribute(
        "aria-label"
    )
    assert first.locator(".decisions li").count() >= 1
    expect(page.locator("#sums dd").first).to_contain_text("2")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_can_be_read_on_any_screen(live, url, width, scheme):
    ask(url, "POST", "/v1/chat/completions", long_chat())
    page = live(width, scheme)
    page.wait_for_selector(".conversation svg")
    assert page.evaluate(CONTRAST) == []
    assert page.evaluate(NAMELESS) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_behind_a_conversation_are_its_turns(live, url):
    ask(url, "POST", "/v1/chat/completions", long_chat())
    page = live()
    page.locator(".conversation a").first.click()
    page.wait_for_selector("#charts svg")
    assert (
        page.locator("h1")
        .text_content()
        .startswith("A session's context window")
    )
    expect(page.locator("#why-title")).to_be_visible()
    expect(page.locator("#why-tables tbody th").first).to_have_text("read")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_budgets_are_shown_with_what_is_spent_and_when_they_begin_again(
    new_page, width, scheme
):
    budgets = [
        TeamBudget(name="research", tokens=1_000_000, period="month"),
        TeamBudget(name="chat", usd=0.01, on_exceeded="warn"),
    ]
    with upstream() as there, proxy(there, budgets=budgets) as url:
        page = new_page(
            allowed=lambda address: address.startswith((url, "data:")),
            width=width,
            scheme=scheme,
            motion="no-preference",
        )
        page.goto(f"{url}/_ullage/")
        ask(url, "POST", "/v1/chat/completions", long_chat())
        settle(url)
        names = page.locator("#budgets-list li b")
        expect(names).to_have_count(2)
        assert set(names.all_text_contents()) == {"research", "chat"}
        research = page.locator("#budgets-list li", has_text="research")
        expect(research).to_contain_text("of 1,000,000 tokens spent in")
        expect(research).to_contain_text("it starts again on")
        meters = page.locator("#budgets-list meter")
        assert meters.first.get_attribute("aria-label").endswith("% spent")
        assert page.evaluate(CONTRAST) == []
        assert page.evaluate(NAMELESS) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_budgets_no_pane_is_drawn(live, url):
    ask(url, "POST", "/v1/chat/completions", long_chat())
    page = live()
    page.wait_for_selector(".conversation svg")
    expect(page.locator("#budgets")).to_be_hidden()


@pytest.mark.parametrize("path", ["/_ullage/", "/_ullage"])
def test_the_page_says_whose_sums_it_shows_and_leads_to_the_report(
    live, url, path
):
    ask(url, "POST", "/v1/chat/completions", long_chat())
    page = live(path=path)
    sums = page.locator("section", has=page.locator("#sums"))
    expect(sums).to_contain_text("of this proxy and its workers since")
    sums.locator("a").click()
    expect(page.locator("h2").first).to_have_text("By tenant")


def test_what_was_held_out_is_marked_and_what_was_stopped_is_no_chart(
    new_page,
):
    budgets = [TeamBudget(name="spent", tokens=0, usd=1e-9)]
    with upstream() as there, proxy(there, holdout=1.0) as url:
        ask(url, "POST", "/v1/chat/completions", long_chat())
        settle(url)
        page = new_page(
            allowed=lambda address: address.startswith((url, "data:")),
            width=1280,
            scheme="light",
            motion="no-preference",
        )
        page.goto(f"{url}/_ullage/")
        shown = page.locator(".conversation")
        expect(shown).to_contain_text("Held out: it passes unfitted")
        expect(page.locator("#sums")).to_contain_text("1 held out")
    with upstream() as there, proxy(there, budgets=budgets) as url:
        for _ in range(2):
            ask(url, "POST", "/v1/chat/completions", long_chat())
            settle(url)
        state = json.loads(ask(url, path="/_ullage/state")[2])
        assert 0 in [one["turns"][-1][2] for one in state["conversations"]]
        page.goto(f"{url}/_ullage/")
        shown = page.locator(".conversation").first
        expect(shown).to_be_visible()
        expect(page.locator("#conversations")).not_to_contain_text("now 0 of")


def test_a_proxy_that_ended_is_told(browser):
    with upstream() as there, proxy(there, policy=CUTS_ALWAYS) as url:
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{url}/_ullage/")
        expect(page.locator("#lead")).to_contain_text("Policy continuation")
    expect(page.locator("#lead")).to_have_text(
        "The proxy does not answer any more."
    )
    context.close()
