"""The file of a service, as systemd and launchd read it."""

import plistlib
import shutil
import subprocess
import sys

import pytest

from ullage.core.errors import ConfigError
from ullage.doors.proxy import service

WORDS = [
    sys.executable,
    "-c",
    "print('a b')",
    'say "$HOME" 100%',
    "back\\slash",
]


def test_systemd_takes_the_unit(tmp_path, monkeypatch):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not here")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    here = service.service_here()
    here.path.parent.mkdir(parents=True)
    here.path.write_text(here.text(WORDS))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", here.path],
        capture_output=True,
        text=True,
        env={"XDG_RUNTIME_DIR": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (
        '"print(\'a b\')" "say \\"$$HOME\\" 100%%" back\\\\slash'
        in here.text(WORDS)
    )


def test_launchd_is_given_the_very_words(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setenv("HOME", str(tmp_path))
    here = service.service_here()
    settings = plistlib.loads(here.text(WORDS).encode())
    assert settings["ProgramArguments"] == WORDS
    assert here.path == tmp_path / "Library/LaunchAgents/ullage.proxy.plist"


def test_where_neither_is_a_terminal_is_named(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ConfigError, match="Run `ullage proxy` in a terminal"):
        service.service_here()
