"""What the proxy answers by itself."""

import json

import pytest

from tests.proxy.upstream import ask, proxy, upstream


@pytest.fixture(scope="module")
def url():
    with upstream() as there, proxy(there) as url:
        yield url


def test_health_and_readiness(url):
    assert json.loads(ask(url, path="/_ullage/health")[2]) == {"status": "ok"}
    assert json.loads(ask(url, path="/_ullage/ready")[2]) == {"status": "ready", "in_flight": 0}


def test_what_is_no_page_is_no_upstreams_either(url):
    status, headers, _ = ask(url, path="/_ullage/elsewhere")
    assert (status, headers["X-Ullage"]) == (404, "error")
    assert ask(url, path="/_ullage-not-ours")[0] == 200
