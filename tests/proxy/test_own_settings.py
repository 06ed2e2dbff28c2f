"""Where an agent's own files say that its requests go, and where `ullage run` then leads them."""

import json

import pytest

from ullage.doors.proxy.agents import AGENTS, arguments_for, setting_for
from ullage.doors.proxy.own_settings import own_settings

URL = "http://127.0.0.1:1"
GATEWAY = "https://gateway.example/v1"
OLLAMA = {"ollama": "http://127.0.0.1:11434"}
"""Where goose and aider ask Ollama's models by default, and so the end of the way to us as well."""


def set_in(folder, agent, name, text, **environment):
    """What `ullage run` sets where a file says something; ``folder`` is home and project."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    there = {"HOME": str(folder), **environment}
    return setting_for(there, program=agent, folder=folder)


def test_codex_ends_where_its_configuration_says(tmp_path):
    text = f'model = "gpt-5.2"\nopenai_base_url = "{GATEWAY}"\n'
    setting = set_in(tmp_path, "codex", ".codex/config.toml", text)
    assert setting.upstreams == {
        "codex.gateway.example": "https://gateway.example"
    }
    words = arguments_for(["codex"], setting, URL)
    assert words[2] == f'openai_base_url="{URL}/codex.gateway.example/v1"'


@pytest.mark.parametrize("name", ["settings.json", "settings.local.json"])
def test_claude_code_ends_where_its_settings_say_and_is_told_by_an_option(
    name, tmp_path
):
    """Its settings go before the environment; so do the features that it has at its vendor's."""
    text = json.dumps({"env": {"ANTHROPIC_BASE_URL": GATEWAY}})
    setting = set_in(tmp_path, "claude", f".claude/{name}", text)
    assert setting.features == {}, "not before another upstream"
    program, option, told, *rest = arguments_for(
        ["claude", "-p"], setting, URL
    )
    base = f"{URL}/anthropic-base-url.gateway.example/v1"
    assert json.loads(told) == {"env": {"ANTHROPIC_BASE_URL": base}}
    assert (program, option, rest) == ("claude", "--settings", ["-p"])
    own = ["claude", "--settings", "mine.json"]
    assert arguments_for(own, setting, URL) == own, (
        "an option of the user's stays"
    )


@pytest.mark.parametrize("form", ["text", "file", "equals"])
def test_claude_code_has_no_feature_of_its_vendor_s_where_an_option_names_another(
    form, tmp_path
):
    text = json.dumps({"env": {"ANTHROPIC_BASE_URL": GATEWAY}})
    (tmp_path / "mine.json").write_text(text)
    words = {
        "text": ["--settings", text],
        "file": ["-p", "--settings", "mine.json"],
        "equals": ["--settings=mine.json"],
    }[form]
    home = {"HOME": str(tmp_path)}
    setting = setting_for(
        home, program="claude", folder=tmp_path, arguments=words
    )
    assert setting.features == {}
    assert arguments_for(["claude", *words], setting, URL) == [
        "claude",
        *words,
    ]


def test_claude_code_has_no_feature_of_its_vendor_s_where_its_organisation_names_another(
    monkeypatch, tmp_path
):
    file = tmp_path / "managed-settings.json"
    file.write_text(json.dumps({"env": {"ANTHROPIC_BASE_URL": GATEWAY}}))
    home = {"HOME": str(tmp_path)}
    assert setting_for(home, program="claude", folder=tmp_path).features
    monkeypatch.setattr("ullage.doors.proxy.own_settings._MANAGED", (file,))
    assert setting_for(home, program="claude", folder=tmp_path).features == {}


def test_goose_ends_where_its_configuration_says(tmp_path):
    text = f"GOOSE_MODEL: x\nOPENAI_HOST: {GATEWAY}\nextensions:\n  OPENAI_HOST: no\n"
    setting = set_in(tmp_path, "goose", ".config/goose/config.yaml", text)
    assert setting.upstreams == {
        "openai-host.gateway.example": "https://gateway.example",
        **OLLAMA,
    }
    assert "OPENAI_BASE_URL" not in setting.variables


def test_goose_finds_the_ollama_server_that_its_configuration_names(tmp_path):
    setting = set_in(
        tmp_path, "goose", ".config/goose/config.yaml", "OLLAMA_HOST: gpu\n"
    )
    assert setting.upstreams == {"ollama-host.gpu": "http://gpu:11434"}
    assert setting.variables["OLLAMA_HOST"] == "ollama-host.gpu"


@pytest.mark.parametrize("name", [".env", ".qwen/.env"])
def test_qwen_code_ends_where_its_env_file_says(name, tmp_path):
    setting = set_in(
        tmp_path, "qwen", name, f'export OPENAI_BASE_URL="{GATEWAY}" # mine\n'
    )
    assert setting.upstreams == {
        "openai-base-url.gateway.example": "https://gateway.example"
    }


def test_opencode_ends_where_its_files_say_the_project_s_first(tmp_path):
    def text(url):
        options = json.dumps({"baseURL": url})
        return f'{{ // mine\n "provider": {{"openai": {{"options": {options}, }}}},}}'

    set_in(
        tmp_path,
        "opencode",
        ".config/opencode/opencode.json",
        text("https://other.example"),
    )
    setting = set_in(
        tmp_path,
        "opencode",
        "opencode.jsonc",
        text("{env:MINE}"),
        MINE=GATEWAY,
    )
    assert setting.upstreams == {
        "opencode-openai.gateway.example": "https://gateway.example"
    }
    made = json.loads(
        setting.variables_at(URL, {})["OPENCODE_CONFIG_CONTENT"]
    )["provider"]
    base = f"{URL}/opencode-openai.gateway.example/v1"
    assert made["openai"]["options"]["baseURL"] == base
    assert made["google"]["options"]["baseURL"] == f"{URL}/gemini/v1beta"


DEFAULTS = {
    "qwen": {
        "openai-base-url.dashscope.aliyuncs.com": "https://dashscope.aliyuncs.com"
    },
    "aider": OLLAMA,
    "goose": OLLAMA,
}
"""Where an agent asks, if nothing names an address, and no upstream of ours leads there."""


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1]", '{"env": 3}', "\x00", '{"env": {"A": ' + "[" * 9_999],
)
@pytest.mark.parametrize("agent", AGENTS)
def test_a_file_that_cannot_be_read_names_nothing(agent, text, tmp_path):
    for name in (
        *(
            ".claude/settings.json",
            ".codex/config.toml",
            ".config/goose/config.yaml",
        ),
        *(
            ".env",
            ".qwen/settings.json",
            ".gemini/settings.json",
            "opencode.json",
        ),
    ):
        setting = set_in(tmp_path, agent, name, text)
    assert setting.upstreams == DEFAULTS.get(agent, {})


def test_what_is_no_file_of_an_agent_s_is_not_read(tmp_path):
    (tmp_path / ".env").write_text(f"OPENAI_BASE_URL={GATEWAY}\n")
    assert own_settings("", {"HOME": str(tmp_path)}, tmp_path) == {}
    assert own_settings("qwen", {"HOME": str(tmp_path)}, tmp_path) == {
        "OPENAI_BASE_URL": GATEWAY
    }
    (tmp_path / ".env").write_text(
        f"OPENAI_BASE_URL={GATEWAY}\n" + "#" * (1 << 20)
    )
    assert own_settings("qwen", {"HOME": str(tmp_path)}, tmp_path) == {}, (
        "no settings by its size"
    )
