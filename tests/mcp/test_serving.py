"""What a store holds of one tenant, to be listed, read and searched by any agent."""

import json
import os
import subprocess

import anyio
import pytest
from mcp import Client, StdioServerParameters

from tests.mcp.wired import MCP
from ullage.core.values.effects import Output
from ullage.doors.mcp.serving import LIST, Shelf, answered
from ullage.stores import MemoryStore, SqliteStore, ref_of

LOG = "".join(f"line {n}: all is well\n" for n in range(2_000))


def kept(store, tenant, *texts):
    store.put(tenant, [Output(ref_of(text), text) for text in texts])
    return [ref_of(text) for text in texts]


class Asked:
    """A shelf, asked by frames."""

    def __init__(self, *stores, tenant="me"):
        self.shelf = Shelf(stores, tenant)

    def ask(self, method, meta=None, **params):
        params = {**params, **({"_meta": meta} if meta else {})}
        frame = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return json.loads(answered(json.dumps(frame).encode(), self.shelf))

    def call(self, name, **arguments):
        result = self.ask("tools/call", name=name, arguments=arguments)[
            "result"
        ]
        return result["content"][0]["text"], result["isError"]


@pytest.fixture
def asked():
    store = MemoryStore()
    kept(store, "me", LOG, "the other one")
    kept(store, "you", "of somebody else")
    return Asked(store)


def test_a_list_says_what_there_is_page_by_page(asked):
    text, _ = asked.call(LIST)
    assert sorted(line.split()[0] for line in text.splitlines()) == sorted(
        [ref_of(LOG), ref_of("the other one")]
    )
    assert (
        f"{len(LOG):,} characters, 2,001 lines  line 0: all is well line 1"
        in text
    )
    first, _ = asked.call(LIST, limit=1)
    ref = first.split()[0]
    assert f'after="{ref}"' in first
    second, _ = asked.call(LIST, limit=1, after=ref)
    assert ref not in second
    assert "more" not in second


def test_it_is_read_by_character_by_line_and_by_pattern(asked):
    ref = ref_of(LOG)
    assert asked.call(
        "get_continuation", tool_call_id=ref, offset=len(LOG) - 5
    ) == (
        LOG[-5:],
        False,
    )
    assert (
        "    11\tline 10: "
        in asked.call("tool_output_cache", ref_id=ref, offset=10)[0]
    )
    assert (
        "1 of 1 matching"
        in asked.call("tool_output_cache_grep", ref_id=ref, pattern="line 7:")[
            0
        ]
    )


def test_a_pattern_without_a_ref_searches_everything(asked):
    text, is_error = asked.call(
        "tool_output_cache_grep", pattern="other|line 7:"
    )
    assert {ref_of(LOG) + ":", ref_of("the other one") + ":"} <= {
        *text.splitlines()
    }
    assert not is_error
    assert asked.call("tool_output_cache_grep", pattern="somebody")[
        0
    ].startswith("[no output")
    assert asked.call("tool_output_cache_grep", pattern="(")[1] is True


def test_a_search_of_very_much_says_where_it_ended():
    store = MemoryStore()
    kept(store, "me", *(f"{n}\n{LOG}" for n in range(20)))
    text, _ = Asked(store).call("tool_output_cache_grep", pattern="well")
    assert "outputs behind" in text.splitlines()[-1]


def test_nothing_of_another_tenant_opens(asked):
    for name in ("get_continuation", "tool_output_cache"):
        key = "tool_call_id" if name == "get_continuation" else "ref_id"
        text, is_error = asked.call(name, **{key: ref_of("of somebody else")})
        assert is_error
        assert "nothing is kept under" in text


def test_a_tool_that_is_not_there_is_told(asked):
    assert asked.call("read")[1] is True
    assert "get_continuation" in asked.call(None)[0]


def test_several_stores_are_read_as_one():
    one, two = MemoryStore(), MemoryStore()
    kept(one, "me", "in one", "in both")
    (ref, _) = kept(two, "me", "in two", "in both")
    asked = Asked(one, two)
    assert len(asked.call(LIST)[0].splitlines()) == 3
    assert asked.call("get_continuation", tool_call_id=ref) == (
        "in two",
        False,
    )


def test_both_ages_of_the_protocol(asked):
    about = asked.ask("initialize", protocolVersion="2025-06-18")["result"]
    assert about["protocolVersion"] == "2025-06-18"
    assert (
        asked.ask("initialize", protocolVersion="1")["result"][
            "protocolVersion"
        ]
        == "2025-11-25"
    )
    assert "resultType" not in asked.ask("tools/list")["result"]
    key = "io.modelcontextprotocol/protocolVersion"
    assert (
        asked.ask("tools/list", meta={key: "2026-07-28"})["result"][
            "resultType"
        ]
        == "complete"
    )
    assert (
        asked.ask("tools/list", meta={key: "2099-01-01"})["error"]["code"]
        == -32022
    )
    assert asked.ask("server/discover")["result"]["supportedVersions"] == [
        "2026-07-28"
    ]
    assert asked.ask("ping")["result"] == {}
    assert asked.ask("prompts/list")["error"]["code"] == -32601


@pytest.mark.parametrize(
    "frame", [b"", b"{", b"[]", b'{"method":"x"}', b'{"id":1,"result":{}}']
)
def test_what_asks_for_nothing_gets_nothing(asked, frame):
    assert answered(frame, asked.shelf) == b""


def test_params_that_are_no_object_are_refused(asked):
    frame = b'{"id":1,"method":"tools/call","params":[]}'
    assert json.loads(answered(frame, asked.shelf))["error"]["code"] == -32602


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_official_client_reads_a_store(tmp_path, mode):
    path = tmp_path / "kept.db"
    store = SqliteStore(path)
    kept(store, "", LOG)
    store.close()

    async def talk():
        command, *args = [*MCP, "serve", str(path)]
        parameters = StdioServerParameters(
            command=command, args=args, env=dict(os.environ)
        )
        async with Client(parameters, mode=mode) as client:
            tools = (await client.list_tools()).tools
            assert tools[0].name == LIST
            listed = await client.call_tool(LIST, {})
            assert ref_of(LOG) in listed.content[0].text

    anyio.run(talk)


def test_a_store_that_is_not_there_is_told(tmp_path):
    done = subprocess.run(
        [*MCP, "serve", str(tmp_path / "none.db")],
        input=b"",
        capture_output=True,
        timeout=110,
    )
    assert b"there is no store" in done.stderr
    assert done.returncode == 1
