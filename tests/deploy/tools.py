"""The programs that judge the files in deploy/ (`make deploy-tools`), and Prometheus itself."""

import json
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import ports

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
_APART = ROOT / ".venv-deploy" / "bin"


def program(name):
    """The path of a program; the test skips where it is not installed."""
    own = _APART / name
    path = str(own) if own.exists() else shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed (make deploy-tools)")
    return path


def ran(name, *words, cwd=DEPLOY, given="", **environment):
    """What a program printed; it has to succeed."""
    done = subprocess.run(
        [program(name), *map(str, words)],
        input=given,
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", "HOME": "/nowhere", **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def judged(code, *words):
    """What a few lines of Python print, run where the parsers are installed, as JSON."""
    done = subprocess.run(
        [program("python"), "-c", code, *map(str, words)]
        if (_APART / "python").exists()
        else pytest.skip("the parsers are not installed (make deploy-tools)"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Prometheus:
    """A Prometheus that scrapes, and answers queries.

    Attributes:
        url: where it listens.
    """

    def __init__(self, url):
        self.url = url

    def ask(self, path, **fields):
        """An answer of its API."""
        query = urllib.parse.urlencode(fields)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(f"{self.url}/api/v1/{path}?{query}") as reply:
                answer = json.load(reply)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code != 503:  # it starts
                raise
            return {"result": []}
        assert answer["status"] == "success", answer
        return answer["data"]

    def samples(self, expression):
        """What an expression is at the moment."""
        return self.ask("query", query=expression)["result"]

    def until(self, expression):
        """Wait until an expression is something."""
        end_s = time.monotonic() + 30
        while not (samples := self.samples(expression)):
            assert time.monotonic() < end_s, f"{expression} stays empty"
            time.sleep(0.1)
        return samples


@contextmanager
def prometheus(folder, target, token=None):
    """A Prometheus that scrapes a proxy each half second, as long as the block lasts."""
    binary = program("prometheus")
    text = (DEPLOY / "prometheus" / "prometheus.yaml").read_text()
    text = text.replace("15s", "500ms").replace("127.0.0.1:8787", target)
    if token is not None:
        (folder / "ullage.token").write_text(token)
        text = text.replace("# authorization:", "authorization:")
        text = text.replace("/etc/prometheus", str(folder))
    (folder / "prometheus.yaml").write_text(text)
    shutil.copy(DEPLOY / "prometheus" / "alerts.yaml", folder)

    def command(port):
        return [
            binary,
            f"--config.file={folder}/prometheus.yaml",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{port}",
        ]

    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process, port = ports.started(command, None, **silent)
    try:
        yield Prometheus(f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait(30)
