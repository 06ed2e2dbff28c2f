"""What an operator looks at: metrics, Grafana's dashboard, alerts; by a real Prometheus."""

import hashlib
import json
import re

import pytest
import yaml

from tests.deploy.tools import DEPLOY, judged, prometheus, ran
from tests.proxy.started import started
from tests.proxy.upstream import ask, until
from tests.servers import Refusal
from ullage.doors.proxy.metrics import _HELP, TEAM

TOKEN = "a token that somebody made up"
KEYS = {"research": "key of research", "ops": "key of ops"}
DASHBOARD = json.loads((DEPLOY / "grafana" / "ullage.json").read_text())
ALERTS = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yaml").read_text())
PANELS = [one for one in DASHBOARD["panels"] if one["type"] != "row"]
EXPRESSIONS = {
    f"{one['title']} {target['refId']}": target["expr"]
    for one in PANELS
    for target in one["targets"]
} | {
    rule["alert"]: rule["expr"]
    for group in ALERTS["groups"]
    for rule in group["rules"]
}
OF_PROMETHEUS = {"up", "ALERTS"}
ALWAYS = {"job", "instance"}
SETTINGS = """
pages = true
[access]
token_sha256 = "{token}"
[tenants]
research = ["{research}"]
ops = ["{ops}"]
[[budgets]]
name = "each"
tokens = 110
warn_at = 0.1
[[budgets]]
name = "all"
usd = 100
shared = true
"""


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """A proxy of two workers with all kinds of requests behind it."""
    from contextlib import ExitStack

    from tests.servers import provider

    folder = tmp_path_factory.mktemp("monitored")
    digests = {name: digest(key) for name, key in KEYS.items()}
    file = folder / "proxy.toml"
    file.write_text(SETTINGS.format(token=digest(TOKEN), **digests))
    with ExitStack() as stack:
        there = stack.enter_context(provider("anthropic", rule))
        proxy = stack.enter_context(
            started(
                there,
                f"--config={file}",
                f"--store={folder}/kept.db",
                "--workers=2",
            )
        )
        yield proxy, there


def rule(captured):
    if "fail" in str(captured.body):
        return Refusal(529, {"type": "error", "error": {}})
    return "Done."


def drive(url):
    """Requests of two teams: fitted, failed, unread, stopped."""
    for tenant, key in KEYS.items():
        for words in ("one", "fail", "two", "three", "four", "five", "six"):
            body = {
                "model": "claude-opus-4-8",
                "max_tokens": 20,
                "messages": [{"role": "user", "content": words}],
            }
            headers = {
                "Content-Type": "application/json",
                "x-api-key": key,
                "User-Agent": f"{tenant}-client/1.0",
            }
            if words == "two":
                headers["X-Ullage"] = "off"
            raw = json.dumps(body).encode()
            ask(url, "POST", "/anthropic/v1/messages", raw, headers)


def metrics_of(url, token=TOKEN):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return ask(url, path="/_ullage/metrics", headers=headers)[2].decode()


@pytest.fixture(scope="module")
def exposed(running):
    """The metrics of that proxy, once all of it is counted."""
    proxy, _ = running
    drive(proxy.url)
    until(lambda: total(metrics_of(proxy.url), "ullage_requests_total") == 14)
    return metrics_of(proxy.url)


def total(text, name):
    values = re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.M)
    return sum(map(float, values))


def labels_by_name(text):
    """The labels of each metric that is exposed, by its name."""
    names = {}
    for name, labels in re.findall(r"^(ullage_\w+)(?:\{(.*)\})? ", text, re.M):
        names.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return names


def families(text):
    """The same by family: of a histogram without the ends of its parts."""
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in text}


# ── metrics ──────────────────────────────────────────────────────────────────────────────


def test_every_metric_has_a_help_a_type_and_a_line(exposed):
    names = families(labels_by_name(exposed))
    for kind in ("HELP", "TYPE"):
        told = re.findall(rf"^# {kind} (ullage_\w+) \S", exposed, re.M)
        assert sorted(told) == sorted(names), kind
    assert names <= {f"ullage_{name}" for name in _HELP}


def test_units_stand_in_the_names(exposed):
    """Seconds, bytes, tokens, dollars or a ratio; counters count things that they name."""
    for name in families(labels_by_name(exposed)):
        (kind,) = re.findall(rf"^# TYPE {name} (\w+)$", exposed, re.M)
        assert name.endswith("_total") == (kind == "counter"), name
        words = _HELP[name.removeprefix("ullage_")]
        for unit in ("seconds", "bytes", "dollars"):
            if words.lower().startswith(unit):
                shown = {"dollars": "usd"}.get(unit, unit)
                assert shown in name, name


def test_promtool_finds_nothing_to_improve(exposed):
    assert ran("promtool", "check", "metrics", given=exposed) == ""


def test_without_the_token_no_team_is_named(running, exposed):
    proxy, _ = running
    open_text = metrics_of(proxy.url, token=None)
    assert "research" not in open_text
    assert f"ullage_{TEAM}" not in open_text
    assert "research" in exposed


def test_costs_by_team_model_and_client_add_up(running, exposed):
    _, there = running
    answered = there.answered[: int(total(exposed, "ullage_replies_total"))]
    reported = [body["usage"] for body in answered if "usage" in body]
    tokens = [one["input_tokens"] + one["output_tokens"] for one in reported]
    by_team = re.findall(
        r'^ullage_team_cost_usd_total\{tenant="(\w+)",model="claude-opus-4-8",'
        r'client="(\w+)-client",worker="\d"\} \S+$',
        exposed,
        re.M,
    )
    assert {*by_team} == {(name, name) for name in KEYS}
    cost = total(exposed, "ullage_cost_usd_total")
    assert cost == pytest.approx(total(exposed, "ullage_team_cost_usd_total"))
    counted = total(exposed, "ullage_reported_tokens_total")
    assert len({*tokens}) == 1
    # of each team the one that asked not to be fitted is among them
    assert counted == tokens[0] * len(tokens)


# ── the dashboard and the alerts, by their names ─────────────────────────────────────────


def plain(expression):
    """An expression without what Grafana fills in."""
    filled = expression.replace("$__rate_interval", "1m")
    return filled.replace("$team", ".*")


@pytest.mark.parametrize("where", EXPRESSIONS)
def test_every_expression_asks_for_what_a_proxy_exports(exposed, where):
    exported, expression = labels_by_name(exposed), plain(EXPRESSIONS[where])
    names = set(re.findall(r"\b(ullage_\w+|up)\b", expression))
    assert names
    assert names - OF_PROMETHEUS <= set(exported)
    known = set().union(*(exported.get(name, set()) for name in names))
    asked = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"", expression))
    for group in re.findall(r"\bby \(([^)]*)\)", expression):
        asked.update(label.strip() for label in group.split(","))
    assert asked <= known | ALWAYS | {"worker"}, asked - known


_READ = """
import json, sys
from promql_parser import VectorSelector, parse

PARTS = ("lhs", "rhs", "expr", "vector_selector", "param")

def selectors(node):
    if isinstance(node, VectorSelector):
        yield node
    for part in [getattr(node, name, None) for name in PARTS] + list(getattr(node, "args", ())):
        if part is not None:
            yield from selectors(part)

read = {}
for where, expression in json.load(open(sys.argv[1])).items():
    read[where] = {}
    for one in selectors(parse(expression)):
        labels = read[where].setdefault(one.name, [])
        labels += [m.name for m in one.matchers.matchers]
print(json.dumps(read))
"""


def test_a_parser_of_promql_reads_every_expression(exposed, tmp_path):
    file = tmp_path / "expressions.json"
    filled = {name: plain(text) for name, text in EXPRESSIONS.items()}
    file.write_text(json.dumps(filled))
    exported = labels_by_name(exposed)
    read = judged(_READ, file)
    assert read.keys() == EXPRESSIONS.keys()
    for where, selectors in read.items():
        assert selectors, where
        for name, labels in selectors.items():
            assert name in {*exported, *OF_PROMETHEUS}, where
            assert set(labels) <= exported.get(name, set()) | ALWAYS, where


_MODEL = """
import json, sys
from grafana_foundation_sdk.models.dashboard import Dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
register_default_plugins()
board = Dashboard.from_json(json.load(open(sys.argv[1])))
print(JSONEncoder(sort_keys=True).encode(board))
"""


def test_grafanas_own_model_reads_the_dashboard():
    read = judged(_MODEL, DEPLOY / "grafana" / "ullage.json")
    assert read["title"] == "ullage"
    titles = [panel["title"] for panel in read["panels"]]
    assert titles == [panel["title"] for panel in DASHBOARD["panels"]]
    asked = [
        target["expr"]
        for panel in read["panels"]
        for target in panel.get("targets") or ()
    ]
    assert asked == [
        target["expr"] for panel in PANELS for target in panel["targets"]
    ]


def test_its_panels_say_what_they_show_and_do_not_overlap():
    squares = set()
    for one in DASHBOARD["panels"]:
        grid = one["gridPos"]
        own = {
            (x, y)
            for x in range(grid["x"], grid["x"] + grid["w"])
            for y in range(grid["y"], grid["y"] + grid["h"])
        }
        assert not own & squares, one["title"]
        assert grid["x"] + grid["w"] <= 24
        squares |= own
    for one in PANELS:
        assert one["fieldConfig"]["defaults"]["unit"], one["title"]
    assert len({one["id"] for one in DASHBOARD["panels"]}) == len(
        DASHBOARD["panels"]
    )


def test_every_alert_says_what_to_do():
    for group in ALERTS["groups"]:
        for each in group["rules"]:
            assert each["annotations"].keys() == {"summary", "action"}
            assert each["labels"]["severity"] in ("page", "ticket")
            assert each["annotations"]["action"].endswith(".")


def test_promtool_takes_the_files_and_their_own_tests_pass():
    folder = DEPLOY / "prometheus"
    words = ran("promtool", "check", "rules", "alerts.yaml", cwd=folder)
    assert "SUCCESS" in words
    assert "SUCCESS" in ran(
        "promtool", "check", "config", "prometheus.yaml", cwd=folder
    )
    assert "SUCCESS" in ran(
        "promtool", "test", "rules", "alerts_test.yaml", cwd=folder
    )
    tests = yaml.safe_load((folder / "alerts_test.yaml").read_text())
    text = json.dumps(tests)
    for group in ALERTS["groups"]:
        for each in group["rules"]:
            assert each["alert"] in text, "each alert has a test"


# ── a real Prometheus ────────────────────────────────────────────────────────────────────


def test_prometheus_scrapes_it_and_every_panel_shows_something(
    running, exposed, tmp_path
):
    proxy, _ = running
    target = proxy.url.removeprefix("http://")
    with prometheus(tmp_path, target, TOKEN) as server:
        first = server.until("ullage_team_budget_used_ratio")
        assert {one["metric"].get("tenant") for one in first} >= {*KEYS}
        drive(proxy.url)  # so that there is a rate
        server.until("sum(increase(ullage_requests_total[1m])) > 0")
        server.until("sum(increase(ullage_stopped_total[1m])) > 0")
        empty = [
            where
            for where, expression in EXPRESSIONS.items()
            if where not in ALERTED and not server.samples(plain(expression))
        ]
        assert empty == []
        rules = server.ask("rules")["groups"][0]["rules"]
        assert len(rules) == len(ALERTED)
        for each in rules:
            assert each["health"] in ("ok", "unknown"), each.get("lastError")
        server.until('ALERTS{alertname="UllageBudgetSpent"}')


ALERTED = {
    rule["alert"] for group in ALERTS["groups"] for rule in group["rules"]
}


# ── the other files, by their own linters ────────────────────────────────────────────────


def test_docker_compose_takes_the_compose_file():
    words = ran(
        "docker-compose", "-f", "compose.yaml", "config", DB_PASSWORD="x"
    )
    assert {"db", "proxy", "front", "gc"} <= set(
        yaml.safe_load(words)["services"]
    )


def test_helm_takes_the_chart():
    given = ("--set", "image.repository=r/x", "--set", "store.secret=s")
    chart = DEPLOY / "helm" / "ullage"
    assert "0 chart(s) failed" in ran(
        "helm", "lint", "--strict", chart, *given
    )
    with pytest.raises(AssertionError, match="store"):
        ran("helm", "lint", "--strict", chart)
