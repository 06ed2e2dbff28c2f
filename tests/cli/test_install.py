"""``ullage install`` and ``uninstall`` on real files in a home of the test's."""

import json
import socket
import tomllib
import urllib.request

import pytest

from tests.cli.terminal import told, ullage
from tests.ports import free_port
from tests.proxy.started import started
from ullage.doors.proxy.answering import answers_at
from ullage.doors.proxy.config import Config
from ullage.doors.proxy.doctor import findings
from ullage.doors.proxy.installing import pointed_clients
from ullage.tools.cli.install import url_of

CLAUDE = """{
  // mine
  "env": {
    "ANTHROPIC_AUTH_TOKEN": "secret"
  },
  "model": "opus",
}
"""
CODEX = '# mine\nmodel = "gpt-5"\n\n[projects."/x"]\ntrust_level = "trusted"\n'
OPENCODE = '{"provider": {"openai": {"options": {"baseURL": "https://gw.example/v1"}}}}'
GEMINI = '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'
FILES = {
    ".claude/settings.json": CLAUDE,
    ".codex/config.toml": CODEX,
    ".config/opencode/opencode.json": OPENCODE,
    ".config/goose/config.yaml": "GOOSE_PROVIDER: anthropic\n",
    ".gemini/settings.json": GEMINI,
    ".gemini/.env": "GEMINI_API_KEY=x\n",
}
VARIABLES = (
    "ANTHROPIC_BASE_URL OPENAI_BASE_URL GOOGLE_GEMINI_BASE_URL XDG_CONFIG_HOME"
    " CLAUDE_CONFIG_DIR CODEX_HOME ULLAGE_PROXY ULLAGE_PROXY_CONFIG"
    " ENABLE_TOOL_SEARCH"
)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin")
    for name in VARIABLES.split():
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def full(home):
    for place, text in FILES.items():
        (home / place).parent.mkdir(parents=True, exist_ok=True)
        (home / place).write_text(text)
    return home


def everything(home):
    paths = (path for path in home.rglob("*") if path.is_file())
    return {path.relative_to(home): path.read_text() for path in paths}


def claude_of(home):
    return home / ".claude/settings.json"


def address(home):
    return json.loads(claude_of(home).read_text())["env"]["ANTHROPIC_BASE_URL"]


def test_all_are_pointed_at_the_proxy_and_come_back_byte_for_byte(full):
    before = everything(full)
    ran = ullage("install", "--yes")
    assert ran.status == 0
    assert ran.text.count("done") == 5
    assert "secret" not in ran.text
    assert (
        (full / ".codex/config.toml").read_text()
        == 'openai_base_url = "http://127.0.0.1:8787/openai/v1"\n' + CODEX
    )
    assert ullage("install", "--yes").text.count("nothing to change") == 5
    ran = ullage("install", "--yes", "--listen", "0.0.0.0:9000")
    assert ran.text.count("done") == 5
    assert "127.0.0.1:9000/openai" in (full / ".codex/config.toml").read_text()
    assert ullage("uninstall", "--yes").text.count("done") == 5
    assert everything(full) == before
    assert ullage("uninstall", "--yes").text.count("nothing to change") == 5


def test_what_was_not_there_is_made_and_removed(home):
    ran = ullage("install", "claude", "codex", "opencode", "goose", "--yes")
    assert ran.text.count("done") == 4
    assert address(home) == "http://127.0.0.1:8787/anthropic"
    ullage("uninstall", "--yes")
    assert everything(home) == {}


def test_a_later_edit_of_the_user_s_stays(full):
    ullage("install", "claude", "codex", "--yes")
    path = claude_of(full)
    path.write_text(path.read_text().replace("opus", "sonnet"))
    toml = full / ".codex/config.toml"
    toml.write_text('openai_base_url = "https://mine.example/v1"\n' + CODEX)
    assert "codex: there is nothing" in ullage("uninstall", "--yes").text
    assert path.read_text() == CLAUDE.replace("opus", "sonnet")
    assert tomllib.loads(toml.read_text())["openai_base_url"] == (
        "https://mine.example/v1"
    )


def test_an_edit_of_a_feature_stays_too(full):
    ullage("install", "claude", "--yes")
    path = claude_of(full)
    path.write_text(path.read_text().replace('"true"', '"auto"'))
    ullage("uninstall", "claude", "--yes")
    assert '"ENABLE_TOOL_SEARCH": "auto"' in path.read_text()
    assert "BASE_URL" not in path.read_text()


def test_a_gateway_becomes_an_upstream_and_comes_back(full):
    ran = ullage("install", "opencode", "--yes")
    assert (
        "--upstream opencode-openai.gw.example=https://gw.example" in ran.text
    )
    text = (full / ".config/opencode/opencode.json").read_text()
    assert "127.0.0.1:8787/opencode-openai.gw.example/v1" in text
    ullage("uninstall", "opencode", "--yes")
    assert (full / ".config/opencode/opencode.json").read_text() == OPENCODE


def test_a_gateway_in_the_environment_is_kept_before_the_file(
    full, monkeypatch
):
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://gw.example")
    ran = ullage("install", "claude", "--yes")
    assert (
        "--upstream anthropic-base-url.gw.example=https://gw.example"
        in ran.text
    )
    assert "TOOL_SEARCH" not in claude_of(full).read_text()
    monkeypatch.delenv("ANTHROPIC_BASE_URL")
    ullage("uninstall", "claude", "--yes")
    assert claude_of(full).read_text() == CLAUDE


def test_a_shell_without_the_gateway_does_not_lead_past_it(full, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://gw.example/team")
    ullage("install", "claude", "--yes")
    before = claude_of(full).read_text()
    monkeypatch.delenv("ANTHROPIC_BASE_URL")
    again = ullage("install", "claude", "--yes")
    assert claude_of(full).read_text() == before
    assert "--upstream anthropic-base-url.gw.example=URL" in again.text
    assert (
        "still go to the upstream anthropic-base-url.gw.example" in again.text
    )
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://other.example")
    (client,) = pointed_clients()
    assert client.gateways == {"anthropic-base-url.gw.example": ""}
    monkeypatch.delenv("ANTHROPIC_BASE_URL")
    moved = ullage("install", "claude", "--yes", "--listen", "127.0.0.1:9999")
    assert moved.status == 0
    text = claude_of(full).read_text()
    assert "127.0.0.1:9999/anthropic-base-url.gw.example/team" in text
    assert "TOOL_SEARCH" not in text


def test_a_link_stays_a_link(full):
    path, real = claude_of(full), full / "dotfiles.json"
    path.rename(real)
    path.symlink_to(real)
    real.chmod(0o640)
    ullage("install", "claude", "--yes")
    assert "8787" in real.read_text()
    ullage("uninstall", "claude", "--yes")
    assert path.is_symlink()
    assert (real.read_text(), real.stat().st_mode & 0o777) == (CLAUDE, 0o640)


def test_a_backup_that_is_gone_costs_what_it_held_alone(full):
    ullage("install", "codex", "--yes")
    (full / ".codex/config.toml.before-ullage-proxy").unlink()
    ullage("uninstall", "codex", "--yes")
    assert (full / ".codex/config.toml").read_text() == CODEX


def test_servers_of_mcp_and_the_proxy_do_not_meet(full):
    toml = full / ".codex/config.toml"
    toml.write_text(CODEX + '[mcp_servers.git]\ncommand = "uvx"\nargs = []\n')
    before = toml.read_text()
    ullage("mcp", "install", "codex", "--yes")
    ullage("install", "codex", "--yes")
    ullage("mcp", "uninstall", "codex", "--yes")
    ullage("uninstall", "codex", "--yes")
    assert toml.read_text() == before


@pytest.mark.parametrize(
    ("place", "text", "name", "words"),
    [
        (".claude/settings.json", "{", "claude", "Correct the file"),
        (
            ".codex/config.toml",
            'model_provider = "azure"\n',
            "codex",
            "has an address of its own",
        ),
        (".gemini/settings.json", "{}", "gemini", "how to sign in"),
        (
            ".gemini/settings.json",
            GEMINI.replace("gemini-api-key", "oauth-personal"),
            "gemini",
            "signed in with an account",
        ),
    ],
)
def test_what_would_not_help_is_refused(full, place, text, name, words):
    (full / place).write_text(text)
    before = everything(full)
    assert words in told(ullage("install", name, "--yes"))
    assert f"{name}: not changed." in ullage("install", "--dry-run").text
    assert everything(full) == before


def test_a_variable_that_goes_before_the_file_is_told(full, monkeypatch):
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "https://gw.example")
    assert "goes before the file" in told(ullage("install", "gemini", "--yes"))
    monkeypatch.setenv("ULLAGE_PROXY", "http://127.0.0.1:1/key")
    assert "in another shell" in told(ullage("install", "claude", "--yes"))


def test_the_change_is_shown_and_asked_for(full):
    before = everything(full)
    ran = ullage("install", "codex", stdin=b"n\n")
    assert '+openai_base_url = "http://127.0.0.1:8787/openai/v1"' in ran.text
    assert "Change ~/.codex/config.toml?" in ran.text
    assert "+" in ullage("install", "codex", "--dry-run").text
    assert everything(full) == before


def test_mistyped_names_and_ports(home):
    assert "Did you mean 'claude'?" in told(ullage("install", "clade"))
    ran = ullage("install", "claude", "--listen", "127.0.0.1:0")
    assert "a client needs a port that stays" in told(ran)
    assert url_of("0.0.0.0:9000") == "http://127.0.0.1:9000"
    assert url_of("[::1]:9000") == "http://[::1]:9000"


def test_a_service_s_file_names_what_its_clients_need(full):
    (full / "bin").mkdir()
    (full / "bin/systemctl").write_text("#!/bin/sh\n")
    (full / "bin/systemctl").chmod(0o700)
    ran = ullage("install", "opencode", "service", "--yes")
    unit = (full / ".config/systemd/user/ullage-proxy.service").read_text()
    assert "opencode-openai.gw.example=https://gw.example" in unit
    assert '--tenant ""' in unit
    assert "systemctl --user restart ullage-proxy" in ran.text
    ran = ullage("uninstall", "--yes")
    assert "systemctl --user disable --now ullage-proxy" in ran.text
    assert not (full / ".config/systemd/user/ullage-proxy.service").exists()


def test_a_service_is_started_with_the_file_of_its_settings(full, monkeypatch):
    (full / "bin").mkdir()
    (full / "bin/systemctl").write_text("#!/bin/sh\n")
    (full / "bin/systemctl").chmod(0o700)
    file = full / "proxy.toml"
    file.write_text('listen = "127.0.0.1:9797"\nstore = "file.db"\n')
    monkeypatch.setenv("ULLAGE_STORE", str(full / "of-the-shell.db"))
    ullage("install", "claude", "service", "--config", file, "--yes")
    unit = (full / ".config/systemd/user/ullage-proxy.service").read_text()
    assert f"--config {file}" in unit
    assert "--listen 127.0.0.1:9797" in unit
    assert "--tenant" not in unit
    assert "of-the-shell" not in unit
    assert "127.0.0.1:9797" in claude_of(full).read_text()


def test_a_client_reaches_its_model_by_what_was_written(full, serve):
    """By a real proxy; `doctor` says whether it answers, and who holds the port."""
    server, port = serve("anthropic", ["Good day."]), free_port()
    listen = f"127.0.0.1:{port}"
    ran = ullage("install", "claude", "--listen", listen, "--yes")
    assert f"Nothing answers at {listen} yet" in ran.text
    config = Config(listen=listen, store=str(full / "kept.db"))
    (client,) = pointed_clients()
    assert (client.name, client.place) == ("claude", listen)
    assert answers_at(listen) == "nobody"
    verdicts = {finding.about: finding for finding in findings(config, {})}
    assert verdicts["client claude"].verdict == "wrong"
    assert "ullage uninstall claude" in verdicts["client claude"].words
    store = full / "kept.db"
    words = [f"--listen={listen}", f"--store={store}", "--tenant", ""]
    assert f"proxy --listen {listen} --tenant ''" in ran.text
    with started(server, *words):
        assert (
            "The proxy answers"
            in ullage("install", "claude", "--listen", listen, "--yes").text
        )
        verdicts = {finding.about: finding for finding in findings(config, {})}
        assert verdicts["client claude"].verdict == "ok"
        assert verdicts["address"].verdict == "ok"
        body = {"model": "claude-opus-4-8", "max_tokens": 9}
        body["messages"] = [{"role": "user", "content": "Hello."}]
        settings = claude_of(full).read_text().replace("// mine", "")
        url = json.loads(settings.replace('",\n}', '"}'))["env"]
        request = urllib.request.Request(
            f"{url['ANTHROPIC_BASE_URL']}/v1/messages",
            json.dumps(body).encode(),
            {"content-type": "application/json", "x-api-key": "none"},
        )
        reply = json.load(urllib.request.urlopen(request))
        assert reply["content"][0]["text"] == "Good day."
        assert answers_at(listen, ["no-such"]) == "lacking"
    assert len(ullage("ls", "--store", store, "--json").json) == 1
    with socket.create_server(("127.0.0.1", port)):
        assert answers_at(listen) == "another"
        finding = {each.about: each for each in findings(config, {})}[
            "address"
        ]
    assert finding.verdict == "wrong"


def test_a_proxy_without_the_gateway_is_no_proxy_of_the_client_s(
    full, serve, monkeypatch
):
    """Its key would go nowhere, and is not to go to the vendor."""
    server, port = serve("anthropic", ["Good day."]), free_port()
    listen = f"127.0.0.1:{port}"
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://gw.example")
    ullage("install", "claude", "--listen", listen, "--yes")
    config = Config(listen=listen, store=str(full / "kept.db"))
    gateway = "anthropic-base-url.gw.example"
    start = f"--upstream {gateway}=https://gw.example"
    words = [f"--listen={listen}", f"--store={full / 'kept.db'}"]
    with started(server, *words):
        finding = {each.about: each for each in findings(config, {})}[
            "client claude"
        ]
        assert finding.verdict == "wrong"
        assert "without the upstreams it needs" in finding.words
        assert f"ullage proxy --listen {listen} {start}" in finding.words
        again = ullage("install", "claude", "--listen", listen, "--yes")
        assert "was started without an upstream" in again.text
        request = urllib.request.Request(
            f"http://{listen}/{gateway}/v1/messages",
            b"{}",
            {"x-api-key": "of my gateway"},
        )
        with pytest.raises(urllib.error.HTTPError) as error:
            urllib.request.urlopen(request)
        assert error.value.code == 400
        error.value.close()
        assert server.requests == []
    with started(server, *words, f"--upstream={gateway}=https://gw.example"):
        finding = {each.about: each for each in findings(config, {})}[
            "client claude"
        ]
        assert finding.verdict == "ok"
        assert gateway in finding.words
