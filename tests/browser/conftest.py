"""A real Chromium, where there is one: CHROMIUM names it, or it is found on the path."""

import os
import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


@pytest.fixture(scope="session")
def browser():
    """One browser for all tests."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = (shutil.which(name) for name in NAMES)
    path = os.environ.get("CHROMIUM") or next(filter(None, found), None)
    if path is None:
        pytest.skip("no Chromium here: install one, or set CHROMIUM to its path")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=path, args=list(FLAGS))
        yield running
        running.close()


@pytest.fixture
def opened(browser):
    """Opens a page; fails the test for every error it throws and every request it makes."""
    contexts, wrong = [], []

    def open_page(path, *, width=1280, height=900, scheme="light"):
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            reduced_motion="reduce",
        )
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda line: wrong.append(line.text) if line.type == "error" else None)
        page.on("request", lambda asked: wrong.append(asked.url) if asked.url != url else None)
        url = path.as_uri()
        page.goto(url)
        page.wait_for_selector("#charts svg")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [each for each in wrong if not each.startswith("data:")] == []
