"""A PostgreSQL server of the tests' own: started once, on the loopback, in a folder that goes.

The tests that need one skip where the programs are not there (Debian: postgresql). It must not
run as root; then it runs as the user that its package made.
"""

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import psycopg
import pytest

from tests.ports import started

__all__ = ["Server", "is_there", "of_a_page", "program"]

_FOLDERS = [
    *Path("/usr/lib/postgresql").glob("*/bin"),
    Path("/usr/local/bin"),
    Path("/usr/bin"),
]
_SETTINGS = {
    "fsync": "off",  # a process may die here, a machine does not
    "max_connections": "60",
    "shared_buffers": "64MB",
    "unix_socket_directories": "",
    "logging_collector": "off",
    "log_min_messages": "fatal",
    "autovacuum": "off",
}


def program(name):
    found = [folder / name for folder in _FOLDERS if (folder / name).is_file()]
    return str(found[0]) if found else shutil.which(name)


def is_there():
    return program("initdb") is not None and program("postgres") is not None


def _user():
    """Whom a server runs as: it must not be root."""
    return (
        {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
    )


def _folder(prefix, within=None):
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=within))
    if _user():
        shutil.chown(folder, **_user())
    return folder


def _run(*command):
    subprocess.run(
        command,
        check=True,
        capture_output=True,
        timeout=60,
        cwd="/",
        **_user(),
    )


@cache
def _new():
    """A server that was never started: the others are copies, for making one takes a second."""
    folder = _folder("ullage-pg-new-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    settings = [
        "-U",
        "ullage",
        "--no-sync",
        "--auth=trust",
        "--locale=C",
        "--encoding=UTF8",
    ]
    _run(program("initdb"), "-D", str(folder / "data"), *settings)
    return folder


def _url(port):
    return f"postgresql://ullage@127.0.0.1:{port}/postgres"


class Server:
    """One server.

    Args:
        folder: where its own folder is made; None: where temporary ones are.
        of: the server that it is a standby of, until it is promoted; None: it is one by itself.
        settings: of its configuration, beside those of all.
    """

    def __init__(self, folder=None, of=None, **settings):
        self._settings = {**_SETTINGS, **settings}
        self.folder = _folder("ullage-pg-", folder)
        self.port = None
        data = str(self.folder / "data")
        if of is None:
            _run("cp", "-a", str(_new() / "data"), data)
        else:
            words = [
                "-D",
                data,
                "-U",
                "ullage",
                "-h",
                "127.0.0.1",
                "-p",
                str(of.port),
            ]
            words += [
                "--no-sync",
                "--write-recovery-conf",
                "--checkpoint=fast",
            ]
            _run(program("pg_basebackup"), *words)
        self.start()

    @property
    def url(self):
        return _url(self.port)

    @property
    def pid(self):
        return self._process.pid

    def connect(self):
        return psycopg.connect(self.url, autocommit=True)

    def start(self):
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        given = {**silent, "cwd": self.folder, **_user()}
        self._process, self.port = started(
            self._command, self.port, self._is_up, **given
        )

    def _command(self, port):
        settings = {"listen_addresses": "127.0.0.1", **self._settings}
        given = [
            part
            for name, value in settings.items()
            for part in ("-c", f"{name}={value}")
        ]
        return [
            program("postgres"),
            "-D",
            str(self.folder / "data"),
            "-p",
            str(port),
            *given,
        ]

    def _is_up(self, port):
        """Whether it takes connections; what another server at its port says is not its word."""
        try:
            with psycopg.connect(_url(port), autocommit=True) as db:
                (data,) = db.execute("SHOW data_directory").fetchone()
        except psycopg.OperationalError:
            return False
        return data == str(self.folder / "data")

    def kill(self):
        """As a crash: nobody is asked, nothing is written."""
        subprocess.run(
            ["pkill", "-KILL", "-P", str(self._process.pid)], check=False
        )
        self._process.kill()
        self._process.wait(30)
        (self.folder / "data" / "postmaster.pid").unlink(missing_ok=True)

    def stop(self):
        self._process.send_signal(signal.SIGINT)  # waits for no client
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


@cache
def of_a_page():
    """The address of a server for the examples of a page; they are skipped without one."""
    if not is_there():
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
    server = Server()
    atexit.register(server.stop)
    return server.url
