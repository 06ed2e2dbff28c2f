"""Budgets of teams behind the proxy: what clients, the model, the log and the page are told."""

import hashlib
import json
import re
from datetime import UTC, datetime

import anthropic
import openai
import pytest

from tests.cli.terminal import ullage
from tests.proxy.started import started
from tests.proxy.told import FITTED, relayed
from tests.proxy.upstream import ask as ask_raw
from tests.proxy.upstream import proxy, settle, until
from tests.servers import Refusal
from tests.servers.behind import behind
from tests.servers.loops import request, user
from ullage import BudgetUse, ConfigError, SqliteStore, TeamBudget
from ullage.doors.proxy.activity import budgets_shown
from ullage.doors.proxy.config import AccessSettings, config_of
from ullage.doors.proxy.logs import line_of
from ullage.doors.proxy.relayed import treatment_of
from ullage.stores import spending_totals
from ullage.wires import FORMATS

BILLING = {
    "anthropic": (402, "billing_error"),
    "openai-chat": (429, "insufficient_quota"),
    "openai-responses": (429, "insufficient_quota"),
    "gemini": (429, "RESOURCE_EXHAUSTED"),
    "ollama": (429, "the budget team"),
    "bedrock-converse": (429, "ThrottlingException"),
}
NOTE = "A note from the proxy"
ASK = {
    "model": "claude-opus-4-8",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "What is wrong?"}],
}


def team(**settings):
    return TeamBudget(**{"name": "team", "tokens": 30_000, **settings})


def post(url, body=ASK, **headers):
    """Status, headers and JSON of an answer to a request of Anthropic's form."""
    raw = json.dumps(body).encode()
    given = {"Content-Type": "application/json", "x-api-key": "k", **headers}
    status, told, answer = ask_raw(
        url, "POST", "/anthropic/v1/messages", raw, given
    )
    return status, told, json.loads(answer)


def spent(url):
    """What the page says of the budgets."""
    settle(url)
    return json.loads(ask_raw(url, path="/_ullage/state")[2])["budgets"]


# ── where it stops ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", sorted(FORMATS))
def test_a_client_is_told_in_its_providers_own_form(serve, wire, stream):
    server, seen = serve(wire, lambda captured: "Done."), []
    budgets = [team(tokens=1, on_exceeded="stop")]
    with proxy(server, seen.append, budgets=budgets) as url:
        through = behind(server, url, stream=stream)
        client = through.client()
        asked = request(wire, [user(wire, "one")])
        assert "Done." in str(through.ask(client, asked))
        settle(url)
        with pytest.raises(Exception) as error:  # noqa: PT011 - each SDK has its own
            through.ask(client, asked)
        settle(url)
    status, kind = BILLING[wire]
    words = str(error.value)
    assert "the budget team for this month is spent" in words
    assert re.search(r"starts again on \d{4}-\d\d-01 at 00:00 UTC", words)
    assert kind in words or kind in str(getattr(error.value, "body", ""))
    assert len(server.requests) == 1
    assert (seen[1].report.status, seen[1].report.is_stopped) == (status, True)
    assert treatment_of(None, report=seen[1].report).startswith("stopped; ")


@pytest.mark.parametrize(
    ("wire", "make", "path", "ask", "kind"),
    [
        (
            "anthropic",
            anthropic.Anthropic,
            "/anthropic",
            lambda client: client.messages.create(**ASK),
            anthropic.APIStatusError,
        ),
        (
            "openai-chat",
            openai.OpenAI,
            "/openai/v1",
            lambda client: client.chat.completions.create(
                model="gpt-4.1", messages=ASK["messages"]
            ),
            openai.RateLimitError,
        ),
    ],
)
def test_an_sdk_with_its_own_retries_asks_once(
    serve, wire, make, path, ask, kind
):
    server, seen = serve(wire, lambda captured: "Done."), []
    budgets = [team(tokens=0, usd=1e-9)]
    with proxy(server, seen.append, budgets=budgets) as url:
        client = make(base_url=f"{url}{path}", api_key="k", max_retries=4)
        with client:
            ask(client)
            settle(url)
            with pytest.raises(kind):
                ask(client)
        settle(url)
    assert sum(one.report.is_stopped for one in seen) == 1


def test_it_says_how_long_to_wait(serve):
    server = serve("anthropic", lambda captured: "Done.")
    with proxy(server, budgets=[team(tokens=1, period="day")]) as url:
        post(url)
        settle(url)
        status, headers, answer = post(url)
    now = datetime.now(UTC)
    left_s = 86_400 - now.hour * 3_600 - now.minute * 60 - now.second
    assert status == 402
    assert abs(int(headers["Retry-After"]) - left_s) < 60
    assert headers["X-Should-Retry"] == "false"
    assert headers["X-Ullage"].startswith("stopped; budget=")
    assert answer["error"]["message"].startswith("the budget team for today")


def test_a_request_that_asks_not_to_be_fitted_spends_all_the_same(serve):
    server = serve("anthropic", lambda captured: "Done.")
    budgets = [
        team(tokens=60, models=["claude-*"]),
        team(name="all", tokens=0, usd=100, shared=True),
    ]
    with proxy(server, budgets=budgets) as url:
        for stream in (False, True):
            body = {**ASK, "stream": stream}
            raw = json.dumps(body).encode()
            given = {"Content-Type": "application/json", "X-Ullage": "off"}
            assert (
                ask_raw(url, "POST", "/anthropic/v1/messages", raw, given)[0]
                == 200
            )
            shown, money = spent(url)
        usages = [body["usage"] for body in server.answered]
        reported = sum(
            usage["input_tokens"] + usage["output_tokens"] for usage in usages
        )
        assert shown["tokens"] == money["tokens"] == reported
        assert money["usd"] > 0
        status, headers, _ = post(url, **{"X-Ullage": "off"})
    assert (status, headers["X-Ullage"][:16]) == (402, "stopped; budget=")
    assert len(server.requests) == 2


def test_what_costs_nothing_is_never_stopped(serve):
    server = serve("anthropic", lambda captured: "Done.")
    with proxy(server, budgets=[team(tokens=1)]) as url:
        post(url)
        settle(url)
        raw = json.dumps(ASK).encode()
        path = "/anthropic/v1/messages/count_tokens"
        told = ask_raw(
            url, "POST", path, raw, {"Content-Type": "application/json"}
        )[1]
        assert not told["X-Ullage"].startswith("stopped")
        assert ask_raw(url, path="/anthropic/v1/models")[0] != 402


def test_a_request_that_its_upstream_refuses_costs_nothing(serve):
    server = serve(
        "anthropic", lambda captured: Refusal(529, {"type": "error"})
    )
    with proxy(server, budgets=[team(tokens=1)]) as url:
        for _ in range(3):
            assert post(url)[0] == 529
            assert spent(url) == []


def test_each_tenant_spends_of_its_own(serve):
    server = serve("anthropic", lambda captured: "Done.")
    with proxy(server, tenant=None, budgets=[team(tokens=1)]) as url:
        statuses = []
        for key in ("one", "one", "two", "two"):
            statuses.append(post(url, **{"x-api-key": key})[0])
            settle(url)
        shown = spent(url)
    assert statuses == [200, 402, 200, 402]
    assert [len(one["tenant"]) for one in shown] == [8, 8]


def test_a_named_tenant_spends_of_its_own(serve):
    server = serve("anthropic", lambda captured: "Done.")
    settings = {
        "tenant": None,
        "tenants": {"one": [hashlib.sha256(b"one").hexdigest()]},
        "budgets": [team(tokens=1, tenants=["one"])],
    }
    with proxy(server, **settings) as url:
        statuses = []
        for key in ("one", "one", "two", "two"):
            statuses.append(post(url, **{"x-api-key": key})[0])
            settle(url)
        (shown,) = spent(url)
    assert statuses == [200, 402, 200, 200]
    assert shown["tenant"] == "one"


def test_it_goes_on_after_a_restart_and_is_shared_on_one_file(serve, tmp_path):
    server = serve("anthropic", lambda captured: "Done.")
    settings = {"store": f"{tmp_path}/kept.db", "budgets": [team(tokens=1)]}
    with proxy(server, **settings) as url:
        assert post(url)[0] == 200
        settle(url)
        with proxy(server, **settings) as another:
            assert post(another)[0] == 402
    with proxy(server, **settings) as url:
        assert post(url)[0] == 402
    store = SqliteStore(tmp_path / "kept.db")
    (row,) = spending_totals(store.spending())
    store.close()
    assert (row.calls, row.reserved_tokens) == (1, 0)


# ── what the model is told ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize("wire", sorted(FORMATS))
def test_the_model_is_told_at_the_end_and_all_before_it_stays(serve, wire):
    """So that the provider finds each request's prefix in its cache: nothing before it moves."""
    server = serve(wire, lambda captured: "Done.", strict=True)
    budgets = [team(tell_model=True, tokens=100_000)]
    with proxy(server, budgets=budgets) as url:
        through = behind(server, url)
        client, turns = through.client(), [user(wire, "one")]
        for text in ("two", "three"):
            through.ask(client, request(wire, turns))
            turns = [*turns, reply_of(wire), user(wire, text)]
    first, second = (captured.body for captured in server.requests)
    key = FORMATS[wire].key
    assert NOTE in json.dumps(first[key][-1])
    assert NOTE not in json.dumps(second[key][:2])
    assert NOTE in json.dumps(second[key][-1])
    sent = json.dumps(first[key]).partition(NOTE)[0]
    opening = sent[: sent.rindex("one") + 3]
    assert json.dumps(second[key]).startswith(opening)
    for name in set(first) - {key}:
        assert first[name] == second[name], name


def reply_of(wire):
    """What the model said, as a client sends it back."""
    if wire == "gemini":
        return {"role": "model", "parts": [{"text": "Done."}]}
    if wire == "bedrock-converse":
        return {"role": "assistant", "content": [{"text": "Done."}]}
    return {"role": "assistant", "content": "Done."}


def test_the_sentence_stands_behind_a_clients_cache_marker(serve):
    server = serve("anthropic", lambda captured: "Done.", strict=True)
    block = {
        "type": "text",
        "text": "What is wrong?",
        "cache_control": {"type": "ephemeral"},
    }
    body = {**ASK, "messages": [{"role": "user", "content": [block]}]}
    with proxy(server, budgets=[team(tell_model=True)]) as url:
        assert post(url, body)[1]["X-Ullage"] == "fitted"
    marked, note = server.requests[0].body["messages"]
    assert marked["content"] == [block]
    assert "0% of this budget (this month) is used" in str(note["content"])


def test_a_sentence_that_an_upstream_refuses_is_left_out(serve):
    def rule(captured):
        if NOTE.encode() in captured.raw:
            return Refusal(400, {"error": {"message": "roles must alternate"}})
        return "Done."

    server, seen = serve("openai-chat", rule), []
    raw = json.dumps({"model": "gpt-4.1", "messages": ASK["messages"]})
    given = {"Content-Type": "application/json"}
    with proxy(server, seen.append, budgets=[team(tell_model=True)]) as url:
        for _ in range(3):
            path = "/openai/v1/chat/completions"
            told = ask_raw(url, "POST", path, raw.encode(), given)
            assert told[0] == 200
        settle(url)
    assert all("budget" in one.report.without for one in seen)
    assert seen[-1].report.tries == 1, "remembered"
    assert len(spent_of(seen)) == 3


def spent_of(seen):
    return [one.report.usage for one in seen if one.report.usage]


def test_near_the_end_the_model_is_asked_to_come_to_one(serve):
    server = serve("anthropic", lambda captured: "Done.")
    budgets = [team(tokens=100, wrap_up_at=0.1)]
    with proxy(server, budgets=budgets) as url:
        post(url)
        settle(url)
        short = {**ASK, "max_tokens": 1}
        post(url, short)
    first, second = (str(each.body["messages"]) for each in server.requests)
    assert NOTE not in first
    assert "Come to an end now" in second


# ── where it is told ─────────────────────────────────────────────────────────────────────


def test_a_warning_is_in_header_log_page_and_metrics(serve):
    server, seen = serve("anthropic", lambda captured: "Done."), []
    budgets = [team(tokens=1, on_exceeded="warn")]
    with proxy(server, seen.append, budgets=budgets) as url:
        assert "budget" not in post(url)[1]["X-Ullage"]
        settle(url)
        assert "; budget=" in post(url)[1]["X-Ullage"]
        (shown,) = spent(url)
        metrics = ask_raw(url, path="/_ullage/metrics")[2].decode()
    line = line_of(seen[1])
    assert line["budget"] == "team"
    assert line["budget_percent"] == seen[1].report.budget.percent >= 100
    assert "budget" not in line_of(seen[0])
    kinds = [event.kind for event in seen[1].report.events]
    assert kinds.count("warned") == 1
    assert shown["share"] == shown["tokens"] / 1
    assert 'ullage_decisions_total{kind="warned"} 1' in metrics
    (ratio,) = re.findall(
        r'ullage_team_budget_used_ratio\{budget="team",tenant=""\} (\S+)',
        metrics,
    )
    assert float(ratio) == shown["share"]


def test_what_names_teams_is_for_whoever_may_see_the_pages(serve):
    server = serve("anthropic", lambda captured: "Done.")
    with proxy(server, budgets=[team()]) as url:
        post(url, **{"User-Agent": "claude-cli/2.1"})
        settle(url)
        inside = ask_raw(url, path="/_ullage/metrics")[2].decode()
        forwarded = {"X-Forwarded-For": "203.0.113.9"}
        outside = ask_raw(url, path="/_ullage/metrics", headers=forwarded)
    assert 'client="claude-cli"' in inside
    assert "ullage_team_" not in outside[2].decode()
    assert "set [access]" in outside[2].decode()
    assert (
        'ullage_cost_usd_total{model="claude-opus-4-8"}' in outside[2].decode()
    )


def test_workers_of_one_proxy_tell_the_newest_that_one_of_them_knows():
    from ullage.core.values.spending import SpendingKey
    from ullage.stores import SpendingRow

    def row(tokens, tenant="anna"):
        key = SpendingKey("team", tenant, "2026-11")
        return SpendingRow(key=key, writer="", tokens=tokens, limit_tokens=100)

    shown = budgets_shown([row(10), row(30), row(20), row(50, "ben")])
    assert [(one.tenant, one.share) for one in shown] == [
        ("ben", 0.5),
        ("anna", 0.3),
    ]


def test_a_stopped_request_has_a_word_of_its_own():
    from msgspec.structs import replace

    from ullage.doors.proxy.metrics import Metrics, done_with, merged

    use = BudgetUse(budget="team", share=1.2, state="stopped", resets_s=1)
    report = replace(FITTED, is_stopped=True, budget=use, usage=None)
    told = relayed(report)
    metrics = Metrics()
    metrics.take(told)
    assert done_with(told) == "stopped"
    text = merged([metrics.lines({})])
    assert 'ullage_stopped_total{budget="team"} 1' in text
    assert line_of(told)["budget_percent"] == 120


# ── how it is set ────────────────────────────────────────────────────────────────────────

SETTINGS = """
[tenants]
research = ["{digest}"]

[[budgets]]
name = "research"
tenants = ["{tenant}"]
models = ["claude-opus-*"]
usd = 500
period = "month"
timezone = "Europe/Berlin"
"""


def written(tmp_path, text):
    file = tmp_path / "proxy.toml"
    file.write_text(text)
    return file


def test_it_is_read_from_the_file_of_settings(tmp_path):
    text = SETTINGS.format(digest="0" * 64, tenant="research")
    (budget,) = config_of(written(tmp_path, text)).budgets
    assert (budget.usd, budget.period) == (500, "month")
    assert budget.covers("research", "claude-opus-4-8")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            ('"research"]', '"reserach"]'),
            "budgets.research.tenants: no tenant is called 'reserach'. "
            "Did you mean 'research'?",
        ),
        (("usd = 500", "dollars = 500"), "unknown field `dollars`"),
        (("Europe/Berlin", "Berlin"), "no time zone 'Berlin'"),
        (('"month"', '"monthly"'), "Invalid enum value 'monthly'"),
        (("usd = 500", "usd = -1"), "budgets.research.usd: -1.0 is no amount"),
    ],
)
def test_a_mistake_in_it_is_told_with_what_to_do(tmp_path, change, words):
    text = SETTINGS.format(digest="0" * 64, tenant="research")
    with pytest.raises(ConfigError) as error:
        config_of(written(tmp_path, text.replace(*change)))
    assert words in str(error.value)


def test_two_of_one_name_are_refused():
    with pytest.raises(ConfigError, match="more than one named 'team'"):
        config_of(budgets=[team(), team()])


def test_a_proxy_of_several_workers_holds_one(serve, tmp_path):
    """Real processes on one file: what one spends counts in the others."""
    server = serve("anthropic", lambda captured: "Done.")
    file = written(tmp_path, '[[budgets]]\nname = "all"\ntokens = 1\n')
    options = f"--config={file}", f"--store={tmp_path}/kept.db"
    with started(server, *options, "--workers=2") as one:
        statuses = []
        for _ in range(6):
            statuses.append(post(one.url)[0])
            until(lambda: asked(one.url) == len(statuses))
        assert statuses == [200, *[402] * 5]
        (shown,) = spent(one.url)
        assert shown["share"] > 1


def asked(url):
    """How many requests all workers have counted."""
    text = ask_raw(url, path="/_ullage/metrics")[2].decode()
    counts = re.findall(r"ullage_team_requests_total\{.*\} (\d+)", text)
    return sum(map(int, counts))


def test_the_report_comes_to_what_the_budget_counts_with_a_hold_out(
    serve, tmp_path
):
    server = serve("anthropic", lambda captured: "Done.")
    settings = {
        "budgets": [team(usd=100.0)],
        "holdout": 0.5,
        "store": f"{tmp_path}/kept.db",
    }
    with proxy(server, **settings) as url:
        for number in range(12):
            said = {"role": "user", "content": f"What is wrong in {number}?"}
            post(url, {**ASK, "messages": [said]})
        settle(url)
    words = ("report", "--store", tmp_path / "kept.db", "--by", "tenant")
    told = ullage(*words, "--json").json
    (line,), (budget,) = told["lines"], told["budgets"]
    assert 0 < line["held_out"]["requests"] < 12
    assert line["in_all"]["requests"] == budget["calls"] == 12
    assert line["in_all"]["sent_usd"] == pytest.approx(budget["usd"])


def test_a_program_reads_what_the_report_says_with_the_token(serve, tmp_path):
    server = serve("anthropic", lambda captured: "Done.")
    token = hashlib.sha256(b"secret").hexdigest()
    settings = {
        "budgets": [team()],
        "access": AccessSettings(token_sha256=token),
        "store": f"{tmp_path}/kept.db",
    }
    known = {"Authorization": "Bearer secret"}

    def report(query="", headers=known):
        path = f"/_ullage/report{query}"
        status, _, body = ask_raw(url, path=path, headers=headers)
        return status, json.loads(body)

    with proxy(server, **settings) as url:
        post(url, **{"User-Agent": "claude-cli/2"})
        settle(url)
        assert report(headers={})[0] == 401
        status, told = report("?by=client&by=tenant&since=1d")
        assert status == 200
        (budget,) = told["budgets"]
        assert (budget["budget"], budget["tokens"]) == ("team", 36)
        assert [line["client"] for line in told["lines"]] == ["claude-cli"]
        assert told["total"]["requests"] == 1
        page = ask_raw(
            url, path="/_ullage/report?by=tenant&as=html", headers=known
        )
        assert page[1]["Content-Type"].startswith("text/html")
        assert b"<h2>By tenant</h2>" in page[2]
        assert report("?by=colour")[0] == report("?since=x")[0] == 400
        assert "Use day, tenant" in str(report("?by=colour")[1])
