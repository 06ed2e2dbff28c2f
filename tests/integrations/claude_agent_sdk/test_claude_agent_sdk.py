"""Claude Code, as the SDK brings and runs it, with our hook and our tools."""

import asyncio
import json

import pytest

pytest.importorskip(
    "claude_agent_sdk",
    reason="claude-agent-sdk is not installed (make claude-agent-sdk)",
)

from claude_agent_sdk import (
    ClaudeAgentOptions,
    HookMatcher,
    SdkMcpTool,
    create_sdk_mcp_server,
)

from tests.integrations.claude_agent_sdk.world import (
    LOOK,
    READ_ON,
    ask,
    looks,
    options_of,
    results,
    scripted,
    searches,
)
from tests.integrations.outputs import GREP, NEEDLE, big, refs_in
from tests.servers import Call, Reply
from ullage import ConfigError, MemoryStore, StoreFull
from ullage.integrations.claude_agent_sdk import UllageHooks

pytestmark = pytest.mark.timeout(120)


def ref_of(shown, at=-1):
    return refs_in(shown[at])[-1]


def test_two_large_results_and_a_recall(tmp_path):
    steps = [
        Reply("", looks(1, 2)),
        lambda shown: Reply("", searches(ref_of(shown, at=1))),
        "In the fourth drawer.",
    ]
    store = MemoryStore()
    with scripted(steps) as server, UllageHooks(store=store) as ullage:
        end = asyncio.run(ask(ullage.of("t", options_of(server, tmp_path))))
        shown = results(server.requests[-1])
        kept = [store.get("t", ref_of(shown, at)).text for at in (0, 1)]
    assert end.result == "In the fourth drawer."
    assert kept == [big(1), big(2)]
    assert [len(text) < 9_000 for text in shown] == [True, True, True]
    assert f"{NEEDLE} of cupboard 2\n" in shown[2]
    names = [tool["name"] for tool in server.requests[0].body["tools"]]
    assert READ_ON in names, "offered from the start, not to be searched for"


def test_a_shell_is_cut_and_a_file_is_whole(tmp_path):
    (tmp_path / "big.txt").write_text(
        "".join(f"{n} a line\n" for n in range(2_000))
    )
    steps = [
        Reply(
            "",
            [Call("Bash", {"command": "seq 1 20000", "description": "Count"})],
        ),
        Reply("", [Call("Read", {"file_path": str(tmp_path / "big.txt")})]),
        lambda shown: Reply(
            "",
            [
                Call(
                    READ_ON,
                    {"tool_call_id": ref_of(shown, 0), "offset": 60_000},
                )
            ],
        ),
        "Done.",
    ]
    with scripted(steps) as server, UllageHooks() as ullage:
        asyncio.run(ask(ullage.of("t", options_of(server, tmp_path))))
    shell, file, more = results(server.requests[-1])
    assert len(shell) < 7_000
    assert "1999 a line" in file
    assert "\n12000\n" in more


def test_a_session_that_is_resumed_opens_what_was_cut_before(tmp_path):
    steps = [
        Reply("", looks(1)),
        "I will see.",
        lambda shown: Reply("", searches(ref_of(shown))),
        "So.",
    ]
    with scripted(steps) as server:
        with UllageHooks(store=tmp_path / "u.db") as ullage:
            first = asyncio.run(
                ask(ullage.of("t", options_of(server, tmp_path)))
            )
        before = results(server.requests[-1])
        with UllageHooks(store=tmp_path / "u.db") as again:
            goes_on = options_of(server, tmp_path, resume=first.session_id)
            asyncio.run(ask(again.of("t", goes_on)))
    shown = results(server.requests[-1])
    assert shown[0] == before[0]
    assert NEEDLE in shown[1]


# The hook and the tools alone: no process


def hook_of(options):
    (matcher,) = options.hooks["PostToolUse"]
    return matcher.hooks[0]


def after(options, tool, response):
    given = {
        "hook_event_name": "PostToolUse",
        "tool_name": tool,
        "tool_response": response,
    }
    return asyncio.run(hook_of(options)(given, "toolu_1", {"signal": None}))


def shown_of(said):
    return said["hookSpecificOutput"]["updatedToolOutput"]


@pytest.mark.parametrize(
    ("tool", "response"),
    [
        (
            "Bash",
            {
                "stdout": big(1),
                "stderr": big(2),
                "interrupted": False,
                "isImage": False,
            },
        ),
        (
            "Grep",
            {
                "mode": "content",
                "numFiles": 0,
                "filenames": [],
                "content": big(1),
            },
        ),
        (
            "WebFetch",
            {
                "bytes": 9,
                "code": 200,
                "codeText": "OK",
                "result": big(1),
                "url": "u",
            },
        ),
        (
            "Agent",
            {
                "status": "completed",
                "content": [{"type": "text", "text": big(1)}],
            },
        ),
        (
            LOOK,
            [
                {"type": "text", "text": big(1)},
                {"type": "image", "data": "aa"},
            ],
        ),
        (LOOK, big(1)),
    ],
    ids=lambda value: (
        value if isinstance(value, str) and len(value) < 40 else ""
    ),
)
def test_a_result_keeps_its_shape(tool, response):
    before = repr(response)
    shown = shown_of(
        after(UllageHooks(limit_chars=4_000).of("t"), tool, response)
    )
    assert repr(response) == before
    assert len(repr(shown)) < 5_000
    assert shape(shown) == shape(response)


def shape(value):
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    return list(map(shape, value)) if isinstance(value, list) else type(value)


@pytest.mark.parametrize(
    ("tool", "response"),
    [
        ("Bash", {"stdout": "short", "stderr": ""}),
        ("Read", {"type": "text", "file": {"content": big(1)}}),
        ("Edit", {"originalFile": big(1), "structuredPatch": []}),
        ("Grep", {"mode": "files_with_matches", "filenames": ["a"] * 9_000}),
        (READ_ON, big(1)),
        ("Unheard", {"of": big(1)}),
        ("Unheard", None),
    ],
    ids=lambda value: (
        value if isinstance(value, str) and len(value) < 40 else ""
    ),
)
def test_what_is_short_is_no_texts_or_is_ours_stays(tool, response):
    assert after(UllageHooks().of("t"), tool, response) == {}


def test_what_cannot_be_kept_stays_whole_and_is_told():
    class Full(MemoryStore):
        def put(self, tenant, outputs):
            raise StoreFull("test", "put", "there is no room")

    said = after(UllageHooks(store=Full()).of("t"), LOOK, big(1))
    assert list(said) == ["systemMessage"]
    assert "there is no room" in said["systemMessage"]


def test_twelve_conversations_open_their_own():
    store = MemoryStore()
    ullage = UllageHooks(store=store)
    all_options = [ullage.of(str(n)) for n in range(12)]
    refs = [
        refs_in(shown_of(after(o, LOOK, big(n))))[0]
        for n, o in enumerate(all_options)
    ]
    for n in range(12):
        for m, ref in enumerate(refs):
            answer = asyncio.run(
                ullage._open(str(n), GREP, {"tool_call_id": ref})
            )
            assert answer["is_error"] == (n != m)


def test_what_is_given_stays_and_comes_first():
    async def mine(given, tool_use_id, context):
        return {}

    given = ClaudeAgentOptions(
        hooks={"PostToolUse": [HookMatcher(hooks=[mine])], "Stop": []},
        allowed_tools=["Bash"],
        env={"MAX_MCP_OUTPUT_TOKENS": "9"},
    )
    before = repr(given)
    made = UllageHooks().of("t", given)
    assert repr(given) == before
    assert made.hooks["PostToolUse"][0].hooks == [mine]
    assert made.allowed_tools[0] == "Bash"
    assert made.env["MAX_MCP_OUTPUT_TOKENS"] == "9"


def test_servers_in_a_file_are_refused():
    with pytest.raises(ConfigError):
        UllageHooks().of("t", ClaudeAgentOptions(mcp_servers="servers.json"))


# A server of the user's that has the name of ours


def mine(*names):
    """Servers of the user's, under these names, each with a tool of our name."""

    async def tell(arguments):
        told = f"And then, in {arguments['chapter']}, it rained."
        return {"content": [{"type": "text", "text": told}]}

    tool = SdkMcpTool(GREP, "Goes on with a story.", {"chapter": str}, tell)
    return {name: create_sdk_mcp_server(name, tools=[tool]) for name in names}


def test_a_server_of_the_users_keeps_its_name_and_ours_opens_all_the_same(
    tmp_path,
):
    searched = f"mcp__ullage2__{GREP}"
    theirs = f"mcp__ullage__{GREP}"

    def search(shown):
        assert f"{searched}(" in shown[0]
        assert f"{theirs}(" not in shown[0]
        ask = {"tool_call_id": ref_of(shown), "pattern": "needle"}
        return Reply("", [Call(searched, ask)])

    steps = [
        Reply("", looks(1)),
        search,
        Reply("", [Call(theirs, {"chapter": "two"})]),
        "In the fourth drawer.",
    ]
    with scripted(steps) as server, UllageHooks() as ullage:
        options = options_of(server, tmp_path)
        options.mcp_servers.update(mine("ullage"))
        options.allowed_tools.append(theirs)
        asyncio.run(ask(ullage.of("t", options)))
        _, found, told = results(server.requests[-1])
        names = [tool["name"] for tool in server.requests[0].body["tools"]]
    assert searched in names
    assert NEEDLE in found
    assert told == "And then, in two, it rained."


def test_ours_takes_the_first_name_that_is_free_and_says_how_it_was_called():
    servers = mine("ullage", "ullage2")
    given = ClaudeAgentOptions(mcp_servers=servers)
    made = UllageHooks().of("t", given)
    assert list(made.mcp_servers) == ["ullage", "ullage2", "ullage3"]
    assert made.mcp_servers["ullage"] is servers["ullage"]
    assert made.allowed_tools == [f"mcp__ullage3__{GREP}"]
    said = shown_of(after(made, LOOK, big(1)))
    assert f"mcp__ullage3__{GREP}(" in json.dumps(said)
    assert after(made, f"mcp__ullage3__{GREP}", big(1)) == {}
    assert after(made, f"mcp__ullage__{GREP}", big(1)) != {}


def test_options_that_have_our_server_already_are_given_no_second_one():
    ullage = UllageHooks()
    made = ullage.of("t", ullage.of("t"))
    assert list(made.mcp_servers) == ["ullage"]
