"""The built site in a real browser, light and dark: nothing is too wide, and axe finds nothing.

By default a page of each kind; with EVERY_PAGE=1, all of them (`make site-accessible`: 4 minutes).
"""

import os
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from tests.browser.test_accessible import FOUND, axe
from tests.site.test_site import built

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("the browser")]
__all__ = ["axe"]
# Tables, a reference with two names that differ in case alone, and what a server alone shows.
KINDS = ("index", "failures", "api/index", "404")
WIDTHS = (390, 768, 1280)
# Colours go over into one another; what turns for ever never ends.
SETTLED = """() => Promise.all(
    document.getAnimations()
        .filter(each => each.effect.getComputedTiming().endTime < Infinity)
        .map(each => each.finished.catch(() => null))
).then(() => null)"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site():
    """The folder of the built site, and the address it is served at."""
    _, folder = built()
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=folder)
    ) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def pages_of(folder):
    if not os.environ.get("EVERY_PAGE"):
        return KINDS
    return sorted(
        f"{path.relative_to(folder).with_suffix('')}"
        for path in folder.rglob("*.html")
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_found_in_the_site(browser, axe, site, scheme):
    folder, url = site
    context = browser.new_context(color_scheme=scheme, reduced_motion="reduce")
    context.set_default_timeout(
        0
    )  # the test has one, and a machine may have little to give
    page, found = context.new_page(), {}
    for name in pages_of(folder):
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            page.goto(f"{url}/{name}.html")
            page.wait_for_function(
                "document.querySelector('.md-code__nav')?.ariaLabel ?? true"
            )
            page.evaluate(SETTLED)
            page.evaluate(axe)
            wide = (
                page.evaluate("document.documentElement.scrollWidth") > width
            )
            if wrong := page.evaluate(FOUND) + ["too wide"] * wide:
                found[name, width] = wrong
    context.close()
    assert found == {}
