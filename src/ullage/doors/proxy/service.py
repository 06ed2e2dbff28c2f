"""A proxy that starts when the user logs in: the file of a service, and who starts it.

The file is written and removed here. Starting and stopping are the user's, by the commands that
are printed: nothing here claims that a service runs.
"""

from __future__ import annotations

import plistlib
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from ullage.core.errors import ConfigError
from ullage.doors.files.changing import Change, candidates

_NAME = "ullage-proxy"
_LABEL = "ullage.proxy"
_UNIT = """\
[Unit]
Description=ullage proxy

[Service]
ExecStart={command}
Restart=on-failure
RestartSec=2
NoNewPrivileges=yes

[Install]
WantedBy=default.target
"""


class Service(Struct, frozen=True):
    """What keeps a program running for a user on this platform.

    Attributes:
        path: its file.
        starts: the commands that start it, now and at each login.
        stops: the commands that end it.
    """

    path: Path
    starts: tuple[str, ...]
    stops: tuple[str, ...]

    def text(self, command: Sequence[str]) -> str:
        """The content of its file.

        Args:
            command: what it runs, the program by its whole path.
        """
        if self.path.suffix == ".plist":
            return _plist(command)
        return _UNIT.format(command=" ".join(map(_quoted, command)))


def service_here() -> Service:
    """The service of this platform: systemd's on Linux, launchd's on macOS.

    Raises:
        ConfigError: there is neither.
    """
    if sys.platform == "darwin":
        path = Path.home() / "Library/LaunchAgents" / f"{_LABEL}.plist"
        return Service(
            path,
            (f"launchctl bootstrap gui/$(id -u) '{path}'",),
            (f"launchctl bootout gui/$(id -u)/{_LABEL}",),
        )
    if shutil.which("systemctl") is None:
        raise ConfigError(
            "service",
            "neither systemd nor launchd is on this machine",
            "Run `ullage proxy` in a terminal, or by what starts programs here.",
        )
    (path,) = candidates([f"XDG/systemd/user/{_NAME}.service"])
    return Service(
        path,
        (
            "systemctl --user daemon-reload",
            f"systemctl --user enable {_NAME}",
            f"systemctl --user restart {_NAME}",
        ),
        (
            f"systemctl --user disable --now {_NAME}",
            "systemctl --user daemon-reload",
        ),
    )


def written(service: Service, command: Sequence[str]) -> Change | None:
    """What writes a service's file; None if it says so already.

    Args:
        service: the service.
        command: what it runs.
    """
    text = service.text(command)
    old_text = _text(service)
    if text == old_text:
        return None
    return Change("service", service.path, old_text, text)


def removed(service: Service) -> Change | None:
    """What removes a service's file; None if there is none."""
    text = _text(service)
    if text is None:
        return None
    return Change("service", service.path, text, None)


def _text(service: Service) -> str | None:
    if not service.path.is_file():
        return None
    return service.path.read_bytes().decode("utf-8", "replace")


def _quoted(word: str) -> str:
    """A word as systemd reads it: quoted, and nothing in it expanded."""
    for mark, escaped in (
        ("\\", "\\\\"),
        ('"', '\\"'),
        ("%", "%%"),
        ("$", "$$"),
    ):
        word = word.replace(mark, escaped)
    return f'"{word}"' if not word or " " in word or '"' in word else word


def _plist(command: Sequence[str]) -> str:
    settings = {
        "Label": _LABEL,
        "ProgramArguments": list(command),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
    }
    return plistlib.dumps(settings).decode()
