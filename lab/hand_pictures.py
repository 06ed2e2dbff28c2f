"""The pictures of ``docs/hand.md``: a made-up conversation through a real proxy, in Chromium.

    python -m lab.hand_pictures docs/pictures

An agent reads the rules of a house, five logs and a file of another project. Its user pins the
rules and is about to drop what is wrong. Light, dark, and on a phone; CHROMIUM names the browser.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.proxy.upstream import ask, proxy, settle, upstream

MODEL = "claude-sonnet-4-5"
_WINDOW_TOKENS = 20_000
_RULES = "Never push to main. Every change comes with a test.\n" * 24
_WRONG = "def load(path):  # of another project\n    return None\n" * 60
_LOGS = "{minute:02}:{second:02} request {number} was served in {spent} ms\n"


def _log(minute: int) -> str:
    return "".join(
        _LOGS.format(
            minute=minute,
            second=number % 60,
            number=number,
            spent=11 + (minute * number) % 70,
        )
        for number in range(340)
    )


READ = {
    "rules.md": _RULES,
    **{f"logs/{minute}.log": _log(minute) for minute in range(5)},
    "old/loader.py": _WRONG,
    "logs/5.log": _log(5),
}


def requests() -> Iterator[dict[str, Any]]:
    """The agent's requests, each with the whole history."""
    task = "Find out why the loader is slow, and mend it."
    messages: list[dict[str, Any]] = [{"role": "user", "content": task}]
    for number, (path, text) in enumerate(READ.items()):
        yield _request(messages)
        call = {
            "type": "tool_use",
            "id": f"toolu_{number}",
            "name": "read_file",
            "input": {"path": path},
        }
        result = {
            "type": "tool_result",
            "tool_use_id": call["id"],
            "content": text,
        }
        messages.append({"role": "assistant", "content": [call]})
        messages.append({"role": "user", "content": [result]})
    yield _request(messages)


def _request(messages: list[dict[str, Any]]) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    return {
        "model": MODEL,
        "max_tokens": 1_000,
        "system": "You mend programs.",
        "tools": [{"name": "read_file", "input_schema": schema}],
        "messages": list(messages),
    }


async def _answer(request: web.BaseRequest) -> web.StreamResponse:
    """What the vendor answers: that it goes on, and about how much it read."""
    tokens = len(await request.read()) // 4
    usage = {"input_tokens": tokens, "output_tokens": 40}
    return web.json_response(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": [{"type": "text", "text": "I read on."}],
            "stop_reason": "end_turn",
            "usage": usage,
        }
    )


@contextmanager
def conversation() -> Iterator[str]:
    """The address of the page of the conversation, while its proxy runs."""
    with (
        upstream(_answer) as vendor,
        proxy(vendor, window_tokens=_WINDOW_TOKENS) as url,
    ):
        for request in requests():
            send(url, request)
        state = json.loads(ask(url, path="/_ullage/state")[2])
        key = state["conversations"][0]["key"]
        yield f"{url}/_ullage/conversations/{key}"


def send(url: str, request: dict[str, Any]) -> None:
    """Send a request of the agent's, and wait until its reply was counted."""
    headers = {"x-api-key": "none", "Content-Type": "application/json"}
    body = json.dumps(request).encode()
    status, _, answer = ask(url, "POST", "/v1/messages", body, headers)
    assert status == 200, answer
    settle(url)


def draw(folder: Path) -> None:
    """Write the pictures to a folder."""
    from playwright.sync_api import sync_playwright

    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with conversation() as address, sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=path, args=["--no-sandbox"]
        )
        for name, scheme, width, height in (
            ("light", "light", 1180, 860),
            ("dark", "dark", 1180, 860),
            ("phone", "light", 390, 780),
        ):
            page = browser.new_page(
                viewport={"width": width, "height": height},
                color_scheme=scheme,  # type: ignore[arg-type]
            )
            page.goto(address)
            _decide(page, is_dialog=name != "light")
            page.screenshot(path=folder / f"hand-{name}.png")
            page.close()
        browser.close()


def _decide(page: Any, *, is_dialog: bool) -> None:
    """Pin the rules, once; then show the section, or the price of dropping what is wrong."""
    page.wait_for_selector(".hand-bar button")
    pin = page.get_by_role("button", name="pin message 3", exact=True)
    if pin.count():
        pin.click()
        page.fill("#decide-reason", "the rules of the house")
        page.click("#decide-yes:enabled")
        page.wait_for_selector("#hand-told button")
    if is_dialog:
        page.get_by_role("button", name="drop message 15", exact=True).click()
        page.wait_for_selector("#decide-yes:enabled")
    else:
        page.evaluate("document.getElementById('hand').scrollIntoView()")


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
