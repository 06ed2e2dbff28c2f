"""A client's list of tools that may be called: ours join it, and leave it again."""

import json
import tomllib

import pytest

from tests.cli.terminal import ullage
from ullage.doors.mcp.allowing import (
    RECALL_NAMES,
    allow,
    disallow,
    permit,
    unpermit,
)
from ullage.doors.mcp.clients import CLIENTS

CODEX, GEMINI, CURSOR = (
    CLIENTS["codex"],
    CLIENTS["gemini-cli"],
    CLIENTS["cursor"],
)

TOML = """# mine
[mcp_servers.git]
command = "uvx"
args = ["mcp-server-git"]
enabled_tools = ["git_log", "git_diff"] # these two

[mcp_servers.free]
command = "free"
"""
JSON = """{
  // mine
  "mcpServers": {
    "git": { "command": "uvx", "includeTools": ["git_log"] },
    "free": { "command": "free" }
  }
}
"""


def test_codex_and_gemini_list_ours_beside_the_tools_they_listed():
    listed = tomllib.loads(allow(TOML, CODEX, ["git", "free"]))["mcp_servers"]
    assert {*listed["git"]["enabled_tools"]} == {
        "git_log",
        "git_diff",
        *RECALL_NAMES,
    }
    assert "enabled_tools" not in listed["free"]
    text = allow(JSON, GEMINI, ["git", "free"])
    assert text.startswith("{\n  // mine\n")
    listed = json.loads(text.replace("// mine", ""))["mcpServers"]
    assert {*listed["git"]["includeTools"]} == {"git_log", *RECALL_NAMES}
    assert "includeTools" not in listed["free"]


@pytest.mark.parametrize(("text", "client"), [(TOML, CODEX), (JSON, GEMINI)])
def test_what_was_allowed_is_taken_out_again_to_the_byte(text, client):
    allowed = allow(text, client, ["git"])
    assert allow(allowed, client, ["git"]) == allowed
    assert disallow(allowed, client, ["git"]) == text
    assert allow(text, client, ["free"]) == text


def test_a_client_without_such_a_list_is_left():
    assert allow(JSON, CURSOR, ["git"]) == JSON


PERMISSIONS = """{
  "permissions": {
    "allow": [
      "Bash(ls)", // mine
      "mcp__git__git_log", "mcp__whole", "mcp__whole__a"
    ]
  }
}
"""


def rules(text):
    return json.loads(text.replace("// mine", ""))["permissions"]["allow"]


def test_claude_code_is_permitted_ours_where_it_is_permitted_tools_by_name():
    text = permit(PERMISSIONS, ["git", "whole", "other"])
    ours = [f"mcp__git__{name}" for name in RECALL_NAMES]
    assert rules(text) == [*ours, *rules(PERMISSIONS)]
    assert permit(text, ["git"]) == text
    assert rules(unpermit(text, ["git"])) == rules(PERMISSIONS)


@pytest.mark.parametrize(
    "text", ["{}", '{"permissions": {}}', '{"permissions": {"allow": 5}}']
)
def test_settings_without_permissions_are_left(text):
    assert permit(text, ["git"]) == unpermit(text, ["git"]) == text


def test_install_shows_both_files_and_uninstall_gives_them_back(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    servers, settings = (
        tmp_path / ".claude.json",
        tmp_path / ".claude/settings.json",
    )
    settings.parent.mkdir()
    servers.write_text(
        '{"mcpServers": {"git": {"command": "uvx", "args": ["git"]}}}'
    )
    settings.write_text(PERMISSIONS)
    before = servers.read_text(), settings.read_text()
    shown = ullage("mcp", "install", "claude-code", "--dry-run").text
    assert "+" in shown
    assert "mcp__git__get_continuation" in shown
    assert (servers.read_text(), settings.read_text()) == before
    assert ullage("mcp", "install", "claude-code", "--yes").status == 0
    assert "mcp__git__get_continuation" in settings.read_text()
    assert ullage("mcp", "uninstall", "claude-code", "--yes").status == 0
    assert (servers.read_text(), rules(settings.read_text())) == (
        before[0],
        rules(before[1]),
    )
