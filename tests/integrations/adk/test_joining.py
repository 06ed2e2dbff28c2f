"""The plugin is added to an application whose conversations are under way."""

import asyncio

import pytest

pytest.importorskip(
    "google.adk", reason="google-adk is not installed (make adk)"
)

from tests.integrations.adk.world import (
    agent_of,
    functions,
    new_service,
    running,
    say,
)
from tests.servers import Call, Reply
from ullage import Limits
from ullage.integrations.adk import UllageAdkPlugin

PAGE = "".join(f"line {n} of the page\n" for n in range(1_500))[:30_000]
ROOMY = Limits(window_tokens=1_000_000)
TURNS = 40


def fetch(path: str) -> str:
    """Fetches a page."""
    return f"{path}\n{PAGE}"


def asked(count):
    """Turns of one call and an answer each."""
    replies = []
    for n in range(count):
        replies += [
            Reply("", [Call("fetch", {"path": f"{n}.html"})]),
            f"Page {n} says nothing.",
        ]
    return replies


def sizes(serve, folder, first, **settings):
    """Bytes of each request; the plugin is there from turn ``first`` on."""
    server = serve("gemini", asked(TURNS), strict=True)

    async def main():
        service = new_service("sqlite", folder)
        for plugin, turns in (
            (None, range(first)),
            (UllageAdkPlugin(limits=ROOMY, **settings), range(first, TURNS)),
        ):
            async with running(
                agent_of(server, [fetch]), plugin, service
            ) as runner:
                for turn in turns:
                    await say(runner, f"And page {turn}?")

    asyncio.run(main())
    return [
        len(request.raw) for request in server.requests[2 * first :]
    ], server


@pytest.mark.parametrize("first", [1, 3, 10])
@pytest.mark.parametrize("settings", [{}, {"policy": "default"}])
def test_it_sends_little_more_than_with_the_plugin_from_the_start(
    serve, tmp_path, first, settings
):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    whole, _ = sizes(serve, tmp_path / "a", 0, **settings)
    sent, server = sizes(serve, tmp_path / "b", first, **settings)
    assert sum(sent) <= 1.5 * sum(whole[2 * first :])
    assert sent[-1] <= 1.5 * whole[-1]
    assert "get_continuation" in functions(server.requests[-1])


def test_it_can_be_turned_off(serve, tmp_path):
    sent, server = sizes(serve, tmp_path, 3, policy="default", joins=False)
    assert sent[-1] > TURNS * len(PAGE)
    assert functions(server.requests[-1]) == ["fetch"]
