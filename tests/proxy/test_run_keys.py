"""The proxy of ``ullage run`` answers the command it was started with, and nobody else."""

import json
import os
import subprocess
import sys

import pytest
from aiohttp import web

from tests.proxy.upstream import all_of, ask, talking, upstream
from ullage.doors.proxy.command import behind_a_proxy
from ullage.doors.proxy.config import Config
from ullage.doors.proxy.run_keys import new_run_keys


@pytest.fixture(scope="module")
def run():
    """The bare address of a proxy, its keys, and what stands behind it."""
    run_keys = new_run_keys()

    async def answer(request):
        return web.json_response({"path": request.raw_path})

    with upstream(answer) as there:
        upstreams = dict.fromkeys(("anthropic", "openai", "gemini"), there.url)
        config = Config(
            listen="127.0.0.1:0", tenant="", upstreams=upstreams, dry_run=True
        )
        with behind_a_proxy(config, run_keys=run_keys) as (url, _):
            yield url, run_keys, there


PATHS = (
    "/_ullage/",
    "/_ullage/state",
    "/_ullage/health",
    "/_ullage/metrics",
    "/v1/models",
)


@pytest.mark.parametrize("path", PATHS)
def test_without_a_key_nothing_is_answered(run, path):
    url, run_keys, there = run
    before = len(there.requests)
    key = run_keys.key
    for prefix in (
        "",
        "/x",
        f"/{key}x",
        f"/{key[:-1]}",
        f"/{key.lower()}",
        f"//{key}",
    ):
        status, _, body = ask(url, path=prefix + path)
        assert (status, json.loads(body)["error"]["code"]) == (
            404,
            "ullage_proxy",
        )
        assert run_keys.key.encode() not in body
    assert len(there.requests) == before


def test_a_whole_url_is_no_way_around(run):
    url, _, there = run
    before = len(there.requests)
    host = url.removeprefix("http://")
    with talking(
        url, f"GET {url}/v1/models HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    ) as raw:
        assert all_of(raw).split()[1] == b"404"
    assert len(there.requests) == before


@pytest.mark.parametrize("which", ["key", "shown_key"])
def test_with_one_all_is_as_without_it(run, which):
    """The upstream sees nothing of the key, and neither do paths that are encoded change."""
    url, run_keys, there = run
    key = getattr(run_keys, which)
    for path in PATHS[:4]:
        assert ask(url, path=f"/{key}{path}")[0] == 200
    for path in (
        "/anthropic/v1/models?a=%2F&b=1",
        "/v1/models/a%2Fb",
        "/v1/files/%C3%A9",
    ):
        status, _, body = ask(url, path=f"/{key}{path}")
        assert (status, json.loads(body)) == (
            200,
            {"path": path.removeprefix("/anthropic")},
        )
    assert all(key not in str(each) for each in there.requests)


def test_a_path_cannot_climb_out_of_the_key(run):
    url, run_keys, _ = run
    assert ask(url, path=f"/{run_keys.key}/../v1/models")[0] == 400


def test_keys_are_not_told(run):
    _, run_keys, _ = run
    assert run_keys.key not in repr(run_keys)
    assert new_run_keys() != new_run_keys()


@pytest.mark.skipif(
    not hasattr(os, "setuid") or os.geteuid(),
    reason="only root can be another",
)
def test_the_key_that_others_can_read_counts_for_our_user_alone(run):
    """Another user of the machine, who read it in the list of processes, is answered nothing."""
    url, run_keys, _ = run
    host = url.removeprefix("http://")
    code = f"""if 1:
        import os, socket
        address, port = "{host}".split(":")
        address.encode("idna")  # its module cannot be read later
        os.setgid(65534); os.setuid(65534)
        for key in ("{run_keys.shown_key}", "{run_keys.key}"):
            for path in {PATHS[1:]!r}:
                with socket.create_connection((address, int(port))) as raw:
                    head = f"GET /{{key}}{{path}} HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n"
                    raw.sendall(head.encode())
                    print(raw.recv(65536).split()[1].decode())
    """
    out = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
    )
    # the other key is private: whoever has it was given it, such as a command under another user
    assert out.stdout.split() == ["404"] * 4 + ["403", "200", "200", "200"]
