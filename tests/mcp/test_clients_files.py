"""A server in a client's file: put behind the proxy and taken out again, all else as it was."""

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.core.errors import ConfigError
from ullage.doors.mcp.clients import (
    CLIENTS,
    changed,
    is_ours,
    servers_of,
    unwrapped,
    wrapped,
)

BEFORE = ("/opt/bin/ullage", "mcp", "--limit", "6000")
CURSOR, CODEX, OPENCODE = (
    CLIENTS["cursor"],
    CLIENTS["codex"],
    CLIENTS["opencode"],
)


def around(text, client):
    """The text with every server behind the proxy, and that with every server out again."""
    behind = {
        name: wrapped(words, BEFORE)
        for name, words in servers_of(text, client).items()
    }
    there = changed(text, client, behind)
    assert servers_of(there, client) == behind
    out = {
        name: unwrapped(words)
        for name, words in servers_of(there, client).items()
    }
    return there, changed(there, client, out)


WRITTEN = """{
  // my servers
  "mcpServers": {
    "files": {
      "command": "npx", // the program
      "args": [
        "-y", // yes
        "server-filesystem", "."
      ],
      "env": { "KEY": "value" },
    },
    "far": { "url": "https://host/mcp" }
  }
}
"""


def test_comments_and_layout_stay():
    there, back = around(WRITTEN, CURSOR)
    assert back == WRITTEN
    assert '"command": "/opt/bin/ullage", // the program' in there
    assert '"mcp", "--limit", "6000", "--", "npx", "-y", // yes' in there
    assert '"far": { "url": "https://host/mcp" }' in there


def test_a_list_of_words_is_changed_as_one():
    text = '{"mcp": {"a": {"type": "local", "command": ["npx", "x"], "enabled": true}}}'
    there, back = around(text, OPENCODE)
    assert back == text
    assert json.loads(there)["mcp"]["a"]["command"] == [
        *BEFORE,
        "--",
        "npx",
        "x",
    ]


TOML = """# mine
model = "x"

[mcp_servers.git]  # the repository
command = "uvx"
args = [
    "mcp-server-git",  # yes
]

[mcp_servers.bare]
command = "serve"

[mcp_servers.far]
url = "https://host/mcp"
"""


def test_comments_in_toml_stay():
    there, back = around(TOML, CODEX)
    for comment in ("# mine", "# the repository", "# yes"):
        assert comment in there
        assert comment in back
    assert tomllib.loads(there)["mcp_servers"]["git"]["args"][-3:] == [
        "--",
        "uvx",
        "mcp-server-git",
    ]
    assert servers_of(back, CODEX) == servers_of(TOML, CODEX)


NAMES = st.text("abc /-,[]{}", min_size=1, max_size=6)
SERVERS = st.dictionaries(
    NAMES,
    st.fixed_dictionaries(
        {"command": NAMES},
        optional={"args": st.lists(NAMES, max_size=3), "env": st.just({})},
    ),
    max_size=3,
)


@given(SERVERS, st.sampled_from([None, 2, 4]))
def test_any_servers_come_out_as_they_went_in(servers, indent):
    text = json.dumps({"a": 1, "mcpServers": servers, "b": [2]}, indent=indent)
    _, back = around(text, CURSOR)
    was = {name: {"args": [], **server} for name, server in servers.items()}
    said = json.loads(back)
    assert {
        name: {"args": [], **server}
        for name, server in said["mcpServers"].items()
    } == was
    assert (said["a"], said["b"]) == (1, [2])
    if all(server.get("args") for server in servers.values()):
        assert back == text


@pytest.mark.parametrize(
    "words",
    [
        ("ullage", "mcp", "--", "npx", "x"),
        ("C:\\bin\\ullage.exe", "mcp", "--limit", "5", "--", "npx", "x"),
        ("python3", "-m", "ullage", "mcp", "--", "npx", "x"),
    ],
)
def test_ours_is_known_however_it_is_called(words):
    assert is_ours(words)
    assert unwrapped(words) == ("npx", "x")


@pytest.mark.parametrize(
    "words",
    [("npx", "x"), ("ullage", "mcp", "serve", "kept.db"), ("mcp", "--")],
)
def test_what_is_not_ours_stays(words):
    assert not is_ours(words)
    assert unwrapped(words) == words


@pytest.mark.parametrize("text", ["", "{", "[]", '{"mcpServers": '])
def test_a_file_that_cannot_be_read_is_told(text):
    with pytest.raises(ConfigError, match="nothing was changed"):
        servers_of(text, CURSOR)


@pytest.mark.parametrize(
    "text", ["{}", '{"mcpServers": []}', '{"mcpServers": {"a": 5}}']
)
def test_a_file_without_servers_has_none(text):
    assert servers_of(text, CURSOR) == {}
