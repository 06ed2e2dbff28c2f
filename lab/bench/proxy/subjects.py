"""What is measured: nothing in between, a bare pass-through, ours, and other people's proxies."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from lab.bench.peers.environments import python_of

_HERE = Path(__file__).parent
_PATIENCE_S = 300.0


class Running(Struct, frozen=True):
    """A proxy that answers.

    Attributes:
        url: where clients of OpenAI's and Anthropic's APIs ask it, without ``/v1``.
        pids: its processes; empty if there is nothing in between.
        start_s: from its start until it answered.
    """

    url: str
    pids: tuple[int, ...] = ()
    start_s: float = 0.0


def _floor(url: str, port: int, folder: Path, root: Path) -> list[str]:
    return [sys.executable, "-m", "lab.bench.proxy.floor", url]


def _ullage(url: str, port: int, folder: Path, root: Path) -> list[str]:
    upstreams = [
        f"--upstream={name}={url}" for name in ("anthropic", "openai")
    ]
    listen = f"--listen=127.0.0.1:{port}"
    store = f"--store={folder}/kept.db"
    return [sys.executable, "-m", "ullage", "proxy", listen, store, *upstreams]


def _two_workers(url: str, port: int, folder: Path, root: Path) -> list[str]:
    return [*_ullage(url, port, folder, root), "--workers=2"]


def _all_warm(url: str, port: int, folder: Path, root: Path) -> list[str]:
    settings = folder / "settings.toml"
    settings.write_text(
        "[limits]\nolder_bytes = 134217728\n", encoding="utf-8"
    )
    return [*_ullage(url, port, folder, root), f"--config={settings}"]


def _awecompress(url: str, port: int, folder: Path, root: Path) -> list[str]:
    command = _script("awecompress", "awecompress", root)
    return [
        command,
        "serve",
        f"--port={port}",
        f"--upstream={url}",
        f"--config={folder}/a.json",
    ]


def _headroom(url: str, port: int, folder: Path, root: Path) -> list[str]:
    command = _script("headroom", "headroom", root)
    upstreams = [f"--openai-api-url={url}", f"--anthropic-api-url={url}"]
    return [
        command,
        "proxy",
        "--host=127.0.0.1",
        f"--port={port}",
        "--no-rate-limit",
        *upstreams,
    ]


def _litellm(url: str, port: int, folder: Path, root: Path) -> list[str]:
    command = _script("litellm", "litellm", root)
    asked = {"openai/gpt-4.1": f"{url}/v1", "anthropic/claude-sonnet-4-5": url}
    models = [
        {
            "model_name": name.partition("/")[2],
            "litellm_params": {
                "model": name,
                "api_base": base,
                "api_key": "none",
            },
        }
        for name, base in asked.items()
    ]
    settings = {"model_list": models}
    (folder / "litellm.json").write_text(
        json.dumps(settings), encoding="utf-8"
    )  # YAML too
    return [
        command,
        f"--config={folder}/litellm.json",
        f"--port={port}",
        "--host=127.0.0.1",
    ]


def _script(name: str, script: str, root: Path) -> str:
    python = python_of(
        f"proxy-{name}", _HERE / "requirements" / f"{name}.txt", root
    )
    return str(python.with_name(script))


SUBJECTS: dict[str, Callable[[str, int, Path, Path], list[str]] | None] = {
    "direct": None,
    "floor": _floor,
    "ullage": _ullage,
    "ullage, 2 workers": _two_workers,
    "ullage, all warm": _all_warm,
    "awecompress": _awecompress,
    "headroom": _headroom,
    "litellm": _litellm,
}


def add_checkout(root: Path) -> str:
    """Add the proxy of another checkout, such as that of an earlier commit.

    Args:
        root: of the checkout. It runs with the packages of this environment.

    Returns:
        The subject's name.
    """
    name = f"ullage of {root.name}"
    path = f"PYTHONPATH={root.absolute()}/src"

    def command_of(
        url: str, port: int, folder: Path, peers: Path
    ) -> list[str]:
        return ["env", path, *_ullage(url, port, folder, peers)]

    SUBJECTS[name] = command_of
    return name


@contextmanager
def started(name: str, upstream: str, root: Path) -> Iterator[Running]:
    """A subject, until the block is over.

    Args:
        name: one of `SUBJECTS`.
        upstream: the provider's URL.
        root: where the environments of peers are, or are made.

    Raises:
        Trouble: a peer cannot be installed.
        TimeoutError: it does not answer.
    """
    command_of = SUBJECTS[name]
    if command_of is None:
        yield Running(upstream)
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.create_server(("127.0.0.1", 0)) as free,
    ):
        port = free.getsockname()[1]
        free.close()
        command = command_of(upstream, port, Path(folder), root)
        began = time.perf_counter()
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE if name == "floor" else subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=_environment(folder),
            text=True,
        )
        try:
            if process.stdout is not None:
                port = int(process.stdout.readline())
            url = f"http://127.0.0.1:{port}"
            _wait(url, process)
            start_s = time.perf_counter() - began
            yield Running(url, (process.pid, *children(process.pid)), start_s)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()


def _environment(folder: str) -> dict[str, str]:
    """The environment of a proxy: nothing of the user's, and no model to be fetched."""
    keep = {
        name: os.environ[name]
        for name in ("PATH", "PYTHONPATH", "LANG")
        if name in os.environ
    }
    offline = {
        "HF_HUB_OFFLINE": "1",
        "HEADROOM_TELEMETRY": "off",
        "DO_NOT_TRACK": "1",
    }
    return {
        **keep,
        **offline,
        "HOME": folder,
        "LITELLM_MASTER_KEY": "sk-bench-only-0123456789ab",
    }


def _wait(url: str, process: subprocess.Popen[str]) -> None:
    """Until something answers there, whatever it says."""
    until = time.perf_counter() + _PATIENCE_S
    while time.perf_counter() < until:
        if process.poll() is not None:
            raise TimeoutError(f"it ended with status {process.returncode}")
        try:
            urllib.request.urlopen(
                f"{url}/health/liveliness", timeout=5
            ).close()
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.01)
        else:
            return
    raise TimeoutError("it does not answer")


def children(pid: int) -> tuple[int, ...]:
    """The processes that a process has started, and theirs."""
    try:
        words = (
            Path(f"/proc/{pid}/task/{pid}/children")
            .read_text(encoding="ascii")
            .split()
        )
    except OSError:
        return ()
    found = tuple(map(int, words))
    return (*found, *(deeper for child in found for deeper in children(child)))
