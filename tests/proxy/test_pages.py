"""What the proxy answers by itself, and to whom."""

import json
import signal

import pytest

from tests.proxy.started import started
from tests.proxy.test_fitting import CUTS_ALWAYS, long_chat
from tests.proxy.upstream import (
    all_of,
    ask,
    proxy,
    settle,
    talking,
    until,
    upstream,
)
from ullage.core.errors import StoreError
from ullage.tools.cli import report

CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def url():
    with upstream() as there, proxy(there, policy=CUTS_ALWAYS) as url:
        ask(url, "POST", CHAT, long_chat())
        settle(url)
        yield url


def test_health_and_readiness(url):
    assert json.loads(ask(url, path="/_ullage/health")[2]) == {"status": "ok"}
    assert json.loads(ask(url, path="/_ullage/ready")[2]) == {
        "status": "ready",
        "in_flight": 0,
    }


def test_what_is_no_page_is_no_upstreams_either(url):
    status, headers, _ = ask(url, path="/_ullage/elsewhere")
    assert (status, headers["X-Ullage"]) == (404, "error")
    assert ask(url, path="/_ullage-not-ours")[0] == 400
    assert ask(url, "POST", "/_ullage/state", b"{}")[0] == 405


def test_metrics_are_prometheus_text(url):
    _, headers, body = ask(url, path="/_ullage/metrics")
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert (
        b'ullage_requests_total{upstream="openai",wire="openai-chat",done="fitted"} 1'
        in body
    )
    assert b"ullage_conversations 1" in body


def test_the_state_has_conversations_and_nothing_they_said(url):
    _, headers, body = ask(url, path="/_ullage/state")
    state = json.loads(body)
    assert state["totals"]["fitted"] == 1
    (shown,) = state["conversations"]
    assert (shown["model"], len(shown["turns"])) == ("gpt-4.1", 1)
    assert shown["decisions"]
    assert b"worker" not in body.replace(b'"workers"', b"")
    assert headers["Cache-Control"] == "no-store"


def test_a_page_fetches_nothing_from_elsewhere(url):
    body = ask(url, path="/_ullage/")[2].decode()
    assert "http" not in body.replace("http-equiv", "").replace(
        "http://www.w3.org/2000/svg", ""
    )
    assert "default-src 'none'" in body


@pytest.mark.parametrize(
    "path", ["/_ullage/", "/_ullage/state", "/_ullage/conversations/x"]
)
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""]
)
def test_a_page_of_somebody_else_that_leads_here_is_given_nothing(
    url, path, host
):
    asked = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
    with talking(url, asked) as raw:
        assert all_of(raw).split()[1] in (b"403", b"400")


def test_pages_can_be_left_out():
    with upstream() as there, proxy(there, pages=False) as url:
        assert ask(url, path="/_ullage/")[0] == 403
        assert ask(url, path="/_ullage/ready")[0] == 200


def test_a_conversation_is_shown_turn_by_turn_as_long_as_it_is_at_hand(url):
    state = json.loads(ask(url, path="/_ullage/state")[2])
    key = state["conversations"][0]["key"]
    status, headers, body = ask(url, path=f"/_ullage/conversations/{key}")
    assert (status, headers["Content-Type"]) == (
        200,
        "text/html; charset=utf-8",
    )
    assert b"A session's context window" in body
    assert ask(url, path="/_ullage/conversations/none")[0] == 404


def test_workers_are_seen_as_one_proxy(tmp_path):
    with (
        upstream() as there,
        started(
            there, "--workers=2", f"--store={tmp_path}/kept.db"
        ) as running,
    ):
        url = running.url
        for _ in range(8):
            ask(url, "POST", CHAT, long_chat())
        until(
            lambda: (
                json.loads(ask(url, path="/_ullage/state")[2])["totals"][
                    "requests"
                ]
                == 8
            )
        )
        for _ in range(4):
            state = json.loads(ask(url, path="/_ullage/state")[2])
            assert state["totals"]["requests"] == 8
            (shown,) = state["conversations"]
            assert len(shown["turns"]) == 8
            found = ask(url, path="/_ullage/metrics")[2]
            assert {
                b'in_flight{worker="1"}',
                b'in_flight{worker="2"}',
            } <= _gauges(found)
            key = shown["key"]
            assert ask(url, path=f"/_ullage/conversations/{key}")[0] == 200
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(20) == 0


def _gauges(text):
    lines = (line.partition(b" ")[0] for line in text.splitlines())
    return {line.removeprefix(b"ullage_") for line in lines}


def test_a_page_whose_store_is_away_says_so(monkeypatch):
    def fail(*_, **__):
        raise StoreError("postgresql", "receipts", "the server is away")

    monkeypatch.setattr(report, "report_for_page", fail)
    with upstream() as there, proxy(there) as url:
        status, headers, body = ask(url, path="/_ullage/report")
    assert (status, headers["Retry-After"]) == (503, "5")
    assert b"postgresql store: receipts failed: the server is away" in body


def test_the_report_holds_what_was_answered_a_moment_ago():
    """Receipts are written every ten seconds; who looks at the report does not wait for that."""
    with upstream() as there, proxy(there) as url:
        for _ in range(3):
            assert ask(url, "POST", CHAT, long_chat())[0] == 200
            settle(url)
            _, _, body = ask(url, path="/_ullage/report")
        assert json.loads(body)["total"]["requests"] == 3
