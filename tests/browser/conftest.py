"""A real Chromium, where there is one: CHROMIUM names it, or it is found on the path."""

import os
import shutil

import pytest

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *(
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
    ),
    "--host-resolver-rules=MAP evil.example 127.0.0.1",
)


@pytest.fixture(scope="module")
def browser():
    """One browser for the tests of a module.

    Not for longer: its driver is an event loop that runs, and beside one no other may.
    """
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed"
    )
    found = (shutil.which(name) for name in NAMES)
    path = os.environ.get("CHROMIUM") or next(filter(None, found), None)
    if path is None:
        pytest.skip(
            "no Chromium here: install one, or set CHROMIUM to its path"
        )
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(
            executable_path=path, args=list(FLAGS)
        )
        yield running
        running.close()


@pytest.fixture(scope="module")
def idle(browser):
    """Pages that no test looks at. Each is a process: a new one takes four times as long to show a
    document as one that is there. The document is loaded anew for each test, and keeps nothing."""
    return []


@pytest.fixture
def new_page(browser, idle):
    """``new_page(allowed=…, width=…, scheme=…)``: a page, and what goes wrong on it fails the test.

    Every error the page throws or prints is wrong, and every request that ``allowed`` does not.
    """
    wrong, used = [], []

    def page_of(
        *, allowed, width=1280, height=900, scheme="light", motion="reduce"
    ):
        page = idle.pop() if idle else browser.new_context().new_page()
        listeners = {
            "pageerror": lambda error: wrong.append(str(error)),
            "console": lambda line: (
                wrong.append(line.text) if line.type == "error" else None
            ),
            "request": lambda asked: (
                allowed(asked.url) or wrong.append(asked.url)
            ),
        }
        for event, listener in listeners.items():
            page.on(event, listener)
        used.append((page, listeners))
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme, reduced_motion=motion)
        return page

    yield page_of
    for page, listeners in used:
        page.goto("about:blank")
        for event, listener in listeners.items():
            page.remove_listener(event, listener)
    idle += [page for page, _ in used]
    assert [each for each in wrong if not each.startswith("data:")] == []


@pytest.fixture
def opened(new_page):
    """Opens a page of a file; it fails the test for every error and every request it makes."""

    def open_page(path, *, until="#charts svg", beside=(), **screen):
        urls = {path.as_uri(), *(each.as_uri() for each in beside)}
        page = new_page(allowed=lambda asked: asked in urls, **screen)
        page.goto(path.as_uri())
        page.wait_for_selector(until)
        return page

    return open_page
