"""Counters, as Prometheus reads them."""

import re

from msgspec.structs import replace

from tests.proxy.told import FITTED, broke, passed, relayed
from ullage.doors.proxy.metrics import Metrics, done_with, merged

LINE = re.compile(
    r'ullage_[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? [0-9.e+-]+'
)


def text(*told, worker=""):
    metrics = Metrics()
    for each in told:
        metrics.take(each)
    return metrics.lines({"in_flight": 2}, worker)


def test_every_line_is_one_that_prometheus_takes():
    found = merged([text(relayed(), passed())])
    assert found.endswith("\n")
    for line in found.splitlines():
        assert line.startswith(
            ("# HELP ullage_", "# TYPE ullage_")
        ) or LINE.fullmatch(line), line


def test_what_was_counted_is_told():
    found = merged(
        [text(relayed(), relayed(), passed(), passed("asked", is_broken=True))]
    )
    for line in (
        'ullage_requests_total{upstream="anthropic",wire="anthropic",done="fitted"} 2',
        'ullage_requests_total{upstream="anthropic",wire="none",done="passed"} 2',
        'ullage_passed_total{reason="asked"} 1',
        'ullage_prompt_tokens_total{at="came"} 8000',
        'ullage_prompt_tokens_total{at="sent"} 2000',
        'ullage_reported_tokens_total{of="cache_read"} 1800',
        'ullage_decisions_total{kind="pruned"} 2',
        "ullage_broken_total 1",
        'ullage_fit_seconds_bucket{le="0.0025"} 0',
        'ullage_fit_seconds_bucket{le="0.005"} 2',
        'ullage_fit_seconds_bucket{le="+Inf"} 2',
        "ullage_fit_seconds_count 2",
        "ullage_in_flight 2",
        "# TYPE ullage_fit_seconds histogram",
    ):
        assert line in found.splitlines()


def test_each_worker_has_a_label_and_each_name_one_type():
    found = merged([text(relayed(), worker="1"), text(relayed(), worker="2")])
    assert found.count("# TYPE ullage_requests_total counter") == 1
    assert 'ullage_in_flight{worker="1"} 2' in found
    assert 'ullage_in_flight{worker="2"} 2' in found


def test_what_was_done_in_a_word():
    assert done_with(relayed(replace(FITTED, is_changed=False))) == "unchanged"
    assert done_with(relayed(is_dry=True)) == "dry-run"
    assert done_with(passed()) == "passed"


def test_a_label_of_a_strangers_is_quoted():
    assert r'upstream="a\"b\\c\nd"' in merged(
        [text(relayed(upstream='a"b\\c\nd'))]
    )


def test_tokens_that_were_billed_anew_are_counted_by_their_cause():
    lines = text(broke(), broke(), relayed())["cache_rebilled_tokens_total"]
    assert lines == ['ullage_cache_rebilled_tokens_total{cause="tools"} 1800']


def value(found, name):
    (line,) = (line for line in found.splitlines() if line.startswith(name))
    return float(line.rpartition(" ")[2])


def test_what_a_team_would_have_paid_stands_beside_what_it_paid():
    labels = (
        '{tenant="tenant-of-somebody",model="claude-opus-4-8",client="cli"}'
    )
    found = merged([text(relayed(replace(FITTED, raw_usd=2.5), client="cli"))])
    assert f"ullage_team_raw_usd_total{labels} 2.5" in found.splitlines()
    assert 0 < value(found, "ullage_team_cost_usd_total") < 2.5
    assert "team_raw" not in merged([text(relayed())], with_teams=False)


def test_of_what_was_not_fitted_both_are_the_same():
    found = merged([text(relayed())])
    paid = value(found, "ullage_team_cost_usd_total")
    assert value(found, "ullage_team_raw_usd_total") == paid


def test_what_was_held_out_is_in_no_saving_of_tokens():
    found = merged(
        [text(relayed(), relayed(replace(FITTED, is_held_out=True)))]
    )
    assert 'ullage_prompt_tokens_total{at="came"} 4000' in found
    assert "ullage_fit_seconds_count 2" in found
