"""Requests of web pages are refused, those of programs are passed on."""

import json

import pytest

from tests.proxy.upstream import all_of, ask, proxy, talking, upstream
from ullage.core.errors import ConfigError
from ullage.doors.proxy.config import Config, config_of
from ullage.doors.proxy.guard import host_of

MESSAGES = "/anthropic/v1/messages"
BODY = json.dumps(
    {
        "model": "claude-sonnet-4-5",
        "messages": [{"role": "user", "content": "x"}],
    }
)
JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
APP, WINDOW = "https://app.example", "vscode-webview://*"


@pytest.fixture(scope="module")
def there():
    with upstream() as there:
        yield there


@pytest.fixture(scope="module")
def url(there):
    with proxy(there) as url:
        yield url


@pytest.fixture(scope="module")
def allowing(there):
    allowed = {
        "allowed_origins": [APP, WINDOW],
        "allowed_hosts": ["llm.example"],
    }
    with proxy(there, **allowed) as url:
        yield url


def sent(url, headers, method="POST", path=MESSAGES):
    """The status of a request with these headers, a Host among them or our own."""
    own = {
        "Host": url.removeprefix("http://"),
        "Connection": "close",
        **headers,
    }
    body = BODY if method == "POST" else ""
    lines = [
        f"{method} {path} HTTP/1.1",
        *(f"{name}: {value}" for name, value in own.items()),
    ]
    asked = "\r\n".join(
        [*lines, f"Content-Length: {len(body)}", "", body]
    ).encode()
    with talking(url, asked) as raw:
        return int(all_of(raw).split()[1])


PAGES = {
    "a form": {"Origin": "http://evil.example", "Content-Type": "text/plain"},
    "a fetch": {
        "Origin": "http://evil.example",
        "Sec-Fetch-Site": "cross-site",
        **JSON,
    },
    "a page in a sandbox": {"Origin": "null", **JSON},
    "a page that brings a key": {
        "Origin": "http://evil.example",
        "x-api-key": "k",
        **JSON,
    },
    "a picture": {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
    "a page of another port here": {
        "Origin": "http://127.0.0.1:3000",
        "Sec-Fetch-Site": "same-site",
    },
    "a page whose name leads here": {
        "Origin": "http://evil.example",
        "Host": "evil.example",
        **JSON,
    },
    "that, and it hides its origin": {
        "Host": "evil.example",
        "x-api-key": "k",
        **JSON,
    },
    "an older browser's beacon": {"Content-Type": "text/plain;charset=UTF-8"},
    "an older browser's form": FORM,
    "an older browser's bytes": {
        "User-Agent": "Mozilla/5.0 (X11; Linux x86_64)"
    },
    "an extension": {
        "Origin": "chrome-extension://abcdef",
        "Sec-Fetch-Site": "none",
        **JSON,
    },
}


@pytest.mark.parametrize("headers", PAGES.values(), ids=PAGES)
@pytest.mark.parametrize(
    "path",
    [MESSAGES, "/v1/models", "/gemini/v1beta/models/m:generateContent?key=k"],
)
def test_what_a_page_sends_goes_nowhere(there, url, headers, path):
    before = len(there.requests)
    assert sent(url, headers, path=path) == 403
    assert len(there.requests) == before


@pytest.mark.parametrize("method", ["GET", "OPTIONS", "HEAD", "DELETE"])
def test_nor_by_another_method(there, url, method):
    before = len(there.requests)
    assert sent(url, {"Origin": "http://evil.example"}, method) == 403
    assert len(there.requests) == before


@pytest.mark.parametrize(
    ("headers", "setting"),
    [
        ({"Origin": "vscode-webview://a"}, b"allowed_origins"),
        ({"Host": "llm.example"}, b"allowed_hosts"),
        ({"Content-Type": "text/plain"}, b"Content-Type: application/json"),
    ],
)
def test_who_is_refused_is_told_which_setting_helps(url, headers, setting):
    lines = "".join(
        f"{name}: {value}\r\n"
        for name, value in ({"Host": "a"} | headers).items()
    )
    with talking(
        url, f"POST {MESSAGES} HTTP/1.1\r\n{lines}\r\n".encode()
    ) as raw:
        reply = all_of(raw)
    assert setting in reply
    assert b"X-Ullage: error" in reply
    assert not any(
        value.encode() in reply.partition(b"\r\n\r\n")[2]
        for value in headers.values()
    )


def test_refused_requests_are_counted(url):
    sent(url, {"Origin": "http://evil.example"})
    text = ask(url, path="/_ullage/metrics")[2].decode()
    (line,) = [
        each
        for each in text.splitlines()
        if each.startswith("ullage_refused_total")
    ]
    assert int(line.split()[1]) > 0


PROGRAMS = {
    "curl": {"User-Agent": "curl/8.5.0", "x-api-key": "k", **FORM},
    "Python": {"User-Agent": "Anthropic/Python 0.116", "x-api-key": "k", **JSON},
    "Node": {"User-Agent": "node", "Sec-Fetch-Mode": "cors", "authorization": "Bearer k", **JSON},
    "Go": {"User-Agent": "Go-http-client/1.1", **JSON},
    "an editor's window": {"User-Agent": "Mozilla/5.0 … Electron/39", "x-api-key": "k", **JSON},
    "a container's neighbour": {"Host": "ullage:8787", **JSON},
    "a container": {"Host": "host.docker.internal:8787", **JSON},
    "a pod": {"Host": "ullage.default.svc.cluster.local", **JSON},
    "IPv6": {"Host": "[::1]:8787", **JSON},
    "by name": {"Host": "localhost:8787", **JSON},
    "one that sends no type": {},
    "one that uploads a file": {"authorization": "Bearer k", "Content-Type": "multipart/form-data"},
}  # fmt: skip


@pytest.mark.parametrize("headers", PROGRAMS.values(), ids=PROGRAMS)
def test_what_a_program_sends_goes_on(url, headers):
    assert sent(url, headers) == 200


ALLOWED = {
    "the page": {"Origin": APP, "Sec-Fetch-Site": "cross-site", **JSON},
    "a window": {
        "Origin": "vscode-webview://0f1e",
        "Sec-Fetch-Site": "cross-site",
        **JSON,
    },
    "the name": {"Host": "llm.example", **JSON},
    "the name in capitals": {"Host": "LLM.example:443", **JSON},
}


@pytest.mark.parametrize("headers", ALLOWED.values(), ids=ALLOWED)
def test_what_is_allowed_goes_on(url, allowing, headers):
    assert sent(allowing, headers) == 200
    assert sent(url, headers) == 403


NOT_ALLOWED = [
    "http://app.example",
    "https://app.example.evil.example",
    "https://app.example:444",
]


@pytest.mark.parametrize(
    "origin", [*NOT_ALLOWED, "vscode-file://x", "null", ""]
)
def test_nothing_like_it_does(allowing, origin):
    assert sent(allowing, {"Origin": origin, **JSON}) == 403


@pytest.mark.parametrize(
    "host",
    [
        *(
            "x@127.0.0.1",
            "localhost:80@evil.example",
            "127.0.0.1, evil.example",
            "a b",
            "",
        ),
        *(
            "127.0.0.1#evil.example",
            "127.0.0.1.evil.example",
            "127.0.0.1/x",
            "é.local",
        ),
        *("[::1", "::1", "127.0.0.1:"),
    ],
)
def test_a_host_that_is_no_one_name_is_refused(url, host):
    assert host_of(host) is None or host == "127.0.0.1.evil.example"
    assert sent(url, {"Host": host, **JSON}) in (400, 403)


def test_two_hosts_are_refused(url):
    asked = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"
    with talking(url, asked) as raw:
        assert raw.recv(65_536).split()[1] in (b"400", b"403")


@pytest.mark.parametrize(
    "origin", ["*", "null", "https://*", "file://*", "https://a.example/", "a"]
)
def test_an_origin_that_is_too_many_is_refused(origin):
    with pytest.raises(ConfigError, match="allowed_origins"):
        Config(allowed_origins=[origin])


def test_both_can_be_given_by_file_environment_and_options(tmp_path):
    file = tmp_path / "proxy.toml"
    file.write_text('allowed_hosts = ["a.example"]\n')
    variables = {
        "ULLAGE_PROXY_ALLOWED_ORIGINS": "https://b.example, https://c.example"
    }
    config = config_of(file, variables, allowed_origins=())
    assert config.allowed_hosts == ["a.example"]
    assert config.allowed_origins == ["https://b.example", "https://c.example"]
    config = config_of(file, variables, allowed_origins=("https://d.example",))
    assert config.allowed_origins == ["https://d.example"]
