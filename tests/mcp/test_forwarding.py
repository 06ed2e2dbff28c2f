"""Several servers behind one client, as processes."""

import json
import sys

import pytest

from tests.mcp.scripted import line
from tests.mcp.wired import MCP, SCRIPTED, told, wired
from ullage.core.errors import ConfigError
from ullage.core.installing import install_remedy
from ullage.core.values.notices import pointers
from ullage.doors.mcp.forwarding import open_store, run_several
from ullage.doors.mcp.settings import McpSettings

LOG = "".join(map(line, range(3_000)))


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "servers.toml"
    words, python = [*SCRIPTED[1:], "own"], json.dumps(sys.executable)
    path.write_text(
        f"[servers.one]\ncommand = {python}\nargs = {json.dumps(words)}\n"
        f"[servers.two]\ncommand = {python}\nargs = {json.dumps(SCRIPTED[1:])}\n"
        "[servers.two.env]\nTWO = '2'\n"
    )
    return path


def test_two_servers_are_one_with_their_names_kept_apart(config):
    with wired(*MCP, "--config", config) as session:
        names = [tool["name"] for tool in session.begin()]
        assert names[:2] == ["say", "both"]
        assert "own" in names
        assert {"two_say", "two_both"} <= {*names}
        assert names[-1] == "tool_output_cache_grep"
        assert len({*names}) == len(names)
        assert session.text("two_say", lines=3) == "".join(map(line, range(3)))
        shown = session.text("two_say", lines=3_000)
        assert len(shown) <= 8_000
        page = session.text(
            "get_continuation", tool_call_id=pointers(shown)[0].ref, offset=9
        )
        assert page.startswith(LOG[9:1_000])
        assert len(json.dumps(session.call("two_rows", rows=2_000))) < 10_000


def test_one_that_ends_is_told_of_and_the_others_go_on(config):
    with wired(*MCP, "--config", config) as session:
        session.begin()
        error = session.ask(
            "tools/call", name="two_crash", arguments={"code": 3}
        )["error"]
        assert "two: the server ended with exit code 3" in error["message"]
        assert session.text("say", lines=1) == line(0)
        again = session.ask(
            "tools/call", name="two_say", arguments={"lines": 1}
        )
        assert "error" in again
        session.process.stdin.close()
        assert session.process.wait(100) == 3
        assert "two: the server ended with exit code 3" in told(
            session.process
        )


def test_without_what_checks_every_schema_some_structures_go_whole_and_that_is_told():
    code = (
        "import sys; sys.modules['jsonschema_rs'] = None; "
        "from ullage.tools.cli import main; main()"
    )
    with wired(sys.executable, "-c", code, "mcp", "--", *SCRIPTED) as session:
        session.begin()
        result = session.call("rows", rows=2_000)
        assert len(result["structuredContent"]["rows"]) < 200
        result = session.call("strict", chars=20_000)
        assert len(result["structuredContent"]["key"]) == 20_000
        session.process.stdin.close()
        session.process.wait(100)
        assert install_remedy("mcp") in told(session.process)


def test_without_a_store_nothing_is_kept():
    store = open_store(McpSettings())
    assert store.name == "spool"
    store.close()


def test_no_server_at_all_is_told():
    with pytest.raises(ConfigError, match="there is no server"):
        run_several(McpSettings())
