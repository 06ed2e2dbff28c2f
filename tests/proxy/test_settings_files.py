"""A setting in an agent's file, read back as its language is read; nothing else moves."""

import tomllib

import pytest
import yaml

from ullage.core.errors import ConfigError
from ullage.doors.proxy.settings_files import (
    AGENT_FILES,
    said,
    value_at,
    with_setting,
)

URL = "http://127.0.0.1:8787/x"
CODEX = """\
# my Codex
model = "gpt-5"   # the large one

[mcp_servers.git]
command = "uvx"
openai_base_url = "not this one"
"""
GEMINI = """\
# keys
GEMINI_API_KEY=abc # not shown
export OTHER="x y"
"""
GOOSE = """\
---
GOOSE_PROVIDER: anthropic
extensions:
  developer:
    enabled: true # yes
list:
- one
text: |
  OPENAI_HOST: not this one
"""


def setting_of(name):
    return AGENT_FILES[name].addresses[0].setting


@pytest.mark.parametrize(
    ("name", "text", "parse"),
    [
        ("codex", CODEX, tomllib.loads),
        ("goose", GOOSE, yaml.safe_load),
        ("codex", "", tomllib.loads),
        ("codex", "[table]\na = 1\n", tomllib.loads),
    ],
)
def test_a_setting_is_set_and_taken_out_again(name, text, parse):
    agent, (setting,) = AGENT_FILES[name], [setting_of(name)]
    changed = with_setting(text, agent, setting, URL)
    assert parse(changed) == {**(parse(text) or {}), setting[0]: URL}
    again = with_setting(changed, agent, setting, "http://[::1]:1/y")
    assert parse(again)[setting[0]] == "http://[::1]:1/y"
    assert with_setting(again, agent, setting, None) == text


def test_a_line_of_an_env_file():
    agent, setting = AGENT_FILES["gemini"], setting_of("gemini")
    changed = with_setting(GEMINI, agent, setting, URL)
    assert changed == f"GOOGLE_GEMINI_BASE_URL={URL}\n{GEMINI}"
    assert value_at(said(changed, agent), setting) == URL
    assert with_setting(changed, agent, setting, None) == GEMINI


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("claude", "[]"),
        ("claude", '{"env": "none"}'),
        ("claude", '{"env": {}, "env": {"ANTHROPIC_BASE_URL": 1}, }}'),
        ("codex", "model = "),
        ("codex", 'text = """\nopenai_base_url = 1\n"""\n'),
        ("gemini", "GOOGLE_GEMINI_BASE_URL=a\nGOOGLE_GEMINI_BASE_URL=b\n"),
        ("goose", "{GOOSE_PROVIDER: anthropic}\n"),
        ("goose", '"ANTHROPIC_HOST": x\n'),
        ("goose", "a: 1\n---\nb: 2\n---\nc: 3\n"),
    ],
)
def test_what_is_not_understood_is_refused(name, text):
    agent = AGENT_FILES[name]
    with pytest.raises(ConfigError, match="settings"):
        with_setting(text, agent, agent.addresses[0].setting, URL)


def test_an_object_that_was_empty_before_stays():
    agent, setting = AGENT_FILES["claude"], setting_of("claude")
    changed = with_setting('{"env": {}}', agent, setting, URL)
    assert said(with_setting(changed, agent, setting, None), agent) == {}
    kept = with_setting(changed, agent, setting, None, {"env": {}})
    assert said(kept, agent) == {"env": {}}
