"""``ullage mcp install`` and ``uninstall`` on real files in a home of the test's."""

import json
import os

import pytest

from tests.cli.terminal import told, ullage
from tests.mcp.test_clients_files import TOML, WRITTEN
from ullage.core.errors import ConfigError
from ullage.doors.files.changing import apply, called_as
from ullage.doors.mcp.clients import CLIENTS
from ullage.doors.mcp.installing import file_of, install

FILES = {
    "claude-desktop": ".config/Claude/claude_desktop_config.json",
    "claude-code": ".claude.json",
    "codex": ".codex/config.toml",
    "cursor": ".cursor/mcp.json",
    "vscode": ".config/Code/User/mcp.json",
    "gemini-cli": ".gemini/settings.json",
    "opencode": ".config/opencode/opencode.json",
}
TEXTS = {
    "codex": TOML,
    "vscode": '{"servers": {"git": {"type": "stdio", "command": "uvx", "args": ["git"]}}}',
    "opencode": '{"mcp": {"git": {"type": "local", "command": ["uvx", "git"]}}}',
}


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    for name, place in FILES.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(TEXTS.get(name, WRITTEN))
    return tmp_path


def everything(home):
    return {
        path: path.read_bytes() for path in home.rglob("*") if path.is_file()
    }


def test_every_client_is_found(home):
    assert {name: file_of(client) for name, client in CLIENTS.items()} == {
        name: home / place for name, place in FILES.items()
    }


def test_all_are_changed_and_everything_comes_back_byte_for_byte(home):
    before = everything(home)
    ran = ullage("mcp", "--limit", "6000", "install", "--yes")
    assert ran.status == 0
    assert ran.text.count("done") == len(FILES)
    words = json.loads((home / FILES["vscode"]).read_text())["servers"]["git"]
    assert [words["command"], *words["args"]] == [
        *called_as(),
        *("mcp", "--limit", "6000", "--", "uvx", "git"),
    ]
    again = ullage("mcp", "install", "--yes")
    assert again.text.count("nothing to change") == len(FILES)
    assert ullage("mcp", "uninstall", "--yes").status == 0
    assert everything(home) == before


def test_the_change_is_shown_and_asked_for(home):
    before = everything(home)
    ran = ullage("mcp", "install", "cursor", stdin=b"n\n")
    assert '-      "command": "npx"' in ran.text
    assert "Change files?" in ran.text
    ran = ullage("mcp", "install", "cursor", "--dry-run")
    assert "+" in ran.text
    assert everything(home) == before
    ullage("mcp", "install", "cursor", stdin=b"y\n")
    changed = {
        path.name
        for path, data in everything(home).items()
        if before.get(path) != data
    }
    assert changed == {"mcp.json", "mcp.json.before-ullage"}


def test_what_is_edited_in_between_stays(home):
    path = home / FILES["cursor"]
    ullage("mcp", "install", "cursor", "--yes")
    path.write_text(path.read_text().replace('"value"', '"another"'))
    ullage("mcp", "uninstall", "cursor", "--yes")
    assert path.read_text() == WRITTEN.replace('"value"', '"another"')
    assert path.with_name("mcp.json.before-ullage").read_text() == WRITTEN


def test_one_server_of_several(home):
    path = home / FILES["codex"]
    ullage("mcp", "install", "codex", "--server", "bare", "--yes")
    assert 'command = "uvx"' in path.read_text()
    ullage("mcp", "install", "codex", "--yes")
    assert path.with_name("config.toml.before-ullage").read_text() == TOML
    ullage("mcp", "uninstall", "codex", "--yes")
    assert path.read_text() == TOML
    ran = ullage("mcp", "install", "codex", "--server", "none", "--yes")
    assert "codex starts none called none" in told(ran)


def test_a_link_stays_a_link_and_the_mode_stays(home):
    path, real = home / FILES["cursor"], home / "dotfiles.json"
    path.rename(real)
    path.symlink_to(real)
    real.chmod(0o640)
    ullage("mcp", "install", "cursor", "--yes")
    assert path.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert "ullage" in real.read_text()


def test_a_project_s_file_is_named(home):
    path = home / "project.json"
    path.write_text(WRITTEN)
    before = (home / FILES["cursor"]).read_bytes()
    assert (
        "done"
        in ullage("mcp", "install", "cursor", "--file", path, "--yes").text
    )
    assert "ullage" in path.read_text()
    assert (home / FILES["cursor"]).read_bytes() == before
    assert "it is of one client" in told(
        ullage("mcp", "install", "--file", path, "--yes")
    )


def test_a_file_that_changed_in_the_meantime_is_left(home):
    client, path = CLIENTS["cursor"], home / FILES["cursor"]
    change = install(client, path, ["ullage", "mcp"])
    path.write_text("{}")
    with pytest.raises(ConfigError, match="changed in the meantime"):
        apply(change)
    assert path.read_text() == "{}"


def test_a_file_that_cannot_be_written_is_left(home, monkeypatch):
    client, path = CLIENTS["cursor"], home / FILES["cursor"]
    change = install(client, path, ["ullage", "mcp"])

    def full(number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match="No space left"):
        apply(change)
    assert path.read_text() == WRITTEN
    assert [each.name for each in path.parent.iterdir()] == ["mcp.json"]


@pytest.mark.parametrize("text", ["{", "", '{"mcpServers": }'])
def test_a_broken_file_is_told_and_left(home, text):
    path = home / FILES["cursor"]
    path.write_text(text)
    assert "nothing was changed" in told(
        ullage("mcp", "install", "cursor", "--yes")
    )
    assert path.read_text() == text


def test_who_is_not_here_is_told(home):
    (home / FILES["cursor"]).unlink()
    assert (
        "there is no file of it here"
        in ullage("mcp", "install", "cursor").text
    )
