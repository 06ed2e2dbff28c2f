"""Several processes on one socket: who dies is replaced, and all end together."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from aiohttp import web

from tests.proxy.started import started
from tests.proxy.upstream import ask, upstream
from ullage.core.errors import ConfigError
from ullage.doors.proxy import workers
from ullage.doors.proxy.config import Config

if not hasattr(os, "fork"):
    pytest.skip("this system cannot fork", allow_module_level=True)


def children(pid):
    """The processes that a process has started."""
    found = Path(f"/proc/{pid}/task/{pid}/children")
    if not found.exists():
        pytest.skip("this system does not list a process's children")
    return [int(word) for word in found.read_text().split()]


def test_who_is_killed_is_replaced_and_nobody_waits_in_vain(tmp_path):
    with (
        upstream() as there,
        started(there, "--workers=2", f"--store={tmp_path}/kept.db") as proxy,
    ):
        first = children(proxy.process.pid)
        assert len(first) == 2
        os.kill(first[0], signal.SIGKILL)
        while "started again" not in (line := proxy.process.stderr.readline()):
            assert line
        assert line == (
            "ullage: worker 1 was ended by signal 9; it is started again\n"
        )
        for number in range(20):
            assert (
                ask(proxy.url, "POST", "/v1/x", b"%d" % number)[2]
                == b"%d" % number
            )
        while len(now := {*children(proxy.process.pid)} - {first[0]}) < 2:
            time.sleep(
                0.01
            )  # the one that was killed is listed until its parent has asked
        proxy.process.send_signal(signal.SIGTERM)
        assert proxy.process.wait(20) == 0
        assert not any(map(_lives, now))


def test_workers_do_not_outlive_their_parent(tmp_path):
    with (
        upstream() as there,
        started(there, "--workers=2", f"--store={tmp_path}/kept.db") as proxy,
    ):
        orphans = children(proxy.process.pid)
        proxy.process.kill()
        proxy.process.wait()
        while any(map(_lives, orphans)):
            time.sleep(0.01)
    assert workers.serve_with_workers


@pytest.mark.parametrize("workers", [1, 2])
def test_a_proxy_that_is_stopped_refuses_connections_while_it_drains(
    tmp_path, workers
):
    began = threading.Event()
    let = threading.Event()

    async def answer(request):
        began.set()
        await asyncio.to_thread(let.wait, 20)
        return web.Response(body=b"late")

    with (
        upstream(answer) as there,
        started(
            there, f"--workers={workers}", f"--store={tmp_path}/kept.db"
        ) as proxy,
    ):
        got = []
        client = threading.Thread(
            target=lambda: got.append(ask(proxy.url, "GET", "/v1/x"))
        )
        client.start()
        assert began.wait(20)
        proxy.process.send_signal(signal.SIGTERM)
        address = ("127.0.0.1", int(proxy.url.rpartition(":")[2]))
        while True:
            try:
                socket.create_connection(address, 5).close()
            except ConnectionRefusedError:
                break
            except ConnectionResetError:
                continue  # it came while the socket was closed
        let.set()
        client.join()
        assert got[0][2] == b"late"
        assert proxy.process.wait(20) == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_a_store_that_cannot_be_opened_is_one_line_and_exit_status_1(
    tmp_path, workers
):
    (tmp_path / "kept.db").write_text("no database" * 1_000)
    over = subprocess.run(
        [
            sys.executable,
            "-m",
            "ullage",
            "proxy",
            "--listen=127.0.0.1:0",
            f"--workers={workers}",
            f"--store={tmp_path}/kept.db",
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert over.returncode == 1
    assert over.stderr.startswith("Error: ")
    assert len(over.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("fail", "words"),
    [
        (
            lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL),
            "worker 1 ended before it answered",
        ),
        (
            lambda *_, **__: {}["content"],
            "worker 1 ended before it answered",
        ),
    ],
)
def test_a_worker_that_fails_as_it_starts_ends_the_proxy(
    monkeypatch, capfd, fail, words
):
    monkeypatch.setattr(workers, "serve", fail)
    handlers = {number: signal.getsignal(number) for number in workers._ENDS}
    try:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            config = Config(workers=2, upstreams={"x": "http://127.0.0.1:1"})
            with pytest.raises(ConfigError, match=words):
                workers.serve_with_workers(config, listening, pytest.fail)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    said = capfd.readouterr().err
    assert "Traceback" not in said
    assert "content" not in said


def _lives(pid):
    """Whether a process runs; one that has ended and was not asked about does not."""
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
            != "Z"
        )
    except FileNotFoundError:
        return False
