"""Tools of a real MCP server, a process of its own, spoken to over stdio."""

import asyncio
import sys
from pathlib import Path

import pytest

from tests.loop.replies import FORMAT_NAMES, asking, reply, request, results
from tests.loop.test_turn import arun, new_session
from ullage import BudgetExceeded
from ullage.doors.loop import run_turn
from ullage.integrations.mcp_tools import amcp_tools, mcp_tools

SERVER = (sys.executable, str(Path(__file__).with_name("server.py")))
CALLS = [
    ("repeat", {"text": "ab", "times": 3}),
    ("table", {"rows": 2}),
    ("fail", {"why": "no such recording"}),
    ("picture", {}),
    ("repeat", {"text": "ab", "times": "often"}),
    ("leave", {}),
    ("repeat", {"text": "ab", "times": 1}),
]


pytestmark = pytest.mark.xdist_group(
    "tools of a server"
)  # one process of it for many tests


@pytest.fixture(scope="module")
def tools():
    with mcp_tools(SERVER) as opened:
        yield opened


def test_the_tools_of_a_server_are_listed(tools):
    named = {tool.name: tool for tool in tools}
    assert set(named) == {"repeat", "table", "fail", "picture", "leave"}
    assert named["repeat"].description == "Repeat a text."
    assert set(named["repeat"].parameters["properties"]) == {"text", "times"}


def test_what_they_answer_is_text_or_an_error(tools):
    calls, format = CALLS[:5], "anthropic"
    script = [reply(format, "", calls, 1), reply(format, "Done.")]
    history = asking(format)
    run_turn(
        lambda **_: script.pop(0),
        new_session(format),
        request(format, history),
        tools=tools,
    )
    repeated, table, failed, picture, refused = results(format, history)
    assert repeated == ("ababab", False)
    assert table[0].replace(" ", "").replace("\n", "") == '{"rows":[0,1]}'
    assert "no such recording" in failed[0]
    assert failed[1]
    assert picture[0].startswith("[image, 8 characters of base64, not shown: ")
    assert "times" in refused[0]
    assert refused[1]


def test_a_server_that_dies_is_an_error_to_the_model_and_no_end_of_the_turn():
    """Sync, in a process of its own: nobody else may lose it."""
    format = "openai-chat"
    script = [reply(format, "", [call], n) for n, call in enumerate(CALLS[5:])]
    script.append(reply(format, "It is gone."))
    history = asking(format)
    with mcp_tools(SERVER) as tools:
        outcome = run_turn(
            lambda **_: script.pop(0),
            new_session(format),
            request(format, history),
            tools=tools,
        )
    assert outcome.text == "It is gone."
    assert all(text != "ab" for text, _ in results(format, history))


def test_async_in_the_four_formats():
    async def main():
        async with amcp_tools(SERVER) as tools:
            for format in FORMAT_NAMES:
                script = [
                    reply(format, "", CALLS[:3], 1),
                    reply(format, "Done."),
                ]
                outcome, _, _ = await arun(format, *script, tools=tools)
                texts = [text for text, _ in results(format, outcome.history)]
                assert texts[0] == "ababab"
                assert "no such recording" in texts[2]

    asyncio.run(main())


def test_a_program_that_cannot_be_started_is_told():
    with (
        pytest.raises(OSError, match="no-such-program"),
        mcp_tools(["no-such-program"]),
    ):
        pass


@pytest.mark.parametrize(
    "error", [BudgetExceeded("usd", 1, 2), KeyboardInterrupt()]
)
def test_what_is_raised_inside_comes_out_as_it_is(error):
    with pytest.raises(type(error)) as raised, mcp_tools(SERVER):
        raise error
    assert raised.value is error
