"""What makes a command talk to the proxy."""

import json
from pathlib import Path

import pytest

from ullage.doors.proxy import agents
from ullage.doors.proxy.agents import (
    AGENTS,
    MARK,
    READ_BY,
    VARIABLES,
    arguments_for,
    setting_for,
)
from ullage.doors.proxy.config import UPSTREAMS

URL = "http://127.0.0.1:1"


def test_every_provider_is_found_at_the_proxy():
    found = setting_for({}).variables_at(URL, {})
    assert found["ANTHROPIC_BASE_URL"] == f"{URL}/anthropic"
    assert found["OPENAI_BASE_URL"] == f"{URL}/openai/v1"
    assert found["GOOGLE_GEMINI_BASE_URL"] == f"{URL}/gemini"
    assert set(VARIABLES) < set(found)
    assert found[MARK] == URL


def test_a_gateway_of_the_users_stays_the_end_of_the_way():
    there = {"OPENAI_BASE_URL": "https://gateway.example/api/v1"}
    setting = setting_for(there)
    assert setting.upstreams == {
        "openai-base-url.gateway.example": "https://gateway.example",
        "ollama": "http://127.0.0.1:11434",
    }
    variables = setting.variables_at(URL, there)
    assert (
        variables["OPENAI_BASE_URL"]
        == f"{URL}/openai-base-url.gateway.example/api/v1"
    )
    configured = setting_for(there, ["openai", "ollama"])
    assert configured.upstreams == {}, "what is configured goes before it"


def test_host_and_path_of_a_gateway_are_still_seen_in_its_path():
    """Qwen Code knows Alibaba's by its host, LiteLLM Anthropic's by the end of the path."""
    there = {
        "OPENAI_BASE_URL": "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        "ANTHROPIC_API_BASE": "https://gateway.example/v1/messages/",
    }
    variables = setting_for(there).variables
    assert (
        "dashscope-intl.aliyuncs.com/compatible-mode/v1"
        in variables["OPENAI_BASE_URL"]
    )
    assert variables["ANTHROPIC_API_BASE"].endswith("/v1/messages")


def ends_of(environment, program="", folder=None):
    """Where each variable of a command leads in the end: through the proxy, or past it."""
    setting = setting_for(environment, program=program, folder=folder)
    behind = {**UPSTREAMS, **setting.upstreams}
    whole = setting.environment_at(URL, environment)
    ends = {}
    for name in {*VARIABLES} & {*whole}:
        assert whole[name].startswith(f"{URL}/"), name
        upstream, _, rest = whole[name].removeprefix(f"{URL}/").partition("/")
        ends[name] = f"{behind[upstream]}/{rest}".rstrip("/")
    return ends


@pytest.mark.parametrize("name", VARIABLES)
def test_no_other_variable_of_a_provider_leads_elsewhere(name):
    """LiteLLM prefers one, goose the other: a key for the gateway must not go to the vendor."""
    gateway = "https://gateway.example/v1"
    ends = ends_of({name: gateway})
    provider = VARIABLES[name].partition("/")[0]
    own = [
        other for other in VARIABLES if VARIABLES[other].startswith(provider)
    ]
    assert {ends[other] for other in own if other in ends} == {gateway}


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_is_led_by_the_variable_that_it_prefers_least(agent):
    """So a setting of the user's, wherever it stands, goes before ours."""
    variables = setting_for({}, program=agent).variables
    for provider in ("anthropic", "openai", "gemini"):
        read = [
            name
            for name in READ_BY[agent]
            if VARIABLES[name].startswith(provider)
        ]
        assert [name for name in read if name in variables] == read[-1:]


def test_a_variable_that_names_the_vendor_leads_to_it_through_the_proxy():
    there = {"OPENAI_BASE_URL": "https://api.openai.com/v1/"}
    setting = setting_for(there, ["ollama"], program="aider")
    assert setting.upstreams == {}
    assert setting.variables["OPENAI_BASE_URL"] == "openai/v1"


def test_qwen_code_asks_alibaba_unless_something_else_is_named(tmp_path):
    home = {"HOME": str(tmp_path)}
    dashscope = "https://dashscope.aliyuncs.com/compatible-mode/v1"
    assert ends_of(home, "qwen", tmp_path)["OPENAI_BASE_URL"] == dashscope
    other = {**home, "OPENAI_BASE_URL": "https://api.openai.com/v1"}
    assert (
        ends_of(other, "qwen", tmp_path)["OPENAI_BASE_URL"]
        == "https://api.openai.com/v1"
    )
    configured = setting_for(home, ["openai"], program="qwen", folder=tmp_path)
    assert configured.variables["OPENAI_BASE_URL"] == "openai/v1"


def test_qwen_code_is_not_led_to_a_proxy_that_does_not_reach_this_machine(
    tmp_path,
):
    """It asks the system's proxy even for an address that is in ``NO_PROXY``."""
    there = {"HTTPS_PROXY": "http://proxy.example", "HOME": str(tmp_path)}
    for agent in AGENTS:
        whole = setting_for(
            there, program=agent, folder=tmp_path
        ).environment_at(URL, there)
        assert ("HTTPS_PROXY" in whole) == (agent != "qwen")


def test_a_proxy_of_the_users_is_not_asked_for_this_machine():
    found = setting_for({}).variables_at(URL, {"NO_PROXY": "internal.example"})
    assert found["NO_PROXY"] == "internal.example,127.0.0.1,localhost"
    assert found["no_proxy"] == "127.0.0.1,localhost"


def test_opencode_keeps_its_own_settings():
    own = {
        "model": "x/y",
        "provider": {"openai": {"options": {"baseURL": "https://mine"}}},
    }
    made = setting_for({}).variables_at(
        URL, {"OPENCODE_CONFIG_CONTENT": json.dumps(own)}
    )
    found = json.loads(made["OPENCODE_CONFIG_CONTENT"])
    assert found["model"] == "x/y"
    assert found["provider"]["openai"]["options"] == {
        "baseURL": "https://mine"
    }
    assert found["provider"]["anthropic"]["options"] == {
        "baseURL": f"{URL}/anthropic/v1"
    }
    assert setting_for({}).variables_at(
        URL, {"OPENCODE_CONFIG_CONTENT": "no JSON"}
    )


def test_codex_is_told_on_its_command_line():
    setting = setting_for({})
    told = arguments_for(["/usr/bin/codex", "exec", "Hello."], setting, URL)
    assert told == [
        "/usr/bin/codex",
        "-c",
        f'openai_base_url="{URL}/openai/v1"',
        "exec",
        "Hello.",
    ]
    for name in set(AGENTS) - {"codex"}:
        assert arguments_for([name, "-p"], setting, URL) == [name, "-p"]


def test_codex_reads_no_variable_of_the_sdks():
    setting = setting_for(
        {"OPENAI_BASE_URL": "https://gateway.example/v1"}, program="codex"
    )
    assert f'openai_base_url="{URL}/openai/v1"' in arguments_for(
        ["codex"], setting, URL
    )


def test_opencode_ends_where_a_variable_says():
    setting = setting_for(
        {"ANTHROPIC_BASE_URL": "https://gateway.example/v1"},
        program="opencode",
    )
    made = json.loads(
        setting.variables_at(URL, {})["OPENCODE_CONFIG_CONTENT"]
    )["provider"]
    base = f"{URL}/anthropic-base-url.gateway.example/v1"
    assert made["anthropic"]["options"]["baseURL"] == base


# Gemini CLI with a key that is in its environment alone


def test_gemini_cli_is_told_to_use_its_key_if_the_file_that_says_so_is_root_s(
    monkeypatch, tmp_path
):
    there = {"HOME": str(tmp_path), "GEMINI_API_KEY": "none"}
    monkeypatch.setattr(agents, "_is_root_s", lambda path: True)
    setting = setting_for(there, program="gemini", folder=tmp_path)
    file = setting.features["GEMINI_CLI_SYSTEM_DEFAULTS_PATH"]
    chosen = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    assert json.loads(Path(file).read_text()) == chosen
    assert setting.variables["GOOGLE_GEMINI_BASE_URL"] == "gemini"


def test_gemini_cli_runs_without_us_where_it_could_not_start_and_that_is_said(
    monkeypatch, tmp_path
):
    there = {"HOME": str(tmp_path), "GEMINI_API_KEY": "none"}
    monkeypatch.setattr(agents, "_is_root_s", lambda path: False)
    setting = setting_for(there, program="gemini", folder=tmp_path)
    assert "GOOGLE_GEMINI_BASE_URL" not in setting.variables
    assert "without the proxy" in setting.note
    chosen = json.dumps(
        {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    )
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini" / "settings.json").write_text(chosen)
    setting = setting_for(there, program="gemini", folder=tmp_path)
    assert setting.variables["GOOGLE_GEMINI_BASE_URL"] == "gemini"
    assert not setting.note


FEATURES = {
    "ENABLE_TOOL_SEARCH": "true",
    "_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL": "1",
}


def set_for_claude(environment, **addresses):
    addresses = {**UPSTREAMS, **addresses}
    made = setting_for(environment, (), addresses).variables_at(
        URL, environment
    )
    return {name: made[name] for name in FEATURES if name in made}


def test_claude_code_keeps_what_it_has_at_its_vendor_s():
    assert set_for_claude({}) == FEATURES
    assert (
        set_for_claude({"ANTHROPIC_BASE_URL": "https://api.anthropic.com/"})
        == FEATURES
    )


def test_nothing_is_set_before_another_upstream():
    for other in (
        "https://gateway.example",
        "http://api.anthropic.com",
        "https://api.anthropic.com.evil.example",
        "https://api.anthropic.com@evil.example",
        "https://api.anthropic.com:444",
        "https://api.anthropic.com/gateway",
    ):
        assert set_for_claude({}, anthropic=other) == {}
        assert set_for_claude({"ANTHROPIC_BASE_URL": other}) == {}


def test_what_the_user_has_set_stays():
    told = set_for_claude({"ENABLE_TOOL_SEARCH": "false"})
    assert told == {"_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL": "1"}


# Ollama


def test_a_program_finds_the_server_of_this_machine_through_the_proxy():
    setting = setting_for({})
    assert setting.upstreams == {"ollama": "http://127.0.0.1:11434"}
    assert (
        setting.variables["OLLAMA_HOST"]
        == setting.variables["OLLAMA_API_BASE"]
        == "ollama"
    )


@pytest.mark.parametrize(
    ("named", "server", "path"),
    [
        ("gpu", "http://gpu:11434", "ollama-host.gpu"),
        ("gpu:9999", "http://gpu:9999", "ollama-host.gpu"),
        ("0.0.0.0", "http://127.0.0.1:11434", "ollama-host.127.0.0.1"),
        ("[::1]:8080", "http://[::1]:8080", "ollama-host.1"),
        ("http://gpu", "http://gpu:80", "ollama-host.gpu"),
        (
            "https://gpu.example/ai/",
            "https://gpu.example:443",
            "ollama-host.gpu.example/ai",
        ),
    ],
)
def test_the_server_that_is_named_stays_the_end_of_the_way(
    named, server, path
):
    """As the clients read it: a host, a port, or a URL."""
    setting = setting_for({"OLLAMA_HOST": named})
    assert setting.variables["OLLAMA_HOST"] == path
    assert setting.upstreams[path.partition("/")[0]] == server


@pytest.mark.parametrize("named", ["gpu", "tcp://gpu"])
@pytest.mark.parametrize(
    ("name", "other"),
    [("OLLAMA_HOST", "OLLAMA_API_BASE"), ("OLLAMA_API_BASE", "OLLAMA_HOST")],
)
def test_no_other_variable_leads_away_from_the_server_that_is_named(
    name, other, named
):
    """A program may read both: a key for the server must not go to this machine's."""
    setting = setting_for({name: named})
    assert other not in setting.variables
    assert "ollama" not in setting.upstreams


def test_where_the_server_of_this_machine_is_named_it_is_found_by_the_other_variable_too():
    assert (
        setting_for({"OLLAMA_HOST": "0.0.0.0"}).variables["OLLAMA_API_BASE"]
        == "ollama"
    )


@pytest.mark.parametrize(
    "named", ["gpu:no-port", "tcp://gpu", "https://me:secret@gpu"]
)
def test_an_address_that_is_none_is_left_as_it_is(named):
    assert "OLLAMA_HOST" not in setting_for({"OLLAMA_HOST": named}).variables


def test_a_server_reads_where_it_is_to_listen():
    """`ollama serve`, and what a coding agent may start in its shell."""
    assert (
        "OLLAMA_HOST"
        not in setting_for({}, program="ollama", arguments=["serve"]).variables
    )
    assert (
        "OLLAMA_HOST"
        in setting_for(
            {}, program="ollama", arguments=["run", "qwen3"]
        ).variables
    )
    led = {
        agent
        for agent in AGENTS
        if "OLLAMA_HOST" in setting_for({}, program=agent).variables
    }
    assert led == {"goose"}
    assert "OLLAMA_API_BASE" in setting_for({}, program="aider").variables
