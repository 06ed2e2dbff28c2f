"""Who is given a page: who runs the proxy; behind a reverse proxy whoever authenticates."""

import base64
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager

import pytest

from tests.ports import started
from tests.proxy.upstream import all_of, ask, proxy, talking, upstream
from ullage.core.errors import ConfigError
from ullage.doors.proxy.access import user_of_socket
from ullage.doors.proxy.config import AccessSettings, Config

TOKEN = "a token that somebody made up"
DIGEST = hashlib.sha256(TOKEN.encode()).hexdigest()
BASIC = base64.b64encode(f"me:{TOKEN}".encode()).decode()
STATE = "/_ullage/state"


@pytest.fixture(scope="module")
def there():
    with upstream() as there:
        yield there


@pytest.fixture(scope="module")
def url(there):
    with proxy(there) as url:
        yield url


@pytest.fixture(scope="module")
def asking(there):
    with proxy(there, access=AccessSettings(token_sha256=DIGEST)) as url:
        yield url


@pytest.mark.parametrize(
    "path",
    ["/_ullage/", STATE, "/_ullage/conversations/x", "/%5fullage/state"],
)
@pytest.mark.parametrize(
    "header",
    [
        "X-Forwarded-For: 203.0.113.9",
        "X-Forwarded-Proto: https",
        "X-Forwarded-Host: llm.example",
        "Forwarded: for=203.0.113.9",
        "Via: 1.1 gateway",
        "X-Real-IP: 203.0.113.9",
        "CF-Connecting-IP: 203.0.113.9",
        "X-Envoy-External-Address: 203.0.113.9",
    ],
)
def test_what_a_reverse_proxy_asks_for_is_not_given(url, path, header):
    assert ask(url, path=path, headers=[header.split(": ")])[0] == 403


def test_nor_where_it_says_nothing_of_itself_but_speaks_an_older_version(url):
    host = url.removeprefix("http://")
    with talking(
        url, f"GET {STATE} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode()
    ) as raw:
        assert all_of(raw).split()[1] == b"403"


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "127.0.0.1",
        "127.0.0.1:1",
        "x@127.0.0.1",
        "LOCALHOST.",
        "0.0.0.0",
    ],
)
def test_nor_by_an_address_that_is_not_the_one_listened_on(url, host):
    assert ask(url, path=STATE)[0] == 200
    with talking(
        url, f"GET {STATE} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    ) as raw:
        assert raw.recv(65_536).split()[1] in (b"403", b"400")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "script"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Dest": "iframe"},
    ],
)
def test_nor_what_another_page_asks_for(url, headers):
    assert ask(url, path=STATE, headers=headers)[0] == 403


def test_a_link_to_it_can_be_followed(url):
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document"}
    assert ask(url, path="/_ullage/", headers=headers)[0] == 200


@pytest.mark.skipif(
    not sys.platform.startswith("linux"),
    reason="Linux tells whose a socket is",
)
@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_whose_a_socket_is_can_be_told(address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with (
        socket.create_server((address, 0), family=family) as server,
        socket.create_connection(server.getsockname()[:2]) as client,
    ):
        ends = client.getsockname()[:2], client.getpeername()[:2]
        assert user_of_socket(*ends) == os.geteuid()
        assert user_of_socket(ends[1], (address, 1)) is None


@pytest.mark.skipif(
    not hasattr(os, "setuid") or os.geteuid(),
    reason="only root can be another",
)
def test_another_user_of_the_machine_is_given_no_page_and_served_all_the_same(
    url,
):
    host = url.removeprefix("http://")
    code = f"""if 1:
        import os, socket
        address, port = "{host}".split(":")
        address.encode("idna")  # its module cannot be read later
        os.setgid(65534); os.setuid(65534)
        for path in ("{STATE}", "/_ullage/health", "/v1/models"):
            with socket.create_connection((address, int(port))) as raw:
                raw.sendall(f"GET {{path}} HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n".encode())
                print(raw.recv(65536).split()[1].decode())
    """
    out = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
    )
    assert out.stdout.split() == ["403", "200", "200"]


# ── authentication ───────────────────────────────────────────────────────────────────────


def test_with_a_token_the_page_is_given_through_a_reverse_proxy_too(asking):
    forwarded = {"X-Forwarded-For": "203.0.113.9"}
    for given in (f"Bearer {TOKEN}", f"bearer {TOKEN}", f"Basic {BASIC}"):
        status, _, body = ask(
            asking, path=STATE, headers={"Authorization": given, **forwarded}
        )
        assert (status, json.loads(body)["policy"]) == (200, "default")


@pytest.mark.parametrize(
    "given",
    ["", f"Bearer {TOKEN}x", "Bearer", f"Basic {TOKEN}", f"Basic {BASIC}x"],
)
def test_without_it_nobody_is_given_one(asking, given):
    headers = {"Authorization": given} if given else {}
    status, told, body = ask(asking, path=STATE, headers=headers)
    assert (status, b"conversations" in body) == (401, False)
    assert told["WWW-Authenticate"].startswith("Basic ")


def test_a_token_opens_nothing_to_a_page_whose_name_leads_here(asking):
    lines = f"GET {STATE} HTTP/1.1\r\nHost: evil.example\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    with talking(asking, lines.encode()) as raw:
        assert raw.recv(65_536).split()[1] == b"403"


def test_what_is_for_whoever_reaches_the_proxy_asks_for_no_token(asking):
    for path in ("health", "ready", "metrics"):
        assert ask(asking, path=f"/_ullage/{path}")[0] == 200


@pytest.mark.parametrize(
    ("proxies", "status"),
    [(["127.0.0.0/8"], 200), (["10.0.0.0/8", "::1/128"], 401)],
)
def test_a_header_is_believed_of_the_reverse_proxies_that_are_named(
    there, proxies, status
):
    access = AccessSettings(user_header="X-Forwarded-User", proxies=proxies)
    with proxy(there, access=access) as url:
        assert (
            ask(url, path=STATE, headers={"X-Forwarded-User": "ada"})[0]
            == status
        )
        assert (
            ask(url, path=STATE, headers={"X-Forwarded-User": " "})[0] == 401
        )
        assert ask(url, path=STATE)[0] == 401


@pytest.mark.parametrize(
    "access",
    [
        {"token_sha256": TOKEN},
        {"user_header": "x-user"},
        {"proxies": ["10.0.0.0/8"]},
        {"user_header": "x user", "proxies": ["10.0.0.0/8"]},
        {"user_header": "x-user", "proxies": ["gateway"]},
    ],
)
def test_settings_that_would_let_in_everybody_or_nobody_are_refused(access):
    with pytest.raises(ConfigError, match="access"):
        Config(access=AccessSettings(**access))


# ── nginx ────────────────────────────────────────────────────────────────────────────────

HEADERS = {
    "as it is by default": "",
    "with the client's Host": "proxy_set_header Host $host;",
    "with the client's Host and port, over HTTP/1.1": (
        "proxy_http_version 1.1; proxy_set_header Host $http_host; "
        "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;"
    ),
}
NGINX = """
daemon off; pid {folder}/pid; error_log {folder}/errors; user root; events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
  uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
  server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass {url}; {headers} }} }}
}}
"""


@contextmanager
def nginx(url, headers, folder):
    """The address of an nginx before a proxy; it runs as our own user, which none should."""
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("nginx is not installed")
    file = folder / "nginx.conf"

    def command(port):
        file.write_text(
            NGINX.format(folder=folder, port=port, url=url, headers=headers)
        )
        return [program, "-c", file, "-p", folder]

    process, port = started(command, stderr=subprocess.DEVNULL)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


@pytest.mark.parametrize("headers", HEADERS.values(), ids=HEADERS)
@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "llm.example", "127.0.0.1:8787"]
)
def test_behind_nginx_a_page_is_given_with_the_token_alone(
    there, tmp_path, headers, host
):
    access, hosts = AccessSettings(token_sha256=DIGEST), ["llm.example"]
    for settings, credential, status in (
        ({}, "", 403),
        ({"access": access}, "", 401),
        ({"access": access}, f"Authorization: Bearer {TOKEN}\r\n", 200),
    ):
        with (
            proxy(there, allowed_hosts=hosts, **settings) as url,
            nginx(url, headers, tmp_path) as front,
        ):
            asked = f"GET {STATE} HTTP/1.1\r\nHost: {host}\r\n{credential}Connection: close\r\n\r\n"
            with talking(front, asked.encode()) as raw:
                assert int(all_of(raw).split()[1]) == status
            assert ask(front, path="/v1/models")[0] == 200
