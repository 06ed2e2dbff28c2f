"""What makes a command talk to the proxy."""

import json

from ullage.proxy.agents import AGENTS, MARK, VARIABLES, arguments_for, setting_for
from ullage.proxy.config import UPSTREAMS

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
    assert setting.upstreams == {"openai-base-url": "https://gateway.example/api/v1"}
    assert setting.variables_at(URL, there)["OPENAI_BASE_URL"] == f"{URL}/openai-base-url"
    assert setting_for(there, ["openai"]).upstreams == {}, "what is configured goes before it"


def test_a_proxy_of_the_users_is_not_asked_for_this_machine():
    found = setting_for({}).variables_at(URL, {"NO_PROXY": "internal.example"})
    assert found["NO_PROXY"] == "internal.example,127.0.0.1,localhost"
    assert found["no_proxy"] == "127.0.0.1,localhost"


def test_opencode_keeps_its_own_settings():
    own = {"model": "x/y", "provider": {"openai": {"options": {"baseURL": "https://mine"}}}}
    made = setting_for({}).variables_at(URL, {"OPENCODE_CONFIG_CONTENT": json.dumps(own)})
    found = json.loads(made["OPENCODE_CONFIG_CONTENT"])
    assert found["model"] == "x/y"
    assert found["provider"]["openai"]["options"] == {"baseURL": "https://mine"}
    assert found["provider"]["anthropic"]["options"] == {"baseURL": f"{URL}/anthropic/v1"}
    assert setting_for({}).variables_at(URL, {"OPENCODE_CONFIG_CONTENT": "no JSON"})


def test_codex_is_told_on_its_command_line():
    setting = setting_for({})
    told = arguments_for(["/usr/bin/codex", "exec", "Hello."], setting, URL)
    assert told == ["/usr/bin/codex", "-c", f'openai_base_url="{URL}/openai/v1"', "exec", "Hello."]
    for name in set(AGENTS) - {"codex"}:
        assert arguments_for([name, "-p"], setting, URL) == [name, "-p"]


FEATURES = {"ENABLE_TOOL_SEARCH": "true", "_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL": "1"}


def set_for_claude(environment, **addresses):
    addresses = {**UPSTREAMS, **addresses}
    made = setting_for(environment, (), addresses).variables_at(URL, environment)
    return {name: made[name] for name in FEATURES if name in made}


def test_claude_code_keeps_what_it_has_at_its_vendor_s():
    assert set_for_claude({}) == FEATURES
    assert set_for_claude({"ANTHROPIC_BASE_URL": "https://api.anthropic.com/"}) == FEATURES


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
