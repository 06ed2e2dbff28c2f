"""What axe-core finds in the four pages, at three widths, light and dark: nothing.

`make axe` fetches it from npm for these tests alone; AXE may name its file. It skips without.
"""

import json
import os
from pathlib import Path

import pytest

from tests.browser.test_page import conversation_page, written
from tests.proxy.test_fitting import CUTS_ALWAYS, long_chat
from tests.proxy.upstream import ask, proxy, settle, upstream
from tests.replay.test_run import small_run

pytestmark = [pytest.mark.timeout(300), pytest.mark.xdist_group("the browser")]

ROOT = Path(__file__).parents[2]
AXE = Path(
    os.environ.get("AXE", ROOT / ".axe/node_modules/axe-core/axe.min.js")
)
FOUND = """async () => (await axe.run(document, { resultTypes: ["violations"] })).violations
  .map(({ id, help, nodes }) => [id, help, nodes[0].html.slice(0, 120)])"""


@pytest.fixture(scope="module")
def axe():
    if not AXE.exists():
        pytest.skip(
            "axe-core is not here: make axe, or set AXE to the path of axe.min.js"
        )
    return AXE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The address of each page, and what it shows when it is drawn."""
    folder = tmp_path_factory.mktemp("pages")
    replay = written(folder, small_run("openai-chat", 24))
    with upstream() as there, proxy(there, policy=CUTS_ALWAYS) as url:
        ask(url, "POST", "/v1/chat/completions", long_chat())
        settle(url)
        key = json.loads(ask(url, "GET", "/_ullage/state")[2])[
            "conversations"
        ][0]["key"]
        yield {
            "replay": (replay.as_uri(), "#charts svg"),
            "session": (f"{url}/_ullage/conversations/{key}", "#charts svg"),
            "live": (f"{url}/_ullage/", ".conversation svg"),
            "conversation": (conversation_page(folder).as_uri(), "#why li"),
        }


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "name", ["replay", "session", "live", "decide", "conversation"]
)
def test_nothing_is_found(browser, axe, pages, name, scheme):
    address, drawn = pages.get(name, pages["session"])
    context = browser.new_context(color_scheme=scheme)
    page = context.new_page()
    for width in (390, 768, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(address)
        page.wait_for_selector(drawn)
        if name == "decide":  # the price of a decision, before it is made
            page.locator(".hand-bar button").first.click()
            page.wait_for_selector("#decide-yes:enabled")
        page.evaluate(axe)
        assert page.evaluate(FOUND) == [], width
    context.close()
